// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/replay_step.h"

#include <functional>

#include "sterna/machine/rows.h"

namespace sterna {
namespace {

/// Where an operand lies in its tensor, if it lies there plainly and all of the tensor is defined.
bool place_in_tensor(const Opened& o, ReplayStep::Place* place) {
  const Operand& at = o.operand;
  const Storage& s = *at.storage;
  // Tensors with an address share their bytes and definedness with others: their instructions run as always.
  if (o.view.kind != ViewKind::kStrided || !at.unit || s.defined != &s.own_defined || !s.defined->whole()) return false;
  // The copy that was taken of a source because it overlaps dst lies elsewhere.
  const std::less<const std::byte*> before;
  if (before(at.base, s.data) || !before(at.base, s.data + s.bytes)) return false;
  const ptrdiff_t offset = at.base - s.data;
  if (offset > UINT32_MAX || at.row_pitch != static_cast<int32_t>(at.row_pitch)) return false;
  *place = {o.view.tensor, static_cast<uint32_t>(offset), static_cast<int32_t>(at.row_pitch)};
  return true;
}

/// The operand is all of its tensor, each byte once.
bool is_all(const Machine& m, const Opened& o) {
  const TensorInfo& info = m.tensor(o.view.tensor);
  const int64_t row_bytes = o.operand.cols * size_of(o.view.dtype);
  return row_bytes * o.operand.rows == info.bytes() &&
         (o.operand.rows == 1 || o.operand.row_pitch == (info.on_chip() ? o.operand.storage->pitch : row_bytes));
}

}  // namespace

bool place_step(Machine& m, ReplayStep& step, const Opened& dst, const Opened* const* in, size_t n, bool* all) {
  const Operand& d = dst.operand;
  if (d.rows <= 0 || d.cols <= 0 || d.rows > UINT16_MAX || d.cols > UINT16_MAX || d.rounding != nullptr ||
      d.storage->by_matmul != nullptr || !place_in_tensor(dst, &step.out))
    return false;
  for (size_t i = 0; i < n; ++i)
    if (!place_in_tensor(*in[i], &step.in[i])) return false;
  step.rows = static_cast<uint16_t>(d.rows);
  step.cols = static_cast<uint16_t>(d.cols);
  *all = is_all(m, dst);
  return true;
}

}  // namespace sterna
