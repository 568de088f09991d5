// SPDX-License-Identifier: Apache-2.0
// Two cores of one kernel, and collectives: who waits for whom, and how long what they do together takes. Times follow
// from the chip file's numbers and the formulas of sterna/hardware/chip.h, worked out here by hand.
#include "sterna/isa/cores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sterna/isa/collectives.h"
#include "sterna/timing/kernel_for_test.h"
#include "sterna/timing/to_trace.h"

namespace sterna {
namespace {

constexpr DType kFp32 = DType::kFloat32;

int64_t ps(double ns) { return std::llround(ns * 1000); }

class Cores : public testing::Test {
 protected:
  Cores() : chip(chip_for_test("trn2")), k(chip) { k.builder.set_cores(2); }

  void on(int core) { k.builder.set_core(core); }
  View tile(int64_t columns = 512) { return k.sbuf({128, columns}, kFp32); }
  View memory(int64_t columns = 512) { return k.hbm({128, columns}, kFp32); }
  void barrier(const View& data) {
    cores::CoreBarrier b;
    b.data = data;
    b.cores.n = 2;
    b.cores.value[0] = 0;
    b.cores.value[1] = 1;
    k.record(b);
  }
  void exchange(const View& src, const View& dst, TransferEngine dma = TransferEngine::kDma, int32_t pipe = 0) {
    cores::SendRecv s;
    s.src = src;
    s.dst = dst;
    s.send_to_rank = s.recv_from_rank = 1 - k.builder.core();
    s.pipe_id = pipe;
    s.dma_engine = dma;
    k.record(s);
  }
  void expect(const Timing& t, size_t i, Cause cause, uint32_t by, int64_t start) {
    ASSERT_LT(i, t.instructions.size());
    EXPECT_EQ(t.instructions[i].cause, cause) << name(t.instructions[i].cause);
    EXPECT_EQ(t.instructions[i].cause_instruction, by);
    EXPECT_EQ(t.instructions[i].start, start);
  }
  static void expect_whole_path(const Timing& t) {
    int64_t path = 0;
    for (int64_t part : t.critical_ps) path += part;
    EXPECT_EQ(path, t.kernel_ps);
  }

  static constexpr int64_t kSemaphore = 9000, kIssue = 8000, kStart = 739000;
  Chip chip;
  KernelForTest k;
};

TEST_F(Cores, EachHasEnginesOfItsOwn) {
  for (int core : {0, 1}) {
    on(core);
    k.fill(tile());
    k.copy(tile(), memory());
  }
  const Timing t = k.time();
  ASSERT_EQ(t.instructions.size(), 4u);
  for (uint32_t i : {0u, 2u}) expect(t, i, Cause::kLaunch, kNoInstruction, 0);
  // Both load at once: 736 B/ns of engines on a stack of 2900 / 4 * 0.92.
  const int64_t stack = ps(128 * 2048 / (2900 / 4.0 * 0.92));
  expect(t, 1, Cause::kLaunch, kNoInstruction, kIssue + kStart);
  expect(t, 3, Cause::kHbm, 1, kIssue + kStart + stack);
  EXPECT_EQ(t.instructions[1].duration(), ps(8 * 7 + 8 * 2048 / 23.0)) << "as if alone";
  EXPECT_EQ(t.instructions[3].end, kIssue + kStart + 2 * stack);
  EXPECT_EQ(t.instructions[1].core, 0);
  EXPECT_EQ(t.instructions[2].core, 1);
  ASSERT_EQ(t.cores.size(), 2u);
  EXPECT_EQ(t.cores[1].busy_ps, t.cores[0].busy_ps);
  EXPECT_EQ(t.busy_ps, t.cores[0].busy_ps) << "the mean";
  EXPECT_EQ(t.counts[static_cast<size_t>(Queue::kLoad)], 2) << "the sum";
  EXPECT_EQ(t.total_ps, t.kernel_ps + ps(13000) + ps(14000)) << "launch, and the second core's";
}

TEST_F(Cores, EachHasMemoryOfItsOwn) {
  const int64_t all = chip.sbuf_usable_bytes() / 4;
  for (int core : {0, 1}) {
    on(core);
    k.fill(tile(all));
  }
  const Timing t = k.time();
  EXPECT_EQ(t.sbuf_peak, chip.sbuf_usable_bytes());
  expect(t, 1, Cause::kLaunch, kNoInstruction, 0);
}

TEST_F(Cores, TheKernelEndsWithItsLastCore) {
  on(0);
  k.fill(tile(64));
  on(1);
  k.fill(tile(4096));
  const Timing t = k.time();
  EXPECT_EQ(t.kernel_ps, t.instructions[1].end);
  EXPECT_EQ(t.cores[0].end_ps, t.instructions[0].end);
  EXPECT_EQ(t.cores[1].end_ps, t.kernel_ps);
  // The engine that filled is busy for the mean of both.
  const auto q = static_cast<size_t>(t.instructions[0].queue);
  EXPECT_EQ(t.busy_ps[q], (t.instructions[0].duration() + t.instructions[1].duration()) / 2);
}

TEST_F(Cores, SharedHbmAloneOrdersNothing) {
  const View shared = memory(), a = tile();
  k.fill(a);
  k.copy(shared, a);
  on(1);
  k.copy(tile(), shared);
  expect(k.time(), 2, Cause::kLaunch, kNoInstruction, kIssue + kStart);
}

TEST_F(Cores, ABarrierComesWhenItsTensorIsWrittenAndAllHaveCome) {
  const View shared = memory(), a = tile();
  k.fill(a);          // 0
  k.copy(shared, a);  // 1
  barrier(shared);    // 2
  on(1);
  barrier(shared);         // 3
  k.copy(tile(), shared);  // 4
  const Timing t = k.time();
  const int64_t both = t.instructions[1].end + kSemaphore;
  expect(t, 2, Cause::kOperand, 1, both);
  expect(t, 3, Cause::kPartner, 2, both);
  for (size_t i : {2u, 3u}) EXPECT_EQ(t.instructions[i].duration(), kSemaphore);
  expect(t, 4, Cause::kOperand, 3, both + 2 * kSemaphore + kIssue + kStart);
  // The path leads through both cores.
  EXPECT_EQ(std::vector<uint32_t>(t.critical.begin(), t.critical.end()), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  expect_whole_path(t);
}

TEST_F(Cores, ABarrierWaitsForItsOwnTensorOnly) {
  const View shared = memory(), other = memory(), a = tile(8192);
  k.fill(a, EngineId::kVector);
  k.copy(other, k.columns(a, 0, 512));
  barrier(shared);
  on(1);
  barrier(shared);
  const Timing t = k.time();
  expect(t, 2, Cause::kLaunch, kNoInstruction, 0);
  expect(t, 3, Cause::kLaunch, kNoInstruction, 0);
}

TEST_F(Cores, AReaderBeforeTheBarrierHoldsTheWriterAfterIt) {
  const View shared = memory(), a = tile();
  k.copy(a, shared);  // 0
  barrier(shared);    // 1
  on(1);
  const View b = tile();
  barrier(shared);               // 2
  k.fill(b, EngineId::kVector);  // 3
  k.copy(shared, b);             // 4
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[1].start, t.instructions[0].end + kSemaphore);
  expect(t, 4, Cause::kBuffer, 2, t.instructions[2].end + kSemaphore + kIssue + kStart);
}

TEST_F(Cores, SendRecvStartsWhenBothHaveComeAndTakesADma) {
  const View mine = tile(), got = tile();
  exchange(mine, got);      // 0
  k.activate(tile(), got);  // 1
  on(1);
  const View theirs = tile(), back = tile();
  k.fill(theirs, EngineId::kVector);  // 2
  exchange(theirs, back);             // 3
  const Timing t = k.time();
  const int64_t come = t.instructions[2].end + kSemaphore;
  expect(t, 0, Cause::kPartner, 3, come + kIssue + kStart);
  expect(t, 3, Cause::kOperand, 2, come + kIssue + kStart);
  // 16 engines, each 8 partitions: a descriptor of 2048 bytes for each of them, 7 ns and 23 B/ns.
  for (size_t i : {0u, 3u}) EXPECT_EQ(t.instructions[i].duration(), ps(8 * 7 + 8 * 2048 / 23.0));
  expect(t, 1, Cause::kOperand, 0, t.instructions[0].end + kSemaphore);
  expect_whole_path(t);
}

TEST_F(Cores, WhatIsReceivedIsThereWhenTheOtherHasSentIt) {
  // Core 1's DMA engines are busy with a load when both have come.
  const View mine = tile(64), got = tile(64);
  k.fill(mine);         // 0
  exchange(mine, got);  // 1
  on(1);
  k.copy(tile(16384), memory(16384));  // 2
  exchange(tile(64), tile(64));        // 3
  const Timing t = k.time();
  expect(t, 3, Cause::kDmaEngine, 2, t.instructions[2].end);
  expect(t, 1, Cause::kPartner, 3, t.instructions[3].start);
  EXPECT_EQ(t.instructions[1].end, t.instructions[3].end);
  expect_whole_path(t);
}

TEST_F(Cores, TheFirstToComeMayBeTheSlowerSender) {
  View scattered = tile(1024);  // every other element: a descriptor for each
  scattered.dims[1].count = 512;
  scattered.dims[1].stride = 2;
  exchange(scattered, tile(512));  // 0
  on(1);
  const View theirs = tile(512);
  k.fill(theirs, EngineId::kVector);  // 1
  exchange(theirs, tile(512));        // 2
  const Timing t = k.time();
  expect(t, 0, Cause::kPartner, 2, t.instructions[1].end + kSemaphore + kIssue + kStart);
  EXPECT_EQ(t.instructions[0].duration(), ps(8 * 512 * 7 + 8 * 2048 / 23.0));
  EXPECT_EQ(t.instructions[2].end, t.instructions[0].end);
  EXPECT_EQ(t.instructions[2].cause, Cause::kOperand) << "it came last";
  expect_whole_path(t);
}

TEST_F(Cores, GpSimdSendsByItself) {
  exchange(tile(256), tile(256), TransferEngine::kGpSimdDma);
  on(1);
  exchange(tile(256), tile(256), TransferEngine::kGpSimdDma);
  const Timing t = k.time();
  for (size_t i : {0u, 1u}) {
    EXPECT_EQ(t.instructions[i].queue, Queue::kGpSimd);
    expect(t, i, Cause::kLaunch, kNoInstruction, 0);
    EXPECT_EQ(t.instructions[i].duration(), ps(100 / 1.2 + 128 * 256 * 4 / 153.0));
  }
}

TEST_F(Cores, PipesMeetInProgramOrder) {
  for (int core : {0, 1}) {
    on(core);
    for (int pipe : {0, 1, 2}) exchange(tile(64), tile(64), TransferEngine::kDma, pipe);
  }
  const Timing t = k.time();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(t.instructions[i].start, t.instructions[i + 3].start);
    EXPECT_EQ(t.instructions[i].end, t.instructions[i + 3].end);
  }
  expect_whole_path(t);
}

TEST_F(Cores, APartnerThatNeverComesIsAFault) {
  k.line(7);
  exchange(tile(), tile());
  const auto timing = predict(k.builder.program(), Path(), chip);
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().rule, "LNC7");
  EXPECT_EQ(timing.error().where.line, 7);
}

/// A core's share of one stack is 100 B/ns, less than its DMA engines move.
Chip slow_memory(Chip chip, int64_t stacks) {
  chip.hbm.stacks.value = static_cast<double>(stacks);
  chip.hbm.bandwidth.value = 100.0 * static_cast<double>(stacks) / chip.hbm.efficiency;
  return chip;
}

TEST_F(Cores, CoresOfOneStackShareItsBandwidth) {
  for (int core : {0, 1}) {
    on(core);
    k.copy(tile(), memory());
  }
  const int64_t each = ps(128 * 2048 / 100.0);
  const Timing t = k.time(slow_memory(chip, 4));  // eight cores, four stacks
  expect(t, 0, Cause::kLaunch, kNoInstruction, kIssue + kStart);
  EXPECT_EQ(t.instructions[0].duration(), each);
  expect(t, 1, Cause::kHbm, 0, kIssue + kStart + each);
  EXPECT_EQ(t.instructions[1].duration(), each);
  EXPECT_EQ(t.hbm_ps, 2 * each);
  // With a stack for each core they do not meet.
  const Timing apart = k.time(slow_memory(chip, 8));
  expect(apart, 1, Cause::kLaunch, kNoInstruction, kIssue + kStart);
  EXPECT_EQ(apart.hbm_ps, each) << "the mean of both stacks";
  // Two cores on the stack are these two; four leave them half.
  TimingOptions options;
  options.cores_on_stack = 2;
  EXPECT_EQ(k.time(slow_memory(chip, 4), options).kernel_ps, t.kernel_ps);
  options.cores_on_stack = 4;
  EXPECT_EQ(k.time(slow_memory(chip, 4), options).instructions[0].duration(), 2 * each);
}

TEST_F(Cores, ATraceHasTheQueuesOfBoth) {
  for (int core : {0, 1}) {
    on(core);
    k.fill(tile());
    exchange(tile(64), tile(64));
  }
  const Timing timing = k.time();
  Path paths[2];
  paths[1].add(42);
  auto t = read_trace(write_trace(to_trace(k.builder.program(), paths, chip, timing)));
  ASSERT_TRUE(t) << t.error().text();
  ASSERT_EQ(t->paths.size(), 2u);
  EXPECT_EQ(t->paths[1].values(), paths[1].values());
  EXPECT_EQ(t->cores(), 2u);
  ASSERT_EQ(t->queues.size(), 2u * kQueues);
  EXPECT_EQ(t->queue_name(t->instructions.queue[2]), "core 1 " + std::string(name(timing.instructions[2].queue)));
  EXPECT_EQ(t->queue_name(t->instructions.queue[1]), "core 0 exchange");
  EXPECT_EQ(t->queues[t->instructions.queue[3]].core, 1u);
  EXPECT_EQ(t->total_ps, timing.total_ps);
}

// ---- Collectives

class Collectives : public testing::Test {
 protected:
  Collectives() : chip(chip_for_test("trn2")), k(chip) {}

  template <class I>
  I made(const View& dst, const View& src, const char* ranks) {
    I i;
    i.dst = dst;
    i.src = src;
    const uint32_t text = k.builder.program().names.intern(ranks);
    if constexpr (requires { i.pairs; })
      i.pairs.id = text;
    else
      i.group.id = text;
    return i;
  }
  View tile(int64_t columns = 512) { return k.sbuf({128, columns}, kFp32); }
  int64_t duration(int rank = 0) {
    TimingOptions options;
    options.rank = rank;
    const Timing t = k.time(options);
    return t.instructions.empty() ? 0 : t.instructions[0].duration();
  }

  static constexpr double kBytes = 128 * 2048;
  // trn2: 77 B/ns and 1050 ns inside a chip, 181 B/ns and 1000 ns between chips.
  Chip chip;
  KernelForTest k;
};

TEST_F(Collectives, AnAllReduceIsTwoRings) {
  k.record(made<collectives::AllReduce>(tile(), tile(), "[[0, 1, 2, 3], [4, 5]]"));
  EXPECT_EQ(duration(0), ps(2 * (3.0 / 4 * kBytes / 77 + 3 * 1050)));
  EXPECT_EQ(duration(5), ps(2 * (1.0 / 2 * kBytes / 77 + 1 * 1050)));
  EXPECT_EQ(duration(6), 0) << "takes no part";
}

TEST_F(Collectives, AGroupOnSeveralChipsUsesTheLinksBetweenThem) {
  k.record(made<collectives::AllReduce>(tile(), tile(), "[[0, 8], [1, 7]]"));  // eight ranks a chip
  EXPECT_EQ(duration(0), ps(2 * (1.0 / 2 * kBytes / 181 + 1000)));
  EXPECT_EQ(duration(7), ps(2 * (1.0 / 2 * kBytes / 77 + 1050)));
}

TEST_F(Collectives, ARankOfTwoCoresTakesTwiceTheRoom) {
  k.builder.set_cores(2);
  k.record(made<collectives::AllReduce>(tile(), tile(), "[[0, 3], [1, 4]]"));  // four ranks a chip
  EXPECT_EQ(duration(0), ps(2 * (1.0 / 2 * kBytes / 77 + 1050)));
  EXPECT_EQ(duration(1), ps(2 * (1.0 / 2 * kBytes / 181 + 1000)));
}

TEST_F(Collectives, GatherAndScatterCountTheWhole) {
  KernelForTest other(chip);
  auto gather = made<collectives::AllGather>(tile(1024), tile(512), "[[0, 1]]");
  gather.dim = 1;
  k.record(gather);
  EXPECT_EQ(duration(), ps(1.0 / 2 * 2 * kBytes / 77 + 1050));
  const View whole = other.sbuf({128, 512}, kFp32), part = other.sbuf({64, 512}, kFp32);
  collectives::ReduceScatter scatter;
  scatter.dst = part;
  scatter.src = whole;
  scatter.group.id = other.builder.program().names.intern("[[0, 1]]");
  other.record(scatter);
  EXPECT_EQ(other.time().instructions[0].duration(), ps(1.0 / 2 * kBytes / 77 + 1050));
}

TEST_F(Collectives, TheOthers) {
  const View dst = k.hbm({128, 512}, kFp32), src = k.hbm({128, 512}, kFp32);
  k.record(made<collectives::AllToAll>(dst, src, "[[0, 1, 2, 3]]"));
  k.record(made<collectives::Permute>(dst, src, "[[0, 1], [1, 9]]"));
  k.record(made<collectives::PermuteRing>(dst, src, "[[0, 1, 2, 3]]"));
  TimingOptions options;
  options.rank = 1;
  const Timing t = k.time(options);
  EXPECT_EQ(t.instructions[0].duration(), ps(3.0 / 4 * kBytes / 77 + 1050));
  EXPECT_EQ(t.instructions[1].duration(), ps(kBytes / 181 + 1000)) << "rank 1 sends to another chip";
  EXPECT_EQ(t.instructions[2].duration(), ps(kBytes / 77 + 1050));
  EXPECT_EQ(k.time().instructions[1].duration(), ps(kBytes / 77 + 1050)) << "rank 0 does not";
}

TEST_F(Collectives, OneAfterTheOtherWhileTheEnginesGoOn) {
  const View a = tile(), b = tile(), c = tile();
  k.copy(a, k.hbm({128, 512}, kFp32));                            // 0
  k.record(made<collectives::AllReduce>(b, a, "[[0, 1]]"));       // 1
  k.record(made<collectives::AllReduce>(c, tile(), "[[0, 1]]"));  // 2
  k.fill(tile(), EngineId::kVector);                              // 3
  k.activate(tile(), b);                                          // 4
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[1].start, t.instructions[0].end + 9000);
  EXPECT_EQ(t.instructions[2].start, t.instructions[1].end);
  EXPECT_EQ(t.instructions[3].start, 0);
  EXPECT_EQ(t.instructions[4].start, t.instructions[1].end + 9000);
  EXPECT_EQ(t.bound, "exchange");
  EXPECT_EQ(t.busy_ps[static_cast<size_t>(Queue::kExchange)],
            t.instructions[1].duration() + t.instructions[2].duration());
  int64_t path = 0;
  for (int64_t part : t.critical_ps) path += part;
  EXPECT_EQ(path, t.kernel_ps);
  bool noted = false, listed = false;
  for (const std::string& note : t.notes) noted = noted || note.find("Every rank") == 0;
  for (const UncertainNumber& n : t.uncertain) listed = listed || n.key == "link.core_rate";
  EXPECT_TRUE(noted);
  EXPECT_TRUE(listed);
}

TEST_F(Collectives, CoresOfARankComeTogetherForMemory) {
  k.builder.set_cores(2);
  const View dst = k.hbm({128, 512}, kFp32), src = k.hbm({128, 512}, kFp32);
  k.record(made<collectives::AllReduce>(dst, src, "[[0, 1]]"));  // 0
  k.builder.set_core(1);
  const View a = tile();
  k.fill(a);                                                     // 1
  k.copy(src, a);                                                // 2
  k.record(made<collectives::AllReduce>(dst, src, "[[0, 1]]"));  // 3
  const Timing t = k.time();
  EXPECT_EQ(t.instructions[3].start, t.instructions[2].end + 9000);
  EXPECT_EQ(t.instructions[0].start, t.instructions[3].start);
  EXPECT_EQ(t.instructions[0].cause, Cause::kPartner);
  EXPECT_EQ(t.instructions[0].cause_instruction, 3u);
}

TEST_F(Collectives, AGroupThatIsNoneIsAFault) {
  k.record(made<collectives::AllReduce>(tile(), tile(), "ranks"));
  const auto timing = predict(k.builder.program(), Path(), chip);
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().rule, "CC1");
}

}  // namespace
}  // namespace sterna
