// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/instruction_reader.h"

#include <algorithm>
#include <utility>

#include "sterna/base/text.h"
#include "sterna/hardware/nearest.h"

namespace sterna::chip_file {
namespace {

template <class Names, class Enum>
Status parse_name(const Names& names, const std::string& word, std::string_view what, Place where, Enum& out) {
  std::string list;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == word) {
      out = static_cast<Enum>(i);
      return {};
    }
    list += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  return bad(cat("the ", what, " \"", word, "\" is not one of ", list), std::move(where));
}

}  // namespace

Status InstructionReader::read(std::string_view group, std::vector<InstructionCost>& costs) const {
  const toml::node* node = file_.root().get(group);
  if (node == nullptr) return {};
  if (node->as_table() == nullptr)
    return bad(cat("\"", group, "\" names a group of tables; write [", group, ".NAME]"), file_.place(*node));
  for (const auto& [key, value] : *node->as_table()) {
    const std::string path = cat(group, ".", key.str());
    if (value.as_table() == nullptr)
      return bad(cat("\"", path, "\" is ", kind_of(value), "; write [", path, "]"), file_.place(value));
    STERNA_TRY(read_instruction(std::string(key.str()), path, *value.as_table(), costs));
  }
  return {};
}

Status InstructionReader::read_instruction(const std::string& name, const std::string& path, const toml::table& table,
                                           std::vector<InstructionCost>& costs) const {
  auto at = std::lower_bound(costs.begin(), costs.end(), name,
                             [](const InstructionCost& cost, const std::string& n) { return cost.name < n; });
  const bool is_new = at == costs.end() || at->name != name;
  if (is_new) at = costs.insert(at, InstructionCost{});
  InstructionCost& cost = *at;
  cost.name = name;
  STERNA_TRY(check_keys(path, table, cost));
  if (is_new || table.get("formula") != nullptr) {
    STERNA_ASSIGN(std::string word, file_.text_at(table, "formula", true));
    STERNA_TRY(parse_name(kFormulaNames, word, "formula", file_.place(*table.get("formula")), cost.formula));
  }
  cost.place = file_.place(table);
  STERNA_TRY(read_fast_cases(table, cost));
  if (const toml::node* wide = table.get("wide")) {
    if (wide->as_boolean() == nullptr) return bad(cat("\"", path, ".wide\" is not true or false"), file_.place(*wide));
    cost.wide = wide->as_boolean()->get();
  }
  Status status;
  visit_constants(cost, [&](std::string_view key, auto& field, const KeySpec& spec, std::string_view) {
    const toml::node* node = table.get(key);
    if (status && node != nullptr) status = numbers_.read(cat(path, ".", key), *node, spec, field);
  });
  STERNA_TRY(std::move(status));
  return check_constants(path, table, cost);
}

Status InstructionReader::check_keys(const std::string& path, const toml::table& table, InstructionCost& cost) const {
  std::vector<std::string> known = {"formula", "fast_when", "wide"};
  visit_constants(cost,
                  [&](std::string_view key, auto&, const KeySpec&, std::string_view) { known.emplace_back(key); });
  for (const auto& [key, value] : table) {
    const std::string part(key.str());
    if (std::find(known.begin(), known.end(), part) == known.end())
      return bad(cat("the key \"", path, ".", part, "\" is not known", nearest_hint(part, known)), file_.place(key));
  }
  return {};
}

Status InstructionReader::read_fast_cases(const toml::table& table, InstructionCost& cost) const {
  if (table.get("fast_when") == nullptr) return {};
  STERNA_ASSIGN(std::vector<std::string> words, file_.strings_at(table, "fast_when"));
  cost.fast_cases = 0;
  for (const std::string& word : words) {
    FastCase fast{};
    STERNA_TRY(parse_name(kFastCaseNames, word, "fast case", file_.place(*table.get("fast_when")), fast));
    cost.fast_cases |= bit(fast);
  }
  return {};
}

/// A formula has the constants it uses and no others.
Status InstructionReader::check_constants(const std::string& path, const toml::table& table,
                                          const InstructionCost& cost) const {
  std::vector<std::string_view> needed;
  switch (cost.formula) {
    case Formula::kElements:
    case Formula::kStartElements: needed = {"per_element"}; break;
    case Formula::kTopK: needed = {"per_element", "per_output"}; break;
    case Formula::kGather: needed = {"gather_base", "gather_width"}; break;
    case Formula::kFixed: needed = {"cycles"}; break;
    default: break;
  }
  if (cost.fast_cases != 0) needed.push_back("fast_per_element");
  std::string wrong;
  visit_constants(cost, [&](std::string_view key, const Number& number, const KeySpec&, std::string_view) {
    const bool is_needed = std::find(needed.begin(), needed.end(), key) != needed.end();
    if (!wrong.empty() || is_needed == number.stated) return;
    wrong = is_needed ? cat("needs \"", key, "\"; add it to [", path, "]")
                      : cat("does not use \"", key, "\"; remove it from [", path, "]");
  });
  if (wrong.empty()) return {};
  return bad(cat("\"", path, "\" with the formula \"", name(cost.formula), "\" ", wrong), file_.place(table));
}

}  // namespace sterna::chip_file
