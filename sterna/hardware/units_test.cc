// SPDX-License-Identifier: Apache-2.0
#include "sterna/hardware/units.h"

#include <gtest/gtest.h>

namespace sterna {
namespace {

void expect_unit(std::string_view text, const Dimension& dimension, double scale) {
  auto unit = parse_unit(text);
  ASSERT_TRUE(unit) << text << ": " << unit.error().text();
  EXPECT_EQ(unit->dimension, dimension) << text;
  EXPECT_DOUBLE_EQ(unit->scale, scale) << text;
}

TEST(Units, ScaleToTheBaseUnits) {
  expect_unit("ns", dimension::kTime, 1);
  expect_unit("us", dimension::kTime, 1000);
  expect_unit("KiB", dimension::kBytes, 1024);
  expect_unit("GiB", dimension::kBytes, 1073741824);
  expect_unit("GHz", dimension::kFrequency, 1);
  expect_unit("MHz", dimension::kFrequency, 0.001);
  expect_unit("%", dimension::kRatio, 0.01);
  expect_unit("1", dimension::kRatio, 1);
  expect_unit("lanes", dimension::kLanes, 1);
}

TEST(Units, CompoundsAgreeWithEachOther) {
  expect_unit("B/ns", dimension::kByteRate, 1);
  expect_unit("GB/s", dimension::kByteRate, 1);
  expect_unit("TB/s", dimension::kByteRate, 1000);
  expect_unit("GiB/s", dimension::kByteRate, 1.073741824);
  expect_unit("cycles/element", dimension::kCyclesPerElement, 1);
  expect_unit("cycles/ns", dimension::kFrequency, 1);
  expect_unit("B*GHz/cycle", dimension::kByteRate, 1);
}

TEST(Units, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "gb", "B/", "/ns", "ns ", "B//ns", "mm"}) {
    auto unit = parse_unit(text);
    EXPECT_FALSE(unit) << text;
  }
}

TEST(Units, DifferentThingsAreDifferentDimensions) {
  EXPECT_NE(dimension::kCount, dimension::kRatio);
  EXPECT_NE(dimension::kLanes, dimension::kCount);
  EXPECT_NE(dimension::kFrequency, dimension::kCycles);
}

}  // namespace
}  // namespace sterna
