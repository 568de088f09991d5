// SPDX-License-Identifier: Apache-2.0
// How instructions reach the values of a view: addresses, indices, and the checks that come before.
#include <algorithm>
#include <cmath>

#include "sterna/base/text.h"
#include "sterna/machine/machine.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/convert.h"

namespace sterna {
namespace {

/// Element (row, col) of an index tensor as a whole number.
int64_t index_at(const Operand& index, int64_t row, int64_t col) {
  uint32_t bits;
  load_bits(index, row, col, 1, &bits);
  if (is_float(index.dtype)) {
    const float x = std::nearbyint(to_float_bits(index.dtype, bits));
    return x >= 0 && x < 0x1p62f ? static_cast<int64_t>(x) : -1;  // what is no index is out of bounds
  }
  return info(index.dtype).is_signed ? static_cast<int64_t>(static_cast<int32_t>(bits)) : static_cast<int64_t>(bits);
}

}  // namespace

Result<int64_t> Machine::read_index(const DynamicOffset& dynamic, int64_t row) {
  if (dynamic.source == DynamicOffset::Source::kRegister) {
    STERNA_ASSIGN(const int32_t offset, read_reg(dynamic.reg));
    return static_cast<int64_t>(offset);
  }
  // Element `row` of the flattened (P, n) index tensor, row-major.
  const int64_t cols = dynamic.index.cols();
  STERNA_ASSIGN(Operand index, read_certain(dynamic.index, "offset"));
  return index_at(index, cols > 0 ? row / cols : 0, cols > 0 ? row % cols : 0);
}

Status Machine::read_indices(const DynamicOffset& dynamic, IndexOrder order, std::vector<int64_t>& out) {
  if (dynamic.source == DynamicOffset::Source::kRegister) {
    STERNA_ASSIGN(const int32_t offset, read_reg(dynamic.reg));
    std::fill(out.begin(), out.end(), int64_t{offset});
    return {};
  }
  STERNA_ASSIGN(Operand index, read_certain(dynamic.index, "offset"));
  if (static_cast<int64_t>(out.size()) > index.rows * index.cols)
    return Fault(FaultKind::kOutOfBounds, "DYN3",
                 cat("An offset tensor ", shape_text(dynamic.index), " has ", index.rows * index.cols, " indices, ",
                     out.size(), " rows are to be found with it."));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = order == IndexOrder::kRows ? index_at(index, at / index.cols, at % index.cols)
                                        : index_at(index, at % index.rows, at / index.rows);
  }
  return {};
}

Fault Machine::no_storage(const View& view, const char* what) const {
  if (view.empty()) return Fault(FaultKind::kBug, "", cat(what, ": empty operand"));
  return Fault(
      FaultKind::kBadInput, "MEM2",
      cat("The ", describe(view), " has no storage: it is used before it is allocated or after it was freed."));
}

namespace {

/// The strided pattern of a view at `s`. Filled in place: an operand is too large to copy for each access.
void place_pattern(const View& view, Storage& s, Operand& o) {
  const int64_t size = size_of(view.dtype);
  o.storage = &s;
  o.dtype = view.dtype;
  o.rows = view.rows();
  o.base = s.data + view.offset * size + view.partition * s.pitch;
  o.row_pitch = view.ndim == 0 ? 0 : (view.on_chip() ? view.dims[0].stride * s.pitch : view.dims[0].stride * size);
  if (view.ndim == 2) {  // most views
    const int64_t count = view.dims[1].count, stride = view.dims[1].stride * size;
    o.cols = count;
    o.nfree = count != 1;
    o.free[0] = {stride, count};
    o.unit = count == 1 || stride == size;
    return;
  }
  // Merge free dims that continue one another.
  o.cols = 1;
  for (int d = 1; d < view.ndim; ++d) {
    const int64_t count = view.dims[d].count;
    o.cols *= count;
    if (count == 1) continue;
    const int64_t stride = view.dims[d].stride * size;
    if (o.nfree > 0 && o.free[o.nfree - 1].stride == stride * count) {
      o.free[o.nfree - 1].stride = stride;
      o.free[o.nfree - 1].count *= count;
    } else {
      o.free[o.nfree++] = {stride, count};
    }
  }
  o.unit = o.nfree == 0 ? o.cols <= 1 : (o.nfree == 1 && o.free[0].stride == size);
}

}  // namespace

// Small instructions spend much of their time here, so what is rare is elsewhere.
inline Status Machine::resolve(const View& view, const char* what, Operand* operand) {
  if (!has_storage(view.tensor)) return no_storage(view, what);
  place_pattern(view, *storages_[view.tensor], *operand);
  return view.kind == ViewKind::kStrided ? Status() : resolve_dynamic(view, what, operand);
}

Status Machine::resolve_dynamic(const View& view, const char* what, Operand* operand) {
  const int64_t size = size_of(view.dtype);
  Operand& o = *operand;
  const DynamicOffset& dyn = dynamic(view.dynamic);
  if (view.kind == ViewKind::kDynamic) {
    STERNA_ASSIGN(const int64_t index, read_index(dyn, 0));
    if (index < 0 || (dyn.limit > 0 && index >= dyn.limit))
      return Fault(FaultKind::kOutOfBounds, "DYN1",
                   cat(what, ": the dynamic offset is ", index, ", allowed are 0 to ", dyn.limit - 1, " (",
                       describe(view), ")."));
    o.base += index * dyn.multiplier * size;
    View moved = view;
    moved.kind = ViewKind::kStrided;
    moved.offset += index * dyn.multiplier;
    if (!in_bounds(moved, tensor(view.tensor)))
      return Fault(FaultKind::kOutOfBounds, "DYN2",
                   cat(what, ": with the dynamic offset ", index, " the view leaves the ", describe(view), "."));
    return {};
  }
  if (view.on_chip()) return resolve_columns(view, what, operand);
  if (row_offsets_used_ >= kIndirectOperands) return Fault(FaultKind::kBug, "", "too many indirect operands");
  auto& offsets = row_offsets_[row_offsets_used_++];
  offsets.resize(static_cast<size_t>(o.rows));
  STERNA_TRY(read_indices(dyn, IndexOrder::kRows, offsets));
  View row = view;
  row.dims[0] = {0, 1};
  const ByteRange range = byte_range(row);
  const int64_t step = dyn.multiplier * size;
  for (int64_t& index : offsets) {
    // Out of bounds: the instruction decides (error or skip).
    if (index < 0 || index >= dyn.limit) {
      index = -1;
      continue;
    }
    if (range.begin + index * step < 0 || range.end + index * step > tensor(view.tensor).bytes())
      return Fault(FaultKind::kOutOfBounds, "DYN2",
                   cat(what, ": with the index ", index, " the view leaves the ", describe(view), "."));
    index *= step;
  }
  o.row_offsets = offsets.data();
  return {};
}

Status Machine::read_columns(const View& view, const char* what, std::vector<int64_t>& places) {
  const DynamicOffset& dyn = dynamic(view.dynamic);
  STERNA_ASSIGN(Operand index, read_any(dyn.index, "index"));
  const std::vector<ElementState> states = element_states_if_partial(dyn.index);
  const int64_t cols = view.cols(), groups = (view.rows() + dyn.group - 1) / dyn.group;
  places.resize(static_cast<size_t>(groups * cols));
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t row = g * dyn.group + i % dyn.group, col = i / dyn.group;
      if (!states.empty() && states[static_cast<size_t>(row * index.cols + col)] == ElementState::kUndefined) {
        STERNA_ASSIGN(Operand refused, read_certain(dyn.index, "index"));
        (void)refused;
      }
      const int64_t at = index_at(index, row, col);
      if (at < 0 || at >= dyn.limit)
        return Fault(FaultKind::kOutOfBounds, "DYN1",
                     cat(what, ": index ", i, " of partition group ", g, " is ", at, ", allowed are 0 to ",
                         dyn.limit - 1, " (", describe(view), ")."));
      places[static_cast<size_t>(g * cols + i)] = at * dyn.multiplier;
    }
  return {};
}

Status Machine::resolve_columns(const View& view, const char* what, Operand* operand) {
  if (row_offsets_used_ >= kIndirectOperands) return Fault(FaultKind::kBug, "", "too many indirect operands");
  auto& offsets = row_offsets_[row_offsets_used_++];
  STERNA_TRY(read_columns(view, what, offsets));
  for (int64_t& offset : offsets) offset *= size_of(view.dtype);
  operand->col_offsets = offsets.data();
  operand->group_rows = dynamic(view.dynamic).group;
  operand->nfree = 0;
  operand->unit = false;
  return {};
}

Result<Operand> Machine::read_with(const View& view, const char* what, UninitPolicy policy) {
  Result<Operand> result;
  Status status = resolve(view, what, &*result);
  if (status && !result->storage->defined->whole() && !is_defined(view)) status = undefined_read(view, what, policy);
  if (!status) result.fail(std::move(status.error()));
  return result;
}

Result<Operand> Machine::read(const View& view, const char* what) { return read_with(view, what, options_.uninit); }

Result<Operand> Machine::read_certain(const View& view, const char* what) {
  return read_with(view, what, UninitPolicy::kError);
}

Result<Operand> Machine::read_any(const View& view, const char* what) {
  Result<Operand> result;
  if (Status status = resolve(view, what, &*result); !status) result.fail(std::move(status.error()));
  return result;
}

Result<Operand> Machine::open(const View& view, const char* what) {
  Result<Operand> result;
  Status status = resolve(view, what, &*result);
  if (status && !result->storage->writable)
    status = Fault(FaultKind::kBadInput, "ARG1",
                   cat("'", what, "' writes ", describe(view),
                       ", a read-only argument. Pass a writable array (for example a copy)."));
  if (status) {
    result->storage->written = true;
    result->storage->version = next_version();
    if (rounding_ && rounds_stochastically(view.dtype)) result->rounding = rounding_.get();
  } else {
    result.fail(std::move(status.error()));
  }
  return result;
}

Result<Operand> Machine::write(const View& view, const char* what) {
  Result<Operand> result = open(view, what);
  if (result) mark_defined(view);
  return result;
}

Result<Machine::Values> Machine::read_scalar(const Scalar& scalar, int64_t rows, float* buffer, const char* what) {
  if (!scalar.is_view) {
    buffer[0] = static_cast<float>(scalar.value);
    return Values{buffer, 0};
  }
  STERNA_ASSIGN(Operand o, read(scalar.view, what));
  if (o.rows == 1 || o.row_pitch == 0) {
    load_row(o, 0, 0, 1, buffer);
    return Values{buffer, 0};
  }
  if (o.dtype == DType::kFloat32 && o.row_pitch % 4 == 0 && o.row_offsets == nullptr)
    return Values{reinterpret_cast<const float*>(o.base), o.row_pitch / 4};
  for (int64_t r = 0; r < rows; ++r) load_row(o, r, 0, 1, buffer + r);
  return Values{buffer, 1};
}

}  // namespace sterna
