// SPDX-License-Identifier: Apache-2.0
// Reductions, accumulators, scans and selections of the vector engine. Expectations are written from the NKI
// documentation of each instruction (nki.isa, SDK 2.32) in plain loops.
#include <cmath>
#include <limits>

#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"
#include "sterna/numerics/convert.h"

namespace sterna::vector_engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

class VectorReduce : public IsaTest {};

// --- tensor_reduce

TEST_F(VectorReduce, TensorReduceOverTheLastAxes) {
  const Values v = random(3 * 4 * 5);
  const View x = with({3, 4, 5}, v);
  for (AluOp op : {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum}) {
    const View all = make({3, 1}), last = make({3, 4});
    EXPECT_RUNS((TensorReduce{all, op, x, {2, {2, 1}}}));
    EXPECT_RUNS((TensorReduce{last, op, x, {1, {-1}}, true}));
    for (int64_t p = 0; p < 3; ++p) {
      EXPECT_EQ(get(all)[static_cast<size_t>(p)], ordered(op, v.data() + p * 20, 20));
      for (int64_t g = 0; g < 4; ++g)
        EXPECT_EQ(get(last)[static_cast<size_t>(p * 4 + g)], -ordered(op, v.data() + p * 20 + g * 5, 5));
    }
  }
}

TEST_F(VectorReduce, TensorReduceAverageDividesOnceByAllAxes) {
  const View x = with({2, 2, 3}, ramp(12)), all = make({2, 1}), last = make({2, 2}),
             wide = with({1, 20000}, Values(20000, 3.0f)), one = make({1, 1});
  EXPECT_RUNS((TensorReduce{all, AluOp::kAverage, x, {2, {1, 2}}}));
  EXPECT_EQ(get(all), (Values{2.5, 8.5}));
  EXPECT_RUNS((TensorReduce{last, AluOp::kAverage, x, {1, {2}}, true}));
  EXPECT_EQ(get(last), (Values{-1, -4, -7, -10}));
  EXPECT_RUNS((TensorReduce{one, AluOp::kAverage, wide, {1, {1}}}));  // a row of several pieces
  EXPECT_EQ(get(one), (Values{3}));
}

TEST_F(VectorReduce, TensorReduceOverAPermutedAxisAndLongRows) {
  const Values v = random(2 * 6 * 7);
  const View x = with({2, 6, 7}, v, kF32, Memory::kPsum), d = make({2, 7});
  const int swap[3] = {0, 2, 1};
  EXPECT_RUNS((TensorReduce{d, AluOp::kAdd, *permute_view(x, swap), {1, {2}}}));
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t j = 0; j < 7; ++j)
      EXPECT_EQ(get(d)[static_cast<size_t>(p * 7 + j)], ordered(AluOp::kAdd, v.data() + p * 42 + j, 6, 7));
  const Values big = random(2 * 20001);
  const View y = with({1, 2, 20001}, big), two = make({1, 2});
  EXPECT_RUNS((TensorReduce{two, AluOp::kAdd, y, {1, {2}}}));
  EXPECT_EQ(get(two),
            (Values{ordered(AluOp::kAdd, big.data(), 20001), ordered(AluOp::kAdd, big.data() + 20001, 20001)}));
  const View one = make({1, 1});
  EXPECT_RUNS((TensorReduce{one, AluOp::kAdd, y, {2, {1, 2}}}));
  EXPECT_EQ(get(one)[0], ordered(AluOp::kAdd, big.data(), 40002));
}

TEST_F(VectorReduce, TensorReducePropagatesNaNAndReducesBits) {
  const View x = with({1, 3}, {1, kNaN, 5}), d = make({1, 1});
  EXPECT_RUNS((TensorReduce{d, AluOp::kMaximum, x, {1, {1}}}));
  EXPECT_EQ(get_bits(d)[0], 0x7fc00000u);
  const View b = with_bits({1, 3}, {0x11, 0x22, 0x84}, DType::kUInt8), o = make({1, 1}, DType::kUInt8);
  EXPECT_RUNS((TensorReduce{o, AluOp::kBitwiseOr, b, {1, {1}}}));
  EXPECT_EQ(get_bits(o)[0], 0xb7u);
}

TEST_F(VectorReduce, TensorReduceRefusals) {
  const View x = with({3, 4, 5}, ramp(60)), d = make({3, 4}), one = make({3, 1});
  EXPECT_REFUSED("RED4", (TensorReduce{d, AluOp::kAdd, x, {1, {1}}}));
  EXPECT_REFUSED("RED4", (TensorReduce{d, AluOp::kAdd, x, {}}));
  EXPECT_REFUSED("RED4", (TensorReduce{d, AluOp::kAdd, x, {3, {0, 1, 2}}}));
  EXPECT_REFUSED("RED4", (TensorReduce{d, AluOp::kAdd, x, {2, {2, 2}}}));
  EXPECT_REFUSED("RED5", (TensorReduce{one, AluOp::kAdd, x, {1, {2}}}));
  EXPECT_REFUSED("RED1", (TensorReduce{d, AluOp::kSquare, x, {1, {2}}}));
  const View i = with({3, 4}, ramp(12), kI32);
  EXPECT_REFUSED("RED6", (TensorReduce{make({3, 1}, kI32), AluOp::kBitwiseAnd, i, {1, {1}}, true}));
  EXPECT_REFUSED("TYPE1", (TensorReduce{one, AluOp::kBitwiseAnd, i, {1, {1}}}));
  EXPECT_REFUSED("RED7", (TensorReduce{make({3, 1}, kI32), AluOp::kBitwiseAnd, part(i, 0, 3, 1, 1), {1, {1}}}));
  EXPECT_REFUSED("RED7", (TensorReduce{one, AluOp::kAdd, part(with({3, 4}, ramp(12)), 0, 3, 2, 2), {1, {1}}}));
  EXPECT_REFUSED("UNINIT1", (TensorReduce{one, AluOp::kAdd, d, {1, {1}}}));
}

// --- accumulators

TEST_F(VectorReduce, TensorScalarReduceRunsOverTheCommands) {
  const View x = with({2, 3}, {1, 2, 3, 4, 5, 6}), d = make({2, 3}), res = make({2, 1});
  TensorScalarReduce i{d, x, AluOp::kMultiply, Scalar::of(2.0), AluOp::kAdd, res};
  EXPECT_RUNS(i);
  EXPECT_EQ(get(d), (Values{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(get(res), (Values{12, 30}));
  i.reduce_cmd = ReduceCmd::kReduce;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{24, 60}));
  i.reduce_cmd = ReduceCmd::kLoadReduce;
  i.reduce_init = Scalar::of(with({2, 1}, {100, 200}));
  i.reduce_res_negate = true;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{-112, -230}));
  i = {d, x, AluOp::kMultiply, Scalar::of(2.0), AluOp::kMaximum, res};
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{6, 12}));
  i.reduce_cmd = ReduceCmd::kIdle;
  i.operand0 = Scalar::of(100.0);
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{6, 12}));
  EXPECT_TRUE(warned("RED3"));
}

TEST_F(VectorReduce, ASumThatBeginsIsPositiveZero) {
  const View x = with({1, 2}, {-0.0f, -0.0f}), d = make({1, 2}), res = make({1, 1});
  EXPECT_RUNS((TensorScalarReduce{d, x, AluOp::kMultiply, Scalar::of(1.0), AluOp::kAdd, res}));
  EXPECT_FALSE(std::signbit(get(res)[0]));
}

TEST_F(VectorReduce, SelectionsHaveNoValueToLoad) {
  const View x = with({2, 4}, ramp(8)), d = make({2, 4}), res = make({2, 1});
  const View predicate = with({2, 4}, ramp(8), DType::kUInt8);
  SelectReduce select{d, predicate, x, Scalar::of(0.0)};
  select.reduce_res = res;
  select.reduce_cmd = ReduceCmd::kLoadReduce;
  EXPECT_REFUSED("RED2", select);
  RangeSelect range{
      d, x, AluOp::kGreaterEqual, AluOp::kLess, Scalar::of(with({2, 1}, {0, 0})), Scalar::of(with({2, 1}, {9, 9}))};
  range.reduce_res = res;
  range.reduce_cmd = ReduceCmd::kLoadReduce;
  EXPECT_REFUSED("RED2", range);
  range.reduce_cmd = ReduceCmd::kResetReduce;
  EXPECT_RUNS(range);
  range.range_start = INT32_MIN;  // what 2^31 becomes
  EXPECT_REFUSED("RNG5", range);
  range.range_start = (1 << 24) - 3;
  EXPECT_RUNS(range);
  range.range_start = (1 << 24) - 2;
  EXPECT_REFUSED("RNG5", range);
}

// "one 32-bit register per compute lane" (nki.isa.reduce_cmd).
TEST_F(VectorReduce, AnAccumulatorBelongsToAPartitionOfTheInput) {
  const View x = with({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), d = make({4, 2}), two = make({2, 1}), four = make({4, 1});
  const auto half = [](const View& v, int64_t from) { return part(v, from, from + 2, 0, 2); };
  EXPECT_RUNS((TensorScalarReduce{half(d, 0), half(x, 0), AluOp::kAdd, Scalar::of(0.0), AluOp::kAdd, two}));
  TensorScalarReduce i{half(d, 0), half(x, 2), AluOp::kAdd, Scalar::of(0.0), AluOp::kAdd, two};
  i.reduce_cmd = ReduceCmd::kReduce;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(two), (Values{11, 15}));
  i = {d, x, AluOp::kAdd, Scalar::of(0.0), AluOp::kAdd, four};
  i.reduce_cmd = ReduceCmd::kIdle;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(four), (Values{3, 7, 11, 15}));
}

TEST_F(VectorReduce, TensorScalarReduceSumsBeforeConversion) {
  const View x = with({1, 2}, {0.3f, 0.3f}), d = make({1, 2}, DType::kInt8), res = make({1, 1});
  EXPECT_RUNS((TensorScalarReduce{d, x, AluOp::kAdd, Scalar::of(0.0), AluOp::kAdd, res}));
  EXPECT_EQ(get(d), (Values{0, 0}));
  EXPECT_EQ(get(res)[0], 0.3f + 0.3f);
  EXPECT_TRUE(work(TensorScalarReduce{d, x, AluOp::kAdd, Scalar::of(0.0), AluOp::kAdd, res}).accumulator_read);
}

TEST_F(VectorReduce, TensorScalarReduceRefusals) {
  const View x = with({2, 3}, ramp(6)), d = make({2, 3}), res = make({2, 1});
  EXPECT_REFUSED("RED1", (TensorScalarReduce{d, x, AluOp::kAdd, Scalar::of(1.0), AluOp::kSubtract, res}));
  EXPECT_REFUSED("OPS2", (TensorScalarReduce{d, x, AluOp::kBitwiseOr, Scalar::of(1.0), AluOp::kAdd, res}));
  EXPECT_REFUSED("SHAPE3", (TensorScalarReduce{d, x, AluOp::kAdd, Scalar::of(1.0), AluOp::kAdd, make({2, 2})}));
  TensorScalarReduce load{d, x, AluOp::kAdd, Scalar::of(1.0), AluOp::kAdd, res};
  load.reduce_cmd = ReduceCmd::kLoadReduce;
  EXPECT_REFUSED("RED2", load);
}

TEST_F(VectorReduce, TensorScalarCumulative) {
  const Values v = random(2 * 40, 0.5, 1.5);
  const View x = with({2, 40}, v), d = make({2, 40});
  for (AluOp op1 : {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum}) {
    EXPECT_RUNS((TensorScalarCumulative{d, x, AluOp::kAdd, op1, Scalar::of(0.25), {}}));
    const Values got = get(d);
    for (size_t r = 0; r < 2; ++r) {
      float reg = op1 == AluOp::kSubtract ? 0.0f : reduction_identity(op1);
      for (size_t i = 0; i < 40; ++i) {
        reg = alu(op1, v[r * 40 + i] + 0.25f, reg);
        EXPECT_EQ(got[r * 40 + i], reg) << name(op1) << " " << i;
      }
    }
  }
}

TEST_F(VectorReduce, TensorScalarCumulativeGoesOnFromTheAccumulators) {
  const View x = with({2, 2}, {1, 2, 3, 4}), d = make({2, 2}), col = with({2, 1}, {10, 20});
  EXPECT_RUNS((TensorScalarCumulative{d, x, AluOp::kMultiply, AluOp::kAdd, Scalar::of(1.0), Scalar::of(col),
                                      ReduceCmd::kLoadReduce}));
  EXPECT_EQ(get(d), (Values{11, 13, 23, 27}));
  EXPECT_RUNS((TensorScalarCumulative{d, x, AluOp::kMultiply, AluOp::kAdd, Scalar::of(1.0), {}, ReduceCmd::kReduce}));
  EXPECT_EQ(get(d), (Values{14, 16, 30, 34}));
  EXPECT_REFUSED("CUM1", (TensorScalarCumulative{make({2, 2}, kI32), x, AluOp::kAdd, AluOp::kAdd, Scalar::of(1.0)}));
  EXPECT_REFUSED("RED1", (TensorScalarCumulative{d, x, AluOp::kAdd, AluOp::kDivide, Scalar::of(1.0)}));
  EXPECT_REFUSED("ARG2", (TensorScalarCumulative{d, x, AluOp::kAdd, AluOp::kAdd}));
}

TEST_F(VectorReduce, TensorTensorScan) {
  const Values a = random(3 * 50, -1, 1), b = random(3 * 50);
  const View x = with({3, 50}, a), y = with({3, 50}, b, kF32, Memory::kPsum), first = with({3, 1}, {1, 2, 3}),
             d = make({3, 50}, kBf16);
  EXPECT_RUNS((TensorTensorScan{d, x, y, Scalar::of(first)}));
  const View exact = make({3, 50});
  EXPECT_RUNS((TensorTensorScan{exact, x, y, Scalar::of(2.0), AluOp::kSubtract, AluOp::kSubtract, true, true}));
  for (size_t r = 0; r < 3; ++r) {
    float run = static_cast<float>(r + 1), other = 2;
    for (size_t i = 0; i < 50; ++i) {
      run = a[r * 50 + i] * run + b[r * 50 + i];
      other = b[r * 50 + i] - (other - a[r * 50 + i]);
      EXPECT_EQ(get_bits(d)[r * 50 + i], from_float_bits(kBf16, run));  // rounded when stored, not while it runs
      EXPECT_EQ(get(exact)[r * 50 + i], other);
    }
  }
  EXPECT_REFUSED("ARG2", (TensorTensorScan{exact, x, y, {}}));
  EXPECT_REFUSED("BUF1", (TensorTensorScan{exact, y, y, Scalar::of(0.0)}));
  EXPECT_REFUSED("OPS2", (TensorTensorScan{exact, x, y, Scalar::of(0.0), AluOp::kBitwiseAnd}));
}

TEST_F(VectorReduce, TensorTensorScanOverSeveralPieces) {
  const Values a = random(9000, -1, 1), b = random(9000);
  const View x = with({1, 9000}, a), y = with({1, 9000}, b);
  EXPECT_RUNS((TensorTensorScan{x, x, y, Scalar::of(0.5)}));  // in place
  float run = 0.5f;
  for (size_t i = 0; i < 9000; ++i) run = a[i] * run + b[i];
  EXPECT_EQ(get(x)[8999], run);
}

TEST_F(VectorReduce, SelectReduce) {
  const View p = with_bits({2, 3}, {1, 0, 2, 0, 1, 0}, DType::kUInt8), x = with({2, 3}, {1, 2, 3, 4, 5, 6}),
             d = make({2, 3}), res = make({2, 1});
  EXPECT_RUNS((SelectReduce{d, p, x, Scalar::of(-7.0), res, ReduceCmd::kResetReduce}));
  EXPECT_EQ(get(d), (Values{1, -7, 3, -7, 5, -7}));
  EXPECT_EQ(get(res), (Values{3, 5}));
  EXPECT_RUNS(
      (SelectReduce{d, p, x, Scalar::of(with({2, 1}, {9, 0})), res, ReduceCmd::kReduce, AluOp::kMaximum, true}));
  EXPECT_EQ(get(d), (Values{9, 2, 9, 4, 0, 6}));
  EXPECT_EQ(get(res), (Values{9, 6}));
  EXPECT_REFUSED("PRED1", (SelectReduce{d, x, x, Scalar::of(0.0)}));
  EXPECT_REFUSED("RED1", (SelectReduce{d, p, x, Scalar::of(0.0), res, ReduceCmd::kReduce, AluOp::kAdd}));
  EXPECT_REFUSED("ARG2", (SelectReduce{d, p, x, {}}));
  strict_ = true;
  EXPECT_REFUSED("SEL1", (SelectReduce{d, p, with({2, 3}, ramp(6), kI32), Scalar::of(0.0)}));
}

TEST_F(VectorReduce, RangeSelectKeepsAnIndexRange) {
  const View x = with({2, 5}, ramp(10, 1)), low = with({2, 1}, {11, 10}), high = with({2, 1}, {13, 14}),
             d = make({2, 5}), res = make({2, 1});
  RangeSelect i{d, x, AluOp::kGreaterEqual, AluOp::kLess, Scalar::of(low), Scalar::of(high)};
  i.reduce_res = res;
  i.range_start = 10;
  EXPECT_RUNS(i);
  constexpr float no = -FLT_MAX;
  EXPECT_EQ(get(d), (Values{no, 2, 3, no, no, 6, 7, 8, 9, no}));
  EXPECT_EQ(get(res), (Values{3, 9}));
  i.range_start = 1000;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(res), (Values{no, no}));
  i.dst = make({2, 5}, kBf16);
  EXPECT_RUNS(i);
  EXPECT_EQ(get(i.dst)[0], -kInf);  // the lowest fp32 rounds to minus infinity
}

TEST_F(VectorReduce, RangeSelectRefusals) {
  const View x = with({2, 5}, ramp(10)), b = with({2, 1}, {1, 2}), d = make({2, 5});
  EXPECT_REFUSED("RNG1", (RangeSelect{d, x, AluOp::kNotEqual, AluOp::kLess, Scalar::of(b), Scalar::of(b)}));
  EXPECT_REFUSED(
      "RNG2", (RangeSelect{d, x, AluOp::kLess, AluOp::kLess, Scalar::of(with({2, 1}, {1, 2}, kBf16)), Scalar::of(b)}));
  EXPECT_REFUSED(
      "RNG3", (RangeSelect{d, with({2, 5}, ramp(10), kI32), AluOp::kLess, AluOp::kLess, Scalar::of(b), Scalar::of(b)}));
  EXPECT_REFUSED("ARG2", (RangeSelect{d, x, AluOp::kLess, AluOp::kLess, Scalar::of(b), {}}));
  strict_ = true;
  RangeSelect fill{d, x, AluOp::kLess, AluOp::kLess, Scalar::of(b), Scalar::of(b)};
  fill.on_false_value = 0;
  EXPECT_REFUSED("RNG4", fill);
}

}  // namespace
}  // namespace sterna::vector_engine
