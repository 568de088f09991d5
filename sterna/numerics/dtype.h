// SPDX-License-Identifier: Apache-2.0
// The number formats: their names, sizes and limits. Conversions are in convert.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sterna {

/// Names follow NKI (nki.language, SDK 2.32). `float8_e4m3` is the legacy IEEE-like format of
/// trn1/trn2 (largest value 240, has infinities); `float8_e4m3fn` is OCP's (448, no infinities).
enum class DType : uint8_t {
  kFloat32,
  kTFloat32,
  kBFloat16,
  kFloat16,
  kFloat8E4M3,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E3M4,
  kFloat8E8M0,
  kFloat4E2M1,
  kFloat8E4M3FNx4,
  kFloat8E5M2x4,
  kFloat4E2M1FNx4,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kUInt8,
  kUInt16,
  kUInt32,
};
inline constexpr int kDTypeCount = 20;

struct DTypeInfo {
  std::string_view name;                 ///< as in nki.language and in the text form
  uint8_t bytes;                         ///< of one element in memory; float4_e2m1 takes one byte, low bits
  uint8_t exponent_bits, mantissa_bits;  ///< 0 for integers and packed types
  int16_t bias;
  bool is_float, is_signed, is_packed, has_inf, has_nan;
};

inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"float32", 4, 8, 23, 127, true, true, false, true, true},
    {"tfloat32", 4, 8, 10, 127, true, true, false, true, true},
    {"bfloat16", 2, 8, 7, 127, true, true, false, true, true},
    {"float16", 2, 5, 10, 15, true, true, false, true, true},
    {"float8_e4m3", 1, 4, 3, 7, true, true, false, true, true},
    {"float8_e4m3fn", 1, 4, 3, 7, true, true, false, false, true},
    {"float8_e5m2", 1, 5, 2, 15, true, true, false, true, true},
    {"float8_e3m4", 1, 3, 4, 3, true, true, false, true, true},
    {"float8_e8m0fnu", 1, 8, 0, 127, true, false, false, false, true},
    {"float4_e2m1fn", 1, 2, 1, 1, true, true, false, false, false},
    {"float8_e4m3fn_x4", 4, 0, 0, 0, true, true, true, false, true},
    {"float8_e5m2_x4", 4, 0, 0, 0, true, true, true, true, true},
    {"float4_e2m1fn_x4", 2, 0, 0, 0, true, true, true, false, false},
    {"bool", 1, 0, 0, 0, false, false, false, false, false},
    {"int8", 1, 0, 0, 0, false, true, false, false, false},
    {"int16", 2, 0, 0, 0, false, true, false, false, false},
    {"int32", 4, 0, 0, 0, false, true, false, false, false},
    {"uint8", 1, 0, 0, 0, false, false, false, false, false},
    {"uint16", 2, 0, 0, 0, false, false, false, false, false},
    {"uint32", 4, 0, 0, 0, false, false, false, false, false},
}};

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int size_of(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).is_float; }
constexpr bool is_integer(DType t) { return !info(t).is_float; }
constexpr bool is_packed(DType t) { return info(t).is_packed; }

constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kDTypes[static_cast<size_t>(i)].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace sterna
