// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text_values.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "sterna/base/text.h"
#include "sterna/numerics/convert.h"

namespace sterna {
namespace {

constexpr int64_t kMostRepeats = int64_t{1} << 32;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// All of `text` as a number of type T.
template <class T, class... Base>
bool whole_number(std::string_view text, T* out, Base... base) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base...);
  return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

uint32_t mask_of(DType type) { return size_of(type) == 4 ? UINT32_MAX : (1u << (8 * size_of(type))) - 1; }

/// The bits of one number.
bool bits_of(std::string_view word, DType type, uint32_t* bits) {
  if (word.substr(0, 2) == "0x") return whole_number(word.substr(2), bits, 16) && *bits <= mask_of(type);
  if (is_packed(type)) return false;
  if (is_integer(type) && type != DType::kBool) {
    int64_t value;
    const int width = 8 * size_of(type);
    const int64_t low = info(type).is_signed ? -(int64_t{1} << (width - 1)) : 0;
    const int64_t high = low + (int64_t{1} << width) - 1;
    if (!whole_number(word, &value) || value < low || value > high) return false;
    *bits = static_cast<uint32_t>(value) & mask_of(type);
    return true;
  }
  float value = std::numeric_limits<float>::quiet_NaN();
  if (word != "nan" && (!whole_number(word, &value) || value != value)) return false;
  *bits = from_float_bits(type, value);
  return true;
}

/// An integer that orders like the fp32 number, so that neighbours differ by one.
int64_t order(uint32_t bits) {
  const auto magnitude = static_cast<int64_t>(bits & 0x7fffffff);
  return bits >> 31 ? -magnitude : magnitude;
}

class ValueReader {
 public:
  ValueReader(DType type, int64_t count, std::string_view file) : type_(type), count_(count), file_(file) {}

  Status add(std::string_view word, int line) {
    word_ = word;
    line_ = line;
    if (const size_t dots = word.find(".."); dots != std::string_view::npos)
      return range(word.substr(0, dots), word.substr(dots + 2));
    int64_t repeats = 1;
    if (const size_t star = word.find('*'); star != std::string_view::npos) {
      if (!whole_number(word.substr(star + 1), &repeats) || repeats < 0 || repeats > kMostRepeats)
        return bad("is not VALUE*TIMES");
      word = word.substr(0, star);
    }
    TextValue value;
    value.line = line;
    value.undefined = word == "?";
    value.nearly = !value.undefined && !word.empty() && word[0] == '~';
    if (value.nearly) word.remove_prefix(1);
    if (value.nearly && type_ != DType::kFloat32) return bad("asks for nearness, which is for float32 alone");
    if (!value.undefined && !bits_of(word, type_, &value.bits)) return bad(cat("is no value of ", name(type_)));
    return push(value, repeats);
  }
  Result<std::vector<TextValue>> finish(int line) {
    line_ = line;
    if (static_cast<int64_t>(values_.size()) != count_)
      return fault(cat(count_, " values expected, ", values_.size(), " found."));
    return std::move(values_);
  }

 private:
  Fault fault(std::string message) const {
    Fault f(FaultKind::kBadInput, "TEXT5", std::move(message));
    f.where = {std::string(file_), line_, 0, {}};
    return f;
  }
  Fault bad(std::string_view why) const { return fault(cat("'", word_, "' ", why, ".")); }
  Status push(const TextValue& value, int64_t repeats) {
    if (static_cast<int64_t>(values_.size()) + repeats > count_)
      return fault(cat("More than the expected ", count_, " values."));
    values_.insert(values_.end(), static_cast<size_t>(repeats), value);
    return {};
  }
  Status range(std::string_view from, std::string_view to) {
    int64_t low, high;
    if (!whole_number(from, &low) || !whole_number(to, &high)) return bad("is not FROM..TO");
    for (int64_t i = low; i <= high; ++i) {
      TextValue value;
      value.line = line_;
      if (!bits_of(std::to_string(i), type_, &value.bits)) return bad(cat("leaves the values of ", name(type_)));
      STERNA_TRY(push(value, 1));
    }
    return {};
  }

  DType type_;
  int64_t count_;
  std::string_view file_;
  std::vector<TextValue> values_;
  std::string_view word_;
  int line_ = 0;
};

}  // namespace

std::vector<TextSection> text_sections(std::string_view text) {
  std::vector<TextSection> out;
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    std::string_view found = text.substr(at, end - at);
    const size_t next = std::min(end + 1, text.size());
    if (found.substr(0, 4) == "----") {
      if (!out.empty()) out.back().end = at;
      found = found.substr(0, found.find('#'));
      found.remove_prefix(std::min(found.find_first_not_of("- "), found.size()));
      while (!found.empty() && is_space(found.back())) found.remove_suffix(1);
      const size_t space = std::min(found.find(' '), found.size());
      const size_t argument = std::min(found.find_first_not_of(' ', space), found.size());
      out.push_back(
          {std::string(found.substr(0, space)), std::string(found.substr(argument)), line, next, text.size()});
    }
    at = next;
  }
  return out;
}

Result<std::vector<TextValue>> parse_values(std::string_view text, DType type, int64_t count, std::string_view file,
                                            int line) {
  ValueReader reader(type, count, file);
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ++line;
    if (is_space(text[at])) continue;
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !is_space(text[end]) && text[end] != '#') ++end;
    STERNA_TRY(reader.add(text.substr(at, end - at), line));
    at = end - 1;
  }
  return reader.finish(line);
}

bool meets(const TextValue& expected, DType type, uint32_t bits, bool defined) {
  if (expected.undefined) return !defined;
  if (!defined) return false;
  if (!expected.nearly || type != DType::kFloat32) return bits == expected.bits;
  const auto is_nan = [](uint32_t b) { return (b & 0x7fffffff) > 0x7f800000; };
  if (is_nan(bits) || is_nan(expected.bits)) return bits == expected.bits;
  return std::abs(order(bits) - order(expected.bits)) <= 1;
}

std::string value_text(DType type, uint32_t bits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "0x%0*x", 2 * size_of(type), bits & mask_of(type));
  if (is_packed(type) || type == DType::kTFloat32 || type == DType::kFloat4E2M1) return buffer;
  if (is_integer(type) && type != DType::kBool) {
    const uint32_t sign = info(type).is_signed ? 1u << (8 * size_of(type) - 1) : 0;
    return std::to_string(static_cast<int64_t>(bits & mask_of(type)) -
                          (bits & sign ? static_cast<int64_t>(mask_of(type)) + 1 : 0));
  }
  const std::string number = number_text(to_float_bits(type, bits));
  uint32_t back;
  return bits_of(number, type, &back) && back == (bits & mask_of(type)) ? number : std::string(buffer);
}

}  // namespace sterna
