// SPDX-License-Identifier: Apache-2.0
// What matmul.cc and matmul_pack.cc share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "sterna/numerics/dispatch.h"
#include "sterna/numerics/matmul.h"

namespace sterna::matmul_detail {

inline constexpr ptrdiff_t kCacheLine = 64;
// How many rows ahead to ask for: rows lie on different pages, where the processor's own prefetch does not follow.
inline constexpr ptrdiff_t kPrefetchRows = 16;

// A run of unpacked or packed rows of the moving operand, kMovingPanel columns wide.
struct Panel {
  const float* data;
  ptrdiff_t pitch;
};

// The part of the result that one block and one panel make.
struct Corner {
  float* d;
  ptrdiff_t pitch;
  ptrdiff_t rows, cols;
  bool accumulate;
};

inline float without_nan_payload(float x) { return x != x ? std::bit_cast<float>(0x7fc00000u) : x; }

inline Corner corner_of(const PackedProduct& p, ptrdiff_t block, ptrdiff_t panel) {
  const ptrdiff_t row = block * kStationaryBlock, col = panel * kMovingPanel;
  return {p.d.data + row * p.d.pitch + col, p.d.pitch, std::min(kStationaryBlock, p.rows - row),
          std::min(kMovingPanel, p.cols - col), p.accumulate == Accumulate::kAdd};
}

// What the SIMD forms read without decode_row.
inline bool has_simd_rows(const OperandRows& rows) {
  if (simd_target() == SimdTarget::kScalar || rows.stride_bytes != size_of(rows.type)) return false;
  return (rows.type == DType::kFloat32 && rows.pitch_bytes % 4 == 0) ||
         (rows.type == DType::kBFloat16 && rows.pitch_bytes % 2 == 0);
}

inline OperandRows from_column(const OperandRows& rows, ptrdiff_t column) {
  OperandRows out = rows;
  out.base = static_cast<const std::byte*>(rows.base) + column * rows.stride_bytes;
  return out;
}

}  // namespace sterna::matmul_detail
