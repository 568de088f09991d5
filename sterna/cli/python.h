// SPDX-License-Identifier: Apache-2.0
// Hands over to the Python interpreter this command was installed with.
#pragma once

#include <string>
#include <vector>

#include "sterna/cli/command.h"

namespace sterna::cli {

/// The interpreter to use: $STERNA_PYTHON, else python3 or python beside this command (where an environment keeps
/// both), else the first python3 on PATH. Empty if there is none.
std::string find_python(const std::string& command_directory);

/// Replaces this process by `python -m MODULE WORDS...`. Returns only if that fails.
int run_python_module(const std::string& module, const std::vector<std::string>& words, Output output);

}  // namespace sterna::cli
