// SPDX-License-Identifier: Apache-2.0
// The list of subcommands. A new one is a new file and a line here.
#include "sterna/cli/chip_command.h"
#include "sterna/cli/command.h"
#include "sterna/cli/program_command.h"
#include "sterna/cli/run_command.h"
#include "sterna/cli/trace_command.h"

namespace sterna::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {run_command(), program_command(), trace_command(), chip_command()};
  return list;
}

}  // namespace sterna::cli
