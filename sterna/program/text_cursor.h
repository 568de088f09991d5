// SPDX-License-Identifier: Apache-2.0
// Cursor: reads the words of one line of the text form. Internal to program/text*.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sterna/base/result.h"

namespace sterna::text {

class Cursor {
 public:
  Cursor(std::string_view line, int number, std::string_view file) : line_(line), number_(number), file_(file) {}

  /// Nothing but spaces or a comment is left.
  bool at_end();
  /// The next character after spaces; 0 at the end.
  char peek();
  /// Skips `c` if it comes next, after spaces.
  bool take(char c);
  /// Skips `c` if it is the very next character.
  bool take_adjoining(char c);
  /// Skips the word if it comes next.
  bool take_word(std::string_view word);
  /// The line begins with "----": what follows in the file is not the program.
  bool begins_section() const { return line_.substr(0, 4) == "----"; }
  Status expect(char c);
  /// An identifier; empty if none comes next.
  std::string_view word();
  /// An identifier or a text between quotation marks.
  Result<std::string> text(std::string_view what);
  Result<int64_t> integer(int64_t low, int64_t high, std::string_view what);
  Result<double> real(std::string_view what);
  Result<float> real32(std::string_view what);

  int column() const { return static_cast<int>(at_) + 1; }
  int line() const { return number_; }
  Place place() const { return {std::string(file_), number_, column(), {}}; }
  Place place_at(int column) const { return {std::string(file_), number_, column, {}}; }
  /// A fault at the next word.
  Fault fault(std::string rule, std::string message, FaultKind kind = FaultKind::kBadInput);

 private:
  void skip_spaces();
  std::string_view numeral();
  template <class T, class Bits>
  Result<T> floating(std::string_view what);

  std::string_view line_;
  int number_;
  std::string_view file_;
  size_t at_ = 0;
};

}  // namespace sterna::text
