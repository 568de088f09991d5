// SPDX-License-Identifier: Apache-2.0
// The critical path of a schedule: from the last result back through the cause of each start, and what its time was
// spent on.
#pragma once

#include "sterna/timing/schedule.h"

namespace sterna {

/// Indices into Timing::critical_ps beyond the queues.
inline constexpr size_t kCriticalHbm = kQueues, kCriticalLatency = kQueues + 1;

/// Fills in critical, critical_ps, bound and lines.
void find_critical_path(const Program& program, const Lowered& lowered, const Schedule& schedule, Timing& out);

}  // namespace sterna
