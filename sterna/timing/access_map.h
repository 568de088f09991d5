// SPDX-License-Identifier: Apache-2.0
// AccessMap: who last wrote and read each place of one memory, and so what a new access must wait for. A place is a
// rectangle of rows (partitions) and columns (units of bytes inside a row). Columns are cut into segments and segments
// into strips of rows only where accesses differ, so an access to a tile that is always used whole costs one look-up.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sterna {

/// An instruction's index together with its queue (three bits).
struct Ref {
  uint32_t bits = UINT32_MAX;
  static constexpr uint32_t kMaxIndex = (1u << 29) - 2;

  Ref() = default;
  Ref(uint32_t index, uint32_t queue) : bits(index << 3 | queue) {}
  bool none() const { return bits == UINT32_MAX; }
  uint32_t index() const { return bits >> 3; }
  uint32_t queue() const { return bits & 7; }
  bool operator==(const Ref&) const = default;
};

/// How an access depends on an earlier one.
enum class Hazard : uint8_t {
  kReadAfterWrite,
  kWriteAfterWrite,
  kWriteAfterRead,
};

struct Box {
  uint32_t row, row_end;
  uint32_t column, column_end;
};

class AccessMap {
 public:
  /// Up to 65535 columns.
  AccessMap(uint32_t rows, uint32_t columns) : rows_(rows), segment_of_(columns) {
    segments_.emplace_back();
    segments_[0].end = columns;
    segments_[0].strip.row_end = rows;
  }

  /// Notes a read by `by`, calling wait(Ref, Hazard) for each earlier access it depends on.
  template <class Wait>
  void read(const Box& box, Ref by, const Wait& wait) {
    if (Strip* s = exactly(box)) return read_strip(*s, by, wait);
    each(box, [&](Strip& s) { read_strip(s, by, wait); });
  }

  /// The same for a write.
  template <class Wait>
  void write(const Box& box, Ref by, const Wait& wait) {
    if (Strip* s = exactly(box)) return write_strip(*s, by, wait);
    each(box, [&](Strip& s) { write_strip(s, by, wait); });
    // A segment written over its whole height has one strip again.
    if (box.row == 0 && box.row_end == rows_) flatten(box, by);
  }

  /// A new tensor takes these columns: its first writes wait for everything that used them before, its reads for
  /// nothing.
  void reset(uint32_t column, uint32_t column_end);

  size_t segments() const { return segments_.size() - unused_.size(); }

 private:
  struct Strip {
    uint32_t row = 0, row_end = 0;
    uint32_t mask = 0;  ///< of queues with a reader since the last write
    Ref writer;
    Ref readers[8];
  };
  struct Segment {
    uint32_t begin = 0, end = 0;
    bool whole = true;  ///< `strip` covers all rows; else `strips` do
    Strip strip;
    std::vector<Strip> strips;  ///< sorted, no gaps
  };

  /// The strip of a segment that is the box and nothing more; null if there is none.
  Strip* exactly(const Box& box) {
    if (box.row != 0 || box.row_end != rows_ || box.column >= box.column_end) return nullptr;
    Segment& s = segments_[segment_of_[box.column]];
    return s.begin == box.column && s.end == box.column_end && s.whole ? &s.strip : nullptr;
  }
  template <class Wait>
  static void read_strip(Strip& s, Ref by, const Wait& wait) {
    if (!s.writer.none() && !(s.writer == by)) wait(s.writer, Hazard::kReadAfterWrite);
    s.readers[by.queue()] = by;
    s.mask |= 1u << by.queue();
  }
  template <class Wait>
  static void write_strip(Strip& s, Ref by, const Wait& wait) {
    if (!s.writer.none() && !(s.writer == by)) wait(s.writer, Hazard::kWriteAfterWrite);
    for (uint32_t left = s.mask; left != 0; left &= left - 1) {
      const Ref reader = s.readers[std::countr_zero(left)];
      if (!(reader == by)) wait(reader, Hazard::kWriteAfterRead);
    }
    s.writer = by;
    s.mask = 0;
  }

  template <class F>
  void each(const Box& box, const F& f) {
    if (box.column >= box.column_end || box.row >= box.row_end) return;
    split(box.column);
    split(box.column_end);
    for (uint32_t at = box.column; at < box.column_end;) {
      Segment& s = segments_[segment_of_[at]];
      at = s.end;
      if (s.whole && box.row == 0 && box.row_end == rows_)
        f(s.strip);
      else
        each_strip(s, box, f);
    }
  }
  template <class F>
  void each_strip(Segment& s, const Box& box, const F& f) {
    if (s.whole) {
      s.strips.assign(1, s.strip);
      s.whole = false;
    }
    for (size_t i = cut(s, box.row), last = cut(s, box.row_end); i < last; ++i) f(s.strips[i]);
  }

  /// Makes a boundary of segments at `column`.
  void split(uint32_t column) {
    if (column >= segment_of_.size()) return;
    if (segments_[segment_of_[column]].begin != column) split_inside(column);
  }
  void split_inside(uint32_t column);
  /// Makes a boundary of strips at `row`; returns the index of the strip that begins there.
  static size_t cut(Segment& s, uint32_t row);
  void flatten(const Box& box, Ref writer);
  void merge(uint32_t column, uint32_t column_end);

  uint32_t rows_;
  std::vector<uint16_t> segment_of_;  ///< by column
  std::vector<Segment> segments_;
  std::vector<uint16_t> unused_;
};

}  // namespace sterna
