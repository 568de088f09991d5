// SPDX-License-Identifier: Apache-2.0
// RowSums: a reduction over the free axes that arrives in pieces, with the bits of one pass.
#pragma once

#include <algorithm>
#include <vector>

#include "sterna/machine/rows.h"
#include "sterna/numerics/alu.h"

namespace sterna {

/// Order: element i joins partial i mod 16 in ascending order, then the tree 8, 4, 2, 1 (alu.h).
class RowSums {
 public:
  /// rows 0: nothing will be added, and nothing is allocated.
  RowSums(AluOp op, int64_t rows) : op_(op), rows_(rows) {
    if (rows > 0) partials_.assign(static_cast<size_t>(rows) * 16, reduction_identity(op));
  }
  /// Pieces of one row must come in ascending order; different rows may come from different threads.
  void add(ConstBlock block, const Piece& p) {
    reduce_block_state(op_, block, p.rows, p.cols, p.col, partials_.data() + p.row * 16);
  }
  /// The reduction of each row into out[row].
  void finish(float* out) const { reduce_finish(op_, partials_.data(), out, 1, rows_); }
  /// accumulator[row] = accumulator[row] op reduction of the row.
  void finish_into(float* accumulator) const {
    std::vector<float> result(static_cast<size_t>(rows_));
    finish(result.data());
    for (int64_t r = 0; r < rows_; ++r) accumulator[r] = alu(op_, accumulator[r], result[static_cast<size_t>(r)]);
  }

 private:
  AluOp op_;
  int64_t rows_;
  std::vector<float> partials_;
};

}  // namespace sterna
