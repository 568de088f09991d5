// SPDX-License-Identifier: Apache-2.0
// Runs golden cases: golden_test [--all-fail] [--each-instruction N] PATH...
//
// Every file runs under every SIMD target of this processor with one and with two threads, and must meet its
// expectations each time. UPDATE=1 in the environment rewrites the values sections instead: look at the difference
// before you keep it, since an expectation comes from a document or a formula, not from here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "sterna/isa/instruction.h"
#include "sterna/numerics/dispatch.h"
#include "tests/golden/golden_case.h"

namespace sterna::golden {
namespace {

struct Settings {
  bool all_fail = false, update = false;
  int each_instruction = 0;
  std::vector<std::string> files;
};

bool find_files(const std::string& path, std::vector<std::string>* out) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    out->push_back(path);
    return true;
  }
  std::filesystem::recursive_directory_iterator it(path, error);
  if (error) {
    std::cerr << path << ": " << error.message() << '\n';
    return false;
  }
  for (const auto& entry : it)
    if (entry.path().extension() == ".sterna") out->push_back(entry.path().generic_string());
  return true;
}

bool read_settings(int argc, char** argv, Settings* s) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all-fail")
      s->all_fail = true;
    else if (word == "--each-instruction" && i + 1 < argc)
      s->each_instruction = std::atoi(argv[++i]);
    else if (!find_files(word, &s->files))
      return false;
  }
  std::sort(s->files.begin(), s->files.end());
  const char* update = std::getenv("UPDATE");
  s->update = update != nullptr && std::string(update) == "1";
  return !s->files.empty();
}

std::string read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Runs one file in every way; prints the first way that differs. True if all is as expected.
bool check_file(const std::string& file, ThreadPool* const (&pools)[2]) {
  const Result<Case> c = read_case(file, read_file(file));
  if (!c) {
    std::cout << c.error().text() << '\n';
    return false;
  }
  for (SimdTarget target : simd_targets()) {
    if (!set_simd_target(target)) return false;
    for (ThreadPool* pool : pools) {
      const auto differences = run_case(*c, *pool, nullptr);
      for (const std::string& d : differences) std::cout << d << '\n';
      if (differences.empty()) continue;
      std::cout << "  (" << name(target) << ", threads: " << pool->threads() << ")\n";
      return false;
    }
  }
  return true;
}

void update_file(const std::string& file, ThreadPool& pool) {
  std::string text = read_file(file);
  const std::string before = text;
  const Result<Case> c = read_case(file, text);
  if (!c) return;
  (void)run_case(*c, pool, &text);
  if (text == before) return;
  std::ofstream(file, std::ios::binary) << text;
  std::cout << "rewritten: " << file << '\n';
}

/// Every instruction of the table has so many files in the folder of its name.
bool check_coverage(const Settings& s) {
  std::map<std::string, int> found;
  for (const std::string& file : s.files) ++found[std::filesystem::path(file).parent_path().filename().string()];
  bool good = true;
  for (const TableRow& row : instruction_table()) {
    const std::string mnemonic(row.info.mnemonic);
    if (mnemonic.empty() || found[mnemonic] >= s.each_instruction) continue;
    std::cout << mnemonic << " has " << found[mnemonic] << " golden files, at least " << s.each_instruction
              << " wanted (tests/golden/isa/" << mnemonic << "/)\n";
    good = false;
  }
  return good;
}

int run(int argc, char** argv) {
  Settings s;
  if (!read_settings(argc, argv, &s)) {
    std::cerr << "usage: golden_test [--all-fail] [--each-instruction N] PATH...\n";
    return 2;
  }
  ThreadPool one(1), two(2);
  if (s.update) {
    for (const std::string& file : s.files) update_file(file, one);
    return 0;
  }
  size_t wrong = 0;
  for (const std::string& file : s.files) {
    const bool good = check_file(file, {&one, &two});
    if (s.all_fail && good) std::cout << file << ": should differ\n";
    wrong += good == s.all_fail;
  }
  if (s.each_instruction > 0 && !check_coverage(s)) ++wrong;
  std::cout << s.files.size() << " golden files, " << wrong << " wrong, under";
  for (SimdTarget target : simd_targets()) std::cout << ' ' << name(target);
  std::cout << " with 1 and 2 threads\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sterna::golden

int main(int argc, char** argv) { return sterna::golden::run(argc, argv); }
