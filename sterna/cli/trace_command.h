// SPDX-License-Identifier: Apache-2.0
// `sterna trace`: what a trace on disk says, and its form for other viewers.
#pragma once

#include <iosfwd>

#include "sterna/cli/command.h"
#include "sterna/trace/trace.h"

namespace sterna::cli {

Command trace_command();

/// Times, engines, causes of waiting, source lines, uncertain numbers.
void print_trace(std::ostream& out, const Trace& trace);

}  // namespace sterna::cli
