// SPDX-License-Identifier: Apache-2.0
// What holds for the times of every program: sums, orders, and no faster chip that is slower.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sterna/timing/kernel_for_test.h"
#include "sterna/timing/model.h"

namespace sterna {
namespace {

constexpr DType kBf16 = DType::kBFloat16;

/// A stream of loads, arithmetic, matmuls and, if asked, stores on tiles of many sizes.
void mixed(KernelForTest& k, uint32_t seed, bool stores = true) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  const View in = k.hbm({128, 4096}, kBf16), out = k.hbm({128, 4096}, kBf16);
  std::vector<View> tiles;
  for (int i = 0; i < 6; ++i) k.copy(tiles.emplace_back(k.sbuf({128, 1024}, kBf16)), k.columns(in, 0, 1024));
  for (int i = 0; i < 300; ++i) {
    const int64_t width = 64 << pick(4), at = 64 * pick((1024 - width) / 64 + 1);
    const auto any = [&] { return k.columns(tiles[static_cast<size_t>(pick(6))], at, width); };
    const int64_t kind = pick(6);
    if (kind == 0) {
      k.add(any(), any(), any());
    } else if (kind == 1) {
      k.activate(any(), any());
    } else if (kind == 2 || (kind == 3 && !stores)) {
      k.copy(any(), k.columns(in, at, width));
    } else if (kind == 3) {
      k.copy(k.columns(out, at, width), any());
    } else if (kind == 4) {
      k.fill(any(), EngineId::kGpSimd);
    } else {
      const View p = k.psum({128, width});
      k.matmul(p, k.columns(tiles[0], 0, 128), any());
      k.move(any(), p);
    }
  }
}

TEST(ModelProperties, TheWholeIsAtLeastEachPartAndEveryStartFollowsItsCause) {
  for (const char* name : {"trn1", "trn2", "trn3"}) {
    const Chip chip = chip_for_test(name);
    for (uint32_t seed = 1; seed <= 5; ++seed) {
      KernelForTest k(chip);
      mixed(k, seed);
      const Timing t = k.time();
      for (int64_t busy : t.busy_ps) EXPECT_GE(t.kernel_ps, busy);
      EXPECT_GE(t.kernel_ps,
                t.busy_ps[static_cast<size_t>(Queue::kLoad)] + t.busy_ps[static_cast<size_t>(Queue::kStore)]);
      EXPECT_GE(t.kernel_ps, t.hbm_ps);
      std::array<int64_t, kQueues> end{};
      for (const InstructionTime& i : t.instructions) {
        EXPECT_GE(i.start, 0);
        EXPECT_GT(i.end, i.start);
        if (!is_dma(i.queue)) {
          EXPECT_GE(i.start, end[static_cast<size_t>(i.queue)]);
        }
        end[static_cast<size_t>(i.queue)] = i.end;
        if (i.cause == Cause::kLaunch) continue;
        ASSERT_LT(i.cause_instruction, t.instructions.size());
        if (i.cause == Cause::kQueue || i.cause == Cause::kDmaEngine || i.cause == Cause::kHbm) continue;
        EXPECT_GE(i.start, t.instructions[i.cause_instruction].end);
      }
      int64_t path = 0;
      for (int64_t part : t.critical_ps) path += part;
      EXPECT_EQ(path, t.kernel_ps);
    }
  }
}

TEST(ModelProperties, TimesDoNotDependOnWhoAsks) {
  const Chip chip = chip_for_test("trn2");
  KernelForTest a(chip), b(chip);
  mixed(a, 9);
  mixed(b, 9);
  const Timing x = a.time(), y = b.time();
  ASSERT_EQ(x.instructions.size(), y.instructions.size());
  for (size_t i = 0; i < x.instructions.size(); ++i) {
    EXPECT_EQ(x.instructions[i].start, y.instructions[i].start);
    EXPECT_EQ(x.instructions[i].end, y.instructions[i].end);
  }
}

TEST(ModelProperties, AFasterChipIsNeverSlower) {
  const Chip chip = chip_for_test("trn2");
  struct Edit {
    const char* what;
    void (*apply)(Chip&);
  };
  const Edit edits[] = {{"tensor clock", [](Chip& c) { c.tensor.clock.value *= 2; }},
                        {"vector clock", [](Chip& c) { c.vector.clock.value *= 2; }},
                        {"scalar clock", [](Chip& c) { c.scalar.clock.value *= 2; }},
                        {"gpsimd clock", [](Chip& c) { c.gpsimd.clock.value *= 2; }},
                        {"dma rate", [](Chip& c) { c.dma.rate.value *= 2; }},
                        {"dma start", [](Chip& c) { c.dma.start.value /= 2; }},
                        {"descriptors", [](Chip& c) { c.dma.descriptor.value = 0; }},
                        {"semaphore", [](Chip& c) { c.semaphore.latency.value = 0; }},
                        {"result latency", [](Chip& c) { c.tensor.result_latency.value = 0; }},
                        {"hbm", [](Chip& c) { c.hbm.bandwidth.value *= 2; }},
                        {"launch", [](Chip& c) { c.launch.cost.value = 0; }}};
  // Where queues take turns on DMA engines or a port, an instruction that comes earlier may overtake another, and the
  // whole may become a little longer, as with any first-come order. Without turns to take, never.
  for (bool turns : {false, true})
    for (uint32_t seed = 1; seed <= 8; ++seed) {
      Chip base = chip;
      if (!turns) base.ports.wide_mode_excludes_gpsimd.value = 0;
      KernelForTest k(base);
      mixed(k, seed, turns);
      const double before = static_cast<double>(k.time().total_ps);
      for (const Edit& edit : edits) {
        Chip faster = base;
        edit.apply(faster);
        EXPECT_LE(static_cast<double>(k.time(faster).total_ps), before * (turns ? 1.02 : 1))
            << edit.what << ", seed " << seed << (turns ? ", turns" : "");
      }
    }
}

}  // namespace
}  // namespace sterna
