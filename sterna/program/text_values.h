// SPDX-License-Identifier: Apache-2.0
// Values of tensors as text, in the sections that may follow a program: `---- data %x` says what a tensor holds at the
// start. Row-major, separated by spaces and line ends; `#` starts a comment.
//
//   1 -0 1.5e-3 inf nan     numbers, rounded once to the tensor's type; nan is the canonical one
//   0x7fc00001              the bits of one element
//   1.5*8                   eight times; also 0x0*8
//   3..7                    3 4 5 6 7
//   ?                       undefined, or of no interest
//   ~1.0986123              within one unit in the last place (fp32) of this: for expectations
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/numerics/dtype.h"

namespace sterna {

/// `---- KIND ARGUMENTS` and the lines up to the next section.
struct TextSection {
  std::string kind, arguments;
  int line = 0;               ///< of the dashes
  size_t begin = 0, end = 0;  ///< of the lines below, in the text
};
std::vector<TextSection> text_sections(std::string_view text);

struct TextValue {
  uint32_t bits = 0;
  bool undefined = false, nearly = false;
  int line = 0;
};

/// Exactly `count` values of `type`. `line` is that of the first line of `text`.
Result<std::vector<TextValue>> parse_values(std::string_view text, DType type, int64_t count, std::string_view file,
                                            int line);

/// Does an element with these bits meet the expectation? `defined` says whether it holds anything.
bool meets(const TextValue& expected, DType type, uint32_t bits, bool defined);

/// One element: a number that reads back to the same bits, or the bits.
std::string value_text(DType type, uint32_t bits);

}  // namespace sterna
