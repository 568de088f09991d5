// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/dispatch.h"

namespace sterna {
namespace {

constexpr uint32_t kNaN = 0x7fc00000u;

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t x) { return std::bit_cast<float>(x); }

// A matrix with a pitch, and a mark in the gaps that must stay.
struct Matrix {
  ptrdiff_t rows, cols, pitch;
  std::vector<float> data;

  Matrix(ptrdiff_t r, ptrdiff_t c, ptrdiff_t p)
      : rows(r), cols(c), pitch(p), data(static_cast<size_t>(r * p + 1), kGap) {}
  float& at(ptrdiff_t r, ptrdiff_t c) { return data[static_cast<size_t>(r * pitch + c)]; }
  float at(ptrdiff_t r, ptrdiff_t c) const { return data[static_cast<size_t>(r * pitch + c)]; }
  Block block() { return {data.data(), pitch}; }
  ConstBlock block() const { return {data.data(), pitch}; }

  static constexpr float kGap = -77.5f;
};

// Usual numbers, and with `special` now and then a value that only the right order and the right fusing get right.
class Source {
 public:
  explicit Source(bool special) : special_(special) {}
  float next() {
    static constexpr uint32_t kSpecial[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0x7f800000, 0xff800000,
                                            0x80000000, 0x00000000, 0x00000001, 0x80000001, 0x007fffff,
                                            0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000};
    if (special_ && generator_() % 8 == 0) return from_bits(kSpecial[generator_() % std::size(kSpecial)]);
    if (special_ && generator_() % 8 == 0) return std::ldexp(normal_(generator_), -140);
    return normal_(generator_);
  }
  void fill(Matrix& m) {
    for (ptrdiff_t r = 0; r < m.rows; ++r)
      for (ptrdiff_t c = 0; c < m.cols; ++c) m.at(r, c) = next();
  }

 private:
  bool special_;
  std::mt19937 generator_{12345};
  std::normal_distribution<float> normal_;
};

// The order as the design states it, section 3.
Matrix expected_product(const Matrix& stationary, const Matrix& moving, const Matrix& d, Accumulate accumulate) {
  Matrix out = d;
  for (ptrdiff_t m = 0; m < d.rows; ++m) {
    for (ptrdiff_t n = 0; n < d.cols; ++n) {
      float sum = 0.0f;
      for (ptrdiff_t k = 0; k < stationary.rows; ++k) sum = std::fma(stationary.at(k, m), moving.at(k, n), sum);
      if (accumulate == Accumulate::kAdd) sum = d.at(m, n) + sum;
      out.at(m, n) = std::isnan(sum) ? from_bits(kNaN) : sum;
    }
  }
  return out;
}

void expect_same_bits(const Matrix& actual, const Matrix& expected, const std::string& what) {
  for (size_t i = 0; i < expected.data.size(); ++i) {
    ASSERT_EQ(bits(actual.data[i]), bits(expected.data[i]))
        << what << ", element " << i << " (row " << static_cast<ptrdiff_t>(i) / expected.pitch
        << "): " << actual.data[i] << " for " << expected.data[i];
  }
}

Matrix product(const Matrix& stationary, const Matrix& moving, const Matrix& d, Accumulate accumulate) {
  Matrix out = d;
  std::vector<float> scratch(static_cast<size_t>(matmul_scratch_floats(stationary.rows, d.rows, d.cols)));
  matmul_block(stationary.block(), moving.block(), out.block(), stationary.rows, d.rows, d.cols, accumulate,
               scratch.data());
  return out;
}

std::string describe(SimdTarget target, ptrdiff_t depth, const Matrix& d, Accumulate accumulate) {
  return std::string(name(target)) + " depth " + std::to_string(depth) + " rows " + std::to_string(d.rows) + " cols " +
         std::to_string(d.cols) + (accumulate == Accumulate::kAdd ? " add" : " overwrite");
}

// Runs each test on every target this processor has, and puts the choice back.
class Matmul : public testing::Test {
 protected:
  ~Matmul() override { static_cast<void>(set_simd_target(before_)); }

  template <class Body>
  void on_every_target(Body body) {
    for (const SimdTarget target : simd_targets()) {
      ASSERT_TRUE(static_cast<bool>(set_simd_target(target)));
      body(target);
      if (HasFatalFailure()) return;
    }
  }

  void expect_product(ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t extra_pitch, Source& source) {
    Matrix stationary(depth, rows, rows + extra_pitch), moving(depth, cols, cols + extra_pitch),
        d(rows, cols, cols + extra_pitch);
    source.fill(stationary);
    source.fill(moving);
    source.fill(d);
    for (const Accumulate accumulate : {Accumulate::kOverwrite, Accumulate::kAdd}) {
      const Matrix expected = expected_product(stationary, moving, d, accumulate);
      on_every_target([&](SimdTarget target) {
        expect_same_bits(product(stationary, moving, d, accumulate), expected, describe(target, depth, d, accumulate));
      });
      if (HasFatalFailure()) return;
    }
  }

 private:
  SimdTarget before_ = simd_target();
};

TEST_F(Matmul, OddShapes) {
  Source source(false);
  for (const ptrdiff_t depth : {0, 1, 2, 3, 130}) {
    for (ptrdiff_t rows = 1; rows <= 17; ++rows) {
      for (ptrdiff_t cols = 1; cols <= 70; cols += cols < 18 || cols > 60 ? 1 : 3) {
        expect_product(depth, rows, cols, 0, source);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Matmul, SpecialValues) {
  Source source(true);
  for (const ptrdiff_t depth : {1, 2, 3, 17, 128}) {
    for (const ptrdiff_t rows : {1, 4, 5, 8, 12, 13, 30}) {
      for (const ptrdiff_t cols : {1, 7, 16, 33, 64, 95}) {
        expect_product(depth, rows, cols, 5, source);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Matmul, FullTilesAndPitches) {
  Source source(true);
  for (const ptrdiff_t depth : {128, 256}) expect_product(depth, 128, 512, 0, source);
  expect_product(128, 128, 500, 1548, source);
  expect_product(128, 100, 512, 1536, source);
  expect_product(3, 128, 1100, 1, source);
  expect_product(700, 20, 40, 0, source);
}

// Each of these differs from the definition if products were rounded, sums split, the order reversed or d added first.
TEST_F(Matmul, OrderIsVisible) {
  const float big = 16777216.0f;  // 2^24: adding 1 to it is lost
  Matrix stationary(4, 1, 1), moving(4, 1, 1), d(1, 1, 1);
  for (ptrdiff_t k = 0; k < 4; ++k) moving.at(k, 0) = 1.0f;
  const float column[] = {1.0f, big, 1.0f, -big};  // ((1 + big) + 1) - big: 1 + big rounds to big, twice
  for (ptrdiff_t k = 0; k < 4; ++k) stationary.at(k, 0) = column[k];
  d.at(0, 0) = 0.25f;
  on_every_target([&](SimdTarget target) {
    EXPECT_EQ(product(stationary, moving, d, Accumulate::kAdd).at(0, 0), 0.25f) << name(target);
  });
  // Fused: (1 + 2^-12)^2 - (1 + 2^-11) keeps 2^-24, which a rounded product loses.
  Matrix a(2, 1, 1), b(2, 1, 1);
  a.at(0, 0) = -(1.0f + std::ldexp(1.0f, -11));
  b.at(0, 0) = 1.0f;
  a.at(1, 0) = b.at(1, 0) = 1.0f + std::ldexp(1.0f, -12);
  on_every_target([&](SimdTarget target) {
    EXPECT_EQ(product(a, b, d, Accumulate::kOverwrite).at(0, 0), std::ldexp(1.0f, -24)) << name(target);
  });
}

TEST_F(Matmul, SignedZeroAndNaN) {
  Matrix a(1, 1, 1), b(1, 1, 1), d(1, 1, 1);
  a.at(0, 0) = -0.0f;
  b.at(0, 0) = 1.0f;
  d.at(0, 0) = -0.0f;
  on_every_target([&](SimdTarget target) {
    // The sum starts at +0, and +0 + -0 = +0; so does the addition to d.
    EXPECT_EQ(bits(product(a, b, d, Accumulate::kOverwrite).at(0, 0)), 0u) << name(target);
    EXPECT_EQ(bits(product(a, b, d, Accumulate::kAdd).at(0, 0)), 0u) << name(target);
  });
  a.at(0, 0) = from_bits(0xffc12345u);
  on_every_target([&](SimdTarget target) {
    EXPECT_EQ(bits(product(a, b, d, Accumulate::kOverwrite).at(0, 0)), kNaN) << name(target);
  });
  a.at(0, 0) = 1.0f;
  d.at(0, 0) = from_bits(0xffc12345u);
  on_every_target(
      [&](SimdTarget target) { EXPECT_EQ(bits(product(a, b, d, Accumulate::kAdd).at(0, 0)), kNaN) << name(target); });
}

// d is written where the result lies and nowhere else, also when it holds what must not be read.
TEST_F(Matmul, OverwriteDoesNotReadD) {
  Source source(false);
  Matrix stationary(5, 13, 13), moving(5, 37, 37), d(13, 37, 40);
  source.fill(stationary);
  source.fill(moving);
  for (float& x : d.data) x = std::numeric_limits<float>::quiet_NaN();
  const Matrix expected = expected_product(stationary, moving, d, Accumulate::kOverwrite);
  on_every_target([&](SimdTarget target) {
    expect_same_bits(product(stationary, moving, d, Accumulate::kOverwrite), expected, std::string(name(target)));
  });
}

// Parts of the pack and of the product, in any split and order, make the same whole.
TEST_F(Matmul, AnySplit) {
  Source source(true);
  const ptrdiff_t depth = 19, rows = 41, cols = 150;
  Matrix stationary(depth, rows, rows + 2), moving(depth, cols, cols + 3), d(rows, cols, cols + 1);
  source.fill(stationary);
  source.fill(moving);
  source.fill(d);
  const Matrix expected = expected_product(stationary, moving, d, Accumulate::kAdd);
  const ptrdiff_t blocks = stationary_blocks(rows), panels = moving_panels(cols);
  ASSERT_EQ(blocks, 4);
  ASSERT_EQ(panels, 5);
  on_every_target([&](SimdTarget target) {
    for (const ptrdiff_t step : {1, 2, 3, 5}) {
      std::vector<float> s(static_cast<size_t>(packed_stationary_floats(depth, rows)), NAN);
      std::vector<float> m(static_cast<size_t>(packed_moving_floats(depth, cols)), NAN);
      const OperandRows s_rows = operand_rows(std::as_const(stationary).block()),
                        m_rows = operand_rows(std::as_const(moving).block());
      for (ptrdiff_t i = 0; i < blocks; i += step) {
        pack_stationary(s_rows, depth, rows, whole_depth(depth), {i, std::min(i + step, blocks)}, s.data());
      }
      for (ptrdiff_t i = (panels - 1) / step * step; i >= 0; i -= step) {
        pack_moving(m_rows, depth, cols, whole_depth(depth), {i, std::min(i + step, panels)}, m.data());
      }
      Matrix out = d;
      const PackedProduct whole = {s.data(), m.data(), out.block(), depth, rows, cols, Accumulate::kAdd};
      for (ptrdiff_t panel = 0; panel < panels; panel += step) {
        for (ptrdiff_t block = (blocks - 1) / step * step; block >= 0; block -= step) {
          matmul_packed(whole, {block, std::min(block + step, blocks)}, {panel, std::min(panel + step, panels)});
        }
      }
      expect_same_bits(out, expected, std::string(name(target)) + " step " + std::to_string(step));
      if (HasFatalFailure()) return;
    }
  });
}

// The packed layout is the same on every target, as the header draws it.
TEST_F(Matmul, PackedLayout) {
  const ptrdiff_t depth = 3, count = 70;
  Matrix rows(depth, count, count);
  for (ptrdiff_t k = 0; k < depth; ++k)
    for (ptrdiff_t i = 0; i < count; ++i) rows.at(k, i) = static_cast<float>(1000 * (k + 1) + i);
  on_every_target([&](SimdTarget target) {
    for (const ptrdiff_t width : {kStationaryBlock, kMovingPanel}) {
      const ptrdiff_t groups = (count + width - 1) / width;
      std::vector<float> out(static_cast<size_t>(groups * depth * width) + 1, Matrix::kGap);
      const OperandRows source = operand_rows(std::as_const(rows).block());
      if (width == kStationaryBlock) {
        pack_stationary(source, depth, count, whole_depth(depth), {0, groups}, out.data());
      } else {
        pack_moving(source, depth, count, whole_depth(depth), {0, groups}, out.data());
      }
      for (ptrdiff_t k = 0; k < depth; ++k) {
        for (ptrdiff_t i = 0; i < groups * width; ++i) {
          const float value = i < count ? rows.at(k, i) : 0.0f;
          ASSERT_EQ(out[static_cast<size_t>((i / width * depth + k) * width + i % width)], value)
              << name(target) << ' ' << k << ' ' << i;
        }
      }
      EXPECT_EQ(out.back(), Matrix::kGap) << "written past the end";
    }
  });
}

// Operands of other formats, strided in memory, packed in two calls that share the depth as double-row does.
TEST_F(Matmul, PacksFromEveryFloatFormat) {
  const ptrdiff_t half = 7, depth = 2 * half, rows = 14, cols = 45;
  std::mt19937 generator(7);
  for (const DType type :
       {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kInt8}) {
    const ptrdiff_t size = size_of(type);
    for (const ptrdiff_t stride : {size, 3 * size}) {
      const ptrdiff_t pitch = std::max(rows, cols) * stride + 4;
      std::vector<unsigned char> raw_a(static_cast<size_t>(depth * pitch)), raw_b(raw_a.size());
      for (auto* raw : {&raw_a, &raw_b})
        for (unsigned char& byte : *raw) byte = static_cast<unsigned char>(generator());
      Matrix a(depth, rows, rows), b(depth, cols, cols), d(rows, cols, cols);
      for (ptrdiff_t k = 0; k < depth; ++k) {
        const ptrdiff_t slot = k % half * 2 + k / half;  // first half to even places, second to odd
        for (ptrdiff_t m = 0; m < rows; ++m)
          a.at(slot, m) = to_float(type, &raw_a[static_cast<size_t>(k * pitch + m * stride)]);
        for (ptrdiff_t n = 0; n < cols; ++n)
          b.at(slot, n) = to_float(type, &raw_b[static_cast<size_t>(k * pitch + n * stride)]);
      }
      const Matrix expected = expected_product(a, b, d, Accumulate::kOverwrite);
      on_every_target([&](SimdTarget target) {
        std::vector<float> s(static_cast<size_t>(packed_stationary_floats(depth, rows)), NAN);
        std::vector<float> m(static_cast<size_t>(packed_moving_floats(depth, cols)), NAN);
        for (const ptrdiff_t part : {0, 1}) {
          const DepthSlots slots = {depth, part, 2};
          pack_stationary({type, &raw_a[static_cast<size_t>(part * half * pitch)], pitch, stride}, half, rows, slots,
                          {0, stationary_blocks(rows)}, s.data());
          pack_moving({type, &raw_b[static_cast<size_t>(part * half * pitch)], pitch, stride}, half, cols, slots,
                      {0, moving_panels(cols)}, m.data());
        }
        Matrix out = d;
        matmul_packed({s.data(), m.data(), out.block(), depth, rows, cols, Accumulate::kOverwrite},
                      {0, stationary_blocks(rows)}, {0, moving_panels(cols)});
        expect_same_bits(
            out, expected,
            std::string(name(target)) + ' ' + std::string(name(type)) + " stride " + std::to_string(stride));
      });
      if (HasFatalFailure()) return;
    }
  }
}

// matmul_rows reads operands of any format where they lie: whole and cut panels, one block of rows and several.
TEST_F(Matmul, MultipliesRowsOfEveryFormat) {
  const ptrdiff_t depth = 21;
  std::mt19937 generator(8);
  for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat8E5M2, DType::kUInt8}) {
    const ptrdiff_t size = size_of(type);
    for (const ptrdiff_t stride : {size, 2 * size}) {
      for (const auto& [rows, cols] : {std::pair<ptrdiff_t, ptrdiff_t>{9, 200}, {30, 200}, {128, 64}}) {
        const ptrdiff_t pitch = std::max(rows, cols) * stride + size;
        std::vector<unsigned char> raw_a(static_cast<size_t>(depth * pitch)), raw_b(raw_a.size());
        for (auto* raw : {&raw_a, &raw_b})
          for (unsigned char& byte : *raw) byte = static_cast<unsigned char>(generator());
        Matrix a(depth, rows, rows), b(depth, cols, cols), d(rows, cols, cols + 3);
        for (ptrdiff_t k = 0; k < depth; ++k) {
          for (ptrdiff_t m = 0; m < rows; ++m)
            a.at(k, m) = to_float(type, &raw_a[static_cast<size_t>(k * pitch + m * stride)]);
          for (ptrdiff_t n = 0; n < cols; ++n)
            b.at(k, n) = to_float(type, &raw_b[static_cast<size_t>(k * pitch + n * stride)]);
        }
        const Matrix expected = expected_product(a, b, d, Accumulate::kAdd);
        std::vector<float> scratch(static_cast<size_t>(matmul_scratch_floats(depth, rows, cols)), NAN);
        on_every_target([&](SimdTarget target) {
          Matrix out = d;
          matmul_rows({type, raw_a.data(), pitch, stride}, {type, raw_b.data(), pitch, stride}, out.block(), depth,
                      rows, cols, Accumulate::kAdd, scratch.data());
          expect_same_bits(out, expected, describe(target, depth, d, Accumulate::kAdd) + ' ' + std::string(name(type)));
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace sterna
