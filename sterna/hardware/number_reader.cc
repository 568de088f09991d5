// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/number_reader.h"

#include <cmath>
#include <type_traits>

#include "sterna/base/text.h"

namespace sterna::chip_file {

Result<Trust> NumberReader::trust_of(std::string_view word, const toml::node& node) const {
  if (const auto trust = parse_trust(word)) return *trust;
  return bad(cat("trust \"", word, "\" is not one of documented, measured, claimed, estimated, assumed"),
             file_.place(node));
}

template <class Field>
Status NumberReader::read(const std::string& key, const toml::node& node, const KeySpec& spec, Field& field) const {
  constexpr bool is_flag = std::is_same_v<Field, Flag>;
  const toml::table* table = node.as_table();
  if (table == nullptr)
    return bad(cat("\"", key, "\" is ", kind_of(node), "; every number states its source, as in { value = ...",
                   is_flag ? "" : ", unit = \"...\"", ", source = \"ID\", trust = \"documented\" }"),
               file_.place(node));
  for (const auto& [part, value] : *table)
    if (part.str() != "value" && part.str() != "source" && part.str() != "trust" && (is_flag || part.str() != "unit"))
      return bad(cat("\"", key, "\" has an unknown part \"", part.str(), "\"; a ", is_flag ? "yes or no" : "number",
                     " has value, ", is_flag ? "" : "unit, ", "source and trust"),
                 file_.place(value));
  field = Field{};
  field.key = key;
  field.chip = chip_.name;
  field.place = file_.place(node);
  STERNA_TRY(read_value(key, *table, spec, field));
  STERNA_TRY(read_origin(key, *table, field));
  field.stated = true;
  return {};
}

template <class Field>
Status NumberReader::read_value(const std::string& key, const toml::table& table, const KeySpec& spec,
                                Field& field) const {
  const toml::node* value = table.get("value");
  if (value == nullptr) return bad(cat("\"", key, "\" has no value; add value = ..."), file_.place(table));
  if constexpr (std::is_same_v<Field, Flag>) {
    if (value->as_boolean() == nullptr)
      return bad(cat("the value of \"", key, "\" is not true or false"), file_.place(*value));
    field.value = field.stated_value = value->as_boolean()->get() ? 1 : 0;
    return {};
  } else {
    const bool is_number = value->as_integer() != nullptr || value->as_floating_point() != nullptr;
    if (!is_number)
      return bad(cat("the value of \"", key, "\" is not a number; write a number without quotes"), file_.place(*value));
    field.stated_value = *value->value<double>();
    STERNA_ASSIGN(field.unit, file_.text_at(table, "unit", true));
    auto unit = parse_unit(field.unit);
    if (!unit) return bad(cat("\"", key, "\": ", unit.error().message), file_.place(*table.get("unit")));
    if (unit->dimension != spec.dimension)
      return bad(cat("\"", key, "\" has the unit \"", field.unit, "\", but is ", describe(spec.dimension)),
                 file_.place(*table.get("unit")));
    field.value = field.stated_value * unit->scale;
    return check_range(key, *value, spec, field);
  }
}

template <class Field>
Status NumberReader::check_range(const std::string& key, const toml::node& value, const KeySpec& spec,
                                 const Field& field) const {
  const bool in_range = std::isfinite(field.value) && (spec.positive ? field.value > 0 : field.value >= 0);
  if (!in_range)
    return bad(cat("\"", key, "\" is ", number_text(field.stated_value), "; it must be finite and ",
                   spec.positive ? "above zero" : "zero or more"),
               file_.place(value));
  // 2^53: above it a double no longer holds every whole number.
  if (std::is_same_v<Field, Count> && (field.value != std::floor(field.value) || field.value > 9007199254740992.0))
    return bad(cat("\"", key, "\" is ", number_text(field.value), ", but counts whole things"), file_.place(value));
  return {};
}

Status NumberReader::read_origin(const std::string& key, const toml::table& table, Number& number) const {
  if (table.get("source") == nullptr)
    return bad(cat("\"", key, "\" has no source; add source = \"ID\" with the ID explained in [sources]"),
               file_.place(table));
  STERNA_ASSIGN(number.source_id, file_.text_at(table, "source", true));
  const auto source = chip_.sources.find(number.source_id);
  if (source == chip_.sources.end())
    return bad(cat("\"", key, "\" cites the source \"", number.source_id, "\", which [sources] does not explain; add ",
                   number.source_id, " = \"...\" there"),
               file_.place(*table.get("source")));
  number.source = source->second;
  if (table.get("trust") == nullptr)
    return bad(cat("\"", key,
                   "\" has no trust; add trust = \"documented\", \"measured\", \"claimed\", \"estimated\" "
                   "or \"assumed\""),
               file_.place(table));
  STERNA_ASSIGN(std::string word, file_.text_at(table, "trust", true));
  STERNA_ASSIGN(number.trust, trust_of(word, *table.get("trust")));
  return {};
}

template Status NumberReader::read(const std::string&, const toml::node&, const KeySpec&, Real&) const;
template Status NumberReader::read(const std::string&, const toml::node&, const KeySpec&, Count&) const;
template Status NumberReader::read(const std::string&, const toml::node&, const KeySpec&, Flag&) const;

}  // namespace sterna::chip_file
