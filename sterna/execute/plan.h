// SPDX-License-Identifier: Apache-2.0
// Plan: what one run of a Program found out for the next runs, one list of steps for each core (machine/replay_step.h).
// It belongs to whoever runs the Program again, not to the Program. A plan may be used with any arguments, options,
// SIMD target and number of threads: a step asks before it acts, and gives the bytes that its instruction would give.
#pragma once

#include <cstddef>
#include <vector>

#include "sterna/machine/replay_step.h"

namespace sterna {

struct CorePlan {
  std::vector<ReplayStep> steps;  ///< in the order of their records, which are in no region
  size_t noted = 0;               ///< records that a run has looked at
};
using Plan = std::vector<CorePlan>;  // by core

}  // namespace sterna
