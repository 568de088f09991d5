// SPDX-License-Identifier: Apache-2.0
// The chip files that ship: they load, and say what the public documents say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "sterna/hardware/catalog.h"
#include "sterna/hardware/schema.h"

namespace sterna {
namespace {

Chip chip(std::string_view name) {
  auto found = find_chip(name);
  if (!found) {
    ADD_FAILURE() << found.error().text();
    std::abort();
  }
  return std::move(*found);
}

std::vector<ChipHeader> headers() {
  auto chips = list_chips();
  EXPECT_TRUE(chips) << chips.error().text();
  return chips ? std::move(*chips) : std::vector<ChipHeader>();
}

TEST(Chips, EveryFileLoads) {
  const auto chips = headers();
  ASSERT_GE(chips.size(), 5u);
  for (const ChipHeader& header : chips) {
    auto found = find_chip(header.name);
    EXPECT_TRUE(found) << found.error().text();
  }
}

TEST(Chips, NoSourceIsUnused) {
  for (const ChipHeader& header : headers()) {
    const Chip c = chip(header.name);
    std::set<std::string> cited;
    // A parent's sources may all be restated; what counts is that the file that wrote an id uses it.
    for (std::string name = c.name; !name.empty();) {
      const Chip owner = chip(name);
      for (const Number* number : owner.numbers()) cited.insert(number->source_id);
      name = owner.inherits;
    }
    for (const auto& [id, text] : c.sources) EXPECT_TRUE(cited.count(id)) << header.name << ": " << id;
  }
}

TEST(Chips, AliasesAreThoseOfTheTargetVariable) {
  EXPECT_EQ(chip("gen2").name, "trn1");
  EXPECT_EQ(chip("gen3").name, "trn2");
  EXPECT_EQ(chip("gen4").name, "trn3");
  std::set<std::string> seen;
  for (const ChipHeader& header : headers()) {
    EXPECT_TRUE(seen.insert(header.name).second) << header.name;
    for (const std::string& alias : header.aliases) EXPECT_TRUE(seen.insert(alias).second) << alias;
  }
}

// nki.isa.nc_version.
TEST(Chips, Generations) {
  EXPECT_EQ(chip("trn1").generation, 2);
  EXPECT_EQ(chip("inf2").generation, 2);
  EXPECT_EQ(chip("trn2").generation, 3);
  EXPECT_EQ(chip("trn3").generation, 4);
}

// Architecture guides: 128 x 192 KiB = 24 MiB, 28 MiB, 32 MiB; PSUM 2 MiB; HBM 32, 96, 144 GiB.
TEST(Chips, Memories) {
  const int64_t mib = 1 << 20, gib = 1 << 30;
  EXPECT_EQ(chip("trn1").sbuf.partitions * chip("trn1").sbuf.partition_bytes, 24 * mib);
  EXPECT_EQ(chip("trn2").sbuf.partitions * chip("trn2").sbuf.partition_bytes, 28 * mib);
  EXPECT_EQ(chip("trn3").sbuf.partitions * chip("trn3").sbuf.partition_bytes, 32 * mib);
  for (const char* name : {"trn1", "trn2", "trn3"})
    EXPECT_EQ(chip(name).sbuf.partitions * chip(name).psum_partition_bytes(), 2 * mib) << name;
  EXPECT_EQ(chip("trn1").hbm.bytes, 32 * gib);
  EXPECT_EQ(chip("trn2").hbm.bytes, 96 * gib);
  EXPECT_EQ(chip("trn3").hbm.bytes, 144 * gib);
}

// The pages' TFLOPS follow from array and clock: 2 * 128 * 128 * GHz = 92, 79, 79 per core in bfloat16; fp8 doubles on
// Trainium2 (158) and quadruples on Trainium3 (315); fp32 is a quarter (23, 20, 20).
TEST(Chips, ArrayAndClockGiveTheDocumentedTflops) {
  const auto tflops = [](const Chip& c) {
    return 2e-3 * static_cast<double>(c.tensor.rows * c.tensor.columns) * c.tensor.clock;
  };
  const Chip trn1 = chip("trn1"), trn2 = chip("trn2"), trn3 = chip("trn3");
  EXPECT_NEAR(tflops(trn1), 92, 0.5);
  EXPECT_NEAR(tflops(trn2), 79, 0.5);
  EXPECT_NEAR(tflops(trn3), 79, 0.5);
  EXPECT_NEAR(tflops(trn2) * trn2.tensor.double_row, 158, 1);
  EXPECT_NEAR(tflops(trn3) * trn3.tensor.mx_rows, 315, 1);
  EXPECT_EQ(trn1.tensor.double_row, 1);
  EXPECT_EQ(trn2.tensor.mx_rows, 1);
  EXPECT_NEAR(tflops(trn1) / static_cast<double>(trn1.tensor.fp32_passes), 23, 0.5);
}

// DMA guide: 272, 368 and 528 GB/s per core; HBM 820 GB/s, 2.9 TB/s, 4.9 TB/s, cores per stack 1, 2, 2.
TEST(Chips, DataRates) {
  EXPECT_DOUBLE_EQ(chip("trn1").dma_core_rate(), 272);
  EXPECT_DOUBLE_EQ(chip("trn2").dma_core_rate(), 368);
  EXPECT_DOUBLE_EQ(chip("trn3").dma_core_rate(), 528);
  EXPECT_DOUBLE_EQ(chip("trn1").hbm.bandwidth, 820);
  EXPECT_DOUBLE_EQ(chip("trn2").hbm.bandwidth, 2900);
  EXPECT_DOUBLE_EQ(chip("trn3").hbm.bandwidth, 4900);
  EXPECT_DOUBLE_EQ(chip("trn2").hbm_stack_rate(), 725);
  EXPECT_DOUBLE_EQ(chip("trn2").hbm_core_share(), 362.5);
  EXPECT_EQ(chip("trn1").cores_per_stack(), 1);
  EXPECT_EQ(chip("trn2").cores_per_stack(), 2);
  EXPECT_EQ(chip("trn3").cores_per_stack(), 2);
}

// nki.isa: what each generation brought.
TEST(Chips, WhatEachGenerationBrought) {
  const Chip trn1 = chip("trn1"), trn2 = chip("trn2"), trn3 = chip("trn3");
  for (const char* later : {"range_select", "core_barrier", "sendrecv", "nonzero_with_count"}) {
    EXPECT_FALSE(trn1.has_instruction(later)) << later;
    EXPECT_TRUE(trn2.has_instruction(later)) << later;
  }
  for (const char* latest : {"nc_matmul_mx", "quantize_mx", "exponential", "activate2", "rand2"}) {
    EXPECT_FALSE(trn1.has_instruction(latest)) << latest;
    EXPECT_FALSE(trn2.has_instruction(latest)) << latest;
    EXPECT_TRUE(trn3.has_instruction(latest)) << latest;
  }
  EXPECT_FALSE(trn2.has_dtype("float8_e4m3fn"));
  EXPECT_TRUE(trn3.has_dtype("float8_e4m3fn"));
  EXPECT_TRUE(trn2.has_dtype("float8_e4m3"));
  EXPECT_FALSE(chip("trn4").has_dtype("float8_e4m3"));
  EXPECT_FALSE(trn1.features.hardware_dge);
  EXPECT_TRUE(trn2.features.hardware_dge);
  EXPECT_TRUE(trn1.ports.vector_gpsimd_exclusive_sbuf);
  EXPECT_FALSE(trn2.ports.vector_gpsimd_exclusive_sbuf);
  EXPECT_EQ(trn2.limits.moving_free, 512);
  EXPECT_EQ(trn3.limits.moving_free, 4096);
  EXPECT_TRUE(trn1.features.dma_transpose);
  EXPECT_FALSE(chip("inf2").features.dma_transpose);
}

// Cost lines of the nki.isa docstrings.
TEST(Chips, InstructionCosts) {
  const Chip trn1 = chip("trn1"), trn2 = chip("trn2");
  const InstructionCost* add = trn1.instruction_cost("tensor_tensor");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->formula, Formula::kElements);
  EXPECT_DOUBLE_EQ(add->rate(0), 2);
  EXPECT_DOUBLE_EQ(add->rate(bit(FastCase::kPsumInput)), 1);
  EXPECT_DOUBLE_EQ(add->rate(bit(FastCase::kSixteenBitSbuf)), 2) << "a mode of Trainium2";
  EXPECT_DOUBLE_EQ(trn2.instruction_cost("tensor_tensor")->rate(bit(FastCase::kSixteenBitSbuf)), 1);
  EXPECT_DOUBLE_EQ(trn1.instruction_cost("reciprocal")->per_element, 8);
  EXPECT_DOUBLE_EQ(trn1.instruction_cost("bn_aggr")->per_element, 13.0 / 3.0);
  EXPECT_EQ(trn1.instruction_cost("iota")->formula, Formula::kStartElements);
  EXPECT_DOUBLE_EQ(trn1.gpsimd.start, 150);
  EXPECT_TRUE(trn1.instruction_cost("tensor_copy")->wide);
  EXPECT_DOUBLE_EQ(trn1.vector.wide_contiguous, 1);
  EXPECT_DOUBLE_EQ(trn2.vector.wide_contiguous, 4);
  EXPECT_DOUBLE_EQ(trn2.vector.wide, 2);
  EXPECT_EQ(trn1.instruction_cost("no_such_instruction"), nullptr);
}

// No instruction that a chip has lacks a cost: whatever a later file lists as absent, an earlier or later one prices.
TEST(Chips, EveryInstructionHasACost) {
  const Chip trn1 = chip("trn1"), trn3 = chip("trn3");
  for (const std::string& later : trn1.absent_instructions) EXPECT_NE(trn3.instruction_cost(later), nullptr) << later;
}

// An instruction without an entry can be timed all the same, by a number that is known to be a guess.
TEST(Chips, EveryEngineHasADefaultCost) {
  for (const ChipHeader& header : headers()) {
    const Chip c = chip(header.name);
    for (const char* engine : {"tensor", "vector", "scalar", "gpsimd", "sync", "dma"})
      EXPECT_NE(c.cost_or_default("no_such_instruction", engine), nullptr) << header.name << ": " << engine;
    EXPECT_EQ(c.cost_or_default("reciprocal", "vector"), c.instruction_cost("reciprocal"));
    EXPECT_EQ(c.cost_or_default("no_such_instruction", "no_such_engine"), nullptr);
    const Number* guess = c.number("instruction_default.vector.per_element");
    ASSERT_NE(guess, nullptr);
    EXPECT_EQ(guess->value, 1);
    EXPECT_EQ(guess->trust, Trust::kAssumed);
  }
}

// What the model decides and no document says is in the file too, so that a prediction can list it.
TEST(Chips, SchedulingIsAnAssumption) {
  const Chip trn2 = chip("trn2");
  for (const char* key : {"scheduling.psum_memset_on_gpsimd", "scheduling.separate_store_queue"}) {
    ASSERT_NE(trn2.number(key), nullptr) << key;
    EXPECT_EQ(trn2.number(key)->trust, Trust::kAssumed);
    EXPECT_EQ(trn2.number(key)->text(), "true");
  }
}

// No number may come from a row that scores the model: 609 ns is the published time of one over its loads.
TEST(Chips, SoftwareDescriptorsCostWhatHardwareOnesAreDocumentedTo) {
  for (const char* name : {"trn1", "trn2", "trn3"}) {
    EXPECT_EQ(chip(name).dma.issue_software, 600) << name;
    EXPECT_EQ(chip(name).dma.issue_software.trust, Trust::kAssumed) << name;
  }
}

TEST(Chips, AnnouncedChipMakesNoDocumentedClaims) {
  const Chip trn4 = chip("trn4");
  for (const Number* number : trn4.numbers()) EXPECT_GE(number->trust, Trust::kClaimed) << number->key;
  EXPECT_DOUBLE_EQ(trn4.hbm.bandwidth, 4 * chip("trn3").hbm.bandwidth);
  EXPECT_EQ(trn4.hbm.bandwidth.trust, Trust::kClaimed);
}

TEST(Chips, NumbersAreFoundByKey) {
  const Chip trn2 = chip("trn2");
  ASSERT_NE(trn2.number("dma.start"), nullptr);
  EXPECT_EQ(trn2.number("dma.start")->value, 739);
  EXPECT_FALSE(trn2.number("dma.start")->is_uncertain());
  EXPECT_TRUE(trn2.number("dma.descriptor")->is_uncertain());
  EXPECT_NE(trn2.number("instruction.reciprocal.per_element"), nullptr);
  EXPECT_EQ(trn2.number("engine.tensor.mx_rows"), nullptr) << "this chip has none";
  EXPECT_EQ(trn2.number("dma.start")->text(), "739 ns");
}

TEST(Catalog, EnvironmentComesFirstAndPathsWork) {
  setenv("STERNA_HARDWARE", "/no/such/one::/nor/this", 1);
  const auto directories = hardware_directories();
  unsetenv("STERNA_HARDWARE");
  ASSERT_EQ(directories.size(), 3u);
  EXPECT_EQ(directories[0], "/no/such/one");
  EXPECT_EQ(directories[1], "/nor/this");
  EXPECT_EQ(directories[2], "hardware");
  EXPECT_EQ(chip("hardware/chips/trn2.toml").name, "trn2");
}

TEST(Catalog, SaysWhatThereIs) {
  auto missing = find_chip("trn9");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("trn2"), std::string::npos);
  EXPECT_FALSE(find_chip(""));
  set_hardware_directories({"/no/such/folder"});
  auto nowhere = find_chip("trn2");
  set_hardware_directories({"hardware"});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("STERNA_HARDWARE"), std::string::npos);
}

// The printer starts a heading whenever the section changes.
TEST(Schema, KeysAreUniqueAndGroupedBySection) {
  Chip c;
  std::set<std::string> keys, closed;
  std::string section;
  visit_numbers(c, [&](std::string_view key, Number&, const KeySpec&, std::string_view) {
    EXPECT_TRUE(keys.emplace(key).second) << key;
    const std::string here(key.substr(0, key.rfind('.')));
    if (here == section) return;
    EXPECT_TRUE(closed.insert(here).second) << "section " << here << " is split";
    section = here;
  });
  EXPECT_GT(keys.size(), 100u);
}

}  // namespace
}  // namespace sterna
