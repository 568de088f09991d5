// SPDX-License-Identifier: Apache-2.0
// Reads chip files and checks them: unknown and missing keys, wrong types and units, sources and trust, inheritance.
// Every refusal names file, line and column and says what to do. hardware/README.md describes the form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"

namespace sterna {

/// Reads one file. The chips it inherits from are searched beside it, then in DIRECTORY/chips of each directory.
Result<Chip> load_chip(const std::string& path, const std::vector<std::string>& directories = {});

/// The same from text; `file` is for messages and for finding parents beside it, and need not exist.
Result<Chip> load_chip_text(std::string_view text, const std::string& file,
                            const std::vector<std::string>& directories = {});

/// Only the names a file answers to, for listings: its title, its parent and its aliases, nothing checked beyond that.
struct ChipHeader {
  std::string name, title, inherits, file;
  std::vector<std::string> aliases;
};
Result<ChipHeader> load_chip_header(const std::string& path);

}  // namespace sterna
