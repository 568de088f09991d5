// SPDX-License-Identifier: Apache-2.0
// Rows of raw 32-bit words: block forms of alu_bits and alu_int, which are the definition. The operator is chosen once,
// outside the loops.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sterna/numerics/alu_words.cc"
#include "sterna/numerics/simd.h"
// After simd.h, once for each target.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "sterna/numerics/alu.h"

HWY_BEFORE_NAMESPACE();
namespace sterna::HWY_NAMESPACE {
#if STERNA_SIMD_BODY
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<int32_t>;
using Unsigned = hn::RebindToUnsigned<Tag>;
using Word = hn::Vec<Tag>;
inline constexpr ptrdiff_t kWordLanes = static_cast<ptrdiff_t>(hn::MaxLanes(Tag()));

HWY_INLINE Word word(uint32_t v) { return hn::Set(Tag(), static_cast<int32_t>(v)); }
HWY_INLINE Word load(const uint32_t* at) { return hn::LoadU(Tag(), reinterpret_cast<const int32_t*>(at)); }
HWY_INLINE void store(Word v, uint32_t* at) { hn::StoreU(v, Tag(), reinterpret_cast<int32_t*>(at)); }
template <class M>
HWY_INLINE Word truth(M m) {
  return hn::IfThenElseZero(m, word(1));
}
HWY_INLINE auto is_zero(Word v) { return hn::Eq(v, hn::Zero(Tag())); }

// The operators. Each is made once a row from the type's size or sign.

struct WordType {
  uint32_t mask;  ///< the bits of the type
  uint32_t flip;  ///< maps the type's order to signed order
  int bits;
  bool is_signed;
};

#define STERNA_WORD_OP(Name, expression)               \
  struct Name {                                        \
    explicit Name(const WordType&) {}                  \
    HWY_INLINE Word operator()(Word a, Word b) const { \
      (void)b;                                         \
      return expression;                               \
    }                                                  \
  }
STERNA_WORD_OP(IntBypass, a);
STERNA_WORD_OP(IntAdd, hn::Add(a, b));
STERNA_WORD_OP(IntSubtract, hn::Sub(a, b));
STERNA_WORD_OP(IntMultiply, hn::Mul(a, b));
STERNA_WORD_OP(IntEqual, truth(hn::Eq(a, b)));
STERNA_WORD_OP(IntNotEqual, hn::IfThenZeroElse(hn::Eq(a, b), word(1)));
STERNA_WORD_OP(IntAnd, hn::IfThenZeroElse(hn::Or(is_zero(a), is_zero(b)), word(1)));
STERNA_WORD_OP(IntOr, hn::IfThenZeroElse(is_zero(hn::Or(a, b)), word(1)));
STERNA_WORD_OP(IntXor, truth(hn::Xor(is_zero(a), is_zero(b))));
STERNA_WORD_OP(IntSquare, hn::Mul(a, a));
STERNA_WORD_OP(IntNegative, hn::Sub(hn::Zero(Tag()), a));
STERNA_WORD_OP(IntNot, truth(is_zero(a)));
#undef STERNA_WORD_OP

struct IntAbs {
  bool is_signed;
  explicit IntAbs(const WordType& t) : is_signed(t.is_signed) {}
  HWY_INLINE Word operator()(Word a, Word) const { return is_signed ? hn::Abs(a) : a; }
};

/// Those that depend on the order of values.
struct Ordered {
  uint32_t flip;
  explicit Ordered(const WordType& t) : flip(t.flip) {}
  HWY_INLINE auto less(Word a, Word b) const { return hn::Lt(hn::Xor(a, word(flip)), hn::Xor(b, word(flip))); }
};
struct IntMaximum : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return hn::IfThenElse(less(a, b), b, a); }
};
struct IntMinimum : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return hn::IfThenElse(less(a, b), a, b); }
};
struct IntGreater : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return truth(less(b, a)); }
};
struct IntGreaterEqual : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return hn::IfThenZeroElse(less(a, b), word(1)); }
};
struct IntLess : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return truth(less(a, b)); }
};
struct IntLessEqual : Ordered {
  using Ordered::Ordered;
  HWY_INLINE Word operator()(Word a, Word b) const { return hn::IfThenZeroElse(less(b, a), word(1)); }
};

/// Bit operators see the bits of the type only.
struct Masked {
  uint32_t mask;
  int bits;
  explicit Masked(const WordType& t) : mask(t.mask), bits(t.bits) {}
  HWY_INLINE Word keep(Word v) const { return hn::And(v, word(mask)); }
};
struct BitsBypass : Masked {
  using Masked::Masked;
  HWY_INLINE Word operator()(Word a, Word) const { return keep(a); }
};
struct BitsAnd : Masked {
  using Masked::Masked;
  HWY_INLINE Word operator()(Word a, Word b) const { return keep(hn::And(a, b)); }
};
struct BitsOr : Masked {
  using Masked::Masked;
  HWY_INLINE Word operator()(Word a, Word b) const { return keep(hn::Or(a, b)); }
};
struct BitsXor : Masked {
  using Masked::Masked;
  HWY_INLINE Word operator()(Word a, Word b) const { return keep(hn::Xor(a, b)); }
};
struct BitsInvert : Masked {
  using Masked::Masked;
  HWY_INLINE Word operator()(Word a, Word) const { return keep(hn::Not(a)); }
};
// Processors differ on counts beyond the size, so the count is bounded and the result chosen apart.
struct Shift : Masked {
  using Masked::Masked;
  /// bits is a power of two, so a count below it has no higher bit.
  HWY_INLINE auto in_range(Word b) const { return is_zero(hn::And(b, word(~static_cast<uint32_t>(bits - 1)))); }
  HWY_INLINE Word count(Word b) const { return hn::And(b, word(31)); }
};
struct LeftShift : Shift {
  using Shift::Shift;
  HWY_INLINE Word operator()(Word a, Word b) const {
    b = keep(b);
    return hn::IfThenElseZero(in_range(b), keep(hn::Shl(a, count(b))));
  }
};
struct RightShift : Shift {
  using Shift::Shift;
  HWY_INLINE Word operator()(Word a, Word b) const {
    b = keep(b);
    const auto shifted = hn::Shr(hn::BitCast(Unsigned(), keep(a)), hn::BitCast(Unsigned(), count(b)));
    return hn::IfThenElseZero(in_range(b), hn::BitCast(Tag(), shifted));
  }
};
struct ArithRightShift : Shift {
  using Shift::Shift;
  HWY_INLINE Word operator()(Word a, Word b) const {
    b = keep(b);
    const Word extended = hn::ShiftRightSame(hn::ShiftLeftSame(a, 32 - bits), 32 - bits);
    return keep(hn::Shr(extended, hn::IfThenElse(in_range(b), count(b), word(31))));
  }
};

/// d = op(a, b) for a whole vector or more, where either operand may be one repeated word.
template <class Op, bool kOneA, bool kOneB>
void word_loop(const Op& op, const uint32_t* a, const uint32_t* b, uint32_t* d, ptrdiff_t n) {
  const Word sa = word(*a), sb = word(*b);
  const auto at = [&](ptrdiff_t i) HWY_ATTR { return op(kOneA ? sa : load(a + i), kOneB ? sb : load(b + i)); };
  // The last vector overlaps the one before it. It is computed first because d may be a or b.
  const Word last = at(n - kWordLanes);
  for (ptrdiff_t i = 0; i + kWordLanes <= n; i += kWordLanes) store(at(i), d + i);
  store(last, d + n - kWordLanes);
}

template <class Op>
void words_as(const WordType& type, Words a, Words b, uint32_t* d, ptrdiff_t n) {
  const Op op(type);
  if (a.repeated) return word_loop<Op, true, false>(op, a.data, b.data, d, n);
  if (b.repeated) return word_loop<Op, false, true>(op, a.data, b.data, d, n);
  word_loop<Op, false, false>(op, a.data, b.data, d, n);
}

void BitsTwin(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, int bits) {
  const WordType type{0xffffffffu >> (32 - bits), 0, bits, false};
  switch (op) {
    case AluOp::kBitwiseAnd: return words_as<BitsAnd>(type, a, b, d, n);
    case AluOp::kBitwiseOr: return words_as<BitsOr>(type, a, b, d, n);
    case AluOp::kBitwiseXor: return words_as<BitsXor>(type, a, b, d, n);
    case AluOp::kInvert: return words_as<BitsInvert>(type, a, b, d, n);
    case AluOp::kLeftShift: return words_as<LeftShift>(type, a, b, d, n);
    case AluOp::kRightShift: return words_as<RightShift>(type, a, b, d, n);
    case AluOp::kArithRightShift: return words_as<ArithRightShift>(type, a, b, d, n);
    default: return words_as<BitsBypass>(type, a, b, d, n);
  }
}

void IntTwin(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, bool is_signed) {
  const WordType type{0xffffffffu, is_signed ? 0u : 0x80000000u, 32, is_signed};
  switch (op) {
    case AluOp::kAdd: return words_as<IntAdd>(type, a, b, d, n);
    case AluOp::kSubtract: return words_as<IntSubtract>(type, a, b, d, n);
    case AluOp::kMultiply: return words_as<IntMultiply>(type, a, b, d, n);
    case AluOp::kMaximum: return words_as<IntMaximum>(type, a, b, d, n);
    case AluOp::kMinimum: return words_as<IntMinimum>(type, a, b, d, n);
    case AluOp::kEqual: return words_as<IntEqual>(type, a, b, d, n);
    case AluOp::kNotEqual: return words_as<IntNotEqual>(type, a, b, d, n);
    case AluOp::kGreater: return words_as<IntGreater>(type, a, b, d, n);
    case AluOp::kGreaterEqual: return words_as<IntGreaterEqual>(type, a, b, d, n);
    case AluOp::kLess: return words_as<IntLess>(type, a, b, d, n);
    case AluOp::kLessEqual: return words_as<IntLessEqual>(type, a, b, d, n);
    case AluOp::kLogicalAnd: return words_as<IntAnd>(type, a, b, d, n);
    case AluOp::kLogicalOr: return words_as<IntOr>(type, a, b, d, n);
    case AluOp::kLogicalXor: return words_as<IntXor>(type, a, b, d, n);
    case AluOp::kAbs: return words_as<IntAbs>(type, a, b, d, n);
    case AluOp::kSquare: return words_as<IntSquare>(type, a, b, d, n);
    case AluOp::kNegative: return words_as<IntNegative>(type, a, b, d, n);
    case AluOp::kLogicalNot: return words_as<IntNot>(type, a, b, d, n);
    default: return words_as<IntBypass>(type, a, b, d, n);
  }
}

#else   // the static baseline: never called
inline constexpr ptrdiff_t kWordLanes = 1;
void BitsTwin(AluOp, Words, Words, uint32_t*, ptrdiff_t, int) {}
void IntTwin(AluOp, Words, Words, uint32_t*, ptrdiff_t, bool) {}
#endif  // STERNA_SIMD_BODY

ptrdiff_t FewestWords() { return kWordLanes; }
}  // namespace sterna::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sterna {
namespace {

HWY_EXPORT(BitsTwin);
HWY_EXPORT(IntTwin);
HWY_EXPORT(FewestWords);

template <class F>
void by_definition(Words a, Words b, uint32_t* d, ptrdiff_t n, const F& f) {
  const uint32_t first_a = *a.data, first_b = *b.data;  // d may be either
  for (ptrdiff_t i = 0; i < n; ++i) d[i] = f(a.repeated ? first_a : a.data[i], b.repeated ? first_b : b.data[i]);
}

/// The twins take a vector or more, and a row on at least one side.
bool suits_twin(Words a, Words b, ptrdiff_t n) {
  return simd_target() != SimdTarget::kScalar && !(a.repeated && b.repeated) &&
         n >= HWY_DYNAMIC_DISPATCH(FewestWords)();
}

bool in_bits(AluOp op) { return is_bitwise(op) || op == AluOp::kBypass; }

/// Operators on whole numbers that are rare enough to be computed one by one.
bool has_int_twin(AluOp op) {
  return has_int_form(op) && op != AluOp::kPower && op != AluOp::kAbsMax && op != AluOp::kAbsMin;
}

}  // namespace

void alu_bits_block(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, int bits) {
  if (n <= 0) return;
  if (in_bits(op) && suits_twin(a, b, n)) return HWY_DYNAMIC_DISPATCH(BitsTwin)(op, a, b, d, n, bits);
  by_definition(a, b, d, n, [=](uint32_t x, uint32_t y) { return alu_bits(op, x, y, bits); });
}

void alu_int_block(AluOp op, Words a, Words b, uint32_t* d, ptrdiff_t n, bool is_signed) {
  if (is_bitwise(op)) return alu_bits_block(op, a, b, d, n, 32);
  if (n <= 0) return;
  if (has_int_twin(op) && suits_twin(a, b, n)) return HWY_DYNAMIC_DISPATCH(IntTwin)(op, a, b, d, n, is_signed);
  by_definition(a, b, d, n, [=](uint32_t x, uint32_t y) { return alu_int(op, x, y, is_signed); });
}

}  // namespace sterna
#endif  // HWY_ONCE
