// SPDX-License-Identifier: Apache-2.0
// The event model: when each instruction of a run starts and ends on a chip, and why not earlier. It reads a Program,
// the Paths of one run and a Chip; it never sees memory and never changes a value.
//
// Each core of a kernel has engines, queues, DMA engines, SBUF and PSUM of its own; cores of one HBM stack share its
// bandwidth. Cores wait for each other in sendrecv and core_barrier only: without them nothing orders one core's
// accesses to shared HBM after another's, and the model adds no order. A core comes to a core_barrier when all its
// earlier instructions that access the barrier's `data` are done.
//
//   auto timing = predict(program, paths, chip);
//   if (timing) timing->total_us(), timing->bound, timing->share(Queue::kTensor), timing->lines[0].where.line ...
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/program/program.h"
#include "sterna/timing/column.h"
#include "sterna/trace/path.h"

namespace sterna {

/// Where an instruction waits and runs. Each is in order. Loads, stores and what goes between cores and ranks
/// (sendrecv, collectives) have queues of their own.
enum class Queue : uint8_t { kTensor, kVector, kScalar, kGpSimd, kSync, kLoad, kStore, kExchange };
inline constexpr int kQueues = 8, kDmaQueues = 3;
inline constexpr std::string_view kQueueNames[kQueues] = {"tensor", "vector",   "scalar",    "gpsimd",
                                                          "sync",   "dma_load", "dma_store", "exchange"};
constexpr std::string_view name(Queue queue) { return kQueueNames[static_cast<size_t>(queue)]; }
constexpr bool is_dma(Queue queue) { return queue >= Queue::kLoad; }

/// What an instruction waited for last before it started.
enum class Cause : uint8_t {
  kLaunch,     ///< nothing: it starts as soon as the kernel does
  kOperand,    ///< data that another instruction writes
  kBuffer,     ///< its destination was still read or written by an earlier instruction
  kEngine,     ///< its engine was busy with the instruction before it
  kQueue,      ///< its DMA queue was busy issuing the transfer before it
  kDmaEngine,  ///< the DMA engines were busy with another transfer
  kHbm,        ///< HBM bandwidth was taken by another transfer
  kSemaphore,  ///< an order that the program asks for: a register, a branch, an edge set by the user
  kPort,       ///< the memory port was held by another engine
  kPartner,    ///< another core had not come to the sendrecv, barrier or collective
};
inline constexpr int kCauses = 10;
inline constexpr std::string_view kCauseNames[kCauses] = {"launch", "operand", "buffer",    "engine", "queue",
                                                          "dma",    "hbm",     "semaphore", "port",   "partner"};
constexpr std::string_view name(Cause cause) { return kCauseNames[static_cast<size_t>(cause)]; }

inline constexpr uint32_t kNoInstruction = UINT32_MAX;

/// One instruction as run; loops repeat a record. Times are picoseconds since the kernel's first instruction could
/// start. A transfer starts with the first byte of the DMA engine that finishes last, and ends with its last byte.
struct InstructionTime {
  int64_t start = 0, end = 0;
  uint32_t record = 0;                          ///< index into the core's stream
  uint32_t cause_instruction = kNoInstruction;  ///< index into Timing::instructions
  uint32_t site = 0;                            ///< of the record
  Queue queue = Queue::kSync;
  Cause cause = Cause::kLaunch;
  uint8_t core = 0;
  int64_t duration() const { return end - start; }
};

/// Time on the critical path that one source line has.
struct LineTime {
  Place where;
  uint32_t site = 0;  ///< one of the line's sites
  int64_t ps = 0;
};

/// A number of the chip file that is not documented or measured and took part in this prediction.
struct UncertainNumber {
  std::string key, text, source;
  Trust trust = Trust::kAssumed;
};

struct TimingOptions {
  /// Cores of the chip that stream from the same HBM stack at the same time, those of this program included.
  int cores_on_stack = 1;
  /// Which rank of a launch the program is; it decides with whom its collectives are. All its partners are taken to
  /// come to a collective when it does.
  int rank = 0;
};

using TimePerQueue = std::array<int64_t, kQueues>;

/// What one core of a kernel did.
struct CoreTiming {
  int64_t end_ps = 0;  ///< its last result
  TimePerQueue busy_ps = {}, counts = {};
};

struct Timing {
  Column<InstructionTime> instructions;  ///< in program order, one core after the other
  int64_t kernel_ps = 0;                 ///< first start to last result of the last core
  int64_t total_ps = 0;                  ///< the same and the launch
  TimePerQueue busy_ps = {};      ///< mean of the cores; a DMA queue: engine time of its transfers over the engines
  TimePerQueue counts = {};       ///< instructions of all cores
  std::vector<CoreTiming> cores;  ///< each by itself
  int64_t hbm_ps = 0;             ///< time that the HBM traffic takes at full bandwidth of the stacks used

  /// Time on the critical path by what it was spent on: each queue, then transfers held up by HBM, then latencies.
  std::array<int64_t, kQueues + 2> critical_ps = {};
  Column<uint32_t> critical;  ///< the path itself, from the first instruction to the last
  std::string bound;          ///< "tensor", "vector", "scalar", "gpsimd", "sync", "dma", "exchange", "hbm" or "latency"
  std::vector<LineTime> lines;  ///< source lines, most time on the critical path first

  double dma_bytes = 0, hbm_read = 0, hbm_written = 0;
  double multiply_adds = 0;
  int64_t sbuf_peak = 0, psum_peak = 0;          ///< bytes of one partition, of the fullest core
  int64_t sbuf_capacity = 0, psum_capacity = 0;  ///< the same, that the chip has
  std::vector<UncertainNumber> uncertain;
  std::vector<std::string> notes;  ///< assumptions of the model itself that this run touched

  double total_ns() const { return static_cast<double>(total_ps) / 1000; }
  double total_us() const { return static_cast<double>(total_ps) / 1e6; }
  /// Part of the kernel's time (launch not counted) that a queue is busy.
  double share(Queue queue) const { return share(busy_ps[static_cast<size_t>(queue)]); }
  double dma_share() const { return share(Queue::kLoad) + share(Queue::kStore); }
  double hbm_share() const { return share(hbm_ps); }
  double share(int64_t ps) const {
    return kernel_ps > 0 ? static_cast<double>(ps) / static_cast<double>(kernel_ps) : 0;
  }
};

/// Times all cores of a program. `paths`: of each core; those left out are empty. Faults: CAP1, CAP2 (placement does
/// not fit), PATH1 (a path belongs to another program or is missing), COST1 (the chip file has neither a cost for an
/// instruction nor a default for its engine), LNC7 (cores wait for each other for ever), CC1 (not a group of ranks).
Result<Timing> predict(const Program& program, std::span<const Path> paths, const Chip& chip,
                       const TimingOptions& options = {});
/// Multiply-adds of a run, also of a program that does not fit the chip's memories. Faults: PATH1, COST1, CC1.
Result<double> multiply_adds(const Program& program, std::span<const Path> paths, const Chip& chip,
                             const TimingOptions& options = {});
inline Result<Timing> predict(const Program& program, const Path& path, const Chip& chip,
                              const TimingOptions& options = {}) {
  return predict(program, std::span(&path, 1), chip, options);
}

}  // namespace sterna
