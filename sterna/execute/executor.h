// SPDX-License-Identifier: Apache-2.0
// Executor: runs a Program for its values. It never asks what time it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/base/threads.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/machine.h"
#include "sterna/program/program.h"
#include "sterna/trace/path.h"

namespace sterna {

/// One core's run of a growing Program: a resumable stepper. It never blocks a thread.
class Executor {
 public:
  enum class State : uint8_t { kDone, kBlocked, kFault };

  struct Options {
    UninitPolicy uninit = UninitPolicy::kError;
    bool strict = false;
    std::shared_ptr<BufferPool> buffers;  ///< memory kept between runs; may be empty
    /// Called by device_print with the text to print.
    std::function<void(const std::string&)> print;
    /// Asked now and then; true stops the run with a fault of rule INTERRUPT.
    std::function<bool()> interrupted;
  };

  Executor(const Program& program, const Chip& chip, ThreadPool* pool, Options options);

  Machine& machine() { return machine_; }
  const Path& path() const { return path_; }

  /// Runs records up to (not including) `end`, or all recorded so far. With `final`, storage is given back after its
  /// tensor's last use. Returns kDone, or kFault with `fault` set and located.
  State run(size_t end, bool final, Fault* fault);
  size_t next() const { return next_; }
  uint64_t executed() const { return executed_; }

 private:
  Status step(size_t index);
  Status run_range(size_t begin, size_t end);
  Result<size_t> region_end(size_t begin) const;
  Status run_loop(size_t begin, size_t region_end);
  Status run_while(size_t begin, size_t region_end);
  Status run_if(size_t begin, size_t region_end);
  Status look_for_interrupt();
  Status record_path(const TableRow& row, const void* body);
  Status print(const void* body);
  void release_dead(size_t index);

  const Program* program_;
  Options options_;
  Machine machine_;
  Path path_;
  size_t next_ = 0;
  uint64_t executed_ = 0;
  bool final_ = false;
  int region_depth_ = 0;
  std::vector<uint32_t> by_last_use_;  // local tensors in order of last use, for a final run
  size_t released_ = 0;
};

/// The text of a tensor's values as device_print and print(tensor) show it.
std::string values_text(Machine& machine, const View& view);

}  // namespace sterna
