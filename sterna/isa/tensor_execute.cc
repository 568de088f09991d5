// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor_execute.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "sterna/base/text.h"
#include "sterna/isa/tensor_product.h"
#include "sterna/machine/rows.h"
#include "sterna/numerics/convert.h"
#include "sterna/numerics/matmul.h"

namespace sterna {
namespace {

/// The rows of an operand as the product kernel takes them; operands with several strided free dims are gathered first.
OperandRows rows_of(const Operand& o, int64_t first_col, int64_t cols, std::vector<float>& gathered) {
  const int64_t size = size_of(o.dtype);
  if (o.row_offsets == nullptr && o.unit) return {o.dtype, o.base + first_col * size, o.row_pitch, size};
  if (o.row_offsets == nullptr && o.nfree == 1)
    return {o.dtype, o.base + first_col * o.free[0].stride, o.row_pitch, o.free[0].stride};
  gathered.resize(static_cast<size_t>(o.rows * cols));
  for (int64_t r = 0; r < o.rows; ++r) load_row(o, r, first_col, cols, gathered.data() + r * cols);
  return {DType::kFloat32, gathered.data(), cols * 4, 4};
}

/// Packs the blocks or panels [begin, end) of one operand. Double row: columns [0, n) are contraction row 2k, [n, 2n)
/// row 2k + 1.
void pack(const Operand& o, bool moving, bool double_row, BlockRange range, float* out) {
  const int64_t halves = double_row ? 2 : 1;
  const int64_t cols = o.cols / halves;
  for (int64_t half = 0; half < halves; ++half) {
    std::vector<float> gathered;
    const OperandRows source = rows_of(o, half * cols, cols, gathered);
    const DepthSlots slots{o.rows * halves, half, halves};
    if (moving)
      pack_moving(source, o.rows, cols, slots, range, out);
    else
      pack_stationary(source, o.rows, cols, slots, range, out);
  }
}

/// Ones where row and column are equal, zeros elsewhere.
bool is_identity(const Operand& o) {
  if (o.rows != o.cols) return false;
  std::vector<float> row(static_cast<size_t>(o.cols));
  for (int64_t r = 0; r < o.rows; ++r) {
    load_row(o, r, 0, o.cols, row.data());
    for (int64_t c = 0; c < o.cols; ++c)
      if (row[static_cast<size_t>(c)] != (r == c ? 1.0f : 0.0f)) return false;
  }
  return true;
}

/// A product with few columns, by way of its transpose (is_narrow).
void multiply_narrow(Machine& m, const MatmulOperands& x, const Operand& stationary, const Operand& moving,
                     const Operand& d, Accumulation how, ProductSize size) {
  bool fresh;
  const PackedOperand& few =
      m.packed(*x.moving, false, false, static_cast<size_t>(packed_stationary_floats(size.depth, size.cols)), &fresh);
  if (!fresh) pack(moving, false, false, {0, stationary_blocks(size.cols)}, few.data());
  std::vector<float> sums(static_cast<size_t>(size.rows * size.cols));
  const Block turned{sums.data(), size.rows};
  PackedProduct product{few.data(), nullptr, turned, size.depth, size.cols, size.rows, Accumulate::kOverwrite};
  std::vector<float> scratch;
  if (stationary.unit && stationary.row_offsets == nullptr &&
      reads_unpacked(rows_of(stationary, 0, size.rows, scratch))) {
    const OperandRows rows = rows_of(stationary, 0, size.rows, scratch);
    if (size.rows % kMovingPanel != 0) scratch.resize(static_cast<size_t>(packed_moving_floats(size.depth, 1)));
    matmul_unpacked(product, rows, scratch.data());
  } else {
    const PackedOperand& many =
        m.packed(*x.stationary, true, false, static_cast<size_t>(packed_moving_floats(size.depth, size.rows)), &fresh);
    const BlockRange panels{0, moving_panels(size.rows)};
    if (!fresh) pack(stationary, true, false, panels, many.data());
    product.moving = many.data();
    matmul_packed(product, {0, stationary_blocks(size.cols)}, panels);
  }
  if (d.direct() && !how.one_by_one()) {
    put_turned(sums.data(), {reinterpret_cast<float*>(d.base), d.row_pitch / 4}, size.rows, size.cols, how.mode);
    return m.mark_matmul_result(*x.dst);
  }
  std::vector<float> result(sums.size());
  put_turned(sums.data(), {result.data(), size.cols}, size.rows, size.cols, Accumulate::kOverwrite);
  put_product(m, *x.dst, d, how, result);
}

}  // namespace

Result<Accumulation> find_accumulation(Machine& m, const View& dst, AccumulateFlag flag) {
  Accumulation how;
  how.scattered = dst.kind == ViewKind::kIndirect;
  if (flag == AccumulateFlag::kOverwrite) return how;
  const bool by_matmul = m.by_matmul(dst, &how.mixed);
  if (flag == AccumulateFlag::kAuto) {
    how.mixed = how.mixed || how.scattered;  // what one column wrote, the next may add to
    if (by_matmul) how.mode = Accumulate::kAdd;
    return how;
  }
  if (!by_matmul)
    m.warn("MM10",
           "accumulate=True adds to PSUM data that no matmul wrote; on hardware of generation 2 and 3 the result "
           "is undefined.");
  STERNA_ASSIGN(Operand old, m.read(dst, "dst"));
  (void)old;
  return Accumulation{Accumulate::kAdd, false, how.scattered};
}

namespace {

/// Element (row, col) of dst as a view of its own.
View element_of(const View& view, const Operand& d, int64_t row, int64_t col) {
  View one = view;
  one.partition = static_cast<int32_t>(view.partition + row * view.dims[0].stride);
  if (d.col_offsets != nullptr) {
    one.kind = ViewKind::kStrided;
    one.offset += d.col_offsets[row / d.group_rows * d.cols + col] / size_of(d.dtype);
  } else {
    for (int k = view.ndim - 1; k >= 1; --k) {
      one.offset += (col % view.dims[k].count) * view.dims[k].stride;
      col /= view.dims[k].count;
    }
  }
  one.ndim = 2;
  one.dims[0] = one.dims[1] = {1, 1};
  return one;
}

}  // namespace

void merge_elements(Machine& m, const View& view, const Operand& d, Accumulation how,
                    const std::vector<float>& product) {
  for (int64_t c = 0; c < d.cols; ++c)
    for (int64_t r = 0; r < d.rows; ++r) {
      const View one = element_of(view, d, r, c);
      bool some = false;
      float value = product[static_cast<size_t>(r * d.cols + c)];
      if (how.mixed ? m.by_matmul(one, &some) : how.mode == Accumulate::kAdd) {
        float old;
        load_row(d, r, c, 1, &old);
        value = alu(AluOp::kAdd, old, value);
      }
      store_row(d, r, c, 1, &value);
      if (how.scattered) m.mark_matmul_result(one);
    }
}

void put_product(Machine& m, const View& dst, const Operand& d, Accumulation how, std::vector<float>& product) {
  if (how.one_by_one()) {
    merge_elements(m, dst, d, how, product);
  } else {
    std::vector<float> old(static_cast<size_t>(d.cols));
    for (int64_t r = 0; r < d.rows; ++r) {
      float* const row = product.data() + r * d.cols;
      if (how.mode == Accumulate::kAdd) {
        load_row(d, r, 0, d.cols, old.data());
        alu_block(AluOp::kAdd, {old.data(), d.cols}, {row, d.cols}, {row, d.cols}, 1, d.cols);
      }
      store_row(d, r, 0, d.cols, row);
    }
  }
  m.mark_matmul_result(dst);
}

namespace {

/// Whether an index finds no column twice, in any row of dst.
bool columns_differ(const Operand& d) {
  std::vector<int64_t> columns(static_cast<size_t>(d.cols));
  for (int64_t first = 0; first < d.rows; first += d.group_rows) {
    const auto* begin = d.col_offsets + first / d.group_rows * d.cols;
    std::copy(begin, begin + d.cols, columns.begin());
    std::sort(columns.begin(), columns.end());
    if (std::adjacent_find(columns.begin(), columns.end()) != columns.end()) return false;
  }
  return true;
}

/// Whether no element is added to: none of dst was written by a matmul, nor will be by an earlier column.
bool only_overwrites(Machine& m, const MatmulOperands& x, const Operand& d, Accumulation how) {
  if (how.mode != Accumulate::kOverwrite) return false;
  if (!how.mixed) return true;
  bool some = false;
  return how.scattered && !m.by_matmul(*x.dst, &some) && !some && columns_differ(d);
}

/// The transpose that moves data. Adding is arithmetic, so bits are kept only where it overwrites.
Status transpose_into(Machine& m, const MatmulOperands& x, const Operand& data, Accumulation how) {
  STERNA_ASSIGN(const Operand d, m.open(*x.dst, "dst"));
  if (only_overwrites(m, x, d, how)) return execute_transpose(m, *x.dst, *x.stationary, true);
  std::vector<float> row(static_cast<size_t>(data.cols)), moved(static_cast<size_t>(data.rows * data.cols));
  for (int64_t r = 0; r < data.rows; ++r) {
    load_row(data, r, 0, data.cols, row.data());
    for (int64_t c = 0; c < data.cols; ++c) moved[static_cast<size_t>(c * data.rows + r)] = row[static_cast<size_t>(c)];
  }
  put_product(m, *x.dst, d, how, moved);
  return {};
}

}  // namespace

Status execute_matmul(Machine& m, const MatmulOperands& x) {
  STERNA_ASSIGN(Operand stationary, m.read(*x.stationary, "stationary"));
  STERNA_ASSIGN(Operand moving, m.read(*x.moving, "moving"));
  const int64_t halves = x.double_row ? 2 : 1;
  const ProductSize size{moving.rows * halves, stationary.cols / halves, moving.cols / halves};
  STERNA_ASSIGN(const Accumulation how, find_accumulation(m, *x.dst, x.accumulate));
  if (x.exact_transpose) {
    if (is_identity(moving)) return transpose_into(m, x, stationary, how);
    m.warn("MM11", "is_transpose is set, but 'moving' is not the identity; the product is computed.");
  }
  STERNA_ASSIGN(Operand d, m.open(*x.dst, "dst"));
  if (!x.double_row && is_narrow(size.rows, size.cols)) {
    multiply_narrow(m, x, stationary, moving, d, how, size);
    return {};
  }
  bool fresh_s, fresh_m;
  const auto floats_s = static_cast<size_t>(packed_stationary_floats(size.depth, size.rows));
  const auto floats_m = static_cast<size_t>(packed_moving_floats(size.depth, size.cols));
  PackedOperand& ps = m.packed(*x.stationary, false, x.double_row, floats_s, &fresh_s);
  if (!fresh_s) pack(stationary, false, x.double_row, {0, stationary_blocks(size.rows)}, ps.data());
  PackedOperand& pm = m.packed(*x.moving, true, x.double_row, floats_m, &fresh_m);
  multiply_into(m, *x.dst, d, how, size, ps.data(), pm.data(), [&](ptrdiff_t begin, ptrdiff_t end) {
    if (!fresh_m) pack(moving, true, x.double_row, {begin, end}, pm.data());
  });
  return {};
}

Status execute_transpose(Machine& m, const View& dst, const View& data, bool by_tensor_engine) {
  STERNA_ASSIGN(Operand s, m.read(data, "data"));
  STERNA_ASSIGN(Operand d, m.open(dst, "dst"));
  const int size = size_of(s.dtype);
  if (s.dtype == d.dtype && s.unit && d.unit && s.row_offsets == nullptr && d.row_offsets == nullptr &&
      !overlaps_shifted(d, s) && d.base != s.base) {
    transpose_bytes(s.base, s.row_pitch, d.base, d.row_pitch, s.rows, s.cols, size);
  } else if (s.dtype == d.dtype) {
    std::vector<uint32_t> all(static_cast<size_t>(s.rows * s.cols)), column(static_cast<size_t>(s.rows));
    for (int64_t r = 0; r < s.rows; ++r) load_bits(s, r, 0, s.cols, all.data() + r * s.cols);
    for (int64_t c = 0; c < s.cols; ++c) {
      for (int64_t r = 0; r < s.rows; ++r) column[static_cast<size_t>(r)] = all[static_cast<size_t>(r * s.cols + c)];
      store_bits(d, c, 0, s.rows, column.data());
    }
  } else {
    std::vector<float> all(static_cast<size_t>(s.rows * s.cols)), column(static_cast<size_t>(s.rows));
    for (int64_t r = 0; r < s.rows; ++r) load_row(s, r, 0, s.cols, all.data() + r * s.cols);
    for (int64_t c = 0; c < s.cols; ++c) {
      for (int64_t r = 0; r < s.rows; ++r) column[static_cast<size_t>(r)] = all[static_cast<size_t>(r * s.cols + c)];
      store_row(d, c, 0, s.rows, column.data());
    }
  }
  if (by_tensor_engine)
    m.mark_matmul_result(dst);
  else
    m.mark_defined(dst);
  return {};
}

}  // namespace sterna
