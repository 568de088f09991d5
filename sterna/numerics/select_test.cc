// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/select.h"

#include <gtest/gtest.h>

#include <vector>

#include "sterna/numerics/dispatch.h"

namespace sterna {
namespace {

TEST(SelectRow, ChoosesWordByWordOnEveryTarget) {
  const SimdTarget before = simd_target();
  for (SimdTarget target : simd_targets()) {
    ASSERT_TRUE(set_simd_target(target));
    for (ptrdiff_t n : {0, 1, 7, 16, 33, 100})
      for (int form = 0; form < 4; ++form) {
        const bool invert = form & 1, one = form & 2;
        std::vector<uint32_t> where(static_cast<size_t>(n) + 1), yes(where.size()), no(where.size()),
            out(where.size(), 5), want = out;
        for (size_t i = 0; i < where.size(); ++i) {
          where[i] = i % 3 == 0 ? 0 : 0x80000000u >> (i % 32);
          yes[i] = 0x7f800001u + static_cast<uint32_t>(i);
          no[i] = 1000u + static_cast<uint32_t>(i);
        }
        for (size_t i = 0; i < static_cast<size_t>(n); ++i)
          want[i] = (where[i] != 0) != invert ? yes[i] : no[one ? 0 : i];
        select_row(where.data(), yes.data(), no.data(), one ? 0 : 1, invert, out.data(), n);
        EXPECT_EQ(out, want) << name(target) << " " << n << " " << form;
        if (one) continue;
        std::vector<uint32_t> in_place = no;
        select_row(where.data(), yes.data(), in_place.data(), 1, invert, in_place.data(), n);
        want.back() = no.back();
        EXPECT_EQ(in_place, want);
      }
  }
  ASSERT_TRUE(set_simd_target(before));
}

}  // namespace
}  // namespace sterna
