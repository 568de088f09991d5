// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine: arithmetic element by element.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::vector_engine {

/// What a step of tensor_tensor or reciprocal keeps.
struct Elementwise2 {
  AluOp op;
  void operator()(const ConstBlock (&x)[2], Block o, const Piece& p) const {
    alu_block(op, x[0], x[1], o, p.rows, p.cols);
  }
};

/// What a step of tensor_scalar with immediates keeps.
struct ElementwiseImmediate {
  float operand0, operand1;
  AluOp op0, op1;
  bool reverse0, reverse1;
  void operator()(const ConstBlock (&x)[1], Block o, const Piece& p) const {
    apply_scalar(op0, x[0], {&operand0, 0}, reverse0, o, p);
    if (op1 != AluOp::kBypass) apply_scalar(op1, {o.data, o.pitch}, {&operand1, 0}, reverse1, o, p);
  }
};

/// dst = data1 op data2, element by element.
///
/// Shapes  dst, data1, data2: [P, N]; inputs of one element a partition repeat it
/// Types   any input; fp32 arithmetic, rounded once, converted to dst. Bit operators: integers, bits kept; of different
///         widths: extended by their own types to the widest of operands and dst, the low bits of the result kept. On
///         GpSimd with 32-bit integers throughout: exact integer arithmetic
/// Rules   P1 P2 SHAPE1 SHAPE2 BUF1 ENG1 ENG2 TYPE1 BITS1 (one width)
/// Source  nki.isa.tensor_tensor (SDK 2.32)
struct TensorTensor {
  static constexpr Info info{"tensor_tensor", 0x10, "dst = data1 op data2, element by element", "nki.isa.tensor_tensor",
                             "dst data1"};
  View dst, data1, data2;
  AluOp op = AluOp::kAdd;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = TensorTensor;
    return std::tuple{out("dst", &I::dst, "result tile"), in("data1", &I::data1, "left operand"),
                      in("data2", &I::data2, "right operand"), option("op", &I::op, "operator"),
                      option("engine", &I::engine, "engine to run on")};
  }
  bool wide_integers() const {
    auto is = [](const View& v) { return v.dtype == DType::kInt32 || v.dtype == DType::kUInt32; };
    return is(dst) && is(data1) && is(data2);
  }
  bool in_psum() const {
    return dst.memory == Memory::kPsum || data1.memory == Memory::kPsum || data2.memory == Memory::kPsum;
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data1, "data1"));
    STERNA_TRY(check_tile(r, data2, "data2"));
    STERNA_TRY(fit(r, data1, dst, "data1"));
    STERNA_TRY(fit(r, data2, dst, "data2"));
    STERNA_TRY(check_not_both_psum(data1, data2, "data1", "data2"));
    STERNA_TRY(check_alu_of_chip(r, {op}));
    if (is_unary(op))
      STERNA_TRY(r.compat("OPS3", cat(name(op), " has one operand, so 'data2' is not looked at; use tensor_scalar.")));
    if (is_bitwise(op)) STERNA_TRY(check_bits(r, {&dst, &data1, &data2}, op));
    if (engine == EngineId::kUnknown) {
      const bool exact = wide_integers() && !is_bitwise(op) && !in_psum();
      engine = exact || op == AluOp::kPower ? EngineId::kGpSimd : EngineId::kVector;
    }
    if (op == AluOp::kPower && in_psum())
      return Fault(FaultKind::kRuleBroken, "ENG2",
                   "power of two tiles runs on the GpSimd engine, which does not reach PSUM; copy the tiles to SBUF.");
    return check_engine(r, engine, {EngineId::kVector, EngineId::kGpSimd}, {&dst, &data1, &data2});
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data1, "data1"));
    STERNA_BIND(b, m.read(data2, "data2"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, a, b);
    if (is_bitwise(op)) return map_bits(m, d, a, b, op);
    if (engine == EngineId::kGpSimd && wide_integers() && has_int_form(op))
      return map_integers(m, d, a, b, op, data1.dtype == DType::kInt32);
    map_only(m, {dst, d}, Elementwise2{op}, Opened{data1, a}, Opened{data2, b});
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, engine, {&dst, &data1, &data2});
    const bool simple = op == AluOp::kAdd || op == AluOp::kSubtract || op == AluOp::kMultiply;
    const bool bf16 =
        dst.dtype == DType::kBFloat16 && data1.dtype == DType::kBFloat16 && data2.dtype == DType::kBFloat16;
    if (simple && bf16 && w.contiguous && w.all_sbuf) w.fast_cases |= bit(FastCase::kBFloat16Simple);
    return w;
  }
};

/// dst = (data op0 operand0) op1 operand1; each operand an immediate or one value for each partition.
///
/// Shapes  dst, data: [P, N]; operand0, operand1: immediate or (P, 1)
/// Types   fp32 arithmetic, each step rounded once; bit operators on integers keep bits, of different widths as in
///         tensor_tensor. Their immediates are whole numbers that the widest of data and dst can hold
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 ENG1 ENG2 ENG3 OPS5 OPS1 (both operators of one class) TYPE1 BITS1
/// Source  nki.isa.tensor_scalar (SDK 2.32)
struct TensorScalar {
  static constexpr Info info{"tensor_scalar", 0x11, "dst = (data op0 operand0) op1 operand1", "nki.isa.tensor_scalar",
                             "dst data"};
  View dst, data;
  AluOp op0 = AluOp::kBypass;
  Scalar operand0;
  bool reverse0 = false;
  AluOp op1 = AluOp::kBypass;
  Scalar operand1;
  bool reverse1 = false;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = TensorScalar;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("data", &I::data, "input tile"),
                      option("op0", &I::op0, "first operator"),
                      in("operand0", &I::operand0, "immediate or (P, 1)"),
                      option("reverse0", &I::reverse0, "operand0 op0 data"),
                      option("op1", &I::op1, "second operator"),
                      in("operand1", &I::operand1, "immediate or (P, 1)"),
                      option("reverse1", &I::reverse1, "operand1 op1 value"),
                      option("engine", &I::engine, "engine to run on")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(fit_scalar(r, operand0, dst, "operand0"));
    STERNA_TRY(fit_scalar(r, operand1, dst, "operand1"));
    if (op1 != AluOp::kBypass && op0 != AluOp::kBypass && is_bitwise(op0) != is_bitwise(op1))
      return Fault(FaultKind::kRuleBroken, "OPS1",
                   cat("op0 ", name(op0), " and op1 ", name(op1), " must both be bit operators or both arithmetic."));
    STERNA_TRY(check_operand(operand0, op0, "operand0", "op0"));
    STERNA_TRY(check_operand(operand1, op1, "operand1", "op1"));
    STERNA_TRY(check_alu_of_chip(r, {op0, op1}));
    if (!is_bitwise(op0) && !is_bitwise(op1)) {
      STERNA_TRY(check_float_operand(r, operand0, "operand0"));
      STERNA_TRY(check_float_operand(r, operand1, "operand1"));
    } else {
      STERNA_TRY(check_bits(r, {&dst, &data}, is_bitwise(op0) ? op0 : op1));
      STERNA_TRY(check_bit_operand(r, operand0, {&dst, &data}, op0, "operand0"));
      STERNA_TRY(check_bit_operand(r, operand1, {&dst, &data}, op1, "operand1"));
    }
    if (engine == EngineId::kUnknown) engine = EngineId::kVector;
    STERNA_TRY(check_scatter(engine, dst));
    STERNA_TRY(check_engine(r, engine, {EngineId::kVector, EngineId::kScalar, EngineId::kGpSimd}, {&dst, &data}));
    return check_operators(r);
  }
  /// ENG3: which engine has which operators.
  Status check_operators(const Rules& r) const {
    if (engine == EngineId::kVector) return {};
    if (is_bitwise(op0) || is_bitwise(op1))
      return Fault(
          FaultKind::kRuleBroken, "ENG3",
          cat("Bit operators of tensor_scalar run on the vector engine, not on the ", name(engine), " engine."));
    if (engine == EngineId::kGpSimd && op0 != AluOp::kRsqrt && op1 != AluOp::kRsqrt)
      return r.compat("ENG3", "By the documents tensor_scalar runs on the gpsimd engine for rsqrt only.");
    const bool sum = op0 == AluOp::kAdd && op1 == AluOp::kBypass;
    const bool product = op0 == AluOp::kMultiply && (op1 == AluOp::kBypass || op1 == AluOp::kAdd);
    if (engine != EngineId::kScalar || sum || product) return {};
    return r.compat("ENG3",
                    cat("By the documents the scalar engine runs tensor_scalar with multiply, add, or multiply ",
                        "and then add only, not with ", name(op0), " and ", name(op1), "."));
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    if (is_bitwise(op0) || is_bitwise(op1)) return execute_bits(m, a);
    float buffer0[kMaxPartitions], buffer1[kMaxPartitions];
    STERNA_BIND(s0, m.read_scalar(operand0, a.rows, buffer0, "operand0"));
    STERNA_BIND(s1, m.read_scalar(operand1, a.rows, buffer1, "operand1"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    if (!operand0.is_view && !operand1.is_view) {
      const ElementwiseImmediate body{*s0.data, *s1.data, op0, op1, reverse0, reverse1};
      map_only(m, {dst, d}, body, Opened{data, a});
      return {};
    }
    s0 = kept_apart(d, s0, a.rows, buffer0);
    s1 = kept_apart(d, s1, a.rows, buffer1);
    map_rows<1>(m, d, {a}, [&](const ConstBlock(&x)[1], Block o, const Piece& p) {
      apply_scalar(op0, x[0], s0, reverse0, o, p);
      if (op1 != AluOp::kBypass) apply_scalar(op1, {o.data, o.pitch}, s1, reverse1, o, p);
    });
    return {};
  }
  Status execute_bits(Machine& m, Operand a) const {
    std::vector<uint32_t> operands[2];
    int which = 0, bits = bit_width({dst.dtype, data.dtype});
    for (const Scalar* s : {&operand0, &operand1}) {
      auto& values = operands[which++];
      const DType as = s->value < 0 ? DType::kInt32 : DType::kUInt32;
      values.assign(static_cast<size_t>(a.rows), integer_bits(as, s->value));
      if (!s->is_view) continue;
      STERNA_BIND(o, m.read(s->view, "operand"));
      bits = std::max(bits, bit_width({o.dtype}));
      for (int64_t row = 0; row < a.rows; ++row) load_bits(o, row, 0, 1, &values[static_cast<size_t>(row)]);
    }
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    BitStep steps[2];
    int count = 0;
    if (op0 != AluOp::kBypass) steps[count++] = {op0, reverse0, operands[0].data()};
    if (op1 != AluOp::kBypass) steps[count++] = {op1, reverse1, operands[1].data()};
    map_bits_by_row(m, d, a, steps, count, bits);
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, engine, {&dst, &data}); }
};

/// dst = (data op0 operand0) op1 operand1; operand0 an immediate or one value for each partition, operand1 a tile.
///
/// Shapes  dst, data, operand1: [P, N]; operand0: immediate or (P, 1)
/// Types   any input; fp32 arithmetic, each step rounded once, converted to dst
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE3 BUF1 (data, operand1) OPS2 (no bit operators) ARG2
/// Source  nki.isa.scalar_tensor_tensor (SDK 2.32)
struct ScalarTensorTensor {
  static constexpr Info info{"scalar_tensor_tensor", 0x14, "dst = (data op0 operand0) op1 operand1, operand1 a tile",
                             "nki.isa.scalar_tensor_tensor"};
  View dst, data;
  AluOp op0 = AluOp::kBypass;
  Scalar operand0;
  AluOp op1 = AluOp::kBypass;
  View operand1;
  bool reverse0 = false, reverse1 = false;

  static constexpr auto fields() {
    using I = ScalarTensorTensor;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      in("data", &I::data, "input tile"),
                      option("op0", &I::op0, "first operator"),
                      in("operand0", &I::operand0, "immediate or (P, 1)"),
                      option("op1", &I::op1, "second operator"),
                      in("operand1", &I::operand1, "tile of the second operator"),
                      option("reverse0", &I::reverse0, "operand0 op0 data"),
                      option("reverse1", &I::reverse1, "operand1 op1 value")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_tile(r, operand1, "operand1"));
    STERNA_TRY(fit(r, data, dst, "data"));
    STERNA_TRY(fit(r, operand1, dst, "operand1"));
    STERNA_TRY(fit_scalar(r, operand0, dst, "operand0"));
    STERNA_TRY(check_not_both_psum(data, operand1, "data", "operand1"));
    STERNA_TRY(check_alu_of_chip(r, {op0, op1}));
    STERNA_TRY(check_arithmetic(op0, "op0"));
    STERNA_TRY(check_arithmetic(op1, "op1"));
    return check_operand(operand0, op0, "operand0", "op0");
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    float buffer[kMaxPartitions];
    STERNA_BIND(s, m.read_scalar(operand0, a.rows, buffer, "operand0"));
    STERNA_BIND(b, m.read(operand1, "operand1"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, a, b);
    s = kept_apart(d, s, a.rows, buffer);
    map_rows<2>(m, d, {a, b}, [&](const ConstBlock(&x)[2], Block o, const Piece& p) {
      // The first step's result may not go to `o` when operand1 lives there.
      const Block t = x[1].data == o.data ? Block{piece_scratch(3), static_cast<ptrdiff_t>(p.cols)} : o;
      apply_scalar(op0, x[0], s, reverse0, t, p);
      const ConstBlock first{t.data, t.pitch};
      alu_block(op1, reverse1 ? x[1] : first, reverse1 ? first : x[1], o, p.rows, p.cols);
    });
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kVector, {&dst, &data, &operand1});
    const bool bf16 = data.dtype == DType::kBFloat16 && operand1.dtype == DType::kBFloat16;
    if (bf16 && op0 == AluOp::kSubtract && op1 == AluOp::kMultiply && dst.cols() % 2 == 0)
      w.fast_cases |= bit(FastCase::kBFloat16SubtractMultiply);
    return w;
  }
};

/// dst = 1 / data, correctly rounded in fp32.
///
/// Rules   P1 P2 SHAPE1 SHAPE2
/// Source  nki.isa.reciprocal (SDK 2.32)
struct Reciprocal {
  static constexpr Info info{"reciprocal", 0x15, "dst = 1 / data", "nki.isa.reciprocal"};
  View dst, data;

  static constexpr auto fields() {
    return std::tuple{out("dst", &Reciprocal::dst, "result tile"), in("data", &Reciprocal::data, "input tile")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    return fit(r, data, dst, "data");
  }
  Status execute(Machine& m) const {
    STERNA_BIND(a, m.read(data, "data"));
    STERNA_BIND(d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    map_only(m, {dst, d}, Elementwise2{AluOp::kReciprocal}, Opened{data, a}, Opened{data, a});
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

using Elementwise = InstructionList<TensorTensor, TensorScalar, ScalarTensorTensor, Reciprocal>;

}  // namespace sterna::vector_engine
