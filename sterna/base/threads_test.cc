// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define STERNA_UNDER_TSAN 1
#else
#define STERNA_UNDER_TSAN 0
#endif

namespace sterna {
namespace {

using std::ptrdiff_t;

// How often each index of [0, count) is visited, and that no piece is longer than the grain.
void expect_each_once(ThreadPool& pool, ptrdiff_t count, ptrdiff_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
  std::atomic<ptrdiff_t> longest{0};
  pool.run(count, grain, [&](ptrdiff_t begin, ptrdiff_t end) {
    for (ptrdiff_t seen = longest.load(); seen < end - begin && !longest.compare_exchange_weak(seen, end - begin);) {
    }
    for (ptrdiff_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  for (ptrdiff_t i = 0; i < count; ++i)
    ASSERT_EQ(visits[static_cast<size_t>(i)], 1) << "index " << i << " of " << count;
  EXPECT_LE(longest, std::max<ptrdiff_t>(grain, 1));
}

// Sets STERNA_THREADS for the life of the object.
class ThreadsVariable {
 public:
  explicit ThreadsVariable(const char* value) {
    if (const char* old = std::getenv("STERNA_THREADS")) old_ = old;
    setenv("STERNA_THREADS", value, 1);
  }
  ~ThreadsVariable() {
    if (old_.empty()) {
      unsetenv("STERNA_THREADS");
    } else {
      setenv("STERNA_THREADS", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

TEST(ThreadPool, VisitsEachIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const ptrdiff_t count : {0, 1, 2, 3, 16, 127, 1000}) {
      for (const ptrdiff_t grain : {0, 1, 2, 5, 128, 5000}) expect_each_once(pool, count, grain);
    }
  }
}

TEST(ThreadPool, ManySmallLoops) {
  for (const int threads : {2, 7}) {
    ThreadPool pool(threads);
    ptrdiff_t wrong = 0;
    for (int loop = 0; loop < 5000; ++loop) {
      // Each piece writes a plain variable: the caller must see all of them when run() returns.
      ptrdiff_t parts[9] = {};
      pool.run(9, 1, [&](ptrdiff_t begin, ptrdiff_t) { parts[begin] = begin + loop; });
      ptrdiff_t sum = 0;
      for (const ptrdiff_t part : parts) sum += part;
      if (sum != 36 + 9 * loop) ++wrong;
    }
    EXPECT_EQ(wrong, 0);
  }
}

// More loops than the 16 bits that number them, with pauses in which the workers fall asleep.
TEST(ThreadPool, LoopNumbersWrap) {
  ThreadPool pool(3);
  std::atomic<ptrdiff_t> sum{0};
  constexpr ptrdiff_t kLoops = 66000;
  for (ptrdiff_t loop = 0; loop < kLoops; ++loop) {
    pool.run(2, 1, [&](ptrdiff_t begin, ptrdiff_t end) { sum.fetch_add(end - begin, std::memory_order_relaxed); });
    if (loop % 10000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sum, 2 * kLoops);
}

TEST(ThreadPool, WorkersTakePartAlsoAfterSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    // Each piece waits until another thread has begun one, so this only ends if a worker comes.
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::atomic<int> started{0};
    pool.run(2, 1, [&](ptrdiff_t, ptrdiff_t) {
      ++started;
      while (started < 2) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(ids.size(), 2u);
  }
}

TEST(ThreadPool, OneThreadStaysOnTheCaller) {
  ThreadPool pool(1);
  std::vector<std::thread::id> ids;
  pool.run(10, 1, [&](ptrdiff_t, ptrdiff_t) { ids.push_back(std::this_thread::get_id()); });
  EXPECT_EQ(ids, std::vector<std::thread::id>(10, std::this_thread::get_id()));
}

TEST(ThreadPool, NestedLoopsRunOnTheThreadThatCallsThem) {
  ThreadPool pool(4);
  std::atomic<ptrdiff_t> sum{0}, strangers{0};
  pool.run(20, 1, [&](ptrdiff_t begin, ptrdiff_t end) {
    const auto id = std::this_thread::get_id();
    for (ptrdiff_t i = begin; i < end; ++i) {
      pool.run(10, 3, [&](ptrdiff_t inner_begin, ptrdiff_t inner_end) {
        if (std::this_thread::get_id() != id) ++strangers;
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 200);
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, SeveralCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 500; ++loop) {
        std::atomic<ptrdiff_t> sum{0};
        pool.run(50, 4, [&](ptrdiff_t begin, ptrdiff_t end) { sum += end - begin; });
        if (sum != 50) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 3 != 0) expect_each_once(pool, 20, 1);
  }
}

TEST(ThreadPool, TakesConstAndStoredBodies) {
  ThreadPool pool(2);
  std::atomic<ptrdiff_t> sum{0};
  const auto body = [&](ptrdiff_t begin, ptrdiff_t end) { sum += end - begin; };
  pool.run(8, 2, body);
  struct Counter {
    std::atomic<ptrdiff_t> calls{0};
    void operator()(ptrdiff_t, ptrdiff_t) { ++calls; }
  } counter;
  pool.run(8, 2, counter);
  EXPECT_EQ(sum, 8);
  EXPECT_EQ(counter.calls, 4);
}

TEST(ThreadPool, DefaultFollowsTheEnvironmentThenTheProcessors) {
  {
    const ThreadsVariable variable("5");
    EXPECT_EQ(ThreadPool().threads(), 5);
    EXPECT_EQ(ThreadPool(2).threads(), 2);
  }
  for (const char* odd : {"", "0", "-3", "2x", "many"}) {
    const ThreadsVariable variable(odd);
    EXPECT_EQ(ThreadPool().threads(), usable_processors()) << '"' << odd << '"';
  }
}

#if !STERNA_UNDER_TSAN  // which does not allow threads after fork
TEST(ThreadPool, WorksInAChildProcess) {
  ThreadPool pool(3);
  expect_each_once(pool, 100, 1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang ends as a signal, which the parent sees
    ptrdiff_t sum = 0;
    pool.run(100, 1, [&](ptrdiff_t begin, ptrdiff_t end) { sum += end - begin; });
    pool.~ThreadPool();
    _exit(sum == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  expect_each_once(pool, 100, 1);
}
#endif

TEST(ThreadPool, SharesCoverEveryIndexOnceForAnyThreadCount) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (std::ptrdiff_t count : {0, 1, 2, 5, 7, 64, 1000}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        std::atomic<int> calls{0};
        pool.run_shares(count, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
          calls.fetch_add(1);
          for (std::ptrdiff_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
        });
        for (auto& hit : hits) ASSERT_EQ(hit.load(), 1) << threads << " threads, " << count;
        ASSERT_LE(calls.load(), threads);
      }
    }
  }
}

}  // namespace
}  // namespace sterna
