// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/chip_command.h"

#include <map>
#include <ostream>
#include <type_traits>

#include "sterna/base/text.h"
#include "sterna/cli/table.h"
#include "sterna/hardware/schema.h"

namespace sterna::cli {
namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

/// Value and unit as cells.
template <class Field>
std::pair<std::string, std::string> shown(const Field& field) {
  if (std::is_same_v<Field, Flag>) return {field.value != 0 ? "yes" : "no", ""};
  const bool bare = field.unit == "1" || field.unit == "count";
  return {number_text(field.stated_value), bare ? "" : field.unit};
}

std::string origin(const Chip& chip, const Number& number) {
  return number.chip == chip.name ? number.source_id : cat(number.source_id, " (", number.chip, ".toml)");
}

void print_numbers(std::ostream& out, const Chip& chip, bool sources) {
  std::string section;
  Table table("  ");
  table.align_right(1);
  const auto flush = [&] {
    if (!table.empty()) table.print(out << '\n' << section << '\n');
    table = Table("  ");
    table.align_right(1);
  };
  visit_numbers(chip, [&](std::string_view key, const auto& field, const KeySpec&, std::string_view meaning) {
    const size_t dot = key.rfind('.');
    if (key.substr(0, dot) != section) {
      flush();
      section = key.substr(0, dot);
    }
    const std::string leaf(key.substr(dot + 1));
    if (!field.stated) {
      table.add({leaf, "-", "", sources ? "" : std::string(meaning)});
      return;
    }
    const auto [value, unit] = shown(field);
    if (sources)
      table.add({leaf, value, unit, std::string(name(field.trust)), origin(chip, field)});
    else
      table.add({leaf, value, unit, std::string(meaning)});
  });
  flush();
}

std::string fast_cases_text(uint32_t cases) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kFastCaseNames); ++i)
    if ((cases >> i & 1) != 0) names.emplace_back(kFastCaseNames[i]);
  return joined(names, ", ");
}

void print_instructions(std::ostream& out, const Chip& chip, bool sources) {
  Table table("  ");
  std::vector<InstructionCost> costs = chip.instructions;
  for (InstructionCost cost : chip.instruction_defaults) {
    cost.name = cat("others on ", cost.name);
    costs.push_back(std::move(cost));
  }
  for (const InstructionCost& cost : costs) {
    if (!chip.has_instruction(cost.name)) continue;
    std::vector<std::string> constants;
    std::string trust, source;
    visit_constants(cost, [&](std::string_view key, const Number& number, const KeySpec&, std::string_view) {
      if (!number.stated) return;
      constants.push_back(cat(key, " ", number_text(number.stated_value)));
      if (trust.empty()) trust = name(number.trust), source = origin(chip, number);
    });
    if (cost.fast_cases != 0) constants.push_back(cat("fast if ", fast_cases_text(cost.fast_cases)));
    if (cost.wide) constants.emplace_back("wide");
    if (sources)
      table.add({cost.name, std::string(name(cost.formula)), joined(constants, "; "), trust, source});
    else
      table.add({cost.name, std::string(name(cost.formula)), joined(constants, "; ")});
  }
  table.print(out << "\ninstructions\n");
  if (!chip.absent_instructions.empty())
    out << "\nnot on this chip\n  " << joined(chip.absent_instructions, ", ") << '\n';
  if (!chip.absent_dtypes.empty())
    out << "\nnumber formats not on this chip\n  " << joined(chip.absent_dtypes, ", ") << '\n';
}

/// The texts of the sources that some number of this chip cites.
void print_sources(std::ostream& out, const Chip& chip) {
  std::map<std::string, std::string> used;
  for (const Number* number : chip.numbers()) used.emplace(number->source_id, number->source);
  Table table("  ");
  for (const auto& [id, text] : used) table.add({id, text});
  table.print(out << "\nsources\n");
}

void print_derived(std::ostream& out, const Chip& chip) {
  Table table("  ");
  table.align_right(1);
  const double sbuf_mib = static_cast<double>(chip.sbuf.partitions * chip.sbuf.partition_bytes) / 1048576.0;
  table.add({"SBUF", number_text(sbuf_mib), "MiB per core"});
  table.add({"HBM share", number_text(chip.hbm_core_share()), "B/ns per core when all stream"});
  table.add({"DMA rate", number_text(chip.dma_core_rate()), "B/ns per core"});
  table.print(out << "\nfrom these\n");
}

void print_number_json(std::ostream& out, const Number& number, bool is_flag) {
  out << "{\"value\": ";
  if (is_flag)
    out << (number.value != 0 ? "true" : "false");
  else
    out << number_text(number.stated_value) << ", \"unit\": " << json_string(number.unit)
        << ", \"base_value\": " << number_text(number.value);
  out << ", \"trust\": " << json_string(name(number.trust)) << ", \"source\": " << json_string(number.source)
      << ", \"stated_by\": " << json_string(number.chip) << "}";
}

void print_list_json(std::ostream& out, const std::vector<std::string>& items) {
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i == 0 ? "" : ", ") << json_string(items[i]);
  out << ']';
}

int run_chip(const Arguments& arguments, Output output) {
  const std::string wanted = arguments.text("NAME");
  const auto refuse = [&](const Fault& fault) {
    output.err << "sterna chip: " << fault.text() << '\n';
    return 1;
  };
  if (wanted.empty()) {
    auto chips = list_chips();
    if (!chips) return refuse(chips.error());
    if (chips->empty()) return refuse(find_chip("").error());
    (arguments.has("--json") ? print_chips_json : print_chips)(output.out, *chips);
    return 0;
  }
  auto chip = find_chip(wanted);
  if (!chip) return refuse(chip.error());
  if (arguments.has("--json"))
    print_chip_json(output.out, *chip);
  else
    print_chip(output.out, *chip, arguments.has("--sources"));
  return 0;
}

}  // namespace

void print_chips(std::ostream& out, const std::vector<ChipHeader>& chips) {
  Table table;
  for (const ChipHeader& chip : chips) {
    std::string notes = chip.inherits.empty() ? "" : "inherits from " + chip.inherits;
    table.add({chip.name, joined(chip.aliases, ", "), chip.title, notes});
  }
  table.print(out);
}

void print_chips_json(std::ostream& out, const std::vector<ChipHeader>& chips) {
  out << "[";
  for (size_t i = 0; i < chips.size(); ++i) {
    const ChipHeader& chip = chips[i];
    out << (i == 0 ? "\n" : ",\n") << "  {\"name\": " << json_string(chip.name)
        << ", \"title\": " << json_string(chip.title) << ", \"inherits\": " << json_string(chip.inherits)
        << ", \"aliases\": ";
    print_list_json(out, chip.aliases);
    out << "}";
  }
  out << "\n]\n";
}

void print_chip(std::ostream& out, const Chip& chip, bool sources) {
  out << chip.name << ": " << chip.title << '\n';
  if (!chip.inherits.empty()) out << "inherits from " << chip.inherits << '\n';
  std::map<Trust, int> counts;
  for (const Number* number : chip.numbers()) ++counts[number->trust];
  std::string trusts;
  for (const auto& [trust, count] : counts) trusts += cat(trusts.empty() ? "" : ", ", count, " ", name(trust));
  out << trusts << '\n';
  print_numbers(out, chip, sources);
  if (!sources) print_derived(out, chip);
  print_instructions(out, chip, sources);
  if (sources) print_sources(out, chip);
}

void print_chip_json(std::ostream& out, const Chip& chip) {
  out << "{\n  \"name\": " << json_string(chip.name) << ",\n  \"title\": " << json_string(chip.title)
      << ",\n  \"inherits\": " << json_string(chip.inherits) << ",\n  \"aliases\": ";
  print_list_json(out, chip.aliases);
  out << ",\n  \"numbers\": {";
  const char* comma = "\n";
  visit_numbers(chip, [&](std::string_view key, const auto& field, const KeySpec&, std::string_view) {
    if (!field.stated) return;
    out << comma << "    " << json_string(key) << ": ";
    print_number_json(out, field, std::is_same_v<std::decay_t<decltype(field)>, Flag>);
    comma = ",\n";
  });
  out << "\n  },\n  \"instructions\": {";
  comma = "\n";
  for (const InstructionCost& cost : chip.instructions) {
    out << comma << "    " << json_string(cost.name) << ": {\"formula\": " << json_string(name(cost.formula))
        << ", \"wide\": " << (cost.wide ? "true" : "false") << ", \"fast_when\": [";
    bool first = true;
    for (size_t i = 0; i < std::size(kFastCaseNames); ++i) {
      if ((cost.fast_cases >> i & 1) == 0) continue;
      out << (first ? "" : ", ") << json_string(kFastCaseNames[i]);
      first = false;
    }
    out << "]";
    visit_constants(cost, [&](std::string_view key, const Number& number, const KeySpec&, std::string_view) {
      if (!number.stated) return;
      out << ", " << json_string(key) << ": ";
      print_number_json(out, number, false);
    });
    out << "}";
    comma = ",\n";
  }
  out << "\n  },\n  \"absent_instructions\": ";
  print_list_json(out, chip.absent_instructions);
  out << ",\n  \"absent_dtypes\": ";
  print_list_json(out, chip.absent_dtypes);
  out << "\n}\n";
}

Command chip_command() {
  Command command;
  command.name = "chip";
  command.summary = "list the chips that are described, or show one with its numbers and their sources";
  command.arguments = {{"NAME", Argument::kPositional, "a chip (trn2), an alias (gen3) or a file (./mine.toml)"},
                       {"--sources", Argument::kFlag, "show where each number comes from and how far to trust it"},
                       {"--json", Argument::kFlag, "write JSON"}};
  command.run = run_chip;
  return command;
}

}  // namespace sterna::cli
