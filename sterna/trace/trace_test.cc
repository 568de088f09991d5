// SPDX-License-Identifier: Apache-2.0
#include "sterna/trace/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "sterna/trace/format.h"
#include "sterna/trace/perfetto.h"
#include "sterna/trace/varint.h"

namespace sterna {
namespace {

Trace example() {
  Trace t;
  t.paths.resize(1);
  for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MAX, INT64_MIN}) t.paths[0].add(value);
  t.program = "add \"quoted\"";
  t.target = "chip";
  t.bound = "vector";
  t.kernel_ps = 5000000;
  t.total_ps = 18000000;
  t.names = {"", "kernel.py", "kernel", "dma_copy", "tensor_tensor", "a\\b"};
  t.sites = {{}, {1, 2, 10, 0}, {1, 2, 20, 1}};
  t.queues = {{"vector", 2, 3000000}, {"dma_load", 2, 2000000}};
  t.causes = {"launch", "operand", "engine"};
  TraceColumns& c = t.instructions;
  c.record = {1, 2, 5, 5};
  c.what = {3, 3, 4, 4};
  c.queue = {1, 1, 0, 0};
  c.start_ps = {747000, 800000, 1500009, 3000000};
  c.duration_ps = {500000, 600000, 1000000, 2000000};
  c.cause = {0, 0, 1, 2};
  c.cause_instruction = {kNoCause, kNoCause, 0, 2};
  c.site = {1, 1, 2, 0};
  c.iteration = {0, 1, 0, 0};
  t.tensors = {{5, "sbuf", "float32", {128, 512}, 2048, 0, 1}, {0, "hbm", "float32", {4}, -1, 0, 0}};
  t.metrics = {{"dma_bytes", "B", 262144.5}};
  t.lines = {{2, 4000000}, {1, 1000000}};
  t.uncertain = {{"dma.descriptor", "7 ns", "a figure", "estimated"}};
  t.notes = {"a note"};
  return t;
}

TEST(Trace, ReadsBackWhatWasWritten) {
  const Trace t = example();
  const std::string bytes = write_trace(t);
  auto read = read_trace(bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->paths[0].values(), t.paths[0].values());
  EXPECT_EQ(read->program, t.program);
  EXPECT_EQ(read->kernel_ps, t.kernel_ps);
  EXPECT_EQ(read->total_ps, t.total_ps);
  EXPECT_EQ(read->names, t.names);
  EXPECT_EQ(read->causes, t.causes);
  EXPECT_EQ(read->notes, t.notes);
  const TraceColumns &a = t.instructions, &b = read->instructions;
  EXPECT_EQ(b.record, a.record);
  EXPECT_EQ(b.what, a.what);
  EXPECT_EQ(b.queue, a.queue);
  EXPECT_EQ(b.start_ps, a.start_ps);
  EXPECT_EQ(b.duration_ps, a.duration_ps);
  EXPECT_EQ(b.cause, a.cause);
  EXPECT_EQ(b.cause_instruction, a.cause_instruction);
  EXPECT_EQ(b.site, a.site);
  EXPECT_EQ(b.iteration, a.iteration);
  EXPECT_EQ(read->tensors[0].shape, t.tensors[0].shape);
  EXPECT_EQ(read->tensors[1].byte, -1);
  EXPECT_EQ(read->metrics[0].value, 262144.5);
  EXPECT_EQ(read->uncertain[0].trust, "estimated");
  EXPECT_EQ(read->place(2), "kernel.py:20");
  EXPECT_EQ(write_trace(*read), bytes);
}

TEST(Trace, ACauseMayComeLaterInTheProgramButNotBeyondIt) {
  Trace t = example();
  t.instructions.cause_instruction = {kNoCause, 3, 0,
                                      2};  // a load that waits for a store which another queue issued first
  auto read = read_trace(write_trace(t));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->instructions.cause_instruction, t.instructions.cause_instruction);
  t.instructions.cause_instruction[1] = 4;
  EXPECT_FALSE(read_trace(write_trace(t)));
}

TEST(Trace, ThePathComesFirst) {
  const std::string bytes = write_trace(example());
  EXPECT_EQ(bytes.substr(0, kTraceMagic.size()), kTraceMagic);
  EXPECT_EQ(bytes[kTraceMagic.size()], 2);      // the version
  EXPECT_EQ(bytes[kTraceMagic.size() + 1], 1);  // the first section's number
}

TEST(Trace, AnEmptyTraceIsATrace) {
  auto read = read_trace(write_trace(Trace()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->instructions.size(), 0u);
}

/// Before there were several cores, a path stood alone and a queue did not say whose it was.
TEST(Trace, FilesOfVersion1AreThoseOfOneCore) {
  ByteWriter out;
  out.raw(kTraceMagic);
  out.number(1);
  ByteWriter path, queues;
  path.column(std::vector<int64_t>{7, -8});
  queues.number(2);
  for (const char* name : {"tensor", "vector"}) {
    queues.text(name);
    queues.signed_number(3);
    queues.signed_number(4000);
  }
  queues.number(0);  // causes
  out.number(static_cast<uint64_t>(TraceSection::kPath));
  out.text(path.bytes());
  out.number(static_cast<uint64_t>(TraceSection::kQueues));
  out.text(queues.bytes());
  const uint64_t check = trace_check(out.bytes());
  std::string bytes = out.take();
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(check >> (8 * i));
  auto read = read_trace(bytes);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->paths.size(), 1u);
  EXPECT_EQ(read->paths[0].values(), (std::vector<int64_t>{7, -8}));
  ASSERT_EQ(read->queues.size(), 2u);
  EXPECT_EQ(read->queues[1].busy_ps, 4000);
  EXPECT_EQ(read->queue_name(1), "vector");
}

TEST(Trace, QueuesOfSeveralCoresSayWhose) {
  Trace t = example();
  t.queues.push_back(t.queues[0]);
  t.queues.back().core = 1;
  auto read = read_trace(write_trace(t));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->cores(), 2u);
  EXPECT_EQ(read->queue_name(0), "core 0 " + t.queues[0].name);
  EXPECT_EQ(read->queue_name(t.queues.size() - 1), "core 1 " + t.queues[0].name);
}

TEST(Trace, OtherVersionsAreRefused) {
  std::string bytes = write_trace(example());
  bytes[kTraceMagic.size()] = 3;
  auto read = read_trace(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().rule, "TRACE2");
}

TEST(Trace, OtherFilesAreRefused) {
  for (const char* text : {"", "STERNA", "{\"traceEvents\":[]}"}) {
    auto read = read_trace(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().rule, "TRACE1") << text;
  }
}

TEST(Trace, EveryDamagedByteIsNoticed) {
  const std::string bytes = write_trace(example());
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int flip : {1, 0x80}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      EXPECT_FALSE(read_trace(damaged)) << "byte " << i;
    }
}

TEST(Trace, EveryCutIsNoticed) {
  const std::string bytes = write_trace(example());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_trace(std::string_view(bytes).substr(0, n))) << n;
}

/// Damage that the check does not catch, since it was made with a new check: the reader must stay inside its tables.
TEST(Trace, DamageWithAMatchingCheckIsHarmless) {
  const std::string bytes = write_trace(example());
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes.substr(0, bytes.size() - 8);
    for (int i = 0; i < 2; ++i)
      damaged[kTraceMagic.size() + 1 + random() % (damaged.size() - kTraceMagic.size() - 1)] =
          static_cast<char>(random());
    const uint64_t check = trace_check(damaged);
    for (int i = 0; i < 8; ++i) damaged += static_cast<char>(check >> (8 * i));
    auto read = read_trace(damaged);
    if (!read) continue;
    std::ostringstream out;
    write_perfetto(out, *read);
    EXPECT_FALSE(out.str().empty());
  }
}

TEST(Trace, LongColumnsAreShort) {
  Trace t;
  t.names = {"", "x"};
  t.sites = {{}};
  t.queues = {{"vector", 0, 0}};
  t.causes = {"engine"};
  TraceColumns& c = t.instructions;
  const uint32_t n = 100000;
  for (uint32_t i = 0; i < n; ++i) {
    c.record.push_back(i);
    c.what.push_back(1);
    c.queue.push_back(0);
    c.start_ps.push_back(int64_t{i} * 170833);
    c.duration_ps.push_back(170833);
    c.cause.push_back(0);
    c.cause_instruction.push_back(i == 0 ? kNoCause : i - 1);
    c.site.push_back(0);
    c.iteration.push_back(i);
  }
  EXPECT_LT(write_trace(t).size(), 12u * n);
}

TEST(Trace, FilesRoundTrip) {
  const auto path = (std::filesystem::temp_directory_path() / "sterna_trace_test.trace").string();
  ASSERT_TRUE(save_trace(example(), path));
  auto read = load_trace(path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->bound, "vector");
  std::filesystem::remove(path);
  auto gone = load_trace(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().rule, "FILE1");
  EXPECT_FALSE(save_trace(example(), "/nowhere/at/all.trace"));
}

TEST(Varint, NumbersRoundTripAtTheirEdges) {
  ByteWriter out;
  const std::vector<int64_t> values = {0, 1, -1, 63, 64, -64, -65, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 0};
  for (int64_t v : values) out.signed_number(v);
  out.column(values);
  out.real(-0.1);
  ByteReader in(out.bytes());
  for (int64_t v : values) EXPECT_EQ(in.signed_number(), v);
  EXPECT_EQ(in.column<int64_t>(), values);
  EXPECT_EQ(in.real(), -0.1);
  EXPECT_TRUE(in.at_end());
  EXPECT_FALSE(in.damaged);
  EXPECT_EQ(in.number(), 0u);
  EXPECT_TRUE(in.damaged);
}

TEST(Varint, AValueThatDoesNotFitItsColumnIsDamage) {
  ByteWriter out;
  out.column(std::vector<int64_t>{1, 300});
  ByteReader in(out.bytes());
  (void)in.column<uint8_t>();
  EXPECT_TRUE(in.damaged);
}

// ---- Perfetto

std::string perfetto(const Trace& t) {
  std::ostringstream out;
  write_perfetto(out, t);
  return out.str();
}
size_t count(const std::string& text, const std::string& piece) {
  size_t n = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}

TEST(Perfetto, OneEventForEachInstructionWithItsSourceAndCause) {
  const std::string json = perfetto(example());
  EXPECT_EQ(count(json, "\"ph\":\"X\""), 4u);
  EXPECT_NE(json.find("\"ts\":0.747000,\"dur\":0.500000"), std::string::npos) << json;
  EXPECT_NE(json.find("\"site\":\"kernel.py:20\""), std::string::npos);
  EXPECT_NE(json.find("\"cause\":\"operand\",\"waited for\":\"dma_copy #0 at kernel.py:10\""), std::string::npos);
  EXPECT_NE(json.find("add \\\"quoted\\\" on chip"), std::string::npos);
}

TEST(Perfetto, OverlappingTransfersGetTracksOfTheirOwn) {
  const std::string json = perfetto(example());  // instruction 1 begins before 0 ends
  EXPECT_NE(json.find("\"dma_load\""), std::string::npos);
  EXPECT_NE(json.find("\"dma_load (2)\""), std::string::npos);
  EXPECT_EQ(json.find("\"vector (2)\""), std::string::npos);
}

TEST(Perfetto, BracesBalance) {
  const std::string json = perfetto(example());
  EXPECT_EQ(count(json, "{"), count(json, "}"));
  EXPECT_EQ(count(json, "["), count(json, "]"));
}

}  // namespace
}  // namespace sterna
