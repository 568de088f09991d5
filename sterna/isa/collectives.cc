// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/collectives.h"

#include <algorithm>
#include <set>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"

namespace sterna {
namespace collectives {
namespace {

/// The text that says who takes part: each collective has one.
std::string_view ranks_text(uint8_t opcode, const void* record, const Machine& machine) {
  const auto fields = instruction_table()[opcode].field_list();
  const auto spec =
      std::find_if(fields.begin(), fields.end(), [](const FieldSpec& f) { return f.type == FieldType::kName; });
  const char* at = static_cast<const char*>(record) + spec->offset;
  return machine.text(reinterpret_cast<const NameRef*>(at)->id);
}

}  // namespace

Result<std::vector<int>> partners(uint8_t opcode, const void* record, const Machine& machine) {
  const std::string_view text = ranks_text(opcode, record, machine);
  if (opcode != Permute::info.opcode) {
    STERNA_ASSIGN(const RankLists lists, parse_ranks(text));
    return list_of(lists, machine.rank());
  }
  STERNA_ASSIGN(const RankLists pairs, parse_ranks(text, true));
  std::set<int> all;
  for (const auto& pair : pairs) {
    if (pair.size() != 2) return bad_ranks(text);
    all.insert(pair.begin(), pair.end());
  }
  return all.count(machine.rank()) ? std::vector<int>(all.begin(), all.end()) : std::vector<int>{};
}

Status RankId::check(const Rules&) { return control::check_register(dst, "dst"); }
Status RingRankId::check(const Rules& r) {
  STERNA_TRY(check_channel(r, channel));
  return control::check_register(dst, "dst");
}

Status RingRankId::execute(Machine& m) const {
  STERNA_ASSIGN(const RankLists lists, parse_ranks(m.text(group.id)));
  const std::vector<int> ring = list_of(lists, m.rank());
  if (ring.empty())
    return Fault(FaultKind::kRuleBroken, "CC1", cat("Rank ", m.rank(), " is in no list of ", m.text(group.id), "."));
  const auto n = static_cast<int64_t>(ring.size());
  const int64_t here = std::find(ring.begin(), ring.end(), m.rank()) - ring.begin();
  m.set_reg(dst.id, ring[static_cast<size_t>(((here - iteration) % n + n) % n)]);
  return {};
}

}  // namespace collectives

std::vector<TableRow> collectives_part() { return make_part(collectives::Instructions{}); }

}  // namespace sterna
