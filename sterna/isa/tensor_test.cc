// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor.h"

#include <cmath>

#include "sterna/isa/matmul_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::tensor_engine {
namespace {

using TensorEngineTest = MatmulTest;

TEST_F(TensorEngineTest, MatmulMultipliesTransposed) {
  for (auto [k, rows, cols] : {std::array<int64_t, 3>{128, 128, 512}, {7, 5, 3}, {1, 1, 1}, {33, 64, 17}}) {
    const Values a = random(static_cast<size_t>(k * rows)), b = random(static_cast<size_t>(k * cols));
    const View d = psum({rows, cols});
    EXPECT_RUNS((NcMatmul{d, with({k, rows}, a), with({k, cols}, b)}));
    EXPECT_EQ(get(d), product(a, b, k, rows, cols));
  }
}

TEST_F(TensorEngineTest, AccumulateAutoOverwritesFirstAndAddsThen) {
  const Values a = random(4 * 3), b = random(4 * 5);
  const View s = with({4, 3}, a), v = with({4, 5}, b), d = psum({3, 5});
  const Values once = product(a, b, 4, 3, 5);
  EXPECT_RUNS((NcMatmul{d, s, v}));
  EXPECT_EQ(get(d), once);
  EXPECT_RUNS((NcMatmul{d, s, v}));
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(get(d)[i], once[i] + once[i]);
  NcMatmul over{d, s, v};
  over.accumulate = AccumulateFlag::kOverwrite;
  EXPECT_RUNS(over);
  EXPECT_EQ(get(d), once);
}

TEST_F(TensorEngineTest, AutoAfterMemsetOverwritesAndTrueAddsWithARemark) {
  const View s = with({1, 2}, {1, 2}), v = with({1, 2}, {10, 20}), d = psum({2, 2});
  EXPECT_RUNS((vector_engine::Memset{d, Scalar::of(100.0)}));
  NcMatmul add{d, s, v};
  add.accumulate = AccumulateFlag::kAdd;
  EXPECT_RUNS(add);
  EXPECT_EQ(get(d), (Values{110, 120, 120, 140}));
  EXPECT_TRUE(warned("MM10"));
  EXPECT_RUNS((vector_engine::Memset{d, Scalar::of(100.0)}));
  EXPECT_RUNS((NcMatmul{d, s, v}));
  EXPECT_EQ(get(d), (Values{10, 20, 20, 40}));
}

TEST_F(TensorEngineTest, AutoOverPartlyWrittenPsumAddsWhereAMatmulWrote) {
  const View s = with({1, 2}, {1, 2}), v = with({1, 4}, {1, 2, 3, 4}), d = psum({2, 6});
  EXPECT_RUNS((NcMatmul{part(d, 0, 2, 0, 4), s, v}));
  EXPECT_RUNS((NcMatmul{part(d, 0, 2, 2, 6), s, v}));
  EXPECT_EQ(get(d), (Values{1, 2, 3 + 1, 4 + 2, 3, 4, 2, 4, 6 + 2, 8 + 4, 6, 8}));
}

TEST_F(TensorEngineTest, ANewAllocationForgetsWhatAMatmulWrote) {
  const View s = with({1, 1}, {2}), v = with({1, 1}, {3}), d = psum({1, 1});
  EXPECT_RUNS((NcMatmul{d, s, v}));
  EXPECT_TRUE(m_.allocate(d.tensor));
  EXPECT_FALSE(m_.is_defined(d));
  EXPECT_RUNS((NcMatmul{d, s, v}));
  EXPECT_EQ(get(d)[0], 6);
}

TEST_F(TensorEngineTest, SourceChangesBetweenMatmulsAreSeen) {
  const View s = with({2, 2}, {1, 0, 0, 1}), v = with({2, 2}, {1, 2, 3, 4}), d = psum({2, 2});
  NcMatmul i{d, s, v};
  i.accumulate = AccumulateFlag::kOverwrite;
  EXPECT_RUNS(i);
  EXPECT_RUNS((vector_engine::TensorScalar{v, v, AluOp::kAdd, Scalar::of(10.0)}));
  EXPECT_RUNS(i);
  EXPECT_EQ(get(d), (Values{11, 12, 13, 14}));
}

TEST_F(TensorEngineTest, EachOfManyOperandsIsMultipliedByItsPartner) {
  // More tiles than the machine keeps in packed form, one against many and many against one.
  constexpr size_t kTiles = 300;
  const Values one = random(4 * 3);
  const View s = with({4, 3}, one), v = with({4, 3}, one), d = psum({3, 3});
  std::vector<View> tiles;
  std::vector<Values> values;
  for (size_t i = 0; i < kTiles; ++i) {
    values.push_back(random(4 * 3));
    tiles.push_back(with({4, 3}, values[i]));
  }
  auto check = [&](const View& stationary, const View& moving, const Values& a, const Values& b) {
    NcMatmul i{d, stationary, moving};
    i.accumulate = AccumulateFlag::kOverwrite;
    EXPECT_RUNS(i);
    return get(d) == product(a, b, 4, 3, 3);
  };
  for (size_t i = 0; i < kTiles; ++i) ASSERT_TRUE(check(s, tiles[i], one, values[i])) << "moving " << i;
  for (size_t i = 0; i < kTiles; ++i) ASSERT_TRUE(check(tiles[i], v, values[i], one)) << "stationary " << i;
  for (size_t i = 0; i < kTiles; ++i) ASSERT_TRUE(check(tiles[i], tiles[i / 7], values[i], values[i / 7])) << i;
  set(tiles[5], one);
  ASSERT_TRUE(check(tiles[5], v, one, one));
}

TEST_F(TensorEngineTest, TransposeByIdentityKeepsBitsWhereTheChipDoes) {
  Words w(4 * 3);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0x7f800000u + static_cast<uint32_t>(i);  // infinity, signalling NaNs
  const View x = with_bits({4, 3}, w, kF32);
  Values identity(16, 0.0f);
  for (size_t i = 0; i < 4; ++i) identity[i * 5] = 1;
  const View one = with({4, 4}, identity);
  NcMatmul i{psum({3, 4}), x, one};
  i.is_transpose = true;
  EXPECT_RUNS(i);
  const Words got = get_bits(i.dst);
  for (size_t r = 0; r < 4; ++r)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(got[c * 4 + r], w[r * 3 + c]);
  bool mixed = false;
  EXPECT_TRUE(m_.by_matmul(i.dst, &mixed));

  // Without the flag, without the feature, and with another type it is a product: infinity times zero is NaN.
  NcMatmul plain{psum({3, 4}), x, one};
  EXPECT_RUNS(plain);
  EXPECT_TRUE(std::isnan(get(plain.dst)[1]));
  use_chip("trn1");
  NcMatmul old{psum({3, 4}), x, one};
  old.is_transpose = true;
  EXPECT_RUNS(old);
  EXPECT_TRUE(std::isnan(get(old.dst)[1]));
  use_chip("trn2");
  EXPECT_FALSE(warned("MM12"));
  NcMatmul narrow{psum({3, 4}, kBf16), x, one};
  narrow.is_transpose = true;
  EXPECT_RUNS(narrow);
  EXPECT_TRUE(warned("MM12"));
  EXPECT_TRUE(std::isnan(get(narrow.dst)[1]));
}

TEST_F(TensorEngineTest, TransposeByAnythingElseIsAProduct) {
  const Values a = random(9), b = random(9);
  NcMatmul i{psum({3, 3}), with({3, 3}, a), with({3, 3}, b)};
  i.is_transpose = true;
  EXPECT_RUNS(i);
  EXPECT_EQ(get(i.dst), product(a, b, 3, 3, 3));
  EXPECT_TRUE(warned("MM11"));
}

TEST_F(TensorEngineTest, OnlyTheTensorEnginesTransposeCountsAsAMatmul) {
  const View x = with({3, 3}, ramp(9)), d = psum({3, 3});
  bool mixed = false;
  EXPECT_RUNS((NcTranspose{d, x, EngineId::kTensor}));
  EXPECT_TRUE(m_.by_matmul(d, &mixed));
  EXPECT_RUNS((NcTranspose{d, x, EngineId::kVector}));
  EXPECT_FALSE(m_.by_matmul(d, &mixed));
  EXPECT_FALSE(mixed);
  EXPECT_TRUE(m_.is_defined(d));
  EXPECT_RUNS((NcMatmul{d, x, x}));
  EXPECT_EQ(get(d), product(ramp(9), ramp(9), 3, 3, 3));
}

TEST_F(TensorEngineTest, DoubleRowContractsTwoRowsOfEachPartition) {
  const Values a = ramp(3 * 2 * 2, -2), b = ramp(3 * 2 * 4, -5);
  const View d = psum({2, 4});
  NcMatmul i{d, with({3, 2, 2}, a, DType::kFloat8E4M3), with({3, 2, 4}, b, DType::kFloat8E5M2)};
  i.perf_mode = PerfMode::kDoubleRow;
  EXPECT_RUNS(i);
  const Values sa = get(i.stationary), sb = get(i.moving);
  EXPECT_EQ(get(d), product(sa, sb, 6, 2, 4));
  EXPECT_EQ(work(i).multiply_adds, 6 * 2 * 4);
}

TEST_F(TensorEngineTest, MixedNarrowTypes) {
  const Values a = ramp(4 * 2), b = ramp(4 * 3);
  const View d = psum({2, 3});
  EXPECT_RUNS((NcMatmul{d, with({4, 2}, a, kBf16), with({4, 3}, b, DType::kFloat16)}));
  EXPECT_EQ(get(d), product(a, b, 4, 2, 3));
}

TEST_F(TensorEngineTest, MatmulRefusals) {
  const View s = with({4, 3}, ramp(12)), v = with({4, 5}, ramp(20)), d = psum({3, 5});
  EXPECT_REFUSED("MM1", (NcMatmul{d, with({4, 3}, ramp(12), kF32, Memory::kPsum), v}));
  EXPECT_REFUSED("MM2", (NcMatmul{make({3, 5}), s, v}));
  EXPECT_REFUSED("MM3", (NcMatmul{d, with({3, 3}, ramp(9)), v}));
  EXPECT_REFUSED("MM4", (NcMatmul{d, with({4, 129}, ramp(516)), v}));
  EXPECT_REFUSED("MM5", (NcMatmul{d, s, with({4, 513}, ramp(2052))}));
  EXPECT_REFUSED("MM6", (NcMatmul{psum({5, 3}), s, v}));
  EXPECT_REFUSED("MM7", (NcMatmul{d, with({4, 3}, ramp(12), kBf16), v}));
  EXPECT_REFUSED("MM7", (NcMatmul{d, with({4, 3}, ramp(12), kI32), with({4, 5}, ramp(20), kI32)}));
  NcMatmul twice{d, s, v};
  twice.perf_mode = PerfMode::kDoubleRow;
  EXPECT_FALSE(run(twice));
  EXPECT_REFUSED("UNINIT1", (NcMatmul{d, make({4, 3}), v}));
  NcMatmul add{psum({3, 5}), s, v};
  add.accumulate = AccumulateFlag::kAdd;
  EXPECT_REFUSED("UNINIT1", add);
}

TEST_F(TensorEngineTest, TransposeKeepsBits) {
  Words w(5 * 3);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0x7f800001u + static_cast<uint32_t>(i);  // signalling NaNs
  const View x = with_bits({5, 3}, w, kF32), d = psum({3, 5});
  EXPECT_RUNS((NcTranspose{d, x}));
  const Words got = get_bits(d);
  for (size_t r = 0; r < 5; ++r)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(got[c * 5 + r], w[r * 3 + c]);
}

TEST_F(TensorEngineTest, TransposeFlattensFreeAxesAndPicksItsEngine) {
  const View x = with({4, 2, 3}, ramp(24), kBf16), d = make({6, 4}, kBf16);
  EXPECT_RUNS((NcTranspose{d, x}));
  for (size_t r = 0; r < 4; ++r)
    for (size_t c = 0; c < 6; ++c) EXPECT_EQ(get(d)[c * 4 + r], static_cast<float>(r * 6 + c));
  EXPECT_EQ(work(NcTranspose{d, x}).engine, EngineId::kVector);
  EXPECT_EQ(work(NcTranspose{psum({6, 4}, kBf16), x}).engine, EngineId::kTensor);
  EXPECT_REFUSED("TR1", (NcTranspose{make({4, 6}, kBf16), x}));
  EXPECT_REFUSED("TR2", (NcTranspose{d, x, EngineId::kTensor}));
  EXPECT_REFUSED("ENG1", (NcTranspose{d, x, EngineId::kScalar}));
  EXPECT_FALSE(warned("TR4"));
  EXPECT_RUNS((NcTranspose{psum({6, 4}), x}));  // "must have the same data type as that of data"
  EXPECT_TRUE(warned("TR4"));
  strict_ = true;
  EXPECT_REFUSED("TR3", (NcTranspose{make({33, 2}), with({2, 33}, ramp(66))}));
}

TEST_F(TensorEngineTest, TransposeInPlace) {
  const View x = with({3, 3}, ramp(9));
  EXPECT_RUNS((NcTranspose{x, x}));
  EXPECT_EQ(get(x), (Values{0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

}  // namespace
}  // namespace sterna::tensor_engine
