// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/isa/vector.h"
#include "sterna/program/builder.h"
#include "sterna/program/check_program.h"

namespace sterna {
namespace {

const Chip& trn2() {
  static const Result<Chip> chip = find_chip("trn2");
  return *chip;
}

TextOptions on_trn2() {
  TextOptions options;
  options.chip = &trn2();
  return options;
}

Result<Program> parse(std::string_view text) { return parse_program(text, "test.sterna", on_trn2()); }

/// A program that uses every part of the form, in canonical text.
constexpr std::string_view kEverything = R"(sterna program 1
name "my kernel"
target trn2
nki "0.6"
registers 2
site 1 "k.py":12 in kernel
site 2 "k.py":40 in helper from 1
site 3 "a \"b\"\\\n\x01.py":-1
param %x hbm float32 [128, 64] read_only
param %"odd name" hbm int32 [4, 1]
tensor %y hbm float32 [128, 64] shared @1
tensor %a.3 sbuf float32 [128, 64] @2
tensor %a.4 sbuf bfloat16 [128, 4, 16] at (0, 1024) @2:1
tensor %5 sbuf int32 [4, 1]
tensor %scalar hbm float32 []
dma_copy dst=%a.3 src=%x
dma_copy dst=%5 src=%"odd name"
dma_copy dst=%a.3[0:4, 0:64] src=%x[0:4, 0:64]+rows(%5 * 64 < 128) oob_mode=skip @2:3
loop reg=$0 high=4 @1
  activation dst=%a.4[0:128, 1, 0:16] op=exp data=%a.3{bfloat16, offset 2, [1, 128], [2, 16]} bias=-inf scale=0.1 label="x y"
  tensor_scalar dst=%a.3[0:128, 0:64:2] data=%a.3[0:128, 1:64:2] op0=add operand0=nan:0xfff8000000000001 reverse0=true engine=vector
  dma_copy dst=%y[4, 0:16] src=%x[0, 0:16]+($0 * 16 < 4)
  dma_copy dst=%y[4, 0:16] src=%x[0, 0:16]+(%5[0:1, 0:1] * 1 < 4)
  device_print src=%a.3 prefix="a\n\tb"
  if reg=$0
    memset dst=%a.4{partition 3, [2, 60], [3, 16]} value=1e-45 engine=vector
  end
end
iota dst=%5 pattern=[[-3, 1]] channel_multiplier=7
alloc tensor=%a.3
nc_stream_shuffle dst=%a.3 src=%a.3 shuffle_mask=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 255]
tensor_reduce dst=%a.3[0:128, 0:1] data=%a.3 axis=[1]
result %y
result %x
edge 0 -> 5
)";

TEST(Text, RoundTripIsExact) {
  const Result<Program> program = parse(kEverything);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(print_program(*program), kEverything);
}

TEST(Text, ParsingGivesWhatTheTextSays) {
  const Result<Program> program = parse(kEverything);
  ASSERT_TRUE(program) << program.error().text();
  const Program& p = *program;
  EXPECT_EQ(p.name, "my kernel");
  ASSERT_EQ(p.tensors.size(), 7u);
  EXPECT_TRUE(p.tensors[0].read_only);
  EXPECT_EQ(p.parameters, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(p.results, (std::vector<uint32_t>{2, 0}));
  EXPECT_EQ(p.tensors[4].dtype, DType::kBFloat16);
  EXPECT_EQ(p.tensors[4].address_byte, 1024u);
  EXPECT_EQ(p.names[p.tensors[4].name], "a");
  EXPECT_EQ(p.tensors[6].ndim, 0);
  EXPECT_EQ(p.place(2).file, "k.py");
  EXPECT_EQ(p.place(2).line, 40);
  EXPECT_EQ(p.place(3).file, "a \"b\"\\\n\x01.py");
  EXPECT_EQ(p.sites[2].parent, 1u);
  ASSERT_EQ(p.edges.size(), 1u);
  EXPECT_EQ(p.edges[0].consumer, 5u);
  EXPECT_TRUE(check_program(p, trn2()).empty()) << check_program(p, trn2())[0].text();
}

TEST(Text, AProgramOfTheBuilderComesBack) {
  Builder b(trn2(), false);
  TensorInfo tile;
  tile.memory = Memory::kSbuf;
  tile.ndim = 2;
  tile.shape[0] = 128;
  tile.shape[1] = 512;
  tile.name = b.program().names.intern("acc");
  const uint32_t acc = *b.add_tensor(tile), same_name = *b.add_tensor(tile);
  ASSERT_TRUE(b.record(vector_engine::Memset{whole_view(acc, b.tensor(acc)), Scalar::of(0.1f), EngineId::kUnknown}));
  ASSERT_TRUE(b.record(vector_engine::TensorCopy{whole_view(same_name, b.tensor(same_name)),
                                                 whole_view(acc, b.tensor(acc)), EngineId::kUnknown}));
  const std::string text = print_program(b.program());
  const Result<Program> again = parse(text);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(print_program(*again), text);
  const auto& memset = *static_cast<const vector_engine::Memset*>(again->cores[0][2].body());
  EXPECT_EQ(memset.value.value, static_cast<double>(0.1f)) << "an immediate lost bits";
  EXPECT_EQ(memset.engine, EngineId::kVector) << "what check() completed is part of the program";
}

TEST(Text, SlicesMayBeShort) {
  const Result<Program> program = parse(
      "sterna program 1\ntarget trn2\ntensor %a sbuf float32 [4, 8]\nmemset dst=%a[:, 2:] \nmemset dst=%a[1:3]\nmemset "
      "dst=%a[:,:6:2]\n");
  ASSERT_TRUE(program) << program.error().text();
  const std::string text = print_program(*program);
  EXPECT_NE(text.find("%a[0:4, 2:8] "), std::string::npos) << text;
  EXPECT_NE(text.find("%a[1:3, 0:8] "), std::string::npos) << text;
  EXPECT_NE(text.find("%a[0:4, 0:6:2] "), std::string::npos) << text;
}

TEST(Text, RecordsCanBePlacedInTheText) {
  TextOptions options = on_trn2();
  options.place_records = true;
  const Result<Program> program = parse_program(
      "sterna program 1\ntarget trn2\ntensor %a sbuf float32 [4, 8]\n\nmemset dst=%a\n", "f.sterna", options);
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(program->place(program->cores[0][1].site).line, 5);
  EXPECT_EQ(program->place(program->cores[0][1].site).file, "f.sterna");
}

TEST(Text, FaultsCarryRuleLineAndColumn) {
  const std::string head = "sterna program 1\ntarget trn2\n", tile = head + "tensor %a sbuf float32 [4, 8]\n";
  const std::vector<std::tuple<std::string, std::string, int, int>> cases = {
      {"", "TEXT2", 0, 1},
      {"# only a comment\n", "TEXT2", 1, 1},
      {"sterna program 2\n", "TEXT2", 1, 16},
      {"sterna trace 1\n", "TEXT2", 1, 8},
      {"sterna program 1 x\n", "TEXT1", 1, 18},
      {"sterna program 1\n", "TEXT1", 1, 1},
      {"sterna program 1\n  memset dst=%a\n", "TEXT1", 2, 3},
      {head + "tensor a sbuf float32 [4]\n", "TEXT1", 3, 8},
      {head + "tensor %a dram float32 [4]\n", "TEXT1", 3, 11},
      {head + "tensor %a sbuf float33 [4]\n", "TEXT3", 3, 16},
      {head + "tensor %a sbuf float32 [4, -1]\n", "TEXT4", 3, 28},
      {head + "tensor %a hbm float32 [1, 1, 1, 1, 1, 1]\n", "TEXT4", 3, 39},
      {head + "tensor %a hbm float32 [2000000000, 2000000000]\n", "TEXT4", 3, 46},
      {head + "  tensor %a sbuf float32 [129, 2]\n", "TEN2", 3, 3},
      {tile + "tensor %a sbuf float32 [4, 8]\n", "TEXT3", 4, 11},
      {tile + "memset dst=%b\n", "TEXT3", 4, 12},
      {tile + "memset dst=%a colour=red\n", "TEXT3", 4, 21},
      {tile + "memset dst=%a dst=%a\n", "TEXT3", 4, 18},
      {tile + "memst dst=%a\n", "TEXT3", 4, 1},
      {tile + "memset dst=%a[0:5]\n", "IDX1", 4, 18},
      {tile + "memset dst=%a[4]\n", "IDX1", 4, 16},
      {tile + "memset dst=%a[0,0,0]\n", "IDX2", 4, 19},
      {tile + "memset dst=%a{[1, 4], [1, 9]}\n", "IDX4", 4, 1},
      {tile + "memset dst=%a value=1e400\n", "TEXT1", 4, 21},
      {tile + "memset dst=%a value=1x\n", "TEXT1", 4, 21},
      {tile + "memset dst=%a engine=fast\n", "TEXT3", 4, 22},
      {tile + "sendrecv dma_engine=none\n", "TEXT3", 4, 21},
      {tile + "memset dst=%a engine=tensor\n", "ENG1", 4, 1},
      {tile + "memset dst=%a @3\n", "TEXT3", 4, 17},
      {tile + "loop reg=$0 high=2\n", "TEXT3", 4, 11},
      {tile + "end\n", "REGION1", 4, 1},
      {tile + "registers 1\nif reg=$0\n", "REGION2", 5, 1},
      {tile + "edge 1 -> 0\n", "TEXT4", 4, 1},
      {tile + "edge 0 -> 9\nmemset dst=%a\n", "TEXT4", 4, 1},
      {tile + "edge 0 -> 1 core 1\nmemset dst=%a\n", "TEXT4", 4, 1},
      // of core 1, whose the loop is; core 0 has none
      {head + "cores 2\nregisters 1\nedge 0 -> 3 core 1\nregister_move dst=$0\nregister_move dst=$0\n"
              "register_move dst=$0\nregister_move dst=$0\ncore 1\nloop reg=$0 high=2\n"
              "register_move dst=$0\nend\nregister_move dst=$0\n",
       "SCHED3", 5, 1},
      {tile + "registers 1\nedge 2 -> 4\nloop reg=$0 high=2\nmemset dst=%a\nend\nmemset dst=%a\n", "SCHED3", 5, 1},
      {tile + "result %c\n", "TEXT3", 4, 8},
      {tile + "name \"open\n", "TEXT1", 4, 6},
      {tile + "name \"\\q\"\n", "TEXT1", 4, 6},
  };
  for (const auto& [text, rule, line, column] : cases) {
    const Result<Program> program = parse(text);
    ASSERT_FALSE(program) << text;
    EXPECT_EQ(program.error().rule, rule) << text << program.error().text();
    EXPECT_EQ(program.error().where.file, "test.sterna");
    EXPECT_EQ(program.error().where.line, line) << text << program.error().text();
    EXPECT_EQ(program.error().where.column, column) << text << program.error().text();
  }
}

TEST(Text, AnotherVersionSaysWhatToDo) {
  const Result<Program> program = parse("sterna program 9\n");
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message.find("newer Sterna"), std::string::npos);
}

/// Whatever comes in, the answer is a program that prints and reads again, or a fault with a place.
void try_text(const std::string& text) {
  const Result<Program> program = parse(text);
  if (!program) {
    EXPECT_EQ(program.error().where.file, "test.sterna") << text << program.error().text();
    EXPECT_FALSE(program.error().message.empty());
    return;
  }
  const std::string printed = print_program(*program);
  const Result<Program> again = parse(printed);
  ASSERT_TRUE(again) << printed << again.error().text();
  EXPECT_EQ(print_program(*again), printed);
}

TEST(Text, TruncationsDoNoHarm) {
  for (size_t n = 0; n < kEverything.size(); ++n) try_text(std::string(kEverything.substr(0, n)));
}

std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kCharacters = "%$@#+-*<>:,.{}[]()=\"\\ \n\t0123456789aensx_\x80\xff";
  for (int edits = 1 + static_cast<int>(random() % 3); edits > 0 && !text.empty(); --edits) {
    const size_t at = random() % text.size(), length = random() % 8;
    switch (random() % 5) {
      case 0: text[at] = kCharacters[random() % kCharacters.size()]; break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, 1, kCharacters[random() % kCharacters.size()]); break;
      case 3: text.insert(at, std::to_string(static_cast<int64_t>(random()) << (random() % 32))); break;
      default: text.insert(at, text.substr(random() % text.size(), length * 6)); break;
    }
  }
  return text;
}

TEST(Text, MutationsDoNoHarm) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) try_text(damaged(std::string(kEverything), random));
}

TEST(Text, MutationsOfGoldenProgramsDoNoHarm) {
  std::mt19937 random(2);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/golden/isa")) {
    if (entry.path().extension() != ".sterna") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.resize(std::min(text.size(), text.find("\n----") + 1));  // the program alone
    for (int round = 0; round < 10; ++round) try_text(damaged(text, random));
    ++files;
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace sterna
