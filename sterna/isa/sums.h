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
  /// `rows` rows (at most kMaxPartitions) of `cols` elements. rows 0: nothing will be added.
  RowSums(AluOp op, int64_t rows, int64_t cols) : op_(op), rows_(rows), whole_rows_(cols <= kPiece) {
    if (cols == 0) std::fill_n(results_, rows, reduction_identity(op));  // no piece will come
    if (rows > 0 && !whole_rows_)
      partials_.assign(static_cast<size_t>(rows) * kReductionPartials, reduction_identity(op));
  }
  /// Pieces of one row must come in ascending order; different rows may come from different threads.
  void add(ConstBlock block, const Piece& p) {
    if (whole_rows_)
      reduce_block(op_, block, results_ + p.row, 1, p.rows, p.cols);
    else
      reduce_block_state(op_, block, p.rows, p.cols, p.col, partials_.data() + p.row * kReductionPartials);
  }
  /// The reduction of each row.
  const float* finish() {
    if (!whole_rows_) reduce_finish(op_, partials_.data(), results_, 1, rows_);
    return results_;
  }
  /// accumulator[row] = accumulator[row] op reduction of the row.
  void finish_into(float* accumulator) {
    alu_block(op_, {accumulator, rows_}, {finish(), rows_}, {accumulator, rows_}, 1, rows_);
  }

 private:
  AluOp op_;
  int64_t rows_;
  bool whole_rows_;  // no row is cut into pieces
  float results_[kMaxPartitions];
  std::vector<float> partials_;
};

}  // namespace sterna
