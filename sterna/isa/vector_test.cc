// SPDX-License-Identifier: Apache-2.0
// Expectations are written from the NKI documentation of each instruction (nki.isa, SDK 2.32) in plain loops.
#include "sterna/isa/vector.h"

#include <cmath>
#include <limits>

#include "sterna/isa/test_fixture.h"
#include "sterna/numerics/convert.h"

namespace sterna::vector_engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

class Vector : public IsaTest {};

// --- tensor_tensor

/// The value of an element of type `t` with these bits.
float value_of(DType t, uint32_t bits) { return to_float_bits(t, bits); }

TEST_F(Vector, TensorTensorComputesEachOperator) {
  const Values a = random(8 * 5), b = random(8 * 5);
  const View x = with({8, 5}, a), y = with({8, 5}, b), d = make({8, 5});
  for (AluOp op : {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kDivide, AluOp::kMaximum, AluOp::kMinimum,
                   AluOp::kGreater}) {
    TensorTensor i{d, x, y, op};
    i.engine = EngineId::kVector;
    EXPECT_RUNS(i);
    const Values got = get(d);
    for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(got[k], alu(op, a[k], b[k])) << name(op);
  }
}

TEST_F(Vector, TensorTensorConvertsAndBroadcastsOneColumn) {
  const View x = with({4, 3}, ramp(12), kBf16), y = with({4, 1}, {1, 2, 3, 4}, DType::kFloat16),
             d = make({4, 3}, DType::kInt16);
  EXPECT_RUNS((TensorTensor{d, x, y, AluOp::kMultiply}));
  const Values got = get(d);
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 3; ++c)
      EXPECT_EQ(got[static_cast<size_t>(r * 3 + c)], static_cast<float>((r * 3 + c) * (r + 1)));
}

TEST_F(Vector, TensorTensorOn32BitIntegersIsExactOnGpSimdAndRoundsOnVector) {
  const View x = with_bits({1, 2}, {16777217, 0x7fffffff}, kI32), y = with_bits({1, 2}, {2, 1}, kI32),
             d = make({1, 2}, kI32);
  EXPECT_RUNS((TensorTensor{d, x, y, AluOp::kAdd}));
  EXPECT_EQ(get_bits(d), (Words{16777219, 0x80000000u}));  // wraps
  EXPECT_RUNS((TensorTensor{d, x, y, AluOp::kAdd, EngineId::kVector}));
  EXPECT_EQ(get_bits(d), (Words{16777218, 0x7fffffffu}));  // fp32: 2^24 + 1 rounds to 2^24; 2^31 saturates
}

TEST_F(Vector, TensorTensorBitOperatorsKeepBits) {
  const View x = with_bits({2, 1}, {0xf0f0, 0x1234}, DType::kUInt16),
             y = with_bits({2, 1}, {0x0ff0, 4}, DType::kUInt16), d = make({2, 1}, DType::kUInt16);
  EXPECT_RUNS((TensorTensor{d, x, y, AluOp::kBitwiseXor}));
  EXPECT_EQ(get_bits(d), (Words{0xff00, 0x1230}));
  EXPECT_RUNS((TensorTensor{d, x, y, AluOp::kLeftShift}));
  EXPECT_EQ(get_bits(d), (Words{0, 0x2340}));
  EXPECT_REFUSED("TYPE1", (TensorTensor{make({2, 1}), with({2, 1}, {1, 2}), y, AluOp::kBitwiseAnd}));
}

TEST_F(Vector, TensorTensorReadsShiftedOverlapsFirst) {
  const View t = with({2, 6}, ramp(12));
  EXPECT_RUNS((TensorTensor{part(t, 0, 2, 1, 6), part(t, 0, 2, 0, 5), part(t, 0, 2, 0, 5), AluOp::kAdd}));
  EXPECT_EQ(get(t), (Values{0, 0, 2, 4, 6, 8, 6, 12, 14, 16, 18, 20}));
  EXPECT_TRUE(warned("ALIAS1"));
}

TEST_F(Vector, TensorTensorInPlaceDoesNotWarn) {
  const View t = with({2, 2}, {1, 2, 3, 4});
  EXPECT_RUNS((TensorTensor{t, t, t, AluOp::kMultiply}));
  EXPECT_EQ(get(t), (Values{1, 4, 9, 16}));
  EXPECT_FALSE(warned("ALIAS1"));
}

TEST_F(Vector, TensorTensorRefusals) {
  const View s = with({4, 3}, ramp(12)), d = make({4, 3});
  const View p = with({4, 3}, ramp(12), kF32, Memory::kPsum), h = with({4, 3}, ramp(12), kF32, Memory::kHbm);
  EXPECT_REFUSED("P1", (TensorTensor{d, h, s}));
  EXPECT_REFUSED("BUF1", (TensorTensor{d, p, p}));
  EXPECT_REFUSED("SHAPE1", (TensorTensor{d, with({3, 3}, ramp(9)), s}));
  EXPECT_REFUSED("SHAPE2", (TensorTensor{d, with({4, 2}, ramp(8)), s}));
  EXPECT_REFUSED("ENG1", (TensorTensor{d, s, s, AluOp::kAdd, EngineId::kScalar}));
  EXPECT_REFUSED("ENG2", (TensorTensor{d, p, s, AluOp::kAdd, EngineId::kGpSimd}));
  // "runs on the GpSimd engine"; "the input/output tiles cannot be in PSUM"
  EXPECT_REFUSED("ENG2", (TensorTensor{d, p, s, AluOp::kPower}));
  EXPECT_REFUSED("ENG2", (TensorTensor{d, p, s, AluOp::kPower, EngineId::kVector}));
  EXPECT_REFUSED("ENG2", (TensorTensor{make({4, 3}, kF32, Memory::kPsum), s, s, AluOp::kPower}));
  EXPECT_REFUSED("ARG2", (TensorTensor{d, s, View{}}));
  EXPECT_REFUSED("UNINIT1", (TensorTensor{s, d, s}));
  View tall = make({128, 1});
  tall.dims[0].count = 129;
  EXPECT_REFUSED("P2", (TensorTensor{tall, tall, tall}));
}

TEST_F(Vector, OnePartitionForManyIsAcceptedWithARemarkAndRefusedWhenStrict) {
  const View row = with({1, 3}, {1, 2, 3}), x = with({2, 3}, ramp(6)), d = make({2, 3});
  EXPECT_RUNS((TensorTensor{d, x, row, AluOp::kAdd}));
  EXPECT_EQ(get(d), (Values{1, 3, 5, 4, 6, 8}));
  EXPECT_TRUE(warned("COMPAT1"));
  strict_ = true;
  EXPECT_REFUSED("COMPAT1", (TensorTensor{d, x, row, AluOp::kAdd}));
}

TEST_F(Vector, WorkNamesFastCases) {
  const View b = with({4, 8}, ramp(32), kBf16), d = make({4, 8}, kBf16);
  EXPECT_NE(work(TensorTensor{d, b, b, AluOp::kAdd}).fast_cases & bit(FastCase::kBFloat16Simple), 0u);
  EXPECT_EQ(work(TensorTensor{d, b, b, AluOp::kMaximum}).fast_cases & bit(FastCase::kBFloat16Simple), 0u);
  const View p = with({4, 8}, ramp(32), kF32, Memory::kPsum);
  EXPECT_NE(work(TensorTensor{d, p, b, AluOp::kAdd}).fast_cases & bit(FastCase::kPsumInput), 0u);
  EXPECT_EQ(work(TensorTensor{d, b, b, AluOp::kAdd}).elements, 8);
  const View out = make({4, 1}, kBf16);
  EXPECT_NE(work(TensorReduce{out, AluOp::kAdd, b, {1, {1}}}).fast_cases & bit(FastCase::kBFloat16AddMax), 0u);
  EXPECT_NE(work(ScalarTensorTensor{d, b, AluOp::kSubtract, Scalar::of(1.0), AluOp::kMultiply, b}).fast_cases &
                bit(FastCase::kBFloat16SubtractMultiply),
            0u);
}

// --- tensor_scalar

TEST_F(Vector, TensorScalarAppliesTwoOperatorsAndReverses) {
  const View x = with({2, 2}, {1, 2, 3, 4}), col = with({2, 1}, {10, 20}), d = make({2, 2});
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kMultiply, Scalar::of(2.0), false, AluOp::kAdd, Scalar::of(col)}));
  EXPECT_EQ(get(d), (Values{12, 14, 26, 28}));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kSubtract, Scalar::of(col), true}));
  EXPECT_EQ(get(d), (Values{9, 8, 17, 16}));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kSquare}));
  EXPECT_EQ(get(d), (Values{1, 4, 9, 16}));
}

TEST_F(Vector, TensorScalarKeepsItsOperandsWhenTheyLieInDst) {
  const View t = with({2, 3}, {2, 10, 20, 3, 30, 40});
  EXPECT_RUNS((TensorScalar{t, t, AluOp::kMultiply, Scalar::of(part(t, 0, 2, 0, 1)), false, AluOp::kAdd,
                            Scalar::of(part(t, 0, 2, 1, 2))}));
  EXPECT_EQ(get(t), (Values{14, 30, 50, 39, 120, 150}));  // t * 2 + 10, t * 3 + 30
}

TEST_F(Vector, TensorScalarOnBits) {
  const View x = with_bits({1, 3}, {0xff, 0x10, 0x81}, DType::kUInt8), d = make({1, 3}, DType::kUInt8);
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kRightShift, Scalar::of(4.0), false, AluOp::kBitwiseAnd, Scalar::of(9.0)}));
  EXPECT_EQ(get_bits(d), (Words{9, 1, 8}));
  EXPECT_REFUSED("OPS1",
                 (TensorScalar{d, x, AluOp::kBitwiseAnd, Scalar::of(1.0), false, AluOp::kAdd, Scalar::of(1.0)}));
}

TEST_F(Vector, BitsAndIntegersOnEveryLayout) {
  const Words a = {1, 0x80000000, 0xffffffff, 7, 40, 6, 0x12345678, 33, 9, 2, 5, 8},
              b = {4, 1, 31, 32, 2, 0xffffffff, 8, 3, 0, 16, 1, 7};
  for (DType t : {DType::kUInt8, DType::kInt8, DType::kUInt16, DType::kInt16, kU32, kI32}) {
    const int bits = 8 * size_of(t);
    // Every second column of a wider tensor, one column for all, and plain rows.
    const View wide = with_bits({2, 6}, a, t), rows = with_bits({2, 3}, b, t),
               column = with_bits({2, 1}, {b[0], b[3]}, t), d = make({2, 3}, t);
    View apart = wide;
    apart.dims[1] = {2, 3};
    for (AluOp op : {AluOp::kBitwiseXor, AluOp::kLeftShift, AluOp::kRightShift, AluOp::kArithRightShift}) {
      EXPECT_RUNS((TensorTensor{d, apart, rows, op}));
      for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(get(d)[i], value_of(t, alu_bits(op, a[2 * i], b[i], bits))) << name(t) << name(op) << i;
      EXPECT_RUNS((TensorTensor{d, column, rows, op}));
      for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(get(d)[i], value_of(t, alu_bits(op, b[i / 3 * 3], b[i], bits))) << name(t) << name(op) << i;
      EXPECT_RUNS((TensorScalar{d, apart, op, Scalar::of(column), true, AluOp::kInvert}));
      for (size_t i = 0; i < 6; ++i)
        EXPECT_EQ(get(d)[i], value_of(t, alu_bits(AluOp::kInvert, alu_bits(op, b[i / 3 * 3], a[2 * i], bits), 0, bits)))
            << name(t) << name(op) << i;
    }
  }
}

// Operands of different widths (BITS1): each is extended by its own type to the widest of operands and result, and the
// low bits of the result are kept.
TEST_F(Vector, BitOperatorsOfMixedWidthsExtendAndDoNotTruncate) {
  const View a = with_bits({1, 3}, {0xf0, 0x80, 0x01}, DType::kUInt8),
             b = with_bits({1, 3}, {0x12345600, 0x80000000, 0x100}, kI32), d = make({1, 3}, kI32);
  EXPECT_RUNS((TensorTensor{d, a, b, AluOp::kBitwiseOr}));
  EXPECT_EQ(get_bits(d), (Words{0x123456f0, 0x80000080, 0x101}));
  EXPECT_TRUE(warned("BITS1"));
  EXPECT_RUNS((TensorTensor{d, b, a, AluOp::kBitwiseXor}));
  EXPECT_EQ(get_bits(d), (Words{0x123456f0, 0x80000080, 0x101}));
  EXPECT_RUNS((TensorScalar{d, a, AluOp::kLeftShift, Scalar::of(8.0)}));
  EXPECT_EQ(get_bits(d), (Words{0xf000, 0x8000, 0x100}));
  // A signed operand extends its sign, an unsigned one zeros.
  const View s = with_bits({1, 3}, {0xf0, 0x80, 0x01}, DType::kInt8);
  EXPECT_RUNS((TensorTensor{d, s, b, AluOp::kBitwiseOr}));
  EXPECT_EQ(get_bits(d), (Words{0xfffffff0, 0xffffff80, 0x101}));
  EXPECT_RUNS((TensorScalar{d, s, AluOp::kArithRightShift, Scalar::of(4.0)}));
  EXPECT_EQ(get_bits(d), (Words{0xffffffff, 0xfffffff8, 0}));
  // To a narrower result: the operator sees all bits of its operand.
  const View narrow = make({1, 3}, DType::kUInt8);
  EXPECT_RUNS((TensorScalar{narrow, b, AluOp::kRightShift, Scalar::of(24.0)}));
  EXPECT_EQ(get_bits(narrow), (Words{0x12, 0x80, 0}));
  const View column = with_bits({1, 1}, {0x1234}, DType::kUInt16);
  EXPECT_RUNS((TensorScalar{d, a, AluOp::kBitwiseOr, Scalar::of(column)}));
  EXPECT_EQ(get_bits(d), (Words{0x12f4, 0x12b4, 0x1235}));
  const View one = make({1, 1}, kI32);
  EXPECT_RUNS((TensorReduce{one, AluOp::kBitwiseOr, s, {1, {1}}}));
  EXPECT_EQ(get_bits(one), Words{0xfffffff1});
  strict_ = true;
  EXPECT_REFUSED("BITS1", (TensorTensor{d, a, b, AluOp::kBitwiseOr}));
  EXPECT_REFUSED("BITS1", (TensorScalar{d, a, AluOp::kLeftShift, Scalar::of(8.0)}));
  EXPECT_REFUSED("BITS1", (TensorReduce{one, AluOp::kBitwiseOr, s, {1, {1}}}));
  EXPECT_RUNS((TensorScalar{d, b, AluOp::kLeftShift, Scalar::of(8.0)}));  // an immediate has no width
}

TEST_F(Vector, BitOperatorsTakeWholeOperandsOnly) {
  const View x = with_bits({2, 1}, {1, 2}, DType::kUInt8), d = make({2, 1}, DType::kUInt8);
  const View values = with({2, 1}, {3, 4});
  EXPECT_REFUSED("TYPE1", (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(values)}));
  EXPECT_REFUSED("TYPE1", (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(3.7)}));
  EXPECT_REFUSED("TYPE1", (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(static_cast<double>(kNaN))}));
  EXPECT_REFUSED("TYPE1", (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(256.0)}));
  EXPECT_REFUSED("TYPE1", (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(-129.0)}));
  EXPECT_REFUSED("TYPE1",
                 (TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(1.0), false, AluOp::kBitwiseAnd, Scalar::of(0.5)}));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kBitwiseOr, Scalar::of(255.0)}));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kBitwiseAnd, Scalar::of(-128.0)}));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kInvert, Scalar::of(0.5)}));  // not used
}

// "bitvec operators ... must run on Vector Engine"; scalar engine: multiply and add, multiply, add; gpsimd: "only
// allowed for rsqrt".
TEST_F(Vector, EnginesOfTensorScalar) {
  const View x = with({4, 3}, ramp(12)), d = make({4, 3}), i = with({4, 3}, ramp(12), kI32), j = make({4, 3}, kI32);
  const Scalar two = Scalar::of(2.0);
  for (EngineId engine : {EngineId::kScalar, EngineId::kGpSimd})
    EXPECT_REFUSED("ENG3", (TensorScalar{j, i, AluOp::kBitwiseAnd, two, false, AluOp::kBypass, {}, false, engine}));
  const auto remarked = [&](AluOp op0, AluOp op1, EngineId engine) {
    remarks_.clear();
    TensorScalar scaled{d, x, op0, two, false, op1, op1 == AluOp::kBypass ? Scalar{} : two, false, engine};
    EXPECT_RUNS(scaled);
    return warned("ENG3");
  };
  EXPECT_FALSE(remarked(AluOp::kMultiply, AluOp::kAdd, EngineId::kScalar));
  EXPECT_FALSE(remarked(AluOp::kMultiply, AluOp::kBypass, EngineId::kScalar));
  EXPECT_FALSE(remarked(AluOp::kAdd, AluOp::kBypass, EngineId::kScalar));
  EXPECT_FALSE(remarked(AluOp::kRsqrt, AluOp::kBypass, EngineId::kGpSimd));
  EXPECT_FALSE(remarked(AluOp::kSubtract, AluOp::kMaximum, EngineId::kVector));
  EXPECT_TRUE(remarked(AluOp::kAdd, AluOp::kMultiply, EngineId::kScalar));
  EXPECT_TRUE(remarked(AluOp::kAdd, AluOp::kBypass, EngineId::kGpSimd));
}

TEST_F(Vector, OperandTilesOfArithmeticAreFloat32) {
  const View x = with({4, 3}, ramp(12)), d = make({4, 3}), half = with({4, 1}, ramp(4), DType::kBFloat16);
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kAdd, Scalar::of(with({4, 1}, ramp(4)))}));
  EXPECT_FALSE(warned("OPS5"));
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kAdd, Scalar::of(half)}));
  EXPECT_TRUE(warned("OPS5"));
  remarks_.clear();
  EXPECT_RUNS((TensorScalar{d, x, AluOp::kAdd, Scalar::of(1.0), false, AluOp::kMultiply, Scalar::of(half)}));
  EXPECT_TRUE(warned("OPS5"));
}

TEST_F(Vector, TensorScalarRefusals) {
  const View x = with({4, 3}, ramp(12)), d = make({4, 3});
  EXPECT_REFUSED("ARG2", (TensorScalar{d, x, AluOp::kAdd}));
  EXPECT_REFUSED("SHAPE3", (TensorScalar{d, x, AluOp::kAdd, Scalar::of(x)}));
  EXPECT_REFUSED("SHAPE1", (TensorScalar{d, x, AluOp::kAdd, Scalar::of(with({3, 1}, ramp(3)))}));
  EXPECT_REFUSED("UNINIT1", (TensorScalar{d, x, AluOp::kAdd, Scalar::of(make({4, 1}))}));
}

// --- scalar_tensor_tensor, reciprocal

TEST_F(Vector, ScalarTensorTensor) {
  const Values a = random(3 * 4), b = random(3 * 4), s = random(3);
  const View x = with({3, 4}, a), y = with({3, 4}, b), col = with({3, 1}, s), d = make({3, 4});
  for (int reverse = 0; reverse < 4; ++reverse) {
    const bool r0 = reverse & 1, r1 = reverse & 2;
    EXPECT_RUNS((ScalarTensorTensor{d, x, AluOp::kSubtract, Scalar::of(col), AluOp::kDivide, y, r0, r1}));
    const Values got = get(d);
    for (size_t i = 0; i < got.size(); ++i) {
      const float t = r0 ? s[i / 4] - a[i] : a[i] - s[i / 4];
      EXPECT_EQ(got[i], r1 ? b[i] / t : t / b[i]);
    }
  }
  EXPECT_RUNS((ScalarTensorTensor{y, x, AluOp::kMultiply, Scalar::of(3.0), AluOp::kAdd, y}));  // operand1 in place
  const Values got = get(y);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], a[i] * 3.0f + b[i]);
}

TEST_F(Vector, ScalarTensorTensorRefusals) {
  const View x = with({4, 3}, ramp(12)), d = make({4, 3}), p = with({4, 3}, ramp(12), kF32, Memory::kPsum);
  EXPECT_REFUSED("BUF1", (ScalarTensorTensor{d, p, AluOp::kAdd, Scalar::of(1.0), AluOp::kAdd, p}));
  EXPECT_REFUSED("OPS2", (ScalarTensorTensor{d, x, AluOp::kBitwiseAnd, Scalar::of(1.0), AluOp::kAdd, x}));
  EXPECT_REFUSED("ARG2", (ScalarTensorTensor{d, x, AluOp::kAdd, {}, AluOp::kAdd, x}));
  EXPECT_REFUSED("SHAPE2",
                 (ScalarTensorTensor{d, x, AluOp::kAdd, Scalar::of(1.0), AluOp::kAdd, with({4, 2}, ramp(8))}));
}

TEST_F(Vector, ReciprocalIsCorrectlyRounded) {
  const View x = with({1, 5}, {3, -0.0f, kInf, 1e-40f, 7}), d = make({1, 5});
  EXPECT_RUNS((Reciprocal{d, x}));
  EXPECT_EQ(get(d), (Values{1.0f / 3.0f, -kInf, 0, kInf, 1.0f / 7.0f}));
  EXPECT_REFUSED("SHAPE2", (Reciprocal{make({1, 4}), x}));
  EXPECT_REFUSED("UNINIT1", (Reciprocal{d, make({1, 5})}));
}

}  // namespace
}  // namespace sterna::vector_engine
