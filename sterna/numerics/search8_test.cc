// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/search8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sterna/base/text.h"
#include "sterna/numerics/alu_test_values.h"

namespace sterna {
namespace {

using testing::bits_of;
using testing::from_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr ptrdiff_t kLengths[] = {8,  9,   15,  16,  17,  31,  32,  33,   63,   64,
                                  65, 100, 127, 128, 129, 511, 512, 1000, 4096, 5000};

/// a comes before b among the largest: NaN first, then by value, +0 before -0.
bool larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  if (a == b) return std::signbit(b) && !std::signbit(a);
  return a > b;
}

std::vector<float> largest_of(std::vector<float> row) {
  std::stable_sort(row.begin(), row.end(), larger);
  row.resize(kEight);
  for (float& x : row)
    if (std::isnan(x)) x = from_bits(testing::kNaNBits);
  return row;
}

/// Value by value, each with a pass of its own over what is not taken.
std::vector<uint32_t> places_of(const std::vector<float>& row, const std::vector<float>& wanted) {
  std::vector<bool> taken(row.size());
  std::vector<uint32_t> places;
  for (const float value : wanted) {
    size_t i = 0;
    while (i < row.size() && (taken[i] || row[i] != value)) ++i;
    if (i < row.size()) taken[i] = true;
    places.push_back(i < row.size() ? static_cast<uint32_t>(i) : UINT32_MAX);
  }
  return places;
}

void check_largest(const std::vector<float>& row, const std::string& what) {
  std::vector<float> got(kEight);
  eight_largest(row.data(), static_cast<ptrdiff_t>(row.size()), got.data());
  testing::expect_same_bits(got, largest_of(row), what);
}

void check_places(const std::vector<float>& row, const std::vector<float>& wanted, const std::string& what) {
  std::vector<uint32_t> got(kEight, 5);
  find_eight(row.data(), static_cast<ptrdiff_t>(row.size()), wanted.data(), got.data());
  ASSERT_EQ(got, places_of(row, wanted)) << what;
}

/// Rows of one length, each of another kind.
std::vector<std::vector<float>> rows_of(ptrdiff_t n, uint32_t seed) {
  testing::Values special(seed), plain(seed + 1, 0);
  std::mt19937 random(seed);
  std::vector<std::vector<float>> rows{special.take(n), plain.take(n)};
  std::vector<float> row = plain.take(n);
  std::sort(row.begin(), row.end());
  rows.push_back(row);  // each element is among the largest so far
  std::reverse(row.begin(), row.end());
  rows.push_back(row);
  row = plain.take(n);
  for (size_t i = 3; i < row.size(); i += 64) row[i] += 100;  // the largest all in one lane of a block
  rows.push_back(row);
  for (float& x : row) x = static_cast<float>(random() % 5) - 2;  // many ties
  rows.push_back(row);
  for (float& x : row) x = random() % 2 == 0 ? 0.0f : -0.0f;
  rows.push_back(row);
  row.assign(static_cast<size_t>(n), -kInf);
  for (int i = 0; i < 3; ++i) row[random() % row.size()] = from_bits(i == 1 ? 0xffc00001u : 0xc0000000u);
  rows.push_back(row);
  row.assign(static_cast<size_t>(n), from_bits(0xffffffffu));
  for (int i = 0; i < 3; ++i) row[random() % row.size()] = kInf;
  rows.push_back(row);
  return rows;
}

TEST(Search8, LargestOfManyRows) {
  testing::on_every_target([] {
    for (const ptrdiff_t n : kLengths)
      for (uint32_t seed = 1; seed <= 3; ++seed)
        for (const std::vector<float>& row : rows_of(n, seed))
          ASSERT_NO_FATAL_FAILURE(check_largest(row, cat(n, " elements, seed ", seed)));
  });
}

TEST(Search8, LargestAtEveryPlace) {
  testing::on_every_target([] {
    for (const uint32_t bits : {0x3f800000u, 0x00000000u, 0x7f800000u, 0xffc00000u})
      for (size_t at = 0; at < 150; ++at) {
        std::vector<float> row(150, -0.0f);
        row[at] = from_bits(bits);
        ASSERT_NO_FATAL_FAILURE(check_largest(row, cat("place ", at)));
      }
  });
}

TEST(Search8, LargestIntoItsOwnRow) {
  testing::on_every_target([] {
    std::vector<float> row(70);
    std::iota(row.begin(), row.end(), 0.0f);
    eight_largest(row.data(), 70, row.data());
    row.resize(kEight);
    EXPECT_EQ(row, (std::vector<float>{69, 68, 67, 66, 65, 64, 63, 62}));
  });
}

TEST(Search8, PlacesInManyRows) {
  testing::on_every_target([] {
    for (const ptrdiff_t n : kLengths)
      for (uint32_t seed = 1; seed <= 3; ++seed)
        for (const std::vector<float>& row : rows_of(n, seed)) {
          const std::string what = cat(n, " elements, seed ", seed);
          std::mt19937 random(seed);
          testing::Values strange(seed + 7, 12);
          std::vector<float> wanted(kEight);
          const auto any = [&] { return row[random() % row.size()]; };
          for (float& x : wanted) x = any();
          ASSERT_NO_FATAL_FAILURE(check_places(row, wanted, what));
          for (int k = 0; k < kEight; ++k) wanted[static_cast<size_t>(k)] = k % 3 == 0 ? any() : strange.next();
          ASSERT_NO_FATAL_FAILURE(check_places(row, wanted, what));
          for (int k = 0; k < kEight; ++k) wanted[static_cast<size_t>(k)] = k < 2 ? any() : wanted[random() % 2];
          ASSERT_NO_FATAL_FAILURE(check_places(row, wanted, what));
          ASSERT_NO_FATAL_FAILURE(check_places(row, largest_of(row), what));
          ASSERT_NO_FATAL_FAILURE(check_places(row, std::vector<float>(kEight, any()), what));
          ASSERT_NO_FATAL_FAILURE(check_places(row, std::vector<float>(kEight, from_bits(testing::kNaNBits)), what));
        }
  });
}

TEST(Search8, RepeatedValuesTakeTheNextPlace) {
  testing::on_every_target([] {
    // A zero of either sign is the same value; the places of the two values interleave.
    std::vector<float> row(200, 9.0f);
    for (const size_t i : {3, 4, 70, 199}) row[i] = -0.0f;
    for (const size_t i : {5, 69, 71, 198}) row[i] = 2.0f;
    const float wanted[kEight] = {0.0f, 2.0f, -0.0f, 2.0f, 0.0f, 0.0f, 0.0f, 2.0f};
    std::vector<uint32_t> found(kEight);
    find_eight(row.data(), 200, wanted, found.data());
    EXPECT_EQ(found, (std::vector<uint32_t>{3, 5, 4, 69, 70, 199, kNotFound, 71}));
  });
}

TEST(Search8, FindsAtEveryPlace) {
  testing::on_every_target([] {
    // The range of what is wanted holds every element, so the range alone decides nothing.
    const std::vector<float> wanted{-kInf, kInf, 1, 3, 5, 1, from_bits(0x7fc00000u), 1e30f};
    for (size_t at = 0; at < 150; ++at) {
      std::vector<float> row(150, 2.0f);
      row[at] = 1;
      row[149 - at] = 5;
      ASSERT_NO_FATAL_FAILURE(check_places(row, wanted, cat("place ", at)));
    }
  });
}

}  // namespace
}  // namespace sterna
