// SPDX-License-Identifier: Apache-2.0
// Block-scaled (MX) numbers: four small elements packed in one x4 element, and one scale of format float8_e8m0fnu, a
// power of two, for each block of 8 rows x 4 packed elements (OCP Microscaling Formats v1.0; NKI, SDK 2.32,
// nki.isa.nc_matmul_mx and quantize_mx).
//
// Dequantising multiplies an element by its scale in fp32. The product is exact, except that what lies beyond fp32
// becomes infinity (an element of 2 and more times 2^127); scale ff makes every element of its block NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sterna/numerics/dtype.h"
#include "sterna/numerics/matmul.h"

namespace sterna {

inline constexpr ptrdiff_t kMxRows = 8;    ///< rows (partitions) of a block
inline constexpr ptrdiff_t kX4 = 4;        ///< elements of a row of a block
inline constexpr ptrdiff_t kMxBlock = 32;  ///< contraction places of a block

/// The format of the elements of an x4 type.
constexpr DType element_of(DType x4) {
  if (x4 == DType::kFloat8E4M3FNx4) return DType::kFloat8E4M3FN;
  return x4 == DType::kFloat8E5M2x4 ? DType::kFloat8E5M2 : DType::kFloat4E2M1;
}

/// `count` adjoining x4 elements to 4 * count fp32, element 0 of each first. decode_row for packed types.
void decode_x4_row(DType x4, const void* source, float* out, ptrdiff_t count);
/// The other way; conversions as from_float.
void encode_x4_row(DType x4, const float* in, void* target, ptrdiff_t count);

/// 8 rows of x4 elements and their scales, all adjoining.
struct MxBlocks {
  DType x4;
  const void* rows[kMxRows];
  const uint8_t* scales;
};

/// Dequantises columns [0, count) of a row of blocks to 32 rows of fp32 (row 4 * r + j holds element j of row r),
/// `pitch` floats apart.
void dequantize_blocks(const MxBlocks& blocks, float* out, ptrdiff_t pitch, ptrdiff_t count);

/// What quantising a block divides by, as the bits of its scale.
enum class MxScale : uint8_t {
  kDouble,  ///< 2^(floor(log2 amax) - (Emax - 1)): twice the sample algorithm of OCP, so that rounding never saturates
  kOcp,     ///< 2^(floor(log2 amax) - Emax): OCP's sample algorithm
};

/// Quantises columns [0, count) of a row of blocks: in[r] holds 4 * count fp32 numbers of row r. Each is divided by its
/// block's scale, clipped to the largest finite number of the format and rounded to nearest even. floor(log2 amax) is
/// the exponent field of the largest magnitude: infinity and NaN count as 2^128, so infinities saturate and NaN stays
/// NaN. A scale below 2^-127 (a block of zeros too) is 2^-127. x4 is one of the fp8 formats.
void quantize_blocks(DType x4, const float* const in[kMxRows], MxScale how, ptrdiff_t count, void* const out[kMxRows],
                     uint8_t* scales);

}  // namespace sterna
