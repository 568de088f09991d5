// SPDX-License-Identifier: Apache-2.0
// Conversions between number formats. The scalar functions are the definition; the row functions
// are their SIMD twins and give the same bits on every target (see dispatch.h).
//
// Rules (NKI, SDK 2.32, nki.language dtypes; architecture guides; where those are silent, ml_dtypes):
//   * every conversion goes through fp32 and rounds once, to nearest even; subnormals are kept, in fp32 too;
//   * fp32 to a float format with infinities overflows to infinity, to one without it gives NaN
//     (float8_e4m3fn) or saturates (float4_e2m1: it has no NaN; NaN becomes the largest value, sign kept). A value
//     overflows if it rounds beyond the largest one with the exponent unbounded: 464 is still 448 in e4m3fn (tie to
//     even), 248 is infinity in e4m3;
//   * fp32 to float8_e8m0fnu goes to the nearest power of two, ties up; zero, negative values, infinity, NaN and what
//     rounds to 2^128 become NaN (ff); 2^-127 takes everything below it (ml_dtypes);
//   * fp32 to an integer rounds to nearest even and saturates; NaN becomes 0;
//   * any non-zero value (NaN too) is true as bool; a non-zero bool byte is 1.0;
//   * tfloat32 is an fp32 whose low 13 bits are written as zero and ignored when read;
//   * float4_e2m1 is the low half of a byte: the high half is written as zero and ignored when read;
//   * NaN converts to the canonical quiet NaN of the target, sign clear: fp32 7fc00000, bf16 7fc0, fp16 7e00, e4m3 7c,
//     e4m3fn 7f, e5m2 7e, e3m4 78;
//   * a copy between equal types keeps the bits: it does not come here. For float32 these functions are the identity,
//     NaN included.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sterna/numerics/dtype.h"

namespace sterna {

/// One element, any format but the packed ones, to fp32. Integers beyond 2^24 round to nearest even.
float to_float(DType type, const void* element);
/// fp32 to one element of `type`, rounding to nearest even.
void from_float(DType type, float value, void* element);

/// Bit patterns (low bits of the result) for tests and the text form.
float to_float_bits(DType type, uint32_t bits);
uint32_t from_float_bits(DType type, float value);

/// A number to one element of an integer type, exactly where it is one: else to nearest even, saturating, NaN to 0. To
/// bool as from fp32. For immediates, which hold every 32-bit integer (fp32 does not).
uint32_t integer_bits(DType type, double value);
/// The smallest and the largest value of an integer type.
struct IntegerRange {
  double low, high;
};
IntegerRange integer_range(DType type);

/// fp32 to `type` with stochastic rounding. `random` supplies the discarded bits: the value rounds away
/// from zero when `random`, compared as a fraction random / 2^32, is below the discarded fraction. Representable values
/// never change. From the largest value the step up is overflow, as above. float32, float8_e8m0fnu and integers round
/// to nearest. Scalar definition only.
uint32_t from_float_stochastic_bits(DType type, float value, uint32_t random);
/// The types to which that differs from rounding to nearest.
constexpr bool rounds_stochastically(DType type) {
  return is_float(type) && !is_packed(type) && type != DType::kFloat32 && type != DType::kFloat8E8M0;
}

/// Unpacks one x4 element to four fp32 and packs four fp32 into one x4 element (element 0 in the low bits).
void unpack_x4(DType type, const void* element, float out[4]);
void pack_x4(DType type, const float in[4], void* element);

/// `count` elements starting at `source`, `stride_bytes` apart (zero and negative too, need not be aligned), to
/// contiguous fp32. Source and result must not overlap. Not for packed types: read contiguous float8 x4 elements as
/// four times as many of the plain type.
void decode_row(DType type, const void* source, ptrdiff_t stride_bytes, float* out, ptrdiff_t count);
/// Contiguous fp32 to `count` elements starting at `target`, `stride_bytes` apart.
void encode_row(DType type, const float* in, void* target, ptrdiff_t stride_bytes, ptrdiff_t count);

}  // namespace sterna
