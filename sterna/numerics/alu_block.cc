// SPDX-License-Identifier: Apache-2.0
// Block forms of the ALU operators. The scalar loops below are the definition; the SIMD loops give the same bits.
// Blocks are often small (128 rows of 16), so the operator is chosen once, outside the loops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/alu_block.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_ops-inl.h"
#include "sterna/numerics/functions.h"
#include "sterna/numerics/operations_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;
using ops::kLanes;

#include "sterna/numerics/functions_formulas-inl.h"
#include "sterna/numerics/power_formula-inl.h"

struct PowerOp {
  static HWY_INLINE ops::V apply(ops::V a, ops::V b) { return ops::canonical(VectorOps::wide<Power>(a, b)); }
};

// Blocks go by reference: a struct copied through the stack just after its fields were stored waits for the stores.

/// Rows narrower than a vector.
template <class Op, bool kRowScalar>
void narrow_rows(const ConstBlock& a, const ConstBlock& b, const Block& d, ptrdiff_t rows, ptrdiff_t cols) {
  const ops::F f;
  const float *pa = a.data, *pb = b.data;
  float* pd = d.data;
  const ptrdiff_t step_a = a.pitch, step_b = b.pitch, step_d = d.pitch;
  for (ptrdiff_t r = 0; r < rows; ++r, pa += step_a, pb += step_b, pd += step_d) {
    const ops::V y = kRowScalar ? hn::Set(f, *pb) : ops::load_first(pb, cols);
    ops::store_first(Op::apply(ops::load_first(pa, cols), y), pd, cols);
  }
}

/// Rows of one vector, without an inner loop.
template <class Op, bool kRowScalar>
void vector_rows(const ConstBlock& a, const ConstBlock& b, const Block& d, ptrdiff_t rows) {
  const ops::F f;
  const float *pa = a.data, *pb = b.data;
  float* pd = d.data;
  const ptrdiff_t step_a = a.pitch, step_b = b.pitch, step_d = d.pitch;
  for (ptrdiff_t r = 0; r < rows; ++r, pa += step_a, pb += step_b, pd += step_d) {
    const ops::V y = kRowScalar ? hn::Set(f, *pb) : hn::LoadU(f, pb);
    hn::StoreU(Op::apply(hn::LoadU(f, pa), y), f, pd);
  }
}

/// d = a op b, where b is a block, or one value a row (kRowScalar).
template <class Op, bool kRowScalar>
void block_loop(const ConstBlock& a, const ConstBlock& b, const Block& d, ptrdiff_t rows, ptrdiff_t cols) {
  if (cols < kLanes) return narrow_rows<Op, kRowScalar>(a, b, d, rows, cols);
  if (cols == kLanes) return vector_rows<Op, kRowScalar>(a, b, d, rows);
  const ops::F f;
  const float *pa = a.data, *pb = b.data;
  float* pd = d.data;
  const ptrdiff_t step_a = a.pitch, step_b = b.pitch, step_d = d.pitch;
  const ptrdiff_t whole = cols - cols % kLanes;
  for (ptrdiff_t r = 0; r < rows; ++r, pa += step_a, pb += step_b, pd += step_d) {
    const ops::V s = kRowScalar ? hn::Set(f, *pb) : hn::Zero(f);
    const auto at = [&](ptrdiff_t c)
                        HWY_ATTR { return Op::apply(hn::LoadU(f, pa + c), kRowScalar ? s : hn::LoadU(f, pb + c)); };
    if (whole == cols) {
      for (ptrdiff_t c = 0; c < cols; c += kLanes) hn::StoreU(at(c), f, pd + c);
    } else {
      // The last vector overlaps the one before it. It is computed first because d may be a or b.
      const ops::V last = at(cols - kLanes);
      for (ptrdiff_t c = 0; c < whole; c += kLanes) hn::StoreU(at(c), f, pd + c);
      hn::StoreU(last, f, pd + cols - kLanes);
    }
  }
}

// A unary operator ignores its second operand; the loop reads it as a row scalar and the compiler drops the load.
template <class Op>
void unary_loop(const ConstBlock& a, const Block& d, ptrdiff_t rows, ptrdiff_t cols) {
  const float unused = 0.0f;
  block_loop<Op, true>(a, {&unused, 0}, d, rows, cols);
}

void UnaryTwin(AluOp op, const ConstBlock& a, const Block& d, ptrdiff_t rows, ptrdiff_t cols) {
  switch (op) {
    case AluOp::kAbs: return unary_loop<ops::Abs>(a, d, rows, cols);
    case AluOp::kSquare: return unary_loop<ops::Square>(a, d, rows, cols);
    case AluOp::kRelu: return unary_loop<ops::Relu>(a, d, rows, cols);
    case AluOp::kRsqrt: return unary_loop<ops::Rsqrt>(a, d, rows, cols);
    case AluOp::kReciprocal: return unary_loop<ops::Reciprocal>(a, d, rows, cols);
    case AluOp::kNegative: return unary_loop<ops::Negative>(a, d, rows, cols);
    case AluOp::kLogicalNot: return unary_loop<ops::LogicalNot>(a, d, rows, cols);
    case AluOp::kSqrt: return unary_loop<ops::Sqrt>(a, d, rows, cols);
    case AluOp::kSign: return unary_loop<ops::Sign>(a, d, rows, cols);
    case AluOp::kFloor: return unary_loop<ops::Floor>(a, d, rows, cols);
    case AluOp::kCeil: return unary_loop<ops::Ceil>(a, d, rows, cols);
    case AluOp::kTrunc: return unary_loop<ops::Trunc>(a, d, rows, cols);
    default: return unary_loop<ops::Bypass>(a, d, rows, cols);
  }
}

void BinaryTwin(AluOp op, const ConstBlock& a, const ConstBlock& b, const Block& d, ptrdiff_t rows, ptrdiff_t cols) {
  switch (op) {
    case AluOp::kSubtract: return block_loop<ops::Subtract, false>(a, b, d, rows, cols);
    case AluOp::kMultiply: return block_loop<ops::Multiply, false>(a, b, d, rows, cols);
    case AluOp::kDivide: return block_loop<ops::Divide, false>(a, b, d, rows, cols);
    case AluOp::kMaximum: return block_loop<ops::Maximum, false>(a, b, d, rows, cols);
    case AluOp::kMinimum: return block_loop<ops::Minimum, false>(a, b, d, rows, cols);
    case AluOp::kPower: return block_loop<PowerOp, false>(a, b, d, rows, cols);
    case AluOp::kAbsMax: return block_loop<ops::AbsMax, false>(a, b, d, rows, cols);
    case AluOp::kAbsMin: return block_loop<ops::AbsMin, false>(a, b, d, rows, cols);
    case AluOp::kEqual: return block_loop<ops::Equal, false>(a, b, d, rows, cols);
    case AluOp::kNotEqual: return block_loop<ops::NotEqual, false>(a, b, d, rows, cols);
    case AluOp::kGreater: return block_loop<ops::Greater, false>(a, b, d, rows, cols);
    case AluOp::kGreaterEqual: return block_loop<ops::GreaterEqual, false>(a, b, d, rows, cols);
    case AluOp::kLess: return block_loop<ops::Greater, false>(b, a, d, rows, cols);
    case AluOp::kLessEqual: return block_loop<ops::GreaterEqual, false>(b, a, d, rows, cols);
    case AluOp::kLogicalAnd: return block_loop<ops::LogicalAnd, false>(a, b, d, rows, cols);
    case AluOp::kLogicalOr: return block_loop<ops::LogicalOr, false>(a, b, d, rows, cols);
    case AluOp::kLogicalXor: return block_loop<ops::LogicalXor, false>(a, b, d, rows, cols);
    default: return block_loop<ops::Add, false>(a, b, d, rows, cols);  // add, average
  }
}

template <class Op>
void scalar_loop(bool reverse, const ConstBlock& a, const ConstBlock& s, const Block& d, ptrdiff_t rows,
                 ptrdiff_t cols) {
  if (reverse) return block_loop<ops::Swapped<Op>, true>(a, s, d, rows, cols);
  block_loop<Op, true>(a, s, d, rows, cols);
}

void ScalarTwin(AluOp op, bool reverse, const ConstBlock& a, const ConstBlock& s, const Block& d, ptrdiff_t rows,
                ptrdiff_t cols) {
  switch (op) {
    case AluOp::kSubtract: return scalar_loop<ops::Subtract>(reverse, a, s, d, rows, cols);
    case AluOp::kDivide: return scalar_loop<ops::Divide>(reverse, a, s, d, rows, cols);
    case AluOp::kPower: return scalar_loop<PowerOp>(reverse, a, s, d, rows, cols);
    case AluOp::kAbsMax: return scalar_loop<ops::AbsMax>(reverse, a, s, d, rows, cols);
    case AluOp::kAbsMin: return scalar_loop<ops::AbsMin>(reverse, a, s, d, rows, cols);
    case AluOp::kGreater: return scalar_loop<ops::Greater>(reverse, a, s, d, rows, cols);
    case AluOp::kGreaterEqual: return scalar_loop<ops::GreaterEqual>(reverse, a, s, d, rows, cols);
    case AluOp::kLess: return scalar_loop<ops::Greater>(!reverse, a, s, d, rows, cols);
    case AluOp::kLessEqual: return scalar_loop<ops::GreaterEqual>(!reverse, a, s, d, rows, cols);
    // The rest do not care about the order of their operands.
    case AluOp::kMultiply: return block_loop<ops::Multiply, true>(a, s, d, rows, cols);
    case AluOp::kMaximum: return block_loop<ops::Maximum, true>(a, s, d, rows, cols);
    case AluOp::kMinimum: return block_loop<ops::Minimum, true>(a, s, d, rows, cols);
    case AluOp::kEqual: return block_loop<ops::Equal, true>(a, s, d, rows, cols);
    case AluOp::kNotEqual: return block_loop<ops::NotEqual, true>(a, s, d, rows, cols);
    case AluOp::kLogicalAnd: return block_loop<ops::LogicalAnd, true>(a, s, d, rows, cols);
    case AluOp::kLogicalOr: return block_loop<ops::LogicalOr, true>(a, s, d, rows, cols);
    case AluOp::kLogicalXor: return block_loop<ops::LogicalXor, true>(a, s, d, rows, cols);
    default: return block_loop<ops::Add, true>(a, s, d, rows, cols);  // add, average
  }
}

#else   // the static baseline: never called
void UnaryTwin(AluOp, const ConstBlock&, const Block&, ptrdiff_t, ptrdiff_t) {}
void BinaryTwin(AluOp, const ConstBlock&, const ConstBlock&, const Block&, ptrdiff_t, ptrdiff_t) {}
void ScalarTwin(AluOp, bool, const ConstBlock&, const ConstBlock&, const Block&, ptrdiff_t, ptrdiff_t) {}
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(UnaryTwin);
HWY_EXPORT(BinaryTwin);
HWY_EXPORT(ScalarTwin);

void block_definition(AluOp op, ConstBlock a, ConstBlock b, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const float* pa = a.data + r * a.pitch;
    const float* pb = b.data + r * b.pitch;
    float* pd = d.data + r * d.pitch;
    for (ptrdiff_t c = 0; c < cols; ++c) pd[c] = alu(op, pa[c], pb[c]);
  }
}

void scalar_definition(AluOp op, ConstBlock a, const float* s, ptrdiff_t s_pitch, bool reverse, Block d, ptrdiff_t rows,
                       ptrdiff_t cols) {
  for (ptrdiff_t r = 0; r < rows; ++r) {
    const float* pa = a.data + r * a.pitch;
    const float y = s[r * s_pitch];
    float* pd = d.data + r * d.pitch;
    for (ptrdiff_t c = 0; c < cols; ++c) pd[c] = reverse ? alu(op, y, pa[c]) : alu(op, pa[c], y);
  }
}

bool reads_first_only(AluOp op) { return op == AluOp::kBypass || is_unary(op); }

/// mod and fmod have no natural SIMD form; the bit operators do not belong here and give NaN.
bool has_twin(AluOp op) {
  return simd_target() != SimdTarget::kScalar && op != AluOp::kMod && op != AluOp::kFmod && !is_bitwise(op);
}

/// Rows that follow one another are one long row.
void join_rows(bool contiguous, ptrdiff_t& rows, ptrdiff_t& cols) {
  if (!contiguous) return;
  cols *= rows;
  rows = 1;
}

// A single column is the shape of per-row statistics, and its rows lie far apart. It is gathered, worked on as a row,
// and put back.
constexpr ptrdiff_t kGathered = 128;

const float* gather(const float* from, ptrdiff_t pitch, ptrdiff_t count, float* buffer) {
  if (pitch == 1) return from;
  for (ptrdiff_t i = 0; i < count; ++i) buffer[i] = from[i * pitch];
  return buffer;
}

void scatter(const float* from, float* to, ptrdiff_t pitch, ptrdiff_t count) {
  for (ptrdiff_t i = 0; i < count; ++i) to[i * pitch] = from[i];
}

/// alu_block on one column.
void alu_column(AluOp op, ConstBlock a, ConstBlock b, Block d, ptrdiff_t rows) {
  for (ptrdiff_t first = 0; first < rows; first += kGathered) {
    float buffer_a[kGathered], buffer_b[kGathered], result[kGathered];
    const ptrdiff_t count = rows - first < kGathered ? rows - first : kGathered;
    const ConstBlock row_a{gather(a.data + first * a.pitch, a.pitch, count, buffer_a), count};
    if (reads_first_only(op)) {
      HWY_DYNAMIC_DISPATCH(UnaryTwin)(op, row_a, {result, count}, 1, count);
    } else {
      const ConstBlock row_b{gather(b.data + first * b.pitch, b.pitch, count, buffer_b), count};
      HWY_DYNAMIC_DISPATCH(BinaryTwin)(op, row_a, row_b, {result, count}, 1, count);
    }
    scatter(result, d.data + first * d.pitch, d.pitch, count);
  }
}

}  // namespace

void alu_block(AluOp op, ConstBlock a, ConstBlock b, Block d, ptrdiff_t rows, ptrdiff_t cols) {
  if (rows <= 0 || cols <= 0) return;
  if (!has_twin(op)) return block_definition(op, a, b, d, rows, cols);
  const bool joined = a.pitch == cols && d.pitch == cols;
  if (cols == 1 && !(joined && b.pitch == 1)) return alu_column(op, a, b, d, rows);
  if (reads_first_only(op)) {
    join_rows(joined, rows, cols);
    return HWY_DYNAMIC_DISPATCH(UnaryTwin)(op, a, d, rows, cols);
  }
  join_rows(joined && b.pitch == cols, rows, cols);
  HWY_DYNAMIC_DISPATCH(BinaryTwin)(op, a, b, d, rows, cols);
}

void alu_block_scalar(AluOp op, ConstBlock a, const float* s, ptrdiff_t s_pitch, bool reverse, Block d, ptrdiff_t rows,
                      ptrdiff_t cols) {
  if (rows <= 0 || cols <= 0) return;
  const bool unary = reads_first_only(op);
  if (!has_twin(op) || (unary && reverse)) return scalar_definition(op, a, s, s_pitch, reverse, d, rows, cols);
  if (cols == 1 && rows > 1) {
    const ConstBlock column{s, s_pitch};
    return reverse ? alu_column(op, column, a, d, rows) : alu_column(op, a, column, d, rows);
  }
  join_rows(a.pitch == cols && d.pitch == cols && (unary || s_pitch == 0), rows, cols);
  if (unary) return HWY_DYNAMIC_DISPATCH(UnaryTwin)(op, a, d, rows, cols);
  HWY_DYNAMIC_DISPATCH(ScalarTwin)(op, reverse, a, {s, s_pitch}, d, rows, cols);
}

}  // namespace sterna
#endif  // HWY_ONCE
