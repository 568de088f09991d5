// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/gpsimd.h"

#include <cmath>

#include "sterna/isa/collectives.h"
#include "sterna/isa/control.h"
#include "sterna/isa/cores.h"
#include "sterna/isa/dma.h"
#include "sterna/isa/scalar.h"
#include "sterna/isa/tensor.h"
#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::gpsimd_engine {
namespace {

class GpSimd : public IsaTest {};

// --- iota

TEST_F(GpSimd, IotaFollowsThePattern) {
  const View d = make({3, 2, 4}, kI32);
  EXPECT_RUNS((Iota{d, {2, {{100, 2}, {-1, 4}}}, Scalar::of(5.0), 1000}));
  for (int p = 0; p < 3; ++p)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 4; ++j)
        EXPECT_EQ(get(d)[static_cast<size_t>(p * 8 + i * 4 + j)], static_cast<float>(5 + 1000 * p + 100 * i - j));
}

TEST_F(GpSimd, IotaTakesItsOffsetFromATensorAndConverts) {
  const View d = make({2, 3}, kBf16), start = with_bits({1, 1}, {7}, kI32);
  EXPECT_RUNS((Iota{d, {1, {{2, 3}}}, Scalar::of(start), 0}));
  EXPECT_EQ(get(d), (Values{7, 9, 11, 7, 9, 11}));
  const View wide = make({1, 1}, kI32);
  EXPECT_RUNS((Iota{wide, {1, {{1, 1}}}, Scalar::of(16777217.0)}));
  EXPECT_EQ(get_bits(wide)[0], 16777217u);  // 32-bit integers, not fp32
  EXPECT_REFUSED("UNINIT1", (Iota{d, {1, {{2, 3}}}, Scalar::of(make({1, 1}, kI32))}));
}

TEST_F(GpSimd, IotaWrapsAs32BitIntegersDo) {
  const View d = make({2, 2}, kI32);
  EXPECT_RUNS((Iota{d, {1, {{INT32_MAX, 2}}}, Scalar::of(2147483647.0), INT32_MAX}));
  EXPECT_EQ(get_bits(d), (Words{0x7fffffff, 0xfffffffe, 0xfffffffe, 0x7ffffffd}));
  const View far = make({1, 3}, kI32);  // 2 * INT32_MAX is beyond 32 bits
  EXPECT_RUNS((Iota{far, {1, {{INT32_MAX, 3}}}}));
  EXPECT_EQ(get_bits(far), (Words{0, 0x7fffffff, 0xfffffffe}));
}

TEST_F(GpSimd, OffsetsAreWholeNumbersOf32Bits) {
  const View d = make({1, 1}, kI32);
  const Pattern one{1, {{1, 1}}};
  for (const double bad : {std::nan(""), HUGE_VAL, 1e30, -2147483649.0, 4294967296.0}) {
    EXPECT_REFUSED("IOTA3", (Iota{d, one, Scalar::of(bad)}));
    EXPECT_REFUSED("IOTA3", (AffineSelect{d, one, 0, d, Scalar::of(0.0), AluOp::kEqual, Scalar::of(bad)}));
    EXPECT_REFUSED("IOTA3", (NonzeroWithCount{make({16, 2}, kI32), with({16, 1}, ramp(16)), Scalar::of(bad)}));
  }
  EXPECT_RUNS((Iota{d, one, Scalar::of(4294967295.0)}));
  EXPECT_EQ(get_bits(d), Words{0xffffffff});
  EXPECT_RUNS((Iota{d, one, Scalar::of(2.5)}));
  EXPECT_EQ(get_bits(d), Words{2});
  EXPECT_TRUE(warned("IOTA3"));
  EXPECT_RUNS((Iota{d, one, Scalar::of(with({1, 1}, {-5}))}));
  EXPECT_EQ(get_bits(d), Words{0xfffffffb});
  for (const float bad : {std::nanf(""), HUGE_VALF, 1e30f, -3e9f})
    EXPECT_REFUSED("IOTA3", (Iota{d, one, Scalar::of(with({1, 1}, {bad}))}));
  strict_ = true;
  EXPECT_REFUSED("IOTA3", (Iota{d, one, Scalar::of(2.5)}));
}

TEST_F(GpSimd, APatternTooLargeToCountIsRefused) {
  // The product of the counts is 2^64 + 4.
  EXPECT_REFUSED("IOTA1", (Iota{make({1, 4}, kI32), {3, {{1, 2147418113}, {1, 1718039348}, {1, 5}}}}));
}

TEST_F(GpSimd, IotaRefusals) {
  EXPECT_REFUSED("IOTA1", (Iota{make({2, 3}, kI32), {1, {{1, 4}}}}));
  EXPECT_REFUSED("IOTA2", (Iota{make({2, 1}, kI32), {2, {{1, -1}, {1, -1}}}}));
  EXPECT_REFUSED("ENG2", (Iota{make({2, 3}, kI32, Memory::kPsum), {1, {{1, 3}}}}));
  EXPECT_REFUSED("P1", (Iota{make({2, 3}, kI32, Memory::kHbm), {1, {{1, 3}}}}));
}

// --- affine_select

TEST_F(GpSimd, AffineSelectMakesACausalMask) {
  const View x = with({4, 4}, ramp(16, 1)), d = make({4, 4});
  EXPECT_RUNS((AffineSelect{d, {1, {{-1, 4}}}, 1, x, Scalar::of(-9984.0), AluOp::kGreaterEqual}));
  for (int p = 0; p < 4; ++p)
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(get(d)[static_cast<size_t>(4 * p + i)], p - i >= 0 ? static_cast<float>(4 * p + i + 1) : -9984.0f);
}

TEST_F(GpSimd, AffineSelectComparesAs32BitIntegersDo) {
  const View x = with({1, 2}, {5, 6}), d = make({1, 2});  // 2^31 - 1 + 1 is negative
  EXPECT_RUNS((AffineSelect{d, {1, {{1, 2}}}, 0, x, Scalar::of(0.0), AluOp::kGreater, Scalar::of(2147483647.0)}));
  EXPECT_EQ(get(d), (Values{5, 0}));
}

TEST_F(GpSimd, AffineSelectKnowsEveryComparison) {
  const View x = with({1, 5}, ramp(5, 1)), d = make({1, 5}, kBf16);
  const struct {
    AluOp op;
    Values want;
  } cases[] = {{AluOp::kEqual, {0, 0, 3, 0, 0}},   {AluOp::kNotEqual, {1, 2, 0, 4, 5}},
               {AluOp::kGreater, {0, 0, 0, 4, 5}}, {AluOp::kGreaterEqual, {0, 0, 3, 4, 5}},
               {AluOp::kLess, {1, 2, 0, 0, 0}},    {AluOp::kLessEqual, {1, 2, 3, 0, 0}}};
  for (const auto& c : cases) {
    EXPECT_RUNS((AffineSelect{d, {1, {{1, 5}}}, 0, x, Scalar::of(0.0), c.op, Scalar::of(-2.0)}));
    EXPECT_EQ(get(d), c.want) << name(c.op);
  }
}

TEST_F(GpSimd, AffineSelectKeepsBitsOfEqualTypes) {
  const View x = with_bits({1, 2}, {16777217, 5}, kI32), d = make({1, 2}, kI32);
  EXPECT_RUNS((AffineSelect{d, {1, {{1, 2}}}, 0, x, Scalar::of(-3.0), AluOp::kEqual}));
  EXPECT_EQ(get_bits(d), (Words{16777217, static_cast<uint32_t>(-3)}));
}

TEST_F(GpSimd, AffineSelectRefusals) {
  const View x = with({1, 5}, ramp(5)), d = make({1, 5});
  EXPECT_REFUSED("AFF1", (AffineSelect{d, {1, {{1, 5}}}, 0, x, Scalar::of(0.0), AluOp::kAdd}));
  EXPECT_REFUSED("IOTA1", (AffineSelect{d, {1, {{1, 4}}}, 0, x, Scalar::of(0.0)}));
  EXPECT_REFUSED("ENG2",
                 (AffineSelect{d, {1, {{1, 5}}}, 0, with({1, 5}, ramp(5), kF32, Memory::kPsum), Scalar::of(0.0)}));
  EXPECT_REFUSED("ARG3", (AffineSelect{d, {1, {{1, 5}}}, 0, x, Scalar::of(x)}));
  EXPECT_REFUSED("UNINIT1", (AffineSelect{x, {1, {{1, 5}}}, 0, d, Scalar::of(0.0)}));
}

// --- tensor_partition_reduce

TEST_F(GpSimd, PartitionReduceAscends) {
  const Values v = random(5 * 3);
  const View x = with({5, 3}, v), d = make({1, 3});
  EXPECT_RUNS((TensorPartitionReduce{d, AluOp::kAdd, x}));
  for (size_t c = 0; c < 3; ++c) EXPECT_EQ(get(d)[c], (((v[c] + v[3 + c]) + v[6 + c]) + v[9 + c]) + v[12 + c]);
  EXPECT_RUNS((TensorPartitionReduce{d, AluOp::kMaximum, x}));
  for (size_t c = 0; c < 3; ++c) EXPECT_EQ(get(d)[c], std::max({v[c], v[3 + c], v[6 + c], v[9 + c], v[12 + c]}));
  const View four = with({4, 1}, {1, 2, 3, 4}), one = make({1, 1});
  EXPECT_RUNS((TensorPartitionReduce{one, AluOp::kAverage, four}));
  EXPECT_EQ(get(one)[0], 2.5f);
}

TEST_F(GpSimd, PartitionAverageDividesOnceInEveryPiece) {
  const int64_t cols = kPiece + 3;
  Values v(static_cast<size_t>(3 * cols));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 1000);
  const View x = with({3, cols}, v), d = make({1, cols});
  EXPECT_RUNS((TensorPartitionReduce{d, AluOp::kAverage, x}));
  const Values got = get(d);
  for (size_t c = 0; c < got.size(); ++c)
    ASSERT_EQ(got[c], (v[c] + v[c + got.size()] + v[c + 2 * got.size()]) / 3.0f) << c;
  const View i = with_bits({2, 1}, {3, 6}, kI32), half = make({1, 1}, kI32);  // integers too: 4.5 rounds to even
  EXPECT_RUNS((TensorPartitionReduce{half, AluOp::kAverage, i}));
  EXPECT_EQ(get_bits(half)[0], 4u);
}

TEST_F(GpSimd, PartitionReduceOfIntegersIsExact) {
  const View x = with_bits({3, 1}, {16777216, 1, 1}, kI32), d = make({1, 1}, kI32);
  EXPECT_RUNS((TensorPartitionReduce{d, AluOp::kAdd, x}));
  EXPECT_EQ(get_bits(d)[0], 16777218u);
  EXPECT_RUNS((TensorPartitionReduce{d, AluOp::kBitwiseOr, x}));
  EXPECT_EQ(get_bits(d)[0], 16777217u);
  EXPECT_REFUSED("TYPE1", (TensorPartitionReduce{make({1, 1}), AluOp::kBitwiseOr, x}));
  EXPECT_REFUSED("PRED3", (TensorPartitionReduce{make({3, 1}, kI32), AluOp::kAdd, x}));
  EXPECT_REFUSED("SHAPE4", (TensorPartitionReduce{make({1, 2}, kI32), AluOp::kAdd, x}));
  EXPECT_REFUSED("RED1", (TensorPartitionReduce{d, AluOp::kMultiply, x}));
  EXPECT_REFUSED("RED7", (TensorPartitionReduce{d, AluOp::kAdd, part(x, 1, 1, 0, x.cols())}));
  EXPECT_REFUSED("ENG2", (TensorPartitionReduce{d, AluOp::kAdd, with({3, 1}, ramp(3), kI32, Memory::kPsum)}));
}

// --- nc_n_gather, local_gather

TEST_F(GpSimd, NGatherPicksInsideEachPartition) {
  const View x = with({2, 2, 3}, ramp(12), kBf16), at = with_bits({2, 4}, {5, 0, 0, 3, 1, 2, 5, 4}, kU32),
             d = make({2, 4}, kBf16);
  EXPECT_RUNS((NcNGather{d, x, at}));
  EXPECT_EQ(get(d), (Values{5, 0, 0, 3, 7, 8, 11, 10}));
}

TEST_F(GpSimd, NGatherMovesDefinednessAndWorksInPlace) {
  const View x = make({1, 3});
  set(part(x, 0, 1, 0, 2), {4, 5});
  const View at = with_bits({1, 3}, {2, 1, 0}, kU32);
  EXPECT_RUNS((NcNGather{x, x, at}));
  EXPECT_EQ(defined(x), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(get(x)[2], 4);
}

TEST_F(GpSimd, NGatherRefusals) {
  const View x = with({1, 3}, ramp(3)), d = make({1, 2}), at = with_bits({1, 2}, {0, 3}, kU32);
  EXPECT_REFUSED("GAT2", (NcNGather{d, x, at}));
  EXPECT_REFUSED("GAT1", (NcNGather{make({1, 2}, kBf16), x, at}));
  EXPECT_REFUSED("GAT3", (NcNGather{d, x, with({1, 2}, {0, 1})}));
  EXPECT_REFUSED("SHAPE4", (NcNGather{make({1, 3}), x, at}));
  EXPECT_REFUSED("ENG2", (NcNGather{d, with({1, 3}, ramp(3), kF32, Memory::kPsum), at}));
  EXPECT_REFUSED("UNINIT1", (NcNGather{d, x, make({1, 2}, kU32)}));
}

TEST_F(GpSimd, LocalGatherReadsIndicesPartitionFirst) {
  // The numpy form in the documentation: indices_1d = index[group].flatten(order='F'), then take along the free axis.
  const View x = with({32, 64}, ramp(32 * 64));
  Words index(32 * 2);
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<uint32_t>((i * 7) % 31 * 2);
  const View at = with_bits({32, 2}, index, DType::kUInt16), d = make({32, 20 * 2});
  EXPECT_RUNS((LocalGather{d, x, at, 2, 20}));
  for (size_t p = 0; p < 32; ++p)
    for (size_t k = 0; k < 20; ++k)
      for (size_t e = 0; e < 2; ++e) {
        const size_t source = index[(p / 16 * 16 + k % 16) * 2 + k / 16] + e;
        EXPECT_EQ(get(d)[p * 40 + k * 2 + e], static_cast<float>(p * 64 + source));
      }
  const Work w = work(LocalGather{d, x, at, 2, 20});
  EXPECT_EQ(w.elements, 40);
  EXPECT_EQ(w.per_index, 2);
}

TEST_F(GpSimd, LocalGatherNeedsOnlyTheIndicesThatCount) {
  const View x = with({16, 4}, ramp(64)), at = make({16, 1}, DType::kUInt16), d = make({16, 3});
  set(part(at, 0, 3, 0, 1), {3, 1, 0});
  EXPECT_RUNS((LocalGather{d, x, at, 1, 3}));
  EXPECT_EQ(get(part(d, 1, 2, 0, 3)), (Values{7, 5, 4}));
  EXPECT_REFUSED("UNINIT1", (LocalGather{make({16, 4}), x, at, 1, 4}));
}

TEST_F(GpSimd, LocalGatherRefusals) {
  const View x = with({16, 4}, ramp(64)), at = with({16, 1}, Values(16, 3), DType::kUInt16), d = make({16, 16});
  EXPECT_RUNS((LocalGather{d, x, at}));
  EXPECT_REFUSED("GAT2", (LocalGather{make({16, 32}), x, at, 2}));
  EXPECT_REFUSED("GAT5", (LocalGather{d, x, at, 3}));
  EXPECT_REFUSED("GAT6", (LocalGather{d, x, at, 1, -3}));
  EXPECT_REFUSED("GAT6", (LocalGather{d, x, at, 1, 0}));
  EXPECT_REFUSED("GAT6", (LocalGather{d, x, at, 1, 17}));
  EXPECT_REFUSED("GAT7", (LocalGather{d, x, with({16, 1}, Values(16, 0))}));
  EXPECT_REFUSED("SHAPE4", (LocalGather{make({16, 15}), x, at}));
  EXPECT_REFUSED("GAT4", (LocalGather{part(d, 0, 8, 0, 16), part(x, 0, 8, 0, 4), part(at, 0, 8, 0, 1)}));
  EXPECT_REFUSED("GAT1", (LocalGather{make({16, 16}, kBf16), x, at}));
}

// --- sequence_bounds, nonzero_with_count

TEST_F(GpSimd, SequenceBounds) {
  for (DType t : {kF32, kI32}) {
    const View ids = with({1, 8}, {0, 1, 1, 2, 2, 2, 0, 1}, t), d = make({1, 2, 8}, t);
    EXPECT_RUNS((SequenceBounds{d, ids}));
    EXPECT_EQ(get(d), (Values{8, 1, 1, 3, 3, 3, 8, 7, -1, 3, 3, 6, 6, 6, -1, 8}));
  }
  EXPECT_REFUSED("SEQ1", (SequenceBounds{make({2, 2, 4}), with({2, 4}, ramp(8))}));
  EXPECT_REFUSED("SEQ2", (SequenceBounds{make({1, 2, 4}, kBf16), with({1, 4}, ramp(4))}));
  EXPECT_REFUSED("SHAPE4", (SequenceBounds{make({1, 4}), with({1, 4}, ramp(4))}));
}

TEST_F(GpSimd, NonzeroWithCount) {
  const View x = make({32, 8}), d = make({32, 9}, kI32);
  set(part(x, 0, 1, 0, 8), {0, 1, 1, 0, 0, 1, 0, 0});
  set(part(x, 16, 17, 0, 8), Values(8, 0));
  EXPECT_RUNS((NonzeroWithCount{d, x, Scalar::of(16.0), Scalar::of(-1.0)}));
  EXPECT_EQ(get(part(d, 0, 1, 0, 9)), (Values{17, 18, 21, -1, -1, -1, -1, -1, 3}));
  EXPECT_EQ(get(part(d, 16, 17, 0, 9)), (Values{-1, -1, -1, -1, -1, -1, -1, -1, 0}));
  EXPECT_FALSE(m_.is_defined(part(d, 1, 2, 0, 9)));
  EXPECT_REFUSED("NZ1", (NonzeroWithCount{make({32, 9}), x}));
  EXPECT_REFUSED("SHAPE4", (NonzeroWithCount{make({32, 8}, kI32), x}));
  EXPECT_REFUSED("UNINIT1", (NonzeroWithCount{d, make({32, 8})}));
}

// --- the table

TEST(InstructionTable, FindsEveryInstructionByNameAndOpcode) {
  int count = 0;
  for (size_t code = 0; code < 256; ++code) {
    const TableRow& row = instruction_table()[code];
    if (row.info.mnemonic.empty()) continue;
    ++count;
    EXPECT_EQ(row.info.opcode, code);
    EXPECT_EQ(find_instruction(row.info.mnemonic), &row);
    EXPECT_FALSE(row.info.source.empty());
    for (const FieldSpec& f : row.field_list()) EXPECT_FALSE(f.doc.empty()) << row.info.mnemonic << " " << f.name;
  }
  const auto size = []<class... I>(InstructionList<I...>) { return static_cast<int>(sizeof...(I)); };
  EXPECT_EQ(count, size(collectives::Instructions{}) + size(control::Instructions{}) + size(cores::Instructions{}) +
                       size(dma_engine::Instructions{}) + size(gpsimd_engine::Instructions{}) +
                       size(scalar_engine::Instructions{}) + size(tensor_engine::Instructions{}) +
                       size(vector_engine::Instructions{}))
      << "two instructions share an opcode, or an engine is missing here";
  EXPECT_EQ(find_instruction("no_such_instruction"), nullptr);
}

}  // namespace
}  // namespace sterna::gpsimd_engine
