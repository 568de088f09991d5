// SPDX-License-Identifier: Apache-2.0
// The only file that includes toml++.
#include "sterna/hardware/loader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <type_traits>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "sterna/base/text.h"
#include "sterna/hardware/nearest.h"
#include "sterna/hardware/schema.h"

namespace sterna {
namespace {

namespace fs = std::filesystem;

Place place_of(const toml::node& node, const std::string& file) {
  const toml::source_position at = node.source().begin;
  return {file, static_cast<int>(at.line), static_cast<int>(at.column), ""};
}

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

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in || fs::is_directory(path))
    return bad(cat("cannot read the chip file \"", path, "\"; check that it exists and may be read"), {});
  return text.str();
}

Result<toml::table> parse_toml(std::string_view text, const std::string& file) {
  toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (!parsed) {
    const toml::source_position at = parsed.error().source().begin;
    return bad(cat("not valid TOML: ", parsed.error().description()),
               {file, static_cast<int>(at.line), static_cast<int>(at.column), ""});
  }
  return std::move(parsed).table();
}

/// Where inheritance has come from, outermost first, and where to look for parents.
struct Lineage {
  const std::vector<std::string>& directories;
  std::vector<std::string> names;
};

Result<Chip> load(std::string_view text, const std::string& file, Lineage& lineage);

/// Reads one file's tables into a chip that may already hold its parent's values.
class Reader {
 public:
  Reader(const toml::table& root, std::string file, Lineage& lineage)
      : root_(root), file_(std::move(file)), lineage_(lineage) {}

  Result<Chip> read() {
    STERNA_TRY(read_header());
    STERNA_TRY(read_sources());
    STERNA_TRY(check_keys());
    STERNA_TRY(read_numbers());
    STERNA_TRY(check_partitions());
    STERNA_TRY(read_instructions("instruction_default", chip_.instruction_defaults));
    STERNA_TRY(read_instructions("instruction", chip_.instructions));
    STERNA_TRY(read_absences("instructions", chip_.absent_instructions));
    STERNA_TRY(read_absences("dtypes", chip_.absent_dtypes));
    STERNA_TRY(check_complete());
    return std::move(chip_);
  }

 private:
  // ---- header, parent, sources

  /// A string at the top of the file; empty if it is not there and not required.
  Result<std::string> text_at(const toml::table& table, std::string_view key, bool required) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (!required) return std::string();
      return bad(cat("the key \"", key, "\" is missing; write ", key, " = \"...\""), place_of(table, file_));
    }
    const auto* text = node->as_string();
    if (text == nullptr)
      return bad(cat("\"", key, "\" is ", kind_of(*node), "; write it as a string, ", key, " = \"...\""),
                 place_of(*node, file_));
    return text->get();
  }

  Result<std::vector<std::string>> strings_at(const toml::table& table, std::string_view key) {
    std::vector<std::string> out;
    const toml::node* node = table.get(key);
    if (node == nullptr) return out;
    if (node->as_array() == nullptr)
      return bad(cat("\"", key, "\" is ", kind_of(*node), "; write a list of strings, ", key, " = [\"...\"]"),
                 place_of(*node, file_));
    for (const toml::node& element : *node->as_array()) {
      if (element.as_string() == nullptr)
        return bad(cat("\"", key, "\" holds ", kind_of(element), "; it is a list of strings"),
                   place_of(element, file_));
      out.push_back(element.as_string()->get());
    }
    return out;
  }

  Status read_header() {
    STERNA_ASSIGN(std::string name, text_at(root_, "name", true));
    if (const std::string stem = fs::path(file_).stem().string(); name != stem)
      return bad(cat("the chip is named \"", name, "\" but its file \"", stem,
                     ".toml\"; chips are found by file name, "
                     "so make the two agree"),
                 place_of(*root_.get("name"), file_));
    STERNA_ASSIGN(std::string parent, text_at(root_, "inherits", false));
    lineage_.names.push_back(name);
    if (!parent.empty()) STERNA_TRY(read_parent(parent));
    chip_.name = name;
    chip_.inherits = parent;
    chip_.file = file_;
    STERNA_ASSIGN(chip_.title, text_at(root_, "title", true));
    STERNA_ASSIGN(chip_.aliases, strings_at(root_, "aliases"));
    return {};
  }

  Status read_parent(const std::string& parent) {
    const Place where = place_of(*root_.get("inherits"), file_);
    if (std::find(lineage_.names.begin(), lineage_.names.end(), parent) != lineage_.names.end()) {
      std::string chain;
      for (const std::string& name : lineage_.names) chain += cat(name, " -> ");
      return bad(
          cat("inheritance runs in a circle: ", chain, parent, "; one of these chips must state all its numbers"),
          where);
    }
    std::vector<std::string> tried = {(fs::path(file_).parent_path() / (parent + ".toml")).string()};
    for (const std::string& directory : lineage_.directories)
      tried.push_back((fs::path(directory) / "chips" / (parent + ".toml")).string());
    const auto found = std::find_if(tried.begin(), tried.end(), [](const std::string& p) { return fs::exists(p); });
    if (found == tried.end()) {
      std::string list;
      for (const std::string& path : tried) list += (list.empty() ? "" : ", ") + path;
      return bad(cat("the chip \"", parent, "\" that this one inherits from is in none of: ", list), where);
    }
    STERNA_ASSIGN(std::string text, read_file(*found));
    STERNA_ASSIGN(chip_, load(text, *found, lineage_));
    return apply_inherited_trust();
  }

  /// What an announced chip takes over from its predecessor is a guess, whatever it was there.
  Status apply_inherited_trust() {
    STERNA_ASSIGN(std::string word, text_at(root_, "inherited_trust", false));
    if (word.empty()) return {};
    STERNA_ASSIGN(Trust trust, trust_of(word, *root_.get("inherited_trust")));
    const auto lower = [trust](std::string_view, Number& number, const KeySpec&, std::string_view) {
      number.trust = std::max(number.trust, trust);
    };
    visit_numbers(chip_, lower);
    for (InstructionCost& cost : chip_.instruction_defaults) visit_constants(cost, lower);
    for (InstructionCost& cost : chip_.instructions) visit_constants(cost, lower);
    return {};
  }

  Status read_sources() {
    const toml::node* node = root_.get("sources");
    if (node == nullptr) return {};
    if (node->as_table() == nullptr)
      return bad(cat("\"sources\" is ", kind_of(*node), "; write a table [sources] of ID = \"text\""),
                 place_of(*node, file_));
    for (const auto& [key, value] : *node->as_table()) {
      const std::string id(key.str());
      if (value.as_string() == nullptr)
        return bad(cat("source \"", id, "\" is ", kind_of(value), "; write its text as a string"),
                   place_of(value, file_));
      const auto [at, is_new] = chip_.sources.emplace(id, value.as_string()->get());
      if (!is_new && at->second != value.as_string()->get())
        return bad(cat("source \"", id, "\" already means \"", at->second,
                       "\" in a chip this one inherits from; "
                       "choose another id"),
                   place_of(value, file_));
    }
    return {};
  }

  // ---- numbers

  Result<Trust> trust_of(std::string_view word, const toml::node& node) {
    if (const auto trust = parse_trust(word)) return *trust;
    return bad(cat("trust \"", word, "\" is not one of documented, measured, claimed, estimated, assumed"),
               place_of(node, file_));
  }

  /// Fills `number` from { value, unit, source, trust }. The type of the field says what a value may be.
  template <class Field>
  Status read_number(const std::string& key, const toml::node& node, const KeySpec& spec, Field& field) {
    constexpr bool is_flag = std::is_same_v<Field, Flag>;
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return bad(cat("\"", key, "\" is ", kind_of(node), "; every number states its source, as in { value = ...",
                     is_flag ? "" : ", unit = \"...\"", ", source = \"ID\", trust = \"documented\" }"),
                 place_of(node, file_));
    for (const auto& [part, value] : *table)
      if (part.str() != "value" && part.str() != "source" && part.str() != "trust" && (is_flag || part.str() != "unit"))
        return bad(cat("\"", key, "\" has an unknown part \"", part.str(), "\"; a ", is_flag ? "yes or no" : "number",
                       " has value, ", is_flag ? "" : "unit, ", "source and trust"),
                   place_of(value, file_));
    field = Field{};
    field.key = key;
    field.chip = chip_.name;
    field.place = place_of(node, file_);
    STERNA_TRY(read_value(key, *table, spec, field));
    STERNA_TRY(read_origin(key, *table, field));
    field.stated = true;
    return {};
  }

  template <class Field>
  Status read_value(const std::string& key, const toml::table& table, const KeySpec& spec, Field& field) {
    const toml::node* value = table.get("value");
    if (value == nullptr) return bad(cat("\"", key, "\" has no value; add value = ..."), place_of(table, file_));
    if constexpr (std::is_same_v<Field, Flag>) {
      if (value->as_boolean() == nullptr)
        return bad(cat("the value of \"", key, "\" is not true or false"), place_of(*value, file_));
      field.value = field.stated_value = value->as_boolean()->get() ? 1 : 0;
      return {};
    } else {
      const bool is_number = value->as_integer() != nullptr || value->as_floating_point() != nullptr;
      if (!is_number)
        return bad(cat("the value of \"", key, "\" is not a number; write a number without quotes"),
                   place_of(*value, file_));
      field.stated_value = *value->value<double>();
      STERNA_ASSIGN(field.unit, text_at(table, "unit", true));
      auto unit = parse_unit(field.unit);
      if (!unit) return bad(cat("\"", key, "\": ", unit.error().message), place_of(*table.get("unit"), file_));
      if (unit->dimension != spec.dimension)
        return bad(cat("\"", key, "\" has the unit \"", field.unit, "\", but is ", describe(spec.dimension)),
                   place_of(*table.get("unit"), file_));
      field.value = field.stated_value * unit->scale;
      return check_range(key, *value, spec, field);
    }
  }

  template <class Field>
  Status check_range(const std::string& key, const toml::node& value, const KeySpec& spec, const Field& field) {
    const bool in_range = std::isfinite(field.value) && (spec.positive ? field.value > 0 : field.value >= 0);
    if (!in_range)
      return bad(cat("\"", key, "\" is ", number_text(field.stated_value), "; it must be finite and ",
                     spec.positive ? "above zero" : "zero or more"),
                 place_of(value, file_));
    // 2^53: above it a double no longer holds every whole number.
    if (std::is_same_v<Field, Count> && (field.value != std::floor(field.value) || field.value > 9007199254740992.0))
      return bad(cat("\"", key, "\" is ", number_text(field.value), ", but counts whole things"),
                 place_of(value, file_));
    return {};
  }

  Status read_origin(const std::string& key, const toml::table& table, Number& number) {
    if (table.get("source") == nullptr)
      return bad(cat("\"", key, "\" has no source; add source = \"ID\" with the ID explained in [sources]"),
                 place_of(table, file_));
    STERNA_ASSIGN(number.source_id, text_at(table, "source", true));
    const auto source = chip_.sources.find(number.source_id);
    if (source == chip_.sources.end())
      return bad(cat("\"", key, "\" cites the source \"", number.source_id,
                     "\", which [sources] does not explain; add ", number.source_id, " = \"...\" there"),
                 place_of(*table.get("source"), file_));
    number.source = source->second;
    if (table.get("trust") == nullptr)
      return bad(cat("\"", key,
                     "\" has no trust; add trust = \"documented\", \"measured\", \"claimed\", \"estimated\" "
                     "or \"assumed\""),
                 place_of(table, file_));
    STERNA_ASSIGN(std::string word, text_at(table, "trust", true));
    STERNA_ASSIGN(number.trust, trust_of(word, *table.get("trust")));
    return {};
  }

  Status read_numbers() {
    Status status;
    visit_numbers(chip_, [&](std::string_view key, auto& field, const KeySpec& spec, std::string_view) {
      if (!status) return;
      if (!field.stated) field.value = spec.absent_value;
      const toml::node* node = root_.at_path(key).node();
      if (node != nullptr) status = read_number(std::string(key), *node, spec, field);
    });
    return status;
  }

  Status check_partitions() {
    for (const Count* count : {&chip_.sbuf.partitions, &chip_.limits.partitions})
      if (*count > kMaxPartitions)
        return bad(cat("\"", count->key, "\" is ", number_text(count->value), "; this simulator is made for at most ",
                       kMaxPartitions, " partitions (kMaxPartitions in sterna/hardware/chip.h)"),
                   count->place);
    return {};
  }

  // ---- keys that should or should not be there

  /// Refuses any key that nothing reads, since a misspelt key would silently keep the parent's number.
  Status check_keys() {
    std::vector<std::string> known = {
        "name",    "title",       "inherits",     "inherited_trust", "aliases",
        "sources", "instruction", "instructions", "dtypes",          "instruction_default"};
    const size_t tops = known.size();
    visit_numbers(chip_,
                  [&known](std::string_view key, auto&, const KeySpec&, std::string_view) { known.emplace_back(key); });
    for (const auto& [key, value] : root_) {
      const bool is_top = std::find(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(tops),
                                    std::string(key.str())) != known.begin() + static_cast<std::ptrdiff_t>(tops);
      if (!is_top) STERNA_TRY(check_key(std::string(key.str()), key, value, known));
    }
    return {};
  }

  Status check_key(const std::string& path, const toml::key& key, const toml::node& value,
                   const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), path) != known.end()) return {};
    const bool is_section =
        std::any_of(known.begin(), known.end(), [&](const std::string& k) { return k.starts_with(path + "."); });
    if (is_section && value.as_table() == nullptr)
      return bad(cat("\"", path, "\" is ", kind_of(value), ", but names a section; write [", path, "]"),
                 place_of(value, file_));
    if (!is_section) {
      const toml::source_position at = key.source().begin;
      return bad(cat("the key \"", path, "\" is not known", nearest_hint(path, known)),
                 {file_, static_cast<int>(at.line), static_cast<int>(at.column), ""});
    }
    for (const auto& [inner, inner_value] : *value.as_table())
      STERNA_TRY(check_key(cat(path, ".", inner.str()), inner, inner_value, known));
    return {};
  }

  Status check_complete() {
    std::string missing;
    visit_numbers(chip_, [&](std::string_view key, const Number& number, const KeySpec& spec, std::string_view) {
      if (missing.empty() && spec.required && !number.stated) missing = key;
    });
    if (missing.empty()) return {};
    const std::string section = missing.substr(0, missing.rfind('.'));
    const toml::node* table = root_.at_path(section).node();
    return bad(
        cat("the key \"", missing, "\" is missing; add it to [", section, "], or inherit from a chip that has it"),
        table != nullptr ? place_of(*table, file_) : Place{file_, 1, 1, ""});
  }

  // ---- instructions

  /// [instruction.NAME] and, by engine, [instruction_default.NAME].
  Status read_instructions(std::string_view group, std::vector<InstructionCost>& costs) {
    const toml::node* node = root_.get(group);
    if (node == nullptr) return {};
    if (node->as_table() == nullptr)
      return bad(cat("\"", group, "\" names a group of tables; write [", group, ".NAME]"), place_of(*node, file_));
    for (const auto& [key, value] : *node->as_table()) {
      const std::string path = cat(group, ".", key.str());
      if (value.as_table() == nullptr)
        return bad(cat("\"", path, "\" is ", kind_of(value), "; write [", path, "]"), place_of(value, file_));
      STERNA_TRY(read_instruction(std::string(key.str()), path, *value.as_table(), costs));
    }
    return {};
  }

  Status read_instruction(const std::string& name, const std::string& path, const toml::table& table,
                          std::vector<InstructionCost>& costs) {
    auto at = std::lower_bound(costs.begin(), costs.end(), name,
                               [](const InstructionCost& cost, const std::string& n) { return cost.name < n; });
    const bool is_new = at == costs.end() || at->name != name;
    if (is_new) at = costs.insert(at, InstructionCost{});
    InstructionCost& cost = *at;
    cost.name = name;
    STERNA_TRY(check_instruction_keys(path, table, cost));
    if (is_new || table.get("formula") != nullptr) {
      STERNA_ASSIGN(std::string word, text_at(table, "formula", true));
      STERNA_TRY(parse_name(kFormulaNames, word, "formula", place_of(*table.get("formula"), file_), cost.formula));
    }
    cost.place = place_of(table, file_);
    STERNA_TRY(read_fast_cases(table, cost));
    if (const toml::node* wide = table.get("wide")) {
      if (wide->as_boolean() == nullptr)
        return bad(cat("\"", path, ".wide\" is not true or false"), place_of(*wide, file_));
      cost.wide = wide->as_boolean()->get();
    }
    Status status;
    visit_constants(cost, [&](std::string_view key, auto& field, const KeySpec& spec, std::string_view) {
      const toml::node* node = table.get(key);
      if (status && node != nullptr) status = read_number(cat(path, ".", key), *node, spec, field);
    });
    STERNA_TRY(std::move(status));
    return check_constants(path, table, cost);
  }

  Status check_instruction_keys(const std::string& path, const toml::table& table, InstructionCost& cost) {
    std::vector<std::string> known = {"formula", "fast_when", "wide"};
    visit_constants(cost,
                    [&](std::string_view key, auto&, const KeySpec&, std::string_view) { known.emplace_back(key); });
    for (const auto& [key, value] : table) {
      const std::string part(key.str());
      if (std::find(known.begin(), known.end(), part) == known.end())
        return bad(cat("the key \"", path, ".", part, "\" is not known", nearest_hint(part, known)),
                   {file_, static_cast<int>(key.source().begin.line), static_cast<int>(key.source().begin.column), ""});
    }
    return {};
  }

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

  Status read_fast_cases(const toml::table& table, InstructionCost& cost) {
    if (table.get("fast_when") == nullptr) return {};
    STERNA_ASSIGN(std::vector<std::string> words, strings_at(table, "fast_when"));
    cost.fast_cases = 0;
    for (const std::string& word : words) {
      FastCase fast{};
      STERNA_TRY(parse_name(kFastCaseNames, word, "fast case", place_of(*table.get("fast_when"), file_), fast));
      cost.fast_cases |= bit(fast);
    }
    return {};
  }

  /// A formula has the constants it uses and no others.
  Status check_constants(const std::string& path, const toml::table& table, const InstructionCost& cost) {
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
    return bad(cat("\"", path, "\" with the formula \"", name(cost.formula), "\" ", wrong), place_of(table, file_));
  }

  Status read_absences(std::string_view section, std::vector<std::string>& out) {
    const toml::node* node = root_.get(section);
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr || table->size() != 1 || table->get("absent") == nullptr)
      return bad(cat("[", section, "] holds one key, absent = [\"...\"]: what this chip does not have"),
                 place_of(*node, file_));
    STERNA_ASSIGN(out, strings_at(*table, "absent"));
    std::sort(out.begin(), out.end());
    return {};
  }

  const toml::table& root_;
  std::string file_;
  Lineage& lineage_;
  Chip chip_;
};

Result<Chip> load(std::string_view text, const std::string& file, Lineage& lineage) {
  STERNA_ASSIGN(const toml::table root, parse_toml(text, file));
  return Reader(root, file, lineage).read();
}

}  // namespace

Result<Chip> load_chip_text(std::string_view text, const std::string& file,
                            const std::vector<std::string>& directories) {
  Lineage lineage{directories, {}};
  return load(text, file, lineage);
}

Result<Chip> load_chip(const std::string& path, const std::vector<std::string>& directories) {
  STERNA_ASSIGN(std::string text, read_file(path));
  return load_chip_text(text, path, directories);
}

Result<ChipHeader> load_chip_header(const std::string& path) {
  STERNA_ASSIGN(std::string text, read_file(path));
  STERNA_ASSIGN(const toml::table root, parse_toml(text, path));
  ChipHeader header;
  header.file = path;
  header.name = root["name"].value_or(std::string());
  header.title = root["title"].value_or(std::string());
  header.inherits = root["inherits"].value_or(std::string());
  if (const toml::array* aliases = root["aliases"].as_array())
    for (const toml::node& alias : *aliases) header.aliases.push_back(alias.value_or(std::string()));
  return header;
}

}  // namespace sterna
