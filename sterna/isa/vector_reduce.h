// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that reduce or scan along the free axes.
#pragma once

#include <cfloat>

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/sums.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/select.h"

namespace sterna::vector_engine {

/// dst = reduction of data over its last free axes, times -1 with negate.
///
/// Shapes  data: [P, ...]; axis: the last axes of data, never 0; dst: one element for each index that remains
/// Types   fp32 arithmetic in the order of alu.h's reduce_block, converted once to dst; bit operators on integers keep
/// bits Rules   P1 P2 RED1 RED4 (axes) RED5 (shape of dst) RED6 (negate with a bit operator) TYPE1 Source
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
    STERNA_TRY(check_axes());
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
    STERNA_TRY(check_arithmetic(op0, "op0"));
    STERNA_TRY(check_operand(operand0, op0, "operand0", "op0"));
    STERNA_TRY(
        check_reduce_op(reduce_op, {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, reduce_init, reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    float buffer[kMaxPartitions], init_buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values s, m.read_scalar(operand0, a.rows, buffer, "operand0"));
    STERNA_ASSIGN(Machine::Values init, m.read_scalar(reduce_init, a.rows, init_buffer, "reduce_init"));
    begin_accumulation(m, reduce_cmd, reduction_identity(reduce_op), init, a.rows);
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
    if (reduces) sums.finish_into(m.vector_accumulator().data());
    return read_out_accumulators(m, reduce_res, reduce_res_negate);
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &data});
    w.accumulator_read = !reduce_res.empty();
    return w;
  }
};

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
  /// +0 for subtract, so that the first element keeps its sign.
  float identity() const { return op1 == AluOp::kSubtract ? 0.0f : reduction_identity(op1); }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(src, "src"));
    float buffer[kMaxPartitions], init_buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values s, m.read_scalar(imm0, a.rows, buffer, "imm0"));
    STERNA_ASSIGN(Machine::Values init, m.read_scalar(imm1, a.rows, init_buffer, "imm1"));
    begin_accumulation(m, reduce_cmd, identity(), init, a.rows);
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    s = kept_apart(d, s, a.rows, buffer);
    float* acc = m.vector_accumulator().data();
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      apply_scalar(op0, x[0], s, false, o, p);
      // A scan whose second step adds -0, which changes nothing.
      float* nothing = piece_scratch(2);
      std::fill_n(nothing, p.cols, -0.0f);
      scan_block(op1, AluOp::kAdd, false, false, {o.data, o.pitch}, {nothing, 0}, acc + p.row, 1, o, p.rows, p.cols);
      for (int64_t i = 0; i < p.rows; ++i) acc[p.row + i] = o.data[i * o.pitch + p.cols - 1];
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

/// out = where is not zero ? yes : no, along one row; `where` holds converted integers or results of comparisons, hence
/// no -0.
inline void choose(const float* where, const float* yes, float no, bool invert, float* out, int64_t n) {
  static constexpr auto words = [](const float* x) { return reinterpret_cast<const uint32_t*>(x); };
  select_row(words(where), words(yes), words(&no), 0, invert, reinterpret_cast<uint32_t*>(out), n);
}

/// dst = on_true where predicate is not zero, else on_false; its maximum over the free axes joins the accumulators.
///
/// Shapes  dst, predicate, on_true: [P, N]; on_false: immediate or (P, 1); reduce_res: (P, 1)
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 BUF1 (on_true, predicate) PRED1 (predicate is an integer) SEL1 (on_true's type)
/// RED1 RED3 ARG2 Source  nki.isa.select_reduce (SDK 2.32)
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
    if (on_true.dtype == DType::kTFloat32 || on_true.dtype == DType::kInt32 || on_true.dtype == DType::kUInt32)
      STERNA_TRY(r.compat(
          "SEL1", cat("'on_true' of select_reduce may not be ", name(on_true.dtype), "; values go through fp32.")));
    STERNA_TRY(check_reduce_op(reduce_op, {AluOp::kMaximum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, Scalar::of(0.0), reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(c, m.read(predicate, "predicate"));
    STERNA_BIND(a, m.read(on_true, "on_true"));
    float buffer[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values other, m.read_scalar(on_false, a.rows, buffer, "on_false"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, c, a);
    other = kept_apart(d, other, a.rows, buffer);
    begin_accumulation(m, reduce_cmd, reduction_identity(reduce_op), {}, a.rows);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(reduce_op, reduces ? a.rows : 0, a.cols);
    map_rows<2>(m, d, {c, a}, [&](const ConstBlock(&x)[2], Block o, const Piece& p) {
      for (int64_t i = 0; i < p.rows; ++i)
        choose(x[0].data + i * x[0].pitch, x[1].data + i * x[1].pitch, other.data[(p.row + i) * other.pitch],
               reverse_pred, o.data + i * o.pitch, p.cols);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(m.vector_accumulator().data());
    return read_out_accumulators(m, reduce_res);
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
    if (!is_float(on_true_tile.dtype))
      return Fault(FaultKind::kRuleBroken, "RNG3",
                   cat("'on_true_tile' must be of a float type, not ", name(on_true_tile.dtype), "."));
    if (on_false_value != -FLT_MAX)
      STERNA_TRY(r.compat("RNG4",
                          cat("'on_false_value' must be the lowest fp32 (", -FLT_MAX, "), not ", on_false_value, ".")));
    STERNA_TRY(check_reduce_op(reduce_op, {AluOp::kMaximum}, "reduce_op"));
    STERNA_TRY(check_reduce_cmd(r, reduce_cmd, Scalar::of(0.0), reduce_res));
    return check_reduce_res(r, reduce_res, dst);
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(on_true_tile, "on_true_tile"));
    float buffer0[kMaxPartitions], buffer1[kMaxPartitions];
    STERNA_ASSIGN(Machine::Values b0, m.read_scalar(bound0, a.rows, buffer0, "bound0"));
    STERNA_ASSIGN(Machine::Values b1, m.read_scalar(bound1, a.rows, buffer1, "bound1"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    b0 = kept_apart(d, b0, a.rows, buffer0);
    b1 = kept_apart(d, b1, a.rows, buffer1);
    begin_accumulation(m, reduce_cmd, reduction_identity(reduce_op), {}, a.rows);
    const bool reduces = accumulates(reduce_cmd);
    RowSums sums(reduce_op, reduces ? a.rows : 0, a.cols);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      select(x[0], b0, b1, o, p);
      if (reduces) sums.add({o.data, o.pitch}, p);
    });
    if (reduces) sums.finish_into(m.vector_accumulator().data());
    return read_out_accumulators(m, reduce_res);
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

using Reductions = InstructionList<TensorReduce, TensorScalarReduce, TensorScalarCumulative, TensorTensorScan,
                                   SelectReduce, RangeSelect>;

}  // namespace sterna::vector_engine
