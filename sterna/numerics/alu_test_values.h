// SPDX-License-Identifier: Apache-2.0
// Values and comparisons shared by the tests of the block functions.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sterna/numerics/dispatch.h"

namespace sterna::testing {

inline float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

inline constexpr uint32_t kNaNBits = 0x7fc00000u;

/// Both zeros, infinities, quiet and signalling NaN of both signs, denormals, the ends of the normal range, ties for
/// rounding.
inline constexpr std::array<uint32_t, 26> kSpecialBits{
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffbfffff, 0x7fffffff,
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f800000,
    0xbf800000, 0x3f000000, 0xbf000000, 0x40400000, 0x4b000001, 0xcb7fffff, 0x3effffff, 0xc0200000};

/// A stream of test values: `special` out of 16 are special, the rest random bits or ordinary numbers.
class Values {
 public:
  explicit Values(uint32_t seed, uint32_t special = 5) : random_(seed), special_(special) {}

  float next() {
    const auto kind = static_cast<uint32_t>(random_() % 16);
    if (kind < special_) return from_bits(kSpecialBits[random_() % kSpecialBits.size()]);
    if (kind < special_ + 3 && special_ > 0) return from_bits(static_cast<uint32_t>(random_()));
    return static_cast<float>(static_cast<int32_t>(random_())) * 0x1p-28f;
  }

  std::vector<float> take(ptrdiff_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) value = next();
    return out;
  }

 private:
  std::mt19937 random_;
  uint32_t special_;
};

/// Runs `body` on every target of this processor, then restores the choice.
template <class Body>
void on_every_target(const Body& body) {
  const SimdTarget before = simd_target();
  for (const SimdTarget target : simd_targets()) {
    ASSERT_TRUE(static_cast<bool>(set_simd_target(target)));
    SCOPED_TRACE(std::string(name(target)));
    body();
    if (::testing::Test::HasFatalFailure()) break;
  }
  ASSERT_TRUE(static_cast<bool>(set_simd_target(before)));
}

/// Fails at the first element whose bits differ.
inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(bits_of(got[i]), bits_of(want[i])) << what << " at " << i << ": " << got[i] << ", expected " << want[i];
}

}  // namespace sterna::testing
