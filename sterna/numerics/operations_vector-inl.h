// SPDX-License-Identifier: Apache-2.0
// The operation set of functions_formulas-inl.h on SIMD lanes, once for each target: include it inside a file's Highway
// loop (simd.h), after highway.h.
#if defined(STERNA_NUMERICS_OPERATIONS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STERNA_NUMERICS_OPERATIONS_VECTOR_INL_H_
#undef STERNA_NUMERICS_OPERATIONS_VECTOR_INL_H_
#else
#define STERNA_NUMERICS_OPERATIONS_VECTOR_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

/// One vector of fp32 lanes, and half as many fp64 lanes in a vector of the same size.
struct VectorOps {
  using TagF = hn::ScalableTag<float>;
  using TagU = hn::RebindToUnsigned<TagF>;
  using TagI = hn::RebindToSigned<TagF>;
  using TagD = hn::ScalableTag<double>;
  using TagQ = hn::RebindToUnsigned<TagD>;
  using TagHalf = hn::Half<TagF>;
  using F = hn::Vec<TagF>;
  using U = hn::Vec<TagU>;
  using D = hn::Vec<TagD>;
  using Q = hn::Vec<TagQ>;

  static HWY_INLINE F f(float v) { return hn::Set(TagF(), v); }
  static HWY_INLINE U u(uint32_t v) { return hn::Set(TagU(), v); }
  static HWY_INLINE D d(double v) { return hn::Set(TagD(), v); }
  static HWY_INLINE Q q(uint64_t v) { return hn::Set(TagQ(), v); }

  template <class V>
  static HWY_INLINE V add(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V sub(V a, V b) {
    return hn::Sub(a, b);
  }
  template <class V>
  static HWY_INLINE V mul(V a, V b) {
    return hn::Mul(a, b);
  }
  template <class V>
  static HWY_INLINE V div(V a, V b) {
    return hn::Div(a, b);
  }
  template <class V>
  static HWY_INLINE V fma(V a, V b, V c) {
    return hn::MulAdd(a, b, c);
  }
  template <class V>
  static HWY_INLINE V fnma(V a, V b, V c) {
    return hn::NegMulAdd(a, b, c);
  }
  template <class V>
  static HWY_INLINE V sqrt(V a) {
    return hn::Sqrt(a);
  }
  template <class V>
  static HWY_INLINE V min(V a, V b) {
    return hn::Min(a, b);
  }
  template <class V>
  static HWY_INLINE V max(V a, V b) {
    return hn::Max(a, b);
  }
  template <class V>
  static HWY_INLINE V abs(V a) {
    return hn::Abs(a);
  }
  template <class V>
  static HWY_INLINE V copy_sign(V magnitude, V sign) {
    return hn::CopySignToAbs(magnitude, sign);
  }
  template <class V>
  static HWY_INLINE auto lt(V a, V b) {
    return hn::Lt(a, b);
  }
  template <class V>
  static HWY_INLINE auto eq(V a, V b) {
    return hn::Eq(a, b);
  }
  template <class V>
  static HWY_INLINE auto is_nan(V a) {
    return hn::IsNaN(a);
  }
  template <class M, class V>
  static HWY_INLINE V select(M condition, V yes, V no) {
    return hn::IfThenElse(condition, yes, no);
  }
#if HWY_TARGET == HWY_AVX3
  // Single instructions of AVX-512 for what the formulas else build from several (within, times_power_of_two).
  static HWY_INLINE F within(F x, float limit) {
    return F{_mm512_range_ps(x.raw, _mm512_set1_ps(limit), 2)};  // the lesser magnitude, the sign of x
  }
  static HWY_INLINE F times_power_of_two(F p, F n) { return F{_mm512_scalef_ps(p.raw, n.raw)}; }
#endif
  static HWY_INLINE D select_if_odd(Q n, D odd, D even) {
    return hn::IfThenElse(hn::RebindMask(TagD(), hn::TestBit(n, hn::Set(TagQ(), 1))), odd, even);
  }

  static HWY_INLINE U bits(F v) { return hn::BitCast(TagU(), v); }
  static HWY_INLINE Q bits(D v) { return hn::BitCast(TagQ(), v); }
  static HWY_INLINE F from_bits(U v) { return hn::BitCast(TagF(), v); }
  static HWY_INLINE D from_bits(Q v) { return hn::BitCast(TagD(), v); }
  template <class V>
  static HWY_INLINE V iadd(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V isub(V a, V b) {
    return hn::Sub(a, b);
  }
  template <class V>
  static HWY_INLINE V iand(V a, V b) {
    return hn::And(a, b);
  }
  template <class V>
  static HWY_INLINE V ixor(V a, V b) {
    return hn::Xor(a, b);
  }
  template <int n, class V>
  static HWY_INLINE V shl(V a) {
    return hn::ShiftLeft<n>(a);
  }
  template <int n, class V>
  static HWY_INLINE V shr(V a) {
    return hn::ShiftRight<n>(a);
  }
  template <int n>
  static HWY_INLINE U sar(U a) {
    return hn::BitCast(TagU(), hn::ShiftRight<n>(hn::BitCast(TagI(), a)));
  }

  template <class Formula>
  static HWY_INLINE F wide(F x) {
    const D low = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::LowerHalf(TagHalf(), x)));
    const D high = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::UpperHalf(TagHalf(), x)));
    return hn::Combine(TagF(), hn::DemoteTo(TagHalf(), high), hn::DemoteTo(TagHalf(), low));
  }
  template <class Formula>
  static HWY_INLINE F wide(F x, F y) {
    const D low = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::LowerHalf(TagHalf(), x)),
                                                     hn::PromoteTo(TagD(), hn::LowerHalf(TagHalf(), y)));
    const D high = Formula::template apply<VectorOps>(hn::PromoteTo(TagD(), hn::UpperHalf(TagHalf(), x)),
                                                      hn::PromoteTo(TagD(), hn::UpperHalf(TagHalf(), y)));
    return hn::Combine(TagF(), hn::DemoteTo(TagHalf(), high), hn::DemoteTo(TagHalf(), low));
  }
};
#endif  // STERNA_SIMD_BODY
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
