// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/convert.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "sterna/numerics/convert_simd.h"
#include "sterna/numerics/dispatch.h"
#include "sterna/numerics/scalar_convert.h"

namespace sterna {
namespace {

template <DType t>
scalar::Storage<t> load(const void* element) {
  scalar::Storage<t> bits;
  std::memcpy(&bits, element, sizeof bits);  // elements need not be aligned
  return bits;
}
template <DType t>
void store(scalar::Storage<t> bits, void* element) {
  std::memcpy(element, &bits, sizeof bits);
}

template <DType t>
constexpr std::array<float, 256> make_table() {
  std::array<float, 256> table{};
  for (uint32_t bits = 0; bits < 256; ++bits) table[bits] = scalar::decode<t>(static_cast<uint8_t>(bits));
  return table;
}
template <DType t>
constexpr std::array<float, 256> kTable = make_table<t>();

template <DType t>
float decode(scalar::Storage<t> bits) {
  if constexpr (is_float(t) && size_of(t) == 1)
    return kTable<t>[bits];
  else
    return scalar::decode<t>(bits);
}

constexpr uint32_t low_bits(int count) { return (1u << count) - 1; }

/// An x4 type: its element and how many bits each takes.
struct PackedType {
  DType element;
  int bits;
};
PackedType packed(DType type) {
  if (type == DType::kFloat8E4M3FNx4) return {DType::kFloat8E4M3FN, 8};
  if (type == DType::kFloat8E5M2x4) return {DType::kFloat8E5M2, 8};
  assert(type == DType::kFloat4E2M1FNx4);
  return {DType::kFloat4E2M1, 4};
}

// Strided elements, given a SIMD target and a conversion that costs more than the detour: gathered or scattered by a
// plain loop through a buffer that stays in the first-level cache, and converted there.
constexpr ptrdiff_t kPiece = 512;

bool decoding_is_slow(DType type) {
  return type == DType::kTFloat32 || type == DType::kBFloat16 ||
         type == DType::kFloat16;  // the 8-bit floats have tables
}
bool encoding_is_slow(DType type) { return type != DType::kFloat32 && type != DType::kBool; }

template <class Body>
void with_storage(int bytes, Body&& body) {
  if (bytes == 1)
    body(uint8_t{});
  else if (bytes == 2)
    body(uint16_t{});
  else
    body(uint32_t{});
}

void decode_strided(DType type, const char* source, ptrdiff_t stride_bytes, float* out, ptrdiff_t count) {
  with_storage(size_of(type), [=](auto storage) {
    decltype(storage) piece[kPiece];
    for (ptrdiff_t start = 0; start < count; start += kPiece) {
      const ptrdiff_t length = std::min(kPiece, count - start);
      const char* element = source + start * stride_bytes;
      for (ptrdiff_t i = 0; i < length; ++i) std::memcpy(&piece[i], element + i * stride_bytes, sizeof storage);
      detail::decode_contiguous(type, piece, out + start, length);
    }
  });
}

void encode_strided(DType type, const float* in, char* target, ptrdiff_t stride_bytes, ptrdiff_t count) {
  with_storage(size_of(type), [=](auto storage) {
    decltype(storage) piece[kPiece];
    for (ptrdiff_t start = 0; start < count; start += kPiece) {
      const ptrdiff_t length = std::min(kPiece, count - start);
      char* element = target + start * stride_bytes;
      detail::encode_contiguous(type, in + start, piece, length);
      for (ptrdiff_t i = 0; i < length; ++i) std::memcpy(element + i * stride_bytes, &piece[i], sizeof storage);
    }
  });
}

}  // namespace

float to_float(DType type, const void* element) {
  assert(!is_packed(type));
  return scalar::with_dtype(type, [=](auto t) { return decode<t>(load<t>(element)); });
}

void from_float(DType type, float value, void* element) {
  assert(!is_packed(type));
  scalar::with_dtype(type, [=](auto t) { store<t>(scalar::encode<t>(value), element); });
}

float to_float_bits(DType type, uint32_t bits) {
  assert(!is_packed(type));
  return scalar::with_dtype(type, [=](auto t) { return scalar::decode<t>(static_cast<scalar::Storage<t>>(bits)); });
}

uint32_t from_float_bits(DType type, float value) {
  assert(!is_packed(type));
  return scalar::with_dtype(type, [=](auto t) { return static_cast<uint32_t>(scalar::encode<t>(value)); });
}

IntegerRange integer_range(DType type) {
  assert(is_integer(type));
  if (type == DType::kBool) return {0, 1};
  const int bits = 8 * size_of(type) - (info(type).is_signed ? 1 : 0);
  const double end = std::ldexp(1.0, bits);
  return {info(type).is_signed ? -end : 0.0, end - 1};
}

uint32_t integer_bits(DType type, double value) {
  if (type == DType::kBool) return value != 0;
  const auto [low, high] = integer_range(type);
  if (value != value) return 0;
  // std::nearbyint rounds to nearest even in the default mode, which nothing here changes.
  const auto whole = static_cast<int64_t>(std::nearbyint(std::min(std::max(value, low), high)));
  return static_cast<uint32_t>(whole) & 0xffffffffu >> (32 - 8 * size_of(type));
}

uint32_t from_float_stochastic_bits(DType type, float value, uint32_t random) {
  if (!rounds_stochastically(type)) return from_float_bits(type, value);
  const uint32_t bits =
      scalar::encode_float(scalar::format_of(type), std::bit_cast<uint32_t>(value), scalar::Stochastic{random});
  return type == DType::kTFloat32 ? bits << 13 : bits;
}

void unpack_x4(DType type, const void* element, float out[4]) {
  const auto [part, width] = packed(type);
  uint32_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(size_of(type)));
  for (int i = 0; i < 4; ++i) out[i] = to_float_bits(part, bits >> i * width & low_bits(width));
}

void pack_x4(DType type, const float in[4], void* element) {
  const auto [part, width] = packed(type);
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= from_float_bits(part, in[i]) << i * width;
  std::memcpy(element, &bits, static_cast<size_t>(size_of(type)));
}

void decode_row(DType type, const void* source, ptrdiff_t stride_bytes, float* out, ptrdiff_t count) {
  assert(!is_packed(type));
  if (simd_target() != SimdTarget::kScalar) {
    if (stride_bytes == size_of(type)) return detail::decode_contiguous(type, source, out, count);
    if (decoding_is_slow(type)) return decode_strided(type, static_cast<const char*>(source), stride_bytes, out, count);
  }
  scalar::with_dtype(type, [=](auto t) {
    const char* element = static_cast<const char*>(source);
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = decode<t>(load<t>(element + i * stride_bytes));
  });
}

void encode_row(DType type, const float* in, void* target, ptrdiff_t stride_bytes, ptrdiff_t count) {
  assert(!is_packed(type));
  if (simd_target() != SimdTarget::kScalar) {
    if (stride_bytes == size_of(type)) return detail::encode_contiguous(type, in, target, count);
    if (encoding_is_slow(type)) return encode_strided(type, in, static_cast<char*>(target), stride_bytes, count);
  }
  scalar::with_dtype(type, [=](auto t) {
    char* element = static_cast<char*>(target);
    for (ptrdiff_t i = 0; i < count; ++i) store<t>(scalar::encode<t>(in[i]), element + i * stride_bytes);
  });
}

}  // namespace sterna
