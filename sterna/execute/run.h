// SPDX-License-Identifier: Apache-2.0
// Run: all cores of one kernel, run for their values. Cores take turns on the calling thread: one runs until it waits
// for another, so that results do not depend on the timing of threads.
#pragma once

#include <memory>
#include <vector>

#include "sterna/execute/executor.h"
#include "sterna/execute/meeting.h"

namespace sterna {

class Run {
 public:
  /// `program` may grow while it runs; its number of cores may not.
  Run(const Program& program, const Chip& chip, ThreadPool* pool, const Executor::Options& options);

  int cores() const { return static_cast<int>(executors_.size()); }
  Executor& core(int core) { return *executors_[static_cast<size_t>(core)]; }
  const Executor& core(int core) const { return *executors_[static_cast<size_t>(core)]; }
  Machine& machine(int core = 0) { return this->core(core).machine(); }
  /// Gives a parameter its values, for every core.
  Status bind(uint32_t tensor, void* data, bool writable);

  /// Runs until `core` has executed all that it has recorded. kBlocked when it waits for something that no core has
  /// recorded yet.
  Executor::State run_core(int core, Fault* fault);
  /// What becomes of a tensor's storage after its last use.
  enum class Memory : uint8_t { kRelease, kKeep };
  /// Runs every core to its end: nothing more will be recorded. A core that waits for ever is a fault (LNC7).
  Executor::State finish(Fault* fault, Memory memory = Memory::kRelease);

  /// Why no core can go on (LNC7).
  Fault deadlock() const { return meeting_->deadlock(); }

  uint64_t executed() const;
  /// What the run decided, by core.
  std::vector<Path> paths() const;

 private:
  bool ended(int core) const { return this->core(core).next() >= this->core(core).stream().size(); }
  Executor::State advance(int core, bool release, bool* progress, Fault* fault);
  Executor::State take_turns(int first, bool all, bool release, Fault* fault);

  const Program* program_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<std::unique_ptr<Executor>> executors_;  // by core
};

}  // namespace sterna
