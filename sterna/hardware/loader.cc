// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/loader.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sterna/base/text.h"
#include "sterna/hardware/instruction_reader.h"
#include "sterna/hardware/nearest.h"
#include "sterna/hardware/number_reader.h"
#include "sterna/hardware/schema.h"
#include "sterna/hardware/toml_file.h"

namespace sterna {
namespace {

namespace fs = std::filesystem;
using chip_file::bad;
using chip_file::kind_of;
using chip_file::read_text;
using chip_file::TomlFile;

/// Where inheritance has come from, outermost first, and where to look for parents.
struct Lineage {
  const std::vector<std::string>& directories;
  std::vector<std::string> names;
};

Result<Chip> load(std::string_view text, const std::string& file, Lineage& lineage);

/// Reads one file's tables into a chip that may already hold its parent's values.
class Reader {
 public:
  Reader(const TomlFile& file, Lineage& lineage) : file_(file), lineage_(lineage) {}

  Result<Chip> read() {
    STERNA_TRY(read_header());
    STERNA_TRY(read_sources());
    STERNA_TRY(check_keys());
    STERNA_TRY(read_numbers());
    STERNA_TRY(check_partitions());
    const chip_file::InstructionReader instructions(file_, numbers_);
    STERNA_TRY(instructions.read("instruction_default", chip_.instruction_defaults));
    STERNA_TRY(instructions.read("instruction", chip_.instructions));
    STERNA_TRY(read_absences("instructions", chip_.absent_instructions));
    STERNA_TRY(read_absences("dtypes", chip_.absent_dtypes));
    STERNA_TRY(check_complete());
    return std::move(chip_);
  }

 private:
  // ---- header, parent, sources

  Status read_header() {
    STERNA_ASSIGN(std::string name, file_.text_at(file_.root(), "name", true));
    if (const std::string stem = fs::path(file_.name()).stem().string(); name != stem)
      return bad(cat("the chip is named \"", name, "\" but its file \"", stem,
                     ".toml\"; chips are found by file name, "
                     "so make the two agree"),
                 file_.place(*file_.root().get("name")));
    STERNA_ASSIGN(std::string parent, file_.text_at(file_.root(), "inherits", false));
    lineage_.names.push_back(name);
    if (!parent.empty()) STERNA_TRY(read_parent(parent));
    chip_.name = name;
    chip_.inherits = parent;
    chip_.file = file_.name();
    STERNA_ASSIGN(chip_.title, file_.text_at(file_.root(), "title", true));
    STERNA_ASSIGN(chip_.aliases, file_.strings_at(file_.root(), "aliases"));
    return {};
  }

  Status read_parent(const std::string& parent) {
    const Place where = file_.place(*file_.root().get("inherits"));
    if (std::find(lineage_.names.begin(), lineage_.names.end(), parent) != lineage_.names.end()) {
      std::string chain;
      for (const std::string& name : lineage_.names) chain += cat(name, " -> ");
      return bad(
          cat("inheritance runs in a circle: ", chain, parent, "; one of these chips must state all its numbers"),
          where);
    }
    std::vector<std::string> tried = {(fs::path(file_.name()).parent_path() / (parent + ".toml")).string()};
    for (const std::string& directory : lineage_.directories)
      tried.push_back((fs::path(directory) / "chips" / (parent + ".toml")).string());
    const auto found = std::find_if(tried.begin(), tried.end(), [](const std::string& p) { return fs::exists(p); });
    if (found == tried.end()) {
      std::string list;
      for (const std::string& path : tried) list += (list.empty() ? "" : ", ") + path;
      return bad(cat("the chip \"", parent, "\" that this one inherits from is in none of: ", list), where);
    }
    STERNA_ASSIGN(std::string text, read_text(*found));
    STERNA_ASSIGN(chip_, load(text, *found, lineage_));
    return apply_inherited_trust();
  }

  /// What an announced chip takes over from its predecessor is a guess, whatever it was there.
  Status apply_inherited_trust() {
    STERNA_ASSIGN(std::string word, file_.text_at(file_.root(), "inherited_trust", false));
    if (word.empty()) return {};
    STERNA_ASSIGN(Trust trust, numbers_.trust_of(word, *file_.root().get("inherited_trust")));
    const auto lower = [trust](std::string_view, Number& number, const KeySpec&, std::string_view) {
      number.trust = std::max(number.trust, trust);
    };
    visit_numbers(chip_, lower);
    for (InstructionCost& cost : chip_.instruction_defaults) visit_constants(cost, lower);
    for (InstructionCost& cost : chip_.instructions) visit_constants(cost, lower);
    return {};
  }

  Status read_sources() {
    const toml::node* node = file_.root().get("sources");
    if (node == nullptr) return {};
    if (node->as_table() == nullptr)
      return bad(cat("\"sources\" is ", kind_of(*node), "; write a table [sources] of ID = \"text\""),
                 file_.place(*node));
    for (const auto& [key, value] : *node->as_table()) {
      const std::string id(key.str());
      if (value.as_string() == nullptr)
        return bad(cat("source \"", id, "\" is ", kind_of(value), "; write its text as a string"), file_.place(value));
      const auto [at, is_new] = chip_.sources.emplace(id, value.as_string()->get());
      if (!is_new && at->second != value.as_string()->get())
        return bad(cat("source \"", id, "\" already means \"", at->second,
                       "\" in a chip this one inherits from; "
                       "choose another id"),
                   file_.place(value));
    }
    return {};
  }

  // ---- numbers

  Status read_numbers() {
    Status status;
    visit_numbers(chip_, [&](std::string_view key, auto& field, const KeySpec& spec, std::string_view) {
      if (!status) return;
      if (!field.stated) field.value = spec.absent_value;
      const toml::node* node = file_.root().at_path(key).node();
      if (node != nullptr) status = numbers_.read(std::string(key), *node, spec, field);
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
    for (const auto& [key, value] : file_.root()) {
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
                 file_.place(value));
    if (!is_section)
      return bad(cat("the key \"", path, "\" is not known", nearest_hint(path, known)), file_.place(key));
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
    const toml::node* table = file_.root().at_path(section).node();
    return bad(
        cat("the key \"", missing, "\" is missing; add it to [", section, "], or inherit from a chip that has it"),
        table != nullptr ? file_.place(*table) : Place{file_.name(), 1, 1, ""});
  }

  /// What the chip does not have.
  Status read_absences(std::string_view section, std::vector<std::string>& out) {
    const toml::node* node = file_.root().get(section);
    if (node == nullptr) return {};
    const toml::table* table = node->as_table();
    if (table == nullptr || table->size() != 1 || table->get("absent") == nullptr)
      return bad(cat("[", section, "] holds one key, absent = [\"...\"]: what this chip does not have"),
                 file_.place(*node));
    STERNA_ASSIGN(out, file_.strings_at(*table, "absent"));
    std::sort(out.begin(), out.end());
    return {};
  }

  const TomlFile& file_;
  Lineage& lineage_;
  Chip chip_;
  const chip_file::NumberReader numbers_{file_, chip_};
};

Result<Chip> load(std::string_view text, const std::string& file, Lineage& lineage) {
  STERNA_ASSIGN(const TomlFile parsed, TomlFile::parse(text, file));
  return Reader(parsed, lineage).read();
}

}  // namespace

Result<Chip> load_chip_text(std::string_view text, const std::string& file,
                            const std::vector<std::string>& directories) {
  Lineage lineage{directories, {}};
  return load(text, file, lineage);
}

Result<Chip> load_chip(const std::string& path, const std::vector<std::string>& directories) {
  STERNA_ASSIGN(std::string text, read_text(path));
  return load_chip_text(text, path, directories);
}

Result<ChipHeader> load_chip_header(const std::string& path) {
  STERNA_ASSIGN(std::string text, read_text(path));
  STERNA_ASSIGN(const TomlFile parsed, TomlFile::parse(text, path));
  const toml::table& root = parsed.root();
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
