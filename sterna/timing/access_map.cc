// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/access_map.h"

#include <algorithm>

namespace sterna {

void AccessMap::split_inside(uint32_t column) {
  uint16_t fresh;
  if (unused_.empty()) {
    fresh = static_cast<uint16_t>(segments_.size());
    segments_.emplace_back();
  } else {
    fresh = unused_.back();
    unused_.pop_back();
  }
  Segment& old = segments_[segment_of_[column]];
  Segment& half = segments_[fresh];
  half.whole = old.whole;
  half.strip = old.strip;
  if (!old.whole) half.strips = old.strips;
  // The smaller half gets the new number, so cutting a long segment into slices stays cheap.
  if (column - old.begin <= old.end - column) {
    half.begin = old.begin;
    half.end = old.begin = column;
  } else {
    half.begin = column;
    half.end = old.end;
    old.end = column;
  }
  std::fill(segment_of_.begin() + half.begin, segment_of_.begin() + half.end, fresh);
}

size_t AccessMap::cut(Segment& s, uint32_t row) {
  auto& strips = s.strips;
  auto at = std::partition_point(strips.begin(), strips.end(), [row](const Strip& x) { return x.row_end <= row; });
  const auto index = static_cast<size_t>(at - strips.begin());
  if (at == strips.end() || at->row == row) return index;
  Strip upper = *at;
  at->row_end = upper.row = row;
  strips.insert(at + 1, upper);
  return index + 1;
}

void AccessMap::merge(uint32_t column, uint32_t column_end) {
  const uint16_t first = segment_of_[column];
  Segment& s = segments_[first];
  if (s.end == column_end) return;
  for (uint32_t at = s.end; at < column_end;) {
    const uint16_t other = segment_of_[at];
    at = segments_[other].end;
    unused_.push_back(other);
  }
  std::fill(segment_of_.begin() + s.end, segment_of_.begin() + column_end, first);
  s.end = column_end;
}

void AccessMap::flatten(const Box& box, Ref writer) {
  if (box.column >= box.column_end) return;
  merge(box.column, box.column_end);
  Segment& s = segments_[segment_of_[box.column]];
  if (s.whole) return;
  s.whole = true;
  s.strip = Strip{};
  s.strip.row_end = rows_;
  s.strip.writer = writer;
}

void AccessMap::reset(uint32_t column, uint32_t column_end) {
  if (column >= column_end) return;
  Strip sum;
  sum.row_end = rows_;
  const auto add = [&sum](Ref r) {
    if (r.none()) return;
    Ref& last = sum.readers[r.queue()];
    const uint32_t bit = 1u << r.queue();
    if ((sum.mask & bit) == 0 || last.index() < r.index()) last = r;
    sum.mask |= bit;
  };
  each({0, rows_, column, column_end}, [&](Strip& s) {
    add(s.writer);
    for (uint32_t left = s.mask; left != 0; left &= left - 1) add(s.readers[std::countr_zero(left)]);
  });
  merge(column, column_end);
  Segment& s = segments_[segment_of_[column]];
  s.whole = true;
  s.strip = sum;
}

}  // namespace sterna
