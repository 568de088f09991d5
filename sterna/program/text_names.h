// SPDX-License-Identifier: Apache-2.0
// Names in the text form: of tensors, of the small enumerations, and texts between quotation marks. Internal to
// program/text*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sterna/isa/instruction.h"
#include "sterna/program/program.h"

namespace sterna::text {

/// The spellings of a field type whose values are 0, 1, 2, ...; empty for other field types.
std::span<const std::string_view> spellings(FieldType type);

bool is_identifier(std::string_view text);
/// An identifier as it is; anything else between quotation marks with \" \\ \n \t \xHH.
std::string quoted_if_needed(std::string_view text);
std::string quoted(std::string_view text);

/// How each tensor of a program is referred to: %name, %name.ID where names repeat, %ID without a name.
std::vector<std::string> tensor_references(const Program& program);

/// Shortest exact text of a number; a NaN other than the canonical one is nan:0xBITS.
std::string number(double value);
std::string number(float value);

}  // namespace sterna::text
