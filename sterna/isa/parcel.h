// SPDX-License-Identifier: Apache-2.0
// A tile on its way from one core's memory to another's: a private copy of its bytes and of what is known of them.
#pragma once

#include <vector>

#include "sterna/machine/machine.h"
#include "sterna/machine/rows.h"

namespace sterna {

class Parcel {
 public:
  /// Copies the bytes of `view`, undefined ones too.
  Status pack(const View& view, Machine& machine, const char* what);
  /// Writes them to `view`, which has as many elements, in the same order.
  Status deliver(const View& view, Machine& machine, const char* what) const;

  int64_t rows() const { return tile_.rows; }
  int64_t cols() const { return tile_.cols; }
  DType dtype() const { return tile_.dtype; }

 private:
  Operand tile_;
  Snapshot bytes_;
  std::vector<ElementState> states_;  // empty: all defined
};

}  // namespace sterna
