// SPDX-License-Identifier: Apache-2.0
// The slots for packed operands: two of one instruction never meet, and nothing stale is handed out.
#include <gtest/gtest.h>

#include "sterna/machine/test_fixture.h"

namespace sterna {
namespace {

TEST_F(MachineTest, PackedOperandsOfOneInstructionAreTwoBuffers) {
  const View kept = make({4, 8});
  std::vector<View> others;
  for (int i = 0; i < 300; ++i) others.push_back(make({4, 8}));
  bool fresh;
  m_.packed(kept, false, false, 64, &fresh).data()[0] = 41;
  for (const View& v : others) {
    PackedOperand& first = m_.packed(kept, false, false, 64, &fresh);
    EXPECT_TRUE(fresh);
    PackedOperand& second = m_.packed(v, true, false, 64, &fresh);
    EXPECT_FALSE(fresh);
    ASSERT_NE(&first, &second);
    second.data()[0] = 7;
    ASSERT_EQ(first.data()[0], 41);
  }
  // The other way round: what was asked for first is new, what comes second was kept.
  for (const View& v : others) {
    PackedOperand& first = m_.packed(v, false, false, 64, &fresh);
    PackedOperand& second = m_.packed(others.back(), true, false, 64, &fresh);
    EXPECT_TRUE(fresh);
    ASSERT_NE(&first, &second);
  }
}

TEST_F(MachineTest, PackedOperandsOfPlacedTensorsAreNeverReused) {
  const View a = placed({4, 8}, 0, 0);
  ASSERT_TRUE(m_.allocate(a.tensor));
  bool fresh;
  for (int i = 0; i < 300; ++i) {
    PackedOperand& first = m_.packed(a, false, false, 64, &fresh);
    EXPECT_FALSE(fresh);
    PackedOperand& second = m_.packed(a, true, false, 64, &fresh);
    EXPECT_FALSE(fresh);
    ASSERT_NE(&first, &second);
  }
}

TEST_F(MachineTest, AChangedSourceIsPackedAgain) {
  const View v = make({4, 8});
  fill(v, 1);
  bool fresh;
  m_.packed(v, true, false, 64, &fresh);
  m_.packed(v, true, false, 64, &fresh);
  EXPECT_TRUE(fresh);
  fill(part(v, 0, 1, 0, 1), 2);
  m_.packed(v, true, false, 64, &fresh);
  EXPECT_FALSE(fresh);
  m_.packed(v, true, true, 64, &fresh);
  EXPECT_FALSE(fresh) << "another layout";
  m_.packed(part(v, 0, 4, 0, 4), true, false, 64, &fresh);
  EXPECT_FALSE(fresh) << "another part";
  m_.release(v.tensor);
  ASSERT_TRUE(m_.allocate(v.tensor));
  m_.packed(v, true, false, 64, &fresh);
  EXPECT_FALSE(fresh) << "another tensor in its place";
}

}  // namespace
}  // namespace sterna
