// SPDX-License-Identifier: Apache-2.0
// Reads the numbers of a chip file: { value, unit, source, trust }.
#pragma once

#include <string>
#include <string_view>

#include "sterna/hardware/chip.h"
#include "sterna/hardware/schema.h"
#include "sterna/hardware/toml_file.h"

namespace sterna::chip_file {

class NumberReader {
 public:
  /// Numbers belong to `chip`, whose sources explain theirs.
  NumberReader(const TomlFile& file, const Chip& chip) : file_(file), chip_(chip) {}

  /// Fills `field`, a Real, Count or Flag: its type says what a value may be.
  template <class Field>
  Status read(const std::string& key, const toml::node& node, const KeySpec& spec, Field& field) const;
  Result<Trust> trust_of(std::string_view word, const toml::node& node) const;

 private:
  template <class Field>
  Status read_value(const std::string& key, const toml::table& table, const KeySpec& spec, Field& field) const;
  template <class Field>
  Status check_range(const std::string& key, const toml::node& value, const KeySpec& spec, const Field& field) const;
  Status read_origin(const std::string& key, const toml::table& table, Number& number) const;

  const TomlFile& file_;
  const Chip& chip_;
};

}  // namespace sterna::chip_file
