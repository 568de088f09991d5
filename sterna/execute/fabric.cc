// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/fabric.h"

#include <algorithm>
#include <cstring>

#include "sterna/base/text.h"

namespace sterna {
namespace {

bool in_hbm(const RecordHeader& record) {
  bool hbm = true;
  for_each_view(instruction_table()[record.opcode], record.body(),
                [&](const View& v, Role) { hbm = hbm && v.memory == Memory::kHbm; });
  return hbm;
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kMost = 8;
  std::vector<int> shown(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(kMost, ranks.size())));
  std::string out = shape_text(shown);
  return ranks.size() > kMost ? cat(out.substr(0, out.size() - 1), ", ...]") : out;
}

}  // namespace

Result<bool> Fabric::arrive(int rank, int core, const RecordHeader& record, const Program& program, Machine& machine) {
  Post& mine = post(rank, core);
  if (mine.record == nullptr) {
    STERNA_ASSIGN(std::vector<int> partners, collectives::partners(record.opcode, record.body(), machine));
    for (int partner : partners)
      if (partner >= ranks_)
        return Fault(
            FaultKind::kRuleBroken, "CC9",
            cat("The group names rank ", partner, "; this launch has ", ranks_, ranks_ == 1 ? " rank" : " ranks",
                ". sterna.launch(kernel, arguments) runs one rank for each item of arguments."));
    if (partners.empty()) return true;  // this rank takes no part
    mine = {&record, &program, &machine, std::move(partners), false};
  }
  if (!mine.done) {
    const bool joint = cores_ > 1 && in_hbm(record);
    if (joint) {
      STERNA_ASSIGN(const bool done, try_all_cores(rank, core));
      if (!done) return false;
    } else {
      if (!complete(mine, core)) return false;
      STERNA_TRY(run(mine.partners, core));
    }
  }
  mine = {};
  return true;
}

bool Fabric::complete(const Post& of, int core) const {
  return std::all_of(of.partners.begin(), of.partners.end(), [&](int rank) {
    const Post& p = post(rank, core);
    return p.record != nullptr && !p.done && p.record->opcode == of.record->opcode && p.partners == of.partners;
  });
}

bool Fabric::same_on_all_cores(const std::vector<int>& group) const {
  return std::all_of(group.begin(), group.end(), [&](int rank) {
    const RecordHeader& first = *post(rank, 0).record;
    for (int core = 1; core < cores_; ++core) {
      const RecordHeader& other = *post(rank, core).record;
      const size_t bytes = instruction_table()[first.opcode].bytes;
      if (other.opcode != first.opcode || std::memcmp(first.body(), other.body(), bytes) != 0) return false;
    }
    return true;
  });
}

Status Fabric::run(const std::vector<int>& group, int core) {
  std::vector<collectives::Part> parts;
  for (int rank : group) parts.push_back({post(rank, core).record->body(), post(rank, core).machine});
  STERNA_TRY(collectives::run_collective(post(group[0], core).record->opcode, parts));
  for (int rank : group) post(rank, core).done = true;
  return {};
}

Result<bool> Fabric::try_all_cores(int rank, int core) {
  const std::vector<int> group = post(rank, core).partners;
  for (int c = 0; c < cores_; ++c) {
    const Post& p = post(rank, c);
    if (p.record == nullptr || p.done || p.partners != group || !in_hbm(*p.record) || !complete(p, c)) return false;
  }
  const bool once = same_on_all_cores(group);
  for (int c = 0; c < cores_; ++c) {
    if (c > 0 && once)
      for (int r : group) post(r, c).done = true;
    else
      STERNA_TRY(run(group, c));
  }
  return true;
}

Result<bool> Fabric::resolve() {
  for (int rank = 0; rank < ranks_; ++rank)
    for (int core = 0; core < cores_; ++core) {
      const Post& p = post(rank, core);
      if (p.record == nullptr || p.done || !complete(p, core)) continue;
      STERNA_TRY(run(p.partners, core));
      return true;
    }
  return false;
}

std::string Fabric::describe(int rank, int core) const {
  const Post& p = post(rank, core);
  if (p.record == nullptr) return {};
  const Place at = p.program->place(p.record->site);
  return cat("rank ", rank, cores_ > 1 ? cat(" core ", core) : std::string(),
             at.file.empty() ? std::string() : cat(" at ", at.file, ':', at.line), " waits in ",
             instruction_table()[p.record->opcode].info.mnemonic, " for ranks ", ranks_text(p.partners));
}

}  // namespace sterna
