// SPDX-License-Identifier: Apache-2.0
// Vector loads of the formats that the product reads without decode_row. A .cc file includes
// this inside its Highway loop (simd.h), after highway.h.
#if defined(STERNA_NUMERICS_MATMUL_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STERNA_NUMERICS_MATMUL_LOAD_INL_H_
#undef STERNA_NUMERICS_MATMUL_LOAD_INL_H_
#else
#define STERNA_NUMERICS_MATMUL_LOAD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE::matmul_load {

#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);

HWY_INLINE Vector load_as_float(const float* p) { return hn::LoadU(Floats(), p); }
// The fp32 value of a bfloat16 is its bits moved up.
HWY_INLINE Vector load_as_float(const uint16_t* p) {
  const auto bits = hn::PromoteTo(hn::RebindToUnsigned<Floats>(), hn::LoadU(hn::Rebind<uint16_t, Floats>(), p));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(bits));
}

#endif

}  // namespace sterna::HWY_NAMESPACE::matmul_load
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
