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
  /// `v`, started by register 3: `step` elements for each of its `limit` places.
  View moving(View v, int64_t step, int64_t limit) {
    dynamics_.push_back({DynamicOffset::Source::kRegister, 3, {}, step, limit});
    v.kind = ViewKind::kDynamic;
    v.dynamic = static_cast<uint32_t>(dynamics_.size() - 1);
    return v;
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
  const View window = moving(part(table, 0, 2, 0, 2), 2, 6);
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
  const View window = moving(part(table, 0, 2, 0, 2), 2, 6);
  for (const int outside : {-1000000, 6}) {
    m_.set_reg(3, outside);
    EXPECT_REFUSED("DYN1", (DmaCopy{window, tile}));
    EXPECT_RUNS((DmaCopy{window, tile, -1, OobMode::kSkip}));
    EXPECT_EQ(get(table), ramp(12));
    EXPECT_RUNS((DmaCopy{tile, window, -1, OobMode::kSkip}));
    EXPECT_EQ(get(tile), (Values{7, 7, 7, 7}));
  }
  m_.set_reg(3, 5);  // the start is inside, the window leaves the table
  EXPECT_REFUSED("DYN2", (DmaCopy{window, tile}));
  EXPECT_RUNS((DmaCopy{window, tile, -1, OobMode::kSkip}));
  EXPECT_EQ(get(table), ramp(12));
  EXPECT_RUNS((DmaCopy{tile, window, -1, OobMode::kSkip}));
  EXPECT_EQ(get(tile), (Values{7, 7, 7, 7}));
}

TEST_F(Dma, TransposesOfStartsOutsideAreSkipped) {
  const View table = hbm({6, 2}, ramp(12)), tile = with({2, 2}, {7, 7, 7, 7});
  const View window = moving(part(table, 0, 2, 0, 2), 2, 6);
  DmaTranspose turn{tile, window};
  for (const auto& [start, rule] : {std::pair(-3, "DYN1"), {6, "DYN1"}, {5, "DYN2"}}) {
    m_.set_reg(3, start);
    turn.oob_mode = OobMode::kError;
    EXPECT_REFUSED(rule, turn);
    turn.oob_mode = OobMode::kSkip;
    EXPECT_RUNS(turn);
    EXPECT_EQ(get(tile), (Values{7, 7, 7, 7}));
  }
  m_.set_reg(3, 4);
  EXPECT_RUNS(turn);
  EXPECT_EQ(get(tile), (Values{8, 10, 9, 11}));
}

// nki.isa.dma_copy: 'engine' is sync or scalar, with dge_mode hwdge; rows by index by software only, from SBUF.
TEST_F(Dma, CopyAsksWhoMakesTheDescriptors) {
  const View h = hbm({4, 6}, ramp(24)), d = make({4, 6});
  auto copy = [](const View& to, const View& from, DgeMode mode, EngineId engine = EngineId::kUnknown) {
    return DmaCopy{to, from, -1, OobMode::kError, mode, engine};
  };
  EXPECT_RUNS(copy(d, h, DgeMode::kHardware, EngineId::kSync));
  EXPECT_RUNS(copy(d, h, DgeMode::kHardware, EngineId::kScalar));
  EXPECT_REFUSED("DMA7", copy(d, h, DgeMode::kHardware, EngineId::kGpSimd));
  EXPECT_REFUSED("DMA7", copy(d, h, DgeMode::kUnknown, EngineId::kSync));
  EXPECT_REFUSED("DMA7", copy(d, h, DgeMode::kSoftware, EngineId::kScalar));
  const View rows = indirect(h, indices({3, 1, 0, 2}));
  EXPECT_RUNS(copy(d, rows, DgeMode::kSoftware));
  EXPECT_REFUSED("DMA8", copy(d, rows, DgeMode::kHardware));
  EXPECT_REFUSED("DMA8", copy(rows, d, DgeMode::kNone));
  const View far = indirect(h, with_bits({4, 1}, {3, 1, 0, 2}, kU32, Memory::kHbm));
  EXPECT_FALSE(warned("DMA9"));
  EXPECT_RUNS(copy(d, far, DgeMode::kUnknown));
  EXPECT_TRUE(warned("DMA9"));
  const View window = moving(part(h, 0, 2, 0, 6), 6, 4);
  m_.set_reg(3, 1);
  EXPECT_RUNS(copy(part(d, 0, 2, 0, 6), window, DgeMode::kHardware));
  EXPECT_FALSE(warned("DMA8"));
  EXPECT_RUNS(copy(part(d, 0, 2, 0, 6), window, DgeMode::kNone));
  EXPECT_TRUE(warned("DMA8"));
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

// nki.isa.dma_transpose, "DMA Direct Transpose Constraints"
TEST_F(Dma, WhatHardwareDescriptorsTranspose) {
  auto turn = [&](const Shape& shape, DType type = kBf16) {
    DmaTranspose i{make(Shape(shape.rbegin(), shape.rend()), type), make(shape, type, Memory::kHbm)};
    if (shape.size() == 4) i.dst = make({shape[3], shape[1], shape[2], shape[0]}, type);
    i.dge_mode = DgeMode::kHardware;
    return i;
  };
  for (const Shape& shape : std::vector<Shape>{
           {16, 128}, {16, 1}, {16, 5, 64}, {8, 2, 128}, {4, 4, 7}, {1, 16, 3}, {2, 3, 8, 128}, {16, 2, 3, 4}})
    EXPECT_EQ(rule_of(turn(shape).check(rules())), "none") << shape_text(shape);
  for (const Shape& shape :
       std::vector<Shape>{{8, 128}, {1, 16}, {32, 16}, {4, 3, 7}, {8, 16, 1, 4}, {3, 16, 4}, {32, 2, 4}})
    EXPECT_EQ(rule_of(turn(shape).check(rules())), "DT5") << shape_text(shape);
  EXPECT_REFUSED("DT5", turn({16, 64}, kF32));
}

TEST_F(Dma, ADirectTransposeHasItsModes) {
  DmaTranspose turn{make({6, 4}), hbm({4, 6}, ramp(24))};
  turn.dge_mode = DgeMode::kSoftware;
  EXPECT_REFUSED("DT7", turn);
  turn.dge_mode = DgeMode::kNone;  // kernels of NKI 0.3 ask for it
  EXPECT_RUNS(turn);
  EXPECT_TRUE(warned("DT7"));
}

// nki.isa.dma_transpose, "DMA Indirect Transpose Constraints"
TEST_F(Dma, WhatAGatheringTransposeAsksFor) {
  auto size_of_shape = [](const Shape& shape) {
    size_t n = 1;
    for (int64_t count : shape) n *= static_cast<size_t>(count);
    return n;
  };
  auto turn = [&](const Shape& table, const Shape& index, DType type = kU32, Memory memory = Memory::kSbuf) {
    const size_t n = size_of_shape(index);
    const View from =
        indirect(hbm(table, Values(size_of_shape(table)), kBf16), with_bits(index, Words(n), type, memory));
    Shape to(table.rbegin(), table.rend());
    if (table.size() == 4) to = {table[3], table[1], table[2], table[0]};
    to.back() = static_cast<int64_t>(n);
    return DmaTranspose{make(to, kBf16), from};
  };
  auto remarked = [&](const DmaTranspose& i) {
    remarks_.clear();
    EXPECT_EQ(rule_of(DmaTranspose(i).check(rules())), "none");
    return warned("DT6");
  };
  EXPECT_FALSE(remarked(turn({20, 128}, {16, 1})));
  EXPECT_FALSE(remarked(turn({20, 128}, {128, 2})));
  EXPECT_FALSE(remarked(turn({20, 1, 5, 8}, {32, 1})));
  EXPECT_TRUE(remarked(turn({20, 2, 5, 8}, {32, 1})));
  EXPECT_TRUE(remarked(turn({20, 8}, {8, 1})));                       // a multiple of 16 rows
  EXPECT_TRUE(remarked(turn({20, 8}, {64, 2})));                      // 128 where there are two columns
  EXPECT_TRUE(remarked(turn({20, 8}, {8, 2})));                       // 16 to 128 partitions
  EXPECT_TRUE(remarked(turn({20, 8}, {16, 1}, kI32)));                // uint32
  EXPECT_TRUE(remarked(turn({20, 8}, {16, 1}, kU32, Memory::kHbm)));  // in SBUF
  EXPECT_TRUE(remarked(turn({20, 8}, {16, 1, 1})));                   // rank 2
  DmaTranspose none_mode = turn({20, 8}, {16, 1});
  none_mode.dge_mode = DgeMode::kNone;
  EXPECT_TRUE(remarked(none_mode));
  use_chip("trn1");
  EXPECT_REFUSED("DT6", turn({20, 8}, {16, 1}));
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
  const View window = moving(part(a, 0, 1, 0, 3), 3, 2);
  EXPECT_REFUSED("DC5", (DmaCompute{make({1, 3}), window, window}));
  EXPECT_REFUSED("DC5", (DmaCompute{window, with({1, 3}, ramp(3)), with({1, 3}, ramp(3))}));
}

// nki.isa.dma_compute, "Read-Modify-Write with vector_offset": dst is one of the sources, rows are in HBM, the other in
// SBUF.
TEST_F(Dma, ComputeRefusesOtherReadModifyWrites) {
  const View table = hbm({4, 2}, ramp(8)), tile = with({2, 2}, ramp(4)), other = with({2, 2}, ramp(4));
  const View rows = indirect(table, indices({3, 1})), others = indirect(table, indices({0, 2}));
  EXPECT_RUNS((DmaCompute{rows, tile, rows}));
  EXPECT_RUNS((DmaCompute{tile, rows, tile}));
  EXPECT_REFUSED("DC6", (DmaCompute{rows, tile, other}));
  EXPECT_REFUSED("DC6", (DmaCompute{rows, others, tile}));
  EXPECT_REFUSED("DC6", (DmaCompute{tile, rows, other}));
  EXPECT_REFUSED("DC6", (DmaCompute{tile, rows, others}));
  EXPECT_REFUSED("DC6", (DmaCompute{rows, rows, hbm({2, 2}, ramp(4))}));
  const View flat = hbm({2, 2}, ramp(4));
  EXPECT_REFUSED("DC6", (DmaCompute{flat, flat, rows}));
  EXPECT_FALSE(warned("DMA9"));
  EXPECT_RUNS((DmaCompute{tile, tile, indirect(table, with_bits({2, 1}, {3, 1}, kU32, Memory::kHbm))}));
  EXPECT_TRUE(warned("DMA9"));
}

TEST_F(Dma, ARowScatteredToTwiceIsRemarked) {
  const View table = hbm({4, 2}, ramp(8)), tile = with({2, 2}, {10, 20, 30, 40});
  const View once = indirect(table, indices({3, 1})), twice = indirect(table, indices({1, 1}));
  EXPECT_RUNS((DmaCompute{once, once, tile}));
  EXPECT_RUNS((DmaCompute{tile, tile, twice}));  // a gather reads, twice or not
  EXPECT_FALSE(warned("DC7"));
  EXPECT_RUNS((DmaCompute{twice, twice, tile}));
  EXPECT_TRUE(warned("DC7"));
}

}  // namespace
}  // namespace sterna::dma_engine
