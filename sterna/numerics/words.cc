// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/words.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/words.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

/// Whole vectors; returns how many elements that were.
template <class T, class Wide>
ptrdiff_t widen_vectors(const std::byte* from, uint32_t* out, ptrdiff_t n) {
  const hn::ScalableTag<Wide> wide;
  const hn::Rebind<T, hn::ScalableTag<Wide>> narrow;
  const auto lanes = static_cast<ptrdiff_t>(hn::MaxLanes(wide));
  ptrdiff_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const T*>(from) + i)), wide,
               reinterpret_cast<Wide*>(out) + i);
  return i;
}

ptrdiff_t WidenTwin(const std::byte* from, int bytes, bool is_signed, uint32_t* out, ptrdiff_t n) {
  if (bytes == 2)
    return is_signed ? widen_vectors<int16_t, int32_t>(from, out, n) : widen_vectors<uint16_t, uint32_t>(from, out, n);
  return is_signed ? widen_vectors<int8_t, int32_t>(from, out, n) : widen_vectors<uint8_t, uint32_t>(from, out, n);
}

/// DemoteTo saturates, so the bits above are cleared first; the words are then small positive numbers.
template <class T>
ptrdiff_t narrow_vectors(const uint32_t* in, std::byte* to, ptrdiff_t n) {
  const hn::ScalableTag<int32_t> wide;
  const hn::Rebind<T, hn::ScalableTag<int32_t>> narrow;
  const auto mask = hn::Set(wide, static_cast<int32_t>(static_cast<T>(~0u)));
  const auto lanes = static_cast<ptrdiff_t>(hn::MaxLanes(wide));
  ptrdiff_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(narrow, hn::And(hn::LoadU(wide, reinterpret_cast<const int32_t*>(in) + i), mask)), narrow,
               reinterpret_cast<T*>(to) + i);
  return i;
}

ptrdiff_t NarrowTwin(const uint32_t* in, std::byte* to, int bytes, ptrdiff_t n) {
  return bytes == 2 ? narrow_vectors<uint16_t>(in, to, n) : narrow_vectors<uint8_t>(in, to, n);
}

#else   // the static baseline: never called
ptrdiff_t WidenTwin(const std::byte*, int, bool, uint32_t*, ptrdiff_t) { return 0; }
ptrdiff_t NarrowTwin(const uint32_t*, std::byte*, int, ptrdiff_t) { return 0; }
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(WidenTwin);
HWY_EXPORT(NarrowTwin);

template <class T>
void widen(const std::byte* from, uint32_t* out, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<ptrdiff_t>(sizeof(T)), sizeof(T));
    out[i] = static_cast<uint32_t>(static_cast<int32_t>(value));
  }
}

template <class T>
void narrow(const uint32_t* in, std::byte* to, ptrdiff_t n) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    const auto value = static_cast<T>(in[i]);
    std::memcpy(to + i * static_cast<ptrdiff_t>(sizeof(T)), &value, sizeof(T));
  }
}

}  // namespace

void widen_words(const std::byte* from, int bytes, bool is_signed, uint32_t* out, ptrdiff_t n) {
  if (n <= 0) return;
  if (bytes == 4) {
    std::memcpy(out, from, static_cast<size_t>(n) * 4);
    return;
  }
  const ptrdiff_t done =
      simd_target() == SimdTarget::kScalar ? 0 : HWY_DYNAMIC_DISPATCH(WidenTwin)(from, bytes, is_signed, out, n);
  from += done * bytes;
  if (bytes == 2)
    return is_signed ? widen<int16_t>(from, out + done, n - done) : widen<uint16_t>(from, out + done, n - done);
  return is_signed ? widen<int8_t>(from, out + done, n - done) : widen<uint8_t>(from, out + done, n - done);
}

void narrow_words(const uint32_t* in, std::byte* to, int bytes, ptrdiff_t n) {
  if (n <= 0) return;
  if (bytes == 4) {
    std::memcpy(to, in, static_cast<size_t>(n) * 4);
    return;
  }
  const ptrdiff_t done = simd_target() == SimdTarget::kScalar ? 0 : HWY_DYNAMIC_DISPATCH(NarrowTwin)(in, to, bytes, n);
  to += done * bytes;
  return bytes == 2 ? narrow<uint16_t>(in + done, to, n - done) : narrow<uint8_t>(in + done, to, n - done);
}

}  // namespace sterna
#endif  // HWY_ONCE
