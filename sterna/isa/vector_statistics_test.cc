// SPDX-License-Identifier: Apache-2.0
// Batch-norm statistics. Expectations are written from the NKI documentation of each instruction (nki.isa, SDK 2.32) in
// plain loops.

#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::vector_engine {
namespace {

class VectorStatistics : public IsaTest {};

// --- bn_stats, bn_aggr

TEST_F(VectorStatistics, BatchNormStatistics) {
  const Values v = random(2 * 9);
  const View x = with({2, 9}, v), six = make({2, 6}), two = make({2, 2});
  EXPECT_RUNS((BnStats{six, x}));
  EXPECT_RUNS((BnAggr{two, six}));
  for (size_t r = 0; r < 2; ++r) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < 9; ++i) mean += v[r * 9 + i] / 9.0;
    for (size_t i = 0; i < 9; ++i) var += (v[r * 9 + i] - mean) * (v[r * 9 + i] - mean) / 9.0;
    EXPECT_NEAR(get(two)[2 * r], mean, 1e-6);
    EXPECT_NEAR(get(two)[2 * r + 1], var, 1e-5);
    EXPECT_EQ(get(six)[6 * r], 5);
    EXPECT_EQ(get(six)[6 * r + 3], 4);
  }
}

TEST_F(VectorStatistics, BnStatsOfSmallWholeNumbersIsExact) {
  const View x = with({1, 5}, {2, 10, 4, 20, 6}), six = make({1, 6}), one = make({1, 6});
  EXPECT_RUNS((BnStats{six, x}));
  EXPECT_EQ(get(six), (Values{3, 4, 8, 2, 15, 50}));
  EXPECT_RUNS((BnStats{one, part(x, 0, 1, 0, 1)}));
  EXPECT_EQ(get(one), (Values{1, 2, 0, 0, 0, 0}));
  const View two = make({1, 2});
  EXPECT_RUNS((BnAggr{two, one}));
  EXPECT_EQ(get(two), (Values{2, 0}));
  EXPECT_REFUSED("BN1", (BnStats{six, with({1, 513}, ramp(513))}));
  EXPECT_REFUSED("SHAPE4", (BnStats{make({1, 5}), x}));
  EXPECT_REFUSED("BN2", (BnAggr{two, x}));
  EXPECT_REFUSED("SHAPE1", (BnAggr{make({2, 2}), six}));
}

}  // namespace
}  // namespace sterna::vector_engine
