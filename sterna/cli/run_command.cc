// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/run_command.h"

#include "sterna/cli/python.h"

namespace sterna::cli {

Command run_command() {
  Command command;
  command.name = "run";
  command.summary = "run a Python program or kernel on the simulated chip (python -m sterna.run)";
  command.pass_through = [](const std::vector<std::string>& words, Output output) {
    return run_python_module("sterna.run", words, output);
  };
  return command;
}

}  // namespace sterna::cli
