// SPDX-License-Identifier: Apache-2.0
// Executor: runs a Program for its values. It never asks what time it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/base/threads.h"
#include "sterna/execute/plan.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/machine.h"
#include "sterna/program/program.h"
#include "sterna/trace/path.h"

namespace sterna {

class Meeting;

/// One core's run of a growing Program: a resumable stepper. It never blocks a thread.
class Executor {
 public:
  enum class State : uint8_t {
    kDone,     ///< up to the end that was asked for
    kBlocked,  ///< waits for another core at a record of sterna/isa/cores.h
    kFault
  };

  struct Options {
    UninitPolicy uninit = UninitPolicy::kError;
    bool strict = false;
    int64_t rounding_seed = -1;           ///< of stochastic rounding; negative: to nearest even
    std::shared_ptr<BufferPool> buffers;  ///< memory kept between runs; may be empty
    /// Called by device_print with the text to print.
    std::function<void(const std::string&)> print;
    /// Asked now and then; true stops the run with a fault of rule INTERRUPT.
    std::function<bool()> interrupted;
  };
  /// The place of a core among those of its kernel.
  struct Seat {
    int core = 0, rank = 0;
    Meeting* meeting = nullptr;         ///< where it meets the others; null for one core
    std::shared_ptr<SharedHbm> shared;  ///< what they share; empty for one core
  };

  Executor(const Program& program, const Chip& chip, ThreadPool* pool, Options options, Seat seat);
  Executor(const Program& program, const Chip& chip, ThreadPool* pool, Options options)
      : Executor(program, chip, pool, std::move(options), Seat{}) {}

  /// Takes the steps of `plan` where it has them, and adds those of records that it has not seen. It must come from
  /// runs of this program and this core, and outlive this.
  void use(CorePlan* plan);

  Machine& machine() { return machine_; }
  const Path& path() const { return path_; }

  /// Runs records up to (not including) `end`, or all recorded so far. With `final`, storage is given back after its
  /// tensor's last use. On kFault, `fault` is set and located. A run that is blocked goes on when it is called again.
  State run(size_t end, bool final, Fault* fault);
  size_t next() const { return next_; }
  uint64_t executed() const { return executed_; }
  const Stream& stream() const { return program_->cores[static_cast<size_t>(seat_.core)]; }

 private:
  /// An open region: its records lie between `begin` and `close`; what remains of its loop.
  struct Region {
    size_t begin, close;
    int64_t i = 0, high = 0, step = 0;
  };
  Result<State> advance(size_t end);
  Status take_steps(size_t end);
  Status step(const RecordHeader& header);
  Status note(const RecordHeader& header);
  Status execute(const RecordHeader& header, const TableRow& row);
  Result<bool> meet(const RecordHeader& header);
  Status enter_region(const RecordHeader& header);
  Result<int64_t> bound(int32_t value, RegisterRef reg);
  Result<bool> holds(const RecordHeader& header);
  Status next_trip();
  void leave_region();
  Result<size_t> region_end(size_t begin) const;
  Status look_for_interrupt();
  Status record_path(const TableRow& row, const void* body);
  Status print(const void* body);
  void begin_final();
  void release_dead(size_t index);

  const Program* program_;
  const std::array<TableRow, 256>* table_ = &instruction_table();
  Options options_;
  Seat seat_;
  Machine machine_;
  Path path_;
  size_t at_ = 0;    // next record, inside a region too
  size_t next_ = 0;  // next record that is in no region
  std::vector<Region> regions_;
  uint64_t executed_ = 0;
  CorePlan* plan_ = nullptr;
  size_t next_step_ = 0;  // of the plan
  bool final_ = false;
  std::vector<uint32_t> by_last_use_;  // local tensors in order of last use, for a final run
  size_t released_ = 0;
  size_t next_release_ = SIZE_MAX;  // the next of them may be released after this record, or later
};

/// The text of a tensor's values as device_print and print(tensor) show it.
std::string values_text(Machine& machine, const View& view);

}  // namespace sterna
