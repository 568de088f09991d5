// SPDX-License-Identifier: Apache-2.0
// The activation functions: scalar definition and block form of equal bits.
//
// Accuracy (design, section 4): within 1 ulp of the correctly rounded fp32 result inside the documented range, over
// which functions_test checks them; outside it the mathematical value, but for sine outside [-pi, pi], where the
// hardware's polynomial is imitated. NaN results are 7fc00000, except that kCopy keeps every bit, the payload of a NaN
// included. kPrelu takes no slope here and is relu; the instruction refuses it (rule ACT2).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "sterna/numerics/alu.h"

namespace sterna {

enum class Function : uint8_t {
  kCopy,
  kSquare,
  kSigmoid,
  kRelu,
  kPrelu,
  kGelu,
  kGeluDx,
  kGeluApprxTanh,
  kGeluApprxSigmoid,
  kGeluApprxSigmoidDx,
  kSilu,
  kSiluDx,
  kTanh,
  kSoftplus,
  kMish,
  kErf,
  kErfDx,
  kExp,
  kLog,
  kSin,
  kArctan,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kSign,
  kAbs,
  kSinFull,  ///< sine with range reduction (nl.sin); kSin is the raw instruction
  kCos,
  kTan,
};
inline constexpr int kFunctionCount = 29;

std::string_view name(Function f);  ///< as in nki.language: "exp", "gelu_apprx_tanh", ...; "sin_full" for kSinFull
std::optional<Function> parse_function(std::string_view text);
/// Documented input range [low, high]; outside it the hardware's result is not valid.
struct FunctionRange {
  float low, high;
  float hole = 0;  ///< |x| below this is not valid either
  bool limited() const { return low > -std::numeric_limits<float>::infinity(); }
  /// False for NaN, which no function makes worse.
  bool excludes(float x) const { return (x < low) | (x > high) | (std::fabs(x) < hole); }
};
/// Source: "Supported Activation Functions" of the NKI documentation. Functions without a row there are valid
/// everywhere.
inline FunctionRange documented_range(Function f) {
  constexpr float kPi = 3.14159274F;
  switch (f) {
    case Function::kLog: return {0x1p-64F, 0x1p64F};
    case Function::kSin: return {-kPi, kPi};
    case Function::kArctan: return {-kPi / 2, kPi / 2};
    case Function::kSqrt: return {0x1p-116F, 0x1p118F};
    case Function::kRsqrt: return {0x1p-87F, 0x1p97F};
    case Function::kReciprocal: return {-0x1p42F, 0x1p42F, 0x1p-42F};
    default: return {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  }
}

float evaluate(Function f, float x);

/// d[r][c] = f(a[r][c]). In place allowed.
void function_block(Function f, ConstBlock a, Block d, ptrdiff_t rows, ptrdiff_t cols);

}  // namespace sterna
