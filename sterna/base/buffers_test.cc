// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/buffers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace sterna {
namespace {

TEST(Buffers, HoldsWhatWasAskedForOnACacheLine) {
  auto pool = BufferPool::make();
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{255}, size_t{257}, size_t{4096}, size_t{5000}, size_t{1} << 20,
                       (size_t{3} << 20) + 1}) {
    Buffer b = pool->take(bytes);
    ASSERT_TRUE(b);
    EXPECT_GE(b.capacity(), bytes);
    EXPECT_LE(b.capacity(), std::max<size_t>(256, bytes + bytes / 4 + 1));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    std::memset(b.data(), 1, b.capacity());
  }
}

TEST(Buffers, GivesTheSameMemoryAgain) {
  auto pool = BufferPool::make();
  Buffer a = pool->take(10000);
  std::byte* first = a.data();
  a.reset();
  Buffer b = pool->take(10001);  // of the same class
  EXPECT_EQ(b.data(), first);
  Buffer c = pool->take(10000);
  EXPECT_NE(c.data(), first);
}

TEST(Buffers, SparseMemoryIsFoundAgainAndKeptApart) {
  auto pool = BufferPool::make();
  Buffer a = pool->take(size_t{5} << 20, Touched::kSparse);
  ASSERT_TRUE(a);
  std::memset(a.data(), 1, a.capacity());
  std::byte* first = a.data();
  a.reset();
  Buffer dense = pool->take(size_t{5} << 20);
  EXPECT_NE(dense.data(), first);
  Buffer b = pool->take(size_t{5} << 20, Touched::kSparse);
  EXPECT_EQ(b.data(), first);
  Buffer c = std::move(b);
  c.reset();
  EXPECT_EQ(pool->take(size_t{5} << 20, Touched::kSparse).data(), first) << "a moved buffer knows its kind";
}

TEST(Buffers, KeepsNoMoreThanItsLimit) {
  auto pool = BufferPool::make(1000);
  Buffer a = pool->take(4096);
  a.reset();  // above the limit: given back to the system, not to the list
  Buffer b = pool->take(256), c = pool->take(256);
  std::byte* first = b.data();
  b.reset();
  EXPECT_EQ(pool->take(200).data(), first);
}

TEST(Buffers, MoveAndGiveBackWhatTheyHeld) {
  auto pool = BufferPool::make();
  Buffer a = pool->take(1000), b = pool->take(5000);
  std::byte *first = a.data(), *second = b.data();
  a = std::move(b);
  EXPECT_EQ(a.data(), second);
  EXPECT_FALSE(b);
  EXPECT_EQ(pool->take(1000).data(), first) << "what `a` held before is free again";
  Buffer& same = a;
  a = std::move(same);
  EXPECT_EQ(a.data(), second);
  const Buffer c = std::move(a);
  EXPECT_EQ(c.data(), second);
  EXPECT_FALSE(a);
}

TEST(Buffers, AreEmptyWhenTheSystemHasNoMoreMemory) {
  auto pool = BufferPool::make();
  Buffer b = pool->take(size_t{1} << 55);  // more than an address space
  EXPECT_FALSE(b);
  EXPECT_EQ(b.capacity(), 0u);
  b.reset();
  EXPECT_TRUE(pool->take(100));
}

TEST(Buffers, OutliveTheLastHandleOnThePool) {
  auto pool = BufferPool::make();
  Buffer a = pool->take(64);
  pool.reset();
  std::memset(a.data(), 0, 64);
}

TEST(Buffers, ServeSeveralThreads) {
  auto pool = BufferPool::make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Buffer b = pool->take(static_cast<size_t>(1000 + i % 7 * 500));
        std::memset(b.data(), t, 1000);
        for (int k = 0; k < 1000; k += 100) ASSERT_EQ(static_cast<int>(b.data()[k]), t);
      }
    });
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace sterna
