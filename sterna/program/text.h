// SPDX-License-Identifier: Apache-2.0
// The text form of a Program, for people and for files (`.sterna`). print_program and parse_program are exact inverses:
// print(parse(print(p))) == print(p). One statement stands on each line; `#` starts a comment. A line
// that begins with `----` ends the program: sections of values may follow (program/text_values.h).
//
//   sterna program 1                                   the version comes first
//   name rms_norm
//   target trn2                                        the chip; before all that follows
//   nki "0.6"
//   cores 2                                            unless there is one; `core 1` begins the records of the second
//   registers 1                                        $0
//   site 1 "kernel.py":12 in rms_norm                  `site 2 "kernel.py":40 in helper from 1` has a caller
//   param %x hbm float32 [128, 512] read_only
//   tensor %acc sbuf float32 [128, 512] at (0, 1024) @1    allocates; two tensors of one name are %acc.3 and %acc.7,
//   without a name %5 loop reg=$0 high=4 @1
//     dma_copy dst=%acc src=%x[0:128, 0:512]+($0 * 65536 < 4) @1:2      site, and how often it was reached before
//     tensor_scalar dst=%acc data=%acc op0=add operand0=0.5 label=bias
//   end
//   result %y
//   edge 3 -> 7                                        record 7 waits for record 3; records count from 0, tensors among
//   them
//
// Views: `%x` is all of x, `%x[0:128, 16:32]` a slice of its declared shape, `%x{bfloat16, partition 1, offset 16, [1,
// 128], [2, 8]}` any pattern of [stride, count] pairs, in elements of its type. `+($0 * 512 < 4)` adds a register (or a
// tensor of one element) times 512 elements, legal below 4; `+rows(%index * 512 < 64)` adds one index for each row,
// and on chip `+columns(%index * 1 < 64 by 16)` one for each column, of a list that 16 partitions share.
// Options that have their default are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/machine.h"
#include "sterna/program/program.h"

namespace sterna {

struct TextOptions {
  bool strict = false;                       ///< what only the official simulator accepts is a fault
  bool place_records = false;                ///< records without a site get their place in the text
  const Chip* chip = nullptr;                ///< used instead of looking up the target
  std::vector<Warning>* warnings = nullptr;  ///< takes the builder's remarks
};

/// The canonical text. Total: a program that check_program refuses is printed as far as it makes sense.
std::string print_program(const Program& program);

/// Reads a program through Builder, so every rule of an instruction applies. Faults carry file, line and column.
/// Rules of the text itself: TEXT1 (form), TEXT2 (version), TEXT3 (unknown or repeated name), TEXT4 (numbers that no
/// program has).
Result<Program> parse_program(std::string_view text, std::string_view file, const TextOptions& options = {});

}  // namespace sterna
