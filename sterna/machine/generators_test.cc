// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/generators.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "sterna/machine/test_fixture.h"
#include "sterna/numerics/convert.h"

namespace sterna {
namespace {

// Published outputs of the reference implementation for the seed 1234567.
TEST(SplitMix64, GivesThePublishedWords) {
  SplitMix64 g(1234567);
  for (const uint64_t want : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u})
    EXPECT_EQ(g.next(), want);
}

uint32_t one_step(uint32_t s) { return s << 1 ^ (s >> 31 != 0 ? kLfsrTaps : 0); }

TEST(Lfsr, AWordIsThirtyTwoSteps) {
  Lfsr g{0x9abcdef1};
  uint32_t s = g.state;
  for (int word = 0; word < 5; ++word) {
    for (int i = 0; i < 32; ++i) s = one_step(s);
    EXPECT_EQ(g.next(), s);
  }
}

/// a * b modulo the polynomial of the LFSR.
uint32_t times(uint32_t a, uint32_t b) {
  uint32_t out = 0;
  for (int i = 31; i >= 0; --i) out = one_step(out) ^ (b >> i & 1 ? a : 0);
  return out;
}
uint32_t power_of_x(uint64_t n) {
  uint32_t out = 1, square = 2;
  for (; n > 0; n >>= 1, square = times(square, square))
    if (n & 1) out = times(out, square);
  return out;
}

// The order of x divides 2^32 - 1 = 3 * 5 * 17 * 257 * 65537, and none of its maximal parts.
TEST(Lfsr, HasTheLongestPeriod) {
  const uint64_t all = (uint64_t{1} << 32) - 1;
  EXPECT_EQ(power_of_x(all), 1u);
  for (const uint64_t prime : {3u, 5u, 17u, 257u, 65537u}) EXPECT_NE(power_of_x(all / prime), 1u) << prime;
}

TEST(Lfsr, IsNeverSeededWithZero) {
  for (uint64_t seed = 0; seed < 10000; ++seed) EXPECT_NE(Lfsr::seeded(seed).state, 0u);
}

// Marsaglia's initial state, worked by hand for one word: t = x ^ (x >> 2), v' = v ^ (v << 4) ^ t ^ (t << 1).
TEST(Xorwow, FollowsThePaper) {
  Xorwow g{{123456789, 362436069, 521288629, 88675123, 5783321, 6615241}};
  const uint32_t t = 123456789 ^ (123456789 >> 2);
  const uint32_t v = 5783321 ^ (5783321u << 4) ^ t ^ (t << 1);
  EXPECT_EQ(g.next(), v + 6615241 + 362437);
  EXPECT_EQ(g.word, (std::array<uint32_t, 6>{362436069, 521288629, 88675123, 5783321, v, 6615241 + 362437}));
}

TEST(Generators, LanesStatesAndSeedsDiffer) {
  std::set<uint32_t> firsts;
  for (const uint32_t seed : {0u, 1u}) {
    Generators g(0);
    g.seed_vector(seed);
    for (int64_t lane = 0; lane < 128; ++lane) {
      uint32_t words[5];
      g.vector_words(true, lane, words, 4);
      firsts.insert(words, words + 4);
      g.vector_words(false, lane, words, 1);
      firsts.insert(words[0]);
    }
  }
  Generators g(0);
  for (int64_t lane = 0; lane < 128; ++lane) {
    uint32_t word;
    g.gpsimd_words(lane, &word, 1);
    firsts.insert(word);
  }
  EXPECT_GE(firsts.size(), 2u * 128 * 5 + 128 - 1) << "more than one chance meeting";
}

TEST(Generators, WordsOfALaneDoNotDependOnOtherLanes) {
  Generators one(0), two(0);
  uint32_t alone[7], beside[7], other[3];
  one.gpsimd_words(5, alone, 7);
  two.gpsimd_words(4, other, 3);
  two.gpsimd_words(5, beside, 2);
  two.gpsimd_words(6, other, 3);
  two.gpsimd_words(5, beside + 2, 5);
  EXPECT_TRUE(std::equal(alone, alone + 7, beside));
}

TEST(Generators, FractionsAreBelowOne) {
  EXPECT_EQ(random_fraction(0), 0.0f);
  EXPECT_EQ(random_fraction(0x80000000u), 0.5f);
  EXPECT_EQ(random_fraction(0xffffffffu), 1.0f - 0x1p-24f);
}

// --- stochastic rounding in the cursor ---

class StochasticStore : public MachineTest {
 protected:
  static Machine::Options rounding(int64_t seed) {
    Machine::Options o = options();
    o.rounding_seed = seed;
    return o;
  }
  /// What `value` in every element of a [rows, cols] tile becomes, stored through map_rows.
  std::vector<uint32_t> stored(Machine& m, int64_t rows, int64_t cols, DType type, float value, bool steps = false) {
    const uint32_t id = add({rows, steps ? 2 * cols : cols}, type);
    EXPECT_TRUE(m.allocate(id));
    View v = whole_view(id, tensors_[id]);
    if (steps) v = part(v, 0, rows, 0, 2 * cols, 2);
    auto d = m.write(v, "dst");
    map_rows<0>(m, *d, {}, [&](const ConstBlock(&)[1], Block o, const Piece& p) {
      for (int64_t r = 0; r < p.rows; ++r) std::fill_n(o.data + r * o.pitch, p.cols, value);
    });
    std::vector<uint32_t> out(static_cast<size_t>(rows * cols));
    for (int64_t r = 0; r < rows; ++r) load_bits(*d, r, 0, cols, out.data() + r * cols);
    return out;
  }
};

TEST_F(StochasticStore, TakesOneWordOfTheLaneForEachElement) {
  const float value = 1.0f + 0x1p-9f;  // a quarter of the way from 1 to bfloat16's next
  for (const DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat8E4M3, DType::kTFloat32}) {
    for (const bool steps : {false, true}) {
      Machine m(rounding(9), &pool_, &tensors_, &dynamics_);
      RoundingGenerator random(9, 0);
      for (int time = 0; time < 2; ++time) {
        const auto got = stored(m, 3, 50, type, value, steps);
        for (int64_t r = 0, i = 0; r < 3; ++r)
          for (int64_t c = 0; c < 50; ++c, ++i)
            ASSERT_EQ(got[static_cast<size_t>(i)], from_float_stochastic_bits(type, value, random.lane(r).next()))
                << name(type) << " " << r << " " << c;
      }
    }
  }
}

TEST_F(StochasticStore, IsTheSameWithAnyNumberOfThreads) {
  const float value = 1.0f + 0x1p-9f;
  std::vector<uint32_t> first;
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Machine::Options o = rounding(3);
    o.sbuf_partition_bytes = 192 * 1024;
    Machine m(o, &pool, &tensors_, &dynamics_);
    const auto got = stored(m, 128, 9000, DType::kBFloat16, value);
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << threads;
  }
  const auto up = std::count(first.begin(), first.end(), 0x3f81u);
  EXPECT_EQ(up + std::count(first.begin(), first.end(), 0x3f80u), 128 * 9000);
  EXPECT_NEAR(static_cast<double>(up) / (128 * 9000), 0.25, 0.005);
}

TEST_F(StochasticStore, IsOffByDefaultAndWithoutEffectOnOtherTypes) {
  const float value = 1.0f + 0x1p-9f;
  Machine off(options(), &pool_, &tensors_, &dynamics_), on(rounding(3), &pool_, &tensors_, &dynamics_);
  EXPECT_EQ(stored(off, 2, 40, DType::kBFloat16, value), std::vector<uint32_t>(80, 0x3f80));
  EXPECT_EQ(stored(on, 2, 40, DType::kFloat32, value), std::vector<uint32_t>(80, 0x3f804000));
  EXPECT_EQ(stored(on, 2, 40, DType::kInt8, 2.5f), std::vector<uint32_t>(80, 2));
  EXPECT_EQ(stored(on, 2, 40, DType::kBFloat16, 1.5f), std::vector<uint32_t>(80, 0x3fc0));
}

}  // namespace
}  // namespace sterna
