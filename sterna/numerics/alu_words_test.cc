// SPDX-License-Identifier: Apache-2.0
// alu_bits_block and alu_int_block against alu_bits and alu_int; widening and narrowing of words.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "sterna/base/text.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/alu_test_values.h"
#include "sterna/numerics/words.h"

namespace sterna {
namespace {

using testing::on_every_target;
using Row = std::vector<uint32_t>;

/// Small counts, the ends of the ranges of every size, and any bits.
Row random_row(size_t n, uint32_t seed) {
  constexpr uint32_t kEnds[] = {0,    1,    7,     8,      15,     16,     31,         32,         33,        0x7f,
                                0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
  std::mt19937 random(seed);
  Row out(n);
  for (uint32_t& v : out) {
    const auto kind = random() % 3;
    v = static_cast<uint32_t>(kind == 0 ? kEnds[random() % std::size(kEnds)] : kind == 1 ? random() % 40 : random());
  }
  return out;
}

enum class Shape { kRows, kOneLeft, kOneRight, kOneEach };
enum class Place { kApart, kOverLeft, kOverRight };

/// One call by `block` and by `definition`, with a marker behind the row that must survive.
template <class Block, class Definition>
void check(AluOp op, Shape shape, Place place, size_t n, uint32_t seed, const Block& block,
           const Definition& definition) {
  const bool one_left = shape == Shape::kOneLeft || shape == Shape::kOneEach;
  const bool one_right = shape == Shape::kOneRight || shape == Shape::kOneEach;
  Row a = random_row(n + 1, seed), b = random_row(n + 1, seed + 1), d(n + 1, 0xdeadbeef);
  Row& target = place == Place::kOverLeft ? a : place == Place::kOverRight ? b : d;
  Row want = target;
  for (size_t i = 0; i < n; ++i) want[i] = definition(a[one_left ? 0 : i], b[one_right ? 0 : i]);
  block(Words{a.data(), one_left}, Words{b.data(), one_right}, target.data(), static_cast<ptrdiff_t>(n));
  ASSERT_EQ(target, want) << name(op) << " shape " << static_cast<int>(shape) << " place " << static_cast<int>(place)
                          << " n " << n;
}

template <class Block, class Definition>
void check_all(AluOp op, const Block& block, const Definition& definition) {
  uint32_t seed = 17;
  for (const size_t n : {1, 3, 4, 7, 8, 9, 16, 17, 40})
    for (const Shape shape : {Shape::kRows, Shape::kOneLeft, Shape::kOneRight, Shape::kOneEach})
      for (const Place place : {Place::kApart, Place::kOverLeft, Place::kOverRight})
        ASSERT_NO_FATAL_FAILURE(check(op, shape, place, n, seed += 2, block, definition));
}

TEST(AluWords, BitsEqualTheDefinition) {
  on_every_target([] {
    for (int i = 0; i < kAluOpCount; ++i)
      for (const int bits : {8, 16, 32}) {
        const auto op = static_cast<AluOp>(i);
        SCOPED_TRACE(bits);
        check_all(
            op, [=](Words a, Words b, uint32_t* d, ptrdiff_t n) { alu_bits_block(op, a, b, d, n, bits); },
            [=](uint32_t a, uint32_t b) { return alu_bits(op, a, b, bits); });
      }
  });
}

TEST(AluWords, IntegersEqualTheDefinition) {
  on_every_target([] {
    for (int i = 0; i < kAluOpCount; ++i)
      for (const bool is_signed : {false, true}) {
        const auto op = static_cast<AluOp>(i);
        SCOPED_TRACE(is_signed);
        check_all(
            op, [=](Words a, Words b, uint32_t* d, ptrdiff_t n) { alu_int_block(op, a, b, d, n, is_signed); },
            [=](uint32_t a, uint32_t b) { return alu_int(op, a, b, is_signed); });
      }
  });
}

TEST(AluWords, EmptyRowsTouchNothing) {
  uint32_t d = 3;
  alu_bits_block(AluOp::kInvert, {nullptr}, {nullptr}, &d, 0, 32);
  alu_int_block(AluOp::kAdd, {nullptr}, {nullptr}, &d, 0, true);
  widen_words(nullptr, 1, true, &d, 0);
  narrow_words(&d, nullptr, 2, 0);
  EXPECT_EQ(d, 3u);
}

template <class T>
void check_widths(uint32_t seed) {
  for (size_t n = 1; n <= 70; ++n) {
    const Row in = random_row(n, seed + static_cast<uint32_t>(n));
    std::vector<T> elements(n + 1, T{85});
    narrow_words(in.data(), reinterpret_cast<std::byte*>(elements.data()), sizeof(T), static_cast<ptrdiff_t>(n));
    Row out(n + 1, 0xdeadbeef);
    widen_words(reinterpret_cast<const std::byte*>(elements.data()), sizeof(T), std::is_signed_v<T>, out.data(),
                static_cast<ptrdiff_t>(n));
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(elements[i], static_cast<T>(in[i])) << i << " of " << n;
      ASSERT_EQ(out[i], static_cast<uint32_t>(static_cast<int64_t>(static_cast<T>(in[i])))) << i << " of " << n;
    }
    ASSERT_EQ(elements[n], T{85});
    ASSERT_EQ(out[n], 0xdeadbeefu);
  }
}

TEST(Words, NarrowAndWiden) {
  on_every_target([] {
    check_widths<uint8_t>(1);
    check_widths<int8_t>(100);
    check_widths<uint16_t>(200);
    check_widths<int16_t>(300);
    check_widths<uint32_t>(400);
    check_widths<int32_t>(500);
  });
}

}  // namespace
}  // namespace sterna
