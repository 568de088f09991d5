// SPDX-License-Identifier: Apache-2.0
// First half of the event model: walks each core's stream and Path in program order and writes down, in flat arrays,
// what each instruction that ran asks of its queue, which earlier instructions it waits for and with which other cores
// it meets. No time is decided here.
#pragma once

#include <array>
#include <vector>

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

/// An instruction in which other cores or ranks take part.
struct Meet {
  static constexpr uint32_t kAlone = UINT32_MAX;
  uint32_t instruction;  ///< index into Lowered::instructions
  Queue queue;
  int64_t duration_ps;          ///< from when all have come; not of a transfer
  uint32_t meeting = kAlone;    ///< index into Lowered::meetings; alone where no other core of this kernel takes part
  uint32_t group = UINT32_MAX;  ///< of a collective in HBM, for which cores of one rank wait for each other: its text
};

/// One core's part of a meeting.
struct MeetingPart {
  uint32_t core, meet;  ///< index into the core's meets
};
using Meeting = std::vector<MeetingPart>;

/// One core.
struct LoweredCore {
  LoweredCore(const Program& program, const Stream& stream, const Chip& chip, const TimingOptions& options)
      : costs(program, stream, chip, options), waits(stream.pool()) {
    for (auto& queue : order) queue = Column<Queued>(stream.pool());
  }

  Costs costs;
  Column<Wait> waits;  ///< for earlier instructions of the same core
  std::array<Column<Queued>, kQueues> order;
  std::vector<Meet> meets;                                    ///< in program order
  bool link_inside_chip = false, link_between_chips = false;  ///< what its collectives use
};

struct Lowered {
  explicit Lowered(const Program& program) : instructions(program.cores[0].pool()) {}

  std::vector<LoweredCore> cores;
  std::vector<Meeting> meetings;
  Column<InstructionTime> instructions;  ///< record, site, queue, core; the rest is the schedule's to fill in

  // What the report needs.
  double dma_bytes = 0, hbm_read = 0, hbm_written = 0, multiply_adds = 0;
  double hbm_ps = 0;
};

/// `paths` by core; those left out are empty. A placement without places gives the work alone: no waits and no
/// meetings.
Status lower(const Program& program, std::span<const Path> paths, const Chip& chip, const Placement& placement,
             const TimingOptions& options, Lowered& out);

}  // namespace sterna
