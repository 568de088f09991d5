// SPDX-License-Identifier: Apache-2.0
// A prediction as a Trace, complete in itself.
#pragma once

#include "sterna/timing/model.h"
#include "sterna/trace/trace.h"

namespace sterna {

/// `program`, `path` and `chip` are those that `timing` was made from.
Trace to_trace(const Program& program, const Path& path, const Chip& chip, const Timing& timing);

}  // namespace sterna
