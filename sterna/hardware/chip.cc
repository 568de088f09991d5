// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/chip.h"

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/hardware/schema.h"

namespace sterna {
namespace {

bool contains(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

const InstructionCost* find(const std::vector<InstructionCost>& sorted, std::string_view name) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), name,
                                   [](const InstructionCost& cost, std::string_view n) { return cost.name < n; });
  return at != sorted.end() && at->name == name ? &*at : nullptr;
}

}  // namespace

std::string Number::text() const {
  if (unit.empty()) return value != 0 ? "true" : "false";
  if (unit == "1" || unit == "count") return number_text(stated_value);
  return cat(number_text(stated_value), " ", unit);
}

const InstructionCost* Chip::instruction_cost(std::string_view mnemonic) const { return find(instructions, mnemonic); }

const InstructionCost* Chip::cost_or_default(std::string_view mnemonic, std::string_view engine) const {
  const InstructionCost* cost = find(instructions, mnemonic);
  return cost != nullptr ? cost : find(instruction_defaults, engine);
}

bool Chip::has_instruction(std::string_view mnemonic) const { return !contains(absent_instructions, mnemonic); }

bool Chip::has_dtype(std::string_view dtype) const { return !contains(absent_dtypes, dtype); }

std::vector<const Number*> Chip::numbers() const {
  std::vector<const Number*> out;
  const auto collect = [&out](std::string_view, const Number& number, const KeySpec&, std::string_view) {
    if (number.stated) out.push_back(&number);
  };
  visit_numbers(*this, collect);
  for (const InstructionCost& cost : instruction_defaults) visit_constants(cost, collect);
  for (const InstructionCost& cost : instructions) visit_constants(cost, collect);
  return out;
}

const Number* Chip::number(std::string_view wanted) const {
  for (const Number* number : numbers())
    if (number->key == wanted) return number;
  return nullptr;
}

}  // namespace sterna
