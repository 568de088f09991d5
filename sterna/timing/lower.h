// SPDX-License-Identifier: Apache-2.0
// First half of the event model: walks Program and Path in program order and writes down, in flat arrays, what each
// instruction that ran asks of its queue and which earlier instructions it waits for. No time is decided here.
#pragma once

#include <array>

#include "sterna/program/placement.h"
#include "sterna/timing/access_map.h"
#include "sterna/timing/column.h"
#include "sterna/timing/costs.h"
#include "sterna/timing/model.h"

namespace sterna {

/// An earlier instruction that must have got somewhere first.
struct Wait {
  Ref producer;
  Cause cause;
  bool after_read;  ///< the producer need only have read its operands, not delivered its result
};

/// One instruction in its queue.
struct Queued {
  uint32_t instruction;  ///< index into Lowered::instructions
  uint32_t cost;         ///< work class
  uint32_t first_wait;   ///< index into Lowered::waits
  uint32_t waits;        ///< at most one for each queue, two for the tensor engine
};

struct Lowered {
  Lowered(const Program& program, const Stream& stream, const Chip& chip, const TimingOptions& options)
      : costs(program, stream, chip, options), instructions(stream.pool()), waits(stream.pool()) {
    for (auto& queue : order) queue = Column<Queued>(stream.pool());
  }

  Costs costs;
  Column<InstructionTime> instructions;  ///< record, site, queue; the rest is the schedule's to fill in
  Column<Wait> waits;
  std::array<Column<Queued>, kQueues> order;

  // What the report needs.
  double dma_bytes = 0, hbm_read = 0, hbm_written = 0, multiply_adds = 0;
  double hbm_ps = 0;
};

/// Fills in `out`, which was made for this program.
Status lower(const Program& program, const Path& path, const Chip& chip, const Placement& placement, Lowered& out);

}  // namespace sterna
