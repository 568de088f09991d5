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

/// TI8: "in MX format the data bytes and scale exponents form a single logical tensor" (nki.isa.nc_matmul_mx).
Status check_one_index(const Rules& r, const View& data, const View& scales, const char* what) {
  const bool one = data.kind == ViewKind::kIndirect, other = scales.kind == ViewKind::kIndirect;
  if (!one && !other) return {};
  if (one && other && (*r.dynamics)[data.dynamic].index == (*r.dynamics)[scales.dynamic].index) return {};
  return broken("TI8", cat("'", what, "' and '", what,
                           "_scale' are one tensor in MX format: both take .indirect() with the same index, or none."));
}

/// Data and scales of one operand, opened.
struct MxOperand {
  Operand data;
  std::array<Operand, kMaxPartitions / kQuadrant> scales;  // by quadrant
  std::vector<std::byte> gathered;                         // scales found by an index, in the order of the data
};

/// The scales of all quadrants, column by column as the index finds them.
Status gather_scales(Machine& m, const View& scales, const char* what, int64_t quadrants, MxOperand& out) {
  std::vector<int64_t> places;
  STERNA_TRY(m.read_columns(scales, what, places));
  const int64_t cols = scales.cols();
  out.gathered.resize(static_cast<size_t>(quadrants * kScaleRows * cols));
  for (int64_t q = 0; q < quadrants; ++q) {
    View column = quadrant_scales(scales, q);
    column.kind = ViewKind::kStrided;
    column.dims[1] = {1, 1};
    std::byte* const to = out.gathered.data() + q * kScaleRows * cols;
    for (int64_t c = 0; c < cols; ++c) {
      column.offset = scales.offset + places[static_cast<size_t>(q * cols + c)];
      STERNA_ASSIGN(const Operand from, m.read(column, what));
      for (int64_t r = 0; r < kScaleRows; ++r) to[r * cols + c] = *from.row(r);
    }
    Operand& o = out.scales[static_cast<size_t>(q)];
    o.base = to;
    o.dtype = scales.dtype;
    o.rows = kScaleRows;
    o.cols = o.row_pitch = cols;
    o.unit = true;
  }
  return {};
}

Status open_mx(Machine& m, const View& data, const char* what, const View& scales, const char* what_scales,
               MxOperand& out) {
  STERNA_ASSIGN(out.data, m.read(data, what));
  const int64_t quadrants = data.rows() / kQuadrant;
  if (scales.kind == ViewKind::kIndirect) return gather_scales(m, scales, what_scales, quadrants, out);
  for (int64_t q = 0; q < quadrants; ++q) {
    STERNA_ASSIGN(out.scales[static_cast<size_t>(q)], m.read(quadrant_scales(scales, q), what_scales));
  }
  return {};
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
  STERNA_TRY(check_one_index(r, stationary, stationary_scale, "stationary"));
  STERNA_TRY(check_one_index(r, moving, moving_scale, "moving"));
  if (stationary.rows() != moving.rows())
    return broken("MX2", cat("stationary ", shape_text(stationary), " and moving ", shape_text(moving),
                             " must have the same partitions."));
  if (dst.memory != Memory::kPsum || (dst.dtype != DType::kFloat32 && dst.dtype != DType::kBFloat16))
    return broken("MX8", cat("'dst' is a ", name(dst.dtype), " tile in ", name(dst.memory),
                             "; nc_matmul_mx writes float32 or bfloat16 in PSUM."));
  STERNA_TRY(check_adjoining(r, dst, "dst"));
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
  STERNA_TRY(check_indices_of_whole_array(tile_position, {&dst, &stationary, &moving}));
  return check_array_tile(r, {tile_position, tile_size, moving.rows(), stationary.cols(), true});
}

Status NcMatmulMx::execute(Machine& m) const {
  MxOperand s, v;
  STERNA_TRY(open_mx(m, stationary, "stationary", stationary_scale, "stationary_scale", s));
  STERNA_TRY(open_mx(m, moving, "moving", moving_scale, "moving_scale", v));
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
