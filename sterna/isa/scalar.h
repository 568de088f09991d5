// SPDX-License-Identifier: Apache-2.0
// Instructions of the scalar engine.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/scalar_gen4.h"
#include "sterna/isa/scalar_range.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::scalar_engine {

/// dst = op(data * scale + bias), with an optional sum over the free axes into the engine's accumulators.
///
/// Shapes  dst, data: [P, N]; scale, bias: immediate or (P, 1); reduce_res: (P, 1)
/// Types   fp32, each step rounded once; the sum is of the fp32 results before conversion to dst. A plain copy (scale
/// 1, no bias) of
///         equal types keeps bits where the chip's scalar engine does
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 ACT1 (reduce_op add only) ACT2 (no prelu) ACT3 (a remark: an input of op outside
///         its documented range, numerics/functions.h) ACT4 (reduce_cmd) ACT5 ACT6 (bias where the chip has no
///         immediate one, or none with reciprocal) ACT7 (types of scale and bias)
/// Source  nki.isa.activation (SDK 2.32)
struct Activation {
  /// What a step keeps of one with immediates.
  struct Immediates {
    float scale, bias;
    Function op;
    bool scaled, biased;
    void operator()(const ConstBlock (&x)[1], Block o, const Piece& p) const {
      ConstBlock from = x[0];
      if (scaled) {
        apply_scalar(AluOp::kMultiply, from, {&scale, 0}, false, o, p);
        from = {o.data, o.pitch};
      }
      if (biased) {
        apply_scalar(AluOp::kAdd, from, {&bias, 0}, false, o, p);
        from = {o.data, o.pitch};
      }
      function_block(op, from, o, p.rows, p.cols);
    }
  };
  static constexpr Info info{"activation", 0x40, "dst = op(data * scale + bias), optionally summed",
                             "nki.isa.activation", "dst data"};
  View dst;
  Function op = Function::kCopy;
  View data;
  Scalar bias;
  Scalar scale = Scalar::of(1.0);
  AluOp reduce_op = AluOp::kBypass;
  View reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::kIdle;
  bool exact_copy = false;  ///< keeps bits: check() finds out, since it depends on the chip

  static constexpr auto fields() {
    using I = Activation;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("op", &I::op, "activation function"),
                      in("data", &I::data, "input tile"),
                      in("bias", &I::bias, "immediate or (P, 1)"),
                      in("scale", &I::scale, "immediate or (P, 1)"),
                      option("reduce_op", &I::reduce_op, "add, or none"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators")};
  }
  bool reduces() const { return reduce_cmd == ReduceCmd::kReduce || reduce_cmd == ReduceCmd::kResetReduce; }
  bool scaled() const { return scale.is_view || (!scale.is_none && scale.value != 1.0); }
  bool biased() const { return bias.is_view || (!bias.is_none && bias.value != 0.0); }
  Status check(const Rules& r) {
    if (op == Function::kPrelu)
      return Fault(FaultKind::kUnknownBehaviour, "ACT2",
                   "activation with prelu: its slope is said to be the relu_param argument, which activation does not "
                   "have in NKI 0.6, "
                   "and no public source says what slope the hardware then uses. Use relu, or write max(x, 0) + slope "
                   "* min(x, 0).");
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(check_scatter(EngineId::kScalar, dst));
    STERNA_TRY(fit_scalar(r, bias, dst, "bias"));
    STERNA_TRY(fit_scalar(r, scale, dst, "scale"));
    STERNA_TRY(check_scale_and_bias(r));
    if (reduce_cmd == ReduceCmd::kLoadReduce)
      return Fault(FaultKind::kRuleBroken, "ACT4",
                   "reduce_cmd of activation is idle, reset, reduce or reset_reduce, not load_reduce.");
    if (reduce_op != AluOp::kBypass && reduce_op != AluOp::kAdd)
      return Fault(FaultKind::kRuleBroken, "ACT1", cat("activation reduces with add only, not ", name(reduce_op), "."));
    if (!reduce_res.empty()) {
      STERNA_TRY(check_tile(r, reduce_res, "reduce_res"));
      if (reduce_res.rows() != dst.rows() || reduce_res.cols() != 1)
        return Fault(FaultKind::kRuleBroken, "SHAPE3",
                     cat("'reduce_res' ", shape_text(reduce_res), " must be (", dst.rows(), ", 1)."));
    }
    exact_copy = op == Function::kCopy && !scaled() && !biased() && dst.dtype == data.dtype &&
                 r.chip->features.exact_copy_on_scalar;
    return {};
  }
  Status check_scale_and_bias(const Rules& r) const {
    if (biased() && !bias.is_view && !r.chip->features.activation_bias_immediate)
      return Fault(FaultKind::kNotOnThisChip, "ACT5",
                   cat("On ", r.chip->name, " 'bias' is a (P, 1) tile: a number is not possible."));
    if (biased() && op == Function::kReciprocal && !r.chip->features.reciprocal_bias)
      return Fault(FaultKind::kNotOnThisChip, "ACT6", cat("On ", r.chip->name, " reciprocal takes no 'bias'."));
    if (scale.is_view && scale.view.dtype != DType::kFloat32)
      STERNA_TRY(r.compat("ACT7", cat("'scale' is ", name(scale.view.dtype), "; by the documents it is float32.")));
    if (bias.is_view && bias.view.dtype == DType::kTFloat32)
      STERNA_TRY(r.compat("ACT7", "'bias' is tfloat32, the one type that it may not have by the documents."));
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    float* lanes = lanes_of(m.scalar_accumulator(), a);
    float bias_buffer[kMaxPartitions], scale_buffer[kMaxPartitions];
    STERNA_BIND(b, m.read_scalar(bias, a.rows, bias_buffer, "bias"));
    STERNA_BIND(s, m.read_scalar(scale, a.rows, scale_buffer, "scale"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    b = kept_apart(d, b, a.rows, bias_buffer);
    s = kept_apart(d, s, a.rows, scale_buffer);
    RowSums sums(AluOp::kAdd, reduces() ? a.rows : 0, a.cols);
    if (exact_copy) {
      if (reduces()) visit_rows<1>(m, {a}, [&](const ConstBlock(&x)[1], const Piece& p) { sums.add(x[0], p); });
      STERNA_TRY(copy_elements(m, d, a));
    } else {
      compute(m, d, a, s, b, sums);
    }
    begin_accumulation(lanes, reduce_cmd, 0.0f, {}, a.rows);
    if (reduces()) sums.finish_into(lanes);
    if (reduce_res.empty()) return {};
    STERNA_BIND(res, m.write(reduce_res, "reduce_res"));
    store_column(res, lanes);
    return {};
  }
  /// The three steps on every element of `a`, and their sums.
  void compute(Machine& m, const Operand& d, const Operand& a, const Machine::Values& s, const Machine::Values& b,
               RowSums& sums) const {
    RangeCheck range(op);
    if (!scale.is_view && !bias.is_view && reduce_cmd == ReduceCmd::kIdle && reduce_res.empty() && !range.limited()) {
      map_only(m, {dst, d}, Immediates{*s.data, *b.data, op, scaled(), biased()}, Opened{data, a});
      return;
    }
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      ConstBlock from = x[0];
      if (scaled()) {
        apply_scalar(AluOp::kMultiply, from, s, false, o, p);
        from = {o.data, o.pitch};
      }
      if (biased()) {
        apply_scalar(AluOp::kAdd, from, b, false, o, p);
        from = {o.data, o.pitch};
      }
      range.look(from, p);
      function_block(op, from, o, p.rows, p.cols);
      if (reduces()) sums.add({o.data, o.pitch}, p);
    });
    range.warn(m);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kScalar, {&dst, &data});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

/// activation with reduce_cmd reset_reduce: dst = op(data * scale + bias), and its sum over the free axes in
/// reduce_res.
///
/// Rules   those of activation
/// Source  nki.isa.activation_reduce (SDK 2.32)
struct ActivationReduce {
  static constexpr Info info{"activation_reduce", 0x41, "dst = op(data * scale + bias), and its sum",
                             "nki.isa.activation_reduce", "dst data"};
  View dst;
  Function op = Function::kCopy;
  View data;
  AluOp reduce_op = AluOp::kAdd;
  View reduce_res;
  Scalar bias;
  Scalar scale = Scalar::of(1.0);
  bool exact_copy = false;  ///< as in Activation

  static constexpr auto fields() {
    using I = ActivationReduce;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("op", &I::op, "activation function"),
                      in("data", &I::data, "input tile"),
                      option("reduce_op", &I::reduce_op, "add"),
                      out("reduce_res", &I::reduce_res, "(P, 1) sums"),
                      in("bias", &I::bias, "immediate or (P, 1)"),
                      in("scale", &I::scale, "immediate or (P, 1)")};
  }
  Activation plain() const {
    return {dst, op, data, bias, scale, reduce_op, reduce_res, ReduceCmd::kResetReduce, exact_copy};
  }
  Status check(const Rules& r) {
    Activation a = plain();
    STERNA_TRY(a.check(r));
    data = a.data;
    bias = a.bias;
    scale = a.scale;
    exact_copy = a.exact_copy;
    return {};
  }
  Status execute(Machine& m) const { return plain().execute(m); }
  Work work(const Rules& r) const { return plain().work(r); }
};

using Instructions = Joined<InstructionList<Activation, ActivationReduce>, Gen4>;

}  // namespace sterna::scalar_engine
