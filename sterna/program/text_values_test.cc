// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/text_values.h"

#include <gtest/gtest.h>

namespace sterna {
namespace {

std::vector<uint32_t> bits(std::string_view text, DType type, int64_t count) {
  const auto values = parse_values(text, type, count, "t.sterna", 1);
  EXPECT_TRUE(values) << values.error().text();
  std::vector<uint32_t> out;
  if (values)
    for (const TextValue& v : *values) out.push_back(v.bits);
  return out;
}

TEST(TextValues, NumbersOfEachKind) {
  EXPECT_EQ(bits("1 -0 inf nan 0x7f800001", DType::kFloat32, 5),
            (std::vector<uint32_t>{0x3f800000, 0x80000000, 0x7f800000, 0x7fc00000, 0x7f800001}));
  EXPECT_EQ(bits("1.00390625", DType::kBFloat16, 1), (std::vector<uint32_t>{0x3f80})) << "a tie goes to even";
  EXPECT_EQ(bits("-1 127", DType::kInt8, 2), (std::vector<uint32_t>{0xff, 0x7f}));
  EXPECT_EQ(bits("4294967295", DType::kUInt32, 1), (std::vector<uint32_t>{0xffffffff}));
  EXPECT_EQ(bits("1 0", DType::kBool, 2), (std::vector<uint32_t>{1, 0}));
}

TEST(TextValues, RepeatsRangesAndComments) {
  EXPECT_EQ(bits("7*3 # seven\n-1..1", DType::kInt32, 6), (std::vector<uint32_t>{7, 7, 7, 0xffffffff, 0, 1}));
  const auto values = parse_values("1\n?*2\n~3", DType::kFloat32, 4, "t.sterna", 10);
  ASSERT_TRUE(values);
  EXPECT_EQ((*values)[1].line, 11);
  EXPECT_TRUE((*values)[2].undefined);
  EXPECT_TRUE((*values)[3].nearly);
}

TEST(TextValues, WrongOnesAreRefusedWithTheirLine) {
  for (const char* text : {"1 2 3", "1", "1 x", "1 1e99", "1 0x123456789", "1 2*", "1 2*-3", "1 2*99999999999", "1 ..",
                           "1 0..9999999999", "1 ~"}) {
    const auto values = parse_values(text, DType::kFloat32, 2, "t.sterna", 4);
    ASSERT_FALSE(values) << text;
    EXPECT_EQ(values.error().rule, "TEXT5");
    EXPECT_EQ(values.error().where.line, 4);
  }
  EXPECT_FALSE(parse_values("128", DType::kInt8, 1, "t", 1));
  EXPECT_FALSE(parse_values("-1", DType::kUInt8, 1, "t", 1));
  EXPECT_FALSE(parse_values("0x100", DType::kUInt8, 1, "t", 1));
  EXPECT_FALSE(parse_values("1", DType::kFloat8E4M3FNx4, 1, "t", 1)) << "packed elements are given by their bits";
  EXPECT_FALSE(parse_values("~1", DType::kBFloat16, 1, "t", 1));
}

TEST(TextValues, NearlyIsOneUnit) {
  TextValue near;
  near.bits = 0x3f800000;
  near.nearly = true;
  EXPECT_TRUE(meets(near, DType::kFloat32, 0x3f800001, true));
  EXPECT_TRUE(meets(near, DType::kFloat32, 0x3f7fffff, true));
  EXPECT_FALSE(meets(near, DType::kFloat32, 0x3f800002, true));
  EXPECT_FALSE(meets(near, DType::kFloat32, 0x3f800000, false));
  near.bits = 0;
  EXPECT_TRUE(meets(near, DType::kFloat32, 0x80000001, true)) << "the neighbour below zero";
  EXPECT_FALSE(meets(near, DType::kFloat32, 0x7fc00000, true));
}

TEST(TextValues, EveryNarrowElementComesBack) {
  for (DType type : {DType::kBFloat16, DType::kFloat16, DType::kFloat8E4M3, DType::kFloat8E4M3FN, DType::kFloat8E5M2,
                     DType::kFloat8E3M4, DType::kFloat8E8M0, DType::kInt8, DType::kUInt16, DType::kInt16, DType::kBool,
                     DType::kFloat4E2M1})
    for (uint32_t b = 0; b < (size_of(type) == 2 ? 65536u : 256u); ++b) {
      const auto back = parse_values(value_text(type, b), type, 1, "t", 1);
      ASSERT_TRUE(back) << name(type) << ' ' << b;
      ASSERT_EQ((*back)[0].bits, b) << name(type) << ' ' << value_text(type, b);
    }
}

TEST(TextValues, SectionsAreFound) {
  const std::string text = "program\n---- data %x # note\n1 2\n\n----values %y\n3\n";
  const auto sections = text_sections(text);
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[0].kind, "data");
  EXPECT_EQ(sections[0].arguments, "%x");
  EXPECT_EQ(sections[0].line, 2);
  EXPECT_EQ(text.substr(sections[0].begin, sections[0].end - sections[0].begin), "1 2\n\n");
  EXPECT_EQ(sections[1].arguments, "%y");
  EXPECT_EQ(text.substr(sections[1].begin), "3\n");
}

}  // namespace
}  // namespace sterna
