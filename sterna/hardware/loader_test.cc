// SPDX-License-Identifier: Apache-2.0
// The checks of the loader: every refusal names the place and says what to do.
#include "sterna/hardware/loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sterna {
namespace {

// A chip that inherits everything and states what a test adds. Line 1 to 4 are the header; the addition starts at 5.
std::string child(const std::string& addition, const std::string& sources = "x = \"a test\"") {
  return "name = \"mine\"\ntitle = \"Mine\"\ninherits = \"trn1\"\n\n" + addition + "\n[sources]\n" + sources + "\n";
}

Result<Chip> read(const std::string& text) { return load_chip_text(text, "mine.toml", {"hardware"}); }

// Expects a refusal at a line (and column, unless 0) whose message has all the pieces.
void expect_refused(const std::string& text, int line, int column, const std::vector<std::string>& pieces) {
  auto chip = read(text);
  ASSERT_FALSE(chip) << text;
  const Fault& fault = chip.error();
  EXPECT_EQ(fault.kind, FaultKind::kBadInput);
  EXPECT_EQ(fault.where.file, "mine.toml") << fault.text();
  EXPECT_EQ(fault.where.line, line) << fault.text();
  if (column > 0) {
    EXPECT_EQ(fault.where.column, column) << fault.text();
  }
  for (const std::string& piece : pieces)
    EXPECT_NE(fault.message.find(piece), std::string::npos) << "no \"" << piece << "\" in: " << fault.text();
}

constexpr char kGood[] = "[dma]\nrate = { value = 1.5, unit = \"GB/s\", source = \"x\", trust = \"measured\" }\n";

TEST(Loader, ReadsANumberWithItsOrigin) {
  auto chip = read(child(kGood));
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_DOUBLE_EQ(chip->dma.rate, 1.5);
  EXPECT_EQ(chip->dma.rate.unit, "GB/s");
  EXPECT_EQ(chip->dma.rate.trust, Trust::kMeasured);
  EXPECT_EQ(chip->dma.rate.source_id, "x");
  EXPECT_EQ(chip->dma.rate.source, "a test");
  EXPECT_EQ(chip->dma.rate.chip, "mine");
  EXPECT_EQ(chip->dma.rate.place.line, 6);
  EXPECT_EQ(chip->dma.rate.key, "dma.rate");
}

TEST(Loader, InheritsWhatIsNotStated) {
  auto chip = read(child(kGood));
  auto parent = load_chip("hardware/chips/trn1.toml");
  ASSERT_TRUE(chip && parent);
  EXPECT_EQ(chip->tensor.clock.value, parent->tensor.clock.value);
  EXPECT_EQ(chip->tensor.clock.chip, "trn1");
  EXPECT_EQ(chip->tensor.clock.trust, Trust::kDocumented);
  EXPECT_EQ(chip->numbers().size(), parent->numbers().size());
  EXPECT_EQ(chip->name, "mine");
  EXPECT_TRUE(chip->aliases.empty()) << "aliases belong to one chip";
}

TEST(Loader, InheritedTrustLowersButNeverRaises) {
  auto chip = read("name = \"mine\"\ntitle = \"Mine\"\ninherits = \"trn1\"\ninherited_trust = \"estimated\"\n" +
                   std::string(kGood) + "[sources]\nx = \"a test\"\n");
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_EQ(chip->dma.rate.trust, Trust::kMeasured);
  EXPECT_EQ(chip->tensor.clock.trust, Trust::kEstimated);
  EXPECT_EQ(chip->semaphore.latency.trust, Trust::kAssumed);
}

TEST(Loader, DefaultCostsAreReadByEngine) {
  auto chip =
      read(child("[instruction_default.vector]\nformula = \"elements\"\n"
                 "per_element = { value = 3, unit = \"cycles/element\", source = \"x\", trust = \"assumed\" }"));
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_EQ(chip->cost_or_default("new", "vector")->per_element, 3);
  EXPECT_EQ(chip->cost_or_default("new", "vector")->per_element.key, "instruction_default.vector.per_element");
  EXPECT_EQ(chip->cost_or_default("new", "gpsimd")->per_element, 1) << "the parent's";
  expect_refused(child("[instruction_default.vector]\nper_elemnt = 1\n"), 6, 0,
                 {"instruction_default.vector.per_elemnt"});
}

TEST(Loader, UnitsScale) {
  auto chip =
      read(child("[dma]\nstart = { value = 2, unit = \"us\", source = \"x\", trust = \"assumed\" }\n"
                 "[hbm]\nbytes = { value = 3, unit = \"GiB\", source = \"x\", trust = \"assumed\" }\n"
                 "[engine.vector]\nclock = { value = 500, unit = \"MHz\", source = \"x\", trust = \"assumed\" }"));
  ASSERT_TRUE(chip) << chip.error().text();
  EXPECT_DOUBLE_EQ(chip->dma.start, 2000);
  EXPECT_EQ(chip->hbm.bytes, int64_t{3} << 30);
  EXPECT_DOUBLE_EQ(chip->vector.clock, 0.5);
}

TEST(Loader, RefusesMorePartitionsThanThereAreBuffersFor) {
  const auto partitions = [](const char* section, int n) {
    return child("[" + std::string(section) + "]\npartitions = { value = " + std::to_string(n) +
                 ", unit = \"count\", source = \"x\", trust = \"assumed\" }");
  };
  for (const char* section : {"sbuf", "limits"}) {
    EXPECT_TRUE(read(partitions(section, kMaxPartitions)));
    expect_refused(partitions(section, kMaxPartitions + 1), 6, 0,
                   {std::string(section) + ".partitions", "at most 512"});
  }
}

TEST(Loader, RefusesUnknownKeys) {
  expect_refused(child("[dma]\nrat = { value = 1, unit = \"B/ns\", source = \"x\", trust = \"assumed\" }"), 6, 1,
                 {"dma.rat", "did you mean \"dma.rate\""});
  expect_refused(child("[dna]\nx = 1"), 5, 0, {"\"dna\""});
  expect_refused(child("[engine.tensors]\nx = 1"), 5, 0, {"engine.tensors"});
  expect_refused(child("colour = \"red\""), 5, 1, {"colour"});
  expect_refused(child("[instruction.iota]\nper_elem = 1"), 6, 1, {"did you mean \"per_element\""});
}

TEST(Loader, RefusesNumbersWithoutOrigin) {
  expect_refused(child("[dma]\nrate = 5"), 6, 8, {"dma.rate", "bare number", "source"});
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"B/ns\", source = \"x\" }"), 6, 8, {"no trust"});
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"B/ns\", trust = \"assumed\" }"), 6, 8, {"no source"});
  expect_refused(child("[dma]\nrate = { unit = \"B/ns\", source = \"x\", trust = \"assumed\" }"), 6, 8, {"no value"});
  expect_refused(child("[dma]\nrate = { value = 1, source = \"x\", trust = \"assumed\" }"), 6, 8,
                 {"\"unit\" is missing"});
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"B/ns\", source = \"y\", trust = \"assumed\" }"), 6, 0,
                 {"\"y\"", "[sources]"});
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"B/ns\", source = \"x\", trust = \"sure\" }"), 6, 0,
                 {"\"sure\"", "documented"});
  expect_refused(
      child("[dma]\nrate = { value = 1, unit = \"B/ns\", source = \"x\", trust = \"assumed\", note = \"\" }"), 6, 0,
      {"unknown part \"note\""});
}

TEST(Loader, RefusesWrongUnitsTypesAndRanges) {
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"GHz\", source = \"x\", trust = \"assumed\" }"), 6, 28,
                 {"GHz", "data rate"});
  expect_refused(child("[dma]\nrate = { value = 1, unit = \"B/fortnight\", source = \"x\", trust = \"assumed\" }"), 6,
                 28, {"fortnight"});
  expect_refused(child("[dma]\nrate = { value = \"1\", unit = \"B/ns\", source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"not a number"});
  expect_refused(child("[dma]\nrate = { value = 0, unit = \"B/ns\", source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"above zero"});
  expect_refused(child("[dma]\nstart = { value = -1, unit = \"ns\", source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"above zero"});
  expect_refused(child("[dma]\nrate = { value = inf, unit = \"B/ns\", source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"finite"});
  expect_refused(child("[dma]\nengines = { value = 1.5, unit = \"count\", source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"whole things"});
  expect_refused(child("[features]\nxorwow = { value = 1, source = \"x\", trust = \"assumed\" }"), 6, 0,
                 {"true or false"});
  expect_refused(child("[features]\nxorwow = true"), 6, 10, {"bare true or false"});
  expect_refused(child("dma = 5"), 5, 7, {"[dma]"});
}

TEST(Loader, RefusesAMissingKeyOfARoot) {
  expect_refused("name = \"mine\"\ntitle = \"Mine\"\n[chip]\n", 3, 0, {"chip.generation", "missing"});
  expect_refused("name = \"mine\"\n", 1, 0, {"\"title\" is missing"});
  expect_refused("title = \"Mine\"\n", 1, 0, {"\"name\" is missing"});
}

TEST(Loader, RefusesBadHeaders) {
  expect_refused("name = \"other\"\ntitle = \"Mine\"\n", 1, 8, {"\"other\"", "\"mine.toml\""});
  expect_refused("name = \"mine\"\ntitle = 5\n", 2, 9, {"bare number"});
  expect_refused("name = \"mine\"\ntitle = \"Mine\"\ninherits = \"nobody\"\n", 3, 12, {"nobody", "hardware/chips"});
  expect_refused("name = \"mine\"\ntitle = \"Mine\"\ninherits = \"mine\"\n", 3, 12, {"circle", "mine -> mine"});
  expect_refused("name = \"mine\"\ntitle = \"Mine\ninherits = 1\n", 2, 0, {"not valid TOML"});
  expect_refused(child("", "x = 1"), 7, 5, {"\"x\"", "string"});
  expect_refused(child("", "arch-v2 = \"something else\""), 7, 0, {"arch-v2", "already means"});
}

TEST(Loader, RefusesALongerCircle) {
  const auto folder = std::filesystem::temp_directory_path() / "sterna_loader_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.toml") << "name = \"a\"\ntitle = \"A\"\ninherits = \"b\"\n";
  std::ofstream(folder / "b.toml") << "name = \"b\"\ntitle = \"B\"\ninherits = \"a\"\n";
  auto chip = load_chip((folder / "a.toml").string());
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(chip);
  EXPECT_NE(chip.error().message.find("a -> b -> a"), std::string::npos) << chip.error().text();
  EXPECT_EQ(chip.error().where.line, 3);
}

TEST(Loader, RefusesAMissingFile) {
  auto chip = load_chip("no/such/file.toml");
  ASSERT_FALSE(chip);
  EXPECT_NE(chip.error().message.find("no/such/file.toml"), std::string::npos);
  EXPECT_FALSE(load_chip("hardware/chips"));
}

TEST(Loader, ChecksInstructions) {
  const std::string origin = ", unit = \"cycles/element\", source = \"x\", trust = \"assumed\" }\n";
  auto chip = read(child("[instruction.new_one]\nformula = \"elements\"\nper_element = { value = 3" + origin +
                         "[instruction.reciprocal]\nper_element = { value = 4" + origin));
  ASSERT_TRUE(chip) << chip.error().text();
  ASSERT_NE(chip->instruction_cost("new_one"), nullptr);
  EXPECT_DOUBLE_EQ(chip->instruction_cost("new_one")->per_element, 3);
  EXPECT_EQ(chip->instruction_cost("reciprocal")->formula, Formula::kElements) << "the formula is inherited";
  EXPECT_DOUBLE_EQ(chip->instruction_cost("reciprocal")->per_element, 4);
  EXPECT_EQ(chip->instruction_cost("reciprocal")->per_element.key, "instruction.reciprocal.per_element");

  expect_refused(child("[instruction.n]\nformula = \"x + y\""), 6, 11, {"x + y", "start_elements"});
  expect_refused(child("[instruction.n]\nwide = true"), 5, 0, {"\"formula\" is missing"});
  expect_refused(child("[instruction.n]\nformula = \"elements\""), 5, 0, {"needs \"per_element\""});
  expect_refused(child("[instruction.n]\nformula = \"dma\"\nper_element = { value = 3" + origin), 5, 0,
                 {"does not use \"per_element\""});
  expect_refused(
      child("[instruction.n]\nformula = \"elements\"\nfast_when = [\"psum_input\"]\nper_element = { value = 3" +
            origin),
      5, 0, {"needs \"fast_per_element\""});
  expect_refused(child("[instruction.n]\nformula = \"elements\"\nfast_when = [\"sunny\"]"), 7, 0,
                 {"sunny", "psum_input"});
  expect_refused(child("[instruction]\nn = 3"), 6, 5, {"[instruction.n]"});
  expect_refused(child("[instructions]\npresent = []"), 5, 0, {"absent"});
  expect_refused(child("[dtypes]\nabsent = [1]"), 6, 0, {"list of strings"});
}

}  // namespace
}  // namespace sterna
