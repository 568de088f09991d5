// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/trace_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sterna::cli {
namespace {

Trace example() {
  Trace t;
  t.program = "softmax";
  t.target = "chip";
  t.bound = "vector";
  t.kernel_ps = 4000000;
  t.total_ps = 17000000;
  t.names = {"", "kernel.py", "f", "tensor_tensor"};
  t.sites = {{}, {1, 2, 33, 0}};
  t.queues = {{"tensor", 0, 0}, {"vector", 2, 3000000}};
  t.causes = {"launch", "operand"};
  t.instructions.record = {0, 1};
  t.instructions.what = {3, 3};
  t.instructions.queue = {1, 1};
  t.instructions.start_ps = {0, 2000000};
  t.instructions.duration_ps = {1000000, 2000000};
  t.instructions.cause = {0, 1};
  t.instructions.cause_instruction = {kNoCause, 0};
  t.instructions.site = {1, 1};
  t.instructions.iteration = {0, 1};
  t.metrics = {{"dma_bytes", "B", 4096}};
  t.lines = {{1, 4000000}};
  t.uncertain = {{"dma.descriptor", "7 ns", "a figure", "estimated"}};
  t.notes = {"something assumed"};
  return t;
}

class TraceCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / "sterna_trace_command_test";
    std::filesystem::create_directories(folder);
    file = (folder / "run.trace").string();
    ASSERT_TRUE(save_trace(example(), file));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  int run(const std::string& path, const std::string& perfetto = "") {
    Arguments arguments;
    arguments.set("FILE", path);
    if (!perfetto.empty()) arguments.set("--perfetto", perfetto);
    out.str("");
    err.str("");
    return trace_command().run(arguments, {out, err});
  }

  std::filesystem::path folder;
  std::string file;
  std::ostringstream out, err;
};

TEST_F(TraceCommand, SaysWhatBoundsTheKernelAndWhere) {
  ASSERT_EQ(run(file), 0);
  const std::string text = out.str();
  for (const char* piece : {"softmax on chip", "17.00 us", "4.00 without launch", "bound by vector", "75.0 %",
                            "kernel.py:33", "dma.descriptor", "estimated", "something assumed", "4096"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " in\n" << text;
  EXPECT_EQ(text.find("tensor "), std::string::npos) << "an engine without instructions is not shown";
}

TEST_F(TraceCommand, SumsUpWhatAnEngineWaitedFor) {
  ASSERT_EQ(run(file), 0);
  const std::string text = out.str();
  const size_t at = text.find("operand");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(text.substr(at, 30).find("1.00"), std::string::npos) << "idle from 1 to 2 us";
}

TEST_F(TraceCommand, WritesPerfettoJson) {
  const std::string json = (folder / "run.json").string();
  ASSERT_EQ(run(file, json), 0);
  EXPECT_TRUE(out.str().empty());
  std::ifstream in(json);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_NE(text.find("\"traceEvents\""), std::string::npos);
  EXPECT_NE(text.find("kernel.py:33"), std::string::npos);
}

TEST_F(TraceCommand, DrawsAPictureOfTheWidthAskedFor) {
  const auto draw = [&](const char* width) {
    Arguments arguments;
    arguments.set("FILE", file);
    arguments.set("--svg", (folder / "run.svg").string());
    if (*width != 0) arguments.set("--width", width);
    return trace_command().run(arguments, {out, err});
  };
  const auto drawn = [&] {
    std::ifstream in(folder / "run.svg");
    return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  };
  ASSERT_EQ(draw(""), 0);
  EXPECT_EQ(drawn().find("<svg xmlns='http://www.w3.org/2000/svg' width='1000' "), 0u);
  ASSERT_EQ(draw("640"), 0);
  EXPECT_NE(drawn().find("width='640'"), std::string::npos);
  EXPECT_NE(drawn().find("75.0 % active"), std::string::npos);
  EXPECT_TRUE(out.str().empty());
  for (const char* width : {"x", "640x", "0", "-5", "99999999999999999999", "4001"}) EXPECT_EQ(draw(width), 2) << width;
  EXPECT_NE(err.str().find("--width"), std::string::npos);
}

TEST_F(TraceCommand, FaultsAreReported) {
  EXPECT_EQ(run((folder / "none.trace").string()), 1);
  EXPECT_NE(err.str().find("FILE1"), std::string::npos) << err.str();
  std::ofstream(folder / "other.txt") << "hello";
  EXPECT_EQ(run((folder / "other.txt").string()), 1);
  EXPECT_NE(err.str().find("not a trace"), std::string::npos);
  EXPECT_EQ(run(file, "/nowhere/at/all.json"), 1);
}

}  // namespace
}  // namespace sterna::cli
