// SPDX-License-Identifier: Apache-2.0
// Copies, memset, shuffles. Expectations are written from the NKI documentation of each instruction (nki.isa, SDK 2.32)
// in plain loops.
#include <cmath>
#include <limits>

#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::vector_engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

class VectorMove : public IsaTest {};

// --- tensor_copy, memset

TEST_F(VectorMove, TensorCopyKeepsBitsOfEqualTypesAndConvertsOthers) {
  const View x = with_bits({1, 3}, {0x7f800001, 0x80000000, 0x3f80ffff}, kF32), same = make({1, 3}),
             half = make({1, 3}, kBf16);
  EXPECT_RUNS((TensorCopy{same, x}));
  EXPECT_EQ(get_bits(same), (Words{0x7f800001, 0x80000000, 0x3f80ffff}));
  EXPECT_RUNS((TensorCopy{half, x}));
  EXPECT_EQ(get_bits(half)[2], 0x3f81u);  // rounds to nearest, not down
  EXPECT_EQ(get_bits(half)[1], 0x8000u);
}

TEST_F(VectorMove, TensorCopyMovesDefinednessWithTheValues) {
  const View x = make({2, 4}), d = make({2, 4});
  set(part(x, 0, 1, 1, 3), {5, 6});
  EXPECT_RUNS((TensorCopy{d, x}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, true, true, false, false, false, false, false}));
  set(d, ramp(8));
  EXPECT_RUNS((TensorCopy{d, x}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, true, true, false, false, false, false, false}));
}

TEST_F(VectorMove, TensorCopyReshapesAndStrides) {
  const View x = with({2, 3, 4}, ramp(24));
  const int swap[3] = {0, 2, 1};
  const View d = make({2, 4, 3});
  EXPECT_RUNS((TensorCopy{d, *permute_view(x, swap)}));
  const Values got = get(d);
  for (int p = 0; p < 2; ++p)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 3; ++j)
        EXPECT_EQ(got[static_cast<size_t>(p * 12 + i * 3 + j)], static_cast<float>(p * 12 + j * 4 + i));
  EXPECT_REFUSED("SHAPE2", (TensorCopy{make({2, 11}), x}));
  use_chip("trn1");
  EXPECT_REFUSED("ENG3", (TensorCopy{d, x, EngineId::kScalar}));
}

TEST_F(VectorMove, TensorCopyOfWideAndOddRows) {
  for (int64_t n : {1, 15, 16, 17, 64, 128, 200}) {
    const Values v = random(static_cast<size_t>(5 * n));
    const View big = make({5, n + 3}), back = make({5, n});
    EXPECT_RUNS((TensorCopy{part(big, 0, 5, 2, n + 2), with({5, n}, v)}));
    EXPECT_RUNS((TensorCopy{back, part(big, 0, 5, 2, n + 2)}));
    EXPECT_EQ(get(back), v) << n;
  }
}

TEST_F(VectorMove, MemsetFillsEveryType) {
  const View f = make({3, 5}), h = make({3, 5}, DType::kFloat16), i = make({3, 5}, DType::kInt8),
             w = make({3, 5}, kU32);
  EXPECT_RUNS((Memset{f, Scalar::of(-1.5)}));
  EXPECT_EQ(get(f), Values(15, -1.5f));
  EXPECT_RUNS((Memset{part(h, 0, 3, 1, 3), Scalar::of(65504.0)}));
  EXPECT_EQ(get(part(h, 0, 3, 1, 3)), Values(6, 65504.0f));
  EXPECT_FALSE(m_.is_defined(h));
  EXPECT_RUNS((Memset{i, Scalar::of(-3.0)}));
  EXPECT_EQ(get(i), Values(15, -3.0f));
  EXPECT_RUNS((Memset{w, Scalar::of(4294967295.0)}));
  EXPECT_EQ(get_bits(w), Words(15, 0xffffffffu));
  EXPECT_REFUSED("ARG3", (Memset{f, Scalar{}}));
  EXPECT_REFUSED("MEMSET1", (Memset{make({1, 2}, DType::kFloat8E4M3FNx4), Scalar::of(1.0)}));
  EXPECT_REFUSED("ENG1", (Memset{f, Scalar::of(0.0), EngineId::kScalar}));
}

// numerics/convert.h: to nearest even, saturating, NaN to 0. NKI 0.3: the value's type must match dst's.
TEST_F(VectorMove, MemsetConvertsAValueThatDoesNotFit) {
  const View d = make({1, 1}, DType::kInt8), w = make({1, 1}, kI32), b = make({1, 1}, DType::kBool);
  for (const auto& [value, want] : {std::pair{2.5, 2.0f}, {3.5, 4.0f}, {2.7, 3.0f}, {-2.7, -3.0f}, {-0.5, 0.0f}}) {
    EXPECT_RUNS((Memset{d, Scalar::of(value)}));
    EXPECT_EQ(get(d), Values{want}) << value;
    EXPECT_RUNS((Memset{w, Scalar::of(value)}));
    EXPECT_EQ(get(w), Values{want}) << value;
  }
  EXPECT_TRUE(warned("MEMSET2"));
  EXPECT_RUNS((Memset{w, Scalar::of(static_cast<double>(kNaN))}));
  EXPECT_EQ(get(w), Values{0});
  EXPECT_RUNS((Memset{b, Scalar::of(0.25)}));
  EXPECT_EQ(get(b), Values{1});
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(300.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(127.5)}));
  EXPECT_RUNS((Memset{d, Scalar::of(127.4)}));
  EXPECT_EQ(get(d), Values{127});
  EXPECT_REFUSED("MEMSET2", (Memset{make({1, 1}, DType::kUInt8), Scalar::of(-0.7)}));
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(-129.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{make({1, 1}, DType::kUInt8), Scalar::of(-1.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(2147483648.0)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(1e30)}));
  EXPECT_REFUSED("MEMSET2", (Memset{w, Scalar::of(static_cast<double>(kInf))}));
  EXPECT_RUNS((Memset{w, Scalar::of(-2147483648.0)}));
  EXPECT_EQ(get_bits(w), Words{0x80000000});
  strict_ = true;
  EXPECT_REFUSED("MEMSET2", (Memset{d, Scalar::of(2.5)}));
  EXPECT_RUNS((Memset{make({1, 1}), Scalar::of(2.5)}));
}

// --- tensor_copy_predicated

TEST_F(VectorMove, PredicatedCopyMovesWhatIsUndefined) {
  const View x = make({1, 4}), p = with_bits({1, 4}, {1, 1, 0, 0}, DType::kUInt8);
  set(part(x, 0, 1, 0, 1), {9});
  const View d = with({1, 4}, {1, 2, 3, 4});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  EXPECT_EQ(defined(d), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(get(d)[0], 9);
  EXPECT_EQ(get(d)[2], 3);
}

TEST_F(VectorMove, PredicatedCopyChangesAndDefinesChosenElementsOnly) {
  const View x = with({2, 3}, {1, 2, 3, 4, 5, 6}), p = with_bits({2, 3}, {1, 0, 7, 0, 0, 1}, DType::kUInt8);
  const View d = make({2, 3});
  set(part(d, 0, 1, 0, 2), {90, 91});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  const Values got = get(d);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 91);
  EXPECT_EQ(got[2], 3);
  EXPECT_EQ(got[5], 6);
  EXPECT_EQ(defined(d), (std::vector<bool>{true, true, true, false, false, true}));
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(8.0), p, true}));
  EXPECT_EQ(get(d), (Values{1, 8, 3, 8, 8, 6}));
  EXPECT_TRUE(m_.is_defined(d));
}

TEST_F(VectorMove, PredicatedCopyKeepsBits) {
  const View x = with_bits({1, 2}, {0x7fc12345, 16777217}, kI32), p = with_bits({1, 2}, {1, 1}, kU32),
             d = make({1, 2}, kI32);
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(x), p}));
  EXPECT_EQ(get_bits(d), (Words{0x7fc12345, 16777217}));
}

TEST_F(VectorMove, PredicatedCopyRefusals) {
  const View x = with({2, 3}, ramp(6)), d = with({2, 3}, ramp(6)), p = with_bits({2, 3}, Words(6, 1), DType::kUInt8);
  EXPECT_REFUSED("PRED1", (TensorCopyPredicated{d, Scalar::of(x), x}));
  EXPECT_REFUSED("ARG2", (TensorCopyPredicated{d, Scalar{}, p}));
  EXPECT_REFUSED("UNINIT1", (TensorCopyPredicated{d, Scalar::of(x), make({2, 3}, DType::kUInt8)}));
  const View xp = with({2, 3}, ramp(6), kF32, Memory::kPsum), pp = with_bits({2, 3}, Words(6, 1), kU32, Memory::kPsum);
  EXPECT_REFUSED("BUF1", (TensorCopyPredicated{d, Scalar::of(xp), pp}));
  strict_ = true;
  EXPECT_REFUSED("PRED2", (TensorCopyPredicated{d, Scalar::of(with({2, 3}, ramp(6), kBf16)), p}));
}

TEST_F(VectorMove, ANumberForAPredicatedCopyIsOneOfTheTiles) {
  const View predicate = with({2, 3}, ramp(6), DType::kUInt8), d = with({2, 3}, ramp(6), kI32);
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(-7.0), predicate}));
  EXPECT_FALSE(warned("PRED4"));
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(1.5), predicate}));
  EXPECT_TRUE(warned("PRED4"));
}

TEST_F(VectorMove, PredicatedCopyBetweenIntegerTypesIsExact) {
  const View s = with_bits({1, 4}, {16777217, static_cast<uint32_t>(-5), 7, 9}, kI32), d = make({1, 4}, kU32);
  set(d, {1, 2, 3, 4});
  EXPECT_RUNS((TensorCopyPredicated{d, Scalar::of(s), with({1, 4}, {1, 1, 0, 1}, DType::kUInt8)}));
  EXPECT_EQ(get_bits(d), (Words{16777217, 0, 3, 9}));
}

// --- nc_stream_shuffle

TEST_F(VectorMove, StreamShufflePermutesInsideGroupsOf32) {
  const View x = with({64, 2}, ramp(128)), d = with({64, 2}, Values(128, -1));
  NcStreamShuffle i{d, x};
  for (int k = 0; k < 32; ++k) i.shuffle_mask.lane[k] = static_cast<uint8_t>(31 - k);
  i.shuffle_mask.lane[3] = 255;
  EXPECT_RUNS(i);
  const Values got = get(d);
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 2; ++c)
      EXPECT_EQ(got[static_cast<size_t>(2 * r + c)],
                r % 32 == 3 ? -1.0f : static_cast<float>(2 * (r / 32 * 32 + 31 - r % 32) + c));
}

TEST_F(VectorMove, StreamShuffleInPlaceAndDefinedness) {
  const View x = make({4, 1});
  set(part(x, 0, 2, 0, 1), {10, 11});
  NcStreamShuffle i{x, x};
  for (int k = 0; k < 32; ++k) i.shuffle_mask.lane[k] = 255;
  i.shuffle_mask.lane[0] = 1;
  i.shuffle_mask.lane[1] = 2;
  i.shuffle_mask.lane[2] = 0;
  EXPECT_RUNS(i);
  EXPECT_EQ(defined(x), (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(get(x)[0], 11);
  EXPECT_EQ(get(x)[2], 10);
}

TEST_F(VectorMove, StreamShuffleRefusals) {
  const View x = with({32, 2}, ramp(64)), small = with({8, 2}, ramp(16));
  EXPECT_REFUSED("SHUF1", (NcStreamShuffle{make({32, 2}, kBf16), x}));
  EXPECT_REFUSED("SHAPE2", (NcStreamShuffle{make({32, 3}), x}));
  NcStreamShuffle far{make({8, 2}), small};
  far.shuffle_mask.lane[7] = 8;
  EXPECT_REFUSED("SHUF3", far);
  const View tall = make({64, 2});
  EXPECT_REFUSED("SHUF2", (NcStreamShuffle{part(tall, 16, 48, 0, 2), x}));
}

TEST_F(VectorMove, AShuffleOfNoPartitionsDoesNothing) {
  const View x = with({32, 3}, ramp(96)), d = make({32, 3});
  NcStreamShuffle i{part(d, 0, 0, 0, 3), part(x, 0, 0, 0, 3)};
  EXPECT_RUNS(i);
}

}  // namespace
}  // namespace sterna::vector_engine
