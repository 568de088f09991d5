// SPDX-License-Identifier: Apache-2.0
// Predicted against published times. The streams are written from the descriptions of the published kernels; no
// constant of a chip file comes from a row tested here.
#include <gtest/gtest.h>

#include <cstdio>

#include "sterna/timing/kernel_for_test.h"

namespace sterna {
namespace {

constexpr DType kBf16 = DType::kBFloat16, kFp32 = DType::kFloat32;

void report(const char* row, const Timing& t, double published_us) {
  std::printf("%-28s %10.2f us, published %10.2f (%+.1f %%), bound %s, tensor %.1f %% vector %.1f %% dma %.1f %%\n",
              row, t.total_us(), published_us, 100 * (t.total_us() / published_us - 1), t.bound.c_str(),
              100 * t.share(Queue::kTensor), 100 * t.share(Queue::kVector), 100 * t.dma_share());
}

/// 2048^3 bf16; everything loaded first, one PSUM tile of four banks for each block of 128 rows, cleared, accumulated,
/// copied out; all stores at the end. `sets` PSUM tiles are used in turn.
Timing psum_sets(const Chip& chip, int sets) {
  KernelForTest k(chip);
  const View lhs = k.hbm({2048, 2048}, kBf16), rhs = k.hbm({2048, 2048}, kBf16), out = k.hbm({2048, 2048}, kBf16);
  std::vector<View> a, b, psum, result;
  for (int i = 0; i < 16; ++i) k.copy(a.emplace_back(k.sbuf({128, 2048}, kBf16)), k.slice(lhs, 128 * i, 128, 0, 2048));
  for (int i = 0; i < 16; ++i) k.copy(b.emplace_back(k.sbuf({128, 2048}, kBf16)), k.slice(rhs, 128 * i, 128, 0, 2048));
  for (int i = 0; i < sets; ++i) psum.push_back(k.psum({128, 2048}));
  for (int m = 0; m < 16; ++m) {
    const View& p = psum[static_cast<size_t>(m % sets)];
    k.fill(p);
    for (int n = 0; n < 4; ++n)
      for (size_t i = 0; i < 16; ++i)
        k.matmul(k.columns(p, 512 * n, 512), k.columns(a[i], 128 * m, 128), k.columns(b[i], 512 * n, 512));
    k.move(result.emplace_back(k.sbuf({128, 2048}, kBf16)), p);
  }
  for (int m = 0; m < 16; ++m) k.copy(k.slice(out, 128 * m, 128, 0, 2048), result[static_cast<size_t>(m)]);
  return k.time();
}

/// 2048^3 bf16; the left side transposed while it is loaded, K in two blocks added up in bf16, each PSUM tile a bank of
/// its own.
Timing lhs_rhs(const Chip& chip) {
  KernelForTest k(chip);
  const View lhs = k.hbm({2048, 2048}, kBf16), rhs = k.hbm({2048, 2048}, kBf16), out = k.hbm({2048, 2048}, kBf16);
  for (int i0 = 0; i0 < 2; ++i0) {
    std::vector<View> sums;
    for (int i = 0; i < 32; ++i) k.fill(sums.emplace_back(k.sbuf({128, 512}, kBf16)), EngineId::kGpSimd);
    for (int i2 = 0; i2 < 4; ++i2) {
      for (int i1 = 0; i1 < 2; ++i1) {
        std::vector<View> a, b;
        for (int i = 0; i < 8; ++i)
          k.copy(a.emplace_back(k.sbuf({128, 1024}, kBf16)), k.slice(lhs, 1024 * i1 + 128 * i, 128, 1024 * i0, 1024));
        for (int i = 0; i < 8; ++i)
          k.copy(b.emplace_back(k.sbuf({128, 512}, kBf16)), k.slice(rhs, 1024 * i1 + 128 * i, 128, 512 * i2, 512));
        for (int m = 0; m < 8; ++m) {
          const View p = k.psum({128, 512});
          k.fill(p);
          for (size_t i = 0; i < 8; ++i) k.matmul(p, k.columns(a[i], 128 * m, 128), b[i]);
          const View part = k.sbuf({128, 512}, kBf16);
          k.move(part, p);
          const View& sum = sums[static_cast<size_t>(4 * m + i2)];
          k.add(sum, sum, part);
        }
      }
      for (int m = 0; m < 8; ++m)
        k.copy(k.slice(out, 1024 * i0 + 128 * m, 128, 512 * i2, 512), sums[static_cast<size_t>(4 * m + i2)]);
    }
  }
  return k.time();
}

/// The tutorial's tiled kernel (version 2) and the one with hoisted loads (version 3), fp32, M 4096, K 8192, N 8192.
Timing tutorial(const Chip& chip, bool hoisted) {
  KernelForTest k(chip);
  const View lhs = k.hbm({8192, 4096}, kFp32), rhs = k.hbm({8192, 8192}, kFp32), out = k.hbm({4096, 8192}, kFp32);
  for (int m = 0; m < 32; ++m) {
    std::vector<View> a;
    for (int i = 0; i < 64 && hoisted; ++i)
      k.copy(a.emplace_back(k.sbuf({128, 128}, kFp32)), k.slice(lhs, 128 * i, 128, 128 * m, 128));
    for (int n = 0; n < 16; ++n) {
      std::vector<View> b;
      for (int i = 0; i < 64 && hoisted; ++i)
        k.copy(b.emplace_back(k.sbuf({128, 512}, kFp32)), k.slice(rhs, 128 * i, 128, 512 * n, 512));
      const View p = k.psum({128, 512});
      for (int i = 0; i < 64; ++i) {
        if (hoisted) {
          k.matmul(p, a[static_cast<size_t>(i)], b[static_cast<size_t>(i)]);
          continue;
        }
        const View at = k.sbuf({128, 128}, kFp32), bt = k.sbuf({128, 512}, kFp32);
        k.copy(at, k.slice(lhs, 128 * i, 128, 128 * m, 128));
        k.copy(bt, k.slice(rhs, 128 * i, 128, 512 * n, 512));
        k.matmul(p, at, bt);
      }
      const View c = k.sbuf({128, 512}, kFp32);
      k.move(c, p);
      k.copy(k.slice(out, 128 * m, 128, 512 * n, 512), c);
    }
  }
  return k.time();
}

Timing vector_add(const Chip& chip, int tiles, int64_t columns) {
  KernelForTest k(chip);
  const View a = k.hbm({128 * tiles, columns}, kFp32), b = k.hbm({128 * tiles, columns}, kFp32),
             out = k.hbm({128 * tiles, columns}, kFp32);
  for (int m = 0; m < tiles; ++m) {
    const View x = k.sbuf({128, columns}, kFp32), y = k.sbuf({128, columns}, kFp32), z = k.sbuf({128, columns}, kFp32);
    k.copy(x, k.slice(a, 128 * m, 128, 0, columns));
    k.copy(y, k.slice(b, 128 * m, 128, 0, columns));
    k.add(z, x, y);
    k.copy(k.slice(out, 128 * m, 128, 0, columns), z);
  }
  return k.time();
}

/// nki-autotune, kernel transforms 15 and its parent, and the hand-tuned lhs_rhs kernel: 0.000366 s, 0.000262 s, 0.2442
/// ms.
TEST(Predictions, MatmulBf16OnTrn2) {
  const Chip chip = chip_for_test("trn2");
  const Timing one = psum_sets(chip, 1), two = psum_sets(chip, 2), tuned = lhs_rhs(chip);
  report("one PSUM set", one, 366);
  report("two PSUM sets", two, 262);
  report("lhs_rhs", tuned, 244.2);
  EXPECT_NEAR(one.total_us(), 366, 0.15 * 366);
  EXPECT_NEAR(two.total_us(), 262, 0.12 * 262);
  EXPECT_NEAR(tuned.total_us(), 244.2, 0.08 * 244.2);
  EXPECT_GT(one.total_us(), two.total_us());
  EXPECT_GT(two.total_us(), tuned.total_us());
}

/// Neuron documentation, matrix multiplication tutorial on trn2, fp32: 39.89 ms and 28.20 ms.
TEST(Predictions, TutorialFp32OnTrn2) {
  const Chip chip = chip_for_test("trn2");
  const Timing v2 = tutorial(chip, false), v3 = tutorial(chip, true);
  report("tutorial v2", v2, 39890);
  report("tutorial v3", v3, 28200);
  EXPECT_NEAR(v3.total_us(), 28200, 0.03 * 28200);
  EXPECT_GE(v3.share(Queue::kTensor), 0.98);
  EXPECT_NEAR(v2.total_us(), 39890, 0.2 * 39890);
  EXPECT_GE(v2.total_us(), 1.15 * v3.total_us());
}

/// Course write-ups on trn2: 26.4 us in two tiles of 1000 columns, 28.36 us in one of 2000.
TEST(Predictions, VectorAddOnTrn2) {
  const Chip chip = chip_for_test("trn2");
  const Timing two = vector_add(chip, 2, 1000), one = vector_add(chip, 1, 2000);
  report("vector add, 2 tiles", two, 26.4);
  report("vector add, 1 tile", one, 28.36);
  EXPECT_NEAR(two.total_us(), 26.4, 0.15 * 26.4);
  EXPECT_NEAR(one.total_us(), 28.36, 0.15 * 28.36);
}

void near_published(const char* row, double ns, double low, double high) {
  std::printf("%-28s %10.1f ns, published %.0f to %.0f\n", row, ns, low, high);
  EXPECT_GE(ns, 0.9 * low) << row;
  EXPECT_LE(ns, 1.1 * high) << row;
}

/// Single instructions in profile figures of the documentation.
TEST(Predictions, MicroRows) {
  const Chip trn1 = chip_for_test("trn1"), trn2 = chip_for_test("trn2");
  const auto last_ns = [](const Timing& t) { return static_cast<double>(t.instructions.back().duration()) / 1000; };
  {
    KernelForTest k(trn1);
    const View x = k.sbuf({128, 8192}, kFp32);
    k.add(x, x, x);
    near_published("trn1 vector 8192", last_ns(k.time()), 14968, 14968);
  }
  {
    KernelForTest k(trn1);
    const View x = k.sbuf({128, 8192}, kFp32);
    k.activate(x, x);
    near_published("trn1 scalar 8192", last_ns(k.time()), 6050, 6050);
  }
  {
    KernelForTest k(trn1);
    k.matmul(k.psum({128, 128}), k.sbuf({128, 128}, kBf16), k.sbuf({128, 128}, kBf16));
    near_published("trn1 matmul N=128", static_cast<double>(k.time().kernel_ps) / 1000, 188, 219);
  }
  {
    KernelForTest k(trn2);
    const View a = k.sbuf({128, 128}, kFp32), b = k.sbuf({128, 512}, kFp32), p = k.psum({128, 512});
    for (int i = 0; i < 100; ++i) k.matmul(p, a, b);
    near_published("trn2 fp32 matmul N=512", last_ns(k.time()), 853, 856);
  }
  {
    KernelForTest k(trn2);
    k.copy(k.sbuf({1, 512}, kFp32), k.hbm({1, 512}, kFp32));
    near_published("trn2 DMA 2 KiB, one engine", last_ns(k.time()), 97, 97);
  }
  {
    KernelForTest k(trn2);
    k.copy(k.sbuf({1, 8192}, kFp32), k.hbm({1, 8192}, kFp32));
    near_published("trn2 DMA 32 KiB, one engine", last_ns(k.time()), 1416, 1416);
  }
}

}  // namespace
}  // namespace sterna
