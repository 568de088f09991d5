// SPDX-License-Identifier: Apache-2.0
// The map against a plain record of every cell.
#include "sterna/timing/access_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace sterna {
namespace {

constexpr uint32_t kQueuesUsed = 4;

/// Who an access waits for: by queue and hazard, the latest instruction.
using Waits = std::map<std::pair<uint32_t, Hazard>, uint32_t>;

void note(Waits& waits, Ref ref, Hazard hazard) {
  uint32_t& last = waits.try_emplace({ref.queue(), hazard}, ref.index()).first->second;
  last = std::max(last, ref.index());
}

/// The same rules, cell by cell.
class Plain {
 public:
  Plain(uint32_t rows, uint32_t columns) : columns_(columns), cells_(rows * columns) {}
  Waits read(const Box& b, Ref by) {
    Waits out;
    each(b, [&](Cell& c) {
      if (!c.writer.none()) note(out, c.writer, Hazard::kReadAfterWrite);
      c.readers[by.queue()] = by;
    });
    return out;
  }
  Waits write(const Box& b, Ref by) {
    Waits out;
    each(b, [&](Cell& c) {
      if (!c.writer.none()) note(out, c.writer, Hazard::kWriteAfterWrite);
      for (const auto& [queue, reader] : c.readers) note(out, reader, Hazard::kWriteAfterRead);
      c.readers.clear();
      c.writer = by;
    });
    return out;
  }

 private:
  struct Cell {
    Ref writer;
    std::map<uint32_t, Ref> readers;
  };
  template <class F>
  void each(const Box& b, const F& f) {
    for (uint32_t r = b.row; r < b.row_end; ++r)
      for (uint32_t c = b.column; c < b.column_end; ++c) f(cells_[r * columns_ + c]);
  }
  uint32_t columns_;
  std::vector<Cell> cells_;
};

Waits read(AccessMap& map, const Box& b, Ref by) {
  Waits out;
  map.read(b, by, [&](Ref r, Hazard h) { note(out, r, h); });
  return out;
}
Waits write(AccessMap& map, const Box& b, Ref by) {
  Waits out;
  map.write(b, by, [&](Ref r, Hazard h) { note(out, r, h); });
  return out;
}

TEST(AccessMap, AgreesWithACellByCellRecord) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 30; ++round) {
    const uint32_t rows = 1 + below(12), columns = 1 + below(40);
    AccessMap map(rows, columns);
    Plain plain(rows, columns);
    for (uint32_t i = 0; i < 400; ++i) {
      Box b{below(rows), 0, below(columns), 0};
      b.row_end = b.row + 1 + below(rows - b.row);
      b.column_end = b.column + 1 + below(columns - b.column);
      if (below(3) == 0) b.row = 0, b.row_end = rows;
      const Ref by(i, below(kQueuesUsed));
      if (below(2) == 0)
        ASSERT_EQ(read(map, b, by), plain.read(b, by)) << "round " << round << " access " << i;
      else
        ASSERT_EQ(write(map, b, by), plain.write(b, by)) << "round " << round << " access " << i;
    }
  }
}

TEST(AccessMap, AnInstructionDoesNotWaitForItself) {
  AccessMap map(128, 100);
  const Ref by(5, 1);
  const Box tile{0, 128, 0, 100};
  EXPECT_TRUE(read(map, tile, by).empty());
  EXPECT_TRUE(write(map, tile, by).empty());
}

TEST(AccessMap, ResetMakesTheNextWriterWaitForEveryEarlierUserAndTheNextReaderForNone) {
  AccessMap map(128, 100);
  (void)write(map, {0, 64, 0, 10}, Ref(1, 0));
  (void)read(map, {0, 64, 0, 10}, Ref(2, 1));
  (void)write(map, {64, 128, 10, 20}, Ref(3, 2));
  (void)write(map, {0, 128, 20, 30}, Ref(4, 3));  // outside
  map.reset(0, 20);
  EXPECT_TRUE(read(map, {0, 128, 0, 20}, Ref(5, 3)).empty());
  const Waits expected = {{{0, Hazard::kWriteAfterRead}, 1},
                          {{1, Hazard::kWriteAfterRead}, 2},
                          {{2, Hazard::kWriteAfterRead}, 3},
                          {{3, Hazard::kWriteAfterRead}, 5}};
  EXPECT_EQ(write(map, {0, 128, 0, 5}, Ref(6, 0)), expected);
}

TEST(AccessMap, TilesUsedWholeStayOneSegmentEach) {
  AccessMap map(128, 1000);
  for (uint32_t round = 0; round < 50; ++round)
    for (uint32_t tile = 0; tile < 10; ++tile) {
      const Box b{0, 128, tile * 100, tile * 100 + 100};
      map.reset(b.column, b.column_end);
      (void)write(map, b, Ref(round, 0));
      for (uint32_t slice = 0; slice < 10; ++slice)
        (void)read(map, {0, 128, b.column + 10 * slice, b.column + 10 * slice + 10}, Ref(round, 1));
    }
  EXPECT_LE(map.segments(), 101u);
}

TEST(AccessMap, EmptyBoxesTouchNothing) {
  AccessMap map(128, 100);
  (void)write(map, {0, 128, 0, 100}, Ref(1, 0));
  EXPECT_TRUE(read(map, {0, 128, 50, 50}, Ref(2, 1)).empty());
  EXPECT_TRUE(read(map, {7, 7, 0, 100}, Ref(2, 1)).empty());
  map.reset(30, 30);
  EXPECT_EQ(read(map, {0, 128, 0, 100}, Ref(2, 1)).size(), 1u);
}

}  // namespace
}  // namespace sterna
