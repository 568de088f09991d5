// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/run.h"

namespace sterna {

using State = Executor::State;

Run::Run(const Program& program, const Chip& chip, ThreadPool* pool, const Executor::Options& options)
    : program_(&program) {
  const int cores = static_cast<int>(program.cores.size());
  Executor::Seat seat;
  if (cores > 1) {
    meeting_ = std::make_unique<Meeting>(program, cores);
    seat.meeting = meeting_.get();
    seat.shared = std::make_shared<SharedHbm>(cores);
  }
  for (seat.core = 0; seat.core < cores; ++seat.core)
    executors_.push_back(std::make_unique<Executor>(program, chip, pool, options, seat));
}

Status Run::bind(uint32_t tensor, void* data, bool writable) {
  STERNA_TRY(machine(0).bind(tensor, data, writable));
  for (int c = 1; c < cores(); ++c) machine(c).adopt(tensor);
  return {};
}

State Run::advance(int c, bool release, bool* progress, Fault* fault) {
  Executor& executor = core(c);
  const uint64_t before = executor.executed();
  const State state = executor.run(SIZE_MAX, release, fault);
  *progress = *progress || executor.executed() != before;
  return state;
}

/// From `first`, in order, until it has ended (or all have) or none can go on.
State Run::take_turns(int first, bool all, bool release, Fault* fault) {
  for (bool progress = true; progress;) {
    progress = false;
    for (int k = 0; k < cores(); ++k) {
      const State state = advance((first + k) % cores(), release, &progress, fault);
      if (state == State::kFault) return state;
      if (!all && ended(first)) return State::kDone;
    }
  }
  for (int c = 0; c < cores(); ++c)
    if ((all || c == first) && !ended(c)) return State::kBlocked;
  return State::kDone;
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
