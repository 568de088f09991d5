// SPDX-License-Identifier: Apache-2.0
// Second half of the event model: gives each instruction its start, its end and the cause of its start.
#pragma once

#include <vector>

#include "sterna/timing/lower.h"

namespace sterna {

/// When and why a transfer was handed to the DMA engines; beside the start of its bytes.
struct Issue {
  int64_t at = 0;
  uint32_t cause_instruction = kNoInstruction;
  Cause cause = Cause::kLaunch;
  bool hbm_bound = false;  ///< HBM bandwidth, not the DMA engines, set its end
};

struct CoreSchedule {
  std::array<std::vector<Issue>, kDmaQueues> issues;  ///< of the DMA queues, in their order
  int64_t end = 0;                                    ///< when the core's last result is there
  TimePerQueue busy_ps = {};
};

struct Schedule {
  Column<int64_t> visible;  ///< when others may use each result
  std::vector<CoreSchedule> cores;
  int64_t end = 0;                 ///< when the last result is there
  uint32_t last = kNoInstruction;  ///< whose result that is
};

/// Fills in start, end, cause of lowered.instructions.
Schedule schedule(Lowered& lowered, const Chip& chip, const std::shared_ptr<BufferPool>& pool);

}  // namespace sterna
