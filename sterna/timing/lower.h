// SPDX-License-Identifier: Apache-2.0
// First half of the event model: walks Program and Path in program order and writes down, in flat arrays, what each
// instruction that ran asks of its queue and which earlier instructions it waits for. No time is decided here.
#pragma once

#include <array>
#include <bitset>
#include <vector>

#include "sterna/program/placement.h"
#include "sterna/timing/model.h"

namespace sterna {

/// An earlier instruction that must have got somewhere first.
struct Wait {
  uint32_t producer;
  Cause cause;
  bool after_read;  ///< the producer need only have read its operands, not delivered its result
};

/// What a transfer asks of the DMA system, in picoseconds.
struct Transfer {
  int64_t engine_ps, issue_ps, hbm_ps;
  int32_t engines;
};

struct Lowered {
  std::vector<InstructionTime> instructions;  ///< queue, record; `end` holds the duration until the schedule is made
  std::vector<uint32_t> wait_begin;           ///< of each instruction, and one more
  std::vector<Wait> waits;                    ///< at most one for each queue, two for the tensor engine
  std::array<std::vector<uint32_t>, kQueues> order;
  std::array<std::vector<Transfer>, 2> transfers;  ///< of the load and the store queue, in their order
  std::vector<uint8_t> ports;  ///< bits of Port that the instruction holds; empty if no port is shared

  // What the report needs.
  std::bitset<256> opcodes;
  bool issue_static = false, issue_hardware = false, issue_software = false;
  bool psum_fill = false;  ///< PSUM was filled, on the queue that the chip's description names
  std::vector<const InstructionCost*> default_costs;  ///< of instructions without an entry of their own
  double dma_bytes = 0, hbm_read = 0, hbm_written = 0, multiply_adds = 0;
  double hbm_ps = 0;
};

/// Memory ports that two engines share on some chips.
enum Port : uint8_t {
  kSbufPort = 1,  ///< Vector and GpSimd
  kPsumPort = 2,  ///< Vector and Scalar
};

Result<Lowered> lower(const Program& program, const Path& path, const Chip& chip, const Placement& placement,
                      const TimingOptions& options);

}  // namespace sterna
