// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/vector_random.h"

#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::vector_engine {
namespace {

class Random : public IsaTest {
 protected:
  Words words(int64_t rows, int64_t cols, uint32_t seed, bool xorwow) {
    Generators g(0);
    g.seed_vector(seed);
    Words out(static_cast<size_t>(rows * cols));
    for (int64_t r = 0; r < rows; ++r) g.vector_words(xorwow, r, out.data() + r * cols, cols);
    return out;
  }
};

TEST_F(Random, SeedDecidesWhatFollowsOnEveryChip) {
  for (const char* chip : {"trn1", "trn2", "trn3"}) {
    use_chip(chip);
    const View d = make({128, 33}, kU32), seed = with_bits({1, 1}, {77}, kU32);
    EXPECT_RUNS((Rng{d}));
    EXPECT_RUNS((SetRngSeed{seed}));
    EXPECT_RUNS((Rng{d}));
    EXPECT_EQ(get_bits(d), words(128, 33, 77, chip_.features.xorwow)) << chip;
  }
}

TEST_F(Random, ThreadsShareLanesOnly) {
  Words first;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Machine m(options(), &pool, &tensors_, &dynamics_);
    const View d = make({128, 2000}, kU32);
    ASSERT_TRUE(m.allocate(d.tensor));
    Rng i{d};
    ASSERT_TRUE(i.check(rules()));
    ASSERT_TRUE(i.execute(m));
    Words got(128 * 2000);
    auto o = m.read(d, "test");
    for (int64_t r = 0; r < 128; ++r) load_bits(*o, r, 0, 2000, got.data() + r * 2000);
    if (first.empty()) first = got;
    EXPECT_EQ(got, first) << threads;
  }
}

TEST_F(Random, StateOfEachEngineIsSavedAndRestored) {
  use_chip("trn3");
  for (const EngineId engine : {EngineId::kVector, EngineId::kGpSimd}) {
    const int64_t n = engine == EngineId::kVector ? 24 : 6;
    const View state = make({128, n}, kU32), a = make({128, 9}, kU32), b = make({128, 9}, kU32);
    EXPECT_RUNS((Rng{a, engine}));
    EXPECT_RUNS((RandGetState{state, engine}));
    EXPECT_RUNS((Rng{a, engine}));
    EXPECT_RUNS((RandSetState{state, engine}));
    EXPECT_RUNS((Rng{b, engine}));
    EXPECT_EQ(get_bits(a), get_bits(b)) << name(engine);
  }
}

TEST_F(Random, Rand2StaysBetweenItsBoundsAndIsUniform) {
  use_chip("trn3");
  const View d = make({128, 1000}), low = with({128, 1}, ramp(128, -3));
  EXPECT_RUNS((Rand2{d, Scalar::of(low), Scalar::of(130.0)}));
  const Values got = get(d);
  double mean = 0;
  for (size_t r = 0; r < 128; ++r)
    for (size_t c = 0; c < 1000; ++c) {
      const float x = got[r * 1000 + c], least = static_cast<float>(r) - 3;
      ASSERT_TRUE(x >= least && x <= 130.0f);
      mean += (x - least) / (130.0f - least) / (128 * 1000);
    }
  EXPECT_NEAR(mean, 0.5, 0.005);
}

TEST_F(Random, DropoutDropsTheFractionAskedFor) {
  const View x = with({128, 1000}, Values(128 * 1000, 2.5f)), d = make({128, 1000});
  EXPECT_RUNS((Dropout{d, x, Scalar::of(0.3)}));
  const Values got = get(d);
  const auto dropped = std::count(got.begin(), got.end(), 0.0f);
  EXPECT_EQ(dropped + std::count(got.begin(), got.end(), 2.5f), 128 * 1000);
  EXPECT_NEAR(static_cast<double>(dropped) / (128 * 1000), 0.3, 0.006);
  EXPECT_RUNS((Dropout{x, x, Scalar::of(1.0)}));
  EXPECT_EQ(get(x), Values(128 * 1000, 0.0f)) << "in place";
}

TEST_F(Random, RefusesWhatTheDocumentDoes) {
  const View d = make({4, 6}, kU32), psum = make({4, 6}, kU32, Memory::kPsum), wide = make({4, 24}, kU32);
  EXPECT_RUNS((Rng{psum}));
  EXPECT_REFUSED("ENG2", (Rng{psum, EngineId::kGpSimd}));
  EXPECT_REFUSED("ENG1", (Rng{d, EngineId::kScalar}));
  EXPECT_REFUSED("RND1", (Rng{make({4, 6}, DType::kBool)}));
  EXPECT_REFUSED("RND3", (RandGetState{wide, EngineId::kVector}));
  EXPECT_REFUSED("RND6", (RandGetState{make({4, 6}, kI32)}));
  EXPECT_REFUSED("UNINIT1", (RandSetState{make({4, 6}, kU32)}));
  EXPECT_REFUSED("RND5", (SetRngSeed{with({1, 2}, {1, 2})}));
  EXPECT_REFUSED("ARG2", (Dropout{make({4, 6}), with({4, 6}, Values(24, 1))}));
  use_chip("trn1");
  EXPECT_REFUSED("RND3", (Rng{d, EngineId::kGpSimd}));
}

}  // namespace
}  // namespace sterna::vector_engine
