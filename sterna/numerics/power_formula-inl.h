// SPDX-License-Identifier: Apache-2.0
// x to the power y, written once over an operation set. No include guard: include it after functions_formulas-inl.h,
// whose remarks hold here too. It stands in for the C library's pow, whose last bit differs between machines.
//
// The exponential and the logarithm err by less than 1e-15, and |y log x| is below 105 wherever the result is finite
// and not 0. So the fp64 result errs by less than 2^-42, and the fp32 result is the correctly rounded one except where
// the exact value lies that near to a tie.

struct Power {
  /// Cases as in C: pow(x, 0) and pow(1, y) are 1, even of NaN; a negative x needs a whole y, and its result is
  /// negative where y is odd. Infinities count as even.
  template <class O>
  static typename O::D apply(typename O::D x, typename O::D y) {
    using D = typename O::D;
    const D zero = O::d(0), one = O::d(1), infinity = O::from_bits(O::q(0x7ff0000000000000));
    const D a = O::abs(x);
    D log = Wide<Function::kLog>::template apply<O>(a);
    log = O::select(O::lt(zero, a), O::select(O::lt(a, infinity), log, infinity), O::sub(zero, infinity));
    D r = exp_wide<O>(clamp<O>(O::mul(y, log), -150, 150));
    // Powers that are exact ties in fp32, such as squares of 13-bit values, have at most 25 bits. Rounding to 40 bits
    // takes the error off them.
    r = O::from_bits(O::iand(O::iadd(O::bits(r), O::q(0x800)), O::q(0xfffffffffffff000)));
    r = O::select(O::eq(a, one), one, r);
    // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits. From 2^24 on every fp32 value is even.
    const D bounded = O::min(O::abs(y), O::d(33554432.0));
    const D shifted = O::add(bounded, O::d(6755399441055744.0));
    const auto is_whole = O::eq(O::sub(shifted, O::d(6755399441055744.0)), bounded);
    r = O::select_if_odd(O::bits(shifted), O::select(is_whole, O::copy_sign(r, x), r), r);
    const D nan = O::from_bits(O::q(0x7ff8000000000000));
    r = O::select(O::lt(x, zero), O::select(O::lt(a, infinity), O::select(is_whole, r, nan), r), r);
    r = O::select(O::is_nan(x), nan, O::select(O::is_nan(y), nan, r));
    return O::select(O::eq(y, zero), one, O::select(O::eq(x, one), one, r));
  }
};
