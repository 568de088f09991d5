// SPDX-License-Identifier: Apache-2.0
// Reads what instructions cost from a chip file: the formula of each and its constants.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sterna/hardware/number_reader.h"

namespace sterna::chip_file {

class InstructionReader {
 public:
  InstructionReader(const TomlFile& file, const NumberReader& numbers) : file_(file), numbers_(numbers) {}

  /// [instruction.NAME] and, by engine, [instruction_default.NAME]: adds to `costs`, which are in the order of names.
  Status read(std::string_view group, std::vector<InstructionCost>& costs) const;

 private:
  Status read_instruction(const std::string& name, const std::string& path, const toml::table& table,
                          std::vector<InstructionCost>& costs) const;
  Status check_keys(const std::string& path, const toml::table& table, InstructionCost& cost) const;
  Status read_fast_cases(const toml::table& table, InstructionCost& cost) const;
  Status check_constants(const std::string& path, const toml::table& table, const InstructionCost& cost) const;

  const TomlFile& file_;
  const NumberReader& numbers_;
};

}  // namespace sterna::chip_file
