// SPDX-License-Identifier: Apache-2.0
// Where this command is installed, and what is installed with it.
#pragma once

#include <string>
#include <vector>

namespace sterna::cli {

/// The folder of the running command, links resolved.
std::string command_directory();

/// The hardware folders to search for a command in `directory`: PREFIX/share/sterna/hardware, then
/// sterna/hardware among the packages of PREFIX/lib/python*, then ./hardware. Only those that exist, unless none does.
std::vector<std::string> installed_hardware(const std::string& directory);

}  // namespace sterna::cli
