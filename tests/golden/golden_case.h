// SPDX-License-Identifier: Apache-2.0
// A golden case: a program, what its tensors hold at the start, and what is expected. Sections after the program:
//
//   ---- data %x               values of a parameter, or of a tile right after it is allocated; parameters without are
//   zero
//   ---- values %y             values at the end, bit by bit; `?` is an element that was never written
//   ---- fault SHAPE2 line 7   the program stops there (or is refused); each line below must appear in the message.
//   Default: none
//   ---- warning ALIAS1 line 9 one remark; together they are all remarks there are. `line N` may be left out
//   ---- path 0 4 1            what the run decided (trace/path.h)
//   ---- registers 5 0         at the end, from $0
//   ---- printed               what device_print said, one line each
//   ---- options strict uninit=warn rounding=7   `rounding`: the seed of stochastic rounding
// A word that ends in `...` after `# golden:` names the case; the first comment of each file says what it shows and
// why.
#pragma once

#include <string>
#include <vector>

#include "sterna/execute/run.h"
#include "sterna/program/text_values.h"

namespace sterna::golden {

struct Remark {
  std::string rule;
  int line = 0;  ///< 0: anywhere
  std::vector<std::string> fragments;
  int at = 0;  ///< where the file says so
};

struct Values {
  std::string tensor;  ///< "%x"
  int line = 0;
  std::string text;
};

struct Case {
  std::string file, text;
  std::vector<Values> data, values;
  std::vector<Remark> faults, warnings;  ///< at most one fault
  bool strict = false;
  UninitPolicy uninit = UninitPolicy::kError;
  int64_t rounding_seed = -1;
  bool has_path = false, has_registers = false, has_printed = false;
  std::vector<int64_t> path, registers;
  int path_line = 0, registers_line = 0, printed_line = 0;
  std::string printed;
};

Result<Case> read_case(const std::string& file, std::string text);

/// Runs a case and returns what differs, as "file:line: ...". With `update`, replaces the values sections of `text`.
std::vector<std::string> run_case(const Case& c, ThreadPool& pool, std::string* update);

}  // namespace sterna::golden
