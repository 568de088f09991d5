// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that scan: each element of a row depends on those before it.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"

namespace sterna::vector_engine {

/// Along each row: reg = (src[i] op0 imm0) op1 reg, dst[i] = reg; reg starts as reduce_cmd says and stays in the
/// accumulators.
///
/// Shapes  dst, src: [P, N]; imm0, imm1: immediate or (P, 1)
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 OPS2 ARG2 RED1 (add subtract multiply maximum minimum) RED2 CUM1 (no 32-bit
/// integers)
///         CUM2 (reduce_cmd)
/// Source  nki.isa.tensor_scalar_cumulative (SDK 2.32)
struct TensorScalarCumulative {
  static constexpr Info info{"tensor_scalar_cumulative", 0x1a, "running op1 of src op0 imm0",
                             "nki.isa.tensor_scalar_cumulative", "dst src"};
  View dst, src;
  AluOp op0 = AluOp::kBypass, op1 = AluOp::kAdd;
  Scalar imm0, imm1;
  ReduceCmd reduce_cmd = ReduceCmd::kResetReduce;

  static constexpr auto fields() {
    using I = TensorScalarCumulative;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("src", &I::src, "input tile"),
                      option("op0", &I::op0, "operator on each element"),
                      option("op1", &I::op1, "running operator"),
                      in("imm0", &I::imm0, "immediate or (P, 1)"),
                      in("imm1", &I::imm1, "start of load_reduce"),
                      option("reduce_cmd", &I::reduce_cmd, "how the running value starts")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, src, "src"));
    STERNA_TRY(fit(r, src, dst, "src"));
    STERNA_TRY(fit_scalar(r, imm0, dst, "imm0"));
    STERNA_TRY(fit_scalar(r, imm1, dst, "imm1"));
    STERNA_TRY(check_alu_of_chip(r, {op0}));
    STERNA_TRY(check_arithmetic(op0, "op0"));
    STERNA_TRY(check_operand(imm0, op0, "imm0", "op0"));
    STERNA_TRY(check_reduce_op(op1, {AluOp::kAdd, AluOp::kSubtract, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum},
                               "op1"));
    for (const View* v : {&dst, &src})
      if (is_integer(v->dtype) && size_of(v->dtype) == 4)
        return Fault(FaultKind::kRuleBroken, "CUM1",
                     cat("tensor_scalar_cumulative does not take ", name(v->dtype), "; use fp32 or a 16-bit integer."));
    if (reduce_cmd == ReduceCmd::kIdle || reduce_cmd == ReduceCmd::kReset) {
      STERNA_TRY(r.compat(
          "CUM2",
          "reduce_cmd of tensor_scalar_cumulative is reset_reduce, reduce or load_reduce; reset_reduce is taken."));
      reduce_cmd = ReduceCmd::kResetReduce;
    }
    return check_reduce_cmd(r, reduce_cmd, imm1, {});
  }
  float identity() const { return op1 == AluOp::kSubtract ? 0.0f : accumulator_identity(op1); }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(src, "src"));
    float* lanes = lanes_of(m.vector_accumulator(), a);
    float buffer[kMaxPartitions], init_buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values s, m.read_scalar(imm0, a.rows, buffer, "imm0"));
    STERNA_ASSIGN(Machine::Values init, m.read_scalar(imm1, a.rows, init_buffer, "imm1"));
    begin_accumulation(lanes, reduce_cmd, identity(), init, a.rows);
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    s = kept_apart(d, s, a.rows, buffer);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      apply_scalar(op0, x[0], s, false, o, p);
      // A scan whose second step adds -0, which changes nothing.
      float* nothing = piece_scratch(2);
      std::fill_n(nothing, p.cols, -0.0f);
      scan_block(op1, AluOp::kAdd, false, false, {o.data, o.pitch}, {nothing, 0}, lanes + p.row, 1, o, p.rows, p.cols);
      for (int64_t i = 0; i < p.rows; ++i) lanes[p.row + i] = o.data[i * o.pitch + p.cols - 1];
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &src}); }
};

/// Along each row: r[i] = (data0[i] op0 r[i-1]) op1 data1[i], r[-1] = initial; dst = r.
///
/// Shapes  dst, data0, data1: [P, N]; initial: immediate or (P, 1)
/// Types   fp32, each step rounded once; the running value is not converted to dst's type
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 BUF1 OPS2 ARG2
/// Source  nki.isa.tensor_tensor_scan (SDK 2.32)
struct TensorTensorScan {
  static constexpr Info info{"tensor_tensor_scan", 0x1b, "r[i] = (data0[i] op0 r[i-1]) op1 data1[i]",
                             "nki.isa.tensor_tensor_scan"};
  View dst, data0, data1;
  Scalar initial;
  AluOp op0 = AluOp::kMultiply, op1 = AluOp::kAdd;
  bool reverse0 = false, reverse1 = false;

  static constexpr auto fields() {
    using I = TensorTensorScan;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("data0", &I::data0, "operand of op0"),
                      in("data1", &I::data1, "operand of op1"),
                      in("initial", &I::initial, "value before the first"),
                      option("op0", &I::op0, "first operator"),
                      option("op1", &I::op1, "second operator"),
                      option("reverse0", &I::reverse0, "r[i-1] op0 data0[i]"),
                      option("reverse1", &I::reverse1, "data1[i] op1 value")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data0, "data0"));
    STERNA_TRY(check_tile(r, data1, "data1"));
    STERNA_TRY(fit(r, data0, dst, "data0"));
    STERNA_TRY(fit(r, data1, dst, "data1"));
    STERNA_TRY(fit_scalar(r, initial, dst, "initial"));
    if (initial.is_none) return Fault(FaultKind::kWrongType, "ARG2", "'initial' is missing.");
    STERNA_TRY(check_not_both_psum(data0, data1, "data0", "data1"));
    STERNA_TRY(check_alu_of_chip(r, {op0, op1}));
    STERNA_TRY(check_arithmetic(op0, "op0"));
    return check_arithmetic(op1, "op1");
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data0, "data0"));
    STERNA_BIND(b, m.read(data1, "data1"));
    float buffer[kMaxPartitions], running[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values first, m.read_scalar(initial, a.rows, buffer, "initial"));
    for (int64_t r = 0; r < a.rows; ++r) running[r] = first.data[r * first.pitch];
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, a, b);
    map_rows<2>(m, d, {a, b}, [&](const ConstBlock(&x)[2], Block o, const Piece& p) {
      scan_block(op0, op1, reverse0, reverse1, x[0], x[1], running + p.row, 1, o, p.rows, p.cols);
      for (int64_t i = 0; i < p.rows; ++i) running[p.row + i] = o.data[i * o.pitch + p.cols - 1];
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data0, &data1}); }
};

using Scans = InstructionList<TensorScalarCumulative, TensorTensorScan>;

}  // namespace sterna::vector_engine
