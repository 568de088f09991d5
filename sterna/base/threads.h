// SPDX-License-Identifier: Apache-2.0
// A pool that splits one loop over threads. Chunks are independent, so the result never depends on
// how many threads there are or which one takes a chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace sterna {

class ThreadPool {
 public:
  /// `threads` counts the caller; 1 means no worker is started. 0 takes STERNA_THREADS, else the
  /// number of processors this process may use.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls `body(begin, end)` over [0, count) in pieces of at most `grain` (at least 1), and waits for all. Workers and
  /// the caller take pieces as they become free. Workers spin for some microseconds between calls, then sleep.
  ///
  /// The caller does all pieces itself when the pool is busy (a call from inside a body, or from another thread), and
  /// in a child process after fork(), where no worker exists. A body must not throw.
  template <class Body>
  void run(std::ptrdiff_t count, std::ptrdiff_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    const auto call = [](const void* object, std::ptrdiff_t begin, std::ptrdiff_t end) {
      (*static_cast<Plain*>(const_cast<void*>(object)))(begin, end);
    };
    run_pieces({count, grain < 1 ? 1 : grain, call, std::addressof(body), false});
  }

  /// Calls `body(begin, end)` over [0, count) in one share for each thread, and waits for all. The same thread takes
  /// the same share in each call, unless it comes so late that another is free first: loops over the same rows then
  /// find them in their own cache.
  template <class Body>
  void run_shares(std::ptrdiff_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    const auto call = [](const void* object, std::ptrdiff_t begin, std::ptrdiff_t end) {
      (*static_cast<Plain*>(const_cast<void*>(object)))(begin, end);
    };
    const std::ptrdiff_t share = (count + threads() - 1) / threads();
    run_pieces({count, share < 1 ? 1 : share, call, std::addressof(body), true});
  }

 private:
  struct Loop {
    std::ptrdiff_t count, grain;
    void (*call)(const void* object, std::ptrdiff_t begin, std::ptrdiff_t end);
    const void* object;
    bool shares;  // piece i belongs to thread i, as long as that comes in time
  };
  struct State;
  void run_pieces(const Loop& loop);

  std::unique_ptr<State> state_;
};

}  // namespace sterna
