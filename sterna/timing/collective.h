// SPDX-License-Identifier: Apache-2.0
// What a record of a collective asks of the links: how many ranks, over which distance, how many bytes.
#pragma once

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/isa/collectives.h"
#include "sterna/program/program.h"

namespace sterna {

struct Collective {
  int ranks = 0;  ///< of the group; 0 where the rank takes no part
  bool several_chips = false;
  bool in_hbm = false;
  double bytes = 0;    ///< the whole of it: what each rank ends up with, or begins with if that is more
  uint32_t group = 0;  ///< its text
};

/// Rank r is core r * c and the c - 1 after it, for a program of c cores; chips are filled one after the other.
/// CC1: not a group of ranks.
Result<Collective> find_collective(const Program& program, const RecordHeader& header, int rank, const Chip& chip);

}  // namespace sterna
