// SPDX-License-Identifier: Apache-2.0
// The scalar engine's second activation instruction, of NeuronCore-v4.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/scalar_range.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"

namespace sterna::scalar_engine {

/// dst = op((data op0 imm0) op1 imm1), with an optional reduction over the free axes into the engine's accumulators.
///
/// Shapes  dst, data: [P, N]; imm0, imm1, relu_param: immediate or (P, 1); reduce_res: (P, 1)
/// Types   fp32, each step rounded once; the reduction is of the fp32 results before conversion to dst. prelu is
///         max(x, 0) + relu_param * min(x, 0); other functions take no parameter
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 ARG2 RED1 (add maximum minimum abs_max abs_min) RED3 ACT3 AC1 (the six pairs of
///         operators) AC2 (a reverse flag has its operator) AC3 (one type for imm0 and imm1) AC4 (reduce_cmd) AC5
///         (relu_param goes with prelu)
/// Source  nki.isa.activate2 (SDK 2.32)
struct Activate2 {
  static constexpr Info info{"activate2", 0x42, "dst = op((data op0 imm0) op1 imm1), optionally reduced",
                             "nki.isa.activate2", "dst data"};
  View dst;
  Function op = Function::kCopy;
  View data;
  Scalar imm0, imm1;
  AluOp op0 = AluOp::kBypass, op1 = AluOp::kBypass;
  Scalar relu_param = Scalar::of(0.0);
  bool reverse0 = false, reverse1 = false;
  AluOp reduce_op = AluOp::kBypass;
  View reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::kIdle;

  static constexpr auto fields() {
    using I = Activate2;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("op", &I::op, "activation function"),
                      in("data", &I::data, "input tile"),
                      in("imm0", &I::imm0, "immediate or (P, 1)"),
                      in("imm1", &I::imm1, "immediate or (P, 1)"),
                      option("op0", &I::op0, "multiply, add, subtract or bypass"),
                      option("op1", &I::op1, "add or subtract after multiply, else bypass"),
                      in("relu_param", &I::relu_param, "slope of prelu: immediate or (P, 1)"),
                      option("reverse0", &I::reverse0, "imm0 op0 data"),
                      option("reverse1", &I::reverse1, "imm1 op1 value"),
                      option("reduce_op", &I::reduce_op, "add, maximum, minimum, abs_max, abs_min, or none"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators")};
  }
  static Fault broken(std::string_view rule, std::string message) {
    return Fault(FaultKind::kRuleBroken, std::string(rule), std::move(message));
  }
  bool reduces() const { return reduce_cmd == ReduceCmd::kReduce || reduce_cmd == ReduceCmd::kResetReduce; }
  Status check_operators() const {
    const bool one = op1 == AluOp::kBypass && (op0 == AluOp::kMultiply || op0 == AluOp::kAdd ||
                                               op0 == AluOp::kSubtract || op0 == AluOp::kBypass);
    const bool two = op0 == AluOp::kMultiply && (op1 == AluOp::kAdd || op1 == AluOp::kSubtract);
    if (!one && !two)
      return broken("AC1", cat("activate2 has no pair (", name(op0), ", ", name(op1),
                               "); it has (multiply, add), "
                               "(multiply, subtract), and multiply, add, subtract or bypass with bypass."));
    if ((reverse0 && op0 == AluOp::kBypass) || (reverse1 && op1 == AluOp::kBypass))
      return broken("AC2", cat("reverse", reverse0 && op0 == AluOp::kBypass ? 0 : 1, " needs its operator."));
    STERNA_TRY(check_operand(imm0, op0, "imm0", "op0"));
    STERNA_TRY(check_operand(imm1, op1, "imm1", "op1"));
    if (imm0.is_view && imm1.is_view && imm0.view.dtype != imm1.view.dtype)
      return broken("AC3", cat("imm0 is ", name(imm0.view.dtype), " and imm1 ", name(imm1.view.dtype),
                               "; tensors must have one type."));
    return {};
  }
  Status check_reduction(const Rules& r) const {
    if (reduce_cmd == ReduceCmd::kLoadReduce)
      return broken("AC4", "reduce_cmd of activate2 is idle, reset, reset_reduce or reduce.");
    if (reduces() && reduce_op == AluOp::kBypass)
      return Fault(FaultKind::kWrongType, "ARG2", "'reduce_op' is missing: reduce_cmd asks for a reduction.");
    if (reduce_op != AluOp::kBypass)
      STERNA_TRY(check_reduce_op(
          reduce_op, {AluOp::kAdd, AluOp::kMaximum, AluOp::kMinimum, AluOp::kAbsMax, AluOp::kAbsMin}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, {}, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(check_scatter(EngineId::kScalar, dst));
    for (auto [scalar, what] : {std::pair{&imm0, "imm0"}, {&imm1, "imm1"}, {&relu_param, "relu_param"}})
      STERNA_TRY(fit_scalar(r, *scalar, dst, what));
    STERNA_TRY(check_operators());
    if (relu_param.is_none) relu_param = Scalar::of(0.0);
    if (op != Function::kPrelu && (relu_param.is_view || relu_param.value != 0))
      r.warn("AC5", cat("'relu_param' has no effect on ", name(op), "; it is the slope of prelu."));
    return check_reduction(r);
  }
  /// One step of the tensor-scalar stage, where there is one.
  static void step(AluOp alu_op, const Machine::Values& values, bool reverse, ConstBlock& from, Block o,
                   const Piece& p) {
    if (alu_op == AluOp::kBypass) return;
    apply_scalar(alu_op, from, values, reverse, o, p);
    from = {o.data, o.pitch};
  }
  static void prelu(ConstBlock from, const Machine::Values& slope, Block o, const Piece& p) {
    const float zero = 0;
    const Block below{piece_scratch(3), static_cast<ptrdiff_t>(p.cols)};
    alu_block_scalar(AluOp::kMinimum, from, &zero, 0, false, below, p.rows, p.cols);
    apply_scalar(AluOp::kMultiply, {below.data, below.pitch}, slope, false, below, p);
    alu_block_scalar(AluOp::kMaximum, from, &zero, 0, false, o, p.rows, p.cols);
    alu_block(AluOp::kAdd, {o.data, o.pitch}, {below.data, below.pitch}, o, p.rows, p.cols);
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    float* lanes = lanes_of(m.scalar_accumulator(), a);
    float buffers[3][kMaxPartitions];
    STERNA_ASSIGN(Machine::Values first, m.read_scalar(imm0, a.rows, buffers[0], "imm0"));
    STERNA_ASSIGN(Machine::Values second, m.read_scalar(imm1, a.rows, buffers[1], "imm1"));
    STERNA_ASSIGN(Machine::Values slope, m.read_scalar(relu_param, a.rows, buffers[2], "relu_param"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    first = kept_apart(d, first, a.rows, buffers[0]);
    second = kept_apart(d, second, a.rows, buffers[1]);
    slope = kept_apart(d, slope, a.rows, buffers[2]);
    const AluOp reduction = reduce_op == AluOp::kBypass ? AluOp::kAdd : reduce_op;
    RowSums sums(reduction, reduces() ? a.rows : 0, a.cols);
    RangeCheck range(op);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      ConstBlock from = x[0];
      step(op0, first, reverse0, from, o, p);
      step(op1, second, reverse1, from, o, p);
      range.look(from, p);
      if (op == Function::kPrelu)
        prelu(from, slope, o, p);
      else
        function_block(op, from, o, p.rows, p.cols);
      if (reduces()) sums.add({o.data, o.pitch}, p);
    });
    range.warn(m);
    begin_accumulation(lanes, reduce_cmd, accumulator_identity(reduction), {}, a.rows);
    if (reduces()) sums.finish_into(lanes);
    if (reduce_res.empty()) return {};
    STERNA_ASSIGN(Operand res, m.write(reduce_res, "reduce_res"));
    store_column(res, lanes);
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kScalar, {&dst, &data});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

using Gen4 = InstructionList<Activate2>;

}  // namespace sterna::scalar_engine
