// SPDX-License-Identifier: Apache-2.0
// What the tests of matmuls share: results in PSUM, and the product that they should be.
#pragma once

#include <cmath>

#include "sterna/isa/test_fixture.h"

namespace sterna {

class MatmulTest : public IsaTest {
 protected:
  View psum(const Shape& shape, DType dtype = kF32) { return make(shape, dtype, Memory::kPsum); }
  /// The product as design.md, section 3, defines it: fused, ascending, from zero.
  static Values product(const Values& stationary, const Values& moving, int64_t k, int64_t rows, int64_t cols) {
    Values out(static_cast<size_t>(rows * cols));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        float sum = 0;
        for (int64_t c = 0; c < k; ++c)
          sum = std::fma(stationary[static_cast<size_t>(c * rows + i)], moving[static_cast<size_t>(c * cols + j)], sum);
        out[static_cast<size_t>(i * cols + j)] = sum;
      }
    return out;
  }
};

}  // namespace sterna
