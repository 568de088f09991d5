// SPDX-License-Identifier: Apache-2.0
// Which instructions of the cores of one kernel meet: found by walking the cores' meets in program order under the
// rules of execute/meeting.h and execute/fabric.h, without values.
#pragma once

#include "sterna/timing/lower.h"

namespace sterna {

/// Fills in `meetings`, and `meeting` of each Meet. LNC7: a core waits for a partner that never comes.
Status match_meetings(const Program& program, Lowered& lowered);

}  // namespace sterna
