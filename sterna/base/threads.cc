// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace sterna {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::chrono::microseconds kSpin{50};

int processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// STERNA_THREADS, or 0 where it is absent or is not a positive number.
int threads_from_environment() {
  const char* text = std::getenv("STERNA_THREADS");
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  int wanted = 0;
  const auto [rest, error] = std::from_chars(text, end, wanted);
  return error == std::errc() && rest == end && wanted > 0 ? wanted : 0;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins while `wait()` holds, at most kSpin; tells whether it still holds.
template <class Wait>
bool spin_while(Wait wait) {
  for (int i = 0; i < 64; ++i) {
    if (!wait()) return false;
    relax();
  }
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (!wait()) return false;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return wait();
}

// The gate is one word: how many workers are inside the loop, whether they may enter, whether they must leave for good,
// and the number of the loop, so that the word changes with each. A worker enters by adding one while the gate is open,
// and may read the loop until it subtracts one; the caller closes the gate and waits for the last to leave before it
// returns. A worker that wakes too late finds the gate closed, and nobody waits for it.
constexpr uint32_t kInside = 0x3fff, kStop = 0x4000, kOpen = 0x8000, kNumberOne = 0x10000;
constexpr uint32_t number_of(uint32_t gate) { return gate / kNumberOne; }

}  // namespace

struct ThreadPool::State {
  pid_t process = getpid();
  int threads = 1;
  Loop loop = {};  // written only while the gate is closed and nobody is inside
  std::vector<std::thread> workers;
  alignas(64) std::atomic<uint32_t> gate{0};
  alignas(64) std::atomic<std::ptrdiff_t> next{0};
  alignas(64) std::atomic<bool> busy{false};
  uint32_t sequence = 0;  // of the loop; written as `loop` is
  std::unique_ptr<std::atomic<uint32_t>[]>
      claimed;  // by share: the sequence number of the loop in which it was last taken

  void take_shares(const Loop& own, uint32_t number, int thread) {
    const auto shares = static_cast<int>((own.count + own.grain - 1) / own.grain);
    for (int k = 0; k < shares; ++k) {
      const int share = (thread + k) % shares;
      if (claimed[static_cast<size_t>(share)].exchange(number, std::memory_order_relaxed) == number) continue;
      const std::ptrdiff_t begin = share * own.grain;
      own.call(own.object, begin, std::min(begin + own.grain, own.count));
    }
  }

  void take_pieces(int thread) {
    const Loop own = loop;
    if (own.shares) return take_shares(own, sequence, thread);
    for (;;) {
      const std::ptrdiff_t begin = next.fetch_add(own.grain, std::memory_order_relaxed);
      if (begin >= own.count) return;
      own.call(own.object, begin, std::min(begin + own.grain, own.count));
    }
  }

  bool enter(uint32_t seen) {
    const uint32_t number = number_of(seen);
    while ((seen & kOpen) != 0 && number_of(seen) == number) {
      if (gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  void work(int thread) {
    uint32_t last = 0;  // number of the loop last entered or found closed
    for (;;) {
      // The stop bit counts on its own: the number may have come round to the one a late worker remembers.
      const auto is_old = [&](uint32_t seen) { return number_of(seen) == last && (seen & kStop) == 0; };
      while (spin_while([&] { return is_old(gate.load(std::memory_order_relaxed)); })) {
        const uint32_t seen = gate.load(std::memory_order_relaxed);
        if (is_old(seen)) gate.wait(seen, std::memory_order_relaxed);
      }
      const uint32_t seen = gate.load(std::memory_order_acquire);
      if ((seen & kStop) != 0) return;
      last = number_of(seen);
      if (!enter(seen)) continue;
      take_pieces(thread);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  // A new number with `bits`, and wakes the workers. Nobody is inside and the gate is closed, so this thread alone
  // changes the word. The exchange orders the word before the count of sleepers that notify_all reads (libstdc++ makes
  // no system call when it is zero); after a plain store a worker could fall asleep unseen.
  void change_gate(uint32_t bits) {
    gate.exchange((gate.load(std::memory_order_relaxed) + kNumberOne) | bits, std::memory_order_seq_cst);
    gate.notify_all();
  }

  void run(const Loop& wanted) {
    loop = wanted;
    ++sequence;
    next.store(0, std::memory_order_relaxed);
    change_gate(kOpen);
    take_pieces(0);
    gate.fetch_and(~kOpen, std::memory_order_relaxed);
    const auto somebody_inside = [&] { return (gate.load(std::memory_order_acquire) & kInside) != 0; };
    while (spin_while(somebody_inside)) std::this_thread::yield();
  }

  void start(int wanted) {
    claimed = std::make_unique<std::atomic<uint32_t>[]>(static_cast<size_t>(wanted));
    try {
      for (int i = 1; i < wanted; ++i) workers.emplace_back([this, i] { work(i); });
    } catch (const std::system_error&) {
      // The system gives no more threads: the pool is as large as it got.
    }
    threads = 1 + static_cast<int>(workers.size());
  }

  void stop() {
    change_gate(kStop);
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = threads_from_environment();
  if (threads <= 0) threads = processors();
  state_->start(std::min(threads, kMostThreads));
}

ThreadPool::~ThreadPool() {
  // After fork() the workers exist in the parent only, and a thread object that cannot be joined cannot be destroyed
  // either.
  if (state_->process != getpid()) {
    static_cast<void>(state_.release());
    return;
  }
  state_->stop();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::run_pieces(const Loop& loop) {
  State& state = *state_;
  const bool alone = loop.count <= loop.grain || state.threads == 1 || state.process != getpid();
  if (alone || state.busy.exchange(true, std::memory_order_acquire)) {
    for (std::ptrdiff_t begin = 0; begin < loop.count; begin += loop.grain) {
      loop.call(loop.object, begin, std::min(begin + loop.grain, loop.count));
    }
    return;
  }
  state.run(loop);
  state.busy.store(false, std::memory_order_release);
}

}  // namespace sterna
