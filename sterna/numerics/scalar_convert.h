// SPDX-License-Identifier: Apache-2.0
// The definition of every conversion, one element at a time, as templates over the format. convert.cc makes the public
// functions and the strided loops from it; convert_simd.cc must give the same bits. Internal to numerics.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sterna/numerics/dtype.h"

namespace sterna::scalar {

inline constexpr uint32_t kInfinityBits = 0x7f800000;
inline constexpr uint32_t kNanBits = 0x7fc00000;
inline constexpr uint32_t kMagnitudeMask = 0x7fffffff;

enum class Overflow : uint8_t { kToInfinity, kToNan, kSaturates };

/// A sign, an exponent and a mantissa. All bit patterns below are without the sign.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  Overflow overflow;

  constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
  constexpr uint32_t all_ones() const { return (1u << sign_shift()) - 1; }
  constexpr uint32_t infinity() const { return all_ones() >> mantissa_bits << mantissa_bits; }  // kToInfinity only
  constexpr uint32_t max_finite() const {
    if (overflow == Overflow::kToInfinity) return infinity() - 1;
    return overflow == Overflow::kToNan ? all_ones() - 1 : all_ones();
  }
  /// What follows the largest finite value: infinity, NaN, or itself.
  constexpr uint32_t overflow_result() const { return max_finite() + (overflow == Overflow::kSaturates ? 0 : 1); }
  constexpr uint32_t nan() const {
    if (overflow == Overflow::kToInfinity) return infinity() | 1u << (mantissa_bits - 1);
    return all_ones();  // the one NaN of e4m3fn; the largest value of e2m1
  }
};

constexpr FloatFormat format_of(DType t) {
  const DTypeInfo& i = info(t);
  const Overflow overflow = i.has_inf ? Overflow::kToInfinity : i.has_nan ? Overflow::kToNan : Overflow::kSaturates;
  return {i.exponent_bits, i.mantissa_bits, i.bias, overflow};
}

/// fp32 bits to `f`. `rounds_away(kept, rest, dropped)` decides whether the magnitude kept.rest, of which `rest` has
/// `dropped` bits (possibly more than the 24 of a significand), goes up by one.
template <class RoundsAway>
constexpr uint32_t encode_float(FloatFormat f, uint32_t bits, RoundsAway rounds_away) {
  const uint32_t sign = bits >> 31 << f.sign_shift();
  const uint32_t magnitude = bits & kMagnitudeMask;
  const uint32_t nan = f.overflow == Overflow::kSaturates ? sign | f.nan() : f.nan();
  const uint32_t overflow = f.overflow == Overflow::kToNan ? f.nan() : sign | f.overflow_result();
  if (magnitude > kInfinityBits) return nan;
  if (magnitude == kInfinityBits) return overflow;

  const bool is_subnormal = magnitude < 0x00800000;
  const int exponent = is_subnormal ? 1 : static_cast<int>(magnitude >> 23);
  const uint32_t significand = (magnitude & 0x007fffff) | (is_subnormal ? 0 : 0x00800000);
  const int target_exponent = exponent - 127 + f.bias;  // below 1: subnormal in the target, which drops more bits
  const int dropped = 23 - f.mantissa_bits + (target_exponent < 1 ? 1 - target_exponent : 0);
  const uint32_t kept = dropped < 24 ? significand >> dropped : 0;
  const uint32_t rest = dropped < 24 ? significand & ((1u << dropped) - 1) : significand;
  // `kept` includes the leading one, which counts as the first step of the exponent. A carry moves to the next binade.
  uint32_t result = kept + (target_exponent > 1 ? static_cast<uint32_t>(target_exponent - 1) << f.mantissa_bits : 0);
  if (rest != 0 && rounds_away(kept, rest, dropped)) ++result;
  return result > f.max_finite() ? overflow : sign | result;
}

struct NearestEven {
  constexpr bool operator()(uint32_t kept, uint32_t rest, int dropped) const {
    if (dropped > 24) return false;  // rest < 2^24 is below half
    const uint32_t half = 1u << (dropped - 1);
    return rest > half || (rest == half && (kept & 1) != 0);
  }
};

/// Away from zero when random / 2^32 < rest / 2^dropped.
struct Stochastic {
  uint32_t random;
  constexpr bool operator()(uint32_t /*kept*/, uint32_t rest, int dropped) const {
    if (dropped <= 32) return random < static_cast<uint64_t>(rest) << (32 - dropped);
    const int beyond = dropped - 32 < 32 ? dropped - 32 : 32;  // rest < 2^24, so 32 bits already leave only random == 0
    return static_cast<uint64_t>(random) << beyond < rest;
  }
};

constexpr float decode_float(FloatFormat f, uint32_t bits) {
  const uint32_t magnitude = bits & f.all_ones();
  const uint32_t sign = (bits >> f.sign_shift() & 1) << 31;
  if (f.overflow == Overflow::kToInfinity && magnitude == f.infinity())
    return std::bit_cast<float>(sign | kInfinityBits);
  if (f.overflow != Overflow::kSaturates && magnitude > f.max_finite()) return std::bit_cast<float>(kNanBits);
  const uint32_t in_place = magnitude << (23 - f.mantissa_bits);
  if (f.bias == 127) return std::bit_cast<float>(sign | in_place);  // fp32's own exponents, subnormals too
  if (magnitude >> f.mantissa_bits != 0)
    return std::bit_cast<float>(sign | (in_place + (static_cast<uint32_t>(127 - f.bias) << 23)));
  const float unit = std::bit_cast<float>(static_cast<uint32_t>(128 - f.bias - f.mantissa_bits) << 23);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * unit));  // exact
}

/// e8m0: 2^(bits - 127), and NaN.
constexpr float decode_e8m0(uint32_t bits) {
  if (bits == 0xff) return std::bit_cast<float>(kNanBits);
  return std::bit_cast<float>(bits == 0 ? 0x00400000u : bits << 23);
}
/// To the nearest power of two, up on ties, as ml_dtypes does since 0.7; see convert.h.
constexpr uint8_t encode_e8m0(uint32_t bits) {
  if (bits == 0 || bits > kInfinityBits) return 0xff;  // zero, NaN, and the negatives, whose sign makes them large
  if (bits < 0x00800000) return bits >= 0x00600000;    // fp32 subnormals: 2^-127, and 2^-126 from half-way on
  return static_cast<uint8_t>((bits + 0x00400000) >> 23);
}

/// Nearest even, saturating, NaN to 0. std::lrint rounds to nearest even in the default mode, which nothing here
/// changes.
template <class Integer>
Integer encode_integer(float value) {
  // Exact as fp32: powers of two.
  constexpr float below = std::is_signed_v<Integer> ? static_cast<float>(std::numeric_limits<Integer>::min()) : 0.0f;
  constexpr float above = 2.0f * static_cast<float>(static_cast<Integer>(std::numeric_limits<Integer>::max() / 2 + 1));
  if (value != value) return 0;
  if (value <= below) return std::numeric_limits<Integer>::min();
  if (value >= above) return std::numeric_limits<Integer>::max();
  const int64_t nearest = std::lrint(value);
  return nearest > std::numeric_limits<Integer>::max() ? std::numeric_limits<Integer>::max()
                                                       : static_cast<Integer>(nearest);
}

template <int bytes>
using UnsignedOf = std::conditional_t<bytes == 1, uint8_t, std::conditional_t<bytes == 2, uint16_t, uint32_t>>;
/// The unsigned integer as wide as one element.
template <DType t>
using Storage = UnsignedOf<info(t).bytes>;
/// The C++ integer of an integer type other than bool.
template <DType t>
using IntegerOf = std::conditional_t<info(t).is_signed, std::make_signed_t<Storage<t>>, Storage<t>>;

template <DType t>
constexpr float decode(Storage<t> bits) {
  static_assert(!is_packed(t));
  if constexpr (t == DType::kFloat32)
    return std::bit_cast<float>(bits);
  else if constexpr (t == DType::kTFloat32)
    return decode_float(format_of(t), bits >> 13 | ((bits & kMagnitudeMask) > kInfinityBits));
  else if constexpr (t == DType::kFloat8E8M0)
    return decode_e8m0(bits);
  else if constexpr (t == DType::kBool)
    return bits != 0 ? 1.0f : 0.0f;
  else if constexpr (is_float(t))
    return decode_float(format_of(t), bits);
  else
    return static_cast<float>(static_cast<IntegerOf<t>>(bits));
}

template <DType t>
Storage<t> encode(float value) {
  static_assert(!is_packed(t));
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if constexpr (t == DType::kFloat32)
    return bits;
  else if constexpr (t == DType::kTFloat32)
    return encode_float(format_of(t), bits, NearestEven()) << 13;
  else if constexpr (t == DType::kFloat8E8M0)
    return encode_e8m0(bits);
  else if constexpr (t == DType::kBool)
    return (bits & kMagnitudeMask) != 0;
  else if constexpr (is_float(t))
    return static_cast<Storage<t>>(encode_float(format_of(t), bits, NearestEven()));
  else
    return static_cast<Storage<t>>(encode_integer<IntegerOf<t>>(value));
}

/// A DType as a type, so that a generic function object can be called with it.
template <DType t>
using Constant = std::integral_constant<DType, t>;

/// Calls body(Constant<type>{}). Not for packed types, which callers have excluded; they get kUInt32.
template <class Body>
constexpr auto with_dtype(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32: return body(Constant<DType::kFloat32>{});
    case DType::kTFloat32: return body(Constant<DType::kTFloat32>{});
    case DType::kBFloat16: return body(Constant<DType::kBFloat16>{});
    case DType::kFloat16: return body(Constant<DType::kFloat16>{});
    case DType::kFloat8E4M3: return body(Constant<DType::kFloat8E4M3>{});
    case DType::kFloat8E4M3FN: return body(Constant<DType::kFloat8E4M3FN>{});
    case DType::kFloat8E5M2: return body(Constant<DType::kFloat8E5M2>{});
    case DType::kFloat8E3M4: return body(Constant<DType::kFloat8E3M4>{});
    case DType::kFloat8E8M0: return body(Constant<DType::kFloat8E8M0>{});
    case DType::kFloat4E2M1: return body(Constant<DType::kFloat4E2M1>{});
    case DType::kBool: return body(Constant<DType::kBool>{});
    case DType::kInt8: return body(Constant<DType::kInt8>{});
    case DType::kInt16: return body(Constant<DType::kInt16>{});
    case DType::kInt32: return body(Constant<DType::kInt32>{});
    case DType::kUInt8: return body(Constant<DType::kUInt8>{});
    case DType::kUInt16: return body(Constant<DType::kUInt16>{});
    default: return body(Constant<DType::kUInt32>{});
  }
}

}  // namespace sterna::scalar
