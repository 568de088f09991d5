// SPDX-License-Identifier: Apache-2.0
// A chip file as TOML: its tables, and messages that name file, line and column. The only file that includes toml++.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "sterna/base/result.h"

namespace sterna::chip_file {

Fault bad(std::string message, Place where);
/// "a table", "a bare number": what stands there, for messages.
std::string_view kind_of(const toml::node& node);
Result<std::string> read_text(const std::string& path);

class TomlFile {
 public:
  TomlFile() = default;  ///< empty, as Result asks
  /// `name` is for messages.
  static Result<TomlFile> parse(std::string_view text, std::string name);

  const toml::table& root() const { return root_; }
  const std::string& name() const { return name_; }
  Place place(const toml::node& node) const { return place(node.source()); }
  Place place(const toml::key& key) const { return place(key.source()); }

  /// The string at `key`; empty if it is not there and not required.
  Result<std::string> text_at(const toml::table& table, std::string_view key, bool required) const;
  Result<std::vector<std::string>> strings_at(const toml::table& table, std::string_view key) const;

 private:
  TomlFile(toml::table root, std::string name) : root_(std::move(root)), name_(std::move(name)) {}
  Place place(const toml::source_region& region) const {
    return {name_, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column), ""};
  }

  toml::table root_;
  std::string name_;
};

}  // namespace sterna::chip_file
