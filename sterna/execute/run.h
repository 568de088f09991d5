// SPDX-License-Identifier: Apache-2.0
// Run: all cores of one kernel, run for their values. Cores take turns on the calling thread, record by record, so that
// results do not depend on the timing of threads.
#pragma once

#include <memory>
#include <vector>

#include "sterna/execute/executor.h"
#include "sterna/execute/meeting.h"

namespace sterna {

class Run {
 public:
  /// `program` may grow while it runs; its number of cores may not. As one of several ranks it meets the others in
  /// `fabric`; without one it is the only rank.
  Run(const Program& program, const Chip& chip, ThreadPool* pool, const Executor::Options& options,
      Fabric* fabric = nullptr, int rank = 0);

  /// Every core uses its part of `plan`, which must come from runs of this program, and outlive this.
  void use(Plan* plan);

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
  /// Where each core waits, in words.
  std::string describe() const { return meeting_->describe(); }

  uint64_t executed() const;
  /// What the run decided, by core.
  std::vector<Path> paths() const;

 private:
  bool ended(int core) const { return this->core(core).next() >= this->core(core).stream().size(); }
  Executor::State advance(int core, size_t end, bool release, bool* progress, Fault* fault);
  Executor::State take_turns(int first, bool all, bool release, Fault* fault);

  friend class Ranks;

  const Program* program_;
  std::unique_ptr<Fabric> own_fabric_;
  Fabric* fabric_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<std::unique_ptr<Executor>> executors_;  // by core
};

/// Several kernels, each a rank, run together. Ranks take turns as cores do.
class Ranks {
 public:
  /// All on as many cores.
  explicit Ranks(int ranks, int cores) : fabric_(ranks, cores) {}
  Fabric* fabric() { return &fabric_; }
  /// The next rank's run, made with fabric(); must outlive this.
  void add(Run* run) { runs_.push_back(run); }
  /// Runs every rank to its end. Ranks that wait for ever are a fault (CC10). `*failed` is the rank with the fault.
  Executor::State finish(Fault* fault, size_t* failed);

 private:
  Fabric fabric_;
  std::vector<Run*> runs_;
};

}  // namespace sterna
