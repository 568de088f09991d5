// SPDX-License-Identifier: Apache-2.0
// Names, documented ranges and the scalar definitions of the activation functions.
#include "sterna/numerics/functions.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace sterna {
namespace {

/// Plain C++ operations, each rounded once (the build forbids contraction).
struct ScalarOps {
  using F = float;
  using U = uint32_t;
  using D = double;
  using Q = uint64_t;

  static F f(float v) { return v; }
  static U u(uint32_t v) { return v; }
  static D d(double v) { return v; }
  static Q q(uint64_t v) { return v; }

  template <class T>
  static T add(T a, T b) {
    return a + b;
  }
  template <class T>
  static T sub(T a, T b) {
    return a - b;
  }
  template <class T>
  static T mul(T a, T b) {
    return a * b;
  }
  template <class T>
  static T div(T a, T b) {
    return a / b;
  }
  template <class T>
  static T fma(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  template <class T>
  static T fnma(T a, T b, T c) {
    return std::fma(-a, b, c);
  }
  template <class T>
  static T sqrt(T a) {
    return std::sqrt(a);
  }
  template <class T>
  static T min(T a, T b) {
    return a < b ? a : b;
  }
  template <class T>
  static T max(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  static T abs(T a) {
    return std::fabs(a);
  }
  template <class T>
  static T copy_sign(T magnitude, T sign) {
    return std::copysign(magnitude, sign);
  }
  template <class T>
  static bool lt(T a, T b) {
    return a < b;
  }
  template <class T>
  static bool is_nan(T a) {
    return a != a;
  }
  template <class T>
  static T select(bool condition, T yes, T no) {
    return condition ? yes : no;
  }
  static D select_if_odd(Q n, D odd, D even) { return n & 1 ? odd : even; }

  static U bits(F v) { return std::bit_cast<U>(v); }
  static Q bits(D v) { return std::bit_cast<Q>(v); }
  static F from_bits(U v) { return std::bit_cast<F>(v); }
  static D from_bits(Q v) { return std::bit_cast<D>(v); }
  template <class T>
  static T iadd(T a, T b) {
    return a + b;
  }
  template <class T>
  static T isub(T a, T b) {
    return a - b;
  }
  template <class T>
  static T iand(T a, T b) {
    return a & b;
  }
  template <class T>
  static T ixor(T a, T b) {
    return a ^ b;
  }
  template <int n, class T>
  static T shl(T a) {
    return a << n;
  }
  template <int n, class T>
  static T shr(T a) {
    return a >> n;
  }
  template <int n>
  static U sar(U a) {
    return static_cast<U>(static_cast<int32_t>(a) >> n);
  }

  template <class Formula>
  static F wide(F x) {
    return static_cast<F>(Formula::template apply<ScalarOps>(static_cast<D>(x)));
  }
};

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

// Source: "Supported Activation Functions" of the NKI documentation. Functions without a row there are valid
// everywhere. The reciprocal's row also excludes |x| < 2^-42, which a pair cannot say.
FunctionRange documented_range(Function f) {
  constexpr float kPi = 3.14159274F;
  switch (f) {
    case Function::kLog: return {0x1p-64F, 0x1p64F};
    case Function::kSin: return {-kPi, kPi};
    case Function::kArctan: return {-kPi / 2, kPi / 2};
    case Function::kSqrt: return {0x1p-116F, 0x1p118F};
    case Function::kRsqrt: return {0x1p-87F, 0x1p97F};
    case Function::kReciprocal: return {-0x1p42F, 0x1p42F};
    default: return {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  }
}

float evaluate(Function f, float x) { return kScalarTable[static_cast<size_t>(f)](x); }

}  // namespace sterna
