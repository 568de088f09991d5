// SPDX-License-Identifier: Apache-2.0
#include "sterna/base/result.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sterna {
namespace {

TEST(Fault, TextNamesKindRuleAndPlace) {
  Fault fault(FaultKind::kRuleBroken, "TT1", "Shapes differ.");
  EXPECT_EQ(fault.text(), "[rule broken, rule TT1] Shapes differ.");
  fault.where = {"kernel.py", 12, 0, "f"};
  EXPECT_EQ(fault.text(), "[rule broken, rule TT1] Shapes differ. (kernel.py:12)");
  fault.where.column = 5;
  EXPECT_EQ(fault.text(), "[rule broken, rule TT1] Shapes differ. (kernel.py:12:5)");
  EXPECT_EQ(Fault(FaultKind::kBadInput, "", "No such file.").text(), "[bad input] No such file.");
}

// The Python layer and the golden files tell faults apart by these words.
TEST(Fault, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(FaultKind::kBug); ++i) names.insert(name(static_cast<FaultKind>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(FaultKind::kBug) + 1);
  EXPECT_EQ(names.count("fault"), 0u) << "the name of a kind that does not exist";
  EXPECT_EQ(name(FaultKind::kUnknownBehaviour), "unknown behaviour");
  EXPECT_EQ(name(static_cast<FaultKind>(200)), "fault");
}

Result<int> half(int x) {
  if (x % 2 != 0) return Fault(FaultKind::kBadInput, "ODD", "x is odd.");
  return x / 2;
}
Result<int> quarter(int x) {
  STERNA_ASSIGN(const int h, half(x));
  return half(h);
}
Status even_quarter(int x) {
  STERNA_TRY(quarter(x));
  return {};
}

TEST(Result, CarriesAValueOrAFaultUpwards) {
  ASSERT_TRUE(quarter(12));
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(7).error().rule, "ODD");
  EXPECT_EQ(quarter(6).error().rule, "ODD");
  EXPECT_TRUE(even_quarter(4));
  EXPECT_EQ(even_quarter(6).error().kind, FaultKind::kBadInput);
}

}  // namespace
}  // namespace sterna
