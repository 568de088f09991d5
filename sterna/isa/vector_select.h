// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that select elements and take the maximum of what they selected.
#pragma once

#include <cfloat>

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"
#include "sterna/numerics/select.h"

namespace sterna::vector_engine {

/// out = where is not zero ? yes : no, along one row; `where` holds converted integers or results of comparisons, hence
/// no -0.
inline void choose(const float* where, const float* yes, float no, bool invert, float* out, int64_t n) {
  static constexpr auto words = [](const float* x) { return reinterpret_cast<const uint32_t*>(x); };
  select_row(words(where), words(yes), words(&no), 0, invert, reinterpret_cast<uint32_t*>(out), n);
}

/// dst = on_true where predicate is not zero, else on_false; its maximum over the free axes joins the accumulators.
///
/// Shapes  dst, predicate, on_true: [P, N]; on_false: immediate or (P, 1); reduce_res: (P, 1)
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 BUF1 (on_true, predicate) PRED1 (predicate is an integer, of 8 or 16 bits) SEL1
/// (on_true's type) SEL2 (reduce_res is a float) RED1 RED3 ARG2 Source  nki.isa.select_reduce (SDK 2.32)
struct SelectReduce {
  static constexpr Info info{"select_reduce", 0x1c, "dst = where(predicate, on_true, on_false), and its maximum",
                             "nki.isa.select_reduce"};
  View dst, predicate, on_true;
  Scalar on_false;
  View reduce_res;
  ReduceCmd reduce_cmd = ReduceCmd::kIdle;
  AluOp reduce_op = AluOp::kMaximum;
  bool reverse_pred = false;

  static constexpr auto fields() {
    using I = SelectReduce;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("predicate", &I::predicate, "integers: which to take"),
                      in("on_true", &I::on_true, "tile"),
                      in("on_false", &I::on_false, "immediate or (P, 1)"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators"),
                      option("reduce_op", &I::reduce_op, "maximum"),
                      option("reverse_pred", &I::reverse_pred, "swap the choice")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, predicate, "predicate"));
    STERNA_TRY(check_tile(r, on_true, "on_true"));
    STERNA_TRY(fit(r, predicate, dst, "predicate"));
    STERNA_TRY(fit(r, on_true, dst, "on_true"));
    STERNA_TRY(fit_scalar(r, on_false, dst, "on_false"));
    if (on_false.is_none) return Fault(FaultKind::kWrongType, "ARG2", "'on_false' is missing.");
    STERNA_TRY(check_not_both_psum(on_true, predicate, "on_true", "predicate"));
    if (is_float(predicate.dtype))
      return Fault(FaultKind::kRuleBroken, "PRED1",
                   cat("'predicate' must be of an 8- or 16-bit integer type, not ", name(predicate.dtype), "."));
    if (size_of(predicate.dtype) > 2)
      STERNA_TRY(r.compat("PRED1", cat("'predicate' of select_reduce is of an 8- or 16-bit integer type, not ",
                                       name(predicate.dtype), ".")));
    if (!reduce_res.empty() && !is_float(reduce_res.dtype))
      STERNA_TRY(
          r.compat("SEL2", cat("'reduce_res' of select_reduce is of a float type, not ", name(reduce_res.dtype), ".")));
    if (on_true.dtype == DType::kTFloat32 || on_true.dtype == DType::kInt32 || on_true.dtype == DType::kUInt32)
      STERNA_TRY(r.compat(
          "SEL1", cat("'on_true' of select_reduce may not be ", name(on_true.dtype), "; values go through fp32.")));
    STERNA_TRY(check_reduce_op(reduce_op, {AluOp::kMaximum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, {}, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(c, m.read(predicate, "predicate"));
    STERNA_BIND(a, m.read(on_true, "on_true"));
    float* lanes = lanes_of(m.vector_accumulator(), a);
    float buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values other, m.read_scalar(on_false, a.rows, buffer, "on_false"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, c, a);
    other = kept_apart(d, other, a.rows, buffer);
    begin_accumulation(lanes, reduce_cmd, reduction_identity(reduce_op), {}, a.rows);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(reduce_op, reduces ? a.rows : 0, a.cols);
    map_rows<2>(m, d, {c, a}, [&](const ConstBlock(&x)[2], Block o, const Piece& p) {
      for (int64_t i = 0; i < p.rows; ++i)
        choose(x[0].data + i * x[0].pitch, x[1].data + i * x[1].pitch, other.data[(p.row + i) * other.pitch],
               reverse_pred, o.data + i * o.pitch, p.cols);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(lanes);
    return read_out_accumulators(m, lanes, reduce_res);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &on_true, &predicate});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

/// dst keeps on_true_tile's element i where (range_start + i) comp_op0 bound0 and (range_start + i) comp_op1 bound1,
/// else it takes on_false_value; its maximum over the free axes joins the accumulators.
///
/// Shapes  dst, on_true_tile: [P, N]; bound0, bound1: (P, 1); reduce_res: (P, 1)
/// Types   indices and bounds are compared in fp32
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 RNG1 (comparisons) RNG2 (bounds) RNG3 (float input) RNG4 (on_false_value) RED1
/// RED3 Source  nki.isa.range_select (SDK 2.32)
struct RangeSelect {
  static constexpr Info info{"range_select", 0x1d, "elements whose index lies in a range, else the lowest fp32",
                             "nki.isa.range_select"};
  View dst, on_true_tile;
  AluOp comp_op0 = AluOp::kGreaterEqual, comp_op1 = AluOp::kLess;
  Scalar bound0, bound1;
  ReduceCmd reduce_cmd = ReduceCmd::kResetReduce;
  View reduce_res;
  AluOp reduce_op = AluOp::kMaximum;
  int32_t range_start = 0;
  float on_false_value = -FLT_MAX;

  static constexpr auto fields() {
    using I = RangeSelect;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("on_true_tile", &I::on_true_tile, "input tile"),
                      option("comp_op0", &I::comp_op0, "first comparison"),
                      option("comp_op1", &I::comp_op1, "second comparison"),
                      in("bound0", &I::bound0, "(P, 1) bound of the first"),
                      in("bound1", &I::bound1, "(P, 1) bound of the second"),
                      option("reduce_cmd", &I::reduce_cmd, "what happens to the accumulators"),
                      out("reduce_res", &I::reduce_res, "(P, 1) read-out of the accumulators"),
                      option("reduce_op", &I::reduce_op, "maximum"),
                      option("range_start", &I::range_start, "index of the first element"),
                      option("on_false_value", &I::on_false_value, "the lowest fp32")};
  }
  Status check_bound(const Rules& r, Scalar& bound, AluOp op, std::string_view what) const {
    if (op != AluOp::kEqual && op != AluOp::kLess && op != AluOp::kLessEqual && op != AluOp::kGreater &&
        op != AluOp::kGreaterEqual)
      return Fault(
          FaultKind::kRuleBroken, "RNG1",
          cat("range_select compares with equal, less, less_equal, greater or greater_equal, not ", name(op), "."));
    if (bound.is_none) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing."));
    if (!bound.is_view)
      return r.compat("RNG2", cat("'", what, "' must be an fp32 tile of one value for each partition."));
    if (bound.view.dtype != DType::kFloat32)
      return Fault(FaultKind::kRuleBroken, "RNG2",
                   cat("'", what, "' must be fp32, it is ", name(bound.view.dtype), "."));
    return fit_scalar(r, bound, dst, what);
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, on_true_tile, "on_true_tile"));
    STERNA_TRY(fit(r, on_true_tile, dst, "on_true_tile"));
    STERNA_TRY(check_bound(r, bound0, comp_op0, "bound0"));
    STERNA_TRY(check_bound(r, bound1, comp_op1, "bound1"));
    constexpr int64_t kExact = int64_t{1} << 24;  // "within 2^24 range to avoid floating point inaccuracies"
    const int64_t first = range_start, last = first + on_true_tile.cols() - 1;
    if (first < -kExact || last > kExact)
      return Fault(FaultKind::kRuleBroken, "RNG5",
                   cat("The indices ", first, " to ", last, " are compared as fp32: they must lie within 2^24."));
    if (!is_float(on_true_tile.dtype))
      return Fault(FaultKind::kRuleBroken, "RNG3",
                   cat("'on_true_tile' must be of a float type, not ", name(on_true_tile.dtype), "."));
    if (on_false_value != -FLT_MAX)
      STERNA_TRY(r.compat("RNG4",
                          cat("'on_false_value' must be the lowest fp32 (", -FLT_MAX, "), not ", on_false_value, ".")));
    STERNA_TRY(check_reduce_op(reduce_op, {AluOp::kMaximum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, {}, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(on_true_tile, "on_true_tile"));
    float* lanes = lanes_of(m.vector_accumulator(), a);
    float buffer0[kMaxPartitions], buffer1[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values b0, m.read_scalar(bound0, a.rows, buffer0, "bound0"));
    STERNA_ASSIGN(Machine::Values b1, m.read_scalar(bound1, a.rows, buffer1, "bound1"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    b0 = kept_apart(d, b0, a.rows, buffer0);
    b1 = kept_apart(d, b1, a.rows, buffer1);
    begin_accumulation(lanes, reduce_cmd, reduction_identity(reduce_op), {}, a.rows);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(reduce_op, reduces ? a.rows : 0, a.cols);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      select(x[0], b0, b1, o, p);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(lanes);
    return read_out_accumulators(m, lanes, reduce_res);
  }
  void select(ConstBlock x, const Machine::Values& b0, const Machine::Values& b1, Block o, const Piece& p) const {
    float *index = piece_scratch(2), *in0 = piece_scratch(3), *in1 = piece_scratch(4);
    for (int64_t k = 0; k < p.cols; ++k) index[k] = static_cast<float>(range_start + p.col + k);
    alu_block_scalar(comp_op0, {index, 0}, b0.data + p.row * b0.pitch, b0.pitch, false, {in0, p.cols}, p.rows, p.cols);
    alu_block_scalar(comp_op1, {index, 0}, b1.data + p.row * b1.pitch, b1.pitch, false, {in1, p.cols}, p.rows, p.cols);
    alu_block(AluOp::kMultiply, {in0, p.cols}, {in1, p.cols}, {in0, p.cols}, p.rows, p.cols);  // both hold
    for (int64_t i = 0; i < p.rows; ++i)
      choose(in0 + i * p.cols, x.data + i * x.pitch, on_false_value, false, o.data + i * o.pitch, p.cols);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &on_true_tile});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

using Selections = InstructionList<SelectReduce, RangeSelect>;

}  // namespace sterna::vector_engine
