// SPDX-License-Identifier: Apache-2.0
// The loops over blocks have SIMD twins that do whole vectors; the definitions do the rest of a row, and all of it
// where there is no SIMD.
#include "sterna/numerics/mx.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/scalar_convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/mx.cc"
#include "sterna/numerics/simd.h"
// Order matters: simd.h, then these two.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef STERNA_NUMERICS_MX_ONCE_
#define STERNA_NUMERICS_MX_ONCE_
namespace sterna::mx_detail {

/// What a format has to do with quantisation.
struct Target {
  int less;       ///< subtracted from the exponent field of the largest magnitude
  float largest;  ///< finite number
};

/// 2^(127 - bits): what a number is multiplied by to be divided by its scale. Scales never exceed 2^121 here.
constexpr uint32_t kInverseOfZero = 254u << 23;

}  // namespace sterna::mx_detail
#endif  // STERNA_NUMERICS_MX_ONCE_

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
namespace {
using mx_detail::Target;

#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;

ptrdiff_t DealTwin(const float* values, const float* scale, float* out, ptrdiff_t pitch, ptrdiff_t count) {
  const Floats f;
  const auto lanes = static_cast<ptrdiff_t>(hn::Lanes(f));
  ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<Floats> a, b, c, d;
    hn::LoadInterleaved4(f, values + kX4 * i, a, b, c, d);
    const auto s = hn::LoadU(f, scale + i);
    hn::StoreU(hn::Mul(a, s), f, out + i);
    hn::StoreU(hn::Mul(b, s), f, out + pitch + i);
    hn::StoreU(hn::Mul(c, s), f, out + 2 * pitch + i);
    hn::StoreU(hn::Mul(d, s), f, out + 3 * pitch + i);
  }
  return i;
}

ptrdiff_t ScalesTwin(const float* const* in, ptrdiff_t start, Target target, ptrdiff_t count, int32_t* scales,
                     float* inverse) {
  const Floats f;
  const Ints n;
  const auto lanes = static_cast<ptrdiff_t>(hn::Lanes(f));
  ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto most = hn::Zero(n);
    for (ptrdiff_t r = 0; r < kMxRows; ++r) {
      hn::Vec<Floats> a, b, c, d;
      hn::LoadInterleaved4(f, in[r] + kX4 * (start + i), a, b, c, d);
      const auto ab = hn::Max(hn::BitCast(n, hn::Abs(a)), hn::BitCast(n, hn::Abs(b)));
      const auto cd = hn::Max(hn::BitCast(n, hn::Abs(c)), hn::BitCast(n, hn::Abs(d)));
      most = hn::Max(most, hn::Max(ab, cd));
    }
    const auto bits = hn::Max(hn::Zero(n), hn::Sub(hn::ShiftRight<23>(most), hn::Set(n, target.less)));
    hn::StoreU(bits, n, scales + i);
    const auto zero = hn::Set(n, static_cast<int32_t>(mx_detail::kInverseOfZero));
    hn::StoreU(hn::BitCast(f, hn::Sub(zero, hn::ShiftLeft<23>(bits))), f, inverse + i);
  }
  return i;
}

ptrdiff_t DivideTwin(const float* in, const float* inverse, Target target, ptrdiff_t count, float* out) {
  const Floats f;
  const auto lanes = static_cast<ptrdiff_t>(hn::Lanes(f));
  const auto high = hn::Set(f, target.largest), low = hn::Set(f, -target.largest);
  ptrdiff_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<Floats> v[4];
    hn::LoadInterleaved4(f, in + kX4 * i, v[0], v[1], v[2], v[3]);
    const auto s = hn::LoadU(f, inverse + i);
    for (auto& x : v) {
      x = hn::Mul(x, s);
      x = hn::IfThenElse(hn::Gt(x, high), high, hn::IfThenElse(hn::Lt(x, low), low, x));  // NaN stays
    }
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], f, out + kX4 * i);
  }
  return i;
}
#else
ptrdiff_t DealTwin(const float*, const float*, float*, ptrdiff_t, ptrdiff_t) { return 0; }
ptrdiff_t ScalesTwin(const float* const*, ptrdiff_t, Target, ptrdiff_t, int32_t*, float*) { return 0; }
ptrdiff_t DivideTwin(const float*, const float*, Target, ptrdiff_t, float*) { return 0; }
#endif

}  // namespace
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

using mx_detail::Target;

HWY_EXPORT(DealTwin);
HWY_EXPORT(ScalesTwin);
HWY_EXPORT(DivideTwin);

bool has_simd() { return simd_target() != SimdTarget::kScalar; }

constexpr ptrdiff_t kPiece = 128;  // x4 elements of a row at a time: 2 KiB of fp32

/// Four fp4 elements, one to a byte.
uint32_t spread(uint16_t x4) {
  const uint32_t pairs = (x4 | static_cast<uint32_t>(x4) << 8) & 0x00ff00ffu;
  return (pairs | pairs << 4) & 0x0f0f0f0fu;
}
uint16_t gather(uint32_t bytes) {
  const uint32_t pairs = (bytes | bytes >> 4) & 0x00ff00ffu;
  return static_cast<uint16_t>(pairs | pairs >> 8);
}

/// out[j][i] = values[4 i + j] * scale[i]
void deal(const float* values, const float* scale, float* out, ptrdiff_t pitch, ptrdiff_t count) {
  ptrdiff_t i = has_simd() ? HWY_DYNAMIC_DISPATCH(DealTwin)(values, scale, out, pitch, count) : 0;
  for (; i < count; ++i)
    for (ptrdiff_t j = 0; j < kX4; ++j) out[j * pitch + i] = values[kX4 * i + j] * scale[i];
}

Target target_of(DType x4, MxScale how) {
  const DType element = element_of(x4);
  const float largest = to_float_bits(element, scalar::format_of(element).max_finite());
  const int largest_exponent = static_cast<int>(std::bit_cast<uint32_t>(largest) >> 23) - 127;  // Emax
  return {largest_exponent - (how == MxScale::kDouble ? 1 : 0), largest};
}

/// Scale bits of columns [start, start + count), and what their numbers are multiplied by.
void find_scales(const float* const in[kMxRows], ptrdiff_t start, Target target, ptrdiff_t count, int32_t* scales,
                 float* inverse) {
  ptrdiff_t i = has_simd() ? HWY_DYNAMIC_DISPATCH(ScalesTwin)(in, start, target, count, scales, inverse) : 0;
  for (; i < count; ++i) {
    uint32_t most = 0;  // magnitudes order like their bits, and NaN is above infinity
    for (ptrdiff_t r = 0; r < kMxRows; ++r)
      for (ptrdiff_t j = 0; j < kX4; ++j)
        most = std::max(most, std::bit_cast<uint32_t>(in[r][kX4 * (start + i) + j]) & scalar::kMagnitudeMask);
    scales[i] = std::max(0, static_cast<int32_t>(most >> 23) - target.less);
    inverse[i] = std::bit_cast<float>(mx_detail::kInverseOfZero - (static_cast<uint32_t>(scales[i]) << 23));
  }
}

/// The quotients, clipped to the largest number.
void divide(const float* in, const float* inverse, Target target, ptrdiff_t count, float* out) {
  ptrdiff_t i = kX4 * (has_simd() ? HWY_DYNAMIC_DISPATCH(DivideTwin)(in, inverse, target, count, out) : 0);
  for (; i < kX4 * count; ++i) {
    const float x = in[i] * inverse[i / kX4];
    out[i] = x > target.largest ? target.largest : x < -target.largest ? -target.largest : x;
  }
}

}  // namespace

void decode_x4_row(DType x4, const void* source, float* out, ptrdiff_t count) {
  if (x4 != DType::kFloat4E2M1FNx4) return decode_row(element_of(x4), source, 1, out, kX4 * count);
  const auto* from = static_cast<const std::byte*>(source);
  uint32_t bytes[kPiece];
  for (ptrdiff_t start = 0; start < count; start += kPiece) {
    const ptrdiff_t n = std::min(kPiece, count - start);
    for (ptrdiff_t i = 0; i < n; ++i) {
      uint16_t word;
      std::memcpy(&word, from + 2 * (start + i), sizeof word);
      bytes[i] = spread(word);
    }
    decode_row(DType::kFloat4E2M1, bytes, 1, out + kX4 * start, kX4 * n);
  }
}

void encode_x4_row(DType x4, const float* in, void* target, ptrdiff_t count) {
  if (x4 != DType::kFloat4E2M1FNx4) return encode_row(element_of(x4), in, target, 1, kX4 * count);
  auto* to = static_cast<std::byte*>(target);
  uint32_t bytes[kPiece];
  for (ptrdiff_t start = 0; start < count; start += kPiece) {
    const ptrdiff_t n = std::min(kPiece, count - start);
    encode_row(DType::kFloat4E2M1, in + kX4 * start, bytes, 1, kX4 * n);
    for (ptrdiff_t i = 0; i < n; ++i) {
      const uint16_t word = gather(bytes[i]);
      std::memcpy(to + 2 * (start + i), &word, sizeof word);
    }
  }
}

void dequantize_blocks(const MxBlocks& blocks, float* out, ptrdiff_t pitch, ptrdiff_t count) {
  alignas(64) float values[kX4 * kPiece], scale[kPiece];
  const int bytes = size_of(blocks.x4);
  for (ptrdiff_t start = 0; start < count; start += kPiece) {
    const ptrdiff_t n = std::min(kPiece, count - start);
    decode_row(DType::kFloat8E8M0, blocks.scales + start, 1, scale, n);
    for (ptrdiff_t r = 0; r < kMxRows; ++r) {
      decode_x4_row(blocks.x4, static_cast<const std::byte*>(blocks.rows[r]) + start * bytes, values, n);
      deal(values, scale, out + r * kX4 * pitch + start, pitch, n);
    }
  }
}

void quantize_blocks(DType x4, const float* const in[kMxRows], MxScale how, ptrdiff_t count, void* const out[kMxRows],
                     uint8_t* scales) {
  const Target target = target_of(x4, how);
  alignas(64) float divided[kX4 * kPiece];
  float inverse[kPiece];
  int32_t bits[kPiece];
  for (ptrdiff_t start = 0; start < count; start += kPiece) {
    const ptrdiff_t n = std::min(kPiece, count - start);
    find_scales(in, start, target, n, bits, inverse);
    for (ptrdiff_t i = 0; i < n; ++i) scales[start + i] = static_cast<uint8_t>(bits[i]);
    for (ptrdiff_t r = 0; r < kMxRows; ++r) {
      divide(in[r] + kX4 * start, inverse, target, n, divided);
      encode_x4_row(x4, divided, static_cast<std::byte*>(out[r]) + start * size_of(x4), n);
    }
  }
}

}  // namespace sterna
#endif  // HWY_ONCE
