// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/matmul.cc"
// clang-format off
#include "sterna/numerics/simd.h"
#include "hwy/foreach_target.h"
// clang-format on

#include "sterna/numerics/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "sterna/numerics/matmul_detail.h"
#include "sterna/numerics/matmul_load-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using matmul_detail::Corner;
using matmul_detail::Panel;

#if STERNA_SIMD_BODY
using namespace matmul_load;

static_assert(kMovingPanel % kLanes == 0);

// A tile of kTileRows x kTileVectors sums stays in registers. AVX-512 and NEON have 32 of them, AVX2 has 16. The sums
// are independent chains, and there must be at least latency x units of them: 8 to 10 on today's x86, 16 on large Arm
// cores.
#if HWY_TARGET == HWY_AVX3
constexpr size_t kTileRows = 12, kTileVectors = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kTileRows = 6, kTileVectors = 2;
#else
constexpr size_t kTileRows = 6, kTileVectors = 4;
#endif
constexpr ptrdiff_t kTileCols = kTileVectors * kLanes;
static_assert(kStationaryBlock % kTileRows == 0 && kMovingPanel % kTileCols == 0);

HWY_INLINE Vector canonical(Vector x) {
  return hn::IfThenElse(hn::IsNaN(x), hn::BitCast(Floats(), hn::Set(hn::RebindToUnsigned<Floats>(), 0x7fc00000u)), x);
}

// Every index below is a constant of the expansion, so that the compiler keeps each element in its register.
template <size_t... kRow, size_t... kVec>
HWY_INLINE void step(const float* a, const Vector (&b)[sizeof...(kVec)],
                     Vector (&sum)[sizeof...(kRow)][sizeof...(kVec)], std::index_sequence<kRow...>,
                     std::index_sequence<kVec...>) {
  const auto one_row = [&](Vector value, Vector(&row)[sizeof...(kVec)]) HWY_ATTR
      __attribute__((always_inline)) { ((row[kVec] = hn::MulAdd(value, b[kVec], row[kVec])), ...); };
  (one_row(hn::Set(Floats(), a[kRow]), sum[kRow]), ...);
}

template <size_t... kVec>
HWY_INLINE void finish_row(Vector (&row)[sizeof...(kVec)], float* d, bool accumulate, std::index_sequence<kVec...>) {
  const Floats f;
  if (accumulate) ((row[kVec] = hn::Add(hn::LoadU(f, d + kVec * kLanes), row[kVec])), ...);
  (hn::StoreU(canonical(row[kVec]), f, d + kVec * kLanes), ...);
}

// Where a tile reads the moving operand: rows of a panel as they are ...
struct ReadPanel {
  const float* row;
  ptrdiff_t pitch;
  Vector load(size_t n) const { return hn::LoadU(Floats(), row + n); }
  void next() { row += pitch; }
};

// ... or rows of the unpacked operand, leaving a packed copy behind for the tiles below it. In the shadow of the
// multiplications this costs almost nothing.
template <class T>
struct CopyingPanel {
  const T* row;
  ptrdiff_t pitch;
  float* packed;
  Vector load(size_t n) const {
    const Vector v = load_as_float(row + n);
    hn::StoreU(v, Floats(), packed + n);
    return v;
  }
  void next() {
    row += pitch;
    packed += kMovingPanel;
  }
};

// ... or rows of an unpacked operand that is read once.
template <class T>
struct UnpackedPanel {
  const T* row;
  ptrdiff_t pitch;
  Vector load(size_t n) const { return load_as_float(row + n); }
  void next() {
    hwy::Prefetch(row + matmul_detail::kPrefetchRows * pitch);
    row += pitch;
  }
};

// The first `c.rows` rows of a tile of kRows; all its columns are wanted.
template <size_t kRows, size_t kVectors, class Moving, size_t... kRow, size_t... kVec>
HWY_INLINE void tile(const float* a, Moving moving, ptrdiff_t depth, const Corner& c, std::index_sequence<kRow...> rows,
                     std::index_sequence<kVec...> vectors) {
  Vector sum[kRows][kVectors];
  const auto clear = [&](Vector(&row)[kVectors]) HWY_ATTR
      __attribute__((always_inline)) { ((row[kVec] = hn::Zero(Floats())), ...); };
  (clear(sum[kRow]), ...);
  for (ptrdiff_t m = 0; m < c.rows; ++m) {
    hwy::Prefetch(c.d + m * c.pitch);
    hwy::Prefetch(c.d + m * c.pitch + kVectors * kLanes - 1);
  }
  for (ptrdiff_t k = 0; k < depth; ++k) {
    const Vector value[kVectors] = {moving.load(kVec * kLanes)...};
    step(a, value, sum, rows, vectors);
    a += kStationaryBlock;
    moving.next();
  }
  const auto finish = [&](size_t m, Vector(&row)[kVectors]) HWY_ATTR __attribute__((always_inline)) {
    if (static_cast<ptrdiff_t>(m) < c.rows)
      finish_row(row, c.d + static_cast<ptrdiff_t>(m) * c.pitch, c.accumulate, vectors);
  };
  (finish(kRow, sum[kRow]), ...);
}

template <size_t kRows, size_t kVectors, class Moving>
HWY_NOINLINE void tile(const float* a, Moving moving, ptrdiff_t depth, const Corner& c) {
  tile<kRows, kVectors>(a, moving, depth, c, std::make_index_sequence<kRows>(), std::make_index_sequence<kVectors>());
}

template <size_t kVectors, class Moving>
HWY_INLINE void tile_of_rows(const float* a, Moving b, ptrdiff_t depth, const Corner& c) {
  constexpr size_t kSome = kTileRows * 2 / 3, kFew = kTileRows / 3;
  if (c.rows > static_cast<ptrdiff_t>(kSome)) return tile<kTileRows, kVectors>(a, b, depth, c);
  if (c.rows > static_cast<ptrdiff_t>(kFew)) return tile<kSome, kVectors>(a, b, depth, c);
  tile<kFew, kVectors>(a, b, depth, c);
}

// A tile with columns missing is computed whole into a buffer, of which the wanted part is taken.
HWY_NOINLINE void cut_tile(const float* a, ReadPanel b, ptrdiff_t depth, const Corner& c) {
  HWY_ALIGN float whole[kTileRows * kTileCols];
  const Corner inside = {whole, kTileCols, c.rows, kTileCols, false};
  if (c.cols <= static_cast<ptrdiff_t>(kLanes)) {
    tile_of_rows<1>(a, b, depth, inside);
  } else {
    tile_of_rows<kTileVectors>(a, b, depth, inside);
  }
  for (ptrdiff_t m = 0; m < c.rows; ++m) {
    float* d = c.d + m * c.pitch;
    const float* sum = whole + m * kTileCols;
    for (ptrdiff_t n = 0; n < c.cols; ++n) {
      d[n] = c.accumulate ? matmul_detail::without_nan_payload(d[n] + sum[n]) : sum[n];
    }
  }
}

Corner part_of(const Corner& whole, ptrdiff_t m, ptrdiff_t n) {
  return {whole.d + m * whole.pitch + n, whole.pitch, std::min(static_cast<ptrdiff_t>(kTileRows), whole.rows - m),
          std::min(kTileCols, whole.cols - n), whole.accumulate};
}

// Rows from `first_row` of one block by one panel.
void block_by_panel(const float* a, Panel b, ptrdiff_t depth, const Corner& whole, ptrdiff_t first_row = 0) {
  for (ptrdiff_t n = 0; n < whole.cols; n += kTileCols) {
    for (ptrdiff_t m = first_row; m < whole.rows; m += kTileRows) {
      const Corner c = part_of(whole, m, n);
      const ReadPanel part = {b.data + n, b.pitch};
      if (c.cols == kTileCols) {
        tile_of_rows<kTileVectors>(a + m, part, depth, c);
      } else {
        cut_tile(a + m, part, depth, c);
      }
    }
  }
}

void PanelProduct(const PackedProduct& p, Panel moving, BlockRange blocks, ptrdiff_t panel) {
  for (ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
    const float* a = p.stationary + block * p.depth * kStationaryBlock;
    block_by_panel(a, moving, p.depth, matmul_detail::corner_of(p, block, panel));
  }
}

template <class T>
void unpacked_tiles(const PackedProduct& p, const OperandRows& moving, ptrdiff_t panel) {
  const auto* row = static_cast<const T*>(moving.base) + panel * kMovingPanel;
  for (ptrdiff_t block = 0; block < stationary_blocks(p.rows); ++block) {
    const float* a = p.stationary + block * p.depth * kStationaryBlock;
    const Corner whole = matmul_detail::corner_of(p, block, panel);
    for (ptrdiff_t n = 0; n < kMovingPanel; n += kTileCols)
      for (ptrdiff_t m = 0; m < whole.rows; m += kTileRows) {
        const UnpackedPanel<T> b = {row + n, moving.pitch_bytes / static_cast<ptrdiff_t>(sizeof(T))};
        tile_of_rows<kTileVectors>(a + m, b, p.depth, part_of(whole, m, n));
      }
  }
}

// A product with a whole panel of contiguous rows of fp32 or bfloat16, which are read where they lie.
void UnpackedPanelProduct(const PackedProduct& p, const OperandRows& moving, ptrdiff_t panel) {
  if (moving.type == DType::kFloat32) return unpacked_tiles<float>(p, moving, panel);
  unpacked_tiles<uint16_t>(p, moving, panel);
}

// The first row of tiles of a product with one whole panel, leaving the panel packed; needs kTileRows rows. `T` is
// float, or uint16_t for bfloat16.
template <class T>
void copying_tiles(const PackedProduct& p, const OperandRows& moving, float* packed) {
  const auto* row = static_cast<const T*>(moving.base);
  const Corner whole = matmul_detail::corner_of(p, 0, 0);
  for (ptrdiff_t n = 0; n < kMovingPanel; n += kTileCols) {
    const CopyingPanel<T> b = {row + n, moving.pitch_bytes / static_cast<ptrdiff_t>(sizeof(T)), packed + n};
    tile<kTileRows, kTileVectors>(p.stationary, b, p.depth, part_of(whole, 0, n));
  }
}

// Asks for the part of the next panel that is this block's share. The rows of an operand lie on different pages, where
// the processor's own prefetch does not follow.
void prefetch_share(const OperandRows& next, ptrdiff_t depth, ptrdiff_t block, ptrdiff_t blocks) {
  const ptrdiff_t bytes = kMovingPanel * next.stride_bytes;
  for (ptrdiff_t k = depth * block / blocks; k < depth * (block + 1) / blocks; ++k) {
    const auto* row = static_cast<const uint8_t*>(next.base) + k * next.pitch_bytes;
    for (ptrdiff_t byte = 0; byte < bytes; byte += matmul_detail::kCacheLine) hwy::Prefetch(row + byte);
  }
}

// A product with a whole panel that is not packed yet: contiguous rows of fp32 or bfloat16. More than one block of
// rows.
void FreshPanelProduct(const PackedProduct& p, const OperandRows& moving, const OperandRows* next, float* packed) {
  if (moving.type == DType::kFloat32) {
    copying_tiles<float>(p, moving, packed);
  } else {
    copying_tiles<uint16_t>(p, moving, packed);
  }
  const Panel whole = {packed, kMovingPanel};
  block_by_panel(p.stationary, whole, p.depth, matmul_detail::corner_of(p, 0, 0), kTileRows);
  const ptrdiff_t blocks = stationary_blocks(p.rows);
  for (ptrdiff_t block = 1; block < blocks; ++block) {
    if (next != nullptr) prefetch_share(*next, p.depth, block - 1, blocks - 1);
    PanelProduct(p, whole, {block, block + 1}, 0);
  }
}

#else
void PanelProduct(const PackedProduct&, Panel, BlockRange, ptrdiff_t) {}
void FreshPanelProduct(const PackedProduct&, const OperandRows&, const OperandRows*, float*) {}
void UnpackedPanelProduct(const PackedProduct&, const OperandRows&, ptrdiff_t) {}
#endif

}  // namespace
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

using matmul_detail::Corner;
using matmul_detail::from_column;
using matmul_detail::has_simd_rows;
using matmul_detail::Panel;

HWY_EXPORT(PanelProduct);
HWY_EXPORT(FreshPanelProduct);
HWY_EXPORT(UnpackedPanelProduct);

// The definition.
void define_corner(const float* a, Panel b, ptrdiff_t depth, const Corner& c) {
  for (ptrdiff_t m = 0; m < c.rows; ++m) {
    for (ptrdiff_t n = 0; n < c.cols; ++n) {
      float sum = 0.0f;
      for (ptrdiff_t k = 0; k < depth; ++k) sum = std::fma(a[k * kStationaryBlock + m], b.data[k * b.pitch + n], sum);
      float& d = c.d[m * c.pitch + n];
      d = matmul_detail::without_nan_payload(c.accumulate ? d + sum : sum);
    }
  }
}

void panel_product(const PackedProduct& p, Panel moving, BlockRange blocks, ptrdiff_t panel) {
  if (simd_target() != SimdTarget::kScalar) return HWY_DYNAMIC_DISPATCH(PanelProduct)(p, moving, blocks, panel);
  for (ptrdiff_t block = blocks.begin; block < blocks.end; ++block) {
    define_corner(p.stationary + block * p.depth * kStationaryBlock, moving, p.depth,
                  matmul_detail::corner_of(p, block, panel));
  }
}

constexpr ptrdiff_t kCacheLineFloats = matmul_detail::kCacheLine / ptrdiff_t{sizeof(float)}, kPanelsAtOnce = 4;

float* on_cache_line(float* p) {
  constexpr uintptr_t line = matmul_detail::kCacheLine;
  return p + (line - reinterpret_cast<uintptr_t>(p) % line) % line / sizeof(float);
}

}  // namespace

// Panels outside, blocks inside: a panel (16 KiB at depth 128) stays in the first-level cache while the blocks stream
// past it.
void matmul_packed(const PackedProduct& product, BlockRange blocks, BlockRange panels) {
  for (ptrdiff_t panel = panels.begin; panel < panels.end; ++panel) {
    const Panel moving = {product.moving + panel * product.depth * kMovingPanel, kMovingPanel};
    panel_product(product, moving, blocks, panel);
  }
}

bool reads_unpacked(const OperandRows& rows) { return has_simd_rows(rows); }

void matmul_unpacked(const PackedProduct& product, const OperandRows& moving, float* scratch) {
  const ptrdiff_t whole = product.cols / kMovingPanel, rest = product.cols - whole * kMovingPanel;
  for (ptrdiff_t panel = 0; panel < whole; ++panel) HWY_DYNAMIC_DISPATCH(UnpackedPanelProduct)(product, moving, panel);
  if (rest == 0) return;
  pack_moving(from_column(moving, whole * kMovingPanel), product.depth, rest, whole_depth(product.depth), {0, 1},
              scratch);
  panel_product(product, {scratch, kMovingPanel}, {0, stationary_blocks(product.rows)}, whole);
}

void put_turned(const float* sums, Block d, ptrdiff_t rows, ptrdiff_t cols, Accumulate accumulate) {
  if (accumulate == Accumulate::kOverwrite) {
    transpose_bytes(sums, rows * ptrdiff_t{sizeof(float)}, d.data, d.pitch * ptrdiff_t{sizeof(float)}, cols, rows,
                    sizeof(float));
    return;
  }
  for (ptrdiff_t m = 0; m < rows; ++m)
    for (ptrdiff_t n = 0; n < cols; ++n) {
      float& at = d.data[m * d.pitch + n];
      at = matmul_detail::without_nan_payload(at + sums[n * rows + m]);
    }
}

void matmul_rows(const OperandRows& stationary, const OperandRows& moving, Block d, ptrdiff_t depth, ptrdiff_t rows,
                 ptrdiff_t cols, Accumulate accumulate, float* scratch) {
  float* const packed_stationary = on_cache_line(scratch);
  float* const packed_panels = on_cache_line(packed_stationary + packed_stationary_floats(depth, rows));
  const BlockRange blocks = {0, stationary_blocks(rows)};
  pack_stationary(stationary, depth, rows, whole_depth(depth), blocks, packed_stationary);
  const bool is_simple = has_simd_rows(moving);
  // Formats that go through decode_row are packed several panels at a time, so that its rows are not too short.
  const ptrdiff_t at_once = is_simple ? 1 : kPanelsAtOnce;
  for (ptrdiff_t panel = 0; panel < moving_panels(cols); panel += at_once) {
    const ptrdiff_t col = panel * kMovingPanel, width = std::min(at_once * kMovingPanel, cols - col);
    const OperandRows source = from_column(moving, col);
    const Block part = {d.data + col, d.pitch};
    const PackedProduct product = {packed_stationary, packed_panels, part, depth, rows, width, accumulate};
    if (is_simple && width == kMovingPanel && blocks.end > 1) {
      const OperandRows next = from_column(source, kMovingPanel);
      HWY_DYNAMIC_DISPATCH(FreshPanelProduct)(product, source, panel + 1 < moving_panels(cols) ? &next : nullptr,
                                              packed_panels);
      continue;
    }
    // With a single block of rows a panel is read once: packing it would cost as much as using it.
    if (is_simple && width == kMovingPanel) {
      HWY_DYNAMIC_DISPATCH(UnpackedPanelProduct)(product, source, 0);
      continue;
    }
    const BlockRange panels = {0, moving_panels(width)};
    pack_moving(source, depth, width, whole_depth(depth), panels, packed_panels);
    matmul_packed(product, blocks, panels);
  }
}

void matmul_block(ConstBlock stationary, ConstBlock moving, Block d, ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols,
                  Accumulate accumulate, float* scratch) {
  matmul_rows(operand_rows(stationary), operand_rows(moving), d, depth, rows, cols, accumulate, scratch);
}

ptrdiff_t matmul_scratch_floats(ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols) {
  return packed_stationary_floats(depth, rows) +
         packed_moving_floats(depth, std::min(cols, kPanelsAtOnce * kMovingPanel)) + 2 * kCacheLineFloats;
}

}  // namespace sterna
#endif  // HWY_ONCE
