// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/select.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/select.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

/// Whole vectors only; returns how many words it did.
ptrdiff_t SelectVectors(const uint32_t* where, const uint32_t* yes, const uint32_t* no, ptrdiff_t no_step, bool invert,
                        uint32_t* out, ptrdiff_t n) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<ptrdiff_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), one_no = hn::Set(d, *no);
  ptrdiff_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto off = hn::Eq(hn::LoadU(d, where + i), zero);
    const auto y = hn::LoadU(d, yes + i), x = no_step == 0 ? one_no : hn::LoadU(d, no + i);
    hn::StoreU(invert ? hn::IfThenElse(off, y, x) : hn::IfThenElse(off, x, y), d, out + i);
  }
  return i;
}
#else
ptrdiff_t SelectVectors(const uint32_t*, const uint32_t*, const uint32_t*, ptrdiff_t, bool, uint32_t*, ptrdiff_t) {
  return 0;
}
#endif
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
HWY_EXPORT(SelectVectors);

void select_row(const uint32_t* where, const uint32_t* yes, const uint32_t* no, ptrdiff_t no_step, bool invert,
                uint32_t* out, ptrdiff_t n) {
  if (n <= 0) return;
  const uint32_t one_no = *no;  // before out overwrites it
  ptrdiff_t i = 0;
  if (simd_target() != SimdTarget::kScalar)
    i = HWY_DYNAMIC_DISPATCH(SelectVectors)(where, yes, no_step == 0 ? &one_no : no, no_step, invert, out, n);
  for (; i < n; ++i) out[i] = (where[i] != 0) != invert ? yes[i] : (no_step == 0 ? one_no : no[i]);
}

}  // namespace sterna
#endif
