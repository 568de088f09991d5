// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/dispatch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "sterna/base/text.h"
#include "sterna/numerics/simd.h"
// After simd.h, which says what Highway builds.
#include "hwy/targets.h"

namespace sterna {
namespace {

constexpr SimdTarget kAllTargets[] = {SimdTarget::kScalar, SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon};

#if HWY_ARCH_X86
// Asked once: each call of Highway 1.0.3's SupportedTargets also points its dispatch tables back at the best target.
int64_t highway_targets() {
  static const int64_t targets = hwy::SupportedTargets();
  return targets;
}
#endif

bool is_available(SimdTarget target) {
#if HWY_ARCH_X86
  if (target == SimdTarget::kAvx2) return (highway_targets() & HWY_AVX2) != 0;
  if (target == SimdTarget::kAvx512) return (highway_targets() & HWY_AVX3) != 0;
#elif HWY_ARCH_ARM_A64
  if (target == SimdTarget::kNeon) return true;  // part of the base architecture
#endif
  return target == SimdTarget::kScalar;
}

std::string available_text() {
  std::string out;
  for (const SimdTarget target : simd_targets()) {
    if (!out.empty()) out += ", ";
    out += name(target);
  }
  return out;
}

// Highway's tables first, our own word last: see simd_target().
void use(SimdTarget target) {
#if HWY_ARCH_X86
  // kScalar never reaches Highway, so its choice is then left alone. On other architectures a single target is
  // built and there is no table.
  if (target == SimdTarget::kAvx2) hwy::GetChosenTarget().Update(HWY_AVX2);
  if (target == SimdTarget::kAvx512) hwy::GetChosenTarget().Update(HWY_AVX3);
#endif
  detail::simd_target_in_use.store(target, std::memory_order_release);
}

SimdTarget from_environment() {
  const SimdTarget best = simd_targets().back();
  const char* wish = std::getenv("STERNA_SIMD");
  if (wish == nullptr || *wish == '\0') return best;
  const auto target = parse_simd_target(wish);
  if (target && is_available(*target)) return *target;
  const std::string warning =
      cat("sterna: warning: STERNA_SIMD=", wish, target ? " is not available on this processor" : " is unknown",
          "; available: ", available_text(), "; using ", name(best), ".\n");
  std::fputs(warning.c_str(), stderr);
  return best;
}

std::mutex& choice_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

namespace detail {

constinit std::atomic<SimdTarget> simd_target_in_use{kSimdTargetUnset};

SimdTarget choose_simd_target() {
  const std::lock_guard lock(choice_mutex());
  const SimdTarget chosen = simd_target_in_use.load(std::memory_order_acquire);
  if (chosen != kSimdTargetUnset) return chosen;  // another thread was first
  const SimdTarget target = from_environment();
  use(target);
  return target;
}

}  // namespace detail

std::string_view name(SimdTarget target) {
  switch (target) {
    case SimdTarget::kScalar: return "scalar";
    case SimdTarget::kAvx2: return "avx2";
    case SimdTarget::kAvx512: return "avx512";
    case SimdTarget::kNeon: return "neon";
  }
  return "unknown";
}

std::optional<SimdTarget> parse_simd_target(std::string_view text) {
  for (const SimdTarget target : kAllTargets)
    if (name(target) == text) return target;
  return std::nullopt;
}

std::vector<SimdTarget> simd_targets() {
  std::vector<SimdTarget> out;
  std::copy_if(std::begin(kAllTargets), std::end(kAllTargets), std::back_inserter(out), is_available);
  return out;
}

Status set_simd_target(SimdTarget target) {
  if (!is_available(target)) {
    return Fault(
        FaultKind::kBadInput, "",
        cat("SIMD target ", name(target), " is not available on this processor; available: ", available_text(), "."));
  }
  const std::lock_guard lock(choice_mutex());
  use(target);
  return {};
}

}  // namespace sterna
