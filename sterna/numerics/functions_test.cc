// SPDX-License-Identifier: Apache-2.0
// Accuracy against long double formulas, special values, and equal bits on every SIMD target.
// STERNA_TEST_DENSE=1 in the environment takes the dense samples (minutes instead of seconds).
#include "sterna/numerics/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "sterna/numerics/dispatch.h"

namespace sterna {
namespace {

using Real = long double;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kNan = 0x7fc00000;
constexpr Real kPi = std::numbers::pi_v<Real>;

bool dense() { return std::getenv("STERNA_TEST_DENSE") != nullptr; }
uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t b) { return std::bit_cast<float>(b); }

class TargetGuard {
 public:
  TargetGuard() : saved_(simd_target()) {}
  ~TargetGuard() { (void)set_simd_target(saved_); }

 private:
  SimdTarget saved_;
};

Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real silu_dx(Real z) { return sigmoid(z) * (1 + z * sigmoid(-z)); }
Real normal_cdf(Real x) { return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; }
Real normal_density(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * kPi); }
Real gelu_apprx_tanh(Real x) {
  const Real u = std::sqrt(2 / kPi) * (x + 0.044715L * x * x * x);
  // 1 + tanh(u) = 2 sigmoid(2u); the left side cancels for negative u.
  return x >= -3 ? 0.5L * x * (1 + std::tanh(u)) : x * sigmoid(2 * u);
}
Real softplus(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

/// The mathematical function at a finite x, in long double.
Real reference(Function f, Real x) {
  switch (f) {
    case Function::kCopy: return x;
    case Function::kSquare: return x * x;
    case Function::kSigmoid: return sigmoid(x);
    case Function::kRelu:
    case Function::kPrelu: return x > 0 ? x : 0;
    case Function::kGelu: return x * normal_cdf(x);
    case Function::kGeluDx: return normal_cdf(x) + x * normal_density(x);
    case Function::kGeluApprxTanh: return gelu_apprx_tanh(x);
    case Function::kGeluApprxSigmoid: return x * sigmoid(1.702L * x);
    case Function::kGeluApprxSigmoidDx: return silu_dx(1.702L * x);
    case Function::kSilu: return x * sigmoid(x);
    case Function::kSiluDx: return silu_dx(x);
    case Function::kTanh: return std::tanh(x);
    case Function::kSoftplus: return softplus(x);
    case Function::kMish: return x * std::tanh(softplus(x));
    case Function::kErf: return std::erf(x);
    case Function::kErfDx: return 2 / std::sqrt(kPi) * std::exp(-x * x);
    case Function::kExp: return std::exp(x);
    case Function::kLog: return std::log(x);
    case Function::kSin:
    case Function::kSinFull: return std::sin(x);
    case Function::kArctan: return std::atan(x);
    case Function::kSqrt: return std::sqrt(x);
    case Function::kRsqrt: return 1 / std::sqrt(x);
    case Function::kReciprocal: return 1 / x;
    case Function::kSign: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Function::kAbs: return std::fabs(x);
    case Function::kCos: return std::cos(x);
    case Function::kTan: return std::tan(x);
  }
  return 0;
}

/// Where a function bends, changes formula, overflows, underflows or crosses zero.
std::vector<float> special_points() {
  std::vector<float> points = {
      0, 0x1p-149F, 0x1p-126F, 0x1p-64F, 0x1p-24F, 1e-8F, 1e-3F, 0.3465735F, 0.5F, 0.70710678F, 0.75F, 1, 1.41421356F,
      2, 3, 4, 9,
      // zeros of the derivatives of gelu, silu and gelu_apprx_sigmoid (negative side, reached by the sign below)
      0.7517915F, 1.2784645F, 0.7511543F, 5, 8, 10, 10.2F, 13, 14, 14.5F, 15, 16, 17.3F, 20, 30, 61, 87.33654F,
      88.02969F, 88.72284F, 103.27893F, 103.97208F, 104, 150, 1e3F, 1e4F, 1e5F, 134217728.0F, 1e10F, 0x1p42F, 0x1p64F,
      0x1p87F, 0x1p97F, 0x1p116F, 0x1p127F, std::numeric_limits<float>::max()};
  for (int i = 1; i <= 40; ++i) points.push_back(static_cast<float>(i * kPi / 4));
  for (int i = 1; i <= 2000; i += 37) points.push_back(static_cast<float>(i * i * kPi / 2));
  return points;
}

/// Finite inputs: every stride-th pattern, and the neighbours of the special points with both signs.
const std::vector<float>& samples() {
  static const std::vector<float> all = [] {
    std::vector<float> out;
    // Where long double has 113 bits it is computed in software, often under an emulator.
    const uint64_t stride = dense() ? 1009 : std::numeric_limits<Real>::digits > 64 ? 1000003 : 10007;
    for (uint64_t b = 0; b < uint64_t{1} << 32; b += stride) out.push_back(from_bits(static_cast<uint32_t>(b)));
    for (const float point : special_points()) {
      for (int32_t step = -300; step <= 300; ++step) {
        const float x = from_bits(bits(point) + static_cast<uint32_t>(step));
        out.push_back(x);
        out.push_back(-x);
      }
    }
    std::erase_if(out, [](float x) { return !std::isfinite(x); });
    return out;
  }();
  return all;
}

int64_t ordered(float x) {
  const int64_t magnitude = bits(x) & 0x7fffffff;
  return std::signbit(x) ? -magnitude : magnitude;
}

struct Worst {
  int64_t distance = 0;  ///< in steps of fp32 from the correctly rounded value
  Real error = 0;        ///< in units of the last place, from the exact value
  float x = 0;
};

void measure(Function f, float x, float got, Worst& worst) {
  const Real exact = reference(f, x);
  const float rounded = static_cast<float>(exact);
  const int64_t distance =
      std::isnan(got) ? std::numeric_limits<int64_t>::max() : std::abs(ordered(got) - ordered(rounded));
  if (distance > worst.distance) worst.distance = distance, worst.x = x;
  if (exact == 0 || !std::isfinite(rounded) || !std::isfinite(got)) return;
  const Real place = std::max(std::ldexp(Real{1}, std::ilogb(exact) - 23), static_cast<Real>(0x1p-149F));
  worst.error = std::max(worst.error, std::fabs(got - exact) / place);
}

bool in_domain(Function f, float x) {
  const FunctionRange range = documented_range(f);
  switch (f) {
    case Function::kSin: return x >= range.low && x <= range.high;
    case Function::kLog:
    case Function::kRsqrt: return x > 0;
    case Function::kSqrt: return x >= 0;
    case Function::kReciprocal: return x != 0;
    default: return true;
  }
}

class EachFunction : public testing::TestWithParam<int> {
 protected:
  Function function() const { return static_cast<Function>(GetParam()); }
};

// Not only over the documented range: wherever the function is defined.
TEST_P(EachFunction, IsWithinOneUlp) {
  const Function f = function();
  std::vector<float> in;
  for (const float x : samples()) {
    if (in_domain(f, x)) in.push_back(x);
  }
  std::vector<float> out(in.size());
  const auto count = static_cast<ptrdiff_t>(in.size());
  function_block(f, {in.data(), count}, {out.data(), count}, 1, count);
  Worst worst;
  for (size_t i = 0; i < in.size(); ++i) measure(f, in[i], out[i], worst);
  std::printf("%-22s %8zu samples: %lld from correctly rounded (at %a), error %.4Lf ulp\n",
              std::string(name(f)).c_str(), in.size(), static_cast<long long>(worst.distance),
              static_cast<double>(worst.x), worst.error);
  EXPECT_LE(worst.distance, 1) << name(f) << " at " << worst.x;
}

TEST_P(EachFunction, GivesTheSameBitsOnEveryTarget) {
  const Function f = function();
  const TargetGuard guard;
  const uint64_t stride = dense() ? 257 : 257 * 31;
  constexpr ptrdiff_t kChunk = 4096;
  std::vector<float> in;
  const auto compare = [&] {
    const auto count = static_cast<ptrdiff_t>(in.size());
    std::vector<float> expected(in.size()), got(in.size());
    for (size_t i = 0; i < in.size(); ++i) expected[i] = evaluate(f, in[i]);
    for (const SimdTarget target : simd_targets()) {
      ASSERT_TRUE(static_cast<bool>(set_simd_target(target)));
      function_block(f, {in.data(), count}, {got.data(), count}, 1, count);
      for (size_t i = 0; i < in.size(); ++i) {
        ASSERT_EQ(bits(expected[i]), bits(got[i]))
            << name(f) << " on " << name(target) << " at bits " << std::hex << bits(in[i]);
      }
    }
    in.clear();
  };
  for (const float point : special_points()) {
    for (int32_t step = -20; step <= 20; ++step) {
      for (const uint32_t sign : {0U, 0x80000000U})
        in.push_back(from_bits((bits(point) + static_cast<uint32_t>(step)) ^ sign));
    }
  }
  for (const uint32_t b :
       {0x7f800000U, 0xff800000U, 0x7fc00000U, 0xffc00000U, 0x7f800001U, 0x7fffffffU, 0xffffffffU, 0x80000000U}) {
    in.push_back(from_bits(b));
  }
  compare();
  for (uint64_t b = 0; b < uint64_t{1} << 32 && !HasFatalFailure(); b += stride) {
    in.push_back(from_bits(static_cast<uint32_t>(b)));
    if (static_cast<ptrdiff_t>(in.size()) == kChunk) compare();
  }
  compare();
}

TEST_P(EachFunction, KeepsWithinItsBlock) {
  const Function f = function();
  const TargetGuard guard;
  constexpr float kSentinel = -12345.0F;
  struct Shape {
    ptrdiff_t rows, cols, in_pitch, out_pitch;
  };
  const Shape shapes[] = {{1, 1, 1, 1},    {128, 1, 3, 2},   {5, 3, 3, 3},    {128, 16, 20, 16},
                          {7, 16, 0, 17},  {9, 17, 19, 23},  {3, 32, 40, 33}, {4, 63, 64, 70},
                          {2, 67, 67, 67}, {3, 100, 0, 101}, {2, 5, 2000, 5}};
  for (const SimdTarget target : simd_targets()) {
    ASSERT_TRUE(static_cast<bool>(set_simd_target(target)));
    for (const Shape& s : shapes) {
      std::vector<float> in(static_cast<size_t>(s.rows * s.in_pitch + s.cols));
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(static_cast<int>(i * 37 % 201) - 100) * 0.093F;
      in[0] = 3e9F;  // one large angle
      std::vector<float> out(static_cast<size_t>(s.rows * s.out_pitch + 64), kSentinel);
      function_block(f, {in.data(), s.in_pitch}, {out.data(), s.out_pitch}, s.rows, s.cols);
      for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(out.size()); ++i) {
        const ptrdiff_t r = i / s.out_pitch, c = i % s.out_pitch;
        const bool inside = r < s.rows && c < s.cols;
        const float expected = inside ? evaluate(f, in[static_cast<size_t>(r * s.in_pitch + c)]) : kSentinel;
        ASSERT_EQ(bits(out[static_cast<size_t>(i)]), bits(expected))
            << name(f) << " " << s.rows << "x" << s.cols << " at " << i;
      }
      if (s.in_pitch < s.cols) continue;
      std::vector<float> place = in;
      function_block(f, {place.data(), s.in_pitch}, {place.data(), s.in_pitch}, s.rows, s.cols);
      for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(in.size()); ++i) {
        const auto at = static_cast<size_t>(i);
        const bool inside = i / s.in_pitch < s.rows && i % s.in_pitch < s.cols;
        ASSERT_EQ(bits(place[at]), bits(inside ? evaluate(f, in[at]) : in[at])) << name(f) << " in place at " << i;
      }
    }
  }
}

TEST_P(EachFunction, WritesTheOneNan) {
  if (function() == Function::kCopy) {
    EXPECT_EQ(bits(evaluate(Function::kCopy, from_bits(0xffc12345))), 0xffc12345U);
    return;
  }
  for (const uint32_t b : {0x7fc00000U, 0xffc00000U, 0x7f800001U, 0xffffffffU}) {
    EXPECT_EQ(bits(evaluate(function(), from_bits(b))), kNan) << name(function());
  }
}

TEST_P(EachFunction, HasANameThatParsesBack) { EXPECT_EQ(parse_function(name(function())), function()); }

std::string test_name(const testing::TestParamInfo<int>& info) {
  return std::string(name(static_cast<Function>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Functions, EachFunction, testing::Range(0, kFunctionCount), test_name);

TEST(Functions, NamesAreThoseOfNkiLanguage) {
  EXPECT_EQ(parse_function("gelu_apprx_sigmoid_dx"), Function::kGeluApprxSigmoidDx);
  EXPECT_EQ(parse_function("arctan"), Function::kArctan);
  EXPECT_EQ(parse_function("sin"), Function::kSin);
  EXPECT_EQ(parse_function("tan"), Function::kTan);
  EXPECT_EQ(parse_function("atan"), std::nullopt);
}

struct Limit {
  Function f;
  float x, expected;
};

TEST(Functions, HaveTheirLimitsAtZeroAndInfinity) {
  constexpr float kMinusZero = -0.0F;
  const float half_pi = static_cast<float>(kPi / 2);
  const Limit limits[] = {
      {Function::kExp, kInfinity, kInfinity},
      {Function::kExp, -kInfinity, 0},
      {Function::kExp, 0, 1},
      {Function::kExp, 88.73F, kInfinity},
      {Function::kExp, 1e30F, kInfinity},
      {Function::kExp, -1e30F, 0},
      {Function::kExp, -104, 0},
      {Function::kExp, -103.5F, 0x1p-149F},
      {Function::kLog, 0, -kInfinity},
      {Function::kLog, kMinusZero, -kInfinity},
      {Function::kLog, kInfinity, kInfinity},
      {Function::kLog, 1, 0},
      {Function::kSqrt, kMinusZero, kMinusZero},
      {Function::kSqrt, kInfinity, kInfinity},
      {Function::kRsqrt, 0, kInfinity},
      {Function::kRsqrt, kInfinity, 0},
      {Function::kReciprocal, 0, kInfinity},
      {Function::kReciprocal, kMinusZero, -kInfinity},
      {Function::kReciprocal, -kInfinity, kMinusZero},
      {Function::kSigmoid, -kInfinity, 0},
      {Function::kSigmoid, kInfinity, 1},
      {Function::kSigmoid, 0, 0.5F},
      {Function::kSilu, kInfinity, kInfinity},
      {Function::kSilu, -kInfinity, kMinusZero},
      {Function::kSilu, -3e38F, kMinusZero},
      {Function::kSiluDx, kInfinity, 1},
      {Function::kSiluDx, -kInfinity, kMinusZero},
      {Function::kSiluDx, 0, 0.5F},
      {Function::kGelu, kInfinity, kInfinity},
      {Function::kGelu, -kInfinity, kMinusZero},
      {Function::kGelu, -3e38F, kMinusZero},
      {Function::kGelu, kMinusZero, kMinusZero},
      {Function::kGeluDx, kInfinity, 1},
      {Function::kGeluDx, -kInfinity, kMinusZero},
      {Function::kGeluDx, 0, 0.5F},
      {Function::kGeluApprxTanh, kInfinity, kInfinity},
      {Function::kGeluApprxTanh, -kInfinity, kMinusZero},
      {Function::kGeluApprxSigmoid, kInfinity, kInfinity},
      {Function::kGeluApprxSigmoid, -kInfinity, kMinusZero},
      {Function::kGeluApprxSigmoidDx, kInfinity, 1},
      {Function::kGeluApprxSigmoidDx, -kInfinity, kMinusZero},
      {Function::kTanh, kInfinity, 1},
      {Function::kTanh, -kInfinity, -1},
      {Function::kTanh, kMinusZero, kMinusZero},
      {Function::kSoftplus, kInfinity, kInfinity},
      {Function::kSoftplus, -kInfinity, 0},
      {Function::kMish, kInfinity, kInfinity},
      {Function::kMish, -kInfinity, kMinusZero},
      {Function::kErf, kInfinity, 1},
      {Function::kErf, -kInfinity, -1},
      {Function::kErf, kMinusZero, kMinusZero},
      {Function::kErfDx, kInfinity, 0},
      {Function::kErfDx, -kInfinity, 0},
      {Function::kArctan, kInfinity, half_pi},
      {Function::kArctan, -kInfinity, -half_pi},
      {Function::kArctan, kMinusZero, kMinusZero},
      {Function::kSin, kMinusZero, kMinusZero},
      {Function::kSinFull, kMinusZero, kMinusZero},
      {Function::kTan, kMinusZero, kMinusZero},
      {Function::kCos, 0, 1},
      {Function::kSign, 5, 1},
      {Function::kSign, -0x1p-149F, -1},
      {Function::kSign, kMinusZero, 0},  // numpy.sign(-0.0) is +0
      {Function::kSign, -kInfinity, -1},
      {Function::kAbs, kMinusZero, 0},
      {Function::kRelu, kMinusZero, 0},
      {Function::kRelu, -3, 0},
      {Function::kRelu, kInfinity, kInfinity},
      {Function::kSquare, -kInfinity, kInfinity},
  };
  for (const Limit& limit : limits) {
    EXPECT_EQ(bits(evaluate(limit.f, limit.x)), bits(limit.expected)) << name(limit.f) << "(" << limit.x << ")";
  }
}

TEST(Functions, AreNanOutsideTheirDomain) {
  const Limit limits[] = {{Function::kLog, -1, 0},          {Function::kLog, -kInfinity, 0},
                          {Function::kLog, -0x1p-149F, 0},  {Function::kSqrt, -1, 0},
                          {Function::kSqrt, -kInfinity, 0}, {Function::kRsqrt, -1, 0},
                          {Function::kSin, kInfinity, 0},   {Function::kSinFull, -kInfinity, 0},
                          {Function::kCos, kInfinity, 0},   {Function::kTan, kInfinity, 0}};
  for (const Limit& limit : limits)
    EXPECT_EQ(bits(evaluate(limit.f, limit.x)), kNan) << name(limit.f) << "(" << limit.x << ")";
}

// The public record: the instruction's sine of 9.0 is about 27.65.
TEST(Functions, TheRawSineIsACubicBeyondPi) {
  EXPECT_NEAR(evaluate(Function::kSin, 9.0F), 27.65F, 0.005F);
  EXPECT_NEAR(evaluate(Function::kSin, -9.0F), -27.65F, 0.005F);
  const auto pi = static_cast<float>(kPi);
  EXPECT_NEAR(evaluate(Function::kSin, std::nextafter(pi, 4.0F)), std::sin(std::nextafter(pi, 4.0F)), 1e-12F);
  for (const float x : {3.5F, 7.0F, 100.0F, 1e12F}) {
    const Real d = x - kPi;
    EXPECT_FLOAT_EQ(evaluate(Function::kSin, x), static_cast<float>(d * d * d / 6 - d));
  }
  EXPECT_EQ(evaluate(Function::kSin, 3e38F), kInfinity);
  EXPECT_NEAR(evaluate(Function::kSinFull, 9.0F), 0.41211849F, 1e-7F);
}

TEST(Functions, DocumentedRangesAreThoseOfTheManual) {
  EXPECT_EQ(documented_range(Function::kLog).low, std::ldexp(1.0F, -64));
  EXPECT_EQ(documented_range(Function::kSqrt).high, std::ldexp(1.0F, 118));
  EXPECT_EQ(documented_range(Function::kRsqrt).low, std::ldexp(1.0F, -87));
  EXPECT_EQ(documented_range(Function::kReciprocal).low, -std::ldexp(1.0F, 42));
  EXPECT_EQ(documented_range(Function::kArctan).high, static_cast<float>(kPi / 2));
  EXPECT_EQ(documented_range(Function::kExp).low, -kInfinity);
}

}  // namespace
}  // namespace sterna
