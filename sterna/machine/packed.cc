// SPDX-License-Identifier: Apache-2.0
// The packed forms of matmul operands that are kept for reuse.
#include <algorithm>

#include "sterna/machine/machine.h"

namespace sterna {
namespace {

constexpr View kNoView{};

}  // namespace

PackedOperand& Machine::packed(const View& view, bool moving, bool double_row, size_t floats, bool* fresh,
                               const View* scale) {
  // Tensors with an address share bytes, so their own version says nothing; dynamic views move. What cannot be used
  // again takes turns in two slots, which stay in the cache; two, since the other operand of this instruction stays.
  constexpr size_t kSlots = 96;
  const Storage& s = *storages_[view.tensor];
  auto stays = [](const Storage& x, const View& v) {
    return x.defined == &x.own_defined && v.kind == ViewKind::kStrided;
  };
  const bool reusable = stays(s, view) && (scale == nullptr || stays(*storages_[scale->tensor], *scale));
  const uint64_t scale_version = scale == nullptr ? 0 : storages_[scale->tensor]->version;
  const View& beside = scale == nullptr ? kNoView : *scale;
  ++packed_clock_;
  if (!reusable) {
    *fresh = false;
    PackedOperand& p = packed_once_[packed_clock_ % 2];
    if (p.buffer.capacity() < floats * 4) p.buffer = buffers_->take(floats * 4);
    return p;
  }
  PackedOperand* stale = nullptr;  // the same view's form of before it changed: its memory is at hand
  for (PackedOperand& p : packed_)
    if (p.moving == moving && p.double_row == double_row && p.view == view && p.scale == beside) {
      *fresh = p.version == s.version && p.scale_version == scale_version;
      p.used = packed_clock_;
      if (*fresh) return p;
      stale = &p;
    }
  *fresh = false;
  if (stale == nullptr && packed_.size() < kSlots) {
    if (packed_.capacity() < kSlots) packed_.reserve(kSlots);  // callers hold references
    packed_.emplace_back().used = packed_clock_;
  }
  // The slot used longest ago: the other operand of this instruction, used just before, stays.
  auto oldest = [&]() -> PackedOperand& {
    return *std::min_element(packed_.begin(), packed_.end(),
                             [](const auto& a, const auto& b) { return a.used < b.used; });
  };
  PackedOperand& p = stale != nullptr ? *stale : packed_.back().used == packed_clock_ ? packed_.back() : oldest();
  p.used = packed_clock_;
  if (p.buffer.capacity() < floats * 4) p.buffer = buffers_->take(floats * 4);
  p.view = view;
  p.version = s.version;
  p.moving = moving;
  p.double_row = double_row;
  p.scale = beside;
  p.scale_version = scale_version;
  return p;
}

}  // namespace sterna
