// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "sterna/numerics/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/dispatch_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
int64_t WhichTarget() { return HWY_TARGET; }
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
HWY_EXPORT(WhichTarget);

namespace {

/// Puts the environment and the choice back as they were.
class Dispatch : public testing::Test {
 protected:
  void SetUp() override {
    before_ = simd_target();
    if (const char* wish = std::getenv("STERNA_SIMD")) wish_ = wish;
  }
  void TearDown() override {
    if (wish_)
      setenv("STERNA_SIMD", wish_->c_str(), 1);
    else
      unsetenv("STERNA_SIMD");
    ASSERT_TRUE(set_simd_target(before_));
  }

  /// What a fresh process would choose and print, asking twice.
  static SimdTarget fresh_choice(const char* wish, std::string* warnings) {
    if (wish != nullptr)
      setenv("STERNA_SIMD", wish, 1);
    else
      unsetenv("STERNA_SIMD");
    detail::simd_target_in_use = detail::kSimdTargetUnset;
    testing::internal::CaptureStderr();
    const SimdTarget first = simd_target();
    EXPECT_EQ(simd_target(), first);
    *warnings = testing::internal::GetCapturedStderr();
    return first;
  }

 private:
  SimdTarget before_ = SimdTarget::kScalar;
  std::optional<std::string> wish_;
};

TEST_F(Dispatch, NamesParseBack) {
  for (const SimdTarget t : {SimdTarget::kScalar, SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon})
    EXPECT_EQ(parse_simd_target(name(t)), t);
  EXPECT_EQ(name(SimdTarget::kAvx512), "avx512");
  EXPECT_FALSE(parse_simd_target("AVX2"));
  EXPECT_FALSE(parse_simd_target(""));
}

TEST_F(Dispatch, ScalarIsFirstAndNothingRepeats) {
  const auto targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets.front(), SimdTarget::kScalar);
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end()));
  EXPECT_EQ(std::adjacent_find(targets.begin(), targets.end()), targets.end());
#if defined(__aarch64__)
  EXPECT_EQ(targets.back(), SimdTarget::kNeon);
#elif defined(__x86_64__)
  // The compiler's own view of the processor. Highway's AVX3 asks for these subsets too.
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  EXPECT_EQ(std::count(targets.begin(), targets.end(), SimdTarget::kAvx2), has_avx2);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), SimdTarget::kAvx512), has_avx512);
#endif
}

TEST_F(Dispatch, SettingATargetMovesHighwayThere) {
  for (const SimdTarget target : simd_targets()) {
    ASSERT_TRUE(set_simd_target(target));
    EXPECT_EQ(simd_target(), target);
    EXPECT_FALSE(simd_targets().empty());  // a question, which must not move anything
    const int64_t used = HWY_DYNAMIC_DISPATCH(WhichTarget)();
    const int64_t wanted = target == SimdTarget::kAvx2 ? HWY_AVX2 : target == SimdTarget::kAvx512 ? HWY_AVX3 : HWY_NEON;
    if (target != SimdTarget::kScalar) {
      EXPECT_EQ(used, wanted);
    }
  }
}

TEST_F(Dispatch, AnUnavailableTargetIsRefusedAndChangesNothing) {
  const auto targets = simd_targets();
  for (const SimdTarget t : {SimdTarget::kAvx2, SimdTarget::kAvx512, SimdTarget::kNeon}) {
    if (std::find(targets.begin(), targets.end(), t) != targets.end()) continue;
    const SimdTarget before = simd_target();
    Status status = set_simd_target(t);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, FaultKind::kBadInput);
    EXPECT_NE(status.error().message.find("available: scalar"), std::string::npos) << status.error().message;
    EXPECT_EQ(simd_target(), before);
  }
}

TEST_F(Dispatch, EnvironmentIsObeyed) {
  std::string warnings;
  for (const SimdTarget target : simd_targets()) {
    EXPECT_EQ(fresh_choice(std::string(name(target)).c_str(), &warnings), target);
    EXPECT_EQ(warnings, "");
  }
  EXPECT_EQ(fresh_choice(nullptr, &warnings), simd_targets().back());
  EXPECT_EQ(warnings, "");
  EXPECT_EQ(fresh_choice("", &warnings), simd_targets().back());
  EXPECT_EQ(warnings, "");
}

TEST_F(Dispatch, AnImpossibleWishWarnsOnceAndTakesTheBest) {
#if defined(__aarch64__)
  const char* impossible = "avx2";
#else
  const char* impossible = "neon";
#endif
  for (const char* wish : {"sse9", impossible}) {
    std::string warnings;
    EXPECT_EQ(fresh_choice(wish, &warnings), simd_targets().back());
    EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1) << warnings;
    EXPECT_NE(warnings.find(wish), std::string::npos) << warnings;
    for (const SimdTarget target : simd_targets())
      EXPECT_NE(warnings.find(name(target), warnings.find("available: ")), std::string::npos) << warnings;
  }
}

}  // namespace
}  // namespace sterna
#endif  // HWY_ONCE
