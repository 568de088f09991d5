// SPDX-License-Identifier: Apache-2.0
// Two ALU steps in one pass: (a op0 s0) op1 s1 and (a op0 s0) op1 b. Each step still rounds once. The usual pairs have
// a fused SIMD loop; any other pair runs as two block calls through a buffer small enough to stay in the first-level
// cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/alu_pairs.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_ops-inl.h"

#ifndef STERNA_NUMERICS_ALU_PAIRS_ONCE_
#define STERNA_NUMERICS_ALU_PAIRS_ONCE_
namespace sterna {
namespace {

/// One call. `second` is a block of the shape of `a`, or one value a row.
struct PairCall {
  AluOp op0, op1;
  bool reverse0, reverse1, second_is_block;
  ConstBlock a, s0, second;
  Block d;
  ptrdiff_t rows, cols;
};

}  // namespace
}  // namespace sterna
#endif

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;
using ops::F;
using ops::kLanes;
using ops::V;

// First steps keep NaN as it comes: the second step makes it canonical.
struct FirstAdd {
  static HWY_INLINE V apply(V x, V s) { return hn::Add(x, s); }
};
struct FirstSubtract {
  static HWY_INLINE V apply(V x, V s) { return hn::Sub(x, s); }
};
struct FirstMultiply {
  static HWY_INLINE V apply(V x, V s) { return hn::Mul(x, s); }
};

template <class Step0, class Step1, bool kBlock>
void pair_loop(const PairCall& call) {
  const F f;
  const PairCall local = call;  // a copy that the stores below cannot touch
  const ptrdiff_t cols = local.cols, whole = cols - cols % kLanes;
  const float* pa = local.a.data;
  const float* pb = local.second.data;
  const float* ps = local.s0.data;
  float* pd = local.d.data;
  for (ptrdiff_t r = 0; r < local.rows; ++r) {
    const V s0 = hn::Set(f, *ps);
    const V s1 = kBlock ? hn::Zero(f) : hn::Set(f, *pb);
    const auto at = [&](ptrdiff_t c) HWY_ATTR {
      return Step1::apply(Step0::apply(hn::LoadU(f, pa + c), s0), kBlock ? hn::LoadU(f, pb + c) : s1);
    };
    if (whole == cols) {
      for (ptrdiff_t c = 0; c < cols; c += kLanes) hn::StoreU(at(c), f, pd + c);
    } else if (whole != 0) {
      // The last vector overlaps the one before it. It is computed first because d may be a or b.
      const V last = at(cols - kLanes);
      for (ptrdiff_t c = 0; c < whole; c += kLanes) hn::StoreU(at(c), f, pd + c);
      hn::StoreU(last, f, pd + cols - kLanes);
    } else {
      const V y = kBlock ? ops::load_first(pb, cols) : s1;
      ops::store_first(Step1::apply(Step0::apply(ops::load_first(pa, cols), s0), y), pd, cols);
    }
    pa += local.a.pitch;
    pb += local.second.pitch;
    ps += local.s0.pitch;
    pd += local.d.pitch;
  }
}

template <class Step0, class Step1>
bool with_second(const PairCall& call) {
  if (call.second_is_block)
    pair_loop<Step0, Step1, true>(call);
  else
    pair_loop<Step0, Step1, false>(call);
  return true;
}

template <class Step0>
bool with_first(const PairCall& call) {
  switch (call.op1) {
    case AluOp::kAdd: return with_second<Step0, ops::Add>(call);
    case AluOp::kMultiply: return with_second<Step0, ops::Multiply>(call);
    case AluOp::kMaximum: return with_second<Step0, ops::Maximum>(call);
    case AluOp::kMinimum: return with_second<Step0, ops::Minimum>(call);
    case AluOp::kSubtract:
      if (call.reverse1) return with_second<Step0, ops::Swapped<ops::Subtract>>(call);
      return with_second<Step0, ops::Subtract>(call);
    default: return false;
  }
}

/// False if the pair has no fused loop.
bool PairTwin(const PairCall& call) {
  switch (call.op0) {
    case AluOp::kAdd: return with_first<FirstAdd>(call);
    case AluOp::kMultiply: return with_first<FirstMultiply>(call);
    case AluOp::kSubtract:
      if (call.reverse0) return with_first<ops::Swapped<FirstSubtract>>(call);
      return with_first<FirstSubtract>(call);
    default: return false;
  }
}

#else   // the static baseline: never called
bool PairTwin(const PairCall&) { return false; }
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(PairTwin);

/// The two steps one after the other on a piece that fits the buffer.
void two_steps(const PairCall& call, float* buffer) {
  const ConstBlock middle{buffer, call.cols};
  alu_block_scalar(call.op0, call.a, call.s0.data, call.s0.pitch, call.reverse0, {buffer, call.cols}, call.rows,
                   call.cols);
  if (!call.second_is_block) {
    alu_block_scalar(call.op1, middle, call.second.data, call.second.pitch, call.reverse1, call.d, call.rows,
                     call.cols);
  } else if (call.reverse1) {
    alu_block(call.op1, call.second, middle, call.d, call.rows, call.cols);
  } else {
    alu_block(call.op1, middle, call.second, call.d, call.rows, call.cols);
  }
}

void in_pieces(const PairCall& call) {
  constexpr ptrdiff_t kBuffer = 2048;
  float buffer[kBuffer];
  const ptrdiff_t piece_cols = call.cols < kBuffer ? call.cols : kBuffer;
  const ptrdiff_t piece_rows = kBuffer / piece_cols;
  for (ptrdiff_t r = 0; r < call.rows; r += piece_rows)
    for (ptrdiff_t c = 0; c < call.cols; c += piece_cols) {
      PairCall piece = call;
      piece.rows = call.rows - r < piece_rows ? call.rows - r : piece_rows;
      piece.cols = call.cols - c < piece_cols ? call.cols - c : piece_cols;
      piece.a.data += r * call.a.pitch + c;
      piece.s0.data += r * call.s0.pitch;
      piece.second.data += r * call.second.pitch + (call.second_is_block ? c : 0);
      piece.d.data += r * call.d.pitch + c;
      two_steps(piece, buffer);
    }
}

void run(PairCall call) {
  if (call.rows <= 0 || call.cols <= 0) return;
  // A single column is left to the block functions, which gather it.
  if (simd_target() == SimdTarget::kScalar || call.cols == 1) return in_pieces(call);
  const bool joined = call.a.pitch == call.cols && call.d.pitch == call.cols && call.s0.pitch == 0 &&
                      call.second.pitch == (call.second_is_block ? call.cols : 0);
  PairCall flat = call;
  if (joined) {
    flat.cols *= call.rows;
    flat.rows = 1;
  }
  if (!HWY_DYNAMIC_DISPATCH(PairTwin)(flat)) in_pieces(flat);
}

}  // namespace

void alu_block_scalar_scalar(AluOp op0, bool reverse0, const float* s0, ptrdiff_t s0_pitch, AluOp op1, bool reverse1,
                             const float* s1, ptrdiff_t s1_pitch, ConstBlock a, Block d, ptrdiff_t rows,
                             ptrdiff_t cols) {
  run({op0, op1, reverse0, reverse1, false, a, {s0, s0_pitch}, {s1, s1_pitch}, d, rows, cols});
}

void alu_block_scalar_tensor(AluOp op0, bool reverse0, const float* s0, ptrdiff_t s0_pitch, AluOp op1, bool reverse1,
                             ConstBlock b, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  run({op0, op1, reverse0, reverse1, true, a, {s0, s0_pitch}, b, d, rows, cols});
}

}  // namespace sterna
#endif  // HWY_ONCE
