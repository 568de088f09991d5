// SPDX-License-Identifier: Apache-2.0
// Definedness: which bytes of a storage hold a value. One bit a byte in meaning; kept as a few rectangles as long
// as those say it exactly, which makes the usual questions O(1), and as bitmaps from then on: one of groups of 32 rows,
// since instructions start at partitions 0, 32, 64 and 96 and mostly take all rows of a group, and one of single rows.
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
  bool test_byte(int64_t row, int64_t byte) const { return next_undefined(row, byte, byte + 1) > byte; }
  /// The first byte of [begin, end) in the row that is not defined; `end` without one.
  int64_t next_undefined(int64_t row, int64_t begin, int64_t end) const;
  /// The first byte of [begin, end) in the row that is defined; `end` without one.
  int64_t next_defined(int64_t row, int64_t begin, int64_t end) const;

 private:
  static constexpr int kBoxes = 8;
  static constexpr int64_t kGroup = 32;  // rows that share a word in `groups_`
  bool test_slow(const Box& box);
  void mark_slow(const Box& box);
  void to_bitmap();
  void set_bits(const Box& box);
  void clear_bits(const Box& box);
  bool all_bits(const Box& box);
  int64_t next_bit(int64_t row, int64_t begin, int64_t end, bool set) const;
  template <class F>
  void for_each_part(const Box& box, const F& f) const;

  int64_t rows_ = 0, row_bytes_ = 0, words_ = 0;
  bool whole_ = false;
  int count_ = 0;
  Box boxes_[kBoxes];
  // A byte is defined when its bit is set in the word of its group (all rows of the group are) or in that of its row.
  // `some_`: the groups in which a row may have bits of its own. Empty: the boxes are exact.
  std::vector<uint64_t> groups_, some_, bits_;
};

}  // namespace sterna
