// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace sterna {
namespace {

TEST(Text, CatJoinsAnything) {
  EXPECT_EQ(cat("n=", 3, ' ', std::string("x"), ' ', true, false, ' ', 0.5, ' ', uint64_t{1} << 63, ' ', -2),
            "n=3 x truefalse 0.5 9223372036854775808 -2");
  EXPECT_EQ(cat(), "");
}

TEST(Text, Shapes) {
  EXPECT_EQ(shape_text(std::vector<int>{128, 512}), "[128, 512]");
  EXPECT_EQ(shape_text(std::vector<int64_t>{7}), "[7]");
  EXPECT_EQ(shape_text(std::vector<int>{}), "[]");
}

TEST(Text, NumbersAreTheShortestThatReadBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1f), "0.1");  // as a double it would be 0.10000000149011612
  EXPECT_EQ(number_text(-0.0), "-0");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(number_text(-std::nan("")), "nan");
  for (const double v : {1.0 / 3, 0x1p-1074, 1.7976931348623157e308, 123456789.125})
    EXPECT_EQ(std::strtod(number_text(v).c_str(), nullptr), v);
  for (const float v : {1.0f / 3, 0x1p-149f, 0x1.fffffep127f})
    EXPECT_EQ(std::strtof(number_text(v).c_str(), nullptr), v);
}

}  // namespace
}  // namespace sterna
