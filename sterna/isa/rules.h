// SPDX-License-Identifier: Apache-2.0
// Rules that many instructions share, and the counting helpers of work(). Sources: NKI docs, nki.isa (SDK 2.32), common
// constraints. Rule ids are stable: they appear in faults, tests and docs.
#pragma once

#include <initializer_list>
#include <string_view>

#include "sterna/isa/instruction.h"
#include "sterna/machine/rows.h"

namespace sterna {

/// RED7: there is something to reduce, `depth` elements for each result.
Status check_reduced(const View& data, int64_t depth);
/// P1: a compute operand is in SBUF or PSUM. P2: it has at most limits.partitions partitions. P3 (compat): they adjoin
/// (guide on access patterns: "the access on the partition dimension must be contiguous"). PACK1: its elements are
/// not x4, which no arithmetic takes.
Status check_tile(const Rules& rules, const View& view, std::string_view what);
/// P3 alone: the partitions of an operand follow one another.
Status check_adjoining(const Rules& rules, const View& view, std::string_view what);
/// P1, P2 and P3 alone, for what moves bits.
Status check_moved_tile(const Rules& rules, const View& view, std::string_view what);
/// PACK1: x4 elements are moved to their own type only.
Status check_packed_move(const View& dst, const View& src);
/// Gives `view` the rows and columns of `like` where it has one: (P,1) along the free dims (documented); one partition
/// for many (COMPAT1: accepted by the official simulator, not by the documents). Then both have equal shapes or
/// SHAPE1/SHAPE2 is raised.
Status fit(const Rules& rules, View& view, const View& like, std::string_view what);
/// Like fit, for a scalar operand: its view is (P,1) or (1,1).
Status fit_scalar(const Rules& rules, Scalar& scalar, const View& like, std::string_view what);
/// BUF1: not both in PSUM.
Status check_not_both_psum(const View& a, const View& b, std::string_view what_a, std::string_view what_b);
/// ENG1: the engine is one of those listed; ENG2: GpSimd does not reach PSUM (asks the chip).
Status check_engine(const Rules& rules, EngineId engine, std::initializer_list<EngineId> allowed,
                    std::initializer_list<const View*> operands);
/// ALU1: abs_max and abs_min, and square and relu as operators of an ALU, came with NeuronCore-v4 (nki.language; the
/// chip file's unary_alu). Elsewhere a remark, or a fault when strict: activation has square and relu on every chip.
Status check_alu_of_chip(const Rules& rules, std::initializer_list<AluOp> ops);
/// TI5: a view with .indirect() that this engine does not take: a destination in PSUM on the scalar engine (nki.isa,
/// "Tensor indirection").
Status check_scatter(EngineId engine, const View& dst);
/// TYPE1: every view is of an integer type (bit operators do not convert), and every immediate that `op` uses is a
/// whole number that the widest of the views can hold, with or without a sign. BITS1: the views are of one width. Where
/// they are not, each operand is extended by its own type (zeros, or the sign) to the widest of operands and result,
/// `op` works there, and the low bits of its result are kept.
Status check_bits(const Rules& rules, std::initializer_list<const View*> views, AluOp op);
Status check_bit_operand(const Rules& rules, const Scalar& operand, std::initializer_list<const View*> views, AluOp op,
                         std::string_view what);
/// The bits in which a bit operator works: those of the widest.
int bit_width(std::initializer_list<DType> types);

/// OPS2: an arithmetic operator, where bit operators are not taken.
Status check_arithmetic(AluOp op, std::string_view what);
/// ARG2: a binary operator has its operand.
Status check_operand(const Scalar& operand, AluOp op, std::string_view what, std::string_view what_op);
/// SHAPE1: `view` has as many partitions as `like`.
Status check_rows(const View& view, const View& like, std::string_view what);
/// SHAPE4: `view` has this many elements in a partition.
Status check_cols(const View& view, int64_t cols, std::string_view what);

/// OPS5: a (P, 1) operand of arithmetic is fp32 (nki.isa.tensor_scalar: "operand0 and operand1 must be float32").
Status check_float_operand(const Rules& rules, const Scalar& operand, std::string_view what);

/// A queue priority that nobody gave.
inline constexpr int32_t kNoPriority = -1;
/// DMA5: priorities exist on this chip, and this is one of them.
Status check_priority(const Rules& rules, int32_t priority);

/// Counts for an elementwise instruction over `views`; the first is the output.
Work count_elements(const Rules& rules, EngineId engine, std::initializer_list<const View*> views);
/// Counts for a DMA between two views.
Work count_dma(const Rules& rules, const View& dst, const View& src);

/// d op0 with a per-row or immediate value, on one piece. Handles unary operators.
inline void apply_scalar(AluOp op, ConstBlock in, const Machine::Values& values, bool reverse, Block out,
                         const Piece& piece) {
  alu_block_scalar(op, in, values.data + piece.row * values.pitch, values.pitch, reverse, out, piece.rows, piece.cols);
}

/// The bits of one element of `type` with this value, zero beyond the element's size: exact for integers, else rounded
/// to nearest even; integers saturate and take NaN as 0 (numerics/convert.h).
uint32_t value_bits(DType type, double value);

/// Elementwise work on raw bits: out[i] = alu_bits(op, a[i], b[i]) in the width of the widest of the three.
Status map_bits(Machine& m, const Operand& dst, const Operand& a, const Operand& b, AluOp op);
/// Exact 32-bit integer arithmetic: out[i] = alu_int(op, a[i], b[i]).
Status map_integers(Machine& m, const Operand& dst, const Operand& a, const Operand& b, AluOp op, bool is_signed);
/// A bit operator with one word for each row: x op words[row], or words[row] op x when `reverse`.
struct BitStep {
  AluOp op;
  bool reverse;
  const uint32_t* words;
};
/// One or two steps on raw bits, one after the other, in `bits` bits: out[i] = steps(a[i]).
void map_bits_by_row(Machine& m, const Operand& dst, const Operand& a, const BitStep* steps, int count, int bits);

}  // namespace sterna
