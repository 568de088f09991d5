// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "sterna/base/text.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_test_values.h"

namespace sterna {
namespace {

void check(ptrdiff_t rows, ptrdiff_t cols, int size, ptrdiff_t in_gap, ptrdiff_t out_gap) {
  const ptrdiff_t in_pitch = cols * size + in_gap, out_pitch = rows * size + out_gap;
  std::vector<uint8_t> in(static_cast<size_t>(rows * in_pitch)), out(static_cast<size_t>(cols * out_pitch), 0xa5);
  std::mt19937 random(static_cast<uint32_t>(rows * 1000 + cols));
  for (uint8_t& byte : in) byte = static_cast<uint8_t>(random());
  std::vector<uint8_t> want = out;
  for (ptrdiff_t i = 0; i < rows; ++i)
    for (ptrdiff_t j = 0; j < cols; ++j)
      std::memcpy(want.data() + j * out_pitch + i * size, in.data() + i * in_pitch + j * size,
                  static_cast<size_t>(size));
  transpose_bytes(in.data(), in_pitch, out.data(), out_pitch, rows, cols, size);
  ASSERT_TRUE(out == want) << cat(rows, "x", cols, " of ", size, " bytes, gaps ", in_gap, " ", out_gap);
}

TEST(Transpose, EveryShapeUpTo35) {
  testing::on_every_target([] {
    for (const int size : {1, 2, 4})
      for (ptrdiff_t rows = 1; rows <= 35; ++rows)
        for (ptrdiff_t cols = 1; cols <= 35; ++cols) ASSERT_NO_FATAL_FAILURE(check(rows, cols, size, 0, 0));
  });
}

TEST(Transpose, LargeBlocksWithGaps) {
  testing::on_every_target([] {
    for (const int size : {1, 2, 4}) {
      ASSERT_NO_FATAL_FAILURE(check(128, 128, size, 0, 0));
      ASSERT_NO_FATAL_FAILURE(check(128, 128, size, 12, 36));
      ASSERT_NO_FATAL_FAILURE(check(127, 300, size, 3, 1));  // odd pitches: nothing is aligned
      ASSERT_NO_FATAL_FAILURE(check(300, 65, size, 0, 5));
      // Pitches of 512 bytes and its multiples go through squares, with and without rest.
      ASSERT_NO_FATAL_FAILURE(check(128, 512 / size, size, 0, 0));
      ASSERT_NO_FATAL_FAILURE(check(133, 1024 / size - 7, size, 7 * size, 3));
      ASSERT_NO_FATAL_FAILURE(check(512 / size, 71, size, 1, 512));
    }
  });
}

TEST(Transpose, NothingToDo) {
  testing::on_every_target([] {
    uint8_t out = 7;
    transpose_bytes(nullptr, 0, &out, 0, 0, 4, 1);
    transpose_bytes(nullptr, 0, &out, 0, 4, 0, 1);
    EXPECT_EQ(out, 7);
  });
}

}  // namespace
}  // namespace sterna
