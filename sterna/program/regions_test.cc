// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/regions.h"

#include <gtest/gtest.h>

#include <random>

#include "sterna/isa/control.h"

namespace sterna {
namespace {

constexpr uint8_t kOpen = control::Loop::info.opcode, kClose = control::End::info.opcode,
                  kOther = control::RegisterMove::info.opcode;

Regions regions_of(const std::vector<uint8_t>& opcodes) {
  Regions out;
  for (uint32_t i = 0; i < opcodes.size(); ++i) EXPECT_TRUE(out.add(i, opcodes[i]));
  return out;
}

/// By its definition: one walk from producer to consumer.
bool walked(const std::vector<uint8_t>& opcodes, uint32_t producer, uint32_t consumer) {
  int opened = 0;
  for (uint32_t i = producer + 1; i < consumer; ++i) {
    if (opcodes[i] == kOpen) ++opened;
    if (opcodes[i] == kClose && --opened < 0) return false;
  }
  return true;
}

TEST(Regions, AnEndWithoutARegionIsNotTaken) {
  Regions regions;
  EXPECT_FALSE(regions.add(0, kClose));
  EXPECT_TRUE(regions.add(1, kOpen));
  EXPECT_EQ(regions.depth(), 1);
  EXPECT_TRUE(regions.add(2, kClose));
  EXPECT_EQ(regions.depth(), 0);
  EXPECT_FALSE(regions.add(3, kClose));
}

TEST(Regions, OpenUntilIsWhatAWalkFinds) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint8_t> opcodes;
    int depth = 0;
    for (int i = 0; i < 40; ++i) {
      const unsigned pick = random() % 4;
      opcodes.push_back(pick == 0 ? kOpen : pick == 1 && depth > 0 ? kClose : kOther);
      depth += opcodes.back() == kOpen ? 1 : opcodes.back() == kClose ? -1 : 0;
    }
    const Regions regions = regions_of(opcodes);
    EXPECT_EQ(regions.depth(), depth);
    for (uint32_t consumer = 1; consumer < opcodes.size(); ++consumer)
      for (uint32_t producer = 0; producer < consumer; ++producer)
        ASSERT_EQ(regions.open_until(producer, consumer), walked(opcodes, producer, consumer))
            << "trial " << trial << ": " << producer << " -> " << consumer;
  }
}

TEST(Regions, ALifeReachesOverTheLoopThatComesBackToIt) {
  //                                0       1      2       3       4       5      6
  const Regions regions = regions_of({kOther, kOpen, kOther, kOpen, kOther, kClose, kClose});
  EXPECT_EQ(regions.extend(0, 4), 6u);
  EXPECT_EQ(regions.extend(2, 4), 5u);
  EXPECT_EQ(regions.extend(4, 4), 4u);
  EXPECT_EQ(regions.retract(0, 4), 1u);
  EXPECT_EQ(regions.retract(2, 4), 3u);
  EXPECT_EQ(regions.retract(4, 4), 4u);
}

}  // namespace
}  // namespace sterna
