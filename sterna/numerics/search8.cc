// SPDX-License-Identifier: Apache-2.0
// Both searches pass over blocks of vectors, ask of a whole block whether anything in it can matter, and look at single
// elements only where something does: a few dozen times in a row of thousands.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/search8.cc"
#include <algorithm>
#include <bit>
#include <cmath>

#include "sterna/numerics/simd.h"

// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/search8.h"

#ifndef STERNA_NUMERICS_SEARCH8_ONCE_
#define STERNA_NUMERICS_SEARCH8_ONCE_
namespace sterna {
namespace {

constexpr uint32_t kQuietNaN = 0x7fc00000u;

/// An integer that orders like the number.
int32_t order_key(float x) {
  const int32_t bits = std::bit_cast<int32_t>(std::isnan(x) ? std::bit_cast<float>(kQuietNaN) : x);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}
float number_of(int32_t key) { return std::bit_cast<float>(key < 0 ? key ^ 0x7fffffff : key); }

/// The keys of the eight largest so far, descending, of those above a floor.
struct Largest {
  int32_t best[kEight];
  explicit Largest(int32_t floor = INT32_MIN) { std::fill_n(best, kEight, floor); }
  int32_t least() const { return best[kEight - 1]; }
  void offer(int32_t key) {
    if (key <= least()) return;
    int i = kEight - 1;
    for (; i > 0 && best[i - 1] < key; --i) best[i] = best[i - 1];
    best[i] = key;
  }
};

/// The wanted values that have no place yet, in their order.
struct Pending {
  int count = 0;
  float value[kEight];
  int slot[kEight];
  explicit Pending(const float* wanted) {
    for (int k = 0; k < kEight; ++k) {
      if (std::isnan(wanted[k])) continue;
      value[count] = wanted[k];
      slot[count++] = k;
    }
  }
  /// Gives place `at`, which holds x, to the first value that equals x. False if none does.
  bool give(float x, ptrdiff_t at, uint32_t* found) {
    int i = 0;
    while (i < count && value[i] != x) ++i;
    if (i == count) return false;
    found[slot[i]] = static_cast<uint32_t>(at);
    --count;
    for (; i < count; ++i) {
      value[i] = value[i + 1];
      slot[i] = slot[i + 1];
    }
    return true;
  }
};

}  // namespace
}  // namespace sterna
#endif

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::ScalableTag<int32_t>;
constexpr ptrdiff_t kLanes = static_cast<ptrdiff_t>(hn::MaxLanes(F()));
constexpr ptrdiff_t kVectors = 4, kBlock = kVectors * kLanes;

/// order_key of each lane.
HWY_INLINE hn::Vec<I> load_keys(const float* at) {
  const auto x = hn::LoadU(F(), at);
  const auto nan = hn::BitCast(F(), hn::Set(I(), static_cast<int32_t>(kQuietNaN)));
  const auto bits = hn::BitCast(I(), hn::IfThenElse(hn::IsNaN(x), nan, x));
  return hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), hn::Set(I(), 0x7fffffff)));
}

HWY_INLINE void offer_lanes(hn::Vec<I> keys, Largest& largest) {
  if (hn::AllFalse(I(), hn::Gt(keys, hn::Set(I(), largest.least())))) return;
  alignas(64) int32_t lane[kLanes];
  hn::Store(keys, I(), lane);
  for (const int32_t key : lane) largest.offer(key);
}

/// A key that at least eight elements of the row's whole blocks reach: the eighth of the largest of each lane of a
/// block. There are 16 lanes or more, so in a row without a pattern few more than eight elements do.
HWY_INLINE int32_t reached_by_eight(const float* row, ptrdiff_t n) {
  hn::Vec<I> most[kVectors];
  for (auto& m : most) m = hn::Set(I(), INT32_MIN);
  for (ptrdiff_t i = 0; i + kBlock <= n; i += kBlock)
#pragma GCC unroll 4
    for (ptrdiff_t v = 0; v < kVectors; ++v) most[v] = hn::Max(most[v], load_keys(row + i + v * kLanes));
  Largest largest;
  for (const auto& m : most) offer_lanes(m, largest);
  return largest.least();
}

/// Whole vectors only; returns how many elements it did.
ptrdiff_t OfferVectors(const float* row, ptrdiff_t n, Largest& largest) {
  // In a long row most elements that are among the largest so far are not in the end. No key is INT32_MIN.
  if (n >= 8 * kBlock) largest = Largest(reached_by_eight(row, n) - 1);
  ptrdiff_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const auto a = load_keys(row + i), b = load_keys(row + i + kLanes), c = load_keys(row + i + 2 * kLanes),
               d = load_keys(row + i + 3 * kLanes);
    const auto most = hn::Max(hn::Max(a, b), hn::Max(c, d));
    if (HWY_LIKELY(hn::AllFalse(I(), hn::Gt(most, hn::Set(I(), largest.least()))))) continue;
    offer_lanes(a, largest);
    offer_lanes(b, largest);
    offer_lanes(c, largest);
    offer_lanes(d, largest);
  }
  for (; i + kLanes <= n; i += kLanes) offer_lanes(load_keys(row + i), largest);
  return i;
}

/// The pending values in vectors, with their range: what lies outside it needs no closer look. Taken again after each
/// change of what is pending.
struct Wanted {
  hn::Vec<F> low, high;
  explicit Wanted(const Pending& p) {
    const auto [least, most] = std::minmax_element(p.value, p.value + p.count);
    low = hn::Set(F(), *least);
    high = hn::Set(F(), *most);
  }
  HWY_INLINE hn::Mask<F> in_range(const float* at) const {
    const auto x = hn::LoadU(F(), at);
    return hn::And(hn::Ge(x, low), hn::Le(x, high));
  }
};

/// One vector. False if nothing in it was wanted.
HWY_INLINE bool give_lanes(const float* row, ptrdiff_t at, Pending& pending, uint32_t* found) {
  const auto x = hn::LoadU(F(), row + at);
  auto hit = hn::Eq(x, hn::Set(F(), pending.value[0]));
  for (int k = 1; k < pending.count; ++k) hit = hn::Or(hit, hn::Eq(x, hn::Set(F(), pending.value[k])));
  if (hn::AllFalse(F(), hit)) return false;
  for (ptrdiff_t i = 0; i < kLanes && pending.count > 0; ++i) pending.give(row[at + i], at + i, found);
  return true;
}

/// Whole vectors only, until nothing is pending; returns how many elements it did.
ptrdiff_t FindVectors(const float* row, ptrdiff_t n, Pending& pending, uint32_t* found) {
  if (pending.count == 0) return n;
  Wanted wanted(pending);
  ptrdiff_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const float* at = row + i;
    const auto near = hn::Or(hn::Or(wanted.in_range(at), wanted.in_range(at + kLanes)),
                             hn::Or(wanted.in_range(at + 2 * kLanes), wanted.in_range(at + 3 * kLanes)));
    if (HWY_LIKELY(hn::AllFalse(F(), near))) continue;
    bool changed = false;
    for (ptrdiff_t v = 0; v < kVectors; ++v) {
      if (give_lanes(row, i + v * kLanes, pending, found)) changed = true;
      if (pending.count == 0) return n;
    }
    if (changed) wanted = Wanted(pending);
  }
  for (; i + kLanes <= n; i += kLanes) {
    give_lanes(row, i, pending, found);
    if (pending.count == 0) return n;
  }
  return i;
}

#else   // the static baseline: never called
ptrdiff_t OfferVectors(const float*, ptrdiff_t, Largest&) { return 0; }
ptrdiff_t FindVectors(const float*, ptrdiff_t, Pending&, uint32_t*) { return 0; }
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(OfferVectors);
HWY_EXPORT(FindVectors);

}  // namespace

void eight_largest(const float* row, ptrdiff_t n, float* out) {
  Largest largest;
  ptrdiff_t i = 0;
  if (simd_target() != SimdTarget::kScalar) i = HWY_DYNAMIC_DISPATCH(OfferVectors)(row, n, largest);
  for (; i < n; ++i) largest.offer(order_key(row[i]));
  for (int k = 0; k < kEight; ++k) out[k] = number_of(largest.best[k]);
}

void find_eight(const float* row, ptrdiff_t n, const float* wanted, uint32_t* found) {
  std::fill_n(found, kEight, kNotFound);
  Pending pending(wanted);
  ptrdiff_t i = 0;
  if (simd_target() != SimdTarget::kScalar) i = HWY_DYNAMIC_DISPATCH(FindVectors)(row, n, pending, found);
  for (; i < n && pending.count > 0; ++i) pending.give(row[i], i, found);
}

}  // namespace sterna
#endif  // HWY_ONCE
