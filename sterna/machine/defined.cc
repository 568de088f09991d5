// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/defined.h"

#include <algorithm>
#include <bit>

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
    set_bits(box);
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
    set_bits(box);
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
  clear_bits(box);
}

int64_t Defined::next_bit(int64_t row, int64_t begin, int64_t end, bool set) const {
  const uint64_t* group = groups_.data() + row / kGroup * words_;
  const uint64_t* bits = bits_.data() + row * words_;
  for (int64_t at = begin; at < end; at = (at / 64 + 1) * 64) {
    const uint64_t known = group[at / 64] | bits[at / 64];
    const uint64_t wanted = (set ? known : ~known) >> (at % 64);
    if (wanted != 0) return std::min(end, at + std::countr_zero(wanted));
  }
  return end;
}

int64_t Defined::next_defined(int64_t row, int64_t begin, int64_t end) const {
  if (whole_) return begin;
  if (!bits_.empty()) return next_bit(row, begin, end, true);
  int64_t next = end;
  for (int i = 0; i < count_; ++i)
    if (boxes_[i].row_begin <= row && row < boxes_[i].row_end && boxes_[i].byte_end > begin)
      next = std::min(next, std::max(begin, boxes_[i].byte_begin));
  return next;
}

int64_t Defined::next_undefined(int64_t row, int64_t begin, int64_t end) const {
  if (whole_) return end;
  if (!bits_.empty()) return next_bit(row, begin, end, false);
  for (bool moved = true; moved && begin < end;) {
    moved = false;
    for (int i = 0; i < count_; ++i)
      if (boxes_[i].contains({row, row + 1, begin, begin + 1})) {
        begin = boxes_[i].byte_end;
        moved = true;
      }
  }
  return std::min(begin, end);
}

void Defined::first_undefined(const Box& box, int64_t& row, int64_t& byte) const {
  for (row = box.row_begin; row < box.row_end; ++row) {
    byte = next_undefined(row, box.byte_begin, box.byte_end);
    if (byte < box.byte_end) return;
  }
}

void Defined::to_bitmap() {
  const auto groups = static_cast<size_t>((rows_ + kGroup - 1) / kGroup * words_);
  groups_.assign(groups, 0);
  some_.assign(groups, 0);
  bits_.assign(static_cast<size_t>(rows_ * words_), 0);
  for (int i = 0; i < count_; ++i) set_bits(boxes_[i]);
  count_ = std::min(count_, 1);
}

/// f(group, first row, last row + 1, true when these are all rows of the group, word, mask) for each word of the box.
/// Ends early when f gives false.
template <class F>
void Defined::for_each_part(const Box& box, const F& f) const {
  const int64_t first = box.byte_begin / 64, last = (box.byte_end - 1) / 64;
  const uint64_t head = ~uint64_t{0} << (box.byte_begin % 64);
  const uint64_t tail = ~uint64_t{0} >> (63 - (box.byte_end - 1) % 64);
  for (int64_t row = box.row_begin; row < box.row_end;) {
    const int64_t group = row / kGroup, group_end = std::min(rows_, (group + 1) * kGroup);
    const int64_t end = std::min(box.row_end, group_end);
    const bool all = row == group * kGroup && end == group_end;
    for (int64_t w = first; w <= last; ++w) {
      const uint64_t mask = (w == first ? head : ~uint64_t{0}) & (w == last ? tail : ~uint64_t{0});
      if (!f(group, row, end, all, w, mask)) return;
    }
    row = end;
  }
}

void Defined::set_bits(const Box& box) {
  for_each_part(box, [&](int64_t group, int64_t row, int64_t end, bool all, int64_t word, uint64_t mask) {
    uint64_t& known = groups_[static_cast<size_t>(group * words_ + word)];
    if (all) {
      known |= mask;
    } else if ((known & mask) != mask) {
      some_[static_cast<size_t>(group * words_ + word)] |= mask;
      for (int64_t r = row; r < end; ++r) bits_[static_cast<size_t>(r * words_ + word)] |= mask;
    }
    return true;
  });
}

void Defined::clear_bits(const Box& box) {
  for_each_part(box, [&](int64_t group, int64_t row, int64_t end, bool all, int64_t word, uint64_t mask) {
    uint64_t& known = groups_[static_cast<size_t>(group * words_ + word)];
    uint64_t& some = some_[static_cast<size_t>(group * words_ + word)];
    const int64_t begin = group * kGroup;
    if (!all && (known & mask) != 0) {  // what the group knew, its rows know now
      some |= known & mask;
      for (int64_t r = begin; r < std::min(rows_, begin + kGroup); ++r)
        bits_[static_cast<size_t>(r * words_ + word)] |= known & mask;
    }
    known &= ~mask;
    if ((some & mask) != 0)
      for (int64_t r = row; r < end; ++r) bits_[static_cast<size_t>(r * words_ + word)] &= ~mask;
    if (all) some &= ~mask;
    return true;
  });
}

bool Defined::all_bits(const Box& box) {
  bool good = true;
  for_each_part(box, [&](int64_t group, int64_t row, int64_t end, bool all, int64_t word, uint64_t mask) {
    uint64_t& known = groups_[static_cast<size_t>(group * words_ + word)];
    const uint64_t rest = mask & ~known;
    if (rest == 0) return true;
    good = (some_[static_cast<size_t>(group * words_ + word)] & rest) == rest;
    for (int64_t r = row; good && r < end; ++r) good = (bits_[static_cast<size_t>(r * words_ + word)] & rest) == rest;
    if (good && all) known |= rest;  // written in parts, now whole
    return good;
  });
  return good;
}

}  // namespace sterna
