// SPDX-License-Identifier: Apache-2.0
// The scalar definitions against the oracle. tests/test_numerics_oracle.py compares with ml_dtypes and NumPy as well.
#include "sterna/numerics/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sterna/numerics/convert_test_oracle.h"

namespace sterna {
namespace {

using namespace convert_oracle;

TEST(Convert, DecodesEveryPattern) {
  for (const DType t : kSmallFloats) {
    const Oracle oracle(t);
    const Specials s = specials(t);
    for (uint32_t bits = 0; bits < 2 * sign_bit(t); ++bits) {
      const uint32_t magnitude = bits & (sign_bit(t) - 1);
      const bool negative = (bits & sign_bit(t)) != 0;
      float want = float_of(kNanBits);
      if (magnitude < oracle.values.size())
        want = static_cast<float>(oracle.values[magnitude]);
      else if (magnitude == s.infinity)
        want = kInfinity;
      if (negative && !std::isnan(want)) want = -want;
      ASSERT_EQ(bits_of(to_float_bits(t, bits)), bits_of(want)) << name(t) << " " << bits;
    }
  }
  EXPECT_EQ(to_float_bits(DType::kFloat4E2M1, 0xf3), 1.5f) << "the high bits of the byte are ignored";
}

TEST(Convert, EncodesEveryBoundary) {
  for (const DType t : kSmallFloats) {
    const Oracle oracle(t);
    for (const float v : boundaries(oracle))
      ASSERT_EQ(from_float_bits(t, v), expected_bits(t, oracle, v))
          << name(t) << " " << v << " " << std::hex << bits_of(v);
  }
}

TEST(Convert, EncodesWhatItDecodes) {
  for (const DType t : kSmallFloats) {
    const Specials s = specials(t);
    for (uint32_t bits = 0; bits < 2 * sign_bit(t); ++bits) {
      const float v = to_float_bits(t, bits);
      ASSERT_EQ(from_float_bits(t, v), std::isnan(v) ? s.nan : bits) << name(t);
    }
  }
}

TEST(Convert, Float32IsTheIdentity) {
  for (const uint32_t bits : {0u, 0x80000000u, 1u, 0x3f800000u, 0x7f800000u, 0xff800000u, 0x7fc00001u, 0xffc12345u}) {
    EXPECT_EQ(from_float_bits(DType::kFloat32, float_of(bits)), bits);
    EXPECT_EQ(bits_of(to_float_bits(DType::kFloat32, bits)), bits);
  }
}

TEST(Convert, TFloat32KeepsTenBits) {
  const auto encode = [](uint32_t bits) { return from_float_bits(DType::kTFloat32, float_of(bits)); };
  EXPECT_EQ(encode(0x3f801000), 0x3f800000u) << "tie to even, down";
  EXPECT_EQ(encode(0x3f803000), 0x3f804000u) << "tie to even, up";
  EXPECT_EQ(encode(0x3f801001), 0x3f802000u);
  EXPECT_EQ(encode(0xbf800fff), 0xbf800000u);
  EXPECT_EQ(encode(0x3fffffff), 0x40000000u) << "carry into the exponent";
  EXPECT_EQ(encode(0x7f7fffff), 0x7f800000u) << "overflow";
  EXPECT_EQ(encode(0xff800000), 0xff800000u);
  EXPECT_EQ(encode(0xff800001), kNanBits);
  EXPECT_EQ(encode(0x00001001), 0x00002000u) << "subnormal";
  EXPECT_EQ(bits_of(to_float_bits(DType::kTFloat32, 0x3f803fff)), 0x3f802000u)
      << "the low 13 bits are no part of the format";
  EXPECT_EQ(bits_of(to_float_bits(DType::kTFloat32, 0xff800001)), kNanBits);
}

TEST(Convert, E8M0IsAPowerOfTwo) {
  for (uint32_t bits = 0; bits < 255; ++bits)
    ASSERT_EQ(to_float_bits(DType::kFloat8E8M0, bits), std::ldexp(1.0f, static_cast<int>(bits) - 127));
  EXPECT_EQ(bits_of(to_float_bits(DType::kFloat8E8M0, 255)), kNanBits);

  const auto encode = [](float v) { return from_float_bits(DType::kFloat8E8M0, v); };
  for (uint32_t bits = 0; bits < 255; ++bits) {
    const float power = std::ldexp(1.0f, static_cast<int>(bits) - 127);
    ASSERT_EQ(encode(power), bits);
    const float tie = 1.5f * power;
    ASSERT_EQ(encode(tie), bits + 1);  // beyond 2^127 this is 255, NaN
    ASSERT_EQ(encode(std::nextafter(tie, 0.0f)), bits);
  }
  EXPECT_EQ(encode(std::ldexp(1.0f, -127)), 0u);
  EXPECT_EQ(encode(float_of(1)), 0u);
  for (const float v : {0.0f, -0.0f, -1.0f, kInfinity, -kInfinity, float_of(kNanBits), float_of(0x7fffffff)})
    EXPECT_EQ(encode(v), 255u) << v;
}

TEST(Convert, IntegersRoundToEvenAndSaturate) {
  struct Case {
    DType type;
    double low, high;
  };
  for (const auto& [t, low, high] :
       {Case{DType::kInt8, -128, 127}, Case{DType::kUInt8, 0, 255}, Case{DType::kInt16, -32768, 32767},
        Case{DType::kUInt16, 0, 65535}, Case{DType::kInt32, -2147483648.0, 2147483647.0},
        Case{DType::kUInt32, 0, 4294967295.0}}) {
    const uint32_t mask = size_of(t) == 4 ? ~0u : (1u << 8 * size_of(t)) - 1;
    std::vector<float> inputs = {0.5f,  1.5f,   2.5f,      0.49999997f, -0.5f, -1.5f, -2.5f,
                                 3e38f, -3e38f, kInfinity, -kInfinity,  -0.0f, 1e-40f};
    for (const double edge : {low, high, low / 2, high / 2})
      for (const double off : {-1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5}) {
        const float v = static_cast<float>(edge + off);
        inputs.insert(inputs.end(), {v, std::nextafter(v, kInfinity), std::nextafter(v, -kInfinity)});
      }
    for (const float v : inputs) {
      const double whole = std::floor(v), rest = v - whole;
      double want = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0) ? whole + 1 : whole;
      want = std::min(std::max(want, low), high);
      EXPECT_EQ(from_float_bits(t, v), static_cast<uint32_t>(static_cast<int64_t>(want)) & mask) << name(t) << " " << v;
    }
    EXPECT_EQ(from_float_bits(t, float_of(kNanBits)), 0u);
    EXPECT_EQ(from_float_bits(t, float_of(0xffc00000)), 0u);
  }
  EXPECT_EQ(to_float_bits(DType::kInt8, 0x80), -128.0f);
  EXPECT_EQ(to_float_bits(DType::kUInt8, 0x80), 128.0f);
  EXPECT_EQ(to_float_bits(DType::kInt16, 0xffff), -1.0f);
  EXPECT_EQ(to_float_bits(DType::kUInt16, 0xffff), 65535.0f);
  EXPECT_EQ(to_float_bits(DType::kInt32, 0x80000000), -2147483648.0f);
  EXPECT_EQ(to_float_bits(DType::kInt32, 16777217), 16777216.0f) << "tie to even";
  EXPECT_EQ(to_float_bits(DType::kInt32, 16777219), 16777220.0f) << "tie to even";
  EXPECT_EQ(to_float_bits(DType::kUInt32, 0xffffffff), 4294967296.0f);
  EXPECT_EQ(to_float_bits(DType::kUInt32, 0x80000080), 2147483648.0f) << "tie to even";
  EXPECT_EQ(to_float_bits(DType::kUInt32, 0x80000081), 2147483904.0f);
}

TEST(Convert, BoolIsTrueUnlessZero) {
  for (const float v : {1.0f, -1.0f, float_of(1), kInfinity, float_of(kNanBits)})
    EXPECT_EQ(from_float_bits(DType::kBool, v), 1u);
  for (const float v : {0.0f, -0.0f}) EXPECT_EQ(from_float_bits(DType::kBool, v), 0u);
  EXPECT_EQ(to_float_bits(DType::kBool, 0), 0.0f);
  EXPECT_EQ(to_float_bits(DType::kBool, 1), 1.0f);
  EXPECT_EQ(to_float_bits(DType::kBool, 0x80), 1.0f);
}

// --- Stochastic rounding ---

TEST(Stochastic, ProbabilityIsTheDiscardedFraction) {
  // Exhaustive where the discarded bits are few enough: all random values of exactly those bits.
  struct Case {
    DType type;
    float value;
    uint32_t down, up;
    int dropped;
    uint32_t fraction;
  };
  const Case cases[] = {
      {DType::kBFloat16, float_of(0x3f801234), 0x3f80, 0x3f81, 16, 0x1234},
      {DType::kBFloat16, float_of(0xc2ff8000), 0xc2ff, 0xc300, 16, 0x8000},  // carries into the exponent
      {DType::kBFloat16, float_of(0x00010001), 0x0001, 0x0002, 16, 0x0001},  // subnormal
      {DType::kBFloat16, float_of(0x7f7fffff), 0x7f7f, 0x7f80, 16, 0xffff},  // up to infinity
      {DType::kFloat16, float_of(0x3f800001), 0x3c00, 0x3c01, 13, 1},
      {DType::kFloat16, float_of(0x3f801fff), 0x3c00, 0x3c01, 13, 0x1fff},
      {DType::kFloat16, std::ldexp(1.25f, -24), 0x0001, 0x0002, 23, 0x200000},  // smallest subnormal and a quarter
      {DType::kFloat16, -std::ldexp(1.5f, -15), 0x8300, 0x8301, 14, 0},         // representable subnormal
      {DType::kTFloat32, float_of(0x3f800a00), 0x3f800000, 0x3f802000, 13, 0xa00},
      {DType::kFloat8E4M3, 1.0625f, 0x38, 0x39, 20, 1 << 19},
      {DType::kFloat8E4M3FN, 449.0f, 0x7e, 0x7f, 20, 1 << 15},  // 448 or NaN: 1/32
      {DType::kFloat8E5M2, 1.1f, 0x3c, 0x3d, 21, 0x0ccccd},
      {DType::kFloat8E3M4, 15.9375f, 0x6f, 0x70, 19, 7 << 16},  // 15.5 or infinity: 7/8
      {DType::kFloat4E2M1, 0.125f, 0x0, 0x1, 24, 1 << 22},      // a quarter of the smallest: 1/4
  };
  for (const Case& c : cases) {
    uint32_t ups = 0;
    for (uint64_t i = 0; i < 1ull << c.dropped; ++i) {
      const uint32_t got = from_float_stochastic_bits(c.type, c.value, static_cast<uint32_t>(i << (32 - c.dropped)));
      if (got == c.up)
        ++ups;
      else
        ASSERT_EQ(got, c.down) << name(c.type) << " " << c.value;
    }
    EXPECT_EQ(ups, c.fraction) << name(c.type) << " " << c.value;
  }
}

TEST(Stochastic, FarBelowTheSmallestValueUsesAllRandomBits) {
  // 2^-30 of the smallest fp16: four of the 2^32 random values round up.
  const float v = std::ldexp(1.0f, -24 - 30);
  for (const uint32_t random : {0u, 3u}) EXPECT_EQ(from_float_stochastic_bits(DType::kFloat16, v, random), 1u);
  for (const uint32_t random : {4u, 0xffffffffu}) EXPECT_EQ(from_float_stochastic_bits(DType::kFloat16, v, random), 0u);
  // Too small for 32 random bits: only 0 rounds up, and exact zero never does.
  EXPECT_EQ(from_float_stochastic_bits(DType::kFloat4E2M1, -float_of(1), 0), 9u);
  EXPECT_EQ(from_float_stochastic_bits(DType::kFloat4E2M1, -float_of(1), 1), 8u);
  EXPECT_EQ(from_float_stochastic_bits(DType::kFloat4E2M1, 0.0f, 0), 0u);
}

TEST(Stochastic, NeverChangesARepresentableValue) {
  for (const DType t : kSmallFloats)
    for (uint32_t bits = 0; bits < 2 * sign_bit(t); ++bits) {
      const float v = to_float_bits(t, bits);
      for (const uint32_t random : {0u, 1u, 0x80000000u, 0xffffffffu})
        ASSERT_EQ(from_float_stochastic_bits(t, v, random), from_float_bits(t, v)) << name(t) << " " << bits;
    }
}

TEST(Stochastic, OtherTypesRoundToNearest) {
  for (const uint32_t random : {0u, 0xffffffffu}) {
    EXPECT_EQ(from_float_stochastic_bits(DType::kInt8, 2.5f, random), 2u);
    EXPECT_EQ(from_float_stochastic_bits(DType::kFloat8E8M0, 1.25f, random), 127u);
    EXPECT_EQ(from_float_stochastic_bits(DType::kFloat32, 1.1f, random), bits_of(1.1f));
    EXPECT_EQ(from_float_stochastic_bits(DType::kBFloat16, float_of(0xff800001), random), 0x7fc0u);
  }
}

// --- Packed types ---

TEST(Packed, ElementZeroIsInTheLowBits) {
  const float values[4] = {1.0f, -2.0f, 0.5f, 6.0f};
  uint8_t bytes[4] = {0xee, 0xee, 0xee, 0xee};
  pack_x4(DType::kFloat4E2M1FNx4, values, bytes);
  EXPECT_EQ(bytes[0], 0xc2);  // 1.0 is 2, -2.0 is c
  EXPECT_EQ(bytes[1], 0x71);  // 0.5 is 1, 6.0 is 7
  EXPECT_EQ(bytes[2], 0xee) << "two bytes, no more";
  pack_x4(DType::kFloat8E4M3FNx4, values, bytes);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 4), (std::vector<uint8_t>{0x38, 0xc0, 0x30, 0x4c}));
  pack_x4(DType::kFloat8E5M2x4, values, bytes);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 4), (std::vector<uint8_t>{0x3c, 0xc0, 0x38, 0x46}));
  for (const DType t : {DType::kFloat4E2M1FNx4, DType::kFloat8E4M3FNx4, DType::kFloat8E5M2x4}) {
    float back[4] = {};
    pack_x4(t, values, bytes);
    unpack_x4(t, bytes, back);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(back[i], values[i]) << name(t);
  }
}

// Immediates are doubles: every 32-bit integer is exact, and the rules are those of fp32 otherwise.
TEST(Convert, NumbersToIntegersAreExactAndSaturate) {
  EXPECT_EQ(integer_bits(DType::kInt32, 16777217.0), 16777217u);
  EXPECT_EQ(integer_bits(DType::kInt32, -2147483648.0), 0x80000000u);
  EXPECT_EQ(integer_bits(DType::kInt32, 1e30), 0x7fffffffu);
  EXPECT_EQ(integer_bits(DType::kUInt32, 4294967295.0), 0xffffffffu);
  EXPECT_EQ(integer_bits(DType::kUInt32, -1.0), 0u);
  EXPECT_EQ(integer_bits(DType::kInt16, -2.5), 0xfffeu);
  EXPECT_EQ(integer_bits(DType::kInt8, std::nan("")), 0u);
  EXPECT_EQ(integer_bits(DType::kBool, 0.25), 1u);
  EXPECT_EQ(integer_bits(DType::kBool, 0.0), 0u);
  for (DType t : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16})
    for (const float x : {-70000.0f, -300.0f, -2.5f, -0.5f, 0.0f, 0.5f, 1.5f, 126.5f, 254.5f, 300.0f, 65535.5f, 1e9f})
      EXPECT_EQ(integer_bits(t, x), from_float_bits(t, x)) << name(t) << x;
}

}  // namespace
}  // namespace sterna
