// SPDX-License-Identifier: Apache-2.0
// Finds chips by name over the hardware folders. A new chip is one more file in a folder's chips/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/hardware/loader.h"

namespace sterna {

/// Where hardware data is looked for, best first: each entry of STERNA_HARDWARE (separated by ':'), then what
/// set_hardware_directories was given, else ./hardware. A hardware folder has a subfolder chips/.
std::vector<std::string> hardware_directories();

/// Says where the program that embeds this library keeps its hardware folder. The Python package and the command call
/// it once at start.
void set_hardware_directories(std::vector<std::string> directories);

/// A chip by name ("trn2"), by alias ("gen3") or by path ("./my_chip.toml").
Result<Chip> find_chip(std::string_view name);

/// All chips of all folders, by name; a folder hides chips of the same name in folders after it.
Result<std::vector<ChipHeader>> list_chips();

}  // namespace sterna
