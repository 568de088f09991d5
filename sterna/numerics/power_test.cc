// SPDX-License-Identifier: Apache-2.0
// AluOp::kPower against the C library's long double powl, against exact integers, and in the cases that C names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_test_values.h"

namespace sterna {
namespace {

using testing::bits_of;
using testing::from_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = from_bits(testing::kNaNBits);

float power(float x, float y) { return alu(AluOp::kPower, x, y); }

/// Results spread over the whole range of fp32 and a little beyond: y is drawn as an exponent over log2 x.
std::vector<std::pair<float, float>> samples() {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> target(-152, 129), unit(-1, 1);
  // Where long double has 113 bits it is computed in software.
  const int count = std::numeric_limits<long double>::digits > 64 ? 20000 : 400000;
  std::vector<std::pair<float, float>> out;
  for (int i = 0; i < count; ++i) {
    // A third of the bases near 1, where y is large, a third of ordinary size, a third of any.
    float x = from_bits(static_cast<uint32_t>(random()) & 0x7fffffff);
    if (i % 3 == 0) x = static_cast<float>(1 + unit(random) * std::ldexp(1.0, -static_cast<int>(random() % 24)));
    if (i % 3 == 1) x = static_cast<float>(std::ldexp(1.5 + unit(random) / 2, static_cast<int>(random() % 8) - 4));
    if (!(x > 0) || x == 1 || std::isinf(x)) continue;
    const double log = std::log2(static_cast<double>(x));
    out.push_back({x, static_cast<float>(target(random) / log)});
  }
  return out;
}

TEST(Power, IsAlmostCorrectlyRounded) {
  int wrong = 0;
  long double worst = 0;
  const auto pairs = samples();
  for (const auto& [x, y] : pairs) {
    const long double exact = powl(x, y);
    const auto rounded = static_cast<float>(exact);
    const float got = power(x, y);
    wrong += bits_of(got) != bits_of(rounded);
    // The format's steps do not change where its exponent ends, so 1 ulp is one step of the pattern.
    ASSERT_LE(std::max(bits_of(got), bits_of(rounded)) - std::min(bits_of(got), bits_of(rounded)), 1u)
        << x << " to the power " << y << ": " << got << ", expected " << rounded;
    if (exact == 0 || std::isinf(rounded) || std::isinf(got)) continue;
    const long double place = std::max(std::ldexp(1.0L, std::ilogb(exact) - 23), 0x1p-149L);
    worst = std::max(worst, std::fabs(got - exact) / place);
  }
  std::printf("power: %zu samples, %d not correctly rounded, error %.6Lf ulp\n", pairs.size(), wrong, worst);
  EXPECT_LE(worst, 0.5L + 0x1p-17L);
  EXPECT_LE(wrong, static_cast<int>(pairs.size() / 20000));
}

/// x * x * ... in fp64, where integers of 53 bits are exact, rounded once: ties included.
TEST(Power, OfIntegersIsCorrectlyRounded) {
  for (int x = 1; x < 9000; ++x) {
    const auto base = static_cast<float>(x);
    double exact = x;
    for (int y = 1; exact < 0x1p53 && y < 60; ++y, exact *= x) {
      const auto want = static_cast<float>(exact);
      ASSERT_EQ(power(base, static_cast<float>(y)), want) << x << "^" << y;
      ASSERT_EQ(power(-base, static_cast<float>(y)), y % 2 == 1 ? -want : want) << -x << "^" << y;
    }
  }
  EXPECT_EQ(power(4097, 2), 16785408.0f);  // 16785409 lies between two values and goes to the even one
  EXPECT_EQ(power(4099, 2), 16801800.0f);  // 16801801
  for (float x = 1; x < 4096; x += 1) ASSERT_EQ(power(x * x, 0.5f), x);
  for (int n = -149; n <= 127; ++n) ASSERT_EQ(power(2, static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
}

struct Case {
  float x, y, want;
};

// C17 F.10.4.4, but for NaN, which is always the canonical one.
TEST(Power, CasesOfC) {
  const float nan = from_bits(0xffc00001), tiny = from_bits(1), big = std::numeric_limits<float>::max();
  const Case cases[] = {
      {0.0f, -3, kInf},
      {-0.0f, -3, -kInf},
      {0.0f, -2.5f, kInf},
      {-0.0f, -2.5f, kInf},
      {-0.0f, -2, kInf},
      {0.0f, -kInf, kInf},
      {-0.0f, -kInf, kInf},
      {0.0f, 3, 0.0f},
      {-0.0f, 3, -0.0f},
      {-0.0f, 2, 0.0f},
      {-0.0f, 0.5f, 0.0f},
      {0.0f, kInf, 0.0f},
      {-0.0f, kInf, 0.0f},
      {-1, kInf, 1},
      {-1, -kInf, 1},
      {1, kInf, 1},
      {1, nan, 1},
      {1, -big, 1},
      {nan, 0.0f, 1},
      {nan, -0.0f, 1},
      {0.0f, 0.0f, 1},
      {kInf, -0.0f, 1},
      {-kInf, 0.0f, 1},
      {-5, 0.0f, 1},
      {-2, 0.5f, kNaN},
      {-tiny, 1.5f, kNaN},
      {-big, tiny, kNaN},
      {0.5f, -kInf, kInf},
      {-0.5f, -kInf, kInf},
      {1.5f, -kInf, 0.0f},
      {-1.5f, -kInf, 0.0f},
      {0.5f, kInf, 0.0f},
      {-0.5f, kInf, 0.0f},
      {1.5f, kInf, kInf},
      {-1.5f, kInf, kInf},
      {-kInf, -3, -0.0f},
      {-kInf, -2, 0.0f},
      {-kInf, -2.5f, 0.0f},
      {-kInf, 3, -kInf},
      {-kInf, 2, kInf},
      {-kInf, 0.5f, kInf},
      {kInf, -tiny, 0.0f},
      {kInf, tiny, kInf},
      {kInf, -kInf, 0.0f},
      {kInf, kInf, kInf},
      {-kInf, kInf, kInf},
      {nan, 1, kNaN},
      {2, nan, kNaN},
      {nan, nan, kNaN},
      {kInf, nan, kNaN},
      {0.0f, nan, kNaN},
      {nan, kInf, kNaN},
      {-1, 16777215, -1},
      {-1, 16777216, 1},
      {-1, 8388607, -1},
      {-1, 8388607.5f, kNaN},
      {-1, -16777215, -1},
      {-1, big, 1},
      {-2, 127, -0x1p127f},
      {-2, 128, kInf},
      {-2, 129, -kInf},
      {-2, -149, -tiny},
      {-2, -151, -0.0f},
      {2, 0.5f, 0x1.6a09e6p0f},
      {big, 1, big},
      {-big, 1, -big},
      {tiny, 1, tiny},
      {tiny, 2, 0.0f},
      {big, 2, kInf},
      {tiny, -1, kInf},
      {0x1.fffffep-1f, big, 0.0f},
      {0x1.000002p0f, big, kInf},
      {big, tiny, 1},
      {tiny, tiny, 1},
      {-3, 3, -27},
  };
  for (const Case& c : cases)
    EXPECT_EQ(bits_of(power(c.x, c.y)), bits_of(c.want)) << c.x << " to the power " << c.y << " = " << power(c.x, c.y);
}

/// Dense values, not only those of the operators' common test.
TEST(Power, GivesTheSameBitsOnEveryTarget) {
  std::vector<float> x, y;
  for (const auto& [a, b] : samples()) {
    x.push_back(x.size() % 5 == 0 ? -a : a);
    y.push_back(y.size() % 5 == 0 ? std::nearbyint(b) : b);
  }
  x.resize(100000);
  y.resize(100000);
  const auto count = static_cast<ptrdiff_t>(x.size());
  std::vector<float> want(x.size()), got(x.size());
  for (size_t i = 0; i < x.size(); ++i) want[i] = power(x[i], y[i]);
  testing::on_every_target([&] {
    alu_block(AluOp::kPower, {x.data(), count}, {y.data(), count}, {got.data(), count}, 1, count);
    testing::expect_same_bits(got, want, "power");
  });
}

}  // namespace
}  // namespace sterna
