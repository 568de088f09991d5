// SPDX-License-Identifier: Apache-2.0
// The binary form. That every golden program survives it is checked by tests/golden.
#include "sterna/program/binary.h"

#include <gtest/gtest.h>

#include "sterna/hardware/catalog.h"
#include "sterna/isa/vector.h"
#include "sterna/program/builder.h"
#include "sterna/program/check_program.h"
#include "sterna/program/text.h"

namespace sterna {
namespace {

constexpr std::string_view kProgram = R"(sterna program 1
name kernel
target trn2
nki "0.6"
cores 2
registers 2
site 1 "k.py":12 in kernel
site 2 "k.py":40 in helper from 1
param %x hbm float32 [128, 64] read_only
tensor %y hbm float32 [128, 64] shared @1
tensor %a sbuf float32 [128, 64] @2
tensor %b sbuf bfloat16 [128, 64] at (0, 1024) @2:1
tensor %i sbuf int32 [4, 1]
dma_copy dst=%a src=%x @1
dma_copy dst=%i src=%x{int32, [1, 4], [1, 1]} @1
dma_copy dst=%a[0:4, 0:64] src=%x[0:4, 0:64]+rows(%i * 64 < 128) oob_mode=skip @2:3
loop reg=$0 high=4 @1
  activation dst=%b op=exp data=%a bias=-inf scale=0.1 label="x y"
  tensor_scalar dst=%a data=%a op0=add operand0=nan:0xfff8000000000001 reverse0=true engine=vector @2:4
end
iota dst=%i pattern=[[1, 1]] channel_multiplier=-3
dma_copy dst=%y src=%a @1
core 1
alloc tensor=%y @1
dma_copy dst=%y[4, 0:16] src=%x[0, 0:16]+($1 * 16 < 4) @1:1
result %y
edge 5 -> 7
)";

Program program() {
  auto made = parse_program(kProgram, "test.sterna");
  EXPECT_TRUE(made) << made.error().text();
  return std::move(*made);
}

std::string with_checksum(std::string bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i + 8 < bytes.size(); ++i) h = (h ^ static_cast<uint8_t>(bytes[i])) * 0x100000001b3u;
  for (size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<char>(h >> (8 * i));
  return bytes;
}

TEST(BinaryProgram, SaysWhatTheTextSays) {
  const Program p = program();
  const std::string bytes = write_program(p);
  const auto back = read_program(bytes);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(print_program(*back), print_program(p));
  EXPECT_EQ(write_program(*back), bytes);
  EXPECT_EQ(back->tensors[0].read_only, true);
  EXPECT_EQ(back->cores[1].size(), p.cores[1].size());
  EXPECT_EQ(back->tensors[2].last_use, p.tensors[2].last_use);
  const auto chip = find_chip("trn2");
  EXPECT_TRUE(check_program(*back, *chip).empty());
}

TEST(BinaryProgram, IsSmall) {
  const auto chip = find_chip("trn2");
  Builder builder(*chip, false);
  TensorInfo tile;
  tile.memory = Memory::kSbuf;
  tile.ndim = 2;
  tile.shape[0] = 128, tile.shape[1] = 512;
  const auto id = builder.add_tensor(tile);
  for (int i = 0; i < 1000; ++i) {
    vector_engine::TensorScalar add;
    add.dst = add.data = whole_view(*id, builder.tensor(*id));
    add.dst.offset = add.data.offset = i % 32;
    add.dst.dims[1].count = add.data.dims[1].count = 16;
    add.op0 = AluOp::kAdd;
    add.operand0 = Scalar::of(i % 7);
    ASSERT_TRUE(builder.record(add));
  }
  EXPECT_LT(write_program(builder.program()).size() * 4, builder.program().cores[0].size() * 200);
}

TEST(BinaryProgram, RefusesOtherBytes) {
  EXPECT_EQ(read_program("").error().rule, "PRGB1");
  EXPECT_EQ(read_program(kProgram).error().rule, "PRGB1");
  std::string bytes = write_program(program());
  std::string later = bytes;
  later[8] = 99;
  EXPECT_EQ(read_program(later).error().rule, "PRGB2");
  std::string renamed = bytes;
  const size_t at = renamed.find("tensor_scalar");
  ASSERT_NE(at, std::string::npos);
  renamed[at] = 'T';
  EXPECT_EQ(read_program(with_checksum(renamed)).error().rule, "PRGB2");
}

TEST(BinaryProgram, EveryCutIsNoticed) {
  const std::string bytes = write_program(program());
  for (size_t n = 9; n < bytes.size(); ++n) EXPECT_EQ(read_program(bytes.substr(0, n)).error().rule, "PRGB3") << n;
}

TEST(BinaryProgram, EveryChangedByteIsNoticedOrHarmless) {
  const std::string bytes = write_program(program());
  const auto chip = find_chip("trn2");
  for (size_t i = 9; i + 8 < bytes.size(); ++i)
    for (int bit : {0, 3, 7}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_EQ(read_program(changed).error().rule, "PRGB3") << i;
      // Past the checksum: a program that is refused, or checked, and never a crash.
      const auto read = read_program(with_checksum(changed));
      if (read) (void)check_program(*read, *chip);
    }
}

}  // namespace
}  // namespace sterna
