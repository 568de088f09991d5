// SPDX-License-Identifier: Apache-2.0
// The oracle of the conversion tests, of another kind than the code: a table of all values of a format, built with
// ldexp in double, and a search for the nearest.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sterna/numerics/dtype.h"

namespace sterna::convert_oracle {

inline constexpr uint32_t kNanBits = 0x7fc00000;
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }
inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

inline constexpr DType kSmallFloats[] = {DType::kBFloat16,     DType::kFloat16,    DType::kFloat8E4M3,
                                         DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kFloat8E3M4,
                                         DType::kFloat4E2M1};

inline std::vector<DType> unpacked_types() {
  std::vector<DType> out;
  for (int i = 0; i < kDTypeCount; ++i)
    if (const DType t = static_cast<DType>(i); !is_packed(t)) out.push_back(t);
  return out;
}

/// All finite values >= 0 of a format in ascending order; the index is the bit pattern. Largest values from the OCP and
/// IEEE texts.
struct Oracle {
  std::vector<double> values;
  double next;  ///< what would follow the largest: half-way there is where overflow begins

  explicit Oracle(DType t) {
    const DTypeInfo& i = info(t);
    const int step = 1 << i.mantissa_bits;
    for (int magnitude = 0;; ++magnitude) {
      const int exponent = magnitude / step;
      const int mantissa = magnitude % step;
      const double value = exponent == 0 ? std::ldexp(mantissa, 1 - i.bias - i.mantissa_bits)
                                         : std::ldexp(step + mantissa, exponent - i.bias - i.mantissa_bits);
      if (value > largest(t)) {
        next = value;
        break;
      }
      values.push_back(value);
    }
  }

  static double largest(DType t) {
    switch (t) {
      case DType::kBFloat16: return std::ldexp(255, 120);
      case DType::kFloat16: return 65504;
      case DType::kFloat8E4M3: return 240;
      case DType::kFloat8E4M3FN: return 448;
      case DType::kFloat8E5M2: return 57344;
      case DType::kFloat8E3M4: return 15.5;
      default: return 6;  // float4_e2m1
    }
  }

  /// The pattern nearest to `value` >= 0, ties to the even pattern; values.size() means overflow.
  uint32_t nearest(double value) const {
    if (value >= next) return static_cast<uint32_t>(values.size());
    const auto above = std::upper_bound(values.begin(), values.end(), value);
    const uint32_t high = static_cast<uint32_t>(above - values.begin());
    const double to_high = (high == values.size() ? next : values[high]) - value;
    const double to_low = value - values[high - 1];
    if (to_low == to_high) return (high & 1) == 0 ? high : high - 1;
    return to_low < to_high ? high - 1 : high;
  }
};

struct Specials {
  uint32_t infinity, nan, overflow;
  bool nan_has_sign;
};
inline Specials specials(DType t) {
  switch (t) {
    case DType::kBFloat16: return {0x7f80, 0x7fc0, 0x7f80, false};
    case DType::kFloat16: return {0x7c00, 0x7e00, 0x7c00, false};
    case DType::kFloat8E4M3: return {0x78, 0x7c, 0x78, false};
    case DType::kFloat8E4M3FN: return {0, 0x7f, 0x7f, false};
    case DType::kFloat8E5M2: return {0x7c, 0x7e, 0x7c, false};
    case DType::kFloat8E3M4: return {0x70, 0x78, 0x70, false};
    default: return {0, 0x7, 0x7, true};
  }
}

inline uint32_t sign_bit(DType t) { return 1u << (info(t).exponent_bits + info(t).mantissa_bits); }

inline uint32_t expected_bits(DType t, const Oracle& oracle, float v) {
  const Specials s = specials(t);
  const uint32_t sign = std::signbit(v) ? sign_bit(t) : 0;
  if (std::isnan(v)) return s.nan | (s.nan_has_sign ? sign : 0);
  const uint32_t magnitude = std::isinf(v) ? static_cast<uint32_t>(oracle.values.size()) : oracle.nearest(std::fabs(v));
  if (magnitude < oracle.values.size()) return sign | magnitude;
  return t == DType::kFloat8E4M3FN ? s.nan : sign | s.overflow;
}

/// Every fp32 within one step of a value of the format, of a point half-way between two, or of its limits.
inline std::vector<float> boundaries(const Oracle& oracle) {
  std::vector<float> out = {
      0.0f, kInfinity, float_of(1), std::numeric_limits<float>::max(), float_of(0x7fc00001), float_of(0x7f800001)};
  auto around = [&](double exact) {
    const float v = static_cast<float>(exact);
    out.insert(out.end(), {v, std::nextafter(v, kInfinity), std::nextafter(v, -kInfinity)});
  };
  for (size_t i = 0; i < oracle.values.size(); ++i) {
    const double after = i + 1 < oracle.values.size() ? oracle.values[i + 1] : oracle.next;
    around(oracle.values[i]);
    around((oracle.values[i] + after) / 2);
  }
  around(oracle.next);
  const size_t n = out.size();
  for (size_t i = 0; i < n; ++i) out.push_back(-out[i]);
  return out;
}

}  // namespace sterna::convert_oracle
