// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/program_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sterna::cli {
namespace {

struct Said {
  int code;
  std::string out, err;
};

/// Runs the command on a file with this text.
Said run_on(const std::string& text, std::initializer_list<const char*> flags) {
  const auto file = std::filesystem::temp_directory_path() / ("sterna_program_" + std::to_string(getpid()) + ".sterna");
  std::ofstream(file) << text;
  Arguments arguments;
  arguments.set("FILE", file.string());
  for (const char* flag : flags) arguments.set(flag, "1");
  std::ostringstream out, err;
  const int code = program_command().run(arguments, {out, err});
  std::filesystem::remove(file);
  return {code, out.str(), err.str()};
}

constexpr const char* kProgram = R"(sterna program 1
target trn2
param %x hbm float32 [2, 3]
tensor %y hbm float32 [2, 3] shared
tensor %a sbuf float32 [2, 3]
dma_copy dst=%a src=%x
tensor_scalar dst=%a data=%a op0=multiply operand0=2
dma_copy dst=%y src=%a
result %y
---- data %x
1 2 3
-4 0.5 inf
)";

TEST(ProgramCommand, RunsWithTheDataOfTheFile) {
  const Said said = run_on(kProgram, {"--run"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "---- values %y  # float32 [2, 3]\n2 4 6\n-8 1 inf\n");
}

TEST(ProgramCommand, PrintsTheCanonicalForm) {
  const Said said = run_on(kProgram, {"--print"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("tensor_scalar dst=%a data=%a op0=multiply operand0=2 engine=vector\n"), std::string::npos)
      << said.out;
  EXPECT_EQ(said.out.find('@'), std::string::npos) << "the places in this file are not part of the program";
}

TEST(ProgramCommand, CountsTensorsAndRecords) {
  const Said said = run_on(kProgram, {});
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.out.find("dma_copy"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("sbuf"), std::string::npos) << said.out;
}

TEST(ProgramCommand, AFaultHasItsPlace) {
  const Said said =
      run_on("sterna program 1\ntarget trn2\ntensor %a sbuf float32 [2, 3]\ntensor_copy dst=%a src=%b\n", {"--run"});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find(".sterna:4:24"), std::string::npos) << said.err;
}

TEST(ProgramCommand, AFaultOfTheRunHasItsPlace) {
  const Said said = run_on(
      "sterna program 1\ntarget trn2\ntensor %a sbuf float32 [2, 3]\ntensor_scalar dst=%a data=%a op0=add operand0=1\n",
      {"--run"});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("UNINIT1"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find(".sterna:4"), std::string::npos) << said.err;
}

TEST(ProgramCommand, AResultMustLeaveTheDevice) {
  const Said said = run_on("sterna program 1\ntarget trn2\ntensor %a sbuf float32 [2, 3]\nresult %a\n", {});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("PRG3"), std::string::npos) << said.err;
}

TEST(ProgramCommand, AMissingFileIsSaid) {
  Arguments arguments;
  arguments.set("FILE", "/nonexistent/x.sterna");
  std::ostringstream out, err;
  EXPECT_EQ(program_command().run(arguments, {out, err}), 1);
  EXPECT_NE(err.str().find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace sterna::cli
