// SPDX-License-Identifier: Apache-2.0
// A trace as JSON that ui.perfetto.dev and chrome://tracing open: one track for each queue, an event for each
// instruction with its source line and what it waited for.
#pragma once

#include <iosfwd>

#include "sterna/trace/trace.h"

namespace sterna {

void write_perfetto(std::ostream& out, const Trace& trace);

}  // namespace sterna
