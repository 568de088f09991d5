// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sterna/cli/chip_command.h"
#include "sterna/cli/command.h"
#include "sterna/cli/locate.h"
#include "sterna/cli/python.h"
#include "sterna/cli/table.h"

namespace sterna::cli {
namespace {

namespace fs = std::filesystem;

struct Said {
  int code;
  std::string out, err;
};

Said run_chip(const Arguments& arguments) {
  std::ostringstream out, err;
  const int code = chip_command().run(arguments, {out, err});
  return {code, out.str(), err.str()};
}

Arguments given(const std::string& name, std::initializer_list<const char*> flags = {}) {
  Arguments arguments;
  if (!name.empty()) arguments.set("NAME", name);
  for (const char* flag : flags) arguments.set(flag, "1");
  return arguments;
}

bool has(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

TEST(ChipCommand, ListsChips) {
  const Said said = run_chip(given(""));
  EXPECT_EQ(said.code, 0);
  for (const char* name : {"trn1", "inf2", "trn2", "trn3", "trn4"}) EXPECT_TRUE(has(said.out, name)) << name;
  EXPECT_TRUE(has(run_chip(given("", {"--json"})).out, "\"aliases\": [\"gen3\"]"));
}

TEST(ChipCommand, ShowsOneChip) {
  const Said plain = run_chip(given("trn2"));
  EXPECT_EQ(plain.code, 0);
  EXPECT_TRUE(has(plain.out, "\nengine.tensor\n"));
  EXPECT_TRUE(has(plain.out, "2.4  GHz"));
  EXPECT_FALSE(has(plain.out, "documented  "));
  const Said sources = run_chip(given("trn2", {"--sources"}));
  EXPECT_TRUE(has(sources.out, "documented"));
  EXPECT_TRUE(has(sources.out, "(trn1.toml)"));
  EXPECT_TRUE(has(sources.out, "NKI architecture guide for Trainium2"));
}

TEST(ChipCommand, JsonKeepsBothValues) {
  const Said said = run_chip(given("gen3", {"--json"}));
  EXPECT_EQ(said.code, 0);
  EXPECT_TRUE(has(said.out,
                  "\"hbm.bandwidth\": {\"value\": 2.9, \"unit\": \"TB/s\", \"base_value\": 2900, \"trust\": "
                  "\"documented\""));
  EXPECT_TRUE(has(said.out, "\"features.hardware_dge\": {\"value\": true, \"trust\""));
}

TEST(ChipCommand, RefusesUnknownChips) {
  const Said said = run_chip(given("trn9"));
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(said.out.empty());
  EXPECT_TRUE(has(said.err, "trn9")) << said.err;
}

TEST(Commands, NamesAreUniqueAndEachRuns) {
  std::set<std::string> names;
  for (const Command& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_NE(command.run == nullptr, command.pass_through == nullptr) << command.name;
    EXPECT_FALSE(command.summary.empty()) << command.name;
  }
  EXPECT_TRUE(names.count("run") && names.count("chip"));
}

TEST(Table, AlignsColumns) {
  Table table("> ");
  table.align_right(1);
  table.add({"a", "1", "x"});
  table.add({"µs", "100"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "> a     1  x\n> µs  100\n");
}

TEST(Table, EscapesJson) {
  EXPECT_EQ(json_string("a\"b\\c\nd\x01"), "\"a\\\"b\\\\c\\nd\\u0001\"");
  EXPECT_EQ(json_string("µ"), "\"µ\"");
}

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    prefix_ = fs::temp_directory_path() / ("sterna_cli_test_" + std::to_string(getpid()));
    fs::create_directories(prefix_ / "bin");
    unsetenv("STERNA_PYTHON");
  }
  void TearDown() override { fs::remove_all(prefix_); }
  void make_program(const fs::path& path, const std::string& text) {
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }
  std::string bin() const { return (prefix_ / "bin").string(); }
  fs::path prefix_;
};

TEST_F(Installed, HardwareIsFoundBesideTheCommand) {
  fs::create_directories(prefix_ / "lib/python3.11/site-packages/sterna/hardware/chips");
  ASSERT_FALSE(installed_hardware(bin()).empty());
  EXPECT_EQ(installed_hardware(bin())[0], (prefix_ / "lib/python3.11/site-packages/sterna/hardware").string());
  fs::create_directories(prefix_ / "share/sterna/hardware/chips");
  EXPECT_EQ(installed_hardware(bin())[0], (prefix_ / "share/sterna/hardware").string());
}

TEST_F(Installed, PythonBesideTheCommandIsPreferred) {
  EXPECT_NE(find_python(bin()), bin() + "/python3");
  make_program(prefix_ / "bin/python3", "#!/bin/sh\n");
  EXPECT_EQ(find_python(bin()), bin() + "/python3");
  setenv("STERNA_PYTHON", "/my/python", 1);
  EXPECT_EQ(find_python(bin()), "/my/python");
  unsetenv("STERNA_PYTHON");
}

TEST_F(Installed, RunHandsItsWordsOver) {
  const fs::path log = prefix_ / "log";
  make_program(prefix_ / "bin/fake",
               "#!/bin/sh\nfor w in \"$@\"; do echo \"<$w>\" >> " + log.string() + "; done\nexit 7\n");
  const auto run = [&] {
    setenv("STERNA_PYTHON", (bin() + "/fake").c_str(), 1);
    std::ostringstream out, err;
    const std::vector<std::string> words = {"k.py", "--chip", "a b", ""};
    exit(run_python_module("sterna.run", words, {out, err}));
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "");
  std::ifstream in(log);
  std::stringstream words;
  words << in.rdbuf();
  EXPECT_EQ(words.str(), "<-m>\n<sterna.run>\n<k.py>\n<--chip>\n<a b>\n<>\n");
}

TEST_F(Installed, RunSaysWhyItCannotStart) {
  setenv("STERNA_PYTHON", (bin() + "/missing").c_str(), 1);
  std::ostringstream out, err;
  EXPECT_EQ(run_python_module("sterna.run", {}, {out, err}), 1);
  unsetenv("STERNA_PYTHON");
  EXPECT_TRUE(has(err.str(), "/missing")) << err.str();
}

}  // namespace
}  // namespace sterna::cli
