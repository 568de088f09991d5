// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/mx.h"

#include <cmath>

#include "sterna/isa/matmul_fixture.h"
#include "sterna/isa/tensor.h"
#include "sterna/isa/vector.h"

namespace sterna {
namespace {

using tensor_engine::NcMatmul;
using tensor_engine::NcMatmulMx;
using tensor_engine::NcMatmulSparse;
using vector_engine::QuantizeMx;

constexpr DType kE4 = DType::kFloat8E4M3FNx4, kE5 = DType::kFloat8E5M2x4, kF4 = DType::kFloat4E2M1FNx4;
constexpr DType kU8 = DType::kUInt8, kU16 = DType::kUInt16;

class MxTest : public MatmulTest {
 protected:
  void SetUp() override { use_chip("trn3"); }
  /// A tile of x4 elements with random bits that are neither NaN nor infinity, and its elements in contraction order.
  View data(int64_t partitions, int64_t cols, DType type, Values& places) {
    const auto n = static_cast<size_t>(partitions * cols);
    Words words(n);
    places.assign(4 * n, 0.0f);
    for (size_t i = 0; i < n; ++i) {
      Values four = random(4);
      uint32_t word = 0;
      pack_x4(type, four.data(), &word);
      words[i] = word;
      unpack_x4(type, &word, four.data());
      const auto p = static_cast<int64_t>(i) / cols, c = static_cast<int64_t>(i) % cols;
      for (int64_t j = 0; j < 4; ++j)
        places[static_cast<size_t>((4 * p + j) * cols + c)] = four[static_cast<size_t>(j)];
    }
    return with_bits({partitions, cols}, words, type);
  }
  /// Scales spread over quadrants; multiplies `places` by them.
  View scales(int64_t partitions, int64_t cols, Values& places) {
    const View v = make({partitions == 32 ? 4 : partitions, cols}, kU8);
    for (int64_t q = 0; q < partitions / 32; ++q) {
      const View four = quadrant_scales(v, q);
      Words words(static_cast<size_t>(4 * cols));
      for (uint32_t& w : words) w = 120 + static_cast<uint32_t>(generator_() % 16);
      auto o = m_.write(four, "test");
      for (int64_t r = 0; r < 4; ++r) {
        store_bits(*o, r, 0, cols, words.data() + r * cols);
        for (int64_t k = 0; k < 32; ++k)
          for (int64_t c = 0; c < cols; ++c)
            places[static_cast<size_t>((q * 128 + r * 32 + k) * cols + c)] *=
                std::ldexp(1.0f, static_cast<int>(words[static_cast<size_t>(r * cols + c)]) - 127);
      }
    }
    return v;
  }
};

TEST_F(MxTest, MultipliesDequantisedElementsInOneChain) {
  for (auto [partitions, rows, cols] : {std::array<int64_t, 3>{32, 2, 1}, {64, 14, 100}, {128, 128, 130}})
    for (auto [s_type, m_type] : {std::array<DType, 2>{kE4, kE5}, {kF4, kE4}, {kE5, kF4}}) {
      Values a, b;
      const View s = data(partitions, rows, s_type, a), v = data(partitions, cols, m_type, b);
      const View sx = scales(partitions, rows, a), vx = scales(partitions, cols, b), d = psum({rows, cols});
      EXPECT_RUNS((NcMatmulMx{d, s, v, sx, vx}));
      EXPECT_EQ(get(d), product(a, b, 4 * partitions, rows, cols));
    }
}

TEST_F(MxTest, OperandsMayBeStridedAndOfMoreDimensions) {
  Values a, b;
  const View s = data(32, 8, kE4, a), v = data(32, 12, kE5, b);
  const View sx = scales(32, 8, a), vx = scales(32, 12, b), d = psum({4, 12});
  auto every_other = [](View x) {
    x.dims[1] = {2, 4};
    return x;
  };
  Values half;
  for (size_t i = 0; i < a.size(); i += 2) half.push_back(a[i]);
  const int64_t shape[] = {32, 3, 4};
  EXPECT_RUNS((NcMatmulMx{d, every_other(s), *reshape_view(v, shape), every_other(sx), vx}));
  EXPECT_EQ(get(d), product(half, b, 128, 4, 12));
}

TEST_F(MxTest, UndefinedScalesAreSeen) {
  Values a, b;
  const View s = data(64, 2, kE4, a), v = data(64, 3, kE5, b), sx = scales(64, 2, a), d = psum({2, 3});
  const View vx = make({64, 3}, kU8);
  EXPECT_REFUSED("UNINIT1", (NcMatmulMx{d, s, v, sx, vx}));
}

TEST_F(MxTest, ScalesInAnotherQuadrantWarn) {
  Values a, b;
  const View s = data(128, 2, kE4, a), v = data(128, 3, kE5, b), sx = scales(128, 2, a), vx = scales(128, 3, b);
  auto rows = [](View x, int32_t first, int32_t count) {
    x.partition = first;
    x.dims[0].count = count;
    return x;
  };
  EXPECT_RUNS((NcMatmulMx{psum({2, 3}), rows(s, 32, 32), rows(v, 32, 32), rows(sx, 32, 4), rows(vx, 32, 4)}));
  EXPECT_FALSE(warned("MX6"));
  EXPECT_RUNS((NcMatmulMx{psum({2, 3}), rows(s, 32, 32), rows(v, 32, 32), rows(sx, 32, 4), rows(vx, 64, 4)}));
  EXPECT_TRUE(warned("MX6"));
  EXPECT_REFUSED("MX4", (NcMatmulMx{psum({2, 3}), rows(s, 32, 32), rows(v, 32, 32), rows(sx, 32, 4), rows(vx, 48, 4)}));
  EXPECT_REFUSED("MX2", (NcMatmulMx{psum({2, 3}), rows(s, 16, 32), rows(v, 16, 32), rows(sx, 32, 4), rows(vx, 32, 4)}));
}

TEST_F(MxTest, WorkIsOnePassOverTheMovingColumns) {
  Values a, b;
  const View s = data(128, 128, kE4, a), v = data(128, 512, kE4, b);
  const Work mx = work(NcMatmulMx{psum({128, 512}), s, v, scales(128, 128, a), scales(128, 512, b)});
  const Work dense = work(NcMatmul{psum({128, 512}), with({128, 128}, random(128 * 128), kBf16),
                                   with({128, 512}, random(128 * 512), kBf16)});
  EXPECT_EQ(mx.moving, dense.moving);
  EXPECT_EQ(mx.stationary, dense.stationary);
  EXPECT_EQ(mx.multiply_adds, 4 * dense.multiply_adds);
}

TEST_F(MxTest, QuantisingInPlaceReadsBeforeItWrites) {
  const Values x = random(32 * 16);
  const View src = with({32, 16}, x, kBf16), apart = make({32, 4}, kE4), scale = make({4, 4}, kU8);
  const View other = make({4, 4}, kU8);
  EXPECT_RUNS((QuantizeMx{apart, src, scale}));
  View inside = *reinterpret_view(src, kE4);  // 8 words in a partition; the last four
  inside.offset += 4;
  inside.dims[1].count = 4;
  EXPECT_RUNS((QuantizeMx{inside, src, other}));
  EXPECT_TRUE(warned("ALIAS1"));
  EXPECT_EQ(get_bits(inside), get_bits(apart));
  EXPECT_EQ(get_bits(other), get_bits(scale));
}

TEST_F(MxTest, WhatIsQuantisedAndMultipliedIsNearTheProduct) {
  const Values a = random(32 * 8), b = random(32 * 12);
  const View s = make({32, 2}, kE4), v = make({32, 3}, kE4), sx = make({4, 2}, kU8), vx = make({4, 3}, kU8);
  EXPECT_RUNS((QuantizeMx{s, with({32, 8}, a, kBf16), sx}));
  EXPECT_RUNS((QuantizeMx{v, with({32, 12}, b, kBf16), vx}));
  const View d = psum({2, 3});
  EXPECT_RUNS((NcMatmulMx{d, s, v, sx, vx}));
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j) {
      double want = 0, size = 0;
      for (size_t k = 0; k < 128; ++k) {
        const double term = static_cast<double>(a[k / 4 * 8 + 4 * i + k % 4]) * b[k / 4 * 12 + 4 * j + k % 4];
        want += term;
        size += std::fabs(term);
      }
      // Each factor is off by at most 1/16 of itself, or by half a subnormal step of its block.
      EXPECT_NEAR(get(d)[i * 3 + j], want, size * 0.14) << i << ' ' << j;
      EXPECT_NE(get(d)[i * 3 + j], 0);
    }
}

TEST_F(MxTest, PackedElementsAreMovedOnly) {
  const View x = with_bits({2, 2}, {1, 2, 3, 0xffffffff}, kE4), same = make({2, 2}, kE4), word = make({2, 2}, kU32);
  EXPECT_RUNS((vector_engine::TensorCopy{same, x}));
  EXPECT_EQ(get_bits(same), (Words{1, 2, 3, 0xffffffff}));
  EXPECT_REFUSED("PACK1", (vector_engine::TensorCopy{word, x}));
  EXPECT_REFUSED("PACK1", (vector_engine::TensorScalar{same, x, AluOp::kAdd, Scalar::of(1.0)}));
  EXPECT_REFUSED("MM7", (NcMatmul{psum({2, 2}), x, x}));
}

TEST_F(MxTest, SparseIsTheProductWithTheExpandedOperand) {
  struct Pattern {
    int kept, of;
  };
  for (auto [kept, of] : {Pattern{4, 16}, {4, 12}, {4, 8}, {2, 8}, {2, 4}, {1, 4}, {1, 2}}) {
    const int64_t k = 16, rows = 6, cols = 10, c = of / kept;
    const Values weights = random(static_cast<size_t>(k * rows)), b = random(static_cast<size_t>(k * c * cols));
    const View s = with({k, rows}, weights, kBf16), v = with({k, c, cols}, b, kBf16);
    const Values rounded = get(s), moving = get(v);
    Words tags(static_cast<size_t>(k * 2), 0);
    Values expanded(static_cast<size_t>(k * c * rows), 0.0f);
    for (int64_t g = 0; g < k / kept; ++g)
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<uint32_t> places(static_cast<size_t>(of));
        for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint32_t>(i);
        std::shuffle(places.begin(), places.end(), generator_);
        for (int64_t i = 0; i < kept; ++i) {
          const int64_t p = g * kept + i;
          const uint32_t tag = places[static_cast<size_t>(i)];
          tags[static_cast<size_t>(p * 2 + r / 4)] |= tag << (4 * (r % 4));
          expanded[static_cast<size_t>((g * of + tag) * rows + r)] = rounded[static_cast<size_t>(p * rows + r)];
        }
      }
    NcMatmulSparse i{psum({rows, cols}), s, v, with_bits({k, 2}, tags, kU16), Ints{2, {kept, of}}};
    EXPECT_RUNS(i);
    EXPECT_EQ(get(i.dst), product(expanded, moving, k * c, rows, cols)) << kept << ':' << of;
    const Work w = work(i);
    EXPECT_EQ(w.moving, cols) << "one pass, whatever the compression";
    EXPECT_EQ(w.multiply_adds, k * rows * cols);
  }
}

}  // namespace
}  // namespace sterna
