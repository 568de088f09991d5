// SPDX-License-Identifier: Apache-2.0
// Trace: the record of one run, complete in itself: the path, when each instruction ran and what it waited for, and the
// names needed to show that. Columns, not rows, since viewers and statistics read a few columns of many instructions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/trace/path.h"

namespace sterna {

/// Version 2 has several cores. Files of version 1 are read as those of one.
inline constexpr uint32_t kTraceVersion = 2;
inline constexpr uint32_t kNoCause = UINT32_MAX;

/// One entry for each instruction that ran, in program order, one core after the other.
struct TraceColumns {
  std::vector<uint32_t> record;   ///< index into its core's stream; loops repeat it
  std::vector<uint32_t> what;     ///< name of the instruction
  std::vector<uint8_t> queue;     ///< index into Trace::queues
  std::vector<int64_t> start_ps;  ///< since the kernel began
  std::vector<int64_t> duration_ps;
  std::vector<uint8_t> cause;               ///< index into Trace::causes: what it waited for last
  std::vector<uint32_t> cause_instruction;  ///< which instruction that was; kNoCause if none
  std::vector<uint32_t> site;               ///< index into Trace::sites
  std::vector<uint32_t> iteration;          ///< how often its site was reached before

  size_t size() const { return record.size(); }
};

/// A line of the source, called from `parent`. File and function are names.
struct TraceSite {
  uint32_t file = 0, function = 0;
  int32_t line = 0;
  uint32_t parent = 0;
};

struct TraceTensor {
  uint32_t name = 0;
  std::string memory, dtype;
  std::vector<int64_t> shape;
  int64_t byte = -1;  ///< place inside its partitions; -1 in HBM
  uint32_t partition = 0;
  uint32_t site = 0;
};

struct TraceQueue {
  std::string name;
  int64_t instructions = 0, busy_ps = 0;
  uint32_t core = 0;  ///< that has it
};

struct TraceMetric {
  std::string name, unit;
  double value = 0;
};

/// Time that a site's line has on the critical path.
struct TraceLine {
  uint32_t site = 0;
  int64_t ps = 0;
};

/// A number that a prediction used and that is not documented or measured.
struct TraceUncertain {
  std::string key, text, source, trust;
};

struct Trace {
  std::vector<Path> paths;  ///< by core
  std::string program, target, bound;
  int64_t kernel_ps = 0, total_ps = 0;
  std::vector<std::string> names;  ///< 0 is empty
  std::vector<TraceSite> sites;    ///< 0 is "not known"
  std::vector<TraceQueue> queues;
  std::vector<std::string> causes;
  TraceColumns instructions;
  std::vector<TraceTensor> tensors;
  std::vector<TraceMetric> metrics;
  std::vector<TraceLine> lines;  ///< most time first
  std::vector<TraceUncertain> uncertain;
  std::vector<std::string> notes;

  std::string_view name(uint32_t id) const {
    return id < names.size() ? std::string_view(names[id]) : std::string_view();
  }
  /// One more than the highest core of a queue.
  uint32_t cores() const;
  /// "tensor"; "core 1 tensor" where there are several cores.
  std::string queue_name(size_t queue) const;
  /// "kernel.py:12", or empty if not known.
  std::string place(uint32_t site) const;
};

/// The binary form.
std::string write_trace(const Trace& trace);
/// Faults: TRACE1 (not a trace), TRACE2 (another version), TRACE3 (damaged or cut short).
Result<Trace> read_trace(std::string_view bytes);

Status save_trace(const Trace& trace, const std::string& path);
Result<Trace> load_trace(const std::string& path);

}  // namespace sterna
