// SPDX-License-Identifier: Apache-2.0
// Copies of the operands of a product in the layout its kernel reads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/matmul_pack.cc"
// clang-format off
#include "sterna/numerics/simd.h"
#include "hwy/foreach_target.h"
// clang-format on

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "sterna/numerics/convert.h"
#include "sterna/numerics/matmul.h"
#include "sterna/numerics/matmul_detail.h"
#include "sterna/numerics/matmul_load-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
namespace {

#if STERNA_SIMD_BODY
using namespace matmul_load;
using matmul_detail::kPrefetchRows;

// Packs one whole panel of contiguous fp32 or bfloat16.
template <class T>
void copy_panel(const OperandRows& source, ptrdiff_t depth, ptrdiff_t out_pitch, float* out) {
  const auto* row = static_cast<const uint8_t*>(source.base);
  for (ptrdiff_t k = 0; k < depth; ++k, row += source.pitch_bytes, out += out_pitch) {
    hwy::Prefetch(row + kPrefetchRows * source.pitch_bytes);
    hwy::Prefetch(row + kPrefetchRows * source.pitch_bytes + kMovingPanel * sizeof(T) - 1);
    for (size_t n = 0; n < kMovingPanel; n += kLanes) {
      hn::StoreU(load_as_float(reinterpret_cast<const T*>(row) + n), Floats(), out + n);
    }
  }
}

void CopyPanel(const OperandRows& source, ptrdiff_t depth, ptrdiff_t out_pitch, float* out) {
  if (source.type == DType::kFloat32) return copy_panel<float>(source, depth, out_pitch, out);
  copy_panel<uint16_t>(source, depth, out_pitch, out);
}
#else
void CopyPanel(const OperandRows&, ptrdiff_t, ptrdiff_t, float*) {}
#endif

}  // namespace
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

using matmul_detail::from_column;
using matmul_detail::has_simd_rows;

HWY_EXPORT(CopyPanel);

// Deals one decoded row out to its groups of kWidth.
template <ptrdiff_t kWidth>
void deal_row(const float* row, ptrdiff_t count, ptrdiff_t group_floats, float* out) {
  for (; count >= kWidth; count -= kWidth, row += kWidth, out += group_floats)
    std::memcpy(out, row, kWidth * sizeof(float));
  if (count > 0) {
    std::memset(out, 0, kWidth * sizeof(float));
    std::memcpy(out, row, static_cast<size_t>(count) * sizeof(float));
  }
}

void prefetch_row(const std::byte* row, ptrdiff_t bytes) {
  for (ptrdiff_t byte = 0; byte < bytes; byte += matmul_detail::kCacheLine) hwy::Prefetch(row + byte);
}

// Rows of no more than one group, for which calls would cost more than the elements.
template <ptrdiff_t kWidth, class T>
void pack_few(const OperandRows& source, ptrdiff_t depth, ptrdiff_t count, DepthSlots slots, float* out) {
  const auto* row = static_cast<const std::byte*>(source.base);
  out += slots.first * kWidth;
  for (ptrdiff_t k = 0; k < depth; ++k, row += source.pitch_bytes, out += slots.step * kWidth) {
    for (ptrdiff_t c = 0; c < count; ++c) {
      T element;
      std::memcpy(&element, row + c * ptrdiff_t{sizeof(T)}, sizeof(T));
      if constexpr (std::is_same_v<T, float>)
        out[c] = element;
      else
        out[c] = std::bit_cast<float>(uint32_t{element} << 16);  // bfloat16
    }
    std::fill(out + count, out + kWidth, 0.0f);
  }
}

template <ptrdiff_t kWidth>
void pack(const OperandRows& source, ptrdiff_t depth, ptrdiff_t count, DepthSlots slots, BlockRange range, float* out) {
  if (count <= kWidth && range.begin < range.end && has_simd_rows(source)) {
    if (source.type == DType::kFloat32) return pack_few<kWidth, float>(source, depth, count, slots, out);
    return pack_few<kWidth, uint16_t>(source, depth, count, slots, out);
  }
  const ptrdiff_t first = range.begin * kWidth, last = std::min(range.end * kWidth, count),
                  group_floats = slots.total * kWidth;
  constexpr ptrdiff_t kPiece = 8 * 96;  // columns decoded at a time; a multiple of both widths
  static_assert(kPiece % kStationaryBlock == 0 && kPiece % kMovingPanel == 0);
  alignas(64) float decoded[kPiece];
  const bool plain = source.type == DType::kFloat32 && source.stride_bytes == sizeof(float);
  for (ptrdiff_t from = first; from < last; from += kPiece) {
    const ptrdiff_t piece = std::min(kPiece, last - from);
    for (ptrdiff_t k = 0; k < depth; ++k) {
      const std::byte* row =
          static_cast<const std::byte*>(source.base) + k * source.pitch_bytes + from * source.stride_bytes;
      if (source.stride_bytes == size_of(source.type))
        prefetch_row(row + matmul_detail::kPrefetchRows * source.pitch_bytes, piece * source.stride_bytes);
      if (!plain) decode_row(source.type, row, source.stride_bytes, decoded, piece);
      const float* values = plain ? reinterpret_cast<const float*>(row) : decoded;
      deal_row<kWidth>(values, piece, group_floats,
                       out + from / kWidth * group_floats + (slots.first + k * slots.step) * kWidth);
    }
  }
}

}  // namespace

void pack_stationary(const OperandRows& source, ptrdiff_t depth, ptrdiff_t rows, DepthSlots slots, BlockRange range,
                     float* out) {
  pack<kStationaryBlock>(source, depth, rows, slots, range, out);
}

void pack_moving(const OperandRows& source, ptrdiff_t depth, ptrdiff_t cols, DepthSlots slots, BlockRange range,
                 float* out) {
  if (has_simd_rows(source)) {
    for (; range.begin < std::min(range.end, cols / kMovingPanel); ++range.begin) {
      float* const place = out + (range.begin * slots.total + slots.first) * kMovingPanel;
      HWY_DYNAMIC_DISPATCH(CopyPanel)(from_column(source, range.begin * kMovingPanel), depth, slots.step * kMovingPanel,
                                      place);
    }
  }
  pack<kMovingPanel>(source, depth, cols, slots, range, out);
}

}  // namespace sterna
#endif  // HWY_ONCE
