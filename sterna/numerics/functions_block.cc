// SPDX-License-Identifier: Apache-2.0
// The activation functions on blocks: the formulas of functions_formulas-inl.h over SIMD lanes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sterna/numerics/functions.h"

// clang-format off: simd.h configures the Highway headers and must come before them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/functions_block.cc"
#include "sterna/numerics/simd.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/operations_vector-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if STERNA_SIMD_BODY

#include "sterna/numerics/functions_formulas-inl.h"

constexpr VectorOps::TagF kTag;
constexpr ptrdiff_t kMaxLanes = 16;

/// Whether masked loads and stores are one instruction that never touches what is masked off.
constexpr bool kMasks = HWY_TARGET != HWY_NEON;

/// The first `count` lanes, fewer than a vector; the others are zero and are not read.
HWY_INLINE VectorOps::F load_part(const float* a, ptrdiff_t count) {
  if constexpr (kMasks) {
    return hn::MaskedLoad(hn::FirstN(kTag, static_cast<size_t>(count)), kTag, a);
  } else {
    HWY_ALIGN float lanes[kMaxLanes] = {};
    for (ptrdiff_t i = 0; i < count; ++i) lanes[i] = a[i];
    return hn::Load(kTag, lanes);
  }
}
HWY_INLINE void store_part(VectorOps::F v, float* d, ptrdiff_t count) {
  if constexpr (kMasks) {
    hn::BlendedStore(v, hn::FirstN(kTag, static_cast<size_t>(count)), kTag, d);
  } else {
    HWY_ALIGN float lanes[kMaxLanes];
    hn::Store(v, kTag, lanes);
    for (ptrdiff_t i = 0; i < count; ++i) d[i] = lanes[i];
  }
}

/// f of every lane. Rare large angles take the scalar definition.
template <Function f>
HWY_INLINE VectorOps::F one_vector(VectorOps::F x) {
  const VectorOps::F r = evaluate_as<VectorOps, f>(x);
  if constexpr (kNeedsLargeAngle<f>) {
    const VectorOps::F magnitude = hn::Abs(x);
    const auto finite = hn::Lt(magnitude, hn::Set(kTag, std::numeric_limits<float>::infinity()));
    const auto large = hn::And(finite, hn::Ge(magnitude, hn::Set(kTag, kLargeAngle)));
    if (HWY_UNLIKELY(!hn::AllFalse(kTag, large))) {
      HWY_ALIGN float in[kMaxLanes];
      HWY_ALIGN float out[kMaxLanes];
      hn::Store(x, kTag, in);
      hn::Store(r, kTag, out);
      for (size_t i = 0; i < hn::Lanes(kTag); ++i) {
        if (std::fabs(in[i]) >= kLargeAngle) out[i] = evaluate(f, in[i]);
      }
      return hn::Load(kTag, out);
    }
  }
  return r;
}

template <Function f>
void one_row(const float* a, float* d, ptrdiff_t cols) {
  const ptrdiff_t lanes = static_cast<ptrdiff_t>(hn::Lanes(kTag));
  ptrdiff_t c = 0;
  for (; c + lanes <= cols; c += lanes) hn::StoreU(one_vector<f>(hn::LoadU(kTag, a + c)), kTag, d + c);
  if (c < cols) store_part(one_vector<f>(load_part(a + c, cols - c)), d + c, cols - c);
}

/// Rows that are not whole vectors, laid end to end in a buffer that has room for one vector more.
HWY_INLINE void pack(const float* from, ptrdiff_t pitch, float* packed, ptrdiff_t rows, ptrdiff_t cols) {
  if (cols == 1) {
    for (ptrdiff_t r = 0; r < rows; ++r) packed[r] = from[r * pitch];
    return;
  }
  const ptrdiff_t lanes = static_cast<ptrdiff_t>(hn::Lanes(kTag));
  const ptrdiff_t whole = cols - cols % lanes;
  for (ptrdiff_t r = 0; r < rows; ++r, from += pitch, packed += cols) {
    for (ptrdiff_t c = 0; c < whole; c += lanes) hn::StoreU(hn::LoadU(kTag, from + c), kTag, packed + c);
    if constexpr (kMasks) {
      hn::StoreU(load_part(from + whole, cols - whole), kTag, packed + whole);  // the next row overwrites the zeros
    } else {
      for (ptrdiff_t c = whole; c < cols; ++c) packed[c] = from[c];
    }
  }
}
HWY_INLINE void unpack(const float* packed, float* to, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t cols) {
  if (cols == 1) {
    for (ptrdiff_t r = 0; r < rows; ++r) to[r * pitch] = packed[r];
    return;
  }
  const ptrdiff_t lanes = static_cast<ptrdiff_t>(hn::Lanes(kTag));
  const ptrdiff_t whole = cols - cols % lanes;
  for (ptrdiff_t r = 0; r < rows; ++r, to += pitch, packed += cols) {
    for (ptrdiff_t c = 0; c < whole; c += lanes) hn::StoreU(hn::LoadU(kTag, packed + c), kTag, to + c);
    if constexpr (kMasks) {
      store_part(hn::LoadU(kTag, packed + whole), to + whole, cols - whole);
    } else {
      for (ptrdiff_t c = whole; c < cols; ++c) to[c] = packed[c];
    }
  }
}

template <Function f>
void packed_rows(ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr ptrdiff_t kCapacity = 1024;
  HWY_ALIGN float packed[kCapacity + kMaxLanes];
  const ptrdiff_t batch = kCapacity / cols;
  for (ptrdiff_t start = 0; start < rows; start += batch) {
    const ptrdiff_t count = std::min(batch, rows - start);
    pack(a.data + start * a.pitch, a.pitch, packed, count, cols);
    one_row<f>(packed, packed, count * cols);
    unpack(packed, d.data + start * d.pitch, d.pitch, count, cols);
  }
}

template <Function f>
void block(ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  const ptrdiff_t lanes = static_cast<ptrdiff_t>(hn::Lanes(kTag));
  if (rows == 1 || (a.pitch == cols && d.pitch == cols)) return one_row<f>(a.data, d.data, rows * cols);
  if (cols % lanes != 0 && cols < 4 * lanes) return packed_rows<f>(a, d, rows, cols);
  if (cols == lanes) {  // without the call per row
    for (ptrdiff_t r = 0; r < rows; ++r) {
      hn::StoreU(one_vector<f>(hn::LoadU(kTag, a.data + r * a.pitch)), kTag, d.data + r * d.pitch);
    }
    return;
  }
  for (ptrdiff_t r = 0; r < rows; ++r) one_row<f>(a.data + r * a.pitch, d.data + r * d.pitch, cols);
}

using BlockFunction = void (*)(ConstBlock, Block, ptrdiff_t, ptrdiff_t);
template <int... i>
constexpr std::array<BlockFunction, sizeof...(i)> block_table(std::integer_sequence<int, i...>) {
  return {block<static_cast<Function>(i)>...};
}
constexpr auto kBlockTable = block_table(std::make_integer_sequence<int, kFunctionCount>{});

void FunctionBlock(Function f, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  kBlockTable[static_cast<size_t>(f)](a, d, rows, cols);
}

#else
void FunctionBlock(Function, ConstBlock, Block, ptrdiff_t, ptrdiff_t) {}  // static baseline target: never called
#endif
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
HWY_EXPORT(FunctionBlock);

namespace {
void scalar_block(Function f, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  for (ptrdiff_t r = 0; r < rows; ++r) {
    for (ptrdiff_t c = 0; c < cols; ++c) d.data[r * d.pitch + c] = evaluate(f, a.data[r * a.pitch + c]);
  }
}
}  // namespace

void function_block(Function f, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  if (rows <= 0 || cols <= 0) return;
  if (simd_target() == SimdTarget::kScalar) return scalar_block(f, a, d, rows, cols);
  HWY_DYNAMIC_DISPATCH(FunctionBlock)(f, a, d, rows, cols);
}

}  // namespace sterna
#endif  // HWY_ONCE
