// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text_names.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "sterna/base/text.h"

namespace sterna::text {
namespace {

// As nki.isa and nki.language spell them (SDK 2.32).
constexpr std::array<std::string_view, 7> kEngines{"unknown", "tensor", "scalar", "gpsimd", "dma", "vector", "sync"};
constexpr std::array<std::string_view, 5> kReduceCmds{"idle", "reset", "reduce", "reset_reduce", "load_reduce"};
constexpr std::array<std::string_view, 4> kDgeModes{"unknown", "swdge", "hwdge", "none"};
constexpr std::array<std::string_view, 2> kOobModes{"error", "skip"};
constexpr std::array<std::string_view, 3> kTransferEngines{"", "dma", "gpsimd_dma"};  // 0 is none of them
constexpr std::array<std::string_view, 2> kPerfModes{"none", "double_row"};
constexpr std::array<std::string_view, 3> kAccumulate{"none", "false", "true"};
constexpr std::array<std::string_view, 2> kBools{"false", "true"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string hex(uint64_t bits) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "nan:0x%llx", static_cast<unsigned long long>(bits));
  return buffer;
}

}  // namespace

std::span<const std::string_view> spellings(FieldType type) {
  switch (type) {
    case FieldType::kEngine: return kEngines;
    case FieldType::kReduceCmd: return kReduceCmds;
    case FieldType::kDgeMode: return kDgeModes;
    case FieldType::kOobMode: return kOobModes;
    case FieldType::kTransferEngine: return kTransferEngines;
    case FieldType::kPerfMode: return kPerfModes;
    case FieldType::kAccumulate: return kAccumulate;
    case FieldType::kBool: return kBools;
    default: return {};
  }
}

bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (char c : text)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string quoted_if_needed(std::string_view text) { return is_identifier(text) ? std::string(text) : quoted(text); }

std::vector<std::string> tensor_references(const Program& program) {
  std::unordered_map<uint32_t, int> uses;
  for (const TensorInfo& t : program.tensors) ++uses[t.name];
  std::vector<std::string> out;
  out.reserve(program.tensors.size());
  for (uint32_t id = 0; id < program.tensors.size(); ++id) {
    const uint32_t name = program.tensors[id].name;
    const std::string& text = program.names[name];
    if (text.empty())
      out.push_back(cat('%', id));
    else if (uses[name] == 1)
      out.push_back(cat('%', quoted_if_needed(text)));
    else
      out.push_back(cat('%', quoted_if_needed(text), '.', id));
  }
  return out;
}

std::string number(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return std::isnan(value) && bits != 0x7ff8000000000000u ? hex(bits) : number_text(value);
}

std::string number(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) && bits != 0x7fc00000u ? hex(bits) : number_text(value);
}

}  // namespace sterna::text
