// SPDX-License-Identifier: Apache-2.0
// Definedness: which bytes of a storage hold a value. One bit a byte in meaning; kept as a few rectangles as long
// as those say it exactly, which makes the usual questions O(1), and as a bitmap from then on.
#pragma once

#include <cstdint>
#include <vector>

namespace sterna {

/// A storage seen as `rows` rows of `row_bytes` bytes (partitions on chip; outer dims times last dim in HBM).
class Defined {
 public:
  struct Box {
    int64_t row_begin, row_end, byte_begin, byte_end;
    bool contains(const Box& b) const {
      return row_begin <= b.row_begin && b.row_end <= row_end && byte_begin <= b.byte_begin && b.byte_end <= byte_end;
    }
  };

  Defined() = default;
  Defined(int64_t rows, int64_t row_bytes, bool defined) { reset(rows, row_bytes, defined); }
  void reset(int64_t rows, int64_t row_bytes, bool defined);

  bool whole() const { return whole_; }
  bool none() const { return !whole_ && count_ == 0 && bits_.empty(); }
  /// Every byte of the box is defined.
  bool test(const Box& box) {
    if (whole_) return true;
    for (int i = 0; i < count_; ++i)
      if (boxes_[i].contains(box)) return true;
    return test_slow(box);
  }
  /// First undefined byte in the box as (row, byte); only after test() said false.
  void first_undefined(const Box& box, int64_t& row, int64_t& byte) const;
  void mark(const Box& box) {
    if (whole_) return;
    mark_slow(box);
  }
  void mark_all() { whole_ = true; }
  void clear(const Box& box);
  bool test_byte(int64_t row, int64_t byte) const;

 private:
  static constexpr int kBoxes = 8;
  bool test_slow(const Box& box);
  void mark_slow(const Box& box);
  void to_bitmap();
  void set_bits(const Box& box, bool value);
  bool all_bits(const Box& box) const;

  int64_t rows_ = 0, row_bytes_ = 0, words_ = 0;
  bool whole_ = false;
  int count_ = 0;
  Box boxes_[kBoxes];
  std::vector<uint64_t> bits_;  // empty: the boxes are exact
};

}  // namespace sterna
