// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/alu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sterna/base/text.h"
#include "sterna/numerics/alu_test_values.h"

namespace sterna {
namespace {

using testing::bits_of;
using testing::from_bits;
using testing::kNaNBits;
using testing::on_every_target;
using testing::Values;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kQuietNaN = from_bits(0x7fc00001);
const float kNegativeNaN = from_bits(0xffc00000);

AluOp op_at(int i) { return static_cast<AluOp>(i); }

TEST(AluNames, RoundTripAndAreUnique) {
  for (int i = 0; i < kAluOpCount; ++i) EXPECT_EQ(parse_alu_op(name(op_at(i))), op_at(i)) << i;
  EXPECT_EQ(kAluOpCount, 41);
  EXPECT_EQ(parse_alu_op("logical_xor"), AluOp::kLogicalXor);
  EXPECT_EQ(parse_alu_op("right_shift"), AluOp::kRightShift);
  EXPECT_EQ(parse_alu_op("Add"), std::nullopt);
  EXPECT_EQ(parse_alu_op(""), std::nullopt);
}

TEST(AluNames, Classes) {
  EXPECT_TRUE(is_bitwise(AluOp::kInvert));
  EXPECT_FALSE(is_bitwise(AluOp::kTrunc));
  EXPECT_TRUE(is_unary(AluOp::kInvert));
  EXPECT_TRUE(is_unary(AluOp::kAbs));
  EXPECT_TRUE(is_unary(AluOp::kTrunc));
  EXPECT_FALSE(is_unary(AluOp::kAverage));
  EXPECT_FALSE(is_unary(AluOp::kBitwiseAnd));
  EXPECT_TRUE(is_reduction(AluOp::kMaximum));
  EXPECT_TRUE(is_reduction(AluOp::kBitwiseXor));
  EXPECT_FALSE(is_reduction(AluOp::kPower));
  EXPECT_FALSE(is_reduction(AluOp::kLeftShift));
}

struct Case {
  AluOp op;
  float a, b, want;
};

// Expected values follow from alu.h and IEEE 754, not from a run.
TEST(AluScalar, Cases) {
  const float nan = from_bits(kNaNBits);
  const float tiny = from_bits(1);
  const Case cases[] = {
      {AluOp::kBypass, -0.0f, 5, -0.0f},
      {AluOp::kBypass, kNegativeNaN, 5, nan},
      {AluOp::kAdd, 1, 0x1p-24f, 1},  // tie to even
      {AluOp::kAdd, 1, 0x1.000002p-24f, 0x1.000002p0f},
      {AluOp::kAdd, tiny, tiny, from_bits(2)},  // denormals are exact
      {AluOp::kAdd, kInf, -kInf, nan},
      {AluOp::kAverage, 3, 4, 7},
      {AluOp::kSubtract, 3, 4, -1},
      {AluOp::kMultiply, 0x1p-75f, 0x1p-74f, tiny},
      {AluOp::kMultiply, kInf, 0, nan},
      {AluOp::kDivide, 1, 3, 0x1.555556p-2f},
      {AluOp::kDivide, 1, -0.0f, -kInf},
      {AluOp::kDivide, 0, 0, nan},
      {AluOp::kMaximum, -0.0f, 0.0f, 0.0f},
      {AluOp::kMaximum, 0.0f, -0.0f, 0.0f},
      {AluOp::kMaximum, -0.0f, -0.0f, -0.0f},
      {AluOp::kMaximum, kQuietNaN, kInf, nan},
      {AluOp::kMaximum, 1, kNegativeNaN, nan},
      {AluOp::kMaximum, -2, -3, -2},
      {AluOp::kMinimum, -0.0f, 0.0f, -0.0f},
      {AluOp::kMinimum, 0.0f, -0.0f, -0.0f},
      {AluOp::kMinimum, -kInf, kQuietNaN, nan},
      {AluOp::kMinimum, -2, -3, -3},
      {AluOp::kPower, 2, 0.5f, 0x1.6a09e6p0f},  // sqrt(2) rounded to 24 bits
      {AluOp::kPower, -8, 0.5f, nan},
      {AluOp::kPower, kQuietNaN, 0, 1},
      {AluOp::kPower, 4, -0.5f, 0.5f},
      {AluOp::kPower, -3, 3, -27},
      {AluOp::kMod, 5, 3, 2},
      {AluOp::kMod, -5, 3, 1},
      {AluOp::kMod, 5, -3, -1},
      {AluOp::kMod, -6, 3, 0.0f},
      {AluOp::kMod, 6, -3, -0.0f},
      {AluOp::kMod, 1, -kInf, -kInf},  // as Python's 1.0 % -inf
      {AluOp::kMod, 1, 0, nan},
      {AluOp::kFmod, -5, 3, -2},
      {AluOp::kFmod, 5, -3, 2},
      {AluOp::kFmod, -6, 3, -0.0f},
      {AluOp::kFmod, kInf, 3, nan},
      {AluOp::kAbsMax, -3, 2, -3},
      {AluOp::kAbsMax, -3, 3, 3},  // tie: the second
      {AluOp::kAbsMax, 3, -3, -3},
      {AluOp::kAbsMax, kQuietNaN, 3, nan},
      {AluOp::kAbsMin, -3, 2, 2},
      {AluOp::kAbsMin, -1, 2, -1},
      {AluOp::kAbsMin, 3, -3, -3},
      {AluOp::kAbsMin, 3, kQuietNaN, nan},
      {AluOp::kEqual, 0.0f, -0.0f, 1},
      {AluOp::kEqual, kQuietNaN, kQuietNaN, 0},
      {AluOp::kNotEqual, kQuietNaN, kQuietNaN, 1},
      {AluOp::kNotEqual, 2, 2, 0},
      {AluOp::kGreater, 2, 1, 1},
      {AluOp::kGreater, 2, kQuietNaN, 0},
      {AluOp::kGreaterEqual, 2, 2, 1},
      {AluOp::kLess, 2, 1, 0},
      {AluOp::kLess, tiny, 0x1p-148f, 1},
      {AluOp::kLessEqual, kQuietNaN, 1, 0},
      {AluOp::kLogicalAnd, tiny, kQuietNaN, 1},
      {AluOp::kLogicalAnd, -0.0f, 1, 0},
      {AluOp::kLogicalOr, -0.0f, 0, 0},
      {AluOp::kLogicalOr, 0, -2, 1},
      {AluOp::kLogicalXor, 3, -2, 0},
      {AluOp::kLogicalXor, 0, kQuietNaN, 1},
      {AluOp::kAbs, -0.0f, 0, 0.0f},
      {AluOp::kAbs, kNegativeNaN, 0, nan},
      {AluOp::kSquare, -3, 0, 9},
      {AluOp::kRelu, -0.0f, 7, 0.0f},
      {AluOp::kRelu, -1, 7, 0.0f},
      {AluOp::kRelu, kNegativeNaN, 7, nan},
      {AluOp::kRsqrt, 4, 0, 0.5f},
      {AluOp::kRsqrt, 3, 0, 0x1.279a74p-1f},  // 0.57735026919 rounded to 24 bits
      {AluOp::kRsqrt, 0, 0, kInf},
      {AluOp::kRsqrt, -0.0f, 0, -kInf},
      {AluOp::kRsqrt, -1, 0, nan},
      {AluOp::kReciprocal, 3, 0, 0x1.555556p-2f},
      {AluOp::kReciprocal, -kInf, 0, -0.0f},
      {AluOp::kNegative, 0, 0, -0.0f},
      {AluOp::kNegative, kQuietNaN, 0, nan},
      {AluOp::kLogicalNot, -0.0f, 0, 1},
      {AluOp::kLogicalNot, kQuietNaN, 0, 0},
      {AluOp::kSqrt, 2, 0, 0x1.6a09e6p0f},
      {AluOp::kSqrt, -0.0f, 0, -0.0f},
      {AluOp::kSqrt, -1, 0, nan},
      {AluOp::kSign, -0.0f, 0, 0.0f},
      {AluOp::kSign, -tiny, 0, -1},
      {AluOp::kSign, kInf, 0, 1},
      {AluOp::kSign, kQuietNaN, 0, nan},
      {AluOp::kFloor, -0.5f, 0, -1},
      {AluOp::kCeil, -0.5f, 0, -0.0f},
      {AluOp::kTrunc, -1.75f, 0, -1},
      {AluOp::kTrunc, 0x1.fffffep22f, 0, 0x1.fffffcp22f},
      {AluOp::kBitwiseAnd, 1, 1, nan},
  };
  for (const Case& c : cases)
    EXPECT_EQ(bits_of(alu(c.op, c.a, c.b)), bits_of(c.want))
        << name(c.op) << "(" << c.a << ", " << c.b << ") = " << alu(c.op, c.a, c.b) << ", expected " << c.want;
}

TEST(AluBits, ShiftsAndMasks) {
  EXPECT_EQ(alu_bits(AluOp::kBitwiseAnd, 0xf0f0, 0xff00, 16), 0xf000u);
  EXPECT_EQ(alu_bits(AluOp::kBitwiseOr, 0x50, 0x05, 8), 0x55u);
  EXPECT_EQ(alu_bits(AluOp::kBitwiseXor, 0xffffffff, 0x0f, 32), 0xfffffff0u);
  EXPECT_EQ(alu_bits(AluOp::kInvert, 0x0f, 0, 8), 0xf0u);
  EXPECT_EQ(alu_bits(AluOp::kLeftShift, 0x81, 1, 8), 0x02u);
  EXPECT_EQ(alu_bits(AluOp::kLeftShift, 1, 31, 32), 0x80000000u);
  EXPECT_EQ(alu_bits(AluOp::kLeftShift, 1, 32, 32), 0u);
  EXPECT_EQ(alu_bits(AluOp::kRightShift, 0x8000, 15, 16), 1u);
  EXPECT_EQ(alu_bits(AluOp::kRightShift, 0x8000, 16, 16), 0u);
  EXPECT_EQ(alu_bits(AluOp::kArithRightShift, 0x80, 3, 8), 0xf0u);
  EXPECT_EQ(alu_bits(AluOp::kArithRightShift, 0x80, 200, 8), 0xffu);
  EXPECT_EQ(alu_bits(AluOp::kArithRightShift, 0x7f, 200, 8), 0u);
  EXPECT_EQ(alu_bits(AluOp::kArithRightShift, 0x80000000, 32, 32), 0xffffffffu);
  EXPECT_EQ(alu_bits(AluOp::kBypass, 0x1234, 9, 8), 0x34u);
}

TEST(AluInt, WrapsAndCompares) {
  EXPECT_EQ(alu_int(AluOp::kAdd, 0xffffffff, 2, false), 1u);
  EXPECT_EQ(alu_int(AluOp::kSubtract, 0, 1, true), 0xffffffffu);
  EXPECT_EQ(alu_int(AluOp::kMultiply, 0x10001, 0x10001, false), 0x20001u);
  EXPECT_EQ(alu_int(AluOp::kMaximum, 0xffffffff, 1, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kMaximum, 0xffffffff, 1, false), 0xffffffffu);
  EXPECT_EQ(alu_int(AluOp::kMinimum, 0x80000000, 0x7fffffff, true), 0x80000000u);
  EXPECT_EQ(alu_int(AluOp::kMinimum, 0x80000000, 0x7fffffff, false), 0x7fffffffu);
  EXPECT_EQ(alu_int(AluOp::kLess, 0xffffffff, 0, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kLess, 0xffffffff, 0, false), 0u);
  EXPECT_EQ(alu_int(AluOp::kLessEqual, 7, 7, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kGreater, 7, 7, true), 0u);
  EXPECT_EQ(alu_int(AluOp::kGreaterEqual, 7, 7, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kEqual, 7, 7, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kNotEqual, 7, 7, true), 0u);
  EXPECT_EQ(alu_int(AluOp::kAbs, 0xfffffffb, 0, true), 5u);
  EXPECT_EQ(alu_int(AluOp::kAbs, 0xfffffffb, 0, false), 0xfffffffbu);
  EXPECT_EQ(alu_int(AluOp::kNegative, 5, 0, true), 0xfffffffbu);
  EXPECT_EQ(alu_int(AluOp::kLogicalXor, 5, 3, false), 0u);
  EXPECT_EQ(alu_int(AluOp::kLeftShift, 3, 4, false), 48u);
  EXPECT_EQ(alu_int(AluOp::kPower, 3, 19, true), 1162261467u);
  EXPECT_EQ(alu_int(AluOp::kPower, 3, 41, false), 2069870691u);  // modulo 2^32
  EXPECT_EQ(alu_int(AluOp::kPower, 0, 0, true), 1u);
  EXPECT_EQ(alu_int(AluOp::kPower, 2, 0xffffffff, true), 0u);
  EXPECT_EQ(alu_int(AluOp::kPower, 0xffffffff, 0xfffffffd, true), 0xffffffffu);
  EXPECT_EQ(alu_int(AluOp::kAbsMax, 1337901817, 3, true), 1337901817u);
  EXPECT_EQ(alu_int(AluOp::kAbsMax, 5, 0xfffffffa, true), 0xfffffffau);
  EXPECT_EQ(alu_int(AluOp::kAbsMin, 0xfffffffb, 6, true), 0xfffffffbu);
  EXPECT_EQ(alu_int(AluOp::kAbsMin, 0xfffffffb, 6, false), 6u);
  EXPECT_TRUE(has_int_form(AluOp::kBitwiseOr));
  EXPECT_FALSE(has_int_form(AluOp::kDivide));
}

enum class Form { kTensor, kScalar, kScalarReversed };
enum class Place { kApart, kOverFirst, kOverSecond };

/// One call, and the same by the definition, on blocks whose gaps hold a marker that must survive.
struct Trial {
  AluOp op;
  Form form;
  Place place;
  ptrdiff_t rows, cols, pitch_a, pitch_b, pitch_d;

  std::string text() const {
    return cat(name(op), " form ", static_cast<int>(form), " place ", static_cast<int>(place), " ", rows, "x", cols,
               " pitches ", pitch_a, " ", pitch_b, " ", pitch_d);
  }

  float expected(float a, float b) const { return form == Form::kScalarReversed ? alu(op, b, a) : alu(op, a, b); }

  void run(uint32_t seed) const {
    Values values(seed);
    std::vector<float> a = values.take((rows - 1) * pitch_a + cols);
    std::vector<float> b = values.take(form == Form::kTensor ? (rows - 1) * pitch_b + cols : (rows - 1) * pitch_b + 1);
    std::vector<float> d(static_cast<size_t>((rows - 1) * pitch_d + cols), from_bits(0xdeadbeef));
    std::vector<float>& target = place == Place::kOverFirst ? a : place == Place::kOverSecond ? b : d;
    std::vector<float> want = target;
    for (ptrdiff_t r = 0; r < rows; ++r)
      for (ptrdiff_t c = 0; c < cols; ++c) {
        const float y = b[static_cast<size_t>(r * pitch_b + (form == Form::kTensor ? c : 0))];
        want[static_cast<size_t>(r * pitch_d + c)] = expected(a[static_cast<size_t>(r * pitch_a + c)], y);
      }
    if (form == Form::kTensor) {
      alu_block(op, {a.data(), pitch_a}, {b.data(), pitch_b}, {target.data(), pitch_d}, rows, cols);
    } else {
      alu_block_scalar(op, {a.data(), pitch_a}, b.data(), pitch_b, form == Form::kScalarReversed,
                       {target.data(), pitch_d}, rows, cols);
    }
    testing::expect_same_bits(target, want, text());
  }
};

TEST(AluBlock, TensorFormEqualsTheDefinition) {
  on_every_target([] {
    uint32_t seed = 1;
    for (int i = 0; i < kAluOpCount; ++i)
      for (ptrdiff_t cols = 1; cols <= 40; ++cols) {
        const ptrdiff_t wide = cols + 3;
        const Trial trials[] = {
            {op_at(i), Form::kTensor, Place::kApart, 3, cols, cols, cols, cols},
            {op_at(i), Form::kTensor, Place::kApart, 3, cols, wide, cols, wide + 2},
            {op_at(i), Form::kTensor, Place::kApart, 3, cols, 0, wide, cols},
            {op_at(i), Form::kTensor, Place::kApart, 3, cols, cols, 0, wide},
            {op_at(i), Form::kTensor, Place::kOverFirst, 3, cols, wide, cols, wide},
            {op_at(i), Form::kTensor, Place::kOverSecond, 3, cols, cols, wide, wide},
            {op_at(i), Form::kTensor, Place::kOverFirst, 3, cols, cols, cols, cols},
        };
        for (const Trial& trial : trials) ASSERT_NO_FATAL_FAILURE(trial.run(++seed));
      }
  });
}

TEST(AluBlock, ScalarFormEqualsTheDefinition) {
  on_every_target([] {
    uint32_t seed = 100000;
    for (int i = 0; i < kAluOpCount; ++i)
      for (const Form form : {Form::kScalar, Form::kScalarReversed})
        for (ptrdiff_t cols = 1; cols <= 40; ++cols) {
          const ptrdiff_t wide = cols + 3;
          const Trial trials[] = {
              {op_at(i), form, Place::kApart, 5, cols, cols, 1, cols},
              {op_at(i), form, Place::kApart, 5, cols, cols, 0, cols},
              {op_at(i), form, Place::kApart, 5, cols, wide, 7, cols},
              {op_at(i), form, Place::kApart, 5, cols, 0, 1, wide},
              {op_at(i), form, Place::kOverFirst, 5, cols, wide, 2, wide},
          };
          for (const Trial& trial : trials) ASSERT_NO_FATAL_FAILURE(trial.run(++seed));
        }
  });
}

/// Both two-step forms on one shape, apart and in place.
void check_pair(AluOp op0, AluOp op1, ptrdiff_t rows, ptrdiff_t cols, uint32_t seed) {
  const bool reverse0 = seed % 2 != 0, reverse1 = seed % 4 >= 2, flat = seed % 8 >= 4;
  const ptrdiff_t pitch = flat ? cols : cols + 3, s_pitch = flat ? 0 : 2;
  Values values(seed, seed % 3);
  const std::vector<float> a = values.take(rows * pitch), b = values.take(rows * pitch), s0 = values.take(rows * 2);
  const std::vector<float> s1 = values.take(rows * 2);
  std::vector<float> scalar_got = a, tensor_got = b, scalar_want = a, tensor_want = b;
  for (ptrdiff_t r = 0; r < rows; ++r)
    for (ptrdiff_t c = 0; c < cols; ++c) {
      const auto at = static_cast<size_t>(r * pitch + c), row = static_cast<size_t>(r * s_pitch);
      const float step = reverse0 ? alu(op0, s0[row], a[at]) : alu(op0, a[at], s0[row]);
      scalar_want[at] = reverse1 ? alu(op1, s1[row], step) : alu(op1, step, s1[row]);
      tensor_want[at] = reverse1 ? alu(op1, b[at], step) : alu(op1, step, b[at]);
    }
  alu_block_scalar_scalar(op0, reverse0, s0.data(), s_pitch, op1, reverse1, s1.data(), s_pitch,
                          {scalar_got.data(), pitch}, {scalar_got.data(), pitch}, rows, cols);
  alu_block_scalar_tensor(op0, reverse0, s0.data(), s_pitch, op1, reverse1, {tensor_got.data(), pitch},
                          {a.data(), pitch}, {tensor_got.data(), pitch}, rows, cols);
  const std::string what = cat(name(op0), " ", name(op1), " ", rows, "x", cols, " seed ", seed);
  ASSERT_NO_FATAL_FAILURE(testing::expect_same_bits(scalar_got, scalar_want, what));
  ASSERT_NO_FATAL_FAILURE(testing::expect_same_bits(tensor_got, tensor_want, what));
}

TEST(AluPairs, EqualTwoSteps) {
  on_every_target([] {
    uint32_t seed = 0;
    for (int i = 0; i < kAluOpCount; ++i)
      for (int j = 0; j < kAluOpCount; ++j)
        for (const ptrdiff_t cols : {1, 3, 8, 15, 16, 21, 40})
          ASSERT_NO_FATAL_FAILURE(check_pair(op_at(i), op_at(j), 3, cols, ++seed));
    for (const AluOp op1 :
         {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum, AluOp::kDivide})
      for (const AluOp op0 : {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kDivide})
        for (uint32_t k = 0; k < 24; ++k) {
          ASSERT_NO_FATAL_FAILURE(check_pair(op0, op1, 5, 37, k));
          ASSERT_NO_FATAL_FAILURE(check_pair(op0, op1, 3, 2100, k));  // wider than the buffer
        }
  });
}

TEST(AluBlock, LargeBlocks) {
  on_every_target([] {
    for (int i = 0; i < kAluOpCount; ++i) {
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kTensor, Place::kApart, 128, 77, 80, 77, 96}.run(7)));
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kScalar, Place::kApart, 128, 512, 512, 1, 512}.run(8)));
    }
  });
}

/// Every pair of special values, in every lane position that a vector can have.
TEST(AluBlock, EveryPairOfSpecialValues) {
  constexpr size_t kCount = testing::kSpecialBits.size();
  on_every_target([] {
    std::vector<float> a, b;
    for (size_t shift = 0; shift < kCount; ++shift)
      for (size_t j = 0; j < kCount; ++j) {
        a.push_back(from_bits(testing::kSpecialBits[j]));
        b.push_back(from_bits(testing::kSpecialBits[(j + shift) % kCount]));
      }
    const auto count = static_cast<ptrdiff_t>(a.size());
    for (int i = 0; i < kAluOpCount; ++i) {
      std::vector<float> got(a.size()), want(a.size());
      for (size_t j = 0; j < a.size(); ++j) want[j] = alu(op_at(i), a[j], b[j]);
      alu_block(op_at(i), {a.data(), count}, {b.data(), count}, {got.data(), count}, 1, count);
      ASSERT_NO_FATAL_FAILURE(testing::expect_same_bits(got, want, std::string(name(op_at(i)))));
    }
  });
}

TEST(AluBlock, EveryNaNResultIsCanonical) {
  on_every_target([] {
    const std::vector<float> a(37, kNegativeNaN), b(37, from_bits(0x7f800001));
    for (int i = 0; i < kAluOpCount; ++i) {
      std::vector<float> d(37);
      alu_block(op_at(i), {a.data(), 37}, {b.data(), 37}, {d.data(), 37}, 1, 37);
      for (const float value : d) {
        if (!std::isnan(value)) continue;
        ASSERT_EQ(bits_of(value), kNaNBits) << name(op_at(i));
      }
    }
  });
}

// A column longer than the gather buffer, with every kind of pitch.
TEST(AluBlock, LongColumns) {
  on_every_target([] {
    for (int i = 0; i < kAluOpCount; ++i) {
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kTensor, Place::kApart, 300, 1, 3, 1, 2}.run(9)));
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kTensor, Place::kOverSecond, 300, 1, 0, 4, 4}.run(10)));
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kScalar, Place::kOverFirst, 300, 1, 5, 1, 5}.run(11)));
      ASSERT_NO_FATAL_FAILURE((Trial{op_at(i), Form::kScalarReversed, Place::kApart, 300, 1, 1, 0, 1}.run(12)));
    }
  });
}

TEST(AluBlock, EmptyBlocksTouchNothing) {
  on_every_target([] {
    float d = 3;
    alu_block(AluOp::kAdd, {nullptr, 0}, {nullptr, 0}, {&d, 0}, 0, 5);
    alu_block(AluOp::kAdd, {nullptr, 0}, {nullptr, 0}, {&d, 0}, 5, 0);
    alu_block_scalar(AluOp::kAdd, {nullptr, 0}, nullptr, 0, false, {&d, 0}, 0, 5);
    EXPECT_EQ(d, 3.0f);
  });
}

}  // namespace
}  // namespace sterna
