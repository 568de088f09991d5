// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that move or fill (copies also run on other engines).
#pragma once

#include <cmath>
#include <cstring>
#include <iterator>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/convert.h"
#include "sterna/numerics/select.h"

namespace sterna::vector_engine {

/// dst = src, converted to dst's type; equal types keep bits, integer types convert exactly with saturation.
///
/// Shapes  dst, src: equal element counts in a partition, equal partitions
/// Rules   P1 P2 PACK1 SHAPE1 SHAPE2 ENG1 ENG2
/// Source  nki.isa.tensor_copy (SDK 2.32)
struct TensorCopy {
  static constexpr Info info{"tensor_copy", 0x12, "dst = src, converted to dst's type", "nki.isa.tensor_copy",
                             "dst src"};
  View dst, src;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = TensorCopy;
    return std::tuple{out("dst", &I::dst, "result tile"), in("src", &I::src, "input tile"),
                      option("engine", &I::engine, "engine to run on")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_moved_tile(r, src, "src"));
    STERNA_TRY(check_packed_move(dst, src));
    STERNA_TRY(fit(r, src, dst, "src"));
    if (engine == EngineId::kUnknown) engine = EngineId::kVector;
    STERNA_TRY(check_engine(r, engine, {EngineId::kVector, EngineId::kScalar, EngineId::kGpSimd}, {&dst, &src}));
    STERNA_TRY(check_scatter(engine, dst));
    if (engine == EngineId::kGpSimd && (dst.kind == ViewKind::kIndirect || src.kind == ViewKind::kIndirect))
      return Fault(FaultKind::kRuleBroken, "TI5",
                   "tensor_copy with .indirect() runs on the vector or scalar engine, not on gpsimd.");
    if (engine == EngineId::kScalar && !r.chip->features.copy_on_scalar)
      return Fault(FaultKind::kNotOnThisChip, "ENG3",
                   "tensor_copy on the scalar engine does not exist on this chip; use the vector engine.");
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_BIND(s, m.read_any(src, "src"));
    STERNA_BIND(d, m.open(dst, "dst"));
    STERNA_TRY(copy_elements(m, d, s));
    m.copy_definedness(dst, src);
    note_copy(m, {dst, d}, {src, s});
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, engine, {&dst, &src}); }
};

/// Every element of dst becomes `value`.
///
/// Types   the value's type must match dst's: a fraction for an integer dst is rounded to nearest even (NaN to 0) with
///         a remark, a number that rounds beyond dst's range is refused
/// Rules   P1 P2 ENG1 ENG2 ARG3 MEMSET1 (packed types: 0 only) MEMSET2 (the value is one of dst's)
/// Source  nki.isa.memset (SDK 2.32)
struct Memset {
  static constexpr Info info{"memset", 0x13, "every element of dst becomes value", "nki.isa.memset"};
  View dst;
  Scalar value = Scalar::of(0.0);
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = Memset;
    return std::tuple{out("dst", &I::dst, "tile to fill"), in("value", &I::value, "immediate"),
                      option("engine", &I::engine, "engine to run on")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    if (value.is_view || value.is_none)
      return Fault(FaultKind::kWrongType, "ARG3", "'value' of memset must be a number.");
    if (is_packed(dst.dtype) && value.value != 0)
      return Fault(FaultKind::kRuleBroken, "MEMSET1", cat("memset of ", name(dst.dtype), " takes the value 0 only."));
    STERNA_TRY(check_value(r));
    if (engine == EngineId::kUnknown) engine = EngineId::kVector;
    return check_engine(r, engine, {EngineId::kVector, EngineId::kGpSimd}, {&dst});
  }
  Status check_value(const Rules& r) const {
    const double v = value.value, whole = std::nearbyint(v);
    if (!is_integer(dst.dtype)) return {};
    if (std::isnan(v))
      return r.compat("MEMSET2", cat("'value' of an ", name(dst.dtype), " tile is NaN, which becomes 0."));
    const auto [low, high] = integer_range(dst.dtype);
    if ((whole < low || whole > high) && dst.dtype != DType::kBool)
      return Fault(FaultKind::kRuleBroken, "MEMSET2",
                   cat("'value' of an ", name(dst.dtype), " tile is ", low, " to ", high, ", not ", v, "."));
    if (v == whole) return {};
    return r.compat("MEMSET2", cat("'value' of an ", name(dst.dtype), " tile is a whole number, not ", v,
                                   "; it is rounded to nearest even."));
  }
  Status execute(Machine& m) const {
    STERNA_BIND(d, m.write(dst, "dst"));
    const uint32_t bits = value_bits(dst.dtype, value.value);
    over_rows(m, d.rows, d.cols, [&](int64_t begin, int64_t end) {
      auto* words = reinterpret_cast<uint32_t*>(piece_scratch(0));
      const int64_t step = std::min(kPiece, d.cols);
      std::fill_n(words, step, bits);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t c = 0; c < d.cols; c += step) {
          const int64_t n = std::min(step, d.cols - c);
          if (d.unit && size_of(d.dtype) == 4)
            std::memcpy(d.row(row) + c * 4, words, static_cast<size_t>(n) * 4);
          else
            store_bits(d, row, c, n, words);
        }
    });
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, engine, {&dst});
    if (value.value == 0 && size_of(dst.dtype) == 2 && is_float(dst.dtype))
      w.fast_cases |= bit(FastCase::kZeroSixteenBit);
    return w;
  }
};

/// dst = src where predicate is not zero (zero, with reverse_pred), defined where src is; elsewhere dst keeps its value
/// and its definedness.
///
/// Shapes  dst, predicate: [P, N]; src: a tile of that shape or a number
/// Types   predicate uint8, uint16 or uint32; src of dst's type keeps bits, another integer type is converted exactly,
/// floats
///         through fp32
/// Rules   P1 P2 SHAPE1 SHAPE2 BUF1 (src, predicate) PRED1 (predicate type) PRED2 (src has dst's type) ARG2
/// Source  nki.isa.tensor_copy_predicated (SDK 2.32)
struct TensorCopyPredicated {
  static constexpr Info info{"tensor_copy_predicated", 0x16, "dst = src where predicate, else unchanged",
                             "nki.isa.tensor_copy_predicated", "dst predicate"};
  View dst;
  Scalar src;
  View predicate;
  bool reverse_pred = false;

  static constexpr auto fields() {
    using I = TensorCopyPredicated;
    return std::tuple{inout("dst", &I::dst, "tile to change"), in("src", &I::src, "tile or number"),
                      in("predicate", &I::predicate, "unsigned integers: where to copy"),
                      option("reverse_pred", &I::reverse_pred, "copy where predicate is zero")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, predicate, "predicate"));
    STERNA_TRY(fit(r, predicate, dst, "predicate"));
    if (src.is_none) return Fault(FaultKind::kWrongType, "ARG2", "'src' is missing.");
    const DType t = predicate.dtype;
    if (is_float(t))
      return Fault(FaultKind::kRuleBroken, "PRED1",
                   cat("'predicate' must be uint8, uint16 or uint32, not ", name(t), "."));
    if (t != DType::kUInt8 && t != DType::kUInt16 && t != DType::kUInt32)
      STERNA_TRY(r.compat("PRED1", cat("'predicate' must be uint8, uint16 or uint32, not ", name(t), ".")));
    if (!src.is_view) return check_number(r);
    STERNA_TRY(check_moved_tile(r, src.view, "src"));
    STERNA_TRY(check_packed_move(dst, src.view));
    STERNA_TRY(fit(r, src.view, dst, "src"));
    STERNA_TRY(check_not_both_psum(src.view, predicate, "src", "predicate"));
    if (src.view.dtype != dst.dtype)
      return r.compat(
          "PRED2", cat("'src' is ", name(src.view.dtype), " and dst ", name(dst.dtype), "; they must have one type."));
    return {};
  }
  /// PACK1, PRED4 (compat): a number is one of dst's, as in memset.
  Status check_number(const Rules& r) const {
    const double v = src.value, whole = std::nearbyint(v);
    if (is_packed(dst.dtype) && v != 0)
      return Fault(FaultKind::kRuleBroken, "PACK1", cat("A number for ", name(dst.dtype), " elements is 0."));
    if (!is_integer(dst.dtype) || dst.dtype == DType::kBool) return {};
    const auto [low, high] = integer_range(dst.dtype);
    if (v == whole && whole >= low && whole <= high) return {};
    return r.compat("PRED4", cat("'src' for an ", name(dst.dtype), " tile is a whole number from ", low, " to ", high,
                                 ", not ", v, "; the nearest is taken, 0 for NaN."));
  }
  Status execute(Machine& m) const {
    Operand s;
    if (src.is_view) {
      STERNA_ASSIGN(s, m.read_any(src.view, "src"));
    }
    STERNA_BIND(p, m.read(predicate, "predicate"));
    STERNA_BIND(d, m.open(dst, "dst"));
    const std::vector<ElementState> from =
        src.is_view ? m.element_states_if_partial(src.view) : std::vector<ElementState>{};
    std::array<Snapshot, 2> snapshots;
    if (src.is_view)
      take_snapshots(m, snapshots, d, s, p);
    else if (snapshots[0].take(d, p))
      warn_aliased(m);
    const bool simple = from.empty() && !m.has_element_states(dst);  // everything was defined and stays so
    std::vector<ElementState> states(simple ? 0 : static_cast<size_t>(d.rows * d.cols), ElementState::kKeep);
    std::vector<uint32_t> keep(static_cast<size_t>(d.cols)), value(keep.size()), where(keep.size());
    if (!src.is_view) std::fill(value.begin(), value.end(), value_bits(dst.dtype, src.value));
    const bool integers = src.is_view && is_integer(s.dtype) && is_integer(d.dtype);  // as exact as a copy
    std::vector<float> converted(src.is_view && s.dtype != d.dtype && !integers ? keep.size() : 0);
    // Words that lie as words are chosen where they lie.
    const auto in_words = [](const Operand& o) { return o.unit && size_of(o.dtype) == 4 && o.row_offsets == nullptr; };
    if (simple && in_words(p) && in_words(d) && (!src.is_view || (s.dtype == d.dtype && in_words(s)))) {
      const auto words = [](const Operand& o, int64_t row) { return reinterpret_cast<uint32_t*>(o.row(row)); };
      for (int64_t row = 0; row < d.rows; ++row)
        select_row(words(p, row), src.is_view ? words(s, row) : value.data(), words(d, row), 1, reverse_pred,
                   words(d, row), d.cols);
      return {};
    }
    for (int64_t row = 0; row < d.rows; ++row) {
      load_bits(p, row, 0, d.cols, where.data());
      load_bits(d, row, 0, d.cols, keep.data());
      if (src.is_view && converted.empty()) load_bits(s, row, 0, d.cols, value.data());
      if (integers && s.dtype != d.dtype) convert_integers(s.dtype, d.dtype, value.data(), value.data(), d.cols);
      if (!converted.empty()) {
        load_row(s, row, 0, d.cols, converted.data());
        for (size_t i = 0; i < value.size(); ++i) value[i] = from_float_bits(dst.dtype, converted[i]);
      }
      select_row(where.data(), value.data(), keep.data(), 1, reverse_pred, keep.data(), d.cols);
      store_bits(d, row, 0, d.cols, keep.data());
      for (size_t i = 0; i < keep.size() && !simple; ++i) {
        const size_t at = static_cast<size_t>(row * d.cols) + i;
        if ((where[i] != 0) != reverse_pred) states[at] = from.empty() ? ElementState::kDefined : from[at];
      }
    }
    if (!states.empty()) m.mark_elements(dst, states);
    return {};
  }
  Work work(const Rules& r) const {
    return src.is_view ? count_elements(r, EngineId::kVector, {&dst, &src.view, &predicate})
                       : count_elements(r, EngineId::kVector, {&dst, &predicate});
  }
};

/// In each group of 32 partitions, dst's partition i takes src's partition shuffle_mask[i]; 255 leaves dst's partition
/// alone.
///
/// Shapes  dst, src: [P, N], N equal
/// Rules   P1 P2 SHUF1 (equal types) SHUF2 (start partitions) SHUF3 (the mask stays inside src) SHAPE2
/// Source  nki.isa.nc_stream_shuffle (SDK 2.32)
struct NcStreamShuffle {
  static constexpr Info info{"nc_stream_shuffle", 0x17, "partitions are permuted inside groups of 32",
                             "nki.isa.nc_stream_shuffle"};
  static constexpr int64_t kGroup = std::size(Lanes32{}.lane);
  static constexpr uint8_t kLeave = 255;
  View dst, src;
  Lanes32 shuffle_mask;

  static constexpr auto fields() {
    using I = NcStreamShuffle;
    return std::tuple{inout("dst", &I::dst, "result tile"), in("src", &I::src, "input tile"),
                      option("shuffle_mask", &I::shuffle_mask, "32 source partitions; 255 leaves one alone")};
  }
  /// The partition of src that goes to partition `row` of dst, or -1.
  int64_t source(int64_t row) const {
    const uint8_t lane = shuffle_mask.lane[row % kGroup];
    return lane == kLeave ? -1 : row / kGroup * kGroup + lane;
  }
  Status check_start(const Rules& r, const View& v, std::string_view what) const {
    const int64_t active = (std::max(src.rows(), dst.rows()) + kGroup - 1) / kGroup * kGroup;
    if (active == 0) return {};
    const int64_t all = r.chip->limits.partitions;
    const int64_t step = active > all / 2 ? all : active;
    const int64_t start = v.partition + (r.tensor(v).has_address ? r.tensor(v).address_partition : 0);
    if (start % step == 0) return {};
    return Fault(FaultKind::kRuleBroken, "SHUF2",
                 cat("'", what, "' starts at partition ", start, "; with ", active,
                     " active partitions it must start at a multiple of ", step, "."));
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_moved_tile(r, src, "src"));
    if (dst.dtype != src.dtype)
      return Fault(FaultKind::kRuleBroken, "SHUF1",
                   cat("nc_stream_shuffle does not convert: dst is ", name(dst.dtype), ", src ", name(src.dtype), "."));
    if (dst.cols() != src.cols())
      return Fault(FaultKind::kRuleBroken, "SHAPE2",
                   cat("'src' ", shape_text(src), " has ", src.cols(), " elements in a partition, the result ",
                       shape_text(dst), " has ", dst.cols(), "."));
    STERNA_TRY(check_start(r, dst, "dst"));
    STERNA_TRY(check_start(r, src, "src"));
    for (int64_t row = 0; row < dst.rows(); ++row) {
      const int lane = shuffle_mask.lane[row % kGroup];
      if (lane != kLeave && (lane >= kGroup || source(row) >= src.rows()))
        return Fault(FaultKind::kRuleBroken, "SHUF3",
                     cat("shuffle_mask[", row % kGroup, "] is ", lane, ", which gives partition ", source(row),
                         " of src ", shape_text(src), "; use 0 to ", kGroup - 1, " inside src, or 255."));
    }
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_BIND(s, m.read_any(src, "src"));
    STERNA_BIND(d, m.open(dst, "dst"));
    const std::vector<ElementState> from = m.element_states_if_partial(src);
    Snapshot snapshot;
    if (s.storage->defined == d.storage->defined) snapshot.copy(s);
    std::vector<uint32_t> row_bits(static_cast<size_t>(d.cols));
    const bool simple = from.empty() && !m.has_element_states(dst);  // everything was defined and stays so
    std::vector<ElementState> states(simple ? 0 : static_cast<size_t>(d.rows * d.cols), ElementState::kKeep);
    for (int64_t row = 0; row < d.rows; ++row) {
      const int64_t at = source(row);
      if (at < 0) continue;
      load_bits(s, at, 0, d.cols, row_bits.data());
      store_bits(d, row, 0, d.cols, row_bits.data());
      for (int64_t c = 0; c < d.cols && !simple; ++c)
        states[static_cast<size_t>(row * d.cols + c)] =
            from.empty() ? ElementState::kDefined : from[static_cast<size_t>(at * d.cols + c)];
    }
    if (!simple) m.mark_elements(dst, states);
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &src}); }
};

using Moves = InstructionList<TensorCopy, Memset, TensorCopyPredicated, NcStreamShuffle>;

}  // namespace sterna::vector_engine
