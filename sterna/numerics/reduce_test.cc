// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sterna/base/text.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_test_values.h"

namespace sterna {
namespace {

using testing::bits_of;
using testing::from_bits;
using testing::kNaNBits;
using testing::on_every_target;
using testing::Values;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr AluOp kReductions[] = {AluOp::kAdd,        AluOp::kMultiply, AluOp::kMaximum,    AluOp::kMinimum,
                                 AluOp::kAbsMax,     AluOp::kAbsMin,   AluOp::kLogicalAnd, AluOp::kLogicalOr,
                                 AluOp::kLogicalXor, AluOp::kAverage};

/// The documented order, written out once more.
float in_documented_order(AluOp op, const float* row, ptrdiff_t cols) {
  float p[16];
  std::fill(p, p + 16, reduction_identity(op));
  for (ptrdiff_t i = 0; i < cols; ++i) p[i % 16] = alu(op, p[i % 16], row[i]);
  for (int j = 0; j < 8; ++j) p[j] = alu(op, p[j], p[j + 8]);
  for (int j = 0; j < 4; ++j) p[j] = alu(op, p[j], p[j + 4]);
  for (int j = 0; j < 2; ++j) p[j] = alu(op, p[j], p[j + 2]);
  return alu(op, p[0], p[1]);
}

float reduce_one(AluOp op, const std::vector<float>& row) {
  float d = from_bits(0xdeadbeef);
  reduce_block(op, {row.data(), 0}, &d, 1, 1, static_cast<ptrdiff_t>(row.size()));
  return d;
}

TEST(Reduce, OrderShowsInRounding) {
  on_every_target([] {
    // Elements 0 and 16 share a partial: 2^24 + 1 rounds back to 2^24 there, while 1 + 1 in partial 1 gives 2, which
    // the last step of the tree adds exactly. A plain left-to-right sum would give 2^24.
    std::vector<float> row(18, -0.0f);
    row[0] = 0x1p24f;
    row[16] = row[1] = row[17] = 1.0f;
    EXPECT_EQ(reduce_one(AluOp::kAdd, row), 0x1p24f + 2.0f);
    // 8 joins before 4: (2^24 + 1) + 1 in partial 0 loses both; 1 (at 4) + 1 (at 12) would meet first and survive.
    std::vector<float> tree(16, -0.0f);
    tree[0] = 0x1p24f;
    tree[8] = tree[4] = 1.0f;
    EXPECT_EQ(reduce_one(AluOp::kAdd, tree), 0x1p24f);
    tree[8] = -0.0f;
    tree[12] = 1.0f;
    EXPECT_EQ(reduce_one(AluOp::kAdd, tree), 0x1p24f + 2.0f);
  });
}

TEST(Reduce, KnownValues) {
  on_every_target([] {
    std::vector<float> count(100);
    for (size_t i = 0; i < count.size(); ++i) count[i] = static_cast<float>(i + 1);
    EXPECT_EQ(reduce_one(AluOp::kAdd, count), 5050.0f);
    EXPECT_EQ(reduce_one(AluOp::kAverage, count), 5050.0f);
    EXPECT_EQ(reduce_one(AluOp::kMaximum, count), 100.0f);
    EXPECT_EQ(reduce_one(AluOp::kMinimum, count), 1.0f);
    EXPECT_EQ(reduce_one(AluOp::kMultiply, std::vector<float>(20, 2.0f)), 0x1p20f);
    EXPECT_EQ(reduce_one(AluOp::kAbsMax, {1, -7, 3}), -7.0f);
    EXPECT_EQ(reduce_one(AluOp::kAbsMin, {5, -2, 3}), -2.0f);
    EXPECT_EQ(reduce_one(AluOp::kLogicalAnd, {5, -2, 3}), 1.0f);
    EXPECT_EQ(reduce_one(AluOp::kLogicalAnd, {5, 0, 3}), 0.0f);
    EXPECT_EQ(reduce_one(AluOp::kLogicalOr, {0, -0.0f, 0}), 0.0f);
    EXPECT_EQ(reduce_one(AluOp::kLogicalXor, {4, 2, 1}), 1.0f);
  });
}

TEST(Reduce, OneElementIsItself) {
  on_every_target([] {
    for (const AluOp op : {AluOp::kAdd, AluOp::kMultiply, AluOp::kMaximum, AluOp::kMinimum})
      for (const float value : {-0.0f, 0.0f, 1.5f, -kInf, kInf, from_bits(1), std::numeric_limits<float>::lowest()})
        EXPECT_EQ(bits_of(reduce_one(op, {value})), bits_of(value)) << name(op) << " " << value;
  });
}

// The fast paths of maximum and minimum must notice a NaN and the sign of zero wherever they stand.
TEST(Reduce, ExtremesFindNaNAndZeroSignsAnywhere) {
  on_every_target([] {
    for (const size_t size : {size_t{5}, size_t{16}, size_t{35}, size_t{64}})
      for (size_t at = 0; at < size; ++at) {
        std::vector<float> row(size, -1.0f);
        row[at] = from_bits(0xff800001);
        EXPECT_EQ(bits_of(reduce_one(AluOp::kMaximum, row)), kNaNBits) << size << " " << at;
        EXPECT_EQ(bits_of(reduce_one(AluOp::kMinimum, row)), kNaNBits) << size << " " << at;
        row.assign(size, -0.0f);
        row[at] = 0.0f;
        EXPECT_EQ(bits_of(reduce_one(AluOp::kMaximum, row)), 0u) << size << " " << at;
        row.assign(size, 0.0f);
        row[at] = -0.0f;
        EXPECT_EQ(bits_of(reduce_one(AluOp::kMinimum, row)), 0x80000000u) << size << " " << at;
        row.assign(size, -kInf);
        row[at] = kInf;
        EXPECT_EQ(reduce_one(AluOp::kMaximum, row), kInf) << size << " " << at;
      }
  });
}

TEST(Reduce, EqualsTheDocumentedOrder) {
  on_every_target([] {
    uint32_t seed = 0;
    for (const AluOp op : kReductions)
      for (const uint32_t special : {0u, 1u, 5u})
        for (const ptrdiff_t cols : {1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 40, 47, 48, 100, 512})
          for (const ptrdiff_t rows : {1, 2, 5, 8, 19}) {
            const ptrdiff_t pitch = cols + (seed % 2 == 0 ? 0 : 5);
            const std::vector<float> a = Values(++seed, special).take((rows - 1) * pitch + cols);
            std::vector<float> d(static_cast<size_t>(rows * 3), 42.0f), want = d;
            for (ptrdiff_t r = 0; r < rows; ++r)
              want[static_cast<size_t>(r * 3)] = in_documented_order(op, a.data() + r * pitch, cols);
            reduce_block(op, {a.data(), pitch}, d.data(), 3, rows, cols);
            ASSERT_NO_FATAL_FAILURE(
                testing::expect_same_bits(d, want, cat(name(op), " ", rows, "x", cols, " special ", special)));
          }
  });
}

TEST(Reduce, PiecesGiveTheBitsOfOneCall) {
  on_every_target([] {
    constexpr ptrdiff_t kRows = 11, kCols = 150, kPitch = 153;  // several at once, and a rest
    uint32_t seed = 500;
    for (const AluOp op : kReductions)
      for (const std::vector<ptrdiff_t>& cuts :
           {std::vector<ptrdiff_t>{}, {64}, {1, 2, 3}, {16, 17, 48}, {5, 5, 80}, {15, 31, 33, 149}, {100}}) {
        ++seed;
        const std::vector<float> a = Values(seed, seed % 3).take(kRows * kPitch);
        std::vector<float> partials(kRows * 16, -7.0f), got(kRows), want(kRows);
        ptrdiff_t start = 0;
        for (size_t i = 0; i <= cuts.size(); ++i) {
          const ptrdiff_t end = i < cuts.size() ? cuts[i] : kCols;
          reduce_block_state(op, {a.data() + start, kPitch}, kRows, end - start, start, partials.data());
          start = end;
        }
        reduce_finish(op, partials.data(), got.data(), 1, kRows);
        for (ptrdiff_t r = 0; r < kRows; ++r)
          want[static_cast<size_t>(r)] = in_documented_order(op, a.data() + r * kPitch, kCols);
        ASSERT_NO_FATAL_FAILURE(testing::expect_same_bits(got, want, cat(name(op), " cuts ", cuts.size())));
      }
  });
}

TEST(Scan, LinearRecurrence) {
  const float d0[] = {2, 2, 0.5f, -1}, d1[] = {1, 0, 3, 4};
  float out[4];
  scan_row(AluOp::kMultiply, AluOp::kAdd, false, false, d0, d1, 10, out, 4);
  EXPECT_EQ(out[0], 21.0f);
  EXPECT_EQ(out[1], 42.0f);
  EXPECT_EQ(out[2], 24.0f);
  EXPECT_EQ(out[3], -20.0f);
}

TEST(Scan, ReverseSwapsSides) {
  const float d0[] = {2, 5}, d1[] = {1, 10};
  float out[2];
  scan_row(AluOp::kSubtract, AluOp::kSubtract, false, false, d0, d1, 10, out, 2);  // (d0 - r) - d1
  EXPECT_EQ(out[0], -9.0f);
  EXPECT_EQ(out[1], 4.0f);
  scan_row(AluOp::kSubtract, AluOp::kSubtract, true, false, d0, d1, 10, out, 2);  // (r - d0) - d1
  EXPECT_EQ(out[0], 7.0f);
  EXPECT_EQ(out[1], -8.0f);
  scan_row(AluOp::kSubtract, AluOp::kSubtract, false, true, d0, d1, 10, out, 2);  // d1 - (d0 - r)
  EXPECT_EQ(out[0], 9.0f);
  EXPECT_EQ(out[1], 14.0f);
  scan_row(AluOp::kDivide, AluOp::kBypass, true, true, d0, d1, 10, out, 2);  // bypass reversed: d1
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 10.0f);
}

/// In place, on six rows: four at once and two alone.
void check_scan(AluOp op0, AluOp op1, bool reverse0, bool reverse1, uint32_t seed) {
  constexpr ptrdiff_t kRows = 6, kCols = 33, kPitch = 35;
  Values values(seed, 1);
  std::vector<float> d0 = values.take(kRows * kPitch), d1 = values.take(kRows * kPitch);
  const std::vector<float> initial = values.take(kRows);
  std::vector<float> want = d1;
  for (ptrdiff_t r = 0; r < kRows; ++r) {
    float running = initial[static_cast<size_t>(r)];
    for (ptrdiff_t c = 0; c < kCols; ++c) {
      const auto at = static_cast<size_t>(r * kPitch + c);
      const float step = reverse0 ? alu(op0, running, d0[at]) : alu(op0, d0[at], running);
      want[at] = running = reverse1 ? alu(op1, d1[at], step) : alu(op1, step, d1[at]);
    }
  }
  scan_block(op0, op1, reverse0, reverse1, {d0.data(), kPitch}, {d1.data(), kPitch}, initial.data(), 1,
             {d1.data(), kPitch}, kRows, kCols);  // in place
  ASSERT_NO_FATAL_FAILURE(testing::expect_same_bits(d1, want, cat(name(op0), " ", name(op1))));
}

TEST(Scan, EveryPairEqualsTheDefinition) {
  uint32_t seed = 900;
  for (int i = 0; i < kAluOpCount; ++i)
    for (int j = 0; j < kAluOpCount; ++j) {
      const auto op0 = static_cast<AluOp>(i), op1 = static_cast<AluOp>(j);
      if (is_bitwise(op0) || is_bitwise(op1)) continue;
      for (const bool reverse0 : {false, true})
        for (const bool reverse1 : {false, true})
          ASSERT_NO_FATAL_FAILURE(check_scan(op0, op1, reverse0, reverse1, ++seed));
    }
}

}  // namespace
}  // namespace sterna
