// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/run.h"

#include <algorithm>

#include "sterna/base/text.h"

namespace sterna {

using State = Executor::State;

Run::Run(const Program& program, const Chip& chip, ThreadPool* pool, const Executor::Options& options, Fabric* fabric,
         int rank)
    : program_(&program), fabric_(fabric) {
  const int cores = static_cast<int>(program.cores.size());
  if (fabric_ == nullptr) {
    own_fabric_ = std::make_unique<Fabric>(1, cores);
    fabric_ = own_fabric_.get();
  }
  meeting_ = std::make_unique<Meeting>(program, cores, fabric_, rank);
  Executor::Seat seat;
  seat.rank = rank;
  seat.meeting = meeting_.get();
  if (cores > 1) seat.shared = std::make_shared<SharedHbm>(cores);
  for (seat.core = 0; seat.core < cores; ++seat.core)
    executors_.push_back(std::make_unique<Executor>(program, chip, pool, options, seat));
}

void Run::use(Plan* plan) {
  plan->resize(executors_.size());
  for (size_t c = 0; c < executors_.size(); ++c) executors_[c]->use(&(*plan)[c]);
}

Status Run::bind(uint32_t tensor, void* data, bool writable) {
  STERNA_TRY(machine(0).bind(tensor, data, writable));
  for (int c = 1; c < cores(); ++c) machine(c).adopt(tensor);
  return {};
}

State Run::advance(int c, size_t end, bool release, bool* progress, Fault* fault) {
  Executor& executor = core(c);
  const uint64_t executed = executor.executed();
  const size_t next = executor.next();
  const State state = executor.run(end, release, fault);
  *progress = *progress || executor.executed() != executed || executor.next() != next;
  return state;
}

/// From `first`, in order, until it has ended (or all have) or none can go on. Cores that all go to their ends take a
/// record each in turn. They run side by side on a chip, and kernels count on that where they do not meet: both zero a
/// shared tensor, say, and each then writes its part.
State Run::take_turns(int first, bool all, bool release, Fault* fault) {
  for (bool progress = true; progress;) {
    progress = false;
    for (int k = 0; k < cores(); ++k) {
      const int c = (first + k) % cores();
      const size_t end = all && cores() > 1 ? core(c).next() + 1 : SIZE_MAX;
      const State state = advance(c, end, release, &progress, fault);
      if (state == State::kFault) return state;
      if (!all && ended(first)) return State::kDone;
    }
    if (progress || !own_fabric_) continue;
    Result<bool> resolved = own_fabric_->resolve();
    if (!resolved) {
      *fault = std::move(resolved.error());
      return State::kFault;
    }
    progress = *resolved;
  }
  for (int c = 0; c < cores(); ++c)
    if ((all || c == first) && !ended(c)) return State::kBlocked;
  return State::kDone;
}

State Ranks::finish(Fault* fault, size_t* failed) {
  for (bool progress = true; progress;) {
    progress = false;
    bool ended = true;
    for (size_t r = 0; r < runs_.size(); ++r) {
      const uint64_t before = runs_[r]->executed();
      const State state = runs_[r]->take_turns(0, true, true, fault);
      if (state == State::kFault) {
        *failed = r;
        return state;
      }
      ended = ended && state == State::kDone;
      progress = progress || runs_[r]->executed() != before;
    }
    if (ended) return State::kDone;
    if (progress) continue;
    Result<bool> resolved = fabric_.resolve();
    if (!resolved) {
      *fault = std::move(resolved.error());
      return State::kFault;
    }
    progress = *resolved;
  }
  std::string text = "Deadlock between ranks: ";
  for (size_t r = 0; r < std::min<size_t>(runs_.size(), 8); ++r)
    text += cat(r ? "; " : "", "[rank ", r, "] ", runs_[r]->describe());
  *fault = Fault(FaultKind::kRuleBroken, "CC10", cat(text, runs_.size() > 8 ? "; ..." : ""));
  return State::kFault;
}

State Run::run_core(int c, Fault* fault) { return take_turns(c, false, false, fault); }

State Run::finish(Fault* fault, Memory memory) {
  const State state = take_turns(0, true, memory == Memory::kRelease, fault);
  if (state != State::kBlocked) return state;
  *fault = deadlock();
  return State::kFault;
}

uint64_t Run::executed() const {
  uint64_t sum = 0;
  for (const auto& executor : executors_) sum += executor->executed();
  return sum;
}

std::vector<Path> Run::paths() const {
  std::vector<Path> out;
  for (const auto& executor : executors_) out.push_back(executor->path());
  return out;
}

}  // namespace sterna
