// SPDX-License-Identifier: Apache-2.0
// Transposes by square tiles held in registers: N x N elements, N = 16 bytes / element size, in log2(N) rounds. A round
// interleaves row i with row i + N/2; every round moves the top bit of the row number into the bottom of the column
// number, so after log2(N) rounds rows and columns have changed places. Wider vectors carry several tiles, one in each
// 128-bit block.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/transpose.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/alu.h"

#ifndef STERNA_NUMERICS_TRANSPOSE_ONCE_
#define STERNA_NUMERICS_TRANSPOSE_ONCE_
namespace sterna {
namespace {

struct Operands {
  const uint8_t* in;
  ptrdiff_t in_pitch;
  uint8_t* out;
  ptrdiff_t out_pitch;
};

/// The definition, on the rectangle [row0, row1) x [col0, col1) of the input.
template <class T>
void transpose_part(const Operands& o, ptrdiff_t row0, ptrdiff_t row1, ptrdiff_t col0, ptrdiff_t col1) {
  constexpr auto kSize = static_cast<ptrdiff_t>(sizeof(T));
  for (ptrdiff_t j = col0; j < col1; ++j)
    for (ptrdiff_t i = row0; i < row1; ++i)
      __builtin_memcpy(o.out + j * o.out_pitch + i * kSize, o.in + i * o.in_pitch + j * kSize, sizeof(T));
}

}  // namespace
}  // namespace sterna
#endif

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

// 32 bytes carry two tiles. 64 would need more shuffles to assemble than they save.
template <class T>
using Wide = hn::CappedTag<T, 32 / sizeof(T)>;

/// One vector of input: 16 bytes of one row in the low block and of the row N further down in the high block.
template <class T>
HWY_INLINE hn::Vec<Wide<T>> load_pair(const uint8_t* row, ptrdiff_t below) {
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  const auto low = hn::LoadU(block, reinterpret_cast<const T*>(row));
#if HWY_TARGET == HWY_NEON
  (void)below;
  return low;
#else
  return hn::Combine(Wide<T>(), hn::LoadU(block, reinterpret_cast<const T*>(row + below)), low);
#endif
}

/// in: kTileRows x N elements. out: N x kTileRows.
template <class T>
HWY_INLINE void transpose_tile(const uint8_t* in, ptrdiff_t in_pitch, uint8_t* out, ptrdiff_t out_pitch) {
  constexpr int kSide = 16 / sizeof(T);
  const Wide<T> tag;
  hn::Vec<Wide<T>> v[kSide], w[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) v[i] = load_pair<T>(in + i * in_pitch, kSide * in_pitch);
#pragma GCC unroll 4
  for (int span = 1; span < kSide; span *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kSide / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(tag, v[i], v[i + kSide / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(tag, v[i], v[i + kSide / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) v[i] = w[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) hn::StoreU(v[i], tag, reinterpret_cast<T*>(out + i * out_pitch));
}

/// Copies `lines` lines of 64 bytes.
HWY_INLINE void copy_lines(const uint8_t* from, ptrdiff_t from_pitch, uint8_t* to, ptrdiff_t to_pitch,
                           ptrdiff_t lines) {
  const Wide<uint8_t> tag;
  constexpr ptrdiff_t kStep = static_cast<ptrdiff_t>(hn::MaxLanes(Wide<uint8_t>()));
  for (ptrdiff_t i = 0; i < lines; ++i)
#pragma GCC unroll 4
    for (ptrdiff_t b = 0; b < 64; b += kStep)
      hn::StoreU(hn::LoadU(tag, from + i * from_pitch + b), tag, to + i * to_pitch + b);
}

/// Any rectangle of whole tiles.
template <class T>
HWY_INLINE void transpose_tiles(const Operands& o, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr ptrdiff_t kSize = sizeof(T), kCols = 16 / kSize;
  constexpr ptrdiff_t kRows = static_cast<ptrdiff_t>(hn::MaxLanes(Wide<T>()));
  for (ptrdiff_t j = 0; j < cols; j += kCols)
    for (ptrdiff_t i = 0; i < rows; i += kRows)
      transpose_tile<T>(o.in + i * o.in_pitch + j * kSize, o.in_pitch, o.out + j * o.out_pitch + i * kSize,
                        o.out_pitch);
}

/// One square of 64 bytes by 64 / sizeof(T) rows, through the stack, so that each line is read once and written once,
/// whole.
template <class T>
void transpose_square(const Operands& o) {
  constexpr ptrdiff_t kSide = 64 / sizeof(T);
  alignas(64) uint8_t in[kSide * 64], out[kSide * 64];
  copy_lines(o.in, o.in_pitch, in, 64, kSide);
  transpose_tiles<T>({in, 64, out, 64}, kSide, kSide);
  copy_lines(out, 64, o.out, o.out_pitch, kSide);
}

template <class T>
void transpose_any(const Operands& o, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr ptrdiff_t kSize = sizeof(T), kSide = 64 / kSize, kCols = 16 / kSize;
  constexpr ptrdiff_t kRows = static_cast<ptrdiff_t>(hn::MaxLanes(Wide<T>()));
  const ptrdiff_t whole_rows = rows - rows % kRows, whole_cols = cols - cols % kCols;
  // With a pitch of a large power of two, which is usual, the lines of a column crowd into few sets of the cache and do
  // not stay.
  const bool crowded = o.in_pitch % 512 == 0 || o.out_pitch % 512 == 0;
  const ptrdiff_t square_rows = crowded ? rows - rows % kSide : 0, square_cols = crowded ? cols - cols % kSide : 0;
  const auto from = [&](ptrdiff_t i, ptrdiff_t j) {
    return Operands{o.in + i * o.in_pitch + j * kSize, o.in_pitch, o.out + j * o.out_pitch + i * kSize, o.out_pitch};
  };
  for (ptrdiff_t i = 0; i < square_rows; i += kSide)
    for (ptrdiff_t j = 0; j < square_cols; j += kSide) transpose_square<T>(from(i, j));
  transpose_tiles<T>(from(0, square_cols), square_rows, whole_cols - square_cols);
  transpose_tiles<T>(from(square_rows, 0), whole_rows - square_rows, whole_cols);
  transpose_part<T>(o, 0, whole_rows, whole_cols, cols);
  transpose_part<T>(o, whole_rows, rows, 0, cols);
}

void TransposeTwin(const Operands& o, ptrdiff_t rows, ptrdiff_t cols, int element_bytes) {
  if (element_bytes == 4) return transpose_any<uint32_t>(o, rows, cols);
  if (element_bytes == 2) return transpose_any<uint16_t>(o, rows, cols);
  transpose_any<uint8_t>(o, rows, cols);
}

#else   // the static baseline: never called
void TransposeTwin(const Operands&, ptrdiff_t, ptrdiff_t, int) {}
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(TransposeTwin);

template <class T>
void transpose_definition(const Operands& o, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr ptrdiff_t kTile = 16;  // keeps both sides of a tile in the first-level cache
  for (ptrdiff_t i = 0; i < rows; i += kTile)
    for (ptrdiff_t j = 0; j < cols; j += kTile)
      transpose_part<T>(o, i, i + kTile < rows ? i + kTile : rows, j, j + kTile < cols ? j + kTile : cols);
}

}  // namespace

void transpose_bytes(const void* in, ptrdiff_t in_pitch, void* out, ptrdiff_t out_pitch, ptrdiff_t in_rows,
                     ptrdiff_t in_cols, int element_bytes) {
  const Operands o{static_cast<const uint8_t*>(in), in_pitch, static_cast<uint8_t*>(out), out_pitch};
  if (simd_target() != SimdTarget::kScalar)
    return HWY_DYNAMIC_DISPATCH(TransposeTwin)(o, in_rows, in_cols, element_bytes);
  if (element_bytes == 4) return transpose_definition<uint32_t>(o, in_rows, in_cols);
  if (element_bytes == 2) return transpose_definition<uint16_t>(o, in_rows, in_cols);
  transpose_definition<uint8_t>(o, in_rows, in_cols);
}

}  // namespace sterna
#endif  // HWY_ONCE
