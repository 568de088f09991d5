// SPDX-License-Identifier: Apache-2.0
// exponential and activate2 (NeuronCore-v4), and topk.
#include <numeric>

#include "sterna/isa/gpsimd.h"
#include "sterna/isa/scalar.h"
#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna {
namespace {

using gpsimd_engine::TopK;
using scalar_engine::Activate2;
using vector_engine::Exponential;

class Gen4 : public IsaTest {
 protected:
  void SetUp() override { use_chip("trn3"); }
};

TEST_F(Gen4, ExponentialIsSubtractThenExpThenSumInOrder) {
  for (const int64_t n : {37, 9001}) {  // in one piece, and in two
    const auto count = static_cast<size_t>(3 * n);
    const Values x = random(count), top = random(3);
    const View d = make({3, n}, kBf16), r = make({3, 1});
    EXPECT_RUNS((Exponential{d, with({3, n}, x), Scalar::of(with({3, 1}, top)), r, ReduceCmd::kResetReduce}));
    Values want(count);
    for (size_t i = 0; i < count; ++i) want[i] = evaluate(Function::kExp, x[i] - top[i / static_cast<size_t>(n)]);
    for (size_t row = 0; row < 3; ++row)
      EXPECT_EQ(get(r)[row], 0.0f + ordered(AluOp::kAdd, want.data() + row * static_cast<size_t>(n), n));
    const Words bits = get_bits(d);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(bits[i], from_float_bits(kBf16, want[i]));
  }
}

TEST_F(Gen4, ExponentialSharesTheVectorEnginesAccumulators) {
  const View zeros = with({2, 3}, Values(6, 0)), d = make({2, 3}), r = make({2, 1});
  EXPECT_RUNS((vector_engine::TensorScalarReduce{d, zeros, AluOp::kAdd, Scalar::of(1.0), AluOp::kAdd}));
  EXPECT_RUNS((Exponential{d, zeros, Scalar::of(0.0), r, ReduceCmd::kReduce}));
  EXPECT_EQ(get(r), (Values{6, 6}));
}

TEST_F(Gen4, ExponentialRefuses) {
  const View x = with({2, 3}, Values(6, 0)), d = make({2, 3});
  EXPECT_REFUSED("EXP2", (Exponential{d, x, Scalar::of(0.0), {}, ReduceCmd::kReset}));
  EXPECT_REFUSED("EXP4", (Exponential{d, x, Scalar::of(with({2, 1}, {0, 0}, kBf16))}));
  EXPECT_REFUSED("SHAPE2", (Exponential{d, with({2, 2}, Values(4, 0))}));
  EXPECT_REFUSED("SHAPE3", (Exponential{d, x, Scalar::of(0.0), make({2, 2}), ReduceCmd::kResetReduce}));
}

TEST_F(Gen4, Activate2RoundsEachStep) {
  const Values x = random(60), scale = random(4), bias = random(4);
  const View d = make({4, 15});
  EXPECT_RUNS(
      (Activate2{d, Function::kTanh, with({4, 15}, x), Scalar::of(with({4, 1}, scale)), Scalar::of(with({4, 1}, bias)),
                 AluOp::kMultiply, AluOp::kSubtract, Scalar::of(0.0), false, true}));
  const Values got = get(d);
  for (size_t i = 0; i < 60; ++i) {
    const float product = x[i] * scale[i / 15];
    ASSERT_EQ(got[i], evaluate(Function::kTanh, bias[i / 15] - product));
  }
}

TEST_F(Gen4, PreluHasOneSlopeForEachPartition) {
  const View d = make({2, 3}, kBf16), slope = with({2, 1}, {0.5f, -2});
  EXPECT_RUNS((Activate2{d,
                         Function::kPrelu,
                         with({2, 3}, {-4, 0, 4, -4, 0, 4}),
                         {},
                         {},
                         AluOp::kBypass,
                         AluOp::kBypass,
                         Scalar::of(slope)}));
  EXPECT_EQ(get(d), (Values{-2, 0, 4, 8, 0, 4}));
}

TEST_F(Gen4, SlopeWithoutPreluIsRemarkedOn) {
  EXPECT_RUNS((Activate2{make({2, 3}),
                         Function::kRelu,
                         with({2, 3}, Values(6, 1)),
                         {},
                         {},
                         AluOp::kBypass,
                         AluOp::kBypass,
                         Scalar::of(0.5)}));
  EXPECT_TRUE(warned("AC5"));
}

TEST_F(Gen4, Activate2SharesTheScalarEnginesAccumulators) {
  const View x = with({1, 4}, {1, 2, 3, 4}), d = make({1, 4}), r = make({1, 1});
  scalar_engine::Activation first{d, Function::kCopy, x};
  first.reduce_cmd = ReduceCmd::kResetReduce;
  EXPECT_RUNS(first);
  Activate2 second{d, Function::kSquare, x};
  second.reduce_op = AluOp::kAdd;
  second.reduce_cmd = ReduceCmd::kReduce;
  second.reduce_res = r;
  EXPECT_RUNS(second);
  EXPECT_EQ(get(r), Values{40});
}

TEST_F(Gen4, TopKOfEachGroup) {
  constexpr int64_t kN = 1000, kColumns = 63, kK = 100;
  Values x = random(32 * kColumns, -100, 100);
  for (float& v : x) v = to_float_bits(kBf16, from_float_bits(kBf16, v));
  const View values = make({32, kK}, kBf16), indices = make({32, kK}, kU32);
  EXPECT_RUNS((TopK{values, indices, with({32, kColumns}, x, kBf16), kN}));
  const Values got = get(values);
  const Words at = get_bits(indices);
  for (size_t group = 0; group < 2; ++group) {
    std::vector<float> flat(kN);
    for (size_t i = 0; i < kN; ++i) flat[i] = x[(16 * group + i % 16) * kColumns + i / 16];
    std::vector<uint32_t> order(kN);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return flat[a] > flat[b]; });
    for (size_t row = 16 * group; row < 16 * group + 16; ++row)
      for (size_t j = 0; j < kK; ++j) {
        ASSERT_EQ(at[row * kK + j], order[kK - 1 - j]);
        ASSERT_EQ(got[row * kK + j], flat[order[kK - 1 - j]]);
      }
  }
}

TEST_F(Gen4, TopKCountsItsWork) {
  const Work w = work(TopK{make({16, 8}, kBf16), make({16, 8}, kU32), make({16, 63}, kBf16), 1000});
  EXPECT_EQ(w.elements, 1000);
  EXPECT_EQ(w.outputs, 8);
  EXPECT_EQ(w.engine, EngineId::kGpSimd);
}

}  // namespace
}  // namespace sterna
