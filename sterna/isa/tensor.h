// SPDX-License-Identifier: Apache-2.0
// Instructions of the tensor engine.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/tensor_execute.h"
#include "sterna/isa/tensor_mx.h"
#include "sterna/isa/tensor_sparse.h"
#include "sterna/isa/tensor_tile.h"
#include "sterna/isa/tensor_types.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::tensor_engine {

/// dst[m, n] (+)= sum over k of stationary[k, m] * moving[k, n]; the contraction runs over partitions.
///
/// Shapes  stationary [K, M], moving [K, N], dst [M, N]; double row: [K, 2, M], [K, 2, N]
/// Types   products and sums in fp32, one chain ascending k from zero, then one addition to PSUM when accumulating;
///         is_transpose with the identity as moving keeps the bits of stationary on chips that can, when it overwrites
/// Rules   P3 MM1 (inputs in SBUF) MM2 (dst in PSUM) MM3 (K) MM4 (M) MM5 (N) MM6 (shapes) MM7 (type pairs) MM8 (double
/// row) MM9 (dst type) TILE1 TILE2 TILE3 TILE4 (array tile) MM11 (moving is the identity of a transpose) MM12 (dst has
/// the type of transposed data) TI8 (.indirect() of float16, bfloat16, fp8; not of a transpose's moving; whole array)
/// Source  nki.isa.nc_matmul (SDK 2.32); accumulate=None: the first write to a PSUM
/// location overwrites, later ones add
struct NcMatmul {
  static constexpr Info info{
      "nc_matmul", 0x60, "dst (+)= stationary^T @ moving", "nki.isa.nc_matmul", "dst stationary moving", true};
  View dst, stationary, moving;
  bool is_stationary_onezero = false, is_moving_onezero = false, is_transpose = false;
  AccumulateFlag accumulate = AccumulateFlag::kAuto;
  Ints tile_position, tile_size;
  PerfMode perf_mode = PerfMode::kNone;
  bool exact_transpose = false;  ///< keeps bits: check() finds out, since it depends on the chip

  static constexpr auto fields() {
    using I = NcMatmul;
    return std::tuple{
        inout("dst", &I::dst, "PSUM tile [M, N]"),
        in("stationary", &I::stationary, "SBUF tile [K, M]"),
        in("moving", &I::moving, "SBUF tile [K, N]"),
        option("is_stationary_onezero", &I::is_stationary_onezero, "stationary holds ones and zeros only"),
        option("is_moving_onezero", &I::is_moving_onezero, "moving holds ones and zeros only"),
        option("is_transpose", &I::is_transpose, "a transpose by identity: bits are kept"),
        option("accumulate", &I::accumulate, "overwrite, add, or by the PSUM location"),
        option("tile_position", &I::tile_position, "row and column of the array tile"),
        option("tile_size", &I::tile_size, "rows and columns of the array tile"),
        option("perf_mode", &I::perf_mode, "double_row: fp8 with two contraction rows")};
  }
  int64_t depth() const { return moving.rows() * (perf_mode == PerfMode::kDoubleRow ? 2 : 1); }
  int64_t out_rows() const { return stationary.cols() / (perf_mode == PerfMode::kDoubleRow ? 2 : 1); }
  int64_t out_cols() const { return moving.cols() / (perf_mode == PerfMode::kDoubleRow ? 2 : 1); }
  Status check(const Rules& r);
  Status check_double_row(const Rules& r) const;
  Status check_indices() const;
  Status execute(Machine& m) const {
    return execute_matmul(m,
                          {&dst, &stationary, &moving, accumulate, perf_mode == PerfMode::kDoubleRow, exact_transpose});
  }
  Work work(const Rules&) const {
    Work w;
    w.engine = EngineId::kTensor;
    w.partitions = static_cast<double>(moving.rows());
    w.moving = w.elements = static_cast<double>(out_cols());
    w.stationary = static_cast<double>(out_rows());
    w.multiply_adds = static_cast<double>(depth() * out_rows() * out_cols());
    w.fp32_matmul = moving.dtype == DType::kFloat32;
    w.fp8_matmul = size_of(moving.dtype) == 1;
    w.double_row = perf_mode == PerfMode::kDoubleRow;
    w.is_transpose = is_transpose;
    w.passes = (is_stationary_onezero || is_moving_onezero) ? 0 : 1;  // 0: the one/zero hint applies
    w.dynamic =
        moving.kind != ViewKind::kStrided || stationary.kind != ViewKind::kStrided || dst.kind == ViewKind::kIndirect;
    return w;
  }
};

inline Status NcMatmul::check(const Rules& r) {
  auto broken = [](const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); };
  for (const View* v : {&stationary, &moving})
    if (v->memory != Memory::kSbuf)
      return broken("MM1", cat("'", v == &stationary ? "stationary" : "moving", "' is in ", name(v->memory),
                               "; both inputs of a matmul are in SBUF."));
  if (dst.memory != Memory::kPsum)
    return broken("MM2", cat("'dst' is in ", name(dst.memory), "; a matmul writes PSUM."));
  for (const auto& [v, what] :
       {std::pair(&dst, "dst"), std::pair(&stationary, "stationary"), std::pair(&moving, "moving")})
    STERNA_TRY(check_adjoining(r, *v, what));
  const auto& limits = r.chip->limits;
  if (moving.rows() > limits.partitions || stationary.rows() != moving.rows())
    return broken(
        "MM3", cat("The contraction dimension is ", stationary.rows(), " partitions of stationary and ", moving.rows(),
                   " of moving; both must be equal and at most ", int64_t{limits.partitions}, "."));
  if (out_rows() > limits.stationary_free)
    return broken("MM4",
                  cat("stationary has ", out_rows(), " columns, at most ", int64_t{limits.stationary_free}, " fit."));
  const int64_t most = size_of(dst.dtype) == 2 ? limits.moving_free_16bit : limits.moving_free;
  if (out_cols() > most) return broken("MM5", cat("moving has ", out_cols(), " columns, at most ", most, " fit."));
  if (dst.rows() != out_rows() || dst.cols() != out_cols())
    return broken("MM6", cat("dst ", shape_text(dst), " must have ", out_rows(), " partitions (columns of stationary ",
                             shape_text(stationary), ") of ", out_cols(), " elements (columns of moving ",
                             shape_text(moving), ")."));
  STERNA_TRY(check_matmul_types(stationary.dtype, moving.dtype, "MM7"));
  if (perf_mode == PerfMode::kDoubleRow) STERNA_TRY(check_double_row(r));
  if (!is_matmul_result(*r.chip, dst.dtype) && !(is_transpose && is_float(dst.dtype)))
    STERNA_TRY(r.compat("MM9", cat("dst is ", name(dst.dtype), "; matmul results in PSUM are float32",
                                   r.chip->features.psum_bfloat16 ? " or bfloat16." : " on this chip.")));
  STERNA_TRY(check_array_tile(r, {tile_position, tile_size, moving.rows(), out_rows(), false}));
  STERNA_TRY(check_indices());
  // The stationary operand is the data, the moving one the identity.
  exact_transpose = is_transpose && r.chip->features.exact_transpose && perf_mode != PerfMode::kDoubleRow &&
                    out_cols() == moving.rows() && dst.dtype == stationary.dtype;
  if (is_transpose && r.chip->features.exact_transpose && dst.dtype != stationary.dtype)
    STERNA_TRY(r.compat("MM12", cat("A transpose gives dst the type of its data, ", name(stationary.dtype), "; dst is ",
                                    name(dst.dtype), ", so the product is computed and rounded.")));
  return {};
}

inline Status NcMatmul::check_indices() const {
  auto broken = [](std::string text) { return Fault(FaultKind::kRuleBroken, "TI8", std::move(text)); };
  for (const View* v : {&stationary, &moving})
    if (v->kind == ViewKind::kIndirect && v->dtype != DType::kFloat16 && v->dtype != DType::kBFloat16 &&
        !is_double_row_type(v->dtype))
      return broken(cat("'", v == &moving ? "moving" : "stationary", "' is ", name(v->dtype),
                        "; with .indirect() it is float16, bfloat16, float8_e4m3, float8_e4m3fn or float8_e5m2."));
  if (is_transpose && moving.kind == ViewKind::kIndirect)
    return broken("'moving' of a transpose takes no view with .indirect(); gather the stationary operand.");
  return check_indices_of_whole_array(tile_position, {&dst, &stationary, &moving});
}

inline Status NcMatmul::check_double_row(const Rules& r) const {
  if (r.chip->tensor.double_row <= 1.0)
    return Fault(FaultKind::kNotOnThisChip, "MM8", "perf_mode double_row does not exist on this chip.");
  auto broken = [](std::string text) { return Fault(FaultKind::kRuleBroken, "MM8", std::move(text)); };
  if (!is_double_row_type(stationary.dtype) || !is_double_row_type(moving.dtype))
    return broken(cat("double_row takes float8_e4m3, float8_e4m3fn and float8_e5m2; stationary is ",
                      name(stationary.dtype), ", moving ", name(moving.dtype), "."));
  auto two_rows = [](const View& v) { return v.ndim >= 3 && v.dims[1].count == 2; };
  if (stationary.cols() % 2 != 0 || moving.cols() % 2 != 0)
    return broken("double_row needs operands of shapes [K, 2, M] and [K, 2, N].");
  if (is_transpose) return broken("double_row does not go with is_transpose.");
  if (tile_size.n == 2 && tile_size.value[1] != r.chip->tensor.columns)
    return broken("double_row does not go with column tiles of the array.");
  if (two_rows(stationary) && two_rows(moving)) return {};
  return r.compat("MM8",
                  cat("double_row is documented for operands of shapes [K, 2, M] and [K, 2, N]; stationary ",
                      shape_text(stationary), " and moving ", shape_text(moving), " are taken as their halves."));
}

/// dst[n, p] = data[p, n], all free axes flattened.
///
/// Shapes  data [P, N]; dst [N, P]; tensor engine: up to 128 x 128, SBUF to PSUM; vector engine: up to 32 x 32 blocks
/// Types   bits are kept when dst has data's type
/// Rules   TR1 (shapes) TR2 (tensor engine buffers) TR3 (vector engine size) TR4 (types) ENG1
/// Source  nki.isa.nc_transpose (SDK 2.32); engine unknown: tensor when dst is in PSUM, else vector
struct NcTranspose {
  static constexpr Info info{"nc_transpose", 0x61, "dst = data^T", "nki.isa.nc_transpose"};
  View dst, data;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = NcTranspose;
    return std::tuple{out("dst", &I::dst, "result tile [N, P]"), in("data", &I::data, "input tile [P, N]"),
                      option("engine", &I::engine, "tensor or vector")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_moved_tile(r, data, "data"));
    STERNA_TRY(check_packed_move(dst, data));
    if (dst.rows() != data.cols() || dst.cols() != data.rows())
      return Fault(FaultKind::kRuleBroken, "TR1",
                   cat("dst ", shape_text(dst), " is not the transpose of data ", shape_text(data), "."));
    if (dst.dtype != data.dtype)
      STERNA_TRY(r.compat("TR4", cat("By the documents the result of nc_transpose has the type of its input: dst is ",
                                     name(dst.dtype), ", data ", name(data.dtype), ".")));
    // The tensor engine where it can be, else the vector engine, which reads and writes either memory.
    const bool by_tensor = dst.memory == Memory::kPsum && data.memory == Memory::kSbuf;
    if (engine == EngineId::kUnknown) engine = by_tensor ? EngineId::kTensor : EngineId::kVector;
    STERNA_TRY(check_engine(r, engine, {EngineId::kTensor, EngineId::kVector}, {}));
    if (engine == EngineId::kTensor && !by_tensor)
      return Fault(FaultKind::kRuleBroken, "TR2", "A transpose on the tensor engine reads SBUF and writes PSUM.");
    const int64_t side = r.chip->limits.vector_transpose;
    if (engine == EngineId::kVector && (data.rows() > side || data.cols() > side))
      return r.compat("TR3", cat("A transpose on the vector engine is at most ", side, " x ", side, ", data is ",
                                 shape_text(data), "."));
    return {};
  }
  Status execute(Machine& m) const { return execute_transpose(m, dst, data, engine == EngineId::kTensor); }
  Work work(const Rules& r) const {
    Work w = count_elements(r, engine, {&dst, &data});
    w.elements = static_cast<double>(data.cols());
    w.partitions = static_cast<double>(data.rows());
    w.moving = static_cast<double>(data.rows());
    w.stationary = static_cast<double>(data.cols());
    w.fp32_matmul = size_of(data.dtype) == 4;
    w.is_transpose = true;
    return w;
  }
};

using Dense = InstructionList<NcMatmul, NcTranspose>;
using Instructions = Joined<Dense, BlockScaled, StructuredSparse>;

}  // namespace sterna::tensor_engine
