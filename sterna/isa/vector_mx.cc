// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/vector_mx.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sterna/machine/rows.h"
#include "sterna/numerics/mx.h"

namespace sterna::vector_engine {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

constexpr int64_t kColumns = 128;  // x4 elements at a time

/// n elements that adjoin in `from` to columns [col, col + n) of a row.
template <class T>
void put(const Operand& o, int64_t row, int64_t col, int64_t n, const T* from) {
  uint32_t words[kColumns];
  std::copy_n(from, n, words);
  store_bits(o, row, col, n, words);
}

/// Blocks [begin, end) of 8 rows each.
void quantize_rows(const Operand& d, const Operand& s, const std::array<Operand, kMaxPartitions / kQuadrant>& scales,
                   MxScale how, int64_t begin, int64_t end) {
  float values[kMxRows][kX4 * kColumns];
  uint32_t words[kMxRows][kColumns];
  uint8_t scale[kColumns];
  const float* in[kMxRows];
  void* out[kMxRows];
  for (int64_t r = 0; r < kMxRows; ++r) in[r] = values[r], out[r] = words[r];
  for (int64_t group = begin; group < end; ++group)
    for (int64_t col = 0; col < d.cols; col += kColumns) {
      const int64_t n = std::min(kColumns, d.cols - col), row = group * kMxRows;
      for (int64_t r = 0; r < kMxRows; ++r) load_row(s, row + r, kX4 * col, kX4 * n, values[r]);
      quantize_blocks(d.dtype, in, how, n, out, scale);
      for (int64_t r = 0; r < kMxRows; ++r) put(d, row + r, col, n, words[r]);
      put(scales[static_cast<size_t>(group / kScaleRows)], group % kScaleRows, col, n, scale);
    }
}

}  // namespace

Status QuantizeMx::check(const Rules& r) {
  STERNA_TRY(check_mx_data(r, src, "src"));
  if (src.dtype != DType::kBFloat16 && src.dtype != DType::kFloat16)
    return broken("QMX1", cat("'src' is ", name(src.dtype), "; quantize_mx takes float16 or bfloat16."));
  if (src.cols() % kX4 != 0)
    return broken("QMX2", cat("'src' ", shape_text(src), " has ", src.cols(),
                              " elements in a partition; quantize_mx takes a multiple of 4."));
  STERNA_TRY(check_mx_data(r, dst, "dst"));
  if (dst.dtype != DType::kFloat8E4M3FNx4 && dst.dtype != DType::kFloat8E5M2x4)
    return broken("QMX3", cat("'dst' is ", name(dst.dtype),
                              "; quantize_mx gives float8_e4m3fn_x4 or float8_e5m2_x4 (fp4 is made before)."));
  if (dst.rows() != src.rows() || dst.cols() != src.cols() / kX4)
    return broken("QMX3", cat("'dst' ", shape_text(dst), " must have the partitions of src ", shape_text(src),
                              " and a quarter of its elements, ", src.cols() / kX4, "."));
  return check_mx_scales(r, dst_scale, dst, "dst_scale");
}

Status QuantizeMx::write_padding(Machine& m) const {
  for (int32_t row = 0; row < dst_scale.rows(); ++row) {
    if (row % kQuadrant < kScaleRows) continue;
    View one = dst_scale;
    one.partition += row;
    one.dims[0] = {1, 1};
    if (m.is_defined(one)) continue;
    STERNA_ASSIGN(const Operand o, m.write(one, "dst_scale"));
    const std::vector<uint32_t> zeros(static_cast<size_t>(o.cols), 0);
    store_bits(o, 0, 0, o.cols, zeros.data());
  }
  return {};
}

Status QuantizeMx::execute(Machine& m) const {
  STERNA_ASSIGN(Operand s, m.read(src, "src"));
  STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
  std::array<Operand, kMaxPartitions / kQuadrant> scales;
  for (int64_t q = 0; q < src.rows() / kQuadrant; ++q) {
    STERNA_ASSIGN(scales[static_cast<size_t>(q)], m.write(quadrant_scales(dst_scale, q), "dst_scale"));
  }
  // Everything is read before anything is written: dst is narrower than src, and its scales lie in other rows.
  std::array<Snapshot, 1> of_dst, of_scales;
  take_snapshots(m, of_dst, d, s);
  for (int64_t q = 0; q < src.rows() / kQuadrant; ++q) take_snapshots(m, of_scales, scales[static_cast<size_t>(q)], s);
  const MxScale how = ocp_scale ? MxScale::kOcp : MxScale::kDouble;
  over_rows(m, d.rows / kMxRows, s.cols * kMxRows,
            [&](int64_t begin, int64_t end) { quantize_rows(d, s, scales, how, begin, end); });
  return zero_padding ? write_padding(m) : Status{};
}

}  // namespace sterna::vector_engine
