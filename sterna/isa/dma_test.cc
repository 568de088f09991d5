// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/dma.h"

#include "sterna/isa/test_fixture.h"

namespace sterna::dma_engine {
namespace {

class Dma : public IsaTest {
 protected:
  View hbm(const Shape& shape, const Values& values, DType dtype = kF32) {
    return with(shape, values, dtype, Memory::kHbm);
  }
  View indices(const Words& words) { return with_bits({static_cast<int64_t>(words.size()), 1}, words, kU32); }
};

// --- dma_copy

TEST_F(Dma, CopyKeepsOrderOverDifferentShapes) {
  const View src = hbm({4, 6}, ramp(24)), d = make({8, 3});
  EXPECT_RUNS((DmaCopy{d, src}));
  EXPECT_EQ(get(d), ramp(24));
  const View back = make({2, 3, 4}, kF32, Memory::kHbm);
  EXPECT_RUNS((DmaCopy{back, d}));
  EXPECT_EQ(get(back), ramp(24));
}

TEST_F(Dma, CopyConvertsThroughFp32) {
  const View d = make({1, 3}, DType::kInt8), src = hbm({1, 3}, {1.5, 300, -2.5});
  EXPECT_RUNS((DmaCopy{d, src}));
  EXPECT_EQ(get(d), (Values{2, 127, -2}));
  EXPECT_REFUSED("DMA3", (DmaCopy{d, src, -1, OobMode::kError, DgeMode::kHardware}));
}

TEST_F(Dma, CopyMovesDefinedness) {
  const View src = make({2, 3}, kF32, Memory::kHbm), d = make({2, 3});
  set(part(src, 1, 2, 0, 2), {1, 2});
  EXPECT_RUNS((DmaCopy{d, src}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, false, false, true, true, false}));
}

TEST_F(Dma, CopyReadsPartialOverlapsFirst) {
  const View t = hbm({8}, ramp(8));
  const IndexItem front[1] = {{IndexItem::Kind::kSlice, 0, 6, 1}}, back[1] = {{IndexItem::Kind::kSlice, 2, 8, 1}};
  EXPECT_RUNS((DmaCopy{*index_view(t, back), *index_view(t, front)}));
  EXPECT_EQ(get(t), (Values{0, 1, 0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(warned("ALIAS1"));
}

TEST_F(Dma, GatherTakesRowsByIndex) {
  const View table = hbm({5, 2}, ramp(10)), d = make({4, 2});
  EXPECT_RUNS((DmaCopy{d, indirect(table, indices({3, 0, 4, 3}))}));
  EXPECT_EQ(get(d), (Values{6, 7, 0, 1, 8, 9, 6, 7}));
  EXPECT_TRUE(m_.is_defined(d));
}

TEST_F(Dma, GatherOutsideIsRefusedOrSkipped) {
  const View table = hbm({5, 2}, ramp(10), kI32), d = make({3, 2}, kI32);
  set(part(d, 1, 2, 0, 1), {77});
  const View from = indirect(table, indices({4, 5, 0}));
  EXPECT_REFUSED("DMA4", (DmaCopy{d, from}));
  EXPECT_RUNS((DmaCopy{d, from, -1, OobMode::kSkip}));
  EXPECT_EQ(defined(d), (std::vector<bool>{true, true, true, false, true, true}));
  EXPECT_EQ(get(d)[0], 8);
  EXPECT_EQ(get(d)[2], 77);
  EXPECT_EQ(get(d)[5], 1);
}

TEST_F(Dma, GatherOfUndefinedRowsLeavesThemUndefined) {
  const View table = make({3, 2}, kF32, Memory::kHbm), d = make({2, 2});
  set(part(table, 1, 2, 0, 2), {1, 2});
  EXPECT_RUNS((DmaCopy{d, indirect(table, indices({1, 2}))}));
  EXPECT_EQ(defined(d), (std::vector<bool>{true, true, false, false}));
}

TEST_F(Dma, ScatterWritesRowsByIndex) {
  const View table = make({5, 2}, kF32, Memory::kHbm), src = with({3, 2}, ramp(6, 1));
  EXPECT_RUNS((DmaCopy{indirect(table, indices({4, 0, 2})), src}));
  EXPECT_EQ(defined(table), (std::vector<bool>{true, true, false, false, true, true, false, false, true, true}));
  EXPECT_EQ(get(part(table, 0, 1, 0, 2)), (Values{3, 4}));
  EXPECT_EQ(get(part(table, 4, 5, 0, 2)), (Values{1, 2}));
  const View outside = indirect(table, indices({1, 9, 0xffffffff}));
  EXPECT_REFUSED("DMA4", (DmaCopy{outside, src}));
  EXPECT_RUNS((DmaCopy{outside, src, -1, OobMode::kSkip}));
  EXPECT_EQ(get(part(table, 1, 2, 0, 2)), (Values{1, 2}));
  EXPECT_EQ(defined(table), (std::vector<bool>{true, true, true, true, true, true, false, false, true, true}));
}

TEST_F(Dma, ScalarOffsetMovesTheStart) {
  const View table = hbm({6, 2}, ramp(12)), d = make({2, 2});
  View window = part(table, 0, 2, 0, 2);
  window.kind = ViewKind::kDynamic;
  dynamics_.push_back({DynamicOffset::Source::kRegister, 3, {}, 2, 6});
  window.dynamic = 0;
  m_.set_reg(3, 4);
  EXPECT_RUNS((DmaCopy{d, window}));
  EXPECT_EQ(get(d), (Values{8, 9, 10, 11}));
  m_.set_reg(3, 5);
  EXPECT_REFUSED("DYN2", (DmaCopy{d, window}));
  m_.set_reg(3, -1);
  EXPECT_REFUSED("DYN1", (DmaCopy{d, window}));
}

TEST_F(Dma, StartsOutsideAreSkipped) {
  const View table = hbm({6, 2}, ramp(12)), tile = with({2, 2}, {7, 7, 7, 7});
  View window = part(table, 0, 2, 0, 2);
  window.kind = ViewKind::kDynamic;
  dynamics_.push_back({DynamicOffset::Source::kRegister, 3, {}, 2, 6});
  window.dynamic = 0;
  for (const int outside : {-1000000, 6}) {
    m_.set_reg(3, outside);
    EXPECT_REFUSED("DYN1", (DmaCopy{window, tile}));
    EXPECT_RUNS((DmaCopy{window, tile, -1, OobMode::kSkip}));
    EXPECT_EQ(get(table), ramp(12));
    EXPECT_RUNS((DmaCopy{tile, window, -1, OobMode::kSkip}));
    EXPECT_EQ(get(tile), (Values{7, 7, 7, 7}));
  }
  m_.set_reg(3, 5);  // the start is inside, the window leaves the table: no index to skip
  EXPECT_REFUSED("DYN2", (DmaCopy{window, tile, -1, OobMode::kSkip}));
}

TEST_F(Dma, UndefinedIndicesAreRefused) {
  const View table = hbm({5, 2}, ramp(10)), d = make({3, 2});
  EXPECT_REFUSED("UNINIT1", (DmaCopy{d, indirect(table, make({3, 1}, kU32))}));
  View few = indirect(table, indices({1, 2}));
  few.dims[0].count = 3;
  EXPECT_REFUSED("DYN3", (DmaCopy{d, few}));
}

TEST_F(Dma, CopyRefusals) {
  const View h = hbm({4, 6}, ramp(24)), d = make({4, 6});
  EXPECT_REFUSED("DMA1", (DmaCopy{make({4, 6}, kF32, Memory::kPsum), h}));
  EXPECT_REFUSED("DMA2", (DmaCopy{make({4, 5}), h}));
  EXPECT_REFUSED("ARG2", (DmaCopy{d, View{}}));
  EXPECT_REFUSED("DMA5", (DmaCopy{d, h, 1}));
  use_chip("trn1");
  EXPECT_REFUSED("DMA6", (DmaCopy{d, h, -1, OobMode::kError, DgeMode::kHardware}));
  float fixed[2] = {1, 2};
  const View bound = make({1, 2}, kF32, Memory::kHbm);
  ASSERT_TRUE(m_.bind(bound.tensor, fixed, false));
  EXPECT_REFUSED("ARG1", (DmaCopy{bound, with({1, 2}, {3, 4})}));
  EXPECT_EQ(fixed[0], 1);
}

TEST_F(Dma, WorkCountsDescriptorsAndHbmBytes) {
  const View h = make({128, 64}, kF32, Memory::kHbm), d = make({128, 64});
  const Work whole = work(DmaCopy{d, h});
  EXPECT_EQ(whole.descriptors, 128);
  EXPECT_EQ(whole.hbm_read, 128 * 64 * 4);
  EXPECT_EQ(whole.hbm_written, 0);
  EXPECT_FALSE(whole.store);
  EXPECT_EQ(work(DmaCopy{part(h, 0, 128, 0, 16), part(d, 0, 128, 0, 16)}).descriptors, 128);
  EXPECT_TRUE(work(DmaCopy{h, d}).store);
}

// --- dma_transpose

TEST_F(Dma, TransposeOfRankTwo) {
  for (DType t : {kF32, kBf16, DType::kUInt8}) {
    const View src = hbm({5, 7}, ramp(35), t), d = make({7, 5}, t);
    EXPECT_RUNS((DmaTranspose{d, src}));
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 7; ++j) EXPECT_EQ(get(d)[j * 5 + i], static_cast<float>(i * 7 + j));
  }
}

TEST_F(Dma, TransposeOfRanksThreeAndFour) {
  const View three = hbm({2, 3, 4}, ramp(24)), d3 = make({4, 3, 2});
  EXPECT_RUNS((DmaTranspose{d3, three, {3, {2, 1, 0}}}));
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(get(d3)[(i % 4) * 6 + (i / 4 % 3) * 2 + i / 12], static_cast<float>(i));
  const View four = with({2, 3, 4, 5}, ramp(120)), d4 = make({5, 3, 4, 2});
  EXPECT_RUNS((DmaTranspose{d4, four, {4, {3, 1, 2, 0}}}));
  for (size_t i = 0; i < 120; ++i)
    EXPECT_EQ(get(d4)[(i % 5) * 24 + (i / 20 % 3) * 8 + (i / 5 % 4) * 2 + i / 60], static_cast<float>(i));
}

TEST_F(Dma, TransposeOfStridedSourceAndInPlace) {
  const View h = hbm({6, 8}, ramp(48)), d = make({4, 3});
  const IndexItem odd[2] = {{IndexItem::Kind::kSlice, 0, 6, 2}, {IndexItem::Kind::kSlice, 1, 8, 2}};
  EXPECT_RUNS((DmaTranspose{d, *index_view(h, odd)}));
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(get(d)[j * 3 + i], static_cast<float>(16 * i + 2 * j + 1));
  const View square = with({3, 3}, ramp(9));
  EXPECT_RUNS((DmaTranspose{square, square}));
  EXPECT_EQ(get(square), (Values{0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

TEST_F(Dma, TransposeMovesDefinedness) {
  const View src = make({2, 3}, kF32, Memory::kHbm), d = make({3, 2});
  set(part(src, 1, 2, 0, 2), {1, 2});
  EXPECT_RUNS((DmaTranspose{d, src}));
  EXPECT_EQ(defined(d), (std::vector<bool>{false, true, false, true, false, false}));
}

TEST_F(Dma, GatheringTransposeReadsIndicesColumnByColumn) {
  // Index tensor [[1, 3], [2, 0]]: in the order of its columns 1, 2, 3, 0.
  const View table = hbm({4, 3}, ramp(12), kBf16), index = with_bits({2, 2}, {1, 3, 2, 0}, kU32),
             d = make({3, 4}, kBf16);
  EXPECT_RUNS((DmaTranspose{d, indirect(table, index)}));
  const size_t row[4] = {1, 2, 3, 0};
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(get(d)[j * 4 + i], static_cast<float>(row[i] * 3 + j));
}

TEST_F(Dma, GatheringTransposeSkipsRowsOutside) {
  const View table = hbm({4, 3}, ramp(12), kBf16), d = make({3, 2}, kBf16);
  set(part(d, 0, 1, 1, 2), {50});
  const View from = indirect(table, indices({2, 4}));
  EXPECT_REFUSED("DMA4", (DmaTranspose{d, from}));
  DmaTranspose skip{d, from};
  skip.oob_mode = OobMode::kSkip;
  EXPECT_RUNS(skip);
  EXPECT_EQ(defined(d), (std::vector<bool>{true, true, true, false, true, false}));
  EXPECT_EQ(get(d)[1], 50);
  EXPECT_EQ(get(d)[4], 8);
}

TEST_F(Dma, TransposeRefusals) {
  const View h = hbm({4, 6}, ramp(24)), d = make({6, 4});
  EXPECT_REFUSED("DT1", (DmaTranspose{d, h, {2, {0, 1}}}));
  EXPECT_REFUSED("DT1", (DmaTranspose{d, hbm({24}, ramp(24))}));
  EXPECT_REFUSED("DT2", (DmaTranspose{make({6, 4}, kF32, Memory::kHbm), h}));
  EXPECT_REFUSED("DT3", (DmaTranspose{make({4, 6}), h}));
  EXPECT_REFUSED("DT4", (DmaTranspose{make({6, 4}, kBf16), h}));
  DmaTranspose hardware{d, h};
  hardware.dge_mode = DgeMode::kHardware;
  EXPECT_REFUSED("DT5", hardware);
  strict_ = true;
  EXPECT_REFUSED("DT3", (DmaTranspose{make({4, 6}), hbm({2, 3, 4}, ramp(24))}));
  EXPECT_REFUSED("DT6", (DmaTranspose{make({6, 2}), indirect(h, indices({0, 1}))}));
}

// --- dma_compute

TEST_F(Dma, ComputeAddsInOrderInFp32) {
  const View a = hbm({2, 3}, {1e8f, 1, 2, 3, 4, 5}), b = with({2, 3}, {1, 1, 1, 1, 1, 1}),
             c = with({1, 6}, {-1e8f, 2, 2, 2, 2, 2}, kBf16), d = make({2, 3});
  DmaCompute i{d, a, b, c};
  EXPECT_RUNS(i);
  const float first = (1e8f + 1.0f) + get(c)[0];
  EXPECT_EQ(get(d), (Values{first, 4, 5, 6, 7, 8}));
  EXPECT_EQ(work(i).hbm_read, 24);
}

TEST_F(Dma, ComputeScattersAndGathersWithAddition) {
  const View table = hbm({4, 2}, ramp(8)), src = with({2, 2}, {10, 20, 30, 40});
  const View rows = indirect(table, indices({3, 1}));
  EXPECT_RUNS((DmaCompute{rows, rows, src}));
  EXPECT_EQ(get(table), (Values{0, 1, 2 + 30, 3 + 40, 4, 5, 6 + 10, 7 + 20}));
  EXPECT_RUNS((DmaCompute{src, src, rows}));
  EXPECT_EQ(get(src), (Values{26, 47, 62, 83}));
  DmaCompute outside{src, src, indirect(table, indices({0, 4}))};
  EXPECT_REFUSED("DMA4", outside);
  outside.oob_mode = OobMode::kSkip;
  EXPECT_RUNS(outside);
  EXPECT_EQ(get(src), (Values{26, 48, 62, 83}));
}

// A front end makes a new row of the table of dynamic offsets for each argument.
TEST_F(Dma, ComputeKnowsItsReadModifyWriteByWhereItPoints) {
  const View table = hbm({4, 2}, ramp(8)), src = with({2, 2}, {10, 20, 30, 40}), at = indices({3, 1});
  const View written = indirect(table, at), read = indirect(table, at);
  ASSERT_NE(written.dynamic, read.dynamic);
  EXPECT_RUNS((DmaCompute{written, read, src}));
  EXPECT_EQ(get(table), (Values{0, 1, 2 + 30, 3 + 40, 4, 5, 6 + 10, 7 + 20}));
  EXPECT_FALSE(warned("ALIAS1"));
}

TEST_F(Dma, LimitsComeFromTheChip) {
  use_chip("trn3");
  const View h = hbm({4, 6}, ramp(24)), d = make({4, 6});
  DmaCopy copy{d, h};
  copy.priority = 3;
  EXPECT_RUNS(copy);
  copy.priority = 4;
  EXPECT_REFUSED("DMA5", copy);
  chip_.limits.dma_priorities.value = 5;
  EXPECT_RUNS(copy);
}

TEST_F(Dma, ComputeRefusals) {
  const View a = hbm({2, 3}, ramp(6)), d = make({2, 3});
  DmaCompute i{d, a, a};
  i.reduce_op = AluOp::kMaximum;
  EXPECT_REFUSED("DC1", i);
  EXPECT_REFUSED("DC2", (DmaCompute{d}));
  EXPECT_REFUSED("DMA2", (DmaCompute{d, a, hbm({2, 2}, ramp(4))}));
  EXPECT_REFUSED("DMA1", (DmaCompute{d, a, with({2, 3}, ramp(6), kF32, Memory::kPsum)}));
  EXPECT_REFUSED("UNINIT1", (DmaCompute{d, a, make({2, 3})}));
  const View rows = indirect(a, indices({1, 0}));
  DmaCompute repeated{rows, rows, with({2, 3}, ramp(6))};
  repeated.unique_indices = false;
  EXPECT_REFUSED("DC3", repeated);
  EXPECT_REFUSED("DC2", (DmaCompute{rows, rows, a, a}));
}

}  // namespace
}  // namespace sterna::dma_engine
