// SPDX-License-Identifier: Apache-2.0
// Definedness of views that do not follow the rows of their tensor, and the check of what a run leaves behind.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sterna/machine/test_fixture.h"

namespace sterna {
namespace {

TEST_F(MachineTest, ARunThatCrossesRowsMarksWhereItLies) {
  // Rows of 10 elements; runs of 4 that start at columns 0, 4 and 8: the last one ends in the next row.
  const View t = make({8, 10}, DType::kFloat32, Memory::kHbm);
  const View v = strided(t, 0, {{4, 3}, {10, 4}, {1, 4}});
  m_.mark_defined(v);
  const auto states = m_.element_states(t);
  for (int64_t e = 0; e < 80; ++e) {
    bool inside = false;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j) inside = inside || (e >= 4 * i + 10 * j && e < 4 * i + 10 * j + 4);
    EXPECT_EQ(states[static_cast<size_t>(e)] == ElementState::kDefined, inside) << "element " << e;
  }
  EXPECT_TRUE(m_.is_defined(v));
}

TEST_F(MachineTest, DefinednessOfAnyStridesAgreesWithOneFlagAnElement) {
  std::mt19937 random(23);
  auto below = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    const int64_t cols = 1 + below(12), rows = 4 + below(8), total = cols * rows;
    const View t = make({rows, cols}, DType::kBFloat16, Memory::kHbm);
    std::vector<bool> flags(static_cast<size_t>(total), false);
    for (int step = 0; step < 6; ++step) {
      std::vector<Dim> dims;
      for (int d = 0; d < 3; ++d) {
        const int64_t stride = below(3) == 0 ? cols : below(2 * cols) - cols / 2;
        dims.push_back(
            {static_cast<int32_t>(d == 2 && below(2) == 0 ? 1 : stride), static_cast<int32_t>(1 + below(4))});
      }
      const View v = strided(t, below(total), dims);
      if (!in_bounds(v, tensors_[t.tensor])) continue;
      bool all = true;
      for (int64_t i = 0; i < dims[0].count; ++i)
        for (int64_t j = 0; j < dims[1].count; ++j)
          for (int64_t k = 0; k < dims[2].count; ++k) {
            const auto e = static_cast<size_t>(v.offset + i * dims[0].stride + j * dims[1].stride + k * dims[2].stride);
            all = all && flags[e];
            if (step % 2 == 0) flags[e] = true;
          }
      if (step % 2 == 0)
        m_.mark_defined(v);
      else
        EXPECT_EQ(m_.is_defined(v), all) << "round " << round;
      const auto states = m_.element_states(t);
      for (size_t e = 0; e < flags.size(); ++e) ASSERT_EQ(states[e] == ElementState::kDefined, flags[e]);
    }
  }
}

TEST_F(MachineTest, AResultOrWrittenParameterIsCheckedByThePolicy) {
  float data[6] = {1, 2, 3, 4, 5, 6};
  const uint32_t parameter = add({2, 3}, DType::kFloat32, Memory::kHbm), tile = add({2, 3});
  const View p = whole_view(parameter, tensors_[parameter]), t = whole_view(tile, tensors_[tile]);
  for (UninitPolicy policy : {UninitPolicy::kError, UninitPolicy::kWarn, UninitPolicy::kFill}) {
    Machine::Options o = options();
    o.uninit = policy;
    Machine m(o, &pool_, &tensors_, &dynamics_);
    ASSERT_TRUE(m.bind(parameter, data, true));
    ASSERT_TRUE(m.allocate(tile));
    EXPECT_TRUE(m.check_result(parameter, "argument"));
    // The middle column of the parameter becomes what was never written.
    data[1] = data[4] = 77;
    m.copy_definedness(part(p, 0, 2, 1, 2), part(t, 0, 2, 0, 1));
    const Status status = m.check_result(parameter, "argument");
    EXPECT_EQ(m.warnings().size(), policy == UninitPolicy::kWarn ? 1u : 0u);
    if (policy == UninitPolicy::kError) {
      EXPECT_EQ(rule_of(status), "OUT2");
      EXPECT_NE(status.error().message.find("'argument'"), std::string::npos) << status.error().message;
      EXPECT_EQ(data[1], 77);
      continue;
    }
    EXPECT_TRUE(status);
    EXPECT_TRUE(data[1] == 0 && data[4] == 0);
    EXPECT_EQ(data[0], 1);
    EXPECT_EQ(data[5], 6);
  }
}

}  // namespace
}  // namespace sterna
