// SPDX-License-Identifier: Apache-2.0
// The packed forms of matmul operands that are kept for reuse.
#include <algorithm>

#include "sterna/machine/machine.h"

namespace sterna {

PackedOperand& Machine::packed(const View& view, bool moving, bool double_row, size_t floats, bool* fresh) {
  // Tensors with an address share bytes, so their own version says nothing; dynamic views move.
  constexpr size_t kSlots = 96;
  const Storage& s = *storages_[view.tensor];
  const bool reusable = s.defined == &s.own_defined && view.kind == ViewKind::kStrided;
  ++packed_clock_;
  if (reusable)
    for (PackedOperand& p : packed_)
      if (p.version == s.version && p.moving == moving && p.double_row == double_row && p.view == view) {
        *fresh = true;
        p.used = packed_clock_;
        return p;
      }
  *fresh = false;
  if (packed_.size() < kSlots) {
    if (packed_.capacity() < kSlots) packed_.reserve(kSlots);  // callers hold references
    packed_.emplace_back().used = packed_clock_;
  }
  // The slot used longest ago: the other operand of this instruction, used just before, stays.
  PackedOperand& p = packed_.back().used == packed_clock_
                         ? packed_.back()
                         : *std::min_element(packed_.begin(), packed_.end(),
                                             [](const auto& a, const auto& b) { return a.used < b.used; });
  p.used = packed_clock_;
  if (p.buffer.capacity() < floats * 4) p.buffer = buffers_->take(floats * 4);
  p.view = view;
  p.version = reusable ? s.version : 0;
  p.moving = moving;
  p.double_row = double_row;
  return p;
}

}  // namespace sterna
