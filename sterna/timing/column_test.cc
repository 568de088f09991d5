// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/column.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>

namespace sterna {
namespace {

TEST(Column, KeepsItsValuesWhileItGrows) {
  Column<uint32_t> c(BufferPool::make());
  for (uint32_t i = 0; i < 10000; ++i) EXPECT_EQ(c.push_back(i), i);
  ASSERT_EQ(c.size(), 10000u);
  for (uint32_t i = 0; i < 10000; ++i) ASSERT_EQ(c[i], i);
  EXPECT_EQ(c.front(), 0u);
  EXPECT_EQ(c.back(), 9999u);
  EXPECT_EQ(std::accumulate(c.begin(), c.end(), uint64_t{0}), 49995000u);
}

TEST(Column, AMovedColumnTakesTheValuesAlong) {
  Column<int64_t> a;
  a.push_back(7);
  Column<int64_t> b(std::move(a));
  EXPECT_TRUE(a.empty());
  a.push_back(1);
  EXPECT_EQ(a.back(), 1);
  a = std::move(b);
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0], 7);
}

TEST(Column, TheNextOneFindsTheMemoryOfTheLast) {
  const auto pool = BufferPool::make();
  const int32_t* place = nullptr;
  for (int i = 0; i < 2; ++i) {
    Column<int32_t> c(pool);
    c.reserve(1000);
    if (i == 0)
      place = c.data();
    else
      EXPECT_EQ(c.data(), place);
  }
}

}  // namespace
}  // namespace sterna
