// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/defined.h"

#include <algorithm>

namespace sterna {
namespace {

/// Joins b into a when together they are one rectangle.
bool join(Defined::Box& a, const Defined::Box& b) {
  if (a.contains(b)) return true;
  if (b.contains(a)) {
    a = b;
    return true;
  }
  if (a.row_begin == b.row_begin && a.row_end == b.row_end && b.byte_begin <= a.byte_end &&
      a.byte_begin <= b.byte_end) {
    a.byte_begin = std::min(a.byte_begin, b.byte_begin);
    a.byte_end = std::max(a.byte_end, b.byte_end);
    return true;
  }
  if (a.byte_begin == b.byte_begin && a.byte_end == b.byte_end && b.row_begin <= a.row_end &&
      a.row_begin <= b.row_end) {
    a.row_begin = std::min(a.row_begin, b.row_begin);
    a.row_end = std::max(a.row_end, b.row_end);
    return true;
  }
  return false;
}

}  // namespace

void Defined::reset(int64_t rows, int64_t row_bytes, bool defined) {
  rows_ = rows;
  row_bytes_ = row_bytes;
  words_ = (row_bytes + 63) / 64;
  whole_ = defined || rows == 0 || row_bytes == 0;
  count_ = 0;
  bits_.clear();
}

bool Defined::test_slow(const Box& box) {
  if (box.row_begin >= box.row_end || box.byte_begin >= box.byte_end) return true;
  if (bits_.empty()) {
    if (count_ < 2) return false;  // one rectangle that does not hold the box
    to_bitmap();
  }
  return all_bits(box);
}

void Defined::mark_slow(const Box& box) {
  if (box.row_begin >= box.row_end || box.byte_begin >= box.byte_end) return;
  if (!bits_.empty()) {
    set_bits(box, true);
    // A full rectangle is worth remembering: the next tests hit it at once.
    if (count_ > 0 && join(boxes_[0], box) && boxes_[0].contains({0, rows_, 0, row_bytes_})) whole_ = true;
    return;
  }
  Box grown = box;
  for (int i = count_ - 1; i >= 0; --i) {
    if (!join(grown, boxes_[i])) continue;
    boxes_[i] = boxes_[--count_];
    i = count_;  // the grown box may now touch others
  }
  if (count_ == kBoxes) {
    to_bitmap();
    set_bits(box, true);
    return;
  }
  boxes_[count_++] = grown;
  if (grown.contains({0, rows_, 0, row_bytes_})) whole_ = true;
}

void Defined::clear(const Box& box) {
  if (none() || box.row_begin >= box.row_end || box.byte_begin >= box.byte_end) return;
  if (whole_) {
    boxes_[0] = {0, rows_, 0, row_bytes_};
    count_ = 1;
    whole_ = false;
    bits_.clear();
  }
  if (bits_.empty()) {
    bool touched = false;
    for (int i = count_ - 1; i >= 0; --i) {
      const Box& b = boxes_[i];
      if (box.contains(b)) {
        boxes_[i] = boxes_[--count_];
        continue;
      }
      touched |= b.row_begin < box.row_end && box.row_begin < b.row_end && b.byte_begin < box.byte_end &&
                 box.byte_begin < b.byte_end;
    }
    if (!touched) return;
    to_bitmap();
  }
  count_ = 0;
  set_bits(box, false);
}

bool Defined::test_byte(int64_t row, int64_t byte) const {
  if (whole_) return true;
  if (!bits_.empty()) return (bits_[static_cast<size_t>(row * words_ + byte / 64)] >> (byte % 64)) & 1;
  for (int i = 0; i < count_; ++i)
    if (boxes_[i].contains({row, row + 1, byte, byte + 1})) return true;
  return false;
}

void Defined::first_undefined(const Box& box, int64_t& row, int64_t& byte) const {
  for (row = box.row_begin; row < box.row_end; ++row)
    for (byte = box.byte_begin; byte < box.byte_end; ++byte)
      if (!test_byte(row, byte)) return;
}

void Defined::to_bitmap() {
  bits_.assign(static_cast<size_t>(rows_ * words_), 0);
  for (int i = 0; i < count_; ++i) set_bits(boxes_[i], true);
  count_ = std::min(count_, 1);
}

void Defined::set_bits(const Box& box, bool value) {
  const int64_t first = box.byte_begin / 64, last = (box.byte_end - 1) / 64;
  const uint64_t head = ~uint64_t{0} << (box.byte_begin % 64);
  const uint64_t tail = ~uint64_t{0} >> (63 - (box.byte_end - 1) % 64);
  for (int64_t r = box.row_begin; r < box.row_end; ++r) {
    uint64_t* row = bits_.data() + r * words_;
    for (int64_t w = first; w <= last; ++w) {
      const uint64_t mask = (w == first ? head : ~uint64_t{0}) & (w == last ? tail : ~uint64_t{0});
      if (value)
        row[w] |= mask;
      else
        row[w] &= ~mask;
    }
  }
}

bool Defined::all_bits(const Box& box) const {
  const int64_t first = box.byte_begin / 64, last = (box.byte_end - 1) / 64;
  const uint64_t head = ~uint64_t{0} << (box.byte_begin % 64);
  const uint64_t tail = ~uint64_t{0} >> (63 - (box.byte_end - 1) % 64);
  for (int64_t r = box.row_begin; r < box.row_end; ++r) {
    const uint64_t* row = bits_.data() + r * words_;
    for (int64_t w = first; w <= last; ++w) {
      const uint64_t mask = (w == first ? head : ~uint64_t{0}) & (w == last ? tail : ~uint64_t{0});
      if ((row[w] & mask) != mask) return false;
    }
  }
  return true;
}

}  // namespace sterna
