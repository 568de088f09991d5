// SPDX-License-Identifier: Apache-2.0
// For every chip file: an instruction alone lasts as long as the documents' formula says. Expectations are written from
// the cost column of the nki.isa docstrings (Neuron SDK 2.26: cycles, N elements of a partition, 64 cycles least
// interval), the clocks and wide modes of the architecture guides, and the static overhead of about 100 cycles of the
// performance guide; not from the code.
#include "sterna/timing/formulas.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sterna/timing/kernel_for_test.h"

namespace sterna {
namespace {

constexpr DType kBf16 = DType::kBFloat16, kFp32 = DType::kFloat32;
constexpr double kStaticOverhead = 100;  // cycles, vector, scalar, GpSimd

/// GHz by generation: architecture guides.
struct Clocks {
  double tensor, vector, scalar, gpsimd;
};
Clocks documented_clocks(const Chip& chip) {
  switch (int64_t{chip.generation}) {
    case 2: return {2.8, 1.12, 1.4, 1.4};
    case 3: return {2.4, 0.96, 1.2, 1.2};
    default: return {2.4, 1.2, 1.2, 1.2};
  }
}

class Formulas : public testing::TestWithParam<std::string> {
 protected:
  Formulas() : chip(chip_for_test(GetParam())), clocks(documented_clocks(chip)), k(chip) {}
  bool generation_from(int64_t least) const { return chip.generation >= least; }
  View in_sbuf(int64_t n, DType type = kFp32) { return k.sbuf({128, n}, type); }
  double measured_ns() {
    const Timing t = k.time();
    return t.instructions.empty() ? -1 : static_cast<double>(t.instructions.back().duration()) / 1000;
  }
  void expect_vector(double cycles) { EXPECT_NEAR(measured_ns(), (cycles + kStaticOverhead) / clocks.vector, 0.001); }
  void expect_scalar(double cycles) { EXPECT_NEAR(measured_ns(), (cycles + kStaticOverhead) / clocks.scalar, 0.001); }
  void expect_gpsimd(double cycles) { EXPECT_NEAR(measured_ns(), (cycles + kStaticOverhead) / clocks.gpsimd, 0.001); }
  /// `issue` cycles at full speed: the rate at which a long row of them runs, away from the ramp.
  void expect_tensor(double issue) { EXPECT_NEAR(measured_ns(), issue / clocks.tensor, 0.001); }

  const Chip chip;
  const Clocks clocks;
  KernelForTest k;
};

std::vector<std::string> chip_names() {
  std::vector<std::string> names;
  auto chips = list_chips();
  if (chips)
    for (const ChipHeader& header : *chips) names.push_back(header.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(EveryChip, Formulas, testing::ValuesIn(chip_names()),
                         [](const auto& row) { return row.param; });

TEST(FormulasSuite, CoversTheChipFiles) { EXPECT_GE(chip_names().size(), 5u); }

TEST_P(Formulas, TensorTensorTakesTwoCyclesAnElement) {
  k.add(in_sbuf(1000), in_sbuf(1000), in_sbuf(1000));
  expect_vector(2000);
}
TEST_P(Formulas, TensorTensorWithAnInputInPsumTakesOne) {
  k.add(in_sbuf(512), k.psum({128, 512}), in_sbuf(512));
  expect_vector(512);
}
TEST_P(Formulas, TensorTensorBf16TakesOne) {
  k.add(in_sbuf(1000, kBf16), in_sbuf(1000, kBf16), in_sbuf(1000, kBf16));
  expect_vector(1000);
}
TEST_P(Formulas, TheLeastIntervalIs64Cycles) {
  k.add(in_sbuf(8), in_sbuf(8), in_sbuf(8));
  expect_vector(64);
}
TEST_P(Formulas, ScalarTensorTensorTakesTwo) {
  vector_engine::ScalarTensorTensor i;
  i.dst = in_sbuf(300);
  i.data = in_sbuf(300);
  i.op0 = AluOp::kMultiply;
  i.operand0 = Scalar::of(2.0);
  i.op1 = AluOp::kAdd;
  i.operand1 = in_sbuf(300);
  k.record(i);
  expect_vector(600);
}
TEST_P(Formulas, ScalarTensorTensorBf16SubtractMultiplyTakesOne) {
  vector_engine::ScalarTensorTensor i;
  i.dst = in_sbuf(300, kBf16);
  i.data = in_sbuf(300, kBf16);
  i.op0 = AluOp::kSubtract;
  i.operand0 = Scalar::of(2.0);
  i.op1 = AluOp::kMultiply;
  i.operand1 = in_sbuf(300, kBf16);
  k.record(i);
  expect_vector(300);
}
TEST_P(Formulas, TensorScalar) {
  vector_engine::TensorScalar i;
  i.dst = in_sbuf(777);
  i.data = in_sbuf(777);
  i.op0 = AluOp::kAdd;
  i.operand0 = Scalar::of(1.0);
  k.record(i);
  expect_vector(777);
}
TEST_P(Formulas, CopyFp32TakesOne) {
  k.move(in_sbuf(1024), in_sbuf(1024));
  expect_vector(1024);
}
TEST_P(Formulas, CopyBf16RunsInWideModesFromGeneration3) {
  k.move(in_sbuf(1024, kBf16), in_sbuf(1024, kBf16));
  expect_vector(generation_from(3) ? 1024 / 4.0 : 1024);
}
TEST_P(Formulas, CopyBf16WithOneSideInPsumRunsAtTwice) {
  k.move(in_sbuf(512, kBf16), k.psum({128, 512}, kBf16));
  expect_vector(generation_from(3) ? 512 / 2.0 : 512);
}
TEST_P(Formulas, CopyOfFp32IsNeverWide) {
  k.move(in_sbuf(512, kBf16), k.psum({128, 512}));
  expect_vector(512);
}
TEST_P(Formulas, AStrideOf16BytesHalvesTheRate) {
  View every_fourth = in_sbuf(4096);
  every_fourth.dims[1] = {4, 1024};
  k.move(in_sbuf(1024), every_fourth);
  expect_vector(2 * 1024);
}
TEST_P(Formulas, AStrideOf8BytesDoesNot) {
  View every_second = in_sbuf(2048);
  every_second.dims[1] = {2, 1024};
  k.move(in_sbuf(1024), every_second);
  expect_vector(1024);
}
TEST_P(Formulas, TensorReduce) {
  vector_engine::TensorReduce i;
  i.dst = in_sbuf(1);
  i.data = in_sbuf(640);
  i.axis = {1, {1}};
  i.op = AluOp::kAdd;
  k.record(i);
  expect_vector(640);
}
TEST_P(Formulas, TensorReduceBf16AddTakesHalf) {
  vector_engine::TensorReduce i;
  i.dst = in_sbuf(1, kBf16);
  i.data = in_sbuf(640, kBf16);
  i.axis = {1, {1}};
  i.op = AluOp::kAdd;
  k.record(i);
  expect_vector(320);
}
TEST_P(Formulas, ReciprocalTakesEight) {
  vector_engine::Reciprocal i;
  i.dst = in_sbuf(100);
  i.data = in_sbuf(100);
  k.record(i);
  expect_vector(800);
}
TEST_P(Formulas, BnStatsAndBnAggr) {
  vector_engine::BnStats stats;
  stats.dst = in_sbuf(6);
  stats.data = in_sbuf(512);
  k.record(stats);
  expect_vector(512);
  vector_engine::BnAggr aggr;
  aggr.dst = in_sbuf(2);
  aggr.data = in_sbuf(96);
  k.record(aggr);
  expect_vector(13.0 * 96 / 3);
}
TEST_P(Formulas, TensorTensorScanTakesTwo) {
  vector_engine::TensorTensorScan i;
  i.dst = in_sbuf(200);
  i.data0 = in_sbuf(200);
  i.data1 = in_sbuf(200);
  i.initial = Scalar::of(0.0);
  i.op0 = AluOp::kMultiply;
  i.op1 = AluOp::kAdd;
  k.record(i);
  expect_vector(400);
}
TEST_P(Formulas, TensorScalarReduceReadsTheAccumulator) {
  vector_engine::TensorScalarReduce i;
  i.dst = in_sbuf(200);
  i.data = in_sbuf(200);
  i.op0 = AluOp::kAdd;
  i.operand0 = Scalar::of(1.0);
  i.reduce_op = AluOp::kAdd;
  i.reduce_res = in_sbuf(1);
  k.record(i);
  expect_vector(200 + 64);
}
TEST_P(Formulas, Max8) {
  vector_engine::Max8 i;
  i.dst = in_sbuf(8);
  i.src = in_sbuf(1000);
  k.record(i);
  expect_vector(1000);
}
TEST_P(Formulas, MemsetTakesHalfForZeroInTwoBytes) {
  k.fill(in_sbuf(512));
  expect_vector(512);
  k.fill(in_sbuf(512, kBf16));
  expect_vector(256);
}
TEST_P(Formulas, ActivationTakesOneAndItsSumSixtyFourMore) {
  k.activate(in_sbuf(2048), in_sbuf(2048));
  expect_scalar(2048);
  scalar_engine::Activation i;
  i.dst = in_sbuf(2048);
  i.data = in_sbuf(2048);
  i.op = Function::kExp;
  i.reduce_op = AluOp::kAdd;
  i.reduce_cmd = ReduceCmd::kResetReduce;
  i.reduce_res = in_sbuf(1);
  k.record(i);
  expect_scalar(2048 + 64);
}
TEST_P(Formulas, CopyOnTheScalarEngineIsWideFromGeneration4) {
  if (!generation_from(3)) GTEST_SKIP() << "not on this chip";
  k.move(in_sbuf(1024, kBf16), in_sbuf(1024, kBf16), EngineId::kScalar);
  expect_scalar(generation_from(4) ? 512 : 1024);
}
TEST_P(Formulas, GpSimdStartsIn150Cycles) {
  gpsimd_engine::Iota i;
  i.dst = k.sbuf({128, 400}, DType::kInt32);
  i.pattern.n = 1;
  i.pattern.steps[0] = {1, 400};
  k.record(i);
  expect_gpsimd(150 + 400);
}
TEST_P(Formulas, LocalGather) {
  // 150 + n e / C, C = ((28 + 4e) / (4e)) / min(4 / size, e)
  InstructionCost cost = *chip.instruction_cost("local_gather");
  Work w;
  w.engine = EngineId::kGpSimd;
  w.elements = 256 * 2;  // n = 256 indices of e = 2 elements
  w.per_index = 2;
  w.element_bytes = 2;
  const double c = ((28 + 4 * 2) / (4.0 * 2)) / std::min(4.0 / 2, 2.0);
  EXPECT_NEAR(gather_cycles(w, cost, chip.gpsimd), 150 + 512 / c, 1e-9);
}
TEST_P(Formulas, TopK) {
  Work w;
  w.elements = 1000;
  w.outputs = 64;
  EXPECT_DOUBLE_EQ(top_k_cycles(w, *chip.instruction_cost("topk")), 4 * 1000 + 64);
}

/// max(min(64, columns of stationary), columns of moving); four times for fp32. The last of a hundred runs at full
/// speed.
TEST_P(Formulas, Matmul) {
  struct Row {
    int64_t stationary, moving;
    DType type;
    double cycles;
  };
  for (const Row& row : {Row{128, 512, kBf16, 512}, Row{128, 128, kBf16, 128}, Row{128, 16, kBf16, 64},
                         Row{32, 16, kBf16, 32}, Row{128, 512, kFp32, 2048}, Row{128, 16, kFp32, 256}}) {
    const View p = k.psum({row.stationary, row.moving}), a = in_sbuf(row.stationary, row.type),
               b = in_sbuf(row.moving, row.type);
    for (int i = 0; i < 200; ++i) k.matmul(p, a, b);
    expect_tensor(row.cycles);
  }
}
TEST_P(Formulas, AnOperandOfOnesAndZerosHalvesFp32) {
  tensor_engine::NcMatmul m;
  m.dst = k.psum({128, 512});
  m.stationary = in_sbuf(128);
  m.moving = in_sbuf(512);
  m.is_moving_onezero = true;
  for (int i = 0; i < 20; ++i) k.record(m);
  expect_tensor(1024);
}
/// max(P, min(64, F)); fp32 twice as fast as its four passes from generation 3.
TEST_P(Formulas, TransposeOnTheTensorEngine) {
  for (DType type : {kBf16, kFp32}) {
    tensor_engine::NcTranspose t;
    t.data = in_sbuf(96, type);
    t.dst = k.psum({96, 128}, type);
    for (int i = 0; i < 200; ++i) k.record(t);
    expect_tensor(128 * (type == kBf16 ? 1 : generation_from(3) ? 2 : 4));
  }
}
TEST_P(Formulas, TransposeOnTheVectorEngine) {
  tensor_engine::NcTranspose t;
  t.data = k.sbuf({32, 32}, kFp32);
  t.dst = k.sbuf({32, 32}, kFp32);
  k.record(t);
  expect_vector(64);
}

/// B/ns of an engine as achieved, DMA guide: 17, 23, 33. 7 ns for each descriptor; 128 partitions are eight on each of
/// 16 engines.
double documented_dma_rate(const Chip& chip) {
  return chip.generation == 2 ? 17 : chip.generation == 3 ? 23 : chip.generation == 4 ? 33 : 132;
}

TEST_P(Formulas, TransferOf128Partitions) {
  k.copy(in_sbuf(1024), k.hbm({128, 1024}, kFp32));
  EXPECT_NEAR(measured_ns(), 8 * (7 + 4096 / documented_dma_rate(chip)), 0.001);
}
TEST_P(Formulas, TransferOfOnePartition) {
  k.copy(k.sbuf({1, 512}, kFp32), k.hbm({1, 512}, kFp32));
  EXPECT_NEAR(measured_ns(), 7 + 2048 / documented_dma_rate(chip), 0.001);
}
TEST_P(Formulas, TransferInPiecesOfFourBytes) {
  View column = k.hbm({128, 64}, kFp32);
  column.dims[1] = {2, 32};  // every second element: 32 descriptors of 4 bytes in each partition
  k.copy(in_sbuf(32), column);
  EXPECT_NEAR(measured_ns(), 8 * 32 * (7 + 4 / documented_dma_rate(chip)), 0.001);
}
TEST_P(Formulas, TransposingTransferRunsAtNineTenths) {
  if (!chip.features.dma_transpose) GTEST_SKIP() << "not on this chip";
  dma_engine::DmaTranspose t;
  t.dst = k.sbuf({128, 512}, kBf16);
  t.src = k.hbm({512, 128}, kBf16);
  k.record(t);
  EXPECT_NEAR(measured_ns(), 8 * (7 + 1024 / (0.9 * documented_dma_rate(chip))), 0.001);
}

TEST_P(Formulas, DynamicAddressesTake600Cycles) {
  const InstructionCost& cost = *chip.instruction_cost("tensor_copy");
  Work w;
  w.engine = EngineId::kVector;
  w.elements = 128;
  w.dynamic = true;
  EXPECT_NEAR(engine_ns(w, cost, chip, false), (600 + kStaticOverhead) / clocks.vector, 0.001);
  w.elements = 1000;
  EXPECT_NEAR(engine_ns(w, cost, chip, false), (1000 + kStaticOverhead) / clocks.vector, 0.001);
}

/// What a document of NKI defines has an entry of its own; anything else may take its engine's default, which a
/// prediction lists as assumed (TimingDefaults).
TEST_P(Formulas, EveryDocumentedInstructionOfTheChipHasACost) {
  for (const TableRow& row : instruction_table()) {
    if (row.info.mnemonic.empty() || row.info.opcode <= control::DevicePrint::info.opcode) continue;
    if (!chip.has_instruction(row.info.mnemonic) || !row.info.source.starts_with("nki.")) continue;
    EXPECT_NE(chip.instruction_cost(row.info.mnemonic), nullptr) << row.info.mnemonic;
  }
}

// ---- Where cores and ranks meet

TEST(Collective, RingsMoveAllButOnePartAndTakeAStepForEachPartner) {
  const Hop hop{100, 1000};  // bytes/ns, ns
  EXPECT_DOUBLE_EQ(ring_ns(8e5, 4, hop), 6000 + 3 * 1000);
  EXPECT_DOUBLE_EQ(all_reduce_ns(8e5, 4, hop), 2 * (6000 + 3 * 1000));
  EXPECT_DOUBLE_EQ(all_to_all_ns(8e5, 4, hop), 6000 + 1000);
  EXPECT_DOUBLE_EQ(permute_ns(8e5, hop), 8000 + 1000);
  EXPECT_DOUBLE_EQ(ring_ns(8e5, 1, hop), 0) << "alone";
  EXPECT_DOUBLE_EQ(all_to_all_ns(8e5, 1, hop), 0);
}

/// A published nccom-test sweep of all-reduce, platform inferred to be trn1; two ranks lie on one chip. Its 1 KiB and 1
/// GiB rows gave the numbers of the chip file, the others did not.
TEST(Collective, PublishedAllReducesOfTrn1) {
  const Chip chip = chip_for_test("trn1");
  struct Row {
    int ranks;
    double bytes, us, tolerance;
  };
  constexpr double kKiB = 1024, kMiB = 1024 * kKiB;
  const Row rows[] = {{2, kKiB, 2.1, .02},      {2, 64 * kKiB, 3.5, .1}, {2, kMiB, 18.7, .15},
                      {2, 16 * kMiB, 296, .02}, {16, kMiB, 60.2, .05},   {16, 16 * kMiB, 480, .05},
                      {8, 16 * kMiB, 466, .05}};
  for (const Row& row : rows) {
    const double us = all_reduce_ns(row.bytes, row.ranks, hop_of(chip.link, row.ranks > chip.cores)) / 1000;
    EXPECT_NEAR(us / row.us, 1, row.tolerance) << row.ranks << " ranks, " << row.bytes << " bytes: " << us << " us";
  }
}

TEST(Meeting, BarriersAndGpSimd) {
  const Chip chip = chip_for_test("trn2");
  EXPECT_DOUBLE_EQ(barrier_ns(chip), 9);
  EXPECT_DOUBLE_EQ(gpsimd_send_ns(153000, chip), 1000 + 100 / 1.2);
}

}  // namespace
}  // namespace sterna
