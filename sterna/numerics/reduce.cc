// SPDX-License-Identifier: Apache-2.0
// Reductions along rows. The order is fixed (alu.h): element i joins partial i mod 16, ascending, then partial j takes
// j + 8, j + 4, j + 2, j + 1. Sixteen partials are one AVX-512 register, two of AVX2, four of NEON.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/reduce.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;
using ops::F;
using ops::kLanes;
using ops::V;

inline constexpr int kParts = static_cast<int>(kReductionPartials / kLanes);  ///< registers that hold a row's partials
inline constexpr int kRowsAtOnce = 8 / kParts;  ///< eight chains hide the latency of an addition

// What a reduction does to one vector. In a sum or product NaN stays NaN, so its payload needs mending only at the end.
struct Sum {
  static HWY_INLINE V join(V p, V x) { return hn::Add(p, x); }
  static HWY_INLINE V finish(V p) { return ops::canonical(p); }
};
struct Product {
  static HWY_INLINE V join(V p, V x) { return hn::Mul(p, x); }
  static HWY_INLINE V finish(V p) { return ops::canonical(p); }
};
template <class Op>
struct Exact {
  static HWY_INLINE V join(V p, V x) { return Op::apply(p, x); }
  static HWY_INLINE V finish(V p) { return p; }
};

/// The partials of kRows rows.
template <int kRows>
struct Partials {
  V of[kRows][kParts];
};

/// Joins `cols` elements of each row, the first of which belongs to partial 0.
template <class R, int kRows>
HWY_INLINE void join_rows(const float* a, ptrdiff_t pitch, ptrdiff_t cols, Partials<kRows>& p) {
  ptrdiff_t c = 0;
  for (; c + kReductionPartials <= cols; c += kReductionPartials) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < kParts; ++k) p.of[r][k] = R::join(p.of[r][k], hn::LoadU(F(), a + r * pitch + c + k * kLanes));
  }
#pragma GCC unroll 4
  for (int k = 0; k < kParts; ++k) {
    const ptrdiff_t left = cols - c - k * kLanes;
    if (left <= 0) return;
    const ptrdiff_t count = left < kLanes ? left : kLanes;
    const auto mask = hn::FirstN(F(), static_cast<size_t>(count));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V x = ops::load_first(a + r * pitch + c + k * kLanes, count);
      p.of[r][k] = hn::IfThenElse(mask, R::join(p.of[r][k], x), p.of[r][k]);
    }
  }
}

/// The tree 8, 4, 2, 1. The result is in lane 0; the other lanes hold nothing of use.
template <class R>
HWY_INLINE V tree(const V (&p)[kParts]) {
  V v = p[0];
  if constexpr (kParts == 4) v = R::join(R::join(p[0], p[2]), R::join(p[1], p[3]));
  if constexpr (kParts == 2) v = R::join(p[0], p[1]);
  if constexpr (kParts == 1) v = R::join(v, hn::ConcatUpperUpper(F(), v, v));
#if HWY_TARGET != HWY_NEON
  v = R::join(v, hn::SwapAdjacentBlocks(v));
#endif
  v = R::join(v, hn::Shuffle1032(v));
  v = R::join(v, hn::Shuffle2301(v));
  return R::finish(v);
}

template <class R, int kRows>
void reduce_rows(float identity, const float* a, ptrdiff_t pitch, float* d, ptrdiff_t d_pitch, ptrdiff_t cols) {
  Partials<kRows> p;
  for (auto& row : p.of)
    for (V& v : row) v = hn::Set(F(), identity);
  join_rows<R, kRows>(a, pitch, cols, p);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) d[r * d_pitch] = hn::GetLane(tree<R>(p.of[r]));
}

template <class R>
void reduce_loop(float identity, ConstBlock a, float* d, ptrdiff_t d_pitch, ptrdiff_t rows, ptrdiff_t cols) {
  ptrdiff_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
    reduce_rows<R, kRowsAtOnce>(identity, a.data + r * a.pitch, a.pitch, d + r * d_pitch, d_pitch, cols);
  for (; r < rows; ++r) reduce_rows<R, 1>(identity, a.data + r * a.pitch, a.pitch, d + r * d_pitch, d_pitch, cols);
}

// Maximum and minimum do not depend on order, and the processor's own max is right but for NaN and the sign of a zero
// result. A row of that kind is found afterwards and done again exactly. The running sum is there only to catch NaN (an
// infinity of each sign raises a false alarm, which costs time alone).
struct LooseMaximum {
  static HWY_INLINE V join(V p, V x) { return hn::Max(x, p); }
  static HWY_INLINE V finish(V p) { return p; }
  using Certain = Exact<ops::Maximum>;
};
struct LooseMinimum {
  static HWY_INLINE V join(V p, V x) { return hn::Min(x, p); }
  static HWY_INLINE V finish(V p) { return p; }
  using Certain = Exact<ops::Minimum>;
};

/// Joins as join_rows does, loosely, and adds everything up in `sum`.
template <class R, int kRows>
HWY_INLINE void join_loosely(const float* a, ptrdiff_t pitch, ptrdiff_t cols, Partials<kRows>& p,
                             Partials<kRows>& sum) {
  ptrdiff_t c = 0;
  for (; c + kReductionPartials <= cols; c += kReductionPartials) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < kParts; ++k) {
        const V x = hn::LoadU(F(), a + r * pitch + c + k * kLanes);
        p.of[r][k] = R::join(p.of[r][k], x);
        sum.of[r][k] = hn::Add(sum.of[r][k], x);
      }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kParts; ++k) {
    const ptrdiff_t left = cols - c - k * kLanes;
    if (left <= 0) return;
    const ptrdiff_t count = left < kLanes ? left : kLanes;
    const auto mask = hn::FirstN(F(), static_cast<size_t>(count));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V x = ops::load_first(a + r * pitch + c + k * kLanes, count);
      p.of[r][k] = hn::IfThenElse(mask, R::join(p.of[r][k], x), p.of[r][k]);
      sum.of[r][k] = hn::Add(sum.of[r][k], x);
    }
  }
}

template <int kRows>
HWY_INLINE void fill(Partials<kRows>& p, float value) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int k = 0; k < kParts; ++k) p.of[r][k] = hn::Set(F(), value);
}

HWY_INLINE bool any_nan(const V (&sum)[kParts]) {
  V total = sum[0];
#pragma GCC unroll 3
  for (int k = 1; k < kParts; ++k) total = hn::Add(total, sum[k]);
  return !hn::AllFalse(F(), hn::IsNaN(total));
}

template <class R, int kRows>
void extreme_rows(float identity, const float* a, ptrdiff_t pitch, float* d, ptrdiff_t d_pitch, ptrdiff_t cols) {
  Partials<kRows> p, sum;
  fill(p, identity);
  fill(sum, 0.0f);
  join_loosely<R, kRows>(a, pitch, cols, p, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const float value = hn::GetLane(tree<R>(p.of[r]));
    d[r * d_pitch] = value;
    if (value == 0.0f || any_nan(sum.of[r])) [[unlikely]]
      reduce_rows<typename R::Certain, 1>(identity, a + r * pitch, pitch, d + r * d_pitch, d_pitch, cols);
  }
}

template <class R>
void extreme_loop(float identity, ConstBlock a, float* d, ptrdiff_t d_pitch, ptrdiff_t rows, ptrdiff_t cols) {
  constexpr int kRows = kRowsAtOnce / 2;  // two chains a row
  ptrdiff_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    extreme_rows<R, kRows>(identity, a.data + r * a.pitch, a.pitch, d + r * d_pitch, d_pitch, cols);
  for (; r < rows; ++r) extreme_rows<R, 1>(identity, a.data + r * a.pitch, a.pitch, d + r * d_pitch, d_pitch, cols);
}

/// Calls `run` with the exact form of a reduction.
template <class Run>
HWY_INLINE void with_reduction(AluOp op, const Run& run) {
  switch (op) {
    case AluOp::kMultiply: return run(Product());
    case AluOp::kMaximum: return run(Exact<ops::Maximum>());
    case AluOp::kMinimum: return run(Exact<ops::Minimum>());
    case AluOp::kAbsMax: return run(Exact<ops::AbsMax>());
    case AluOp::kAbsMin: return run(Exact<ops::AbsMin>());
    case AluOp::kLogicalAnd: return run(Exact<ops::LogicalAnd>());
    case AluOp::kLogicalOr: return run(Exact<ops::LogicalOr>());
    case AluOp::kLogicalXor: return run(Exact<ops::LogicalXor>());
    default: return run(Sum());  // add, average
  }
}

void ReduceTwin(AluOp op, ConstBlock a, float* d, ptrdiff_t d_pitch, ptrdiff_t rows, ptrdiff_t cols) {
  const float identity = reduction_identity(op);
  if (op == AluOp::kMaximum) return extreme_loop<LooseMaximum>(identity, a, d, d_pitch, rows, cols);
  if (op == AluOp::kMinimum) return extreme_loop<LooseMinimum>(identity, a, d, d_pitch, rows, cols);
  with_reduction(op, [&](auto r) HWY_ATTR { reduce_loop<decltype(r)>(identity, a, d, d_pitch, rows, cols); });
}

HWY_INLINE void load_partials(const float* from, V (&p)[kParts]) {
#pragma GCC unroll 4
  for (int k = 0; k < kParts; ++k) p[k] = hn::LoadU(F(), from + k * kLanes);
}

template <class R, int kRows>
void state_rows(const float* a, ptrdiff_t pitch, ptrdiff_t cols, float* partials) {
  Partials<kRows> p;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) load_partials(partials + r * kReductionPartials, p.of[r]);
  join_rows<R, kRows>(a, pitch, cols, p);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int k = 0; k < kParts; ++k)
      hn::StoreU(R::finish(p.of[r][k]), F(), partials + r * kReductionPartials + k * kLanes);
}

void StateTwin(AluOp op, ConstBlock a, ptrdiff_t rows, ptrdiff_t cols, float* partials) {
  with_reduction(op, [&](auto reduction) HWY_ATTR {
    using R = decltype(reduction);
    ptrdiff_t r = 0;
    for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
      state_rows<R, kRowsAtOnce>(a.data + r * a.pitch, a.pitch, cols, partials + r * kReductionPartials);
    for (; r < rows; ++r) state_rows<R, 1>(a.data + r * a.pitch, a.pitch, cols, partials + r * kReductionPartials);
  });
}

void FinishTwin(AluOp op, const float* partials, float* d, ptrdiff_t d_pitch, ptrdiff_t rows) {
  with_reduction(op, [&](auto reduction) HWY_ATTR {
    for (ptrdiff_t r = 0; r < rows; ++r) {
      V p[kParts];
      load_partials(partials + r * kReductionPartials, p);
      d[r * d_pitch] = hn::GetLane(tree<decltype(reduction)>(p));
    }
  });
}

#else   // the static baseline: never called
void ReduceTwin(AluOp, ConstBlock, float*, ptrdiff_t, ptrdiff_t, ptrdiff_t) {}
void StateTwin(AluOp, ConstBlock, ptrdiff_t, ptrdiff_t, float*) {}
void FinishTwin(AluOp, const float*, float*, ptrdiff_t, ptrdiff_t) {}
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(ReduceTwin);
HWY_EXPORT(StateTwin);
HWY_EXPORT(FinishTwin);

void clear_partials(AluOp op, float* partials, ptrdiff_t count) {
  const float identity = reduction_identity(op);
  for (ptrdiff_t i = 0; i < count; ++i) partials[i] = identity;
}

/// The definition of the first half: elements start .. start + cols - 1 of a row join their partials.
void join_definition(AluOp op, const float* a, ptrdiff_t cols, ptrdiff_t start, float* partials) {
  for (ptrdiff_t i = 0; i < cols; ++i) {
    float& p = partials[(start + i) % kReductionPartials];
    p = alu(op, p, a[i]);
  }
}

/// The definition of the second half.
float tree_definition(AluOp op, const float* partials) {
  float p[kReductionPartials];
  for (ptrdiff_t j = 0; j < kReductionPartials; ++j) p[j] = partials[j];
  for (ptrdiff_t span = kReductionPartials / 2; span >= 1; span /= 2)
    for (ptrdiff_t j = 0; j < span; ++j) p[j] = alu(op, p[j], p[j + span]);
  return p[0];
}

/// The reductions that Sterna has; anything else runs through the definition, for what that is worth.
bool has_twin(AluOp op) { return simd_target() != SimdTarget::kScalar && is_reduction(op) && !is_bitwise(op); }

}  // namespace

void reduce_block(AluOp op, ConstBlock a, float* d, ptrdiff_t d_pitch, ptrdiff_t rows, ptrdiff_t cols) {
  if (has_twin(op)) return HWY_DYNAMIC_DISPATCH(ReduceTwin)(op, a, d, d_pitch, rows, cols);
  for (ptrdiff_t r = 0; r < rows; ++r) {
    float partials[kReductionPartials];
    clear_partials(op, partials, kReductionPartials);
    join_definition(op, a.data + r * a.pitch, cols, 0, partials);
    d[r * d_pitch] = tree_definition(op, partials);
  }
}

void reduce_block_state(AluOp op, ConstBlock a, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t start_index,
                        float* partials) {
  if (start_index == 0) clear_partials(op, partials, rows * kReductionPartials);
  // Elements before the next multiple of 16 join one by one; after them the vectors line up with the partials.
  ptrdiff_t head = cols;
  if (has_twin(op)) {
    head = (kReductionPartials - start_index % kReductionPartials) % kReductionPartials;
    if (head > cols) head = cols;
  }
  if (head > 0)
    for (ptrdiff_t r = 0; r < rows; ++r)
      join_definition(op, a.data + r * a.pitch, head, start_index, partials + r * kReductionPartials);
  if (head < cols) HWY_DYNAMIC_DISPATCH(StateTwin)(op, {a.data + head, a.pitch}, rows, cols - head, partials);
}

void reduce_finish(AluOp op, const float* partials, float* d, ptrdiff_t d_pitch, ptrdiff_t rows) {
  if (has_twin(op)) return HWY_DYNAMIC_DISPATCH(FinishTwin)(op, partials, d, d_pitch, rows);
  for (ptrdiff_t r = 0; r < rows; ++r) d[r * d_pitch] = tree_definition(op, partials + r * kReductionPartials);
}

}  // namespace sterna
#endif  // HWY_ONCE
