// SPDX-License-Identifier: Apache-2.0
// The operators of alu.h on one vector, once for each SIMD target. Each is a type with `apply`; every result, NaN
// included, has the bits of the scalar function alu(). A .cc file includes this inside its Highway loop (simd.h), after
// highway.h.
#if defined(STERNA_NUMERICS_ALU_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STERNA_NUMERICS_ALU_OPS_INL_H_
#undef STERNA_NUMERICS_ALU_OPS_INL_H_
#else
#define STERNA_NUMERICS_ALU_OPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE::ops {

#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;
using M = hn::Mask<F>;
inline constexpr ptrdiff_t kLanes = static_cast<ptrdiff_t>(hn::MaxLanes(F()));  // every built target has a fixed width

HWY_INLINE V nan_vector() { return hn::BitCast(F(), hn::Set(hn::RebindToUnsigned<F>(), 0x7fc00000u)); }

HWY_INLINE V canonical(V v) { return hn::IfThenElse(hn::IsNaN(v), nan_vector(), v); }
HWY_INLINE M either_nan(V a, V b) { return hn::Or(hn::IsNaN(a), hn::IsNaN(b)); }
HWY_INLINE V truth(M m) { return hn::IfThenElseZero(m, hn::Set(F(), 1.0f)); }
HWY_INLINE M is_zero(V v) { return hn::Eq(v, hn::Zero(F())); }

struct Add {
  static HWY_INLINE V apply(V a, V b) { return canonical(hn::Add(a, b)); }
};
struct Subtract {
  static HWY_INLINE V apply(V a, V b) { return canonical(hn::Sub(a, b)); }
};
struct Multiply {
  static HWY_INLINE V apply(V a, V b) { return canonical(hn::Mul(a, b)); }
};
struct Divide {
  static HWY_INLINE V apply(V a, V b) { return canonical(hn::Div(a, b)); }
};

// x86's max returns its second operand for zeros of either sign, so the two orders together hold both signs: AND keeps
// +0 (maximum), OR keeps -0 (minimum). Elsewhere both orders agree. NaN is put in last.
struct Maximum {
  static HWY_INLINE V apply(V a, V b) {
    return hn::IfThenElse(either_nan(a, b), nan_vector(), hn::And(hn::Max(a, b), hn::Max(b, a)));
  }
};
struct Minimum {
  static HWY_INLINE V apply(V a, V b) {
    return hn::IfThenElse(either_nan(a, b), nan_vector(), hn::Or(hn::Min(a, b), hn::Min(b, a)));
  }
};
struct AbsMax {
  static HWY_INLINE V apply(V a, V b) {
    const V chosen = hn::IfThenElse(hn::Gt(hn::Abs(a), hn::Abs(b)), a, b);
    return hn::IfThenElse(either_nan(a, b), nan_vector(), chosen);
  }
};
struct AbsMin {
  static HWY_INLINE V apply(V a, V b) {
    const V chosen = hn::IfThenElse(hn::Lt(hn::Abs(a), hn::Abs(b)), a, b);
    return hn::IfThenElse(either_nan(a, b), nan_vector(), chosen);
  }
};

struct Equal {
  static HWY_INLINE V apply(V a, V b) { return truth(hn::Eq(a, b)); }
};
// Not hn::Ne: on x86 it is an ordered comparison and calls NaN equal to everything.
struct NotEqual {
  static HWY_INLINE V apply(V a, V b) { return hn::IfThenZeroElse(hn::Eq(a, b), hn::Set(F(), 1.0f)); }
};
struct Greater {
  static HWY_INLINE V apply(V a, V b) { return truth(hn::Gt(a, b)); }
};
struct GreaterEqual {
  static HWY_INLINE V apply(V a, V b) { return truth(hn::Ge(a, b)); }
};

struct LogicalAnd {
  static HWY_INLINE V apply(V a, V b) { return hn::IfThenZeroElse(hn::Or(is_zero(a), is_zero(b)), hn::Set(F(), 1.0f)); }
};
struct LogicalOr {
  static HWY_INLINE V apply(V a, V b) {
    return hn::IfThenZeroElse(hn::And(is_zero(a), is_zero(b)), hn::Set(F(), 1.0f));
  }
};
struct LogicalXor {
  static HWY_INLINE V apply(V a, V b) { return truth(hn::Xor(is_zero(a), is_zero(b))); }
};

/// Op with its operands exchanged.
template <class Op>
struct Swapped {
  static HWY_INLINE V apply(V a, V b) { return Op::apply(b, a); }
};

// Unary operators take the unused second operand so that one loop serves all.
struct Bypass {
  static HWY_INLINE V apply(V a, V) { return canonical(a); }
};
struct Abs {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Abs(a)); }
};
struct Square {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Mul(a, a)); }
};
struct Relu {
  static HWY_INLINE V apply(V a, V) { return Maximum::apply(a, hn::Zero(F())); }
};
struct Reciprocal {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Div(hn::Set(F(), 1.0f), a)); }
};
struct Negative {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Neg(a)); }
};
struct LogicalNot {
  static HWY_INLINE V apply(V a, V) { return truth(is_zero(a)); }
};
struct Sqrt {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Sqrt(a)); }
};
struct Floor {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Floor(a)); }
};
struct Ceil {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Ceil(a)); }
};
struct Trunc {
  static HWY_INLINE V apply(V a, V) { return canonical(hn::Trunc(a)); }
};
struct Sign {
  static HWY_INLINE V apply(V a, V) {
    const V zero = hn::Zero(F()), one = hn::Set(F(), 1.0f), minus_one = hn::Set(F(), -1.0f);
    const V value = hn::IfThenElse(hn::Gt(a, zero), one, hn::IfThenElseZero(hn::Lt(a, zero), minus_one));
    return hn::IfThenElse(hn::IsNaN(a), nan_vector(), value);
  }
};
struct Rsqrt {
  static HWY_INLINE V apply(V a, V) {
    using HalfF = hn::Half<F>;
    using W = hn::Rebind<double, HalfF>;
    const auto half = [](hn::Vec<HalfF> x) HWY_ATTR {
      return hn::DemoteTo(HalfF(), hn::Div(hn::Set(W(), 1.0), hn::Sqrt(hn::PromoteTo(W(), x))));
    };
    const auto low = half(hn::LowerHalf(HalfF(), a));
    const auto high = half(hn::UpperHalf(HalfF(), a));
    return canonical(hn::Combine(F(), high, low));
  }
};

/// The first `count` (1..kLanes) elements at `p`; the other lanes are zero. Reads nothing beyond them.
HWY_INLINE V load_first(const float* p, ptrdiff_t count) {
#if HWY_TARGET == HWY_NEON  // no masked memory access
  float buffer[kLanes] = {};
  for (ptrdiff_t i = 0; i < count; ++i) buffer[i] = p[i];
  return hn::LoadU(F(), buffer);
#else
  return hn::MaskedLoad(hn::FirstN(F(), static_cast<size_t>(count)), F(), p);
#endif
}

/// Writes the first `count` lanes and nothing beyond them.
HWY_INLINE void store_first(V v, float* p, ptrdiff_t count) {
#if HWY_TARGET == HWY_NEON
  float buffer[kLanes];
  hn::StoreU(v, F(), buffer);
  for (ptrdiff_t i = 0; i < count; ++i) p[i] = buffer[i];
#else
  hn::BlendedStore(v, hn::FirstN(F(), static_cast<size_t>(count)), F(), p);
#endif
}
#endif  // STERNA_SIMD_BODY

}  // namespace sterna::HWY_NAMESPACE::ops
HWY_AFTER_NAMESPACE();

#endif  // include guard
