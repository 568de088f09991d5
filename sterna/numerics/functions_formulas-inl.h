// SPDX-License-Identifier: Apache-2.0
// The activation functions, each written once over an operation set O. No include guard: functions.cc includes this
// inside a namespace with plain C++ operations, functions_block.cc once per SIMD target, so every target runs the same
// sequence of correctly rounded operations and gives the same bits. Include functions.h first.
//
// An operation set has the types F, U (fp32 lanes and their bits) and D, Q (fp64 lanes and their bits) and the static
// functions used below: fma(a, b, c) = a * b + c and fnma(a, b, c) = c - a * b, both rounded once.
//
// All functions but exp work in fp64 and round to fp32 at the end, so their error is 0.5 ulp and a little. The
// polynomials interpolate the named function at the Chebyshev nodes of the named interval, computed with 60 digits; the
// error given is the largest one relative to the result, before rounding. Cut-offs such as 150 lie where the fp32
// result is already 0, 1 or x.
//
// min and max may lose a NaN on one target and keep it on another; evaluate_as() restores NaN from the input at the
// end.

/// The fp64 formula of a function; no definition for those that need none.
template <Function f>
struct Wide;

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <class O, int kTerms>
inline typename O::D polynomial(const double (&c)[kTerms], typename O::D x) {
  typename O::D sum = O::d(c[kTerms - 1]);
  for (int i = kTerms - 2; i >= 0; --i) sum = O::fma(sum, x, O::d(c[i]));
  return sum;
}

template <class O>
inline typename O::D clamp(typename O::D x, double low, double high) {
  return O::min(O::max(x, O::d(low)), O::d(high));
}

/// e^x - 1 = scale * fraction + (scale - 1), where scale = 2^n and fraction = e^r - 1, |r| <= ln(2) / 2.
template <class O>
struct Exponential {
  typename O::D scale, fraction;
};

template <class O>
inline Exponential<O> exponential(typename O::D x) {
  using D = typename O::D;
  // (e^r - 1 - r) / r^2 on [-0.3467, 0.3467]; error 1.3e-17.
  static constexpr double kTerms[] = {0.5000000000000001,     0.16666666666666669,    0.04166666666662404,
                                      0.008333333333330055,   0.0013888888917258759,  0.00019841269863088255,
                                      2.4801521225986432e-05, 2.7557268406190795e-06, 2.7620121717381933e-07,
                                      2.51004110820149e-08};
  // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
  const D shifted = O::fma(x, O::d(1.4426950408889634), O::d(6755399441055744.0));
  const D n = O::sub(shifted, O::d(6755399441055744.0));
  // ln 2 in two pieces of 53 bits (Cody and Waite).
  D r = O::fnma(n, O::d(0.6931471805599453), x);
  r = O::fnma(n, O::d(2.3190468138462996e-17), r);
  const D scale = O::from_bits(O::iadd(O::template shl<52>(O::bits(shifted)), O::q(0x3ff0000000000000)));
  return {scale, O::fma(O::mul(r, r), polynomial<O>(kTerms, r), r)};
}

/// e^x for |x| <= 700.
template <class O>
inline typename O::D exp_wide(typename O::D x) {
  const Exponential<O> e = exponential<O>(x);
  return O::fma(e.scale, e.fraction, e.scale);
}

/// 1 / (1 + e^-x) and 1 minus it, both without cancellation.
template <class O>
struct Logistic {
  typename O::D value, complement;
};
template <class O>
inline Logistic<O> logistic(typename O::D x) {
  const typename O::D e = exp_wide<O>(clamp<O>(O::sub(O::d(0), x), -150, 150));
  const typename O::D s = O::div(O::d(1), O::add(O::d(1), e));
  return {s, O::mul(e, s)};
}

/// The normal density phi(a) and Mills' ratio (1 - Phi(a)) / phi(a), for 0 <= a <= 15. Phi(-a) is their product,
/// without cancellation.
template <class O>
struct Normal {
  typename O::D density, mills;
};
template <class O>
inline Normal<O> normal(typename O::D a) {
  using D = typename O::D;
  // Mills' ratio over t = (a - 4) / (a + 4), a in [0, 15]; error 2.8e-17.
  static constexpr double kTerms[] = {0.23665238291356067,     -0.4271237467660587,     0.3117725582109452,
                                      -0.17974381473323037,    0.07736659066392933,     -0.021286526647171424,
                                      0.0012722694462308191,   0.0016012688765082777,   -0.0004692013514321538,
                                      -0.00011418930274775302, 7.181048166295711e-05,   1.1610158933809602e-05,
                                      -1.078594770908631e-05,  -2.080464944478238e-06,  1.6531564232157955e-06,
                                      5.175766281281965e-07,   -2.2596884133592856e-07, -1.297003841318468e-07,
                                      1.2640024704840308e-08,  2.2694760395452984e-08,  4.762999716330565e-09};
  const D t = O::div(O::sub(a, O::d(4)), O::add(a, O::d(4)));
  const D power = exp_wide<O>(O::mul(O::mul(a, a), O::d(-0.5)));
  return {O::mul(O::d(0.3989422804014327), power), polynomial<O>(kTerms, t)};
}

template <>
struct Wide<Function::kSigmoid> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return logistic<O>(x).value;
  }
};

/// x * sigmoid(k x). Far below zero the product is -0, which -inf * 0 would not give.
template <class O>
inline typename O::D silu_wide(typename O::D x, double k) {
  return O::mul(O::max(x, O::d(-150)), logistic<O>(O::mul(x, O::d(k))).value);
}
/// Its derivative: s (1 + z (1 - s)) with z = k x, s = sigmoid(z).
template <class O>
inline typename O::D silu_dx_wide(typename O::D x, double k) {
  const typename O::D z = clamp<O>(O::mul(x, O::d(k)), -150, 150);
  const Logistic<O> s = logistic<O>(z);
  return O::mul(s.value, O::fma(z, s.complement, O::d(1)));
}
template <>
struct Wide<Function::kSilu> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return silu_wide<O>(x, 1);
  }
};
template <>
struct Wide<Function::kSiluDx> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return silu_dx_wide<O>(x, 1);
  }
};
template <>
struct Wide<Function::kGeluApprxSigmoid> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return silu_wide<O>(x, 1.702);
  }
};
template <>
struct Wide<Function::kGeluApprxSigmoidDx> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return silu_dx_wide<O>(x, 1.702);
  }
};

/// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
template <>
struct Wide<Function::kGeluApprxTanh> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const D cubic = O::mul(x, O::fma(O::mul(x, x), O::d(0.044715), O::d(1)));
    return O::mul(O::max(x, O::d(-150)), logistic<O>(O::mul(cubic, O::d(1.5957691216057308))).value);
  }
};

/// x Phi(x).
template <>
struct Wide<Function::kGelu> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const Normal<O> n = normal<O>(O::min(O::abs(x), O::d(15)));
    const D tail = O::mul(n.density, n.mills);
    const D phi = O::select(O::lt(x, O::d(0)), tail, O::sub(O::d(1), tail));
    return O::mul(O::max(x, O::d(-15)), phi);
  }
};
/// Phi(x) + x phi(x); below zero phi(a) (Mills(a) - a) with a = -x, above it 1 minus the same.
template <>
struct Wide<Function::kGeluDx> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const D a = O::min(O::abs(x), O::d(15));
    const Normal<O> n = normal<O>(a);
    const D below = O::mul(n.density, O::sub(n.mills, a));
    return O::select(O::lt(x, O::d(0)), below, O::sub(O::d(1), below));
  }
};

/// Near zero an odd polynomial, elsewhere 1 - 2 (1 - Phi(sqrt(2) |x|)).
template <>
struct Wide<Function::kErf> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    // erf(x) / x over x^2 in [0, 0.25]; error 1.0e-13.
    static constexpr double kTerms[] = {1.1283791670954115,    -0.37612638899222695, 0.11283791417078554,
                                        -0.02686610953797284,  0.005223275687173556, -0.0008506764816853653,
                                        0.00010822775559285537};
    const D a = O::abs(x);
    const Normal<O> n = normal<O>(O::min(O::mul(a, O::d(1.4142135623730951)), O::d(15)));
    const D far = O::fnma(O::add(n.density, n.density), n.mills, O::d(1));
    const D near = O::mul(a, polynomial<O>(kTerms, O::mul(a, a)));
    return O::copy_sign(O::select(O::lt(a, O::d(0.5)), near, far), x);
  }
};
/// 2 / sqrt(pi) e^(-x^2).
template <>
struct Wide<Function::kErfDx> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return O::mul(O::d(1.1283791670955126), exp_wide<O>(O::max(O::sub(O::d(0), O::mul(x, x)), O::d(-150))));
  }
};

/// m / (m + 2) with m = e^(2 |x|) - 1.
template <>
struct Wide<Function::kTanh> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const D a = O::min(O::abs(x), O::d(20));
    const Exponential<O> e = exponential<O>(O::add(a, a));
    const D m = O::fma(e.scale, e.fraction, O::sub(e.scale, O::d(1)));
    return O::copy_sign(O::div(m, O::add(m, O::d(2))), x);
  }
};

/// max(x, 0) + log(1 + t), t = e^-|x|, where log(1 + t) = 2 atanh(t / (2 + t)).
template <>
struct Wide<Function::kSoftplus> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    // (atanh(s) / s - 1) / s^2 over s^2 in [0, 1/9]; error 7e-15.
    static constexpr double kTerms[] = {0.3333333333332766,  0.20000000006531557, 0.14285713056208418,
                                        0.11111198946011532, 0.09087843785035063, 0.0774990966400484,
                                        0.06076680915027026, 0.08904143097896165};
    const D t = exp_wide<O>(O::max(O::sub(O::d(0), O::abs(x)), O::d(-150)));
    const D s = O::div(t, O::add(t, O::d(2)));
    const D s2 = O::add(s, s);
    const D square = O::mul(s, s);
    return O::add(O::max(x, O::d(0)), O::fma(O::mul(s2, square), polynomial<O>(kTerms, square), s2));
  }
};

/// x tanh(log(1 + e)) = x n / (n + 2) with e = e^x, n = e (e + 2).
template <>
struct Wide<Function::kMish> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const D e = exp_wide<O>(clamp<O>(x, -150, 150));
    const D n = O::mul(e, O::add(e, O::d(2)));
    return O::mul(O::max(x, O::d(-150)), O::div(n, O::add(n, O::d(2))));
  }
};

/// Natural logarithm of a positive finite fp32 value.
template <>
struct Wide<Function::kLog> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    // (atanh(s) / s - 1) / s^2 over s^2 in [0, 0.02945]; error 7e-16.
    static constexpr double kTerms[] = {0.33333333333331033, 0.2000000000561559,  0.14285712065245487,
                                        0.11111431566218855, 0.09070078275081414, 0.0831118994278082};
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e00000000, kOne = 0x3ff0000000000000;
    // x = 2^n m with m in [sqrt(1/2), sqrt(2)): shift the scale so that the exponent field changes at sqrt(1/2).
    const auto shifted = O::iadd(O::bits(x), O::q(kOne - kSqrtHalf));
    const D m = O::from_bits(O::iadd(O::iand(shifted, O::q(0x000fffffffffffff)), O::q(kSqrtHalf)));
    // The exponent field as a double: planted under the exponent of 2^52.
    const D biased = O::from_bits(O::iadd(O::template shr<52>(shifted), O::q(0x4330000000000000)));
    const D n = O::sub(biased, O::d(4503599627370496.0 + 1023.0));
    const D s = O::div(O::sub(m, O::d(1)), O::add(m, O::d(1)));
    const D s2 = O::add(s, s);
    const D square = O::mul(s, s);
    return O::fma(n, O::d(0.6931471805599453), O::fma(O::mul(s2, square), polynomial<O>(kTerms, square), s2));
  }
};

template <>
struct Wide<Function::kRsqrt> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    return O::div(O::d(1), O::sqrt(x));
  }
};

#include "sterna/numerics/functions_angles-inl.h"

/// x, or limit with its sign where it is larger; any number for NaN.
template <class O>
inline typename O::F within(typename O::F x, float limit) {
  if constexpr (requires { O::within(x, limit); })
    return O::within(x, limit);
  else
    return O::min(O::max(x, O::f(-limit)), O::f(limit));
}

/// p * 2^n, rounded once, for p in [0.5, 2) and a whole n of at most 250; `shifted` is n + 1.5 * 2^23.
template <class O>
inline typename O::F times_power_of_two(typename O::F p, typename O::F n, typename O::F shifted) {
  using F = typename O::F;
  if constexpr (requires { O::times_power_of_two(p, n); }) {
    return O::times_power_of_two(p, n);
  } else {
    // In two halves: the first is exact in the exponent field, the second rounds once where the result is subnormal,
    // and overflows to infinity.
    const auto whole = O::isub(O::bits(shifted), O::u(0x4b400000));
    const auto half = O::template sar<1>(whole);
    const F first = O::from_bits(O::iadd(O::bits(p), O::template shl<23>(half)));
    const F second = O::from_bits(O::iadd(O::template shl<23>(O::isub(whole, half)), O::u(0x3f800000)));
    return O::mul(first, second);
  }
}

/// e^x in fp32 lanes, the one function whose speed decides a kernel's. Error below 1 ulp.
template <class O>
inline typename O::F exp_narrow(typename O::F x) {
  using F = typename O::F;
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23
  // Below -104 the result is under half of the least subnormal, above 89 it overflows.
  x = within<O>(x, 104.0F);
  const F shifted = O::fma(x, O::f(0x1.715476p+0F), O::f(kMagic));
  const F n = O::sub(shifted, O::f(kMagic));
  F r = O::fnma(n, O::f(0x1.62e43p-1F), x);  // exact
  r = O::fnma(n, O::f(-0x1.05c61p-29F), r);
  // (e^r - 1 - r) / r^2 on [-0.3467, 0.3467]; error 8e-9.
  F p = O::f(0x1.6d112cp-10F);
  p = O::fma(p, r, O::f(0x1.120b9p-7F));
  p = O::fma(p, r, O::f(0x1.55551ap-5F));
  p = O::fma(p, r, O::f(0x1.5554dcp-3F));
  p = O::fma(p, r, O::f(0.5F));
  p = O::fma(p, r, O::f(1.0F));
  p = O::fma(p, r, O::f(1.0F));
  return times_power_of_two<O>(p, n, shifted);
}

template <Function f>
inline constexpr bool kIsWide = requires { sizeof(Wide<f>); };

template <class O, Function f>
inline typename O::F evaluate_narrow(typename O::F x) {
  using F = typename O::F;
  const F zero = O::f(0.0F);
  if constexpr (f == Function::kSquare) return O::mul(x, x);
  // No slope comes with this call, so prelu is relu here: the documented slope is the instruction's relu_param operand.
  else if constexpr (f == Function::kRelu || f == Function::kPrelu)
    return O::select(O::lt(zero, x), x, zero);
  else if constexpr (f == Function::kExp)
    return exp_narrow<O>(x);
  else if constexpr (f == Function::kSqrt)
    return O::sqrt(x);
  else if constexpr (f == Function::kReciprocal)
    return O::div(O::f(1.0F), x);
  // As numpy: +0 for both zeros.
  else if constexpr (f == Function::kSign)
    return O::select(O::lt(zero, x), O::f(1.0F), O::select(O::lt(x, zero), O::f(-1.0F), zero));
  else
    return O::abs(x);
}

template <class O, Function f>
inline typename O::F evaluate_as(typename O::F x) {
  using F = typename O::F;
  if constexpr (f == Function::kCopy) {
    return x;  // keeps every bit
  } else {
    const F nan = O::from_bits(O::u(0x7fc00000));
    F r;
    if constexpr (kIsWide<f>)
      r = O::template wide<Wide<f>>(x);
    else
      r = evaluate_narrow<O, f>(x);
    if constexpr (f == Function::kLog) {
      const F infinity = O::from_bits(O::u(0x7f800000)), zero = O::f(0.0F);
      r = O::select(O::lt(x, infinity), r, infinity);
      r = O::select(O::lt(zero, x), r, O::select(O::lt(x, zero), nan, O::from_bits(O::u(0xff800000))));
    }
    // A root of a negative number and an infinite angle give a NaN of the processor's own choice.
    constexpr bool kMakesNan =
        f == Function::kSqrt || f == Function::kRsqrt || f == Function::kSin || kNeedsLargeAngle<f>;
    if constexpr (kMakesNan) r = O::select(O::is_nan(r), nan, r);
    return O::select(O::is_nan(x), nan, r);
  }
}
