// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/python.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>

#include "sterna/cli/locate.h"

namespace sterna::cli {
namespace {

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string find_python(const std::string& command_directory) {
  if (const char* chosen = std::getenv("STERNA_PYTHON"); chosen != nullptr && *chosen != '\0') return chosen;
  for (const char* name : {"/python3", "/python"})
    if (is_program(command_directory + name)) return command_directory + name;
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + "/python3";
    if (colon != 0 && is_program(candidate)) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

int run_python_module(const std::string& module, const std::vector<std::string>& words, Output output) {
  const std::string python = find_python(command_directory());
  if (python.empty()) {
    output.err << "sterna: no Python interpreter beside this command or on PATH; set STERNA_PYTHON to one that has the "
                  "sterna package\n";
    return 1;
  }
  std::vector<std::string> command = {python, "-m", module};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  output.out.flush();
  output.err.flush();
  execv(python.c_str(), pointers.data());
  output.err << "sterna: cannot start " << python << ": " << std::strerror(errno) << "\n";
  return 1;
}

}  // namespace sterna::cli
