// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text_cursor.h"

#include <bit>
#include <charconv>
#include <limits>

#include "sterna/base/text.h"

namespace sterna::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

void Cursor::skip_spaces() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
}

char Cursor::peek() {
  skip_spaces();
  return at_ < line_.size() ? line_[at_] : '\0';
}

bool Cursor::at_end() {
  skip_spaces();
  return at_ >= line_.size() || line_[at_] == '#';
}

bool Cursor::take(char c) {
  skip_spaces();
  return take_adjoining(c);
}

bool Cursor::take_adjoining(char c) {
  if (at_ >= line_.size() || line_[at_] != c) return false;
  ++at_;
  return true;
}

bool Cursor::take_word(std::string_view wanted) {
  const size_t before = at_;
  if (word() == wanted) return true;
  at_ = before;
  return false;
}

Status Cursor::expect(char c) {
  if (take(c)) return {};
  return fault("TEXT1", cat("'", c, "' expected here."));
}

std::string_view Cursor::word() {
  skip_spaces();
  const size_t begin = at_;
  if (at_ < line_.size() && is_letter(line_[at_]))
    while (at_ < line_.size() && (is_letter(line_[at_]) || is_digit(line_[at_]))) ++at_;
  return line_.substr(begin, at_ - begin);
}

Result<std::string> Cursor::text(std::string_view what) {
  if (peek() != '"') {
    const std::string_view found = word();
    if (found.empty()) return fault("TEXT1", cat(what, " expected here: a word, or a text between quotation marks."));
    return std::string(found);
  }
  const Place begin = place();
  const auto bad = [&](std::string_view why) {
    Fault f(FaultKind::kBadInput, "TEXT1", cat("A text between quotation marks ", why, "."));
    f.where = begin;
    return f;
  };
  std::string out;
  for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_) {
    if (line_[at_] != '\\') {
      out += line_[at_];
      continue;
    }
    const char c = ++at_ < line_.size() ? line_[at_] : '\0';
    if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'n') {
      out += '\n';
    } else if (c == 't') {
      out += '\t';
    } else if (c == 'x' && at_ + 2 < line_.size() && hex_digit(line_[at_ + 1]) >= 0 && hex_digit(line_[at_ + 2]) >= 0) {
      out += static_cast<char>(hex_digit(line_[at_ + 1]) * 16 + hex_digit(line_[at_ + 2]));
      at_ += 2;
    } else {
      return bad("knows \\\\, \\\", \\n, \\t and \\x with two hexadecimal digits");
    }
  }
  if (!take_adjoining('"')) return bad("has no end on this line");
  return out;
}

/// A sign and everything a number may hold; a sign also follows an exponent's e.
std::string_view Cursor::numeral() {
  skip_spaces();
  const size_t begin = at_;
  if (at_ < line_.size() && (line_[at_] == '-' || line_[at_] == '+')) ++at_;
  const size_t digits = at_;
  for (; at_ < line_.size(); ++at_) {
    const char c = line_[at_];
    const bool exponent_sign =
        (c == '-' || c == '+') && at_ > digits && (line_[at_ - 1] == 'e' || line_[at_ - 1] == 'E');
    if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent_sign) break;
  }
  if (at_ == digits) at_ = begin;
  return line_.substr(begin, at_ - begin);
}

Result<int64_t> Cursor::integer(int64_t low, int64_t high, std::string_view what) {
  skip_spaces();
  const size_t begin = at_;
  size_t end = begin + (begin < line_.size() && line_[begin] == '-' ? 1 : 0);
  while (end < line_.size() && is_digit(line_[end])) ++end;
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(line_.data() + begin, line_.data() + end, value);
  if (error == std::errc::invalid_argument) return fault("TEXT1", cat(what, ": a whole number expected here."));
  if (error != std::errc() || value < low || value > high)
    return fault("TEXT4", cat(what, " is ", line_.substr(begin, end - begin), "; it must lie between ", low, " and ",
                              high, "."));
  at_ = end;
  return value;
}

template <class T, class Bits>
Result<T> Cursor::floating(std::string_view what) {
  const size_t before = at_;
  std::string_view found = numeral();
  const auto bad = [&](std::string_view why) {
    at_ = before;
    return fault("TEXT1", cat(what, ": ", why));
  };
  if (found.empty()) return bad("a number expected here.");
  if (found == "nan" && take_adjoining(':')) {
    std::string_view bits_text = numeral();
    Bits bits = 0;
    if (bits_text.substr(0, 2) != "0x") return bad("after 'nan:' stand the bits, such as nan:0x7fc00001.");
    bits_text.remove_prefix(2);
    const auto [stop, error] = std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits, 16);
    const T value = std::bit_cast<T>(bits);
    if (error != std::errc() || stop != bits_text.data() + bits_text.size() || value == value)
      return bad("these are not the bits of a NaN.");
    return value;
  }
  if (found[0] == '+') found.remove_prefix(1);
  if (found == "nan") return std::numeric_limits<T>::quiet_NaN();
  T value = 0;
  const auto [stop, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error == std::errc::result_out_of_range) return bad("this number is too large or too small; write inf or 0.");
  if (error != std::errc() || stop != found.data() + found.size() || value != value)
    return bad(cat("'", found, "' is not a number."));
  return value;
}

Result<double> Cursor::real(std::string_view what) { return floating<double, uint64_t>(what); }
Result<float> Cursor::real32(std::string_view what) { return floating<float, uint32_t>(what); }

Fault Cursor::fault(std::string rule, std::string message, FaultKind kind) {
  skip_spaces();
  Fault out(kind, std::move(rule), std::move(message));
  out.where = place();
  return out;
}

}  // namespace sterna::text
