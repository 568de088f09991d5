// SPDX-License-Identifier: Apache-2.0
// The vector engine's exponential.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"

namespace sterna::vector_engine {

/// dst = exp(src - max_value), with an optional sum over the free axes into the engine's accumulators.
///
/// Shapes  dst, src: [P, N]; max_value, reduce_init: immediate or (P, 1); reduce_res: (P, 1)
/// Types   fp32, each step rounded once; the sum is of the fp32 results before conversion to dst
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 RED3 EXP1 (types of dst and src) EXP2 (reduce_cmd) EXP3 (reduce_init is 0 unless
///         it is loaded) EXP4 (max_value, reduce_init: float32)
/// Source  nki.isa.exponential (SDK 2.32)
struct Exponential {
  static constexpr Info info{"exponential", 0x36, "dst = exp(src - max_value), optionally summed",
                             "nki.isa.exponential", "dst src"};
  View dst, src;
  Scalar max_value = Scalar::of(0.0);
  View reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::kIdle;
  Scalar reduce_init = Scalar::of(0.0);

  static constexpr auto fields() {
    using I = Exponential;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("src", &I::src, "input tile"),
                      in("max_value", &I::max_value, "immediate or (P, 1)"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators"),
                      in("reduce_init", &I::reduce_init, "value of load_reduce")};
  }
  /// The float types of the document, and the integers but bool; `except` is missing on one side.
  static Status check_type(DType t, DType except, std::string_view what) {
    const bool good = is_integer(t) ? t != DType::kBool
                                    : t == DType::kFloat32 || t == DType::kTFloat32 || t == DType::kBFloat16 ||
                                          t == DType::kFloat16 || t == DType::kFloat8E4M3 || t == DType::kFloat8E5M2;
    if (good && t != except) return {};
    return Fault(FaultKind::kRuleBroken, "EXP1", cat("exponential does not take ", name(t), " as '", what, "'."));
  }
  static Status check_fp32(const Scalar& scalar, std::string_view what) {
    if (!scalar.is_view || scalar.view.dtype == DType::kFloat32) return {};
    return Fault(FaultKind::kRuleBroken, "EXP4",
                 cat("'", what, "' of exponential must be float32, not ", name(scalar.view.dtype), "."));
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, src, "src"));
    STERNA_TRY(fit(r, src, dst, "src"));
    STERNA_TRY(fit_scalar(r, max_value, dst, "max_value"));
    STERNA_TRY(fit_scalar(r, reduce_init, dst, "reduce_init"));
    STERNA_TRY(check_type(dst.dtype, DType::kUInt32, "dst"));
    STERNA_TRY(check_type(src.dtype, DType::kTFloat32, "src"));
    STERNA_TRY(check_fp32(max_value, "max_value"));
    STERNA_TRY(check_fp32(reduce_init, "reduce_init"));
    if (reduce_cmd == ReduceCmd::kReset)
      return Fault(FaultKind::kRuleBroken, "EXP2",
                   "reduce_cmd of exponential is idle, reset_reduce, reduce or load_reduce.");
    const bool zero = reduce_init.is_none || (!reduce_init.is_view && reduce_init.value == 0);
    if (!zero && reduce_cmd != ReduceCmd::kLoadReduce)
      return Fault(FaultKind::kRuleBroken, "EXP3", "'reduce_init' is used by reduce_cmd load_reduce only.");
    if (reduce_init.is_none) reduce_init = Scalar::of(0.0);
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, reduce_init, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  bool shifted() const { return max_value.is_view || (!max_value.is_none && max_value.value != 0.0); }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(src, "src"));
    float* lanes = lanes_of(m.vector_accumulator(), a);
    float buffer[kMaxPartitions], init_buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values largest, m.read_scalar(max_value, a.rows, buffer, "max_value"));
    STERNA_ASSIGN(const Machine::Values init, m.read_scalar(reduce_init, a.rows, init_buffer, "reduce_init"));
    begin_accumulation(lanes, reduce_cmd, 0.0f, init, a.rows);
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    largest = kept_apart(d, largest, a.rows, buffer);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(AluOp::kAdd, reduces ? a.rows : 0, a.cols);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      ConstBlock from = x[0];
      if (shifted()) {
        apply_scalar(AluOp::kSubtract, from, largest, false, o, p);
        from = {o.data, o.pitch};
      }
      function_block(Function::kExp, from, o, p.rows, p.cols);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(lanes);
    return read_out_accumulators(m, lanes, reduce_res);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &src});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

using Exponentials = InstructionList<Exponential>;

}  // namespace sterna::vector_engine
