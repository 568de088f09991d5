// SPDX-License-Identifier: Apache-2.0
// The accumulator registers of the vector and the scalar engine: one fp32 a lane, "corresponding to the 128 partitions
// of the input" (nki.isa.activation_reduce). Those of the vector engine are shared by tensor_scalar_reduce,
// select_reduce, range_select, exponential and tensor_scalar_cumulative. Source: nki.isa.reduce_cmd and the
// "Accumulator behavior" notes of these instructions (SDK 2.32).
#pragma once

#include <algorithm>
#include <initializer_list>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"

namespace sterna {

inline bool accumulates(ReduceCmd cmd) {
  return cmd == ReduceCmd::kReduce || cmd == ReduceCmd::kResetReduce || cmd == ReduceCmd::kLoadReduce;
}

/// RED1: the reduction is one of those listed.
inline Status check_reduce_op(AluOp op, std::initializer_list<AluOp> allowed, std::string_view what) {
  std::string list;
  for (AluOp a : allowed) {
    if (a == op) return {};
    list += cat(list.empty() ? "" : ", ", name(a));
  }
  return Fault(FaultKind::kRuleBroken, "RED1",
               cat("'", what, "' is ", name(op), "; this instruction reduces with: ", list, "."));
}

/// SHAPE3: 'reduce_res' holds one value for each partition of dst.
inline Status check_reduce_res(const Rules& r, const View& reduce_res, const View& dst) {
  if (reduce_res.empty()) return {};
  STERNA_TRY(check_tile(r, reduce_res, "reduce_res"));
  if (reduce_res.rows() == dst.rows() && reduce_res.cols() == 1) return {};
  return Fault(FaultKind::kRuleBroken, "SHAPE3",
               cat("'reduce_res' ", shape_text(reduce_res), " must be (", dst.rows(), ", 1)."));
}

/// RED2: an initial value goes with load_reduce, and only with it. RED3 (remark): an idle accumulator is read out.
inline Status check_reduce_cmd(const Rules& r, ReduceCmd cmd, const Scalar& init, const View& reduce_res) {
  if (cmd == ReduceCmd::kLoadReduce && init.is_none)
    return Fault(FaultKind::kRuleBroken, "RED2", "reduce_cmd is load_reduce, so the value to load must be given.");
  if (cmd == ReduceCmd::kIdle && !reduce_res.empty())
    r.warn("RED3",
           "reduce_cmd is idle, so 'reduce_res' gets what an earlier instruction left in the accumulators; use "
           "reset_reduce.");
  return {};
}

/// The registers of the lanes that an input's rows run through: of an operand as read(), not of a copy.
inline float* lanes_of(Machine::Accumulators& registers, const Operand& input) {
  const int64_t first = std::clamp<int64_t>(lane_of(input, 0), 0, kMaxPartitions - input.rows);
  return registers.data() + first;
}

/// Where a reduction begins: "the identity is 0 for nl.add" (nki.isa.tensor_scalar_reduce), which is +0.
inline float accumulator_identity(AluOp op) { return op == AluOp::kAdd ? 0.0f : reduction_identity(op); }

/// What the command does before the reduction, in the lanes that run. `init` holds the values of load_reduce.
inline void begin_accumulation(float* lanes, ReduceCmd cmd, float identity, const Machine::Values& init, int64_t rows) {
  if (cmd == ReduceCmd::kReset || cmd == ReduceCmd::kResetReduce) std::fill_n(lanes, rows, identity);
  if (cmd != ReduceCmd::kLoadReduce) return;
  for (int64_t r = 0; r < rows; ++r) lanes[r] = init.data[r * init.pitch];
}

/// Copies the registers of the lanes that ran into reduce_res, if there is one.
inline Status read_out_accumulators(Machine& m, const float* values, const View& reduce_res, bool negate = false) {
  if (reduce_res.empty()) return {};
  STERNA_ASSIGN(Operand res, m.write(reduce_res, "reduce_res"));
  float negated[kMaxPartitions];
  if (negate) {
    alu_block(AluOp::kNegative, {values, res.rows}, {values, res.rows}, {negated, res.rows}, 1, res.rows);
    values = negated;
  }
  store_column(res, values);
  return {};
}

}  // namespace sterna
