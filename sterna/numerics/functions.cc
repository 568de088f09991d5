// SPDX-License-Identifier: Apache-2.0
// Names, documented ranges and the scalar definitions of the activation functions.
#include "sterna/numerics/functions.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "sterna/numerics/operations_scalar.h"

namespace sterna {
namespace {

#include "sterna/numerics/functions_formulas-inl.h"

/// Reduction of a finite a >= 2^27 (Payne and Hanek): a = m 2^e with a 24-bit m, so of 2/pi only the 96 bits from
/// weight 2^(1 - e) on matter: higher ones give whole turns, lower ones less than 2^-70.
Angle<ScalarOps> reduce_large(float a) {
  static constexpr uint32_t kTwoOverPi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                            0xdb629599, 0x3c439041, 0xfe5163ab};
  __extension__ using Wide = unsigned __int128;
  __extension__ using SignedWide = __int128;
  const uint32_t bits = std::bit_cast<uint32_t>(a);
  const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  const uint32_t first = (bits >> 23) - 150 - 2;  // the first bit of 2/pi that matters, counted from the binary point
  Wide window = 0;
  for (uint32_t i = 0; i < 4; ++i) window = (window << 32) | kTwoOverPi[first / 32 + i];
  window = (window << (first % 32)) >> 32;
  // The product modulo 2^96: two bits of quadrant, 94 of fraction, rounded to the nearest quadrant.
  const Wide product = (window * mantissa) << 32 >> 32;
  const Wide half = Wide{1} << 93;
  const Wide quadrant = (product + half) >> 94;
  const SignedWide fraction = static_cast<SignedWide>(product) - static_cast<SignedWide>(quadrant << 94);
  const double quarter_turns = static_cast<double>(fraction) * 0x1p-94;
  return {quarter_turns * 1.5707963267948966, static_cast<uint64_t>(quadrant)};
}

template <Function f>
float evaluate_large_angle(float x) {
  const Angle<ScalarOps> angle = reduce_large(std::fabs(x));
  double r = 0;
  if constexpr (f == Function::kCos)
    r = sine_of<ScalarOps>(angle.rest, angle.quadrant + 1);
  else if constexpr (f == Function::kTan)
    r = flip_sign<ScalarOps>(tangent_of<ScalarOps>(angle.rest, angle.quadrant), x);
  else
    r = flip_sign<ScalarOps>(sine_of<ScalarOps>(angle.rest, angle.quadrant), x);
  return static_cast<float>(r);
}

template <Function f>
float evaluate_scalar(float x) {
  if constexpr (kNeedsLargeAngle<f>) {
    if (std::fabs(x) >= kLargeAngle && std::fabs(x) < std::numeric_limits<float>::infinity()) {
      return evaluate_large_angle<f>(x);
    }
  }
  return evaluate_as<ScalarOps, f>(x);
}

template <int... i>
constexpr std::array<float (*)(float), sizeof...(i)> scalar_table(std::integer_sequence<int, i...>) {
  return {evaluate_scalar<static_cast<Function>(i)>...};
}
constexpr auto kScalarTable = scalar_table(std::make_integer_sequence<int, kFunctionCount>{});

// In the order of the enumeration.
constexpr std::string_view kNames[] = {"copy",
                                       "square",
                                       "sigmoid",
                                       "relu",
                                       "prelu",
                                       "gelu",
                                       "gelu_dx",
                                       "gelu_apprx_tanh",
                                       "gelu_apprx_sigmoid",
                                       "gelu_apprx_sigmoid_dx",
                                       "silu",
                                       "silu_dx",
                                       "tanh",
                                       "softplus",
                                       "mish",
                                       "erf",
                                       "erf_dx",
                                       "exp",
                                       "log",
                                       "sin",
                                       "arctan",
                                       "sqrt",
                                       "rsqrt",
                                       "reciprocal",
                                       "sign",
                                       "abs",
                                       "sin_full",
                                       "cos",
                                       "tan"};
static_assert(std::size(kNames) == kFunctionCount);

}  // namespace

std::string_view name(Function f) { return kNames[static_cast<int>(f)]; }

std::optional<Function> parse_function(std::string_view text) {
  for (int i = 0; i < kFunctionCount; ++i) {
    if (kNames[i] == text) return static_cast<Function>(i);
  }
  return std::nullopt;
}

float evaluate(Function f, float x) { return kScalarTable[static_cast<size_t>(f)](x); }

}  // namespace sterna
