// SPDX-License-Identifier: Apache-2.0
// Instructions of the scalar engine.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::scalar_engine {

/// dst = op(data * scale + bias), with an optional sum over the free axes into the engine's accumulators.
///
/// Shapes  dst, data: [P, N]; scale, bias: immediate or (P, 1); reduce_res: (P, 1)
/// Types   fp32, each step rounded once; the sum is of the fp32 results before conversion to dst
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 ACT1 (reduce_op add only)
/// Source  nki.isa.activation (SDK 2.32)
struct Activation {
  static constexpr Info info{"activation", 0x40, "dst = op(data * scale + bias), optionally summed", "nki.isa.activation"};
  View dst;
  Function op = Function::kCopy;
  View data;
  Scalar bias;
  Scalar scale = Scalar::of(1.0);
  AluOp reduce_op = AluOp::kBypass;
  View reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::kIdle;

  static constexpr auto fields() {
    using I = Activation;
    return std::tuple{out("dst", &I::dst, "result tile"), option("op", &I::op, "activation function"), in("data", &I::data, "input tile"),
                      in("bias", &I::bias, "immediate or (P, 1)"), in("scale", &I::scale, "immediate or (P, 1)"),
                      option("reduce_op", &I::reduce_op, "add, or none"), out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators")};
  }
  bool reduces() const { return reduce_cmd == ReduceCmd::kReduce || reduce_cmd == ReduceCmd::kResetReduce; }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(fit_scalar(r, bias, dst, "bias"));
    STERNA_TRY(fit_scalar(r, scale, dst, "scale"));
    if (reduce_op != AluOp::kBypass && reduce_op != AluOp::kAdd)
      return Fault(FaultKind::kRuleBroken, "ACT1", cat("activation reduces with add only, not ", name(reduce_op), "."));
    if (!reduce_res.empty()) {
      STERNA_TRY(check_tile(r, reduce_res, "reduce_res"));
      if (reduce_res.rows() != dst.rows() || reduce_res.cols() != 1)
        return Fault(FaultKind::kRuleBroken, "SHAPE3", cat("'reduce_res' ", shape_text(reduce_res), " must be (", dst.rows(), ", 1)."));
    }
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    float bias_buffer[128], scale_buffer[128];
    STERNA_ASSIGN(Machine::Values b, m.read_scalar(bias, a.rows, bias_buffer, "bias"));
    STERNA_ASSIGN(Machine::Values s, m.read_scalar(scale, a.rows, scale_buffer, "scale"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    b = kept_apart(d, b, a.rows, bias_buffer);
    s = kept_apart(d, s, a.rows, scale_buffer);
    const bool scaled = scale.is_view || (!scale.is_none && scale.value != 1.0);
    const bool biased = bias.is_view || (!bias.is_none && bias.value != 0.0);
    RowSums sums(AluOp::kAdd, reduces() ? a.rows : 0, a.cols);
    map_rows<1>(m, d, {a}, [&](const ConstBlock (&x)[1], Block o, const Piece& p) {
      ConstBlock from = x[0];
      if (scaled) {
        apply_scalar(AluOp::kMultiply, from, s, false, o, p);
        from = {o.data, o.pitch};
      }
      if (biased) {
        apply_scalar(AluOp::kAdd, from, b, false, o, p);
        from = {o.data, o.pitch};
      }
      function_block(op, from, o, p.rows, p.cols);
      if (reduces()) sums.add({o.data, o.pitch}, p);
    });
    auto& acc = m.scalar_accumulator();
    if (reduce_cmd == ReduceCmd::kReset || reduce_cmd == ReduceCmd::kResetReduce) acc.fill(0.0f);
    if (reduces()) sums.finish_into(acc.data());
    if (reduce_res.empty()) return {};
    STERNA_ASSIGN(Operand res, m.write(reduce_res, "reduce_res"));
    store_column(res, acc.data());
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kScalar, {&dst, &data});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

/// activation with reduce_cmd reset_reduce: dst = op(data * scale + bias), and its sum over the free axes in reduce_res.
///
/// Rules   those of activation; ARG2 (reduce_res)
/// Source  nki.isa.activation_reduce (SDK 2.32)
struct ActivationReduce {
  static constexpr Info info{"activation_reduce", 0x41, "dst = op(data * scale + bias), and its sum", "nki.isa.activation_reduce"};
  View dst;
  Function op = Function::kCopy;
  View data;
  AluOp reduce_op = AluOp::kAdd;
  View reduce_res;
  Scalar bias;
  Scalar scale = Scalar::of(1.0);

  static constexpr auto fields() {
    using I = ActivationReduce;
    return std::tuple{out("dst", &I::dst, "result tile"), option("op", &I::op, "activation function"), in("data", &I::data, "input tile"),
                      option("reduce_op", &I::reduce_op, "add"), out("reduce_res", &I::reduce_res, "(P, 1) sums"),
                      in("bias", &I::bias, "immediate or (P, 1)"), in("scale", &I::scale, "immediate or (P, 1)")};
  }
  Activation plain() const { return {dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCmd::kResetReduce}; }
  Status check(const Rules& r) {
    if (reduce_res.empty()) return Fault(FaultKind::kWrongType, "ARG2", "'reduce_res' is missing.");
    Activation a = plain();
    STERNA_TRY(a.check(r));
    data = a.data;
    bias = a.bias;
    scale = a.scale;
    return {};
  }
  Status execute(Machine& m) const { return plain().execute(m); }
  Work work(const Rules& r) const { return plain().work(r); }
};

using Instructions = InstructionList<Activation, ActivationReduce>;

}  // namespace sterna::scalar_engine
