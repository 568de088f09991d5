// SPDX-License-Identifier: Apache-2.0
// How a file of numerics/ writes SIMD. Include this before any Highway header.
//
// Only targets with a true fused multiply-add are built (AVX2, AVX-512, NEON). Everything else runs the scalar
// definition, whose std::fma gives the same bits. A file `x.cc` looks like this:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "sterna/numerics/x.cc"
//   #include "sterna/numerics/simd.h"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace sterna::HWY_NAMESPACE {
//   namespace hn = hwy::HWY_NAMESPACE;
//   #if STERNA_SIMD_BODY
//   void Twin(...) { ... }          // hn::ScalableTag<float>; 4 (NEON), 8 (AVX2) or 16 (AVX-512) lanes
//   #else
//   void Twin(...) {}               // static baseline target: never called
//   #endif
//   }  // namespace
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace sterna {
//   HWY_EXPORT(Twin);
//   void public_function(...) {
//     if (simd_target() == SimdTarget::kScalar) return scalar_definition(...);
//     HWY_DYNAMIC_DISPATCH(Twin)(...);
//   }
//   }
//   #endif
//
// Allowed: loads, stores, integer arithmetic and shifts, compares, selects, float add/sub/mul/div/sqrt/MulAdd, min/max
// with explicit NaN handling, fp32 <-> integer conversions in range, fp32 <-> fp64. Not allowed: DemoteTo bfloat16
// (Debian's 1.0.3 truncates), approximate reciprocals, hwy/contrib/math.
#ifndef STERNA_NUMERICS_SIMD_H_
#define STERNA_NUMERICS_SIMD_H_

#define HWY_DISABLED_TARGETS                                                                                   \
  (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3 | HWY_SVE2_128 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE | HWY_RVV | HWY_PPC8 | \
   HWY_WASM_EMU256 | HWY_WASM)

// Every 64-bit Arm has NEON, so nothing is detected there. Without this, Highway would compile its NEON code for
// "+crypto", which some processors lack and which g++ refuses to inline into the implicit constructors of our structs.
#if defined(__aarch64__) && !defined(TOOLCHAIN_MISS_SYS_AUXV_H)
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif

#include "sterna/numerics/dispatch.h"

#endif  // STERNA_NUMERICS_SIMD_H_

// Re-evaluated for every target, so outside the guard.
#undef STERNA_SIMD_BODY
#define STERNA_SIMD_BODY (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON)
