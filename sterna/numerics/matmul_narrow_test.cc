// SPDX-License-Identifier: Apache-2.0
// Products of few columns, which are made as their transpose: the sums are those of the definition, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/dispatch.h"
#include "sterna/numerics/matmul.h"

namespace sterna {
namespace {

constexpr float kGap = -77.5f;

// `depth` rows of a format, a few bytes of something else between them, and what they are as fp32.
struct Operand {
  DType type;
  ptrdiff_t pitch;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  ptrdiff_t count;

  Operand(DType t, ptrdiff_t depth, ptrdiff_t n, std::mt19937& generator)
      : type(t), pitch(n * size_of(t) + 12), bytes(static_cast<size_t>(depth * pitch)), count(n) {
    static constexpr float kSpecial[] = {INFINITY, -0.0f, NAN, 1e-40f, 3e38f};
    std::normal_distribution<float> normal;
    for (ptrdiff_t k = 0; k < depth; ++k)
      for (ptrdiff_t i = 0; i < n; ++i) {
        std::byte* at = &bytes[static_cast<size_t>(k * pitch + i * size_of(t))];
        const bool special = generator() % 64 == 0;
        from_float(t, special ? kSpecial[generator() % std::size(kSpecial)] : normal(generator), at);
        values.push_back(to_float(t, at));
      }
  }
  OperandRows rows() const { return {type, bytes.data(), pitch, size_of(type)}; }
  float at(ptrdiff_t k, ptrdiff_t i) const { return values[static_cast<size_t>(k * count + i)]; }
};

// Design, section 3: from zero, contraction index ascending, fused, then added once; NaN is 7fc00000.
float expected_element(const Operand& s, const Operand& m, ptrdiff_t depth, ptrdiff_t row, ptrdiff_t col, float old,
                       Accumulate accumulate) {
  float sum = 0;
  for (ptrdiff_t k = 0; k < depth; ++k) sum = std::fma(s.at(k, row), m.at(k, col), sum);
  if (accumulate == Accumulate::kAdd) sum = old + sum;
  return std::isnan(sum) ? std::bit_cast<float>(0x7fc00000u) : sum;
}

void expect_product(DType type, ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols, std::mt19937& generator) {
  const Operand s(type, depth, rows, generator), m(type, depth, cols, generator);
  ASSERT_TRUE(is_narrow(rows, cols));
  std::vector<float> few(static_cast<size_t>(packed_stationary_floats(depth, cols)), NAN);
  pack_stationary(m.rows(), depth, cols, whole_depth(depth), {0, 1}, few.data());
  std::vector<float> sums(static_cast<size_t>(rows * cols) + 1, kGap);
  PackedProduct turned{few.data(), nullptr, {sums.data(), rows}, depth, cols, rows, Accumulate::kOverwrite};
  if (reads_unpacked(s.rows())) {
    std::vector<float> scratch(static_cast<size_t>(packed_moving_floats(depth, 1)), NAN);
    matmul_unpacked(turned, s.rows(), scratch.data());
  } else {
    std::vector<float> many(static_cast<size_t>(packed_moving_floats(depth, rows)), NAN);
    pack_moving(s.rows(), depth, rows, whole_depth(depth), {0, moving_panels(rows)}, many.data());
    turned.moving = many.data();
    matmul_packed(turned, {0, 1}, {0, moving_panels(rows)});
  }
  ASSERT_EQ(sums.back(), kGap) << "written past the end";
  const ptrdiff_t pitch = cols + 3;
  for (const Accumulate accumulate : {Accumulate::kOverwrite, Accumulate::kAdd}) {
    std::vector<float> d(static_cast<size_t>(rows * pitch), kGap);
    put_turned(sums.data(), {d.data(), pitch}, rows, cols, accumulate);
    for (ptrdiff_t row = 0; row < rows; ++row)
      for (ptrdiff_t col = 0; col < pitch; ++col) {
        const float value = col < cols ? expected_element(s, m, depth, row, col, kGap, accumulate) : kGap;
        ASSERT_EQ(std::bit_cast<uint32_t>(d[static_cast<size_t>(row * pitch + col)]), std::bit_cast<uint32_t>(value))
            << name(type) << " depth " << depth << ", " << rows << " x " << cols << ", element " << row << ' ' << col;
      }
  }
}

TEST(NarrowMatmul, IsTheSameProductOnEveryTarget) {
  const SimdTarget before = simd_target();
  for (const SimdTarget target : simd_targets()) {
    ASSERT_TRUE(static_cast<bool>(set_simd_target(target)));
    std::mt19937 generator(3);
    for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat8E4M3FN})
      for (const ptrdiff_t depth : {1, 5, 128})
        for (const ptrdiff_t rows : {32, 33, 64, 127, 128})
          for (const ptrdiff_t cols : {1, 3, 4, 5, 8, 11, 12}) {
            expect_product(type, depth, rows, cols, generator);
            if (testing::Test::HasFatalFailure()) break;
          }
  }
  static_cast<void>(set_simd_target(before));
}

}  // namespace
}  // namespace sterna
