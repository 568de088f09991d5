// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/mx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sterna/numerics/convert.h"
#include "sterna/numerics/dispatch.h"

namespace sterna {
namespace {

constexpr DType kPacked[] = {DType::kFloat8E4M3FNx4, DType::kFloat8E5M2x4, DType::kFloat4E2M1FNx4};
constexpr float kInf = std::numeric_limits<float>::infinity();

/// The tests run under every SIMD target of the processor: values may not depend on it.
class Mx : public ::testing::TestWithParam<SimdTarget> {
 protected:
  void SetUp() override {
    before_ = simd_target();
    ASSERT_TRUE(set_simd_target(GetParam()));
  }
  void TearDown() override { ASSERT_TRUE(set_simd_target(before_)); }
  SimdTarget before_ = SimdTarget::kScalar;
};
INSTANTIATE_TEST_SUITE_P(Targets, Mx, ::testing::ValuesIn(simd_targets()));

std::vector<std::byte> random_bytes(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> out(n);
  for (auto& b : out) b = static_cast<std::byte>(generator() & 0xff);
  return out;
}

TEST_P(Mx, RowsOfPackedElementsDecodeAsEachElementDoes) {
  for (DType t : kPacked)
    for (ptrdiff_t n : {1, 5, 128, 300}) {
      const auto bytes = random_bytes(static_cast<size_t>(n * size_of(t)), 3);
      std::vector<float> out(static_cast<size_t>(4 * n));
      decode_x4_row(t, bytes.data(), out.data(), n);
      for (ptrdiff_t i = 0; i < n; ++i) {
        float four[4];
        unpack_x4(t, bytes.data() + i * size_of(t), four);
        for (ptrdiff_t j = 0; j < 4; ++j) {
          const float got = out[static_cast<size_t>(4 * i + j)];
          ASSERT_TRUE(got == four[j] || (got != got && four[j] != four[j])) << name(t) << ' ' << i << ' ' << j;
        }
      }
    }
}

TEST_P(Mx, RowsOfPackedElementsEncodeAsEachElementDoes) {
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> some(-500, 500);
  for (DType t : kPacked)
    for (ptrdiff_t n : {1, 7, 200}) {
      std::vector<float> in(static_cast<size_t>(4 * n));
      for (float& x : in) x = some(generator);
      std::vector<std::byte> out(static_cast<size_t>(n * size_of(t))), one(out.size());
      encode_x4_row(t, in.data(), out.data(), n);
      for (ptrdiff_t i = 0; i < n; ++i) pack_x4(t, in.data() + 4 * i, one.data() + i * size_of(t));
      EXPECT_EQ(out, one) << name(t);
    }
}

TEST_P(Mx, DequantisedIsElementTimesScale) {
  for (DType t : kPacked) {
    constexpr ptrdiff_t kCount = 150, kPitch = 160;
    const auto size = static_cast<size_t>(kCount * size_of(t));
    std::vector<std::vector<std::byte>> rows;
    MxBlocks blocks{t, {}, nullptr};
    for (ptrdiff_t r = 0; r < 8; ++r) rows.push_back(random_bytes(size, 11 + static_cast<unsigned>(r)));
    for (ptrdiff_t r = 0; r < 8; ++r) blocks.rows[r] = rows[static_cast<size_t>(r)].data();
    std::vector<uint8_t> scales(kCount);
    for (size_t i = 0; i < kCount; ++i) scales[i] = static_cast<uint8_t>(i * 255 / (kCount - 1));  // 0 and 255 too
    blocks.scales = scales.data();
    std::vector<float> out(32 * kPitch);
    dequantize_blocks(blocks, out.data(), kPitch, kCount);
    for (ptrdiff_t r = 0; r < 8; ++r)
      for (ptrdiff_t i = 0; i < kCount; ++i) {
        float four[4];
        unpack_x4(t, rows[static_cast<size_t>(r)].data() + i * size_of(t), four);
        for (ptrdiff_t j = 0; j < 4; ++j) {
          const uint8_t scale = scales[static_cast<size_t>(i)];
          const float want =
              scale == 255 ? std::nanf("") : static_cast<float>(std::ldexp(static_cast<double>(four[j]), scale - 127));
          const float got = out[static_cast<size_t>((4 * r + j) * kPitch + i)];
          ASSERT_TRUE(got == want || (got != got && want != want)) << name(t) << ' ' << four[j] << ' ' << int{scale};
        }
      }
  }
}

struct Quantised {
  uint8_t scale;
  std::vector<float> values;
};
/// One block whose first elements are given; the others are zero.
Quantised quantise(DType t, MxScale how, const std::vector<float>& values) {
  std::vector<std::vector<float>> rows(8, std::vector<float>(4, 0.0f));
  for (size_t i = 0; i < values.size(); ++i) rows[i / 4][i % 4] = values[i];
  const float* in[8];
  uint32_t words[8];
  void* out[8];
  for (size_t r = 0; r < 8; ++r) in[r] = rows[r].data(), out[r] = &words[r];
  Quantised q;
  quantize_blocks(t, in, how, 1, out, &q.scale);
  for (size_t i = 0; i < values.size(); ++i) {
    float four[4];
    unpack_x4(t, &words[i / 4], four);
    q.values.push_back(four[i % 4]);
  }
  return q;
}

constexpr DType kE4 = DType::kFloat8E4M3FNx4, kE5 = DType::kFloat8E5M2x4;

TEST_P(Mx, ScaleIsThatOfTheLargestMagnitude) {
  // floor(log2 5) = 2; Emax is 8 and 15.
  EXPECT_EQ(quantise(kE4, MxScale::kDouble, {1, -5, 3}).scale, 127 + 2 - 7);
  EXPECT_EQ(quantise(kE4, MxScale::kOcp, {1, -5, 3}).scale, 127 + 2 - 8);
  EXPECT_EQ(quantise(kE5, MxScale::kDouble, {1, -5, 3}).scale, 127 + 2 - 14);
  EXPECT_EQ(quantise(kE5, MxScale::kOcp, {1, -5, 3}).scale, 127 + 2 - 15);
  EXPECT_EQ(quantise(kE4, MxScale::kDouble, {1, -5, 3}).values, (std::vector<float>{32, -160, 96}));
}

TEST_P(Mx, TheOlderScaleSaturatesWhereTheNewOneRounds) {
  // 1.9921875 * 2^8 = 510 is beyond 448; half of it rounds to 256.
  EXPECT_EQ(quantise(kE4, MxScale::kOcp, {1.9921875f, -1.9921875f}).values, (std::vector<float>{448, -448}));
  EXPECT_EQ(quantise(kE4, MxScale::kDouble, {1.9921875f, -1.9921875f}).values, (std::vector<float>{256, -256}));
  EXPECT_EQ(quantise(kE5, MxScale::kOcp, {1.9921875f}).values[0], 57344);
}

TEST_P(Mx, ZerosAndTinyBlocksTakeTheSmallestScale) {
  for (MxScale how : {MxScale::kDouble, MxScale::kOcp}) {
    EXPECT_EQ(quantise(kE4, how, {0, -0.0f}).scale, 0);
    EXPECT_TRUE(std::signbit(quantise(kE4, how, {0, -0.0f}).values[1]));
    // 2^-130 times 2^127 is 1/8.
    EXPECT_EQ(quantise(kE4, how, {std::ldexp(1.0f, -130)}).scale, 0);
    EXPECT_EQ(quantise(kE4, how, {std::ldexp(1.0f, -130)}).values[0], 0.125f);
  }
}

TEST_P(Mx, InfinitySaturatesAndNanStays) {
  const Quantised q = quantise(kE4, MxScale::kDouble, {kInf, -kInf, 1, std::nanf("")});
  EXPECT_EQ(q.scale, 255 - 7);
  EXPECT_EQ(q.values[0], 448);
  EXPECT_EQ(q.values[1], -448);
  EXPECT_EQ(q.values[2], 0);
  EXPECT_TRUE(std::isnan(q.values[3]));
  EXPECT_EQ(quantise(kE5, MxScale::kOcp, {kInf}).values[0], 57344) << "not infinity";
}

TEST_P(Mx, LongRowsAreQuantisedBlockByBlock) {
  std::mt19937 generator(9);
  std::uniform_real_distribution<float> some(-1, 1);
  constexpr ptrdiff_t kCount = 201;
  std::vector<std::vector<float>> rows(8, std::vector<float>(4 * kCount));
  for (auto& row : rows)
    for (float& x : row) x = std::ldexp(some(generator), static_cast<int>(generator() % 40) - 20);
  const float* in[8];
  std::vector<std::vector<uint32_t>> words(8, std::vector<uint32_t>(kCount));
  void* out[8];
  for (size_t r = 0; r < 8; ++r) in[r] = rows[r].data(), out[r] = words[r].data();
  std::vector<uint8_t> scales(kCount);
  quantize_blocks(kE5, in, MxScale::kDouble, kCount, out, scales.data());
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<float> block;
    for (auto& row : rows) block.insert(block.end(), row.begin() + 4 * i, row.begin() + 4 * (i + 1));
    const Quantised q = quantise(kE5, MxScale::kDouble, block);
    ASSERT_EQ(scales[i], q.scale) << i;
    for (size_t r = 0; r < 8; ++r) {
      float four[4];
      unpack_x4(kE5, &words[r][i], four);
      for (size_t j = 0; j < 4; ++j) ASSERT_EQ(four[j], q.values[4 * r + j]) << i << ' ' << r << ' ' << j;
    }
  }
}

}  // namespace
}  // namespace sterna
