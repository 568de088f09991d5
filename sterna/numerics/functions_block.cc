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
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if STERNA_SIMD_BODY

/// One vector of fp32 lanes, and half as many fp64 lanes in a vector of the same size.
struct VectorOps {
  using TagF = hn::ScalableTag<float>;
  using TagU = hn::RebindToUnsigned<TagF>;
  using TagI = hn::RebindToSigned<TagF>;
  using TagD = hn::ScalableTag<double>;
  using TagQ = hn::RebindToUnsigned<TagD>;
  using TagHalf = hn::Half<TagF>;
  using F = hn::Vec<TagF>;
  using U = hn::Vec<TagU>;
  using D = hn::Vec<TagD>;
  using Q = hn::Vec<TagQ>;

  static HWY_INLINE F f(float v) { return hn::Set(TagF(), v); }
  static HWY_INLINE U u(uint32_t v) { return hn::Set(TagU(), v); }
  static HWY_INLINE D d(double v) { return hn::Set(TagD(), v); }
  static HWY_INLINE Q q(uint64_t v) { return hn::Set(TagQ(), v); }

  template <class V>
  static HWY_INLINE V add(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V sub(V a, V b) {
    return hn::Sub(a, b);
  }
  template <class V>
  static HWY_INLINE V mul(V a, V b) {
    return hn::Mul(a, b);
  }
  template <class V>
  static HWY_INLINE V div(V a, V b) {
    return hn::Div(a, b);
  }
  template <class V>
  static HWY_INLINE V fma(V a, V b, V c) {
    return hn::MulAdd(a, b, c);
  }
  template <class V>
  static HWY_INLINE V fnma(V a, V b, V c) {
    return hn::NegMulAdd(a, b, c);
  }
  template <class V>
  static HWY_INLINE V sqrt(V a) {
    return hn::Sqrt(a);
  }
  template <class V>
  static HWY_INLINE V min(V a, V b) {
    return hn::Min(a, b);
  }
  template <class V>
  static HWY_INLINE V max(V a, V b) {
    return hn::Max(a, b);
  }
  template <class V>
  static HWY_INLINE V abs(V a) {
    return hn::Abs(a);
  }
  template <class V>
  static HWY_INLINE V copy_sign(V magnitude, V sign) {
    return hn::CopySignToAbs(magnitude, sign);
  }
  template <class V>
  static HWY_INLINE auto lt(V a, V b) {
    return hn::Lt(a, b);
  }
  template <class V>
  static HWY_INLINE auto is_nan(V a) {
    return hn::IsNaN(a);
  }
  template <class M, class V>
  static HWY_INLINE V select(M condition, V yes, V no) {
    return hn::IfThenElse(condition, yes, no);
  }
  static HWY_INLINE D select_if_odd(Q n, D odd, D even) {
    return hn::IfThenElse(hn::RebindMask(TagD(), hn::TestBit(n, hn::Set(TagQ(), 1))), odd, even);
  }

  static HWY_INLINE U bits(F v) { return hn::BitCast(TagU(), v); }
  static HWY_INLINE Q bits(D v) { return hn::BitCast(TagQ(), v); }
  static HWY_INLINE F from_bits(U v) { return hn::BitCast(TagF(), v); }
  static HWY_INLINE D from_bits(Q v) { return hn::BitCast(TagD(), v); }
  template <class V>
  static HWY_INLINE V iadd(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V isub(V a, V b) {
    return hn::Sub(a, b);
  }
  template <class V>
  static HWY_INLINE V iand(V a, V b) {
    return hn::And(a, b);
  }
  template <class V>
  static HWY_INLINE V ixor(V a, V b) {
    return hn::Xor(a, b);
  }
  template <int n, class V>
  static HWY_INLINE V shl(V a) {
    return hn::ShiftLeft<n>(a);
  }
  template <int n, class V>
  static HWY_INLINE V shr(V a) {
    return hn::ShiftRight<n>(a);
  }
  template <int n>
  static HWY_INLINE U sar(U a) {
    return hn::BitCast(TagU(), hn::ShiftRight<n>(hn::BitCast(TagI(), a)));
  }

  template <class Formula>
  static HWY_INLINE F wide(F x) {
    const D low = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::LowerHalf(TagHalf(), x)));
    const D high = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::UpperHalf(TagHalf(), x)));
    return hn::Combine(TagF(), hn::DemoteTo(TagHalf(), high), hn::DemoteTo(TagHalf(), low));
  }
};

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
