// SPDX-License-Identifier: Apache-2.0
// `sterna chip`: what is known about a chip, and where from.
#pragma once

#include <iosfwd>

#include "sterna/cli/command.h"
#include "sterna/hardware/catalog.h"

namespace sterna::cli {

Command chip_command();

/// The list of chips, one a line.
void print_chips(std::ostream& out, const std::vector<ChipHeader>& chips);
void print_chips_json(std::ostream& out, const std::vector<ChipHeader>& chips);

/// One chip by sections. With `sources`, each number's trust and source, and all sources at the end.
void print_chip(std::ostream& out, const Chip& chip, bool sources);
void print_chip_json(std::ostream& out, const Chip& chip);

}  // namespace sterna::cli
