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

// --- tensor_copy, memset

TEST_F(Vector, TensorCopyKeepsBitsOfEqualTypesAndConvertsOthers) {
  const View x = with_bits({1, 3}, {0x7f800001, 0x80000000, 0x3f80ffff}, kF32), same = make({1, 3}),
             half = make({1, 3}, kBf16);
  EXPECT_RUNS((TensorCopy{same, x}));
  EXPECT_EQ(get_bits(same), (Words{0x7f800001, 0x80000000, 0x3f80ffff}));
  EXPECT_RUNS((TensorCopy{half, x}));
  EXPECT_EQ(get_bits(half)[2], 0x3f81u);  // rounds to nearest, not down
  EXPECT_EQ(get_bits(half)[1], 0x8000u);
}

TEST_F(Vector, TensorCopyMovesDefinednessWithTheValues) {
  const View x = make({2, 4}), d = make({2, 4});
  set(part(x, 0, 1, 1, 3), {5, 6});
  EXPECT_RUNS((TensorCopy{d, x}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, true, true, false, false, false, false, false}));
  set(d, ramp(8));
  EXPECT_RUNS((TensorCopy{d, x}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, true, true, false, false, false, false, false}));
}

TEST_F(Vector, TensorCopyReshapesAndStrides) {
  const View x = with({2, 3, 4}, ramp(24));
  const int swap[3] = {0, 2, 1};
  const View d = make({2, 4, 3});
  EXPECT_RUNS((TensorCopy{d, *permute_view(x, swap)}));
  const Values got = get(d);
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 3; ++j)
        EXPECT_EQ(got[static_cast<size_t>(p * 12 + i * 3 + j)], static_cast<float>(p * 12 + j * 4 + i));
  EXPECT_REFUSED("SHAPE2", (TensorCopy{make({2, 11}), x}));
  use_chip("trn1");
  EXPECT_REFUSED("ENG3", (TensorCopy{d, x, EngineId::kScalar}));
}

TEST_F(Vector, TensorCopyOfWideAndOddRows) {
  for (int64_t n : {1, 15, 16, 17, 64, 128, 200}) {
    const Values v = random(static_cast<size_t>(5 * n));
    const View big = make({5, n + 3}), back = make({5, n});
    EXPECT_RUNS((TensorCopy{part(big, 0, 5, 2, n + 2), with({5, n}, v)}));
    EXPECT_RUNS((TensorCopy{back, part(big, 0, 5, 2, n + 2)}));
    EXPECT_EQ(get(back), v) << n;
  }
}

TEST_F(Vector, MemsetFillsEveryType) {
  const View f = make({3, 5}), h = make({3, 5}, DType::kFloat16), i = make({3, 5}, DType::kInt8),
             w = make({3, 5}, kU32);
  EXPECT_RUNS((Memset{f, Scalar::of(-1.5)}));
  EXPECT_EQ(get(f), Values(15, -1.5f));
  EXPECT_RUNS((Memset{part(h, 0, 3, 1, 3), Scalar::of(65504.0)}));
  EXPECT_EQ(get(part(h, 0, 3, 1, 3)), Values(6, 65504.0f));
  EXPECT_FALSE(m_.is_defined(h));
  EXPECT_RUNS((Memset{i, Scalar::of(-3.0)}));
  EXPECT_EQ(get(i), Values(15, -3.0f));
  EXPECT_RUNS((Memset{w, Scalar::of(4294967295.0)}));
  EXPECT_EQ(get_bits(w), Words(15, 0xffffffffu));
  EXPECT_REFUSED("ARG3", (Memset{f, Scalar{}}));
  EXPECT_REFUSED("MEMSET1", (Memset{make({1, 2}, DType::kFloat8E4M3FNx4), Scalar::of(1.0)}));
  EXPECT_REFUSED("ENG1", (Memset{f, Scalar::of(0.0), EngineId::kScalar}));
}

// numerics/convert.h: to nearest even, saturating, NaN to 0. NKI 0.3: the value's type must match dst's.
TEST_F(Vector, MemsetConvertsAValueThatDoesNotFit) {
  const View d = make({1, 1}, DType::kInt8), w = make({1, 1}, kI32), b = make({1, 1}, DType::kBool);
  for (const auto& [value, want] : {std::pair{2.5, 2.0f}, {3.5, 4.0f}, {2.7, 3.0f}, {-2.7, -3.0f}, {-0.5, 0.0f}}) {
    EXPECT_RUNS((Memset{d, Scalar::of(value)}));
    EXPECT_EQ(get(d), Values{want}) << value;
    EXPECT_RUNS((Memset{w, Scalar::of(value)}));
    EXPECT_EQ(get(w), Values{want}) << value;
  }
  EXPECT_TRUE(warned("MEMSET2"));
  EXPECT_RUNS((Memset{w, Scalar::of(static_cast<double>(kNaN))}));
  EXPECT_EQ(get(w), Values{0});
  EXPECT_RUNS((Memset{b, Scalar::of(0.25)}));
  EXPECT_EQ(get(b), Values{1});
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(300.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(127.5)}));
  EXPECT_RUNS((Memset{d, Scalar::of(127.4)}));
  EXPECT_EQ(get(d), Values{127});
  EXPECT_REFUSED("MEMSET2", (Memset{make({1, 1}, DType::kUInt8), Scalar::of(-0.7)}));
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(-129.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{make({1, 1}, DType::kUInt8), Scalar::of(-1.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(2147483648.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(1e30)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(static_cast<double>(kInf))}));
  EXPECT_RUNS((Memset{w, Scalar::of(-2147483648.0)}));
  EXPECT_EQ(get_bits(w), Words{0x80000000});
  strict_ = true;
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(2.5)}));
  EXPECT_RUNS((Memset{make({1, 1}), Scalar::of(2.5)}));
}

// --- tensor_copy_predicated

TEST_F(Vector, PredicatedCopyMovesWhatIsUndefined) {
  const View x = make({1, 4}), p = with_bits({1, 4}, {1, 1, 0, 0}, DType::kUInt8);
  set(part(x, 0, 1, 0, 1), {9});
  const View d = with({1, 4}, {1, 2, 3, 4});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  EXPECT_EQ(defined(d), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(get(d)[0], 9);
  EXPECT_EQ(get(d)[2], 3);
}

TEST_F(Vector, PredicatedCopyChangesAndDefinesChosenElementsOnly) {
  const View x = with({2, 3}, {1, 2, 3, 4, 5, 6}), p = with_bits({2, 3}, {1, 0, 7, 0, 0, 1}, DType::kUInt8);
  const View d = make({2, 3});
  set(part(d, 0, 1, 0, 2), {90, 91});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  const Values got = get(d);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 91);
  EXPECT_EQ(got[2], 3);
  EXPECT_EQ(got[5], 6);
  EXPECT_EQ(defined(d), (std::vector<bool>{true, true, true, false, false, true}));
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(8.0), p, true}));
  EXPECT_EQ(get(d), (Values{1, 8, 3, 8, 8, 6}));
  EXPECT_TRUE(m_.is_defined(d));
}

TEST_F(Vector, PredicatedCopyKeepsBits) {
  const View x = with_bits({1, 2}, {0x7fc12345, 16777217}, kI32), p = with_bits({1, 2}, {1, 1}, kU32),
             d = make({1, 2}, kI32);
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  EXPECT_EQ(get_bits(d), (Words{0x7fc12345, 16777217}));
}

TEST_F(Vector, PredicatedCopyRefusals) {
  const View x = with({2, 3}, ramp(6)), d = with({2, 3}, ramp(6)), p = with_bits({2, 3}, Words(6, 1), DType::kUInt8);
  EXPECT_REFUSED("PRED1", (TensorCopyPredicated{d, Scalar::of(x), x}));
  EXPECT_REFUSED("ARG2", (TensorCopyPredicated{d, Scalar{}, p}));
  EXPECT_REFUSED("UNINIT1", (TensorCopyPredicated{d, Scalar::of(x), make({2, 3}, DType::kUInt8)}));
  const View xp = with({2, 3}, ramp(6), kF32, Memory::kPsum), pp = with_bits({2, 3}, Words(6, 1), kU32, Memory::kPsum);
  EXPECT_REFUSED("BUF1", (TensorCopyPredicated{d, Scalar::of(xp), pp}));
  strict_ = true;
  EXPECT_REFUSED("PRED2", (TensorCopyPredicated{d, Scalar::of(with({2, 3}, ramp(6), kBf16)), p}));
}

TEST_F(Vector, ANumberForAPredicatedCopyIsOneOfTheTiles) {
  const View predicate = with({2, 3}, ramp(6), DType::kUInt8), d = with({2, 3}, ramp(6), kI32);
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(-7.0), predicate}));
  EXPECT_FALSE(warned("PRED4"));
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(1.5), predicate}));
  EXPECT_TRUE(warned("PRED4"));
}

TEST_F(Vector, PredicatedCopyBetweenIntegerTypesIsExact) {
  const View s = with_bits({1, 4}, {16777217, static_cast<uint32_t>(-5), 7, 9}, kI32), d = make({1, 4}, kU32);
  set(d, {1, 2, 3, 4});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(s), with({1, 4}, {1, 1, 0, 1}, DType::kUInt8)}));
  EXPECT_EQ(get_bits(d), (Words{16777217, 0, 3, 9}));
}

// --- nc_stream_shuffle

TEST_F(Vector, StreamShufflePermutesInsideGroupsOf32) {
  const View x = with({64, 2}, ramp(128)), d = with({64, 2}, Values(128, -1));
  NcStreamShuffle i{d, x};
  for (int k = 0; k < 32; ++k) i.shuffle_mask.lane[k] = static_cast<uint8_t>(31 - k);
  i.shuffle_mask.lane[3] = 255;
  EXPECT_RUNS(i);
  const Values got = get(d);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 2; ++c)
      EXPECT_EQ(got[static_cast<size_t>(2 * r + c)],
                r % 32 == 3 ? -1.0f : static_cast<float>(2 * (r / 32 * 32 + 31 - r % 32) + c));
}

TEST_F(Vector, StreamShuffleInPlaceAndDefinedness) {
  const View x = make({4, 1});
  set(part(x, 0, 2, 0, 1), {10, 11});
  NcStreamShuffle i{x, x};
  for (int k = 0; k < 32; ++k) i.shuffle_mask.lane[k] = 255;
  i.shuffle_mask.lane[0] = 1;
  i.shuffle_mask.lane[1] = 2;
  i.shuffle_mask.lane[2] = 0;
  EXPECT_RUNS(i);
  EXPECT_EQ(defined(x), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(get(x)[0], 11);
  EXPECT_EQ(get(x)[2], 10);
}

TEST_F(Vector, StreamShuffleRefusals) {
  const View x = with({32, 2}, ramp(64)), small = with({8, 2}, ramp(16));
  EXPECT_REFUSED("SHUF1", (NcStreamShuffle{make({32, 2}, kBf16), x}));
  EXPECT_REFUSED("SHAPE2", (NcStreamShuffle{make({32, 3}), x}));
  NcStreamShuffle far{make({8, 2}), small};
  far.shuffle_mask.lane[7] = 8;
  EXPECT_REFUSED("SHUF3", far);
  const View tall = make({64, 2});
  EXPECT_REFUSED("SHUF2", (NcStreamShuffle{part(tall, 16, 48, 0, 2), x}));
}

TEST_F(Vector, AShuffleOfNoPartitionsDoesNothing) {
  const View x = with({32, 3}, ramp(96)), d = make({32, 3});
  NcStreamShuffle i{part(d, 0, 0, 0, 3), part(x, 0, 0, 0, 3)};
  EXPECT_RUNS(i);
}

// --- bn_stats, bn_aggr

TEST_F(Vector, BatchNormStatistics) {
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

TEST_F(Vector, BnStatsOfSmallWholeNumbersIsExact) {
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

// --- max8, nc_find_index8, nc_match_replace8

TEST_F(Vector, Max8OrdersDescending) {
  Values v = {3, -1, 7, 7, 0, 2, 9, -8, 4, 5};
  const View x = with({1, 10}, v), d = make({1, 8});
  EXPECT_RUNS((Max8{d, x}));
  EXPECT_EQ(get(d), (Values{9, 7, 7, 5, 4, 3, 2, 0}));
  const View y = with({1, 8}, {-0.0f, 0, -kInf, kNaN, kInf, 1, -1, -2});
  EXPECT_RUNS((Max8{d, y}));
  EXPECT_EQ(get_bits(d),
            (Words{0x7fc00000, 0x7f800000, 0x3f800000, 0, 0x80000000, 0xbf800000, 0xc0000000, 0xff800000}));
  EXPECT_REFUSED("TOP1", (Max8{d, with({1, 7}, ramp(7))}));
  EXPECT_REFUSED("SHAPE4", (Max8{make({1, 7}), x}));
  EXPECT_REFUSED("UNINIT1", (Max8{d, make({1, 9})}));
}

TEST_F(Vector, FindIndex8AdvancesOverRepeatedValues) {
  const View x = with({1, 10}, {5, 1, 5, 2, 5, 3, 0, 4, 6, 8}), v = with({1, 8}, {5, 8, 5, 5, 5, 77, 0, 1}),
             d = make({1, 8}, kU32);
  EXPECT_RUNS((NcFindIndex8{d, x, v}));
  EXPECT_EQ(get_bits(d), (Words{0, 9, 2, 4, 0xffffffff, 0xffffffff, 6, 1}));
  const View h = make({1, 8}, DType::kUInt16);
  EXPECT_RUNS((NcFindIndex8{h, x, v}));
  EXPECT_EQ(get_bits(h)[4], 0xffffu);
  EXPECT_REFUSED("TOP2", (NcFindIndex8{make({1, 8}), x, v}));
  EXPECT_REFUSED("SHAPE4", (NcFindIndex8{d, x, with({1, 7}, ramp(7))}));
}

TEST_F(Vector, MatchReplace8TakesValuesFromTheLast) {
  const View x = with({1, 10}, {5, 1, 5, 2, 5, 3, 0, 4, 6, 8}), v = with({1, 8}, {5, 8, 9, 5, 77, 2, 2, 1}),
             d = make({1, 10}), at = make({1, 8}, kU32);
  EXPECT_RUNS((NcMatchReplace8{d, x, v, -1, at}));
  EXPECT_EQ(get(d), (Values{-1, -1, -1, -1, 5, 3, 0, 4, 6, -1}));
  constexpr uint32_t none = 0xffffffff;
  EXPECT_EQ(get_bits(at),
            (Words{2, 9, none, 0, none, none, 3, 1}));  // slot 3 of value 5 comes before slot 0, slot 6 of 2 before 5
  EXPECT_RUNS((NcMatchReplace8{x, x, v, 5}));           // in place; a replaced place does not match again
  EXPECT_EQ(get(x), (Values{5, 5, 5, 5, 5, 3, 0, 4, 6, 5}));
  EXPECT_REFUSED("TOP2", (NcMatchReplace8{d, x, v, 0, make({1, 8})}));
  EXPECT_REFUSED("SHAPE4", (NcMatchReplace8{make({1, 9}), x, v, 0}));
}

}  // namespace
}  // namespace sterna::vector_engine
