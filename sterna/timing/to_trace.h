// SPDX-License-Identifier: Apache-2.0
// A prediction as a Trace, complete in itself.
#pragma once

#include "sterna/timing/model.h"
#include "sterna/trace/trace.h"

namespace sterna {

/// `program`, `paths` and `chip` are those that `timing` was made from.
Trace to_trace(const Program& program, std::span<const Path> paths, const Chip& chip, const Timing& timing);
inline Trace to_trace(const Program& program, const Path& path, const Chip& chip, const Timing& timing) {
  return to_trace(program, std::span(&path, 1), chip, timing);
}

}  // namespace sterna
