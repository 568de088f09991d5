// SPDX-License-Identifier: Apache-2.0
// Which SIMD target the row functions use. Every target gives the same bits as the scalar code, so this
// choice is about speed alone.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"

namespace sterna {

enum class SimdTarget : unsigned char { kScalar, kAvx2, kAvx512, kNeon };

namespace detail {
inline constexpr SimdTarget kSimdTargetUnset{255};
extern std::atomic<SimdTarget> simd_target_in_use;  ///< kSimdTargetUnset until the first question
SimdTarget choose_simd_target();                    ///< reads STERNA_SIMD; warns on stderr if it cannot be obeyed
}  // namespace detail

std::string_view name(SimdTarget target);
std::optional<SimdTarget> parse_simd_target(std::string_view text);
/// Targets this processor can run; kScalar is always first, the best last.
std::vector<SimdTarget> simd_targets();
/// The one in use: the best there is, unless STERNA_SIMD (scalar, avx2, avx512, neon) or set_simd_target says
/// otherwise.
inline SimdTarget simd_target() {
  // Acquire: whoever sees the choice also sees Highway's dispatch tables pointed at it.
  const SimdTarget target = detail::simd_target_in_use.load(std::memory_order_acquire);
  return target != detail::kSimdTargetUnset ? target : detail::choose_simd_target();
}
/// Not while another thread is inside a row or block function: that call may run on either target (with equal bits).
Status set_simd_target(SimdTarget target);

}  // namespace sterna
