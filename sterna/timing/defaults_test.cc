// SPDX-License-Identifier: Apache-2.0
// What the chip file decides beyond costs: defaults for instructions without an entry, and on which queue work counts.
#include <algorithm>

#include "sterna/timing/kernel_for_test.h"

namespace sterna {
namespace {

const UncertainNumber* uncertain(const Timing& t, std::string_view key) {
  const auto at =
      std::find_if(t.uncertain.begin(), t.uncertain.end(), [&](const UncertainNumber& n) { return n.key == key; });
  return at == t.uncertain.end() ? nullptr : &*at;
}

Chip without(Chip chip, std::string_view instruction) {
  std::erase_if(chip.instructions, [&](const InstructionCost& cost) { return cost.name == instruction; });
  return chip;
}

// One cycle per element on the vector engine (hardware/chips/trn1.toml), listed as a guess.
TEST(TimingDefaults, AnInstructionWithoutAnEntryTakesItsEnginesDefault) {
  const Chip chip = chip_for_test("trn2"), bare = without(chip, "tensor_copy");
  KernelForTest k(bare);
  const View a = k.sbuf({128, 4096}, DType::kFloat32), b = k.sbuf({128, 4096}, DType::kFloat32);
  k.move(b, a);
  const Timing t = k.time();
  EXPECT_NEAR(static_cast<double>(t.kernel_ps) / 1000, (4096 + chip.vector.fixed) / chip.vector.clock, 1);
  const UncertainNumber* guess = uncertain(t, "instruction_default.vector.per_element");
  ASSERT_NE(guess, nullptr);
  EXPECT_EQ(guess->trust, Trust::kAssumed);
  EXPECT_EQ(uncertain(k.time(chip), "instruction_default.vector.per_element"), nullptr) << "not used";
}

TEST(TimingDefaults, ATransferWithoutAnEntryIsATransfer) {
  const Chip chip = chip_for_test("trn2"), bare = without(chip, "dma_copy");
  KernelForTest k(chip);
  const View h = k.hbm({128, 512}, DType::kFloat32), s = k.sbuf({128, 512}, DType::kFloat32);
  k.copy(s, h);
  k.copy(h, s);
  EXPECT_EQ(k.time(bare).kernel_ps, k.time(chip).kernel_ps);
  EXPECT_EQ(k.time(bare).counts, k.time(chip).counts);
}

TEST(TimingDefaults, WithoutADefaultEitherTheFaultSaysSo) {
  Chip bare = without(chip_for_test("trn2"), "tensor_copy");
  bare.instruction_defaults.clear();
  KernelForTest k(bare);
  const View a = k.sbuf({128, 64}, DType::kFloat32), b = k.sbuf({128, 64}, DType::kFloat32);
  k.move(b, a);
  const auto t = predict(k.builder.program(), Path(), bare);
  ASSERT_FALSE(t);
  EXPECT_EQ(t.error().rule, "COST1");
}

TEST(TimingDefaults, TheChipFileSaysWhereAFillOfPsumCounts) {
  Chip chip = chip_for_test("trn2");
  KernelForTest k(chip);
  k.fill(k.psum({128, 512}));
  const Timing gpsimd = k.time(chip);
  EXPECT_EQ(gpsimd.counts[static_cast<size_t>(Queue::kGpSimd)], 1);
  ASSERT_NE(uncertain(gpsimd, "scheduling.psum_memset_on_gpsimd"), nullptr);
  EXPECT_EQ(uncertain(gpsimd, "scheduling.psum_memset_on_gpsimd")->text, "true");
  chip.scheduling.psum_memset_on_gpsimd.value = 0;
  EXPECT_EQ(k.time(chip).counts[static_cast<size_t>(Queue::kVector)], 1);
}

TEST(TimingDefaults, TheChipFileSaysWhetherStoresHaveAQueue) {
  Chip chip = chip_for_test("trn2");
  KernelForTest k(chip);
  const View h = k.hbm({128, 512}, DType::kFloat32), s = k.sbuf({128, 512}, DType::kFloat32);
  k.copy(s, h);
  EXPECT_EQ(uncertain(k.time(chip), "scheduling.separate_store_queue"), nullptr) << "nothing is stored";
  k.copy(h, s);
  const Timing apart = k.time(chip);
  EXPECT_EQ(apart.counts[static_cast<size_t>(Queue::kStore)], 1);
  EXPECT_NE(uncertain(apart, "scheduling.separate_store_queue"), nullptr);
  chip.scheduling.separate_store_queue.value = 0;
  EXPECT_EQ(k.time(chip).counts[static_cast<size_t>(Queue::kStore)], 0);
  EXPECT_EQ(k.time(chip).counts[static_cast<size_t>(Queue::kLoad)], 2);
}

}  // namespace
}  // namespace sterna
