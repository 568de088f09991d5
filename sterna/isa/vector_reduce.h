// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that reduce along the free axes.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::vector_engine {

/// dst = reduction of data over its last free axes, times -1 with negate.
///
/// Shapes  data: [P, ...]; axis: the last axes of data, never 0; dst: one element for each index that remains
/// Types   fp32 arithmetic in the order of alu.h's reduce_block, converted once to dst; bit operators on integers keep
/// bits Rules   P1 P2 RED1 RED4 (axes) RED5 (shape of dst) RED6 (negate with a bit operator) RED7 TYPE1 Source
/// nki.isa.tensor_reduce (SDK 2.32)
struct TensorReduce {
  static constexpr Info info{"tensor_reduce", 0x18, "dst = reduction of data over its last free axes",
                             "nki.isa.tensor_reduce", "dst data"};
  View dst;
  AluOp op = AluOp::kAdd;
  View data;
  Ints axis;
  bool negate = false, keepdims = false;

  static constexpr auto fields() {
    using I = TensorReduce;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("op", &I::op, "reduction"),
                      in("data", &I::data, "input tile"),
                      option("axis", &I::axis, "the last free axes of data"),
                      option("negate", &I::negate, "multiply the result by -1"),
                      option("keepdims", &I::keepdims, "reduced axes stay in dst with size one")};
  }
  /// Elements that go into one result.
  int64_t depth() const {
    int64_t n = 1;
    for (int i = 0; i < axis.n; ++i) n *= data.dims[data.ndim - 1 - i].count;
    return n;
  }
  /// Brings the axes to ascending, non-negative form.
  Status check_axes() {
    auto bad = [&](std::string_view why) {
      return Fault(FaultKind::kRuleBroken, "RED4",
                   cat("'axis' ", why, "; it must name the last axes of data ", shape_text(data), ", ending at ",
                       data.ndim - 1, ", and never axis 0, the partition."));
    };
    if (axis.n == 0) return bad("is empty");
    for (int i = 0; i < axis.n; ++i)
      if (axis.value[i] < 0) axis.value[i] += data.ndim;
    std::sort(axis.value, axis.value + axis.n);
    for (int i = 0; i < axis.n; ++i)
      if (axis.value[i] != data.ndim - axis.n + i || axis.value[i] < 1) return bad(cat("has ", axis.value[i]));
    return {};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    if (!is_reduction(op))
      return Fault(FaultKind::kRuleBroken, "RED1",
                   cat("'op' is ", name(op), ", which does not reduce; use add, maximum, ..."));
    STERNA_TRY(check_alu_of_chip(r, {op}));
    STERNA_TRY(check_axes());
    STERNA_TRY(check_reduced(data, depth()));
    if (is_bitwise(op)) STERNA_TRY(check_bits(r, {&dst, &data}, op));
    if (is_bitwise(op) && negate)
      return Fault(FaultKind::kRuleBroken, "RED6",
                   cat("negate applies to arithmetic reductions, not to ", name(op), "."));
    if (dst.rows() != data.rows() || dst.cols() * depth() != data.cols())
      return Fault(FaultKind::kRuleBroken, "RED5",
                   cat("dst ", shape_text(dst), " must have ", data.rows(), " partitions of ",
                       data.cols() / std::max<int64_t>(1, depth()), " elements: data ", shape_text(data),
                       " without its last ", axis.n, " axes."));
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    if (is_bitwise(op))
      reduce_bits(d, a);
    else if (d.cols == 1)
      reduce_rows(m, d, a);
    else
      reduce_groups(m, d, a);
    return {};
  }
  /// One result for each row.
  void reduce_rows(Machine& m, const Operand& d, const Operand& a) const {
    RowSums sums(op, a.rows, a.cols);
    visit_rows<1>(m, {a}, [&](const ConstBlock(&x)[1], const Piece& p) { sums.add(x[0], p); });
    float results[kMaxPartitions];
    std::copy_n(sums.finish(), d.rows, results);
    adjust(results, d.rows);
    store_column(d, results);
  }
  /// Several results for each row: runs of `depth` elements.
  void reduce_groups(Machine& m, const Operand& d, const Operand& a) const {
    const int64_t n = depth(), groups_at_once = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, n));
    over_rows(m, a.rows, a.cols, [&](int64_t begin, int64_t end) {
      float* results = piece_scratch(0);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t g = 0; g < d.cols; g += groups_at_once) {
          const int64_t groups = std::min(groups_at_once, d.cols - g);
          if (n <= kPiece) {
            const ConstBlock x = load_piece(a, row, 1, g * n, groups * n, piece_scratch(1));
            reduce_block(op, {x.data, static_cast<ptrdiff_t>(n)}, results, 1, groups, n);
          } else {
            reduce_long(a, row, g * n, n, results);
          }
          adjust(results, groups);
          store_row(d, row, g, groups, results);
        }
    });
  }
  /// One run that is longer than a piece.
  void reduce_long(const Operand& a, int64_t row, int64_t col, int64_t n, float* result) const {
    float partials[kReductionPartials];
    for (int64_t c = 0; c < n; c += kPiece) {
      const int64_t count = std::min(kPiece, n - c);
      reduce_block_state(op, load_piece(a, row, 1, col + c, count, piece_scratch(1)), 1, count, c, partials);
    }
    reduce_finish(op, partials, result, 1, 1);
  }
  /// What happens to a result after the reduction.
  void adjust(float* results, int64_t n) const {
    const float count = static_cast<float>(depth()), minus = -1.0f;
    if (op == AluOp::kAverage) alu_block_scalar(AluOp::kDivide, {results, n}, &count, 0, false, {results, n}, 1, n);
    if (negate) alu_block_scalar(AluOp::kMultiply, {results, n}, &minus, 0, false, {results, n}, 1, n);
  }
  void reduce_bits(const Operand& d, const Operand& a) const {
    const int64_t n = depth();
    const int bits = bit_width({d.dtype, a.dtype});
    std::vector<uint32_t> x(static_cast<size_t>(a.cols)), results(static_cast<size_t>(d.cols));
    for (int64_t row = 0; row < a.rows; ++row) {
      load_bits(a, row, 0, a.cols, x.data());
      for (int64_t g = 0; g < d.cols; ++g) {
        uint32_t value = x[static_cast<size_t>(g * n)];
        for (int64_t i = 1; i < n; ++i) value = alu_bits(op, value, x[static_cast<size_t>(g * n + i)], bits);
        results[static_cast<size_t>(g)] = value;
      }
      store_bits(d, row, 0, d.cols, results.data());
    }
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &data});
    const bool bf16 = dst.dtype == DType::kBFloat16 && data.dtype == DType::kBFloat16;
    if (bf16 && (op == AluOp::kAdd || op == AluOp::kMaximum)) w.fast_cases |= bit(FastCase::kBFloat16AddMax);
    return w;
  }
};

/// dst = data op0 operand0, and a reduction of that (in fp32, before conversion) over all free axes into the
/// accumulators.
///
/// Shapes  dst, data: [P, N]; operand0, reduce_init: immediate or (P, 1); reduce_res: (P, 1)
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 OPS2 ARG2 RED1 (add multiply maximum minimum) RED2 RED3
/// Source  nki.isa.tensor_scalar_reduce (SDK 2.32)
struct TensorScalarReduce {
  static constexpr Info info{"tensor_scalar_reduce", 0x19, "dst = data op0 operand0, and its reduction",
                             "nki.isa.tensor_scalar_reduce", "dst data"};
  View dst, data;
  AluOp op0 = AluOp::kBypass;
  Scalar operand0;
  AluOp reduce_op = AluOp::kAdd;
  View reduce_res;
  bool reverse0 = false;
  ReduceCmd reduce_cmd = ReduceCmd::kResetReduce;
  Scalar reduce_init;
  bool reduce_res_negate = false;

  static constexpr auto fields() {
    using I = TensorScalarReduce;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("data", &I::data, "input tile"),
                      option("op0", &I::op0, "operator"),
                      in("operand0", &I::operand0, "immediate or (P, 1)"),
                      option("reduce_op", &I::reduce_op, "reduction"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reverse0", &I::reverse0, "operand0 op0 data"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators"),
                      in("reduce_init", &I::reduce_init, "value of load_reduce"),
                      option("reduce_res_negate", &I::reduce_res_negate, "negate the read-out")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(fit_scalar(r, operand0, dst, "operand0"));
    STERNA_TRY(fit_scalar(r, reduce_init, dst, "reduce_init"));
    STERNA_TRY(check_alu_of_chip(r, {op0}));
    STERNA_TRY(check_arithmetic(op0, "op0"));
    STERNA_TRY(check_operand(operand0, op0, "operand0", "op0"));
    STERNA_TRY(
        check_reduce_op(reduce_op, {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, reduce_init, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    float* lanes = lanes_of(m.vector_accumulator(), a);
    float buffer[kMaxPartitions], init_buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values s, m.read_scalar(operand0, a.rows, buffer, "operand0"));
    STERNA_ASSIGN(Machine::Values init, m.read_scalar(reduce_init, a.rows, init_buffer, "reduce_init"));
    begin_accumulation(lanes, reduce_cmd, accumulator_identity(reduce_op), init, a.rows);
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    s = kept_apart(d, s, a.rows, buffer);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(reduce_op, reduces ? a.rows : 0, a.cols);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      apply_scalar(op0, x[0], s, reverse0, o, p);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(lanes);
    return read_out_accumulators(m, lanes, reduce_res, reduce_res_negate);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &data});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

using Reductions = InstructionList<TensorReduce, TensorScalarReduce>;

}  // namespace sterna::vector_engine
