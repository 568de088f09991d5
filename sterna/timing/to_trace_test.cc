// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/to_trace.h"

#include <gtest/gtest.h>

#include "sterna/timing/kernel_for_test.h"

namespace sterna {
namespace {

TEST(ToTrace, IsCompleteInItself) {
  const Chip chip = chip_for_test("trn2");
  KernelForTest k(chip);
  k.builder.program().name = "add";
  const View in = k.hbm({128, 512}, DType::kFloat32), out = k.hbm({128, 512}, DType::kFloat32);
  const View a = k.sbuf({128, 512}, DType::kFloat32), b = k.sbuf({128, 512}, DType::kFloat32);
  k.line(11);
  k.copy(a, in);
  k.line(12);
  k.add(b, a, a);
  k.line(13);
  k.copy(out, b);
  const Timing timing = k.time();
  Path path;
  path.add(42);
  auto t = read_trace(write_trace(to_trace(k.builder.program(), path, chip, timing)));
  ASSERT_TRUE(t) << t.error().text();
  ASSERT_EQ(t->paths.size(), 1u);
  EXPECT_EQ(t->paths[0].values(), path.values());
  EXPECT_EQ(t->program, "add");
  EXPECT_EQ(t->target, "trn2");
  EXPECT_EQ(t->total_ps, timing.total_ps);
  ASSERT_EQ(t->instructions.size(), 3u);
  EXPECT_EQ(t->name(t->instructions.what[1]), "tensor_tensor");
  EXPECT_EQ(t->queues[t->instructions.queue[1]].name, "vector");
  EXPECT_EQ(t->causes[t->instructions.cause[1]], "operand");
  EXPECT_EQ(t->instructions.cause_instruction[1], 0u);
  EXPECT_EQ(t->place(t->instructions.site[2]), "kernel.py:13");
  EXPECT_EQ(t->instructions.start_ps[1], timing.instructions[1].start);
  EXPECT_EQ(t->tensors.size(), k.builder.program().tensors.size());
  EXPECT_GE(t->tensors[2].byte, 0);
  EXPECT_NE(t->tensors[2].byte, t->tensors[3].byte);
  EXPECT_EQ(t->tensors[0].byte, -1);
  EXPECT_EQ(t->lines.size(), timing.lines.size());
  EXPECT_EQ(t->uncertain.size(), timing.uncertain.size());
  double traffic = 0;
  for (const TraceMetric& m : t->metrics)
    if (m.name == "dma_bytes") traffic = m.value;
  EXPECT_EQ(traffic, 2 * 128 * 2048);
}

}  // namespace
}  // namespace sterna
