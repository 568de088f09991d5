// SPDX-License-Identifier: Apache-2.0
// Arithmetic on blocks of fp32 (and of raw integers): the scalar definition of each operator and the block
// functions that instructions are written with. Block functions have a scalar and a SIMD form of equal bits.
//
// Semantics (design, section 4): each step computes in fp32 and rounds once, never fused with the next; division
// and square root are correctly rounded; every NaN result is 7fc00000; min and max propagate NaN and order -0
// below +0; comparisons give 1.0 or 0.0; logical operators treat non-zero as true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sterna {

enum class AluOp : uint8_t {
  kBypass,  // result is the first operand
  // arithmetic, binary
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower,
  kMod,
  kFmod,
  kAbsMax,
  kAbsMin,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kAverage,
  // arithmetic, unary
  kAbs,
  kSquare,
  kRelu,
  kRsqrt,
  kReciprocal,
  kNegative,
  kLogicalNot,
  kSqrt,
  kSign,
  kFloor,
  kCeil,
  kTrunc,
  // bit operations on raw integers
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kInvert,
  kLeftShift,
  kRightShift,
  kArithRightShift,
};
inline constexpr int kAluOpCount = static_cast<int>(AluOp::kArithRightShift) + 1;

std::string_view name(AluOp op);  ///< as in nki.language: "add", "bitwise_and", ...
std::optional<AluOp> parse_alu_op(std::string_view text);
inline bool is_bitwise(AluOp op) { return op >= AluOp::kBitwiseAnd; }
inline bool is_unary(AluOp op) { return (op >= AluOp::kAbs && op <= AluOp::kTrunc) || op == AluOp::kInvert; }
bool is_reduction(AluOp op);  ///< legal as a reduction: add multiply maximum minimum and the like
bool has_int_form(AluOp op);  ///< defined by alu_int

/// The definition of one arithmetic operator. For a unary operator and bypass `b` is ignored. A bit operator gives NaN.
///   power: cases as C's powf, error below 0.5 + 2^-17 ulp (power_formula-inl.h); mod: sign of the divisor (Python %);
///   fmod: sign of the dividend (C); abs_max/abs_min: the operand with larger/smaller magnitude, its sign kept, `b` on
///   ties; rsqrt: 1/sqrt rounded once from double; logical_and: (a != 0) && (b != 0), so NaN is true; relu: maximum(a,
///   0); sign: -1, +0 or 1; average: the sum (whoever reduces divides by the count).
float alu(AluOp op, float a, float b);
/// Bit operators on 32-bit patterns of a type with `bits` bits (8, 16, 32). Shifts by >= bits give 0 (arithmetic right:
/// sign).
uint32_t alu_bits(AluOp op, uint32_t a, uint32_t b, int bits);
/// Exact 32-bit integer arithmetic (GpSimd): add, subtract, multiply wrap modulo 2^32; maximum, minimum and comparisons
/// by `is_signed`; comparisons and logical operators give 1 or 0; bit operators as alu_bits. Others give 0: see
/// has_int_form.
uint32_t alu_int(AluOp op, uint32_t a, uint32_t b, bool is_signed);

/// A row of 32-bit words, or one word `repeated`.
struct Words {
  const uint32_t* data;
  bool repeated = false;
};
/// d[i] = alu_bits(op, a[i], b[i], bits) and d[i] = alu_int(op, a[i], b[i], is_signed). d may be a or b exactly. Unary
/// operators ignore b, which must be readable all the same.
void alu_bits_block(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, int bits);
void alu_int_block(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, bool is_signed);

/// A rectangle of fp32: `rows` rows `pitch` elements apart, each of contiguous elements. Pitch 0 repeats one row.
struct ConstBlock {
  const float* data;
  ptrdiff_t pitch;
};
struct Block {
  float* data;
  ptrdiff_t pitch;
};

/// d[r][c] = a[r][c] op b[r][c]. d may be a or b exactly (in place), not a shifted overlap.
void alu_block(AluOp op, ConstBlock a, ConstBlock b, Block d, ptrdiff_t rows, ptrdiff_t cols);
/// d[r][c] = a[r][c] op s[r] (or s[r] op a[r][c] when `reverse`). s is one value a row, s_pitch apart (0: the same for
/// all rows).
void alu_block_scalar(AluOp op, ConstBlock a, const float* s, ptrdiff_t s_pitch, bool reverse, Block d, ptrdiff_t rows,
                      ptrdiff_t cols);

/// Two steps in one pass, each rounded: d = (a op0 s0[r]) op1 s1[r], and d = (a op0 s0[r]) op1 b. A reverse flag
/// exchanges the sides of its step. d may be a or b exactly. Same bits as two calls; fused for add, subtract, multiply,
/// then these or maximum, minimum.
void alu_block_scalar_scalar(AluOp op0, bool reverse0, const float* s0, ptrdiff_t s0_pitch, AluOp op1, bool reverse1,
                             const float* s1, ptrdiff_t s1_pitch, ConstBlock a, Block d, ptrdiff_t rows,
                             ptrdiff_t cols);
void alu_block_scalar_tensor(AluOp op0, bool reverse0, const float* s0, ptrdiff_t s0_pitch, AluOp op1, bool reverse1,
                             ConstBlock b, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols);

/// d[r] = reduction over c of a[r][c]; d is `d_pitch` apart. Order: 16 partials start at the identity, element i joins
/// partial i mod 16 in ascending order (partial op element), then partial j takes partial j + 8, j + 4, j + 2, j + 1 in
/// turn.
void reduce_block(AluOp op, ConstBlock a, float* d, ptrdiff_t d_pitch, ptrdiff_t rows, ptrdiff_t cols);
/// The identity of a reduction operator: add and average -0 (x + -0 is x for every x), multiply 1, maximum -inf,
/// minimum and abs_min +inf, abs_max 0, logical_and 1, logical_or and logical_xor 0. Bit operators reduce elsewhere.
float reduction_identity(AluOp op);

/// The same bits when rows come in pieces: one call a piece, `start_index` being the row's index of the piece's first
/// element (0 sets the partials to the identity first), then reduce_finish. `partials` holds rows x 16.
inline constexpr ptrdiff_t kReductionPartials = 16;
void reduce_block_state(AluOp op, ConstBlock a, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t start_index, float* partials);
void reduce_finish(AluOp op, const float* partials, float* d, ptrdiff_t d_pitch, ptrdiff_t rows);

/// r[i] = (d0[i] op0 r[i-1]) op1 d1[i], r[-1] = initial, along one row (reverse flags swap the sides of each step).
/// `out` may be d0 or d1 exactly.
void scan_row(AluOp op0, AluOp op1, bool reverse0, bool reverse1, const float* d0, const float* d1, float initial,
              float* out, ptrdiff_t cols);
/// The same on every row of a block, several rows at a time; initial values `initial_pitch` apart (0: one for all
/// rows).
void scan_block(AluOp op0, AluOp op1, bool reverse0, bool reverse1, ConstBlock d0, ConstBlock d1, const float* initial,
                ptrdiff_t initial_pitch, Block out, ptrdiff_t rows, ptrdiff_t cols);

/// out[j][i] = in[i][j] for 4-, 2- or 1-byte elements, by blocks. Pitches in bytes.
void transpose_bytes(const void* in, ptrdiff_t in_pitch, void* out, ptrdiff_t out_pitch, ptrdiff_t in_rows,
                     ptrdiff_t in_cols, int element_bytes);

}  // namespace sterna
