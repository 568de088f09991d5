// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/check_indirect.h"

#include <algorithm>
#include <optional>

#include "sterna/base/text.h"
#include "sterna/isa/mx_scales.h"

namespace sterna {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

bool names_operand(std::string_view names, std::string_view operand) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == operand) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

/// The view in a field; null if it has none.
const View* view_in(const FieldSpec& spec, const void* body) {
  const void* at = static_cast<const char*>(body) + spec.offset;
  const View* view = nullptr;
  if (spec.type == FieldType::kView) view = static_cast<const View*>(at);
  if (spec.type == FieldType::kScalar && static_cast<const Scalar*>(at)->is_view)
    view = &static_cast<const Scalar*>(at)->view;
  return view != nullptr && !view->empty() ? view : nullptr;
}

bool is_read(const FieldSpec& spec) { return spec.role == Role::kIn; }

/// The partition at which a view starts, where its tensor was placed by hand.
std::optional<int64_t> start_of(const Rules& r, const View& v) {
  const TensorInfo& t = r.tensor(v);
  if (!t.has_address) return std::nullopt;
  return t.address_partition + v.partition;
}

Status same_start(const Rules& r, const View& index, const View& like, std::string_view what, std::string_view whose) {
  const auto a = start_of(r, index), b = start_of(r, like);
  if (!a || !b || *a == *b) return {};
  return broken("TI7", cat("The index of '", what, "' starts at partition ", *a, ", ", whose, " at ", *b,
                           "; with .indirect() both start at the same partition. Place one of them elsewhere."));
}

/// The operand whose partitions the index of a scattered dst follows.
const FieldSpec* source_of(const TableRow& row) {
  for (const FieldSpec& spec : row.field_list())
    if (is_read(spec) && names_operand(row.info.indirect, spec.name)) return &spec;
  return nullptr;
}

Status check_start(const Rules& r, const TableRow& row, const void* body, const FieldSpec& spec, const View& view) {
  const View& index = (*r.dynamics)[view.dynamic].index;
  if (const auto start = start_of(r, index); start && *start % kQuadrant != 0)
    return broken("TI7", cat("The index of '", spec.name, "' starts at partition ", *start,
                             "; it starts at a multiple of ", kQuadrant, "."));
  if (is_read(spec)) return same_start(r, index, view, spec.name, "the operand");
  const FieldSpec* source = source_of(row);
  const View* read = source == nullptr ? nullptr : view_in(*source, body);
  if (read == nullptr) return {};
  if (read->memory == Memory::kSbuf) return same_start(r, index, *read, spec.name, cat("'", source->name, "'"));
  if (!finds_columns(*read)) return {};
  return same_start(r, index, (*r.dynamics)[read->dynamic].index, spec.name, cat("that of '", source->name, "'"));
}

}  // namespace

int32_t index_group(const Chip& chip, const Info& info) {
  return static_cast<int32_t>(info.array_index ? chip.limits.array_index_partitions
                                               : chip.limits.gpsimd_core_partitions);
}

Status check_indirect(const Rules& rules, const TableRow& row, const void* body) {
  if (!rules.chip->features.indirect_views)
    return Fault(FaultKind::kNotOnThisChip, "TI1",
                 cat("Views with .indirect() do not exist on ", rules.chip->name, "."));
  const int32_t group = index_group(*rules.chip, row.info);
  for (const FieldSpec& spec : row.field_list()) {
    const View* view = view_in(spec, body);
    if (view == nullptr || !finds_columns(*view)) continue;
    if (!names_operand(row.info.indirect, spec.name))
      return broken("TI2", cat("'", spec.name, "' of ", row.info.mnemonic, " takes no view with .indirect()",
                               row.info.indirect.empty() ? "." : cat("; these operands do: ", row.info.indirect, ".")));
    if (const int32_t used = (*rules.dynamics)[view->dynamic].group; used != group)
      return broken("TI6", cat("The index of '", spec.name, "' is shared by ", used, " partitions; ", row.info.mnemonic,
                               " reads it by ", group, "."));
    STERNA_TRY(check_start(rules, row, body, spec, *view));
  }
  return {};
}

}  // namespace sterna
