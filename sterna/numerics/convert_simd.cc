// SPDX-License-Identifier: Apache-2.0
// The definitions are in scalar_convert.h; this file gives their bits, in 32-bit integer lanes, one vector of fp32 at a
// time.
#include "sterna/numerics/convert_simd.h"

#include <cstring>

#include "sterna/numerics/scalar_convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/convert_simd.cc"
#include "sterna/numerics/simd.h"
// Order matters: simd.h, then these two.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using FloatVector = hn::Vec<Floats>;
using IntVector = hn::Vec<Ints>;

constexpr int32_t kMagnitude = 0x7fffffff;
constexpr int32_t kInfinity = 0x7f800000;
constexpr int32_t kNan = 0x7fc00000;

HWY_INLINE IntVector constant(int64_t bits) { return hn::Set(Ints(), static_cast<int32_t>(bits)); }
HWY_INLINE IntVector bits_of(FloatVector v) { return hn::BitCast(Ints(), v); }
HWY_INLINE FloatVector float_of(IntVector v) { return hn::BitCast(Floats(), v); }
template <int count>
HWY_INLINE IntVector shift_right_logical(IntVector v) {
  return hn::BitCast(Ints(), hn::ShiftRight<count>(hn::BitCast(hn::RebindToUnsigned<Ints>(), v)));
}

/// Small elements to 32-bit lanes, zero- or sign-extended by the type of `in`, and back. The way back keeps the low
/// bits of values that fit the type.
template <class Small>
HWY_INLINE IntVector load_small(const Small* in) {
  const hn::Rebind<Small, Ints> d;
  if constexpr (sizeof(Small) == 4)
    return hn::BitCast(Ints(), hn::LoadU(d, in));
  else
    return hn::PromoteTo(Ints(), hn::LoadU(d, in));
}
template <class Small>
HWY_INLINE void store_small(IntVector v, Small* out) {
  const hn::Rebind<Small, Ints> d;
  if constexpr (sizeof(Small) == 4)
    hn::StoreU(hn::BitCast(d, v), d, out);
  else
    hn::StoreU(hn::DemoteTo(d, v), d, out);
}

/// The 8-bit floats and float4_e2m1.
template <DType t>
HWY_INLINE FloatVector decode_small_float(IntVector bits) {
  constexpr scalar::FloatFormat f = scalar::format_of(t);
  const IntVector magnitude = hn::And(bits, constant(f.all_ones()));
  const IntVector sign = hn::ShiftLeft<31>(shift_right_logical<f.exponent_bits + f.mantissa_bits>(bits));
  const IntVector normal = hn::Add(hn::ShiftLeft<23 - f.mantissa_bits>(magnitude), constant((127 - f.bias) << 23));
  // A subnormal read as if it had a leading one, less that one: exact.
  const IntVector with_one = hn::Add(normal, constant(1 << 23));
  const IntVector subnormal = bits_of(hn::Sub(float_of(with_one), float_of(constant((128 - f.bias) << 23))));
  IntVector out = hn::IfThenElse(hn::Lt(magnitude, constant(1 << f.mantissa_bits)), subnormal, normal);
  if constexpr (f.overflow == scalar::Overflow::kToInfinity)
    out = hn::IfThenElse(hn::Eq(magnitude, constant(f.infinity())), constant(kInfinity), out);
  out = hn::Or(out, sign);
  if constexpr (f.overflow != scalar::Overflow::kSaturates) {
    constexpr int32_t last_number = f.overflow == scalar::Overflow::kToNan ? f.max_finite() : f.infinity();
    out = hn::IfThenElse(hn::Gt(magnitude, constant(last_number)), constant(kNan), out);
  }
  return float_of(out);
}

template <DType t>
HWY_INLINE IntVector encode_small_float(FloatVector v) {
  constexpr scalar::FloatFormat f = scalar::format_of(t);
  constexpr int dropped = 23 - f.mantissa_bits;
  const IntVector bits = bits_of(v);
  // From here to the NaN selection below, a NaN is as good as infinity.
  const IntVector magnitude = hn::Min(hn::And(bits, constant(kMagnitude)), constant(kInfinity));
  const IntVector odd = hn::And(hn::ShiftRight<dropped>(magnitude), constant(1));
  const IntVector carried = hn::Add(hn::Add(magnitude, constant((1 << (dropped - 1)) - 1)), odd);
  const IntVector normal = hn::Sub(hn::ShiftRight<dropped>(carried), constant((127 - f.bias) << f.mantissa_bits));
  // Added to a number whose last place is the smallest subnormal, the hardware's addition rounds to nearest even for
  // us.
  const IntVector anchor = constant((127 + 24 - f.bias - f.mantissa_bits) << 23);
  const IntVector subnormal = hn::Sub(bits_of(hn::Add(float_of(magnitude), float_of(anchor))), anchor);
  IntVector out = hn::IfThenElse(hn::Lt(magnitude, constant((128 - f.bias) << 23)), subnormal, normal);
  out = hn::Min(out, constant(f.overflow_result()));
  const IntVector sign = hn::And(shift_right_logical<31 - f.sign_shift()>(bits), constant(1 << f.sign_shift()));
  const IntVector with_sign = hn::Or(out, sign);
  if constexpr (f.overflow == scalar::Overflow::kToInfinity)
    return hn::IfThenElse(hn::Gt(hn::And(bits, constant(kMagnitude)), constant(kInfinity)), constant(f.nan()),
                          with_sign);
  if constexpr (f.overflow == scalar::Overflow::kToNan)
    return hn::IfThenElse(hn::Eq(out, constant(f.nan())), constant(f.nan()), with_sign);
  return with_sign;
}

/// To nearest even at bit `dropped`; NaN canonical. For the formats with fp32's exponent.
template <int dropped>
HWY_INLINE IntVector round_mantissa(FloatVector v) {
  const IntVector bits = bits_of(v);
  const IntVector odd = hn::And(shift_right_logical<dropped>(bits), constant(1));
  const IntVector carried = hn::Add(hn::Add(bits, constant((1 << (dropped - 1)) - 1)), odd);
  const IntVector is_nan = hn::VecFromMask(Ints(), hn::Gt(hn::And(bits, constant(kMagnitude)), constant(kInfinity)));
  return shift_right_logical<dropped>(hn::IfVecThenElse(is_nan, constant(kNan), carried));
}

HWY_INLINE FloatVector canonical_nan(FloatVector v) {
  return hn::IfThenElse(hn::Eq(v, v), v, float_of(constant(kNan)));
}

HWY_INLINE FloatVector decode_e8m0(IntVector bits) {
  IntVector out = hn::ShiftLeft<23>(bits);
  out = hn::IfThenElse(hn::Eq(bits, hn::Zero(Ints())), constant(0x00400000), out);
  return float_of(hn::IfThenElse(hn::Eq(bits, constant(0xff)), constant(kNan), out));
}
HWY_INLINE IntVector encode_e8m0(FloatVector v) {
  const IntVector bits = bits_of(v);
  const IntVector normal = shift_right_logical<23>(hn::Add(bits, constant(0x00400000)));
  const IntVector subnormal = hn::IfThenElseZero(hn::Gt(bits, constant(0x005fffff)), constant(1));
  const IntVector positive = hn::IfThenElse(hn::Lt(bits, constant(0x00800000)), subnormal, normal);
  // Zero and the negatives are NaN; so are infinity and NaN, which come out as 255 or 256.
  return hn::IfThenElse(hn::Gt(bits, hn::Zero(Ints())), hn::Min(positive, constant(0xff)), constant(0xff));
}

/// uint32 to fp32 in two exact halves and one rounding.
HWY_INLINE FloatVector decode_uint32(IntVector bits) {
  const FloatVector high = hn::ConvertTo(Floats(), shift_right_logical<16>(bits));
  const FloatVector low = hn::ConvertTo(Floats(), hn::And(bits, constant(0xffff)));
  return hn::Add(hn::Mul(high, hn::Set(Floats(), 65536.0f)), low);  // the product is exact
}

/// Nearest even, clamped to the range of T, for types narrower than 32 bits; NaN gives 0.
template <class T>
HWY_INLINE IntVector encode_narrow_integer(FloatVector v) {
  const FloatVector number = hn::IfThenElseZero(hn::Eq(v, v), v);
  const FloatVector low = hn::Set(Floats(), static_cast<float>(hwy::LimitsMin<T>()));
  const FloatVector high = hn::Set(Floats(), static_cast<float>(hwy::LimitsMax<T>()));
  return hn::NearestInt(hn::Max(low, hn::Min(number, high)));
}
/// Above 2^24 every fp32 is an integer, so clamping to the largest fp32 below the limit and patching what was above is
/// exact.
HWY_INLINE IntVector encode_int32(FloatVector v) {
  const FloatVector number = hn::IfThenElseZero(hn::Eq(v, v), v);
  const FloatVector low = hn::Set(Floats(), -2147483648.0f);
  const FloatVector high = hn::Set(Floats(), 2147483520.0f);
  const IntVector nearest = hn::NearestInt(hn::Max(low, hn::Min(number, high)));
  const auto too_large = hn::RebindMask(Ints(), hn::Gt(number, high));
  return hn::IfThenElse(too_large, constant(0x7fffffff), nearest);
}
HWY_INLINE IntVector encode_uint32(FloatVector v) {
  const FloatVector positive = hn::IfThenElseZero(hn::Gt(v, hn::Zero(Floats())), v);
  const FloatVector high = hn::Set(Floats(), 4294967040.0f);
  const FloatVector two_31 = hn::Set(Floats(), 2147483648.0f);
  const FloatVector clamped = hn::Min(positive, high);
  const auto upper_half = hn::Ge(clamped, two_31);
  const IntVector low_bits = hn::NearestInt(hn::Sub(clamped, hn::IfThenElseZero(upper_half, two_31)));  // exact
  const IntVector top_bit = hn::IfThenElseZero(hn::RebindMask(Ints(), upper_half), constant(1LL << 31));
  const auto too_large = hn::RebindMask(Ints(), hn::Gt(v, high));
  return hn::IfThenElse(too_large, constant(-1), hn::Or(low_bits, top_bit));
}

/// What one element is in memory: signed where promotion must extend the sign.
template <DType t>
using Element =
    typename std::conditional_t<is_integer(t) && t != DType::kBool, std::type_identity<scalar::IntegerOf<t>>,
                                std::type_identity<scalar::Storage<t>>>::type;

template <DType t>
HWY_INLINE FloatVector decode_vector(const Element<t>* in) {
  if constexpr (t == DType::kFloat16) {
    const hn::Rebind<uint16_t, Ints> d16;
    const hn::Rebind<hwy::float16_t, Ints> df16;
    return canonical_nan(hn::PromoteTo(Floats(), hn::BitCast(df16, hn::LoadU(d16, in))));
  } else {
    const IntVector bits = load_small(in);
    if constexpr (t == DType::kFloat32)
      return float_of(bits);
    else if constexpr (t == DType::kTFloat32)
      return float_of(hn::IfThenElse(hn::Gt(hn::And(bits, constant(kMagnitude)), constant(kInfinity)), constant(kNan),
                                     hn::And(bits, constant(~0x1fff))));
    else if constexpr (t == DType::kBFloat16)
      return canonical_nan(float_of(hn::ShiftLeft<16>(bits)));
    else if constexpr (t == DType::kFloat8E8M0)
      return decode_e8m0(bits);
    else if constexpr (is_float(t))
      return decode_small_float<t>(bits);
    else if constexpr (t == DType::kBool)
      return float_of(hn::IfThenZeroElse(hn::Eq(bits, hn::Zero(Ints())), constant(0x3f800000)));
    else if constexpr (t == DType::kUInt32)
      return decode_uint32(bits);
    else
      return hn::ConvertTo(Floats(), bits);
  }
}

template <DType t>
HWY_INLINE void encode_vector(FloatVector v, Element<t>* out) {
  if constexpr (t == DType::kFloat16) {
    const hn::Rebind<uint16_t, Ints> d16;
    const hn::Rebind<hwy::float16_t, Ints> df16;
    hn::StoreU(hn::BitCast(d16, hn::DemoteTo(df16, canonical_nan(v))), d16, out);
  } else if constexpr (t == DType::kFloat32)
    store_small(bits_of(v), out);
  else if constexpr (t == DType::kTFloat32)
    store_small(hn::ShiftLeft<13>(round_mantissa<13>(v)), out);
  else if constexpr (t == DType::kBFloat16)
    store_small(round_mantissa<16>(v), out);
  else if constexpr (t == DType::kFloat8E8M0)
    store_small(encode_e8m0(v), out);
  else if constexpr (is_float(t))
    store_small(encode_small_float<t>(v), out);
  else if constexpr (t == DType::kBool)
    store_small(hn::IfThenZeroElse(hn::Eq(hn::Add(bits_of(v), bits_of(v)), hn::Zero(Ints())), constant(1)), out);
  else if constexpr (t == DType::kInt32)
    store_small(encode_int32(v), out);
  else if constexpr (t == DType::kUInt32)
    store_small(encode_uint32(v), out);
  else
    store_small(encode_narrow_integer<Element<t>>(v), out);
}

/// The last, partial vector goes through a buffer, so that nothing beyond the row is touched.
template <DType t>
HWY_NOINLINE void decode_loop(const Element<t>* in, float* out, size_t count) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(decode_vector<t>(in + i), d, out + i);
  if (i == count) return;
  Element<t> last_in[hn::MaxLanes(Floats())] = {};
  float last_out[hn::MaxLanes(Floats())];
  std::memcpy(last_in, in + i, (count - i) * sizeof(*in));
  hn::StoreU(decode_vector<t>(last_in), d, last_out);
  std::memcpy(out + i, last_out, (count - i) * sizeof(*out));
}
template <DType t>
HWY_NOINLINE void encode_loop(const float* in, Element<t>* out, size_t count) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) encode_vector<t>(hn::LoadU(d, in + i), out + i);
  if (i == count) return;
  float last_in[hn::MaxLanes(Floats())] = {};
  Element<t> last_out[hn::MaxLanes(Floats())];
  std::memcpy(last_in, in + i, (count - i) * sizeof(*in));
  encode_vector<t>(hn::LoadU(d, last_in), last_out);
  std::memcpy(out + i, last_out, (count - i) * sizeof(*out));
}

struct Decode {
  const void* source;
  float* out;
  size_t count;
  template <class T>
  void operator()(T) const {
    decode_loop<T::value>(static_cast<const Element<T::value>*>(source), out, count);
  }
};
struct Encode {
  const float* in;
  void* target;
  size_t count;
  template <class T>
  void operator()(T) const {
    encode_loop<T::value>(in, static_cast<Element<T::value>*>(target), count);
  }
};

void DecodeTwin(DType type, const void* source, float* out, size_t count) {
  scalar::with_dtype(type, Decode{source, out, count});
}
void EncodeTwin(DType type, const float* in, void* target, size_t count) {
  scalar::with_dtype(type, Encode{in, target, count});
}

#else
// Highway's baseline, where it has no fused multiply-add: never called.
void DecodeTwin(DType, const void*, float*, size_t) {}
void EncodeTwin(DType, const float*, void*, size_t) {}
#endif
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
HWY_EXPORT(DecodeTwin);
HWY_EXPORT(EncodeTwin);

void detail::decode_contiguous(DType type, const void* source, float* out, ptrdiff_t count) {
  HWY_DYNAMIC_DISPATCH(DecodeTwin)(type, source, out, static_cast<size_t>(count));
}
void detail::encode_contiguous(DType type, const float* in, void* target, ptrdiff_t count) {
  HWY_DYNAMIC_DISPATCH(EncodeTwin)(type, in, target, static_cast<size_t>(count));
}
}  // namespace sterna
#endif  // HWY_ONCE
