// SPDX-License-Identifier: Apache-2.0
// Searches for the eight largest. Expectations are written from the NKI documentation of each instruction (nki.isa,
// SDK 2.32) in plain loops.
#include <cmath>
#include <limits>

#include "sterna/isa/test_fixture.h"
#include "sterna/isa/vector.h"

namespace sterna::vector_engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

class VectorSearch : public IsaTest {};

// --- max8, nc_find_index8, nc_match_replace8

TEST_F(VectorSearch, Max8OrdersDescending) {
  Values v = {3, -1, 7, 7, 0, 2, 9, -8, 4, 5};
  const View x = with({1, 10}, v), d = make({1, 8});
  EXPECT_RUNS((Max8{d, x}));
  EXPECT_EQ(get(d), (Values{9, 7, 7, 5, 4, 3, 2, 0}));
  const View y = with({1, 8}, {-0.0f, 0, -kInf, kNaN, kInf, 1, -1, -2});
  EXPECT_RUNS((Max8{d, y}));
  EXPECT_EQ(get_bits(d),
            (Words{0x7fc00000, 0x7f800000, 0x3f800000, 0, 0x80000000, 0xbf800000, 0xc0000000, 0xff800000}));
  EXPECT_REFUSED("TOP1", (Max8{d, with({1, 7}, ramp(7))}));
  EXPECT_REFUSED("SHAPE4", (Max8{make({1, 7}), x}));
  EXPECT_REFUSED("UNINIT1", (Max8{d, make({1, 9})}));
}

TEST_F(VectorSearch, FindIndex8AdvancesOverRepeatedValues) {
  const View x = with({1, 10}, {5, 1, 5, 2, 5, 3, 0, 4, 6, 8}), v = with({1, 8}, {5, 8, 5, 5, 5, 77, 0, 1}),
             d = make({1, 8}, kU32);
  EXPECT_RUNS((NcFindIndex8{d, x, v}));
  EXPECT_EQ(get_bits(d), (Words{0, 9, 2, 4, 0xffffffff, 0xffffffff, 6, 1}));
  const View h = make({1, 8}, DType::kUInt16);
  EXPECT_RUNS((NcFindIndex8{h, x, v}));
  EXPECT_EQ(get_bits(h)[4], 0xffffu);
  EXPECT_REFUSED("TOP2", (NcFindIndex8{make({1, 8}), x, v}));
  EXPECT_REFUSED("SHAPE4", (NcFindIndex8{d, x, with({1, 7}, ramp(7))}));
}

TEST_F(VectorSearch, MatchReplace8TakesValuesFromTheLast) {
  const View x = with({1, 10}, {5, 1, 5, 2, 5, 3, 0, 4, 6, 8}), v = with({1, 8}, {5, 8, 9, 5, 77, 2, 2, 1}),
             d = make({1, 10}), at = make({1, 8}, kU32);
  EXPECT_RUNS((NcMatchReplace8{d, x, v, -1, at}));
  EXPECT_EQ(get(d), (Values{-1, -1, -1, -1, 5, 3, 0, 4, 6, -1}));
  constexpr uint32_t none = 0xffffffff;
  EXPECT_EQ(get_bits(at),
            (Words{2, 9, none, 0, none, none, 3, 1}));  // slot 3 of value 5 comes before slot 0, slot 6 of 2 before 5
  EXPECT_RUNS((NcMatchReplace8{x, x, v, 5}));           // in place; a replaced place does not match again
  EXPECT_EQ(get(x), (Values{5, 5, 5, 5, 5, 3, 0, 4, 6, 5}));
  EXPECT_REFUSED("TOP2", (NcMatchReplace8{d, x, v, 0, make({1, 8})}));
  EXPECT_REFUSED("SHAPE4", (NcMatchReplace8{make({1, 9}), x, v, 0}));
}

}  // namespace
}  // namespace sterna::vector_engine
