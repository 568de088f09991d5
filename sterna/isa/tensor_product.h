// SPDX-License-Identifier: Apache-2.0
// What every product of the tensor engine does to PSUM, whatever the layout of its operands: one sum for each element,
// from zero, contraction index ascending, then overwritten or added once (design, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "sterna/isa/instruction.h"
#include "sterna/machine/rows.h"
#include "sterna/numerics/matmul.h"

namespace sterna {

/// What the accumulate argument means for the elements of one dst.
struct Accumulation {
  Accumulate mode = Accumulate::kOverwrite;
  bool mixed = false;  ///< accumulate=None where a matmul wrote some of them: those add, the others are overwritten
  /// Columns found by an index, of which two may be one place: each is written before the next, as the array gives
  /// them.
  bool scattered = false;
  bool one_by_one() const { return mixed || scattered; }
};
/// Warns MM10 where accumulate=True adds to what no matmul wrote.
Result<Accumulation> find_accumulation(Machine& m, const View& dst, AccumulateFlag flag);

/// PSUM where each element is looked at: only some were written by a matmul, or an index finds the columns.
void merge_elements(Machine& m, const View& view, const Operand& dst, Accumulation how,
                    const std::vector<float>& product);

/// dst (+)= a whole product, row-major.
void put_product(Machine& m, const View& dst, const Operand& d, Accumulation how, std::vector<float>& product);

struct ProductSize {
  int64_t depth, rows, cols;
};

/// Products above this many multiply-adds are worth splitting over threads.
inline constexpr int64_t kThreadedProduct = 1 << 19;

/// dst (+)= the product of packed operands; `d` is dst, opened before the operands were packed, since opening may
/// fault. `pack(begin, end)` packs these panels of the moving operand, which each thread does for its own panels just
/// before it uses them, so that they stay in its cache.
template <class Pack>
void multiply_into(Machine& m, const View& dst, const Operand& d, Accumulation how, ProductSize size,
                   const float* stationary, const float* moving, const Pack& pack) {
  std::vector<float> scratch;
  const bool direct = d.direct() && !how.one_by_one();
  Block out{reinterpret_cast<float*>(d.base), d.row_pitch / 4};
  if (!direct) {
    scratch.resize(static_cast<size_t>(size.rows * size.cols));
    out = {scratch.data(), size.cols};
    if (how.mode == Accumulate::kAdd && !how.one_by_one())
      for (int64_t r = 0; r < size.rows; ++r) load_row(d, r, 0, size.cols, scratch.data() + r * size.cols);
  }
  const PackedProduct product{
      stationary, moving, out, size.depth, size.rows, size.cols, how.one_by_one() ? Accumulate::kOverwrite : how.mode};
  const ptrdiff_t panels = moving_panels(size.cols), blocks = stationary_blocks(size.rows);
  auto part = [&](ptrdiff_t begin, ptrdiff_t end) {
    pack(begin, end);
    matmul_packed(product, {0, blocks}, {begin, end});
  };
  if (size.depth * size.rows * size.cols >= kThreadedProduct && m.pool().threads() > 1)
    m.pool().run_shares(panels, part);
  else
    part(0, panels);
  if (how.one_by_one())
    merge_elements(m, dst, d, how, scratch);
  else if (!direct)
    for (int64_t r = 0; r < size.rows; ++r) store_row(d, r, 0, size.cols, scratch.data() + r * size.cols);
  m.mark_matmul_result(dst);
}

}  // namespace sterna
