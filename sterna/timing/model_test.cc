// SPDX-License-Identifier: Apache-2.0
// Starts and their causes: for each kind of wait a small program, and the instruction starts exactly when what it waits
// for is over, not a picosecond before. What holds for every program is in model_properties_test.cc.
#include "sterna/timing/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sterna/timing/kernel_for_test.h"

namespace sterna {
namespace {

constexpr DType kFp32 = DType::kFloat32, kBf16 = DType::kBFloat16;

int64_t ps(double ns) { return std::llround(ns * 1000); }

class Model : public testing::Test {
 protected:
  Model() : chip(chip_for_test("trn2")), k(chip) {}

  View tile(int64_t columns = 512, DType type = kFp32) { return k.sbuf({128, columns}, type); }
  void expect(const Timing& t, size_t i, Cause cause, uint32_t by, int64_t start) {
    ASSERT_LT(i, t.instructions.size());
    EXPECT_EQ(t.instructions[i].cause, cause) << name(t.instructions[i].cause);
    EXPECT_EQ(t.instructions[i].cause_instruction, by);
    EXPECT_EQ(t.instructions[i].start, start);
  }
  int64_t semaphore() const { return ps(chip.semaphore.latency); }

  Chip chip;
  KernelForTest k;
};

TEST_F(Model, TheFirstInstructionStartsWithTheKernel) {
  k.fill(tile());
  const Timing t = k.time();
  expect(t, 0, Cause::kLaunch, kNoInstruction, 0);
  EXPECT_EQ(t.kernel_ps, t.instructions[0].end);
  EXPECT_EQ(t.total_ps, t.kernel_ps + ps(13000));  // the launch
}

TEST_F(Model, AnEngineRunsInOrder) {
  k.fill(tile());
  k.fill(tile());
  const Timing t = k.time();
  expect(t, 1, Cause::kEngine, 0, t.instructions[0].end);
}

TEST_F(Model, AnotherEngineWaitsForItsOperandAndTheSemaphore) {
  const View a = tile(), b = tile();
  k.fill(a);
  k.activate(b, a);
  const Timing t = k.time();
  expect(t, 1, Cause::kOperand, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, MatmulResultsComeLate) {
  const View p = k.psum({128, 512}), a = tile(128, kBf16), b = tile(512, kBf16);
  k.matmul(p, a, b);
  k.move(tile(), p);
  const Timing t = k.time();
  expect(t, 1, Cause::kOperand, 0, t.instructions[0].end + ps(168) + semaphore());
}

TEST_F(Model, AccumulatingMatmulsDoNotWaitForOneAnother) {
  const View p = k.psum({128, 512}), a = tile(128, kBf16), b = tile(512, kBf16);
  k.matmul(p, a, b);
  k.matmul(p, a, b);
  const Timing t = k.time();
  expect(t, 1, Cause::kEngine, 0, t.instructions[0].end);
}

TEST_F(Model, AWriterWaitsForReadersOfItsBuffer) {
  const View a = tile(), b = tile();
  k.activate(b, a);
  k.fill(a);
  const Timing t = k.time();
  expect(t, 1, Cause::kBuffer, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, AMatmulsOperandsAreFreeWhenItHasRead) {
  const View p = k.psum({128, 512}), a = tile(128, kBf16), b = tile(512, kBf16);
  k.matmul(p, a, b);
  k.fill(b, EngineId::kVector);
  const Timing t = k.time();
  expect(t, 1, Cause::kBuffer, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, AWriterWaitsForTheWriterBefore) {
  const View a = tile();
  k.activate(a, tile());
  k.fill(a);
  const Timing t = k.time();
  expect(t, 1, Cause::kBuffer, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, ANewTileWaitsForTheOldOneAtItsPlace) {
  const int64_t half = chip.sbuf_usable_bytes() / 2 / 4;
  const View old = tile(half), other = tile(half);
  k.activate(other, old);
  k.fill(tile(half), EngineId::kGpSimd);  // takes the bytes of `old`
  const Timing t = k.time();
  expect(t, 1, Cause::kBuffer, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, DisjointColumnsAndPartitionsAreIndependent) {
  const View a = tile(512);
  k.fill(k.columns(a, 0, 256));
  k.activate(k.columns(a, 256, 256), tile(256));
  EXPECT_EQ(k.time().instructions[1].cause, Cause::kLaunch);
  KernelForTest other(chip);
  const View b = other.sbuf({128, 512}, kFp32);
  other.fill(other.slice(b, 0, 64, 0, 512));
  other.activate(other.slice(b, 64, 64, 0, 512), other.slice(other.sbuf({128, 512}, kFp32), 64, 64, 0, 512));
  EXPECT_EQ(other.time().instructions[1].cause, Cause::kLaunch);
}

TEST_F(Model, OneColumnInCommonIsEnough) {
  const View a = tile(512);
  k.fill(k.columns(a, 0, 257));
  k.activate(k.columns(a, 256, 256), tile(256));
  EXPECT_EQ(k.time().instructions[1].cause, Cause::kBuffer);
}

TEST_F(Model, TensorsWithOneAddressAlias) {
  const View a = k.at_address(Memory::kSbuf, {128, 256}, kFp32, 0, 4096),
             b = k.at_address(Memory::kSbuf, {128, 256}, kFp32, 0, 4096 + 512);
  k.fill(a);
  k.activate(tile(256), b);
  const Timing t = k.time();
  expect(t, 1, Cause::kOperand, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, AddressesOnOtherPartitionsDoNotAlias) {
  const View a = k.at_address(Memory::kSbuf, {64, 256}, kFp32, 0, 4096),
             b = k.at_address(Memory::kSbuf, {64, 256}, kFp32, 64, 4096);
  k.fill(a);
  k.activate(k.sbuf({64, 256}, kFp32), b);
  EXPECT_EQ(k.time().instructions[1].cause, Cause::kLaunch);
}

TEST_F(Model, ATransferTakesItsStartLatency) {
  const View a = tile();
  k.copy(a, k.hbm({128, 512}, kFp32));
  k.fill(a);
  const Timing t = k.time();
  expect(t, 0, Cause::kLaunch, kNoInstruction, ps(739) + ps(8));  // static descriptors: 8 ns to issue
  expect(t, 1, Cause::kBuffer, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, TransfersShareTheDmaEngines) {
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  const Timing t = k.time();
  expect(t, 1, Cause::kDmaEngine, 0, t.instructions[0].end);
}

TEST_F(Model, TransfersOfOneQueueAreIssuedInOrder) {
  const View a = tile(512);
  const View in = k.hbm({1, 1}, kFp32);
  k.fill(a);
  k.copy(k.sbuf({1, 1}, kFp32), in);
  k.copy(k.sbuf({1, 1}, kFp32), in);  // another engine of the sixteen is free: only the queue holds it
  const Timing t = k.time();
  expect(t, 2, Cause::kQueue, 1, ps(8) + ps(8) + ps(739));
}

TEST_F(Model, TheEarlierTransferGoesFirstWhateverTheProgramOrder) {
  // The store comes first in the program, but its data is late; the load of the other queue must not wait for it.
  const View a = tile(8192), out = k.hbm({128, 8192}, kFp32);
  k.fill(a);
  k.copy(out, a);
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[2].cause, Cause::kLaunch);
  EXPECT_LT(t.instructions[2].end, t.instructions[1].start);
}

TEST_F(Model, HbmBandwidthIsShared) {
  Chip slow = chip;
  slow.hbm.bandwidth.value =
      4 * 100 / slow.hbm.efficiency;  // 100 B/ns for this core's stack: less than its DMA engines move
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  const Timing t = k.time(slow);
  const int64_t each = ps(128 * 2048 / 100.0);
  EXPECT_EQ(t.instructions[0].duration(), each);
  expect(t, 1, Cause::kHbm, 0, t.instructions[0].start + each);
  EXPECT_EQ(t.bound, "hbm");
}

TEST_F(Model, CoresOnOneStackShareIt) {
  k.copy(tile(8192), k.hbm({128, 8192}, kFp32));
  TimingOptions shared;
  shared.cores_on_stack = 4;
  EXPECT_GT(k.time(shared).kernel_ps, k.time().kernel_ps);
}

TEST_F(Model, AReadOfHbmWaitsForTheWrite) {
  const View kept = k.tensor(Memory::kHbm, {256, 512}, kFp32), a = tile(), b = tile();
  k.copy(k.slice(kept, 0, 128, 0, 512), a);
  k.copy(k.columns(b, 0, 64), k.slice(kept, 128, 128, 0, 64));
  k.copy(tile(256), k.slice(kept, 0, 128, 256, 256));
  const Timing t = k.time();
  EXPECT_NE(t.instructions[1].cause, Cause::kOperand) << "other rows";
  expect(t, 2, Cause::kOperand, 0, t.instructions[0].end + semaphore() + ps(8) + ps(739));
}

TEST_F(Model, AnEdgeOfTheUserHolds) {
  k.fill(tile());
  k.activate(tile(), tile());
  const auto n = static_cast<uint32_t>(k.builder.size());
  // Records: the fill comes after its tile's allocation.
  k.builder.program().edges.push_back({1, n - 1});
  const Timing t = k.time();
  expect(t, 1, Cause::kSemaphore, 0, t.instructions[0].end + semaphore());
}

TEST_F(Model, WideModesAndGpSimdTakeTurnsOnThePort) {
  k.fill(tile(4096, kBf16), EngineId::kGpSimd);
  k.move(tile(4096, kBf16), tile(4096, kBf16));  // wide
  k.move(tile(), tile());                        // not wide
  const Timing t = k.time();
  expect(t, 1, Cause::kPort, 0, t.instructions[0].end);
  expect(t, 2, Cause::kEngine, 1, t.instructions[1].end);
}

TEST(ModelOfGeneration2, VectorAndGpSimdTakeTurnsOnSbuf) {
  const Chip chip = chip_for_test("trn1");
  KernelForTest k(chip);
  k.fill(k.sbuf({128, 512}, kFp32), EngineId::kGpSimd);
  k.fill(k.sbuf({128, 512}, kFp32), EngineId::kVector);
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[1].cause, Cause::kPort);
  EXPECT_EQ(t.instructions[1].start, t.instructions[0].end);
}

TEST(ModelOfGeneration2, VectorAndScalarTakeTurnsOnPsum) {
  const Chip chip = chip_for_test("trn1");
  KernelForTest k(chip);
  k.move(k.sbuf({128, 512}, kFp32), k.psum({128, 512}));
  k.activate(k.sbuf({128, 512}, kFp32), k.psum({128, 512}));
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[1].cause, Cause::kPort);
  EXPECT_EQ(t.instructions[1].start, t.instructions[0].end);
}

TEST_F(Model, ClearingPsumDoesNotTakeVectorTime) {
  k.fill(k.psum({128, 512}));
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[0].queue, Queue::kGpSimd);
  ASSERT_EQ(t.notes.size(), 1u);
}

TEST_F(Model, TheTensorEngineSpeedsUpAfterIdling) {
  // Half speed rising to full over 3 us: the first 3 us do the work of 2.25.
  const View p = k.psum({128, 512}), a = tile(128, kBf16), b = tile(512, kBf16);
  for (int i = 0; i < 100; ++i) k.matmul(p, a, b);
  const Timing t = k.time();
  const int64_t full = ps(512 / 2.4);
  EXPECT_EQ(t.instructions.back().duration(), full);
  EXPECT_GT(t.instructions[0].duration(), full * 18 / 10);
  EXPECT_NEAR(static_cast<double>(t.instructions.back().end - 100 * full), 750000, 200);
}

// ---- Regions and the path.

class Regions : public Model {
 protected:
  RegisterRef reg() { return {k.builder.add_register()}; }
};

TEST_F(Regions, ALoopWithKnownBoundsNeedsNoPath) {
  const View a = tile();
  control::Loop loop;
  loop.reg = reg();
  loop.low = 2;
  loop.high = 12;
  loop.step = 3;  // 2, 5, 8, 11
  k.record(loop);
  k.fill(a);
  k.record(control::End{});
  k.fill(a);
  const Timing t = k.time();
  ASSERT_EQ(t.instructions.size(), 5u);
  EXPECT_EQ(t.instructions[0].record, t.instructions[3].record);
  EXPECT_NE(t.instructions[3].record, t.instructions[4].record);
}

TEST_F(Regions, WhatARunTookIsReadFromThePath) {
  const View a = tile();
  control::While loop;
  loop.reg = reg();
  k.record(loop);
  k.fill(a);
  control::If branch;
  branch.reg = reg();
  k.record(branch);
  k.activate(a, a);
  k.record(control::End{});
  k.record(control::End{});
  Path path;
  for (int64_t value : {1, 0, 1, 1, 0}) path.add(value);  // trip, not taken, trip, taken, end
  auto t = predict(k.builder.program(), path, chip);
  ASSERT_TRUE(t) << t.error().text();
  ASSERT_EQ(t->instructions.size(), 3u);
  EXPECT_EQ(t->instructions[2].queue, Queue::kScalar);

  auto none = predict(k.builder.program(), Path(), chip);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().rule, "PATH1");
  Path shorter;
  for (int64_t value : {1, 0, 1}) shorter.add(value);
  auto cut = predict(k.builder.program(), shorter, chip);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().rule, "PATH1");
}

TEST_F(Regions, WhatFollowsABranchWaitsForItsRegister) {
  control::RegisterMove set;
  set.dst = reg();
  set.value = 1;
  k.record(set);
  control::If branch;
  branch.reg = set.dst;
  k.record(branch);
  k.fill(tile());
  k.record(control::End{});
  Path path;
  path.add(1);
  auto t = predict(k.builder.program(), path, chip);
  ASSERT_TRUE(t) << t.error().text();
  expect(*t, 1, Cause::kSemaphore, 0, t->instructions[0].end + semaphore());
}

TEST_F(Regions, ADynamicOffsetChoosesThePlace) {
  const View a = tile(512);
  const View half = k.columns(a, 0, 256);
  View moving = half;
  moving.kind = ViewKind::kDynamic;
  moving.dynamic = k.builder.add_dynamic({DynamicOffset::Source::kRegister, reg().id, {}, 1, 512});
  k.fill(half);
  k.activate(tile(256), moving);
  Path at_0, at_256;
  at_0.add(0);
  at_256.add(256);
  auto same = predict(k.builder.program(), at_0, chip), apart = predict(k.builder.program(), at_256, chip);
  ASSERT_TRUE(same && apart);
  EXPECT_EQ(same->instructions[1].cause, Cause::kOperand);
  EXPECT_EQ(apart->instructions[1].cause, Cause::kLaunch);
  EXPECT_EQ(apart->instructions[1].duration(), ps((600 + 100) / 1.2)) << "addresses from registers take 600 cycles";
}

// ---- What a prediction says about itself.

TEST_F(Model, TheCriticalPathAddsUpToTheWhole) {
  const View a = tile(), b = tile();
  k.line(10);
  k.copy(a, k.hbm({128, 512}, kFp32));
  k.line(20);
  for (int i = 0; i < 50; ++i) k.add(b, a, a);
  const Timing t = k.time();
  int64_t sum = 0, lines = 0;
  for (int64_t part : t.critical_ps) sum += part;
  for (const LineTime& line : t.lines) lines += line.ps;
  EXPECT_EQ(sum, t.kernel_ps);
  EXPECT_EQ(lines, t.kernel_ps);
  EXPECT_EQ(t.bound, "vector");
  ASSERT_GE(t.lines.size(), 2u);
  EXPECT_EQ(t.lines[0].where.line, 20);
  EXPECT_EQ(t.lines[0].where.file, "kernel.py");
  EXPECT_EQ(t.critical.front(), 0u);
  EXPECT_EQ(t.critical.back(), 50u);
}

TEST_F(Model, UncertainNumbersUsedAreListedAndNoOthers) {
  k.copy(tile(), k.hbm({128, 512}, kFp32));
  const Timing t = k.time();
  std::vector<std::string> keys;
  for (const UncertainNumber& u : t.uncertain) {
    keys.push_back(u.key);
    EXPECT_GE(u.trust, Trust::kClaimed) << u.key;
    EXPECT_FALSE(u.source.empty()) << u.key;
  }
  const auto has = [&](std::string_view key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  EXPECT_TRUE(has("dma.descriptor"));
  EXPECT_TRUE(has("dma.completion"));
  EXPECT_FALSE(has("dma.issue_software")) << "not used";
  EXPECT_FALSE(has("dma.rate")) << "documented";
  EXPECT_FALSE(has("semaphore.latency")) << "nothing waited";
}

TEST_F(Model, CapacityIsRefused) {
  const View a = tile(chip.sbuf_usable_bytes() / 4), b = tile(512);
  k.add(b, k.columns(a, 0, 512), b);
  auto t = predict(k.builder.program(), Path(), chip);
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().rule, "CAP1");
}

TEST_F(Model, MultiplyAddsAreCountedWhereverTensorsLie) {
  // nc_matmul of [128, 128] by [128, 512]; then the same again with more tiles alive than PSUM has banks.
  const View stationary = k.sbuf({128, 128}, kBf16), moving = k.sbuf({128, 512}, kBf16);
  std::vector<View> results;
  for (int i = 0; i < 9; ++i) k.matmul(results.emplace_back(k.psum({128, 512})), stationary, moving);
  const double one = 128.0 * 128 * 512;
  const std::vector<Path> paths;
  EXPECT_EQ(*multiply_adds(k.builder.program(), paths, chip), 9 * one);
  auto t = predict(k.builder.program(), Path(), chip);
  ASSERT_TRUE(t);
  EXPECT_EQ(t->multiply_adds, 9 * one);
  for (const View& v : results) k.activate(tile(512), v);  // all nine live until here
  EXPECT_EQ(predict(k.builder.program(), Path(), chip).error().rule, "CAP2");
  EXPECT_EQ(*multiply_adds(k.builder.program(), paths, chip), 9 * one);
}

}  // namespace
}  // namespace sterna
