// SPDX-License-Identifier: Apache-2.0
// The remark on inputs outside an activation function's documented range.
#pragma once

#include <mutex>
#include <utility>

#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/numerics/functions.h"

namespace sterna::scalar_engine {

/// ACT3: the first input, row after row, that is outside a function's documented range. Pieces may come from any thread
/// in any order.
class RangeCheck {
 public:
  explicit RangeCheck(Function op) : op_(op), range_(documented_range(op)), limited_(range_.limited()) {}

  bool limited() const { return limited_; }
  void look(ConstBlock in, const Piece& p) {
    if (!limited_) return;
    for (int64_t r = 0; r < p.rows; ++r) {
      const float* row = in.data + r * in.pitch;
      uint32_t outside = 0;
      for (int64_t c = 0; c < p.cols; ++c) outside |= range_.excludes(row[c]);
      if (outside == 0) continue;
      const float* first = std::find_if(row, row + p.cols, [this](float x) { return range_.excludes(x); });
      return note(p.row + r, p.col + (first - row), *first);
    }
  }
  void warn(Machine& m) const {
    if (row_ == INT64_MAX) return;
    const std::string hole = range_.hole > 0 ? cat(", without what is nearer to 0 than ", range_.hole) : "";
    m.warn("ACT3", cat(name(op_), " is documented for inputs from ", range_.low, " to ", range_.high, hole,
                       "; the first outside is ", value_, " in partition ", row_,
                       ". The mathematical value is used; the chip's may differ."));
  }

 private:
  void note(int64_t row, int64_t col, float value) {
    const std::scoped_lock lock(mutex_);
    if (std::pair(row, col) >= std::pair(row_, col_)) return;
    row_ = row;
    col_ = col;
    value_ = value;
  }
  Function op_;
  FunctionRange range_;
  bool limited_;
  std::mutex mutex_;
  int64_t row_ = INT64_MAX, col_ = INT64_MAX;
  float value_ = 0;
};

}  // namespace sterna::scalar_engine
