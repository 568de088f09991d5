// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/defined.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sterna {
namespace {

/// What Defined means: one flag a byte.
struct Model {
  int64_t rows, bytes;
  std::vector<bool> flags;
  Model(int64_t r, int64_t b, bool value) : rows(r), bytes(b), flags(static_cast<size_t>(r * b), value) {}
  std::vector<bool>::reference at(int64_t r, int64_t b) { return flags[static_cast<size_t>(r * bytes + b)]; }
  void set(const Defined::Box& x, bool value) {
    for (int64_t r = x.row_begin; r < x.row_end; ++r)
      for (int64_t b = x.byte_begin; b < x.byte_end; ++b) at(r, b) = value;
  }
  bool test(const Defined::Box& x) {
    for (int64_t r = x.row_begin; r < x.row_end; ++r)
      for (int64_t b = x.byte_begin; b < x.byte_end; ++b)
        if (!at(r, b)) return false;
    return true;
  }
};

class Random {
 public:
  explicit Random(uint32_t seed) : generator_(seed) {}
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(generator_); }
  /// Half of them start and end at groups of 32 rows, as tiles do.
  Defined::Box box(int64_t rows, int64_t bytes) {
    const int64_t b = below(bytes), b_end = b + 1 + below(bytes - b), groups = (rows + 31) / 32;
    if (below(2) == 0) {
      const int64_t g = below(groups), g_end = g + 1 + below(groups - g);
      return {32 * g, std::min(rows, 32 * g_end), b, b_end};
    }
    const int64_t r = below(rows);
    return {r, r + 1 + below(rows - r), b, b_end};
  }

 private:
  std::mt19937 generator_;
};

void compare(Defined& d, Model& m, Random& random, int step) {
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t b = 0; b < m.bytes; ++b)
      ASSERT_EQ(d.test_byte(r, b), m.at(r, b)) << "row " << r << " byte " << b << " step " << step;
  for (int i = 0; i < 4; ++i) {
    const Defined::Box box = random.box(m.rows, m.bytes);
    const int64_t r = box.row_begin;
    for (bool wanted : {false, true}) {
      int64_t next = box.byte_begin;
      while (next < box.byte_end && m.at(r, next) != wanted) ++next;
      ASSERT_EQ(
          wanted ? d.next_defined(r, box.byte_begin, box.byte_end) : d.next_undefined(r, box.byte_begin, box.byte_end),
          next)
          << "step " << step;
    }
    ASSERT_EQ(d.test(box), m.test(box)) << "step " << step;
  }
}

void exercise(int64_t rows, int64_t bytes, bool start, uint32_t seed, int clears_in_ten) {
  Random random(seed);
  Defined d(rows, bytes, start);
  Model m(rows, bytes, start);
  for (int step = 0; step < 120; ++step) {
    const Defined::Box box = random.box(rows, bytes);
    const bool value = random.below(10) >= clears_in_ten;
    value ? d.mark(box) : d.clear(box);
    m.set(box, value);
    compare(d, m, random, step);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Defined, AgreesWithOneFlagAByte) {
  for (uint32_t seed = 0; seed < 12; ++seed)
    for (int clears : {0, 2, 5}) {
      exercise(5, 200, seed % 2 == 0, seed, clears);
      exercise(1, 64, false, seed + 100, clears);
      exercise(9, 3, true, seed + 200, clears);
      exercise(72, 70, seed % 2 == 0, seed + 300, clears);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(Defined, TilesThatFillAStorageMakeItWhole) {
  Defined columns(128, 640, false), rows(128, 640, false), shuffled(128, 640, false);
  for (int i = 0; i < 10; ++i) columns.mark({0, 128, 64 * i, 64 * (i + 1)});
  for (int i = 0; i < 4; ++i) rows.mark({32 * i, 32 * (i + 1), 0, 640});
  for (int i : {3, 0, 4, 1, 2}) shuffled.mark({0, 128, 128 * i, 128 * (i + 1)});
  EXPECT_TRUE(columns.whole());
  EXPECT_TRUE(rows.whole());
  EXPECT_TRUE(shuffled.whole());
  shuffled.clear({5, 6, 7, 8});
  EXPECT_FALSE(shuffled.whole());
  EXPECT_FALSE(shuffled.test_byte(5, 7));
  EXPECT_TRUE(shuffled.test({0, 5, 0, 640}));
}

TEST(Defined, FirstUndefinedIsTheFirstInRowOrder) {
  Defined d(4, 10, false);
  d.mark({0, 2, 0, 10});
  d.mark({2, 3, 0, 6});
  int64_t row = -1, byte = -1;
  d.first_undefined({1, 4, 4, 9}, row, byte);
  EXPECT_EQ(row, 2);
  EXPECT_EQ(byte, 6);
}

TEST(Defined, NothingToDefineIsWhole) {
  EXPECT_TRUE(Defined(0, 10, false).whole());
  EXPECT_TRUE(Defined(10, 0, false).whole());
  Defined d(3, 3, false);
  EXPECT_TRUE(d.none());
  EXPECT_TRUE(d.test({1, 1, 0, 3}));  // an empty box
  d.mark({1, 1, 0, 3});
  EXPECT_TRUE(d.none());
}

}  // namespace
}  // namespace sterna
