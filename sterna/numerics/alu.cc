// SPDX-License-Identifier: Apache-2.0
#include "sterna/numerics/alu.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "sterna/numerics/functions.h"
#include "sterna/numerics/operations_scalar.h"

namespace sterna {
namespace {

#include "sterna/numerics/functions_formulas-inl.h"
#include "sterna/numerics/power_formula-inl.h"

struct OpInfo {
  AluOp op;
  std::string_view name;
};

// Names as in nki.language (SDK 2.32, "Supported Math Operators for NKI ISA"); arith_shift_right, average and bypass
// exist as constants only.
constexpr std::array<OpInfo, kAluOpCount> kOps{{
    {AluOp::kBypass, "bypass"},
    {AluOp::kAdd, "add"},
    {AluOp::kSubtract, "subtract"},
    {AluOp::kMultiply, "multiply"},
    {AluOp::kDivide, "divide"},
    {AluOp::kMaximum, "maximum"},
    {AluOp::kMinimum, "minimum"},
    {AluOp::kPower, "power"},
    {AluOp::kMod, "mod"},
    {AluOp::kFmod, "fmod"},
    {AluOp::kAbsMax, "abs_max"},
    {AluOp::kAbsMin, "abs_min"},
    {AluOp::kEqual, "equal"},
    {AluOp::kNotEqual, "not_equal"},
    {AluOp::kGreater, "greater"},
    {AluOp::kGreaterEqual, "greater_equal"},
    {AluOp::kLess, "less"},
    {AluOp::kLessEqual, "less_equal"},
    {AluOp::kLogicalAnd, "logical_and"},
    {AluOp::kLogicalOr, "logical_or"},
    {AluOp::kLogicalXor, "logical_xor"},
    {AluOp::kAverage, "average"},
    {AluOp::kAbs, "abs"},
    {AluOp::kSquare, "square"},
    {AluOp::kRelu, "relu"},
    {AluOp::kRsqrt, "rsqrt"},
    {AluOp::kReciprocal, "reciprocal"},
    {AluOp::kNegative, "negative"},
    {AluOp::kLogicalNot, "logical_not"},
    {AluOp::kSqrt, "sqrt"},
    {AluOp::kSign, "sign"},
    {AluOp::kFloor, "floor"},
    {AluOp::kCeil, "ceil"},
    {AluOp::kTrunc, "trunc"},
    {AluOp::kBitwiseAnd, "bitwise_and"},
    {AluOp::kBitwiseOr, "bitwise_or"},
    {AluOp::kBitwiseXor, "bitwise_xor"},
    {AluOp::kInvert, "invert"},
    {AluOp::kLeftShift, "left_shift"},
    {AluOp::kRightShift, "right_shift"},
    {AluOp::kArithRightShift, "arith_shift_right"},
}};

constexpr bool table_is_in_order() {
  for (size_t i = 0; i < kOps.size(); ++i)
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  return true;
}
static_assert(table_is_in_order(), "kOps must follow the order of AluOp");

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::bit_cast<float>(0x7fc00000u);

float truth(bool value) { return value ? 1.0f : 0.0f; }

float maximum(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  if (a == b) return std::signbit(a) ? b : a;  // equal values differ at most in the sign of zero
  return a > b ? a : b;
}

float minimum(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

float abs_max(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return std::fabs(a) > std::fabs(b) ? a : b;
}

float abs_min(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  return std::fabs(a) < std::fabs(b) ? a : b;
}

/// Python's %: the exact remainder of truncated division, moved into the divisor's half line by one rounded addition.
float floored_mod(float a, float b) {
  const float rest = std::fmod(a, b);
  if (std::isnan(rest)) return kNaN;
  if (rest == 0.0f) return std::copysign(0.0f, b);
  return std::signbit(rest) == std::signbit(b) ? rest : rest + b;
}

float sign_of(float a) {
  if (std::isnan(a)) return kNaN;
  return truth(a > 0.0f) - truth(a < 0.0f);
}

float evaluate_any_nan(AluOp op, float a, float b) {
  switch (op) {
    case AluOp::kBypass: return a;
    case AluOp::kAdd:
    case AluOp::kAverage: return a + b;
    case AluOp::kSubtract: return a - b;
    case AluOp::kMultiply: return a * b;
    case AluOp::kDivide: return a / b;
    case AluOp::kMaximum: return maximum(a, b);
    case AluOp::kMinimum: return minimum(a, b);
    case AluOp::kPower: return ScalarOps::wide<Power>(a, b);
    case AluOp::kMod: return floored_mod(a, b);
    case AluOp::kFmod: return std::fmod(a, b);
    case AluOp::kAbsMax: return abs_max(a, b);
    case AluOp::kAbsMin: return abs_min(a, b);
    case AluOp::kEqual: return truth(a == b);
    case AluOp::kNotEqual: return truth(a != b);
    case AluOp::kGreater: return truth(a > b);
    case AluOp::kGreaterEqual: return truth(a >= b);
    case AluOp::kLess: return truth(a < b);
    case AluOp::kLessEqual: return truth(a <= b);
    case AluOp::kLogicalAnd: return truth(a != 0.0f && b != 0.0f);
    case AluOp::kLogicalOr: return truth(a != 0.0f || b != 0.0f);
    case AluOp::kLogicalXor: return truth((a != 0.0f) != (b != 0.0f));
    case AluOp::kAbs: return std::fabs(a);
    case AluOp::kSquare: return a * a;
    case AluOp::kRelu: return maximum(a, 0.0f);
    case AluOp::kRsqrt: return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
    case AluOp::kReciprocal: return 1.0f / a;
    case AluOp::kNegative: return -a;
    case AluOp::kLogicalNot: return truth(a == 0.0f);
    case AluOp::kSqrt: return std::sqrt(a);
    case AluOp::kSign: return sign_of(a);
    case AluOp::kFloor: return std::floor(a);
    case AluOp::kCeil: return std::ceil(a);
    case AluOp::kTrunc: return std::trunc(a);
    case AluOp::kBitwiseAnd:
    case AluOp::kBitwiseOr:
    case AluOp::kBitwiseXor:
    case AluOp::kInvert:
    case AluOp::kLeftShift:
    case AluOp::kRightShift:
    case AluOp::kArithRightShift: break;  // these work on integers: alu_bits
  }
  return kNaN;
}

uint32_t arith_shift_right(uint32_t a, uint32_t b, int bits) {
  const int spare = 32 - bits;
  const auto value = static_cast<int32_t>(a << spare) >> spare;  // sign-extended
  return static_cast<uint32_t>(value >> (b < 31u ? b : 31u));
}

}  // namespace

std::string_view name(AluOp op) { return kOps[static_cast<size_t>(op)].name; }

std::optional<AluOp> parse_alu_op(std::string_view text) {
  for (const OpInfo& info : kOps)
    if (info.name == text) return info.op;
  return std::nullopt;
}

bool is_reduction(AluOp op) {
  switch (op) {
    case AluOp::kAdd:
    case AluOp::kMultiply:
    case AluOp::kMaximum:
    case AluOp::kMinimum:
    case AluOp::kAbsMax:
    case AluOp::kAbsMin:
    case AluOp::kLogicalAnd:
    case AluOp::kLogicalOr:
    case AluOp::kLogicalXor:
    case AluOp::kAverage:
    case AluOp::kBitwiseAnd:
    case AluOp::kBitwiseOr:
    case AluOp::kBitwiseXor: return true;
    default: return false;
  }
}

bool has_int_form(AluOp op) {
  switch (op) {
    case AluOp::kDivide:
    case AluOp::kMod:
    case AluOp::kFmod:
    case AluOp::kAverage:
    case AluOp::kRelu:
    case AluOp::kRsqrt:
    case AluOp::kReciprocal:
    case AluOp::kSqrt:
    case AluOp::kSign:
    case AluOp::kFloor:
    case AluOp::kCeil:
    case AluOp::kTrunc: return false;
    default: return true;
  }
}

float alu(AluOp op, float a, float b) {
  const float result = evaluate_any_nan(op, a, b);
  return std::isnan(result) ? kNaN : result;
}

uint32_t alu_bits(AluOp op, uint32_t a, uint32_t b, int bits) {
  const uint32_t mask = 0xffffffffu >> (32 - bits);
  const auto width = static_cast<uint32_t>(bits);
  a &= mask;
  b &= mask;
  switch (op) {
    case AluOp::kBypass: return a;
    case AluOp::kBitwiseAnd: return a & b;
    case AluOp::kBitwiseOr: return a | b;
    case AluOp::kBitwiseXor: return a ^ b;
    case AluOp::kInvert: return ~a & mask;
    case AluOp::kLeftShift: return b < width ? (a << b) & mask : 0u;
    case AluOp::kRightShift: return b < width ? a >> b : 0u;
    case AluOp::kArithRightShift: return arith_shift_right(a, b, bits) & mask;
    default: return 0;
  }
}

namespace {

/// a to the power b, modulo 2^32. A negative power of a whole number is a fraction, which becomes 0, but for 1 and -1.
uint32_t power(uint32_t a, uint32_t b, bool is_signed) {
  if (is_signed && (b >> 31) != 0) {
    if (a == 1 || a == 0xffffffffu) return (b & 1) != 0 ? a : 1;
    return 0;
  }
  uint32_t result = 1;
  for (; b != 0; b >>= 1, a *= a)
    if ((b & 1) != 0) result *= a;
  return result;
}

}  // namespace

uint32_t alu_int(AluOp op, uint32_t a, uint32_t b, bool is_signed) {
  const auto magnitude = [is_signed](uint32_t x) { return is_signed && (x >> 31) != 0 ? 0u - x : x; };
  // Flipping the sign bit maps signed order to unsigned order.
  const uint32_t flip = is_signed ? 0x80000000u : 0u;
  const bool less = (a ^ flip) < (b ^ flip);
  switch (op) {
    case AluOp::kBypass: return a;
    case AluOp::kAdd: return a + b;
    case AluOp::kSubtract: return a - b;
    case AluOp::kMultiply: return a * b;
    case AluOp::kMaximum: return less ? b : a;
    case AluOp::kMinimum: return less ? a : b;
    case AluOp::kEqual: return a == b;
    case AluOp::kNotEqual: return a != b;
    case AluOp::kGreater: return !less && a != b;
    case AluOp::kGreaterEqual: return !less;
    case AluOp::kLess: return less;
    case AluOp::kLessEqual: return less || a == b;
    case AluOp::kLogicalAnd: return a != 0 && b != 0;
    case AluOp::kLogicalOr: return a != 0 || b != 0;
    case AluOp::kLogicalXor: return (a != 0) != (b != 0);
    case AluOp::kAbs: return magnitude(a);
    case AluOp::kAbsMax: return magnitude(a) > magnitude(b) ? a : b;  // b on ties, as for floats
    case AluOp::kAbsMin: return magnitude(a) < magnitude(b) ? a : b;
    case AluOp::kPower: return power(a, b, is_signed);
    case AluOp::kSquare: return a * a;
    case AluOp::kNegative: return 0u - a;
    case AluOp::kLogicalNot: return a == 0;
    default: return alu_bits(op, a, b, 32);
  }
}

float reduction_identity(AluOp op) {
  switch (op) {
    case AluOp::kMultiply:
    case AluOp::kLogicalAnd: return 1.0f;
    case AluOp::kMaximum: return -kInfinity;
    case AluOp::kMinimum:
    case AluOp::kAbsMin: return kInfinity;
    case AluOp::kAdd:
    case AluOp::kAverage: return -0.0f;  // -0 + x is x for every x; +0 would turn a sum of -0 into +0
    default: return 0.0f;
  }
}

}  // namespace sterna
