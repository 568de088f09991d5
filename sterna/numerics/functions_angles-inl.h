// SPDX-License-Identifier: Apache-2.0
// Sine, cosine, tangent and arctangent: a part of functions_formulas-inl.h, whose remarks hold here too. No include
// guard.

/// Above 1, pi/2 - arctan(1 / |x|).
template <>
struct Wide<Function::kArctan> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    // (arctan(z) / z - 1) / z^2 over z^2 in [0, 1]; error 9e-13.
    static constexpr double kTerms[] = {
        -0.3333333333316827,  0.19999999935142282,   -0.14285710020067355,   0.11110999508742127,  -0.09089368031943441,
        0.07679381276430296,  -0.06595124596280294,  0.05606687035291111,    -0.04494995162541376, 0.03165803796192987,
        -0.01798369324520612, 0.0074572473304224075, -0.0019608268978377713, 0.0002420321329492996};
    const D a = O::abs(x);
    const auto inverted = O::lt(O::d(1), a);
    const D z = O::select(inverted, O::div(O::d(1), a), a);
    const D square = O::mul(z, z);
    const D angle = O::fma(O::mul(z, square), polynomial<O>(kTerms, square), z);
    return O::copy_sign(O::select(inverted, O::sub(O::d(1.5707963267948966), angle), angle), x);
  }
};

/// An angle a >= 0 as quadrant * pi/2 + rest, |rest| <= pi/4; only the two low bits of the quadrant count.
template <class O>
struct Angle {
  typename O::D rest;
  typename O::Q quadrant;
};

/// Below this an fp32 angle is reduced in fp64 lanes: the quadrant is exact, and pi/2 in two pieces of 53 bits errs by
/// less than 2^27 * 2^-107, while no fp32 value is nearer than about 2^-30 to a multiple of pi/2. Larger ones:
/// reduce_large().
inline constexpr float kLargeAngle = 134217728.0F;  // 2^27

/// Functions whose large arguments take the integer reduction of evaluate(), one element at a time.
template <Function f>
inline constexpr bool kNeedsLargeAngle = f == Function::kSinFull || f == Function::kCos || f == Function::kTan;

template <class O>
inline Angle<O> reduce_angle(typename O::D a) {
  using D = typename O::D;
  const D shifted = O::fma(a, O::d(0.6366197723675814), O::d(6755399441055744.0));
  const D n = O::sub(shifted, O::d(6755399441055744.0));
  D rest = O::fnma(n, O::d(1.5707963267948966), a);
  rest = O::fnma(n, O::d(6.123233995736766e-17), rest);
  return {rest, O::bits(shifted)};
}

template <class O>
struct SineCosine {
  typename O::D sine, cosine;
};
template <class O>
inline SineCosine<O> sine_cosine(typename O::D r) {
  using D = typename O::D;
  // (sin(r) / r - 1) / r^2 and (cos(r) - 1) / r^2 over r^2 in [0, pi^2 / 16]; errors 1.7e-14 and 2.2e-13.
  static constexpr double kSine[] = {-0.16666666666663885, 0.008333333331078323, -0.00019841266916110632,
                                     2.7555990664728974e-06, -2.4805611712122475e-08};
  static constexpr double kCosine[] = {-0.49999999999963873, 0.041666666637384386, -0.0013888885090262895,
                                       2.4799861846361453e-05, -2.7237108576245085e-07};
  const D square = O::mul(r, r);
  return {O::fma(O::mul(r, square), polynomial<O>(kSine, square), r),
          O::fma(square, polynomial<O>(kCosine, square), O::d(1))};
}

/// Sine of a reduced angle. Add 1 to the quadrant for the cosine.
template <class O>
inline typename O::D sine_of(typename O::D rest, typename O::Q quadrant) {
  const SineCosine<O> v = sine_cosine<O>(rest);
  const typename O::D magnitude = O::select_if_odd(quadrant, v.cosine, v.sine);
  // Bit 1 of the quadrant is the sign.
  const typename O::Q sign = O::template shl<63>(O::template shr<1>(quadrant));
  return O::from_bits(O::ixor(O::bits(magnitude), sign));
}
template <class O>
inline typename O::D tangent_of(typename O::D rest, typename O::Q quadrant) {
  const SineCosine<O> v = sine_cosine<O>(rest);
  const typename O::D numerator = O::select_if_odd(quadrant, O::sub(O::d(0), v.cosine), v.sine);
  return O::div(numerator, O::select_if_odd(quadrant, v.sine, v.cosine));
}
/// value * sign of x.
template <class O>
inline typename O::D flip_sign(typename O::D value, typename O::D x) {
  return O::from_bits(O::ixor(O::bits(value), O::iand(O::bits(x), O::q(0x8000000000000000))));
}

template <>
struct Wide<Function::kSinFull> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    const Angle<O> angle = reduce_angle<O>(O::abs(x));
    return flip_sign<O>(sine_of<O>(angle.rest, angle.quadrant), x);
  }
};
template <>
struct Wide<Function::kCos> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    const Angle<O> angle = reduce_angle<O>(O::abs(x));
    return sine_of<O>(angle.rest, O::iadd(angle.quadrant, O::q(1)));
  }
};
template <>
struct Wide<Function::kTan> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    const Angle<O> angle = reduce_angle<O>(O::abs(x));
    return flip_sign<O>(tangent_of<O>(angle.rest, angle.quadrant), x);
  }
};

/// The instruction's sine. Inside [-pi, pi], its documented range, the sine. Outside it the hardware has no range
/// reduction and the public record is one point, sin(9.0) = about 27.65, said to lie on a cubic-like polynomial. The
/// cubic Taylor polynomial of the sine at pi, -(x - pi) + (x - pi)^3 / 6, gives 27.653 at 9 and continues the sine
/// smoothly, as the last piece of a table of cubics would. Trust: estimated. At infinity: NaN.
template <>
struct Wide<Function::kSin> {
  template <class O>
  static typename O::D apply(typename O::D x) {
    using D = typename O::D;
    const D a = O::abs(x);
    const Angle<O> angle = reduce_angle<O>(a);
    const D inside = sine_of<O>(angle.rest, angle.quadrant);
    const D beyond = O::sub(a, O::d(3.141592653589793));
    // -d + d^3 / 6; inf - inf is the wanted NaN.
    const D cubic = O::sub(O::mul(O::mul(beyond, O::mul(beyond, beyond)), O::d(1.0 / 6)), beyond);
    // pi rounded to fp32 still counts as inside.
    return flip_sign<O>(O::select(O::lt(O::d(3.1415927410125732), a), cubic, inside), x);
  }
};
