// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/toml_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "sterna/base/text.h"

namespace sterna::chip_file {

Fault bad(std::string message, Place where) {
  Fault fault(FaultKind::kBadInput, "", std::move(message));
  fault.where = std::move(where);
  return fault;
}

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer:
    case toml::node_type::floating_point: return "a bare number";
    case toml::node_type::boolean: return "a bare true or false";
    default: return "a date";
  }
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in || std::filesystem::is_directory(path))
    return bad(cat("cannot read the chip file \"", path, "\"; check that it exists and may be read"), {});
  return text.str();
}

Result<TomlFile> TomlFile::parse(std::string_view text, std::string name) {
  toml::parse_result parsed = toml::parse(text, std::string_view(name));
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    return bad(cat("not valid TOML: ", parsed.error().description()),
               {name, static_cast<int>(at.line), static_cast<int>(at.column), ""});
  }
  return TomlFile(std::move(parsed).table(), std::move(name));
}

Result<std::string> TomlFile::text_at(const toml::table& table, std::string_view key, bool required) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    if (!required) return std::string();
    return bad(cat("the key \"", key, "\" is missing; write ", key, " = \"...\""), place(table));
  }
  const auto* text = node->as_string();
  if (text == nullptr)
    return bad(cat("\"", key, "\" is ", kind_of(*node), "; write it as a string, ", key, " = \"...\""), place(*node));
  return text->get();
}

Result<std::vector<std::string>> TomlFile::strings_at(const toml::table& table, std::string_view key) const {
  std::vector<std::string> out;
  const toml::node* node = table.get(key);
  if (node == nullptr) return out;
  if (node->as_array() == nullptr)
    return bad(cat("\"", key, "\" is ", kind_of(*node), "; write a list of strings, ", key, " = [\"...\"]"),
               place(*node));
  for (const toml::node& element : *node->as_array()) {
    if (element.as_string() == nullptr)
      return bad(cat("\"", key, "\" holds ", kind_of(element), "; it is a list of strings"), place(element));
    out.push_back(element.as_string()->get());
  }
  return out;
}

}  // namespace sterna::chip_file
