// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor_mx.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "sterna/isa/tensor_product.h"
#include "sterna/machine/rows.h"
#include "sterna/numerics/mx.h"

namespace sterna::tensor_engine {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

/// Data and scales of one operand, opened.
struct MxOperand {
  Operand data;
  std::array<Operand, kMaxPartitions / kQuadrant> scales;  // by quadrant
};

Result<MxOperand> open_mx(Machine& m, const View& data, const char* what, const View& scales, const char* what_scales) {
  MxOperand out;
  STERNA_ASSIGN(out.data, m.read(data, what));
  for (int64_t q = 0; q < data.rows() / kQuadrant; ++q) {
    STERNA_ASSIGN(out.scales[static_cast<size_t>(q)], m.read(quadrant_scales(scales, q), what_scales));
  }
  return out;
}

/// Columns [col, col + n) of a row as adjoining bytes: where they are, or gathered into `buffer`.
const void* adjoining(const Operand& o, int64_t row, int64_t col, int64_t n, std::byte* buffer) {
  if (o.unit) return o.row(row) + col * size_of(o.dtype);
  constexpr int64_t kWords = 64;
  uint32_t words[kWords];
  for (int64_t done = 0; done < n; done += kWords) {
    const int64_t count = std::min(kWords, n - done);
    load_bits(o, row, col + done, count, words);
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(buffer + (done + i) * size_of(o.dtype), &words[i], static_cast<size_t>(size_of(o.dtype)));
  }
  return buffer;
}

// Columns dequantised at a time: a multiple of both widths, small enough that 32 rows stay in the first-level cache.
constexpr int64_t kColumns = 96;
static_assert(kColumns % kStationaryBlock == 0 && kColumns % kMovingPanel == 0);

/// Packs the blocks or panels [begin, end) of an operand, dequantised; contraction place 4 p + j.
void pack_mx(const MxOperand& o, bool moving, int64_t begin, int64_t end, float* out) {
  const int64_t width = moving ? kMovingPanel : kStationaryBlock, depth = kX4 * o.data.rows;
  const int64_t last = std::min(end * width, o.data.cols);
  alignas(64) float dequantised[kMxBlock * kColumns];
  std::byte gathered[kMxRows + 1][kColumns * sizeof(uint32_t)];
  for (int64_t col = begin * width; col < last; col += kColumns) {
    const int64_t n = std::min(kColumns, last - col);
    float* const place = out + col * depth;  // groups are as wide as columns
    for (int64_t group = 0; group < o.data.rows / kMxRows; ++group) {
      const Operand& scales = o.scales[static_cast<size_t>(group / kScaleRows)];
      MxBlocks blocks{o.data.dtype, {}, nullptr};
      for (int64_t r = 0; r < kMxRows; ++r)
        blocks.rows[r] = adjoining(o.data, group * kMxRows + r, col, n, gathered[r]);
      blocks.scales = static_cast<const uint8_t*>(adjoining(scales, group % kScaleRows, col, n, gathered[kMxRows]));
      dequantize_blocks(blocks, dequantised, kColumns, n);
      const OperandRows rows{DType::kFloat32, dequantised, kColumns * ptrdiff_t{sizeof(float)}, sizeof(float)};
      const DepthSlots slots{depth, group * kMxBlock, 1};
      const BlockRange all{0, (n + width - 1) / width};
      if (moving)
        pack_moving(rows, kMxBlock, n, slots, all, place);
      else
        pack_stationary(rows, kMxBlock, n, slots, all, place);
    }
  }
}

}  // namespace

Status NcMatmulMx::check(const Rules& r) {
  STERNA_TRY(check_mx_data(r, stationary, "stationary"));
  STERNA_TRY(check_mx_data(r, moving, "moving"));
  for (const View* v : {&stationary, &moving})
    if (!is_packed(v->dtype))
      return broken("MX7", cat("'", v == &moving ? "moving" : "stationary", "' is ", name(v->dtype),
                               "; nc_matmul_mx takes float8_e4m3fn_x4, float8_e5m2_x4 and float4_e2m1fn_x4."));
  for (const View* v : {&stationary, &moving, &stationary_scale, &moving_scale})
    if (v->kind == ViewKind::kIndirect)
      return Fault(FaultKind::kNotImplemented, "MX11", "Indirect operands of nc_matmul_mx are not implemented.");
  if (stationary.rows() != moving.rows())
    return broken("MX2", cat("stationary ", shape_text(stationary), " and moving ", shape_text(moving),
                             " must have the same partitions."));
  if (dst.memory != Memory::kPsum || (dst.dtype != DType::kFloat32 && dst.dtype != DType::kBFloat16))
    return broken("MX8", cat("'dst' is a ", name(dst.dtype), " tile in ", name(dst.memory),
                             "; nc_matmul_mx writes float32 or bfloat16 in PSUM."));
  const auto& limits = r.chip->limits;
  if (stationary.cols() % 2 != 0 || stationary.cols() > limits.stationary_free)
    return broken("MX9", cat("stationary has ", stationary.cols(), " columns; their number is even and at most ",
                             int64_t{limits.stationary_free}, "."));
  const int64_t most = dst.dtype == DType::kBFloat16 ? limits.moving_free_16bit : limits.moving_free;
  if (moving.cols() > most)
    return broken("MX10", cat("moving has ", moving.cols(), " columns, at most ", most, " fit."));
  if (dst.rows() != stationary.cols() || dst.cols() != moving.cols())
    return broken("MX8", cat("dst ", shape_text(dst), " must have ", stationary.cols(),
                             " partitions (columns of stationary ", shape_text(stationary), ") of ", moving.cols(),
                             " elements (columns of moving ", shape_text(moving), ")."));
  STERNA_TRY(check_mx_scales(r, stationary_scale, stationary, "stationary_scale"));
  STERNA_TRY(check_mx_scales(r, moving_scale, moving, "moving_scale"));
  return check_array_tile(r, {tile_position, tile_size, moving.rows(), stationary.cols(), true});
}

Status NcMatmulMx::execute(Machine& m) const {
  STERNA_ASSIGN(const MxOperand s, open_mx(m, stationary, "stationary", stationary_scale, "stationary_scale"));
  STERNA_ASSIGN(const MxOperand v, open_mx(m, moving, "moving", moving_scale, "moving_scale"));
  const ProductSize size{kX4 * v.data.rows, s.data.cols, v.data.cols};
  STERNA_ASSIGN(const Accumulation how, find_accumulation(m, dst, accumulate));
  STERNA_ASSIGN(const Operand d, m.open(dst, "dst"));
  bool fresh_s, fresh_m;
  const auto floats_s = static_cast<size_t>(packed_stationary_floats(size.depth, size.rows));
  const auto floats_m = static_cast<size_t>(packed_moving_floats(size.depth, size.cols));
  const PackedOperand& ps = m.packed(stationary, false, false, floats_s, &fresh_s, &stationary_scale);
  if (!fresh_s) pack_mx(s, false, 0, stationary_blocks(size.rows), ps.data());
  const PackedOperand& pm = m.packed(moving, true, false, floats_m, &fresh_m, &moving_scale);
  multiply_into(m, dst, d, how, size, ps.data(), pm.data(), [&](ptrdiff_t begin, ptrdiff_t end) {
    if (!fresh_m) pack_mx(v, true, begin, end, pm.data());
  });
  return {};
}

}  // namespace sterna::tensor_engine
