// SPDX-License-Identifier: Apache-2.0
// What a subcommand is. Each lives in one file, which offers a function that returns its Command; commands.cc lists
// them. Only main.cc knows the library that reads the command line.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sterna::cli {

struct Argument {
  enum Kind { kPositional, kFlag, kValue };
  std::string name;  ///< "NAME" for a positional, "--json" for the others
  Kind kind = kPositional;
  std::string help;
};

/// What the user gave: a flag that was given maps to "1"; what was not given is absent.
class Arguments {
 public:
  void set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  /// Empty if not given.
  std::string text(const std::string& name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? std::string() : at->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

/// Where a command writes. The exit code is 0 for success, 1 for a fault, 2 for a command line that cannot be read.
struct Output {
  std::ostream& out;
  std::ostream& err;
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<Argument> arguments;
  int (*run)(const Arguments& arguments, Output output) = nullptr;
  /// Set instead of `run` by a command whose words go unread to another program.
  int (*pass_through)(const std::vector<std::string>& words, Output output) = nullptr;
};

/// All subcommands, in the order of the help text.
const std::vector<Command>& commands();

}  // namespace sterna::cli
