// SPDX-License-Identifier: Apache-2.0
// Instructions of the GpSimd engine.
#pragma once

#include <bit>
#include <cmath>

#include "sterna/base/text.h"
#include "sterna/isa/accumulators.h"
#include "sterna/isa/gpsimd_gather.h"
#include "sterna/isa/gpsimd_topk.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/convert.h"
#include "sterna/numerics/select.h"

namespace sterna::gpsimd_engine {

/// The affine part of iota and affine_select for one partition: sum of step * index for each element, outermost index
/// first, modulo 2^32 as 32-bit integers wrap.
inline std::vector<uint32_t> pattern_row(const Pattern& pattern) {
  std::vector<uint32_t> row{0};
  for (int k = 0; k < pattern.n; ++k) {
    const auto step = static_cast<uint32_t>(pattern.steps[k].step);
    std::vector<uint32_t> wider;
    wider.reserve(row.size() * static_cast<size_t>(std::max(0, pattern.steps[k].count)));
    for (uint32_t base : row)
      for (int32_t i = 0; i < pattern.steps[k].count; ++i) wider.push_back(base + static_cast<uint32_t>(i) * step);
    row = std::move(wider);
  }
  return row;
}

inline bool in_32_bits(double v) { return v >= INT32_MIN && v <= UINT32_MAX; }
/// IOTA3: an immediate is a whole number of 32 bits, with or without a sign.
inline Status check_whole(const Rules& r, const Scalar& scalar, std::string_view what) {
  if (scalar.is_view) return {};
  const double v = scalar.value;
  if (!in_32_bits(v))
    return Fault(FaultKind::kRuleBroken, "IOTA3", cat("'", what, "' must be a whole number of 32 bits, not ", v, "."));
  if (v == std::floor(v)) return {};
  return r.compat("IOTA3", cat("'", what, "' must be a whole number, not ", v, ". It is rounded to nearest even."));
}
/// A whole number given as an immediate or as a tensor of one element (IOTA3 if it is none): its low 32 bits.
inline Result<uint32_t> whole_number(Machine& m, const Scalar& scalar) {
  if (!scalar.is_view) return integer_bits(scalar.value < 0 ? DType::kInt32 : DType::kUInt32, scalar.value);
  STERNA_ASSIGN(const int64_t value, m.read_index({DynamicOffset::Source::kTensor, 0, scalar.view, 1, 0}, 0));
  if (!is_float(scalar.view.dtype)) return static_cast<uint32_t>(value);
  STERNA_ASSIGN(Operand o, m.read(scalar.view, "offset"));  // an index is not negative; this may be
  float x = 0;
  load_row(o, 0, 0, 1, &x);
  if (!in_32_bits(x))
    return Fault(FaultKind::kBadInput, "IOTA3", cat("A whole number of 32 bits is needed, not ", x, "."));
  return integer_bits(x < 0 ? DType::kInt32 : DType::kUInt32, x);
}
/// start + row * step, modulo 2^32.
inline uint32_t row_start(uint32_t start, int64_t row, int32_t step) {
  return start + static_cast<uint32_t>(row) * static_cast<uint32_t>(step);
}

/// IOTA1: the pattern covers a partition of dst. IOTA2: its counts are positive.
inline Status check_pattern(const Pattern& pattern, const View& dst) {
  for (int k = 0; k < pattern.n; ++k)
    if (pattern.steps[k].count <= 0)
      return Fault(FaultKind::kRuleBroken, "IOTA2",
                   cat("A pattern's counts are positive; number ", k, " is ", pattern.steps[k].count, "."));
  if (pattern.elements() != dst.cols())
    return Fault(FaultKind::kRuleBroken, "IOTA1",
                 cat("The pattern covers ", pattern.elements(), " elements, dst ", shape_text(dst), " has ", dst.cols(),
                     " in a partition."));
  return {};
}

inline Status check_gpsimd(const Rules& r, std::initializer_list<const View*> views) {
  return check_engine(r, EngineId::kGpSimd, {EngineId::kGpSimd}, views);
}

/// dst[p, i...] = offset + p * channel_multiplier + sum of step * index, in 32-bit integers that wrap, converted to
/// dst.
///
/// Rules   P1 P2 ENG2 IOTA1 (pattern covers dst) IOTA2 (positive counts) IOTA3 (offset is a whole number)
/// Source  nki.isa.iota (SDK 2.32)
struct Iota {
  static constexpr Info info{"iota", 0xa0, "dst = offset + p * channel_multiplier + affine pattern", "nki.isa.iota"};
  View dst;
  Pattern pattern;
  Scalar offset = Scalar::of(0.0);
  int32_t channel_multiplier = 0;

  static constexpr auto fields() {
    using I = Iota;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("pattern", &I::pattern, "[[step, count], ...], outermost first"),
                      in("offset", &I::offset, "start"),
                      option("channel_multiplier", &I::channel_multiplier, "step from one partition to the next")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_gpsimd(r, {&dst}));
    STERNA_TRY(check_whole(r, offset, "offset"));
    return check_pattern(pattern, dst);
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(const uint32_t start, whole_number(m, offset));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    const std::vector<uint32_t> affine = pattern_row(pattern);
    const bool whole = is_integer(dst.dtype) && size_of(dst.dtype) == 4;
    std::vector<float> row(whole ? 0 : affine.size());
    std::vector<uint32_t> words(whole ? affine.size() : 0);
    for (int64_t p = 0; p < d.rows; ++p) {
      const uint32_t base = row_start(start, p, channel_multiplier);
      for (size_t i = 0; i < words.size(); ++i) words[i] = base + affine[i];
      for (size_t i = 0; i < row.size(); ++i) row[i] = to_float_bits(DType::kInt32, base + affine[i]);
      if (whole)
        store_bits(d, p, 0, d.cols, words.data());
      else
        store_row(d, p, 0, d.cols, row.data());
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kGpSimd, {&dst}); }
};

/// dst = on_true_tile where cmp_op(offset + p * channel_multiplier + affine pattern, 0), else on_false_value.
///
/// Types   the comparison is of 32-bit integers; equal types keep bits, others go through fp32
/// Rules   P1 P2 ENG2 SHAPE1 SHAPE2 IOTA1 IOTA2 IOTA3 AFF1 (a comparison)
/// Source  nki.isa.affine_select (SDK 2.32)
struct AffineSelect {
  static constexpr Info info{"affine_select", 0xa1, "dst = on_true_tile where an affine value compares with 0",
                             "nki.isa.affine_select"};
  View dst;
  Pattern pattern;
  int32_t channel_multiplier = 0;
  View on_true_tile;
  Scalar on_false_value = Scalar::of(0.0);
  AluOp cmp_op = AluOp::kEqual;
  Scalar offset = Scalar::of(0.0);

  static constexpr auto fields() {
    using I = AffineSelect;
    return std::tuple{out("dst", &I::dst, "result tile"),
                      option("pattern", &I::pattern, "[[step, count], ...], outermost first"),
                      option("channel_multiplier", &I::channel_multiplier, "step from one partition to the next"),
                      in("on_true_tile", &I::on_true_tile, "input tile"),
                      in("on_false_value", &I::on_false_value, "fp32 immediate"),
                      option("cmp_op", &I::cmp_op, "comparison with 0"),
                      in("offset", &I::offset, "start")};
  }
  static bool is_comparison(AluOp op) { return op >= AluOp::kEqual && op <= AluOp::kLessEqual; }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, on_true_tile, "on_true_tile"));
    STERNA_TRY(fit(r, on_true_tile, dst, "on_true_tile"));
    STERNA_TRY(check_gpsimd(r, {&dst, &on_true_tile}));
    if (!is_comparison(cmp_op))
      return Fault(FaultKind::kRuleBroken, "AFF1", cat("'cmp_op' is ", name(cmp_op), ", which does not compare."));
    if (on_false_value.is_view || on_false_value.is_none)
      return Fault(FaultKind::kWrongType, "ARG3", "'on_false_value' of affine_select must be a number.");
    STERNA_TRY(check_whole(r, offset, "offset"));
    return check_pattern(pattern, dst);
  }
  template <class Compare>
  static void compare(const std::vector<uint32_t>& affine, uint32_t base, std::vector<uint32_t>& mask, Compare holds) {
    const uint32_t* from = affine.data();
    uint32_t* to = mask.data();
    for (size_t i = 0, n = affine.size(); i < n; ++i) to[i] = holds(static_cast<int32_t>(base + from[i]));
  }
  void fill_mask(const std::vector<uint32_t>& affine, uint32_t base, std::vector<uint32_t>& mask) const {
    switch (cmp_op) {
      case AluOp::kEqual: return compare(affine, base, mask, [](int32_t v) { return v == 0; });
      case AluOp::kNotEqual: return compare(affine, base, mask, [](int32_t v) { return v != 0; });
      case AluOp::kGreater: return compare(affine, base, mask, [](int32_t v) { return v > 0; });
      case AluOp::kGreaterEqual: return compare(affine, base, mask, [](int32_t v) { return v >= 0; });
      case AluOp::kLess: return compare(affine, base, mask, [](int32_t v) { return v < 0; });
      default: return compare(affine, base, mask, [](int32_t v) { return v <= 0; });
    }
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(const uint32_t start, whole_number(m, offset));
    STERNA_ASSIGN(Operand a, m.read(on_true_tile, "on_true_tile"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    const std::vector<uint32_t> affine = pattern_row(pattern);
    const bool same = a.dtype == d.dtype;
    const auto other = static_cast<float>(on_false_value.value);
    const uint32_t other_bits = same ? value_bits(d.dtype, other) : std::bit_cast<uint32_t>(other);
    over_rows(
        m, d.rows, d.cols,
        [&](int64_t begin, int64_t end) {
          std::vector<uint32_t> mask(affine.size()), words(affine.size());
          auto* floats = reinterpret_cast<float*>(words.data());
          for (int64_t p = begin; p < end; ++p) {
            fill_mask(affine, row_start(start, p, channel_multiplier), mask);
            if (same)
              load_bits(a, p, 0, d.cols, words.data());
            else
              load_row(a, p, 0, d.cols, floats);
            select_row(mask.data(), words.data(), &other_bits, 0, false, words.data(), d.cols);
            if (same)
              store_bits(d, p, 0, d.cols, words.data());
            else
              store_row(d, p, 0, d.cols, floats);
          }
        },
        rows_may_meet(d));
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kGpSimd, {&dst, &on_true_tile}); }
};

/// dst[0, i] = reduction of data[p, i] over the partitions p, ascending.
///
/// Types   fp32, converted once; 32-bit integers throughout: exact integers, as for tensor_tensor on GpSimd; bit
/// operators keep bits Rules   P1 P2 ENG2 PRED3 (one partition) SHAPE4 RED7 RED1 (add average maximum bitwise_or
/// bitwise_and) TYPE1 Source  nki.isa.tensor_partition_reduce (SDK 2.32)
struct TensorPartitionReduce {
  static constexpr Info info{"tensor_partition_reduce", 0xa2, "dst = reduction of data over partitions",
                             "nki.isa.tensor_partition_reduce"};
  View dst;
  AluOp op = AluOp::kAdd;
  View data;

  static constexpr auto fields() {
    using I = TensorPartitionReduce;
    return std::tuple{out("dst", &I::dst, "[1, N]"), option("op", &I::op, "reduction"),
                      in("data", &I::data, "input tile [P, N]")};
  }
  bool in_integers() const {
    auto wide = [](const View& v) { return is_integer(v.dtype) && size_of(v.dtype) == 4; };
    return is_bitwise(op) || (wide(dst) && wide(data) && op != AluOp::kAverage);
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_gpsimd(r, {&dst, &data}));
    if (dst.rows() != 1)
      return Fault(FaultKind::kRuleBroken, "PRED3", cat("dst ", shape_text(dst), " must have one partition."));
    STERNA_TRY(check_cols(dst, data.cols(), "dst"));
    STERNA_TRY(check_reduced(data, data.rows()));
    STERNA_TRY(check_reduce_op(
        op, {AluOp::kAdd, AluOp::kAverage, AluOp::kMaximum, AluOp::kBitwiseOr, AluOp::kBitwiseAnd}, "op"));
    return is_bitwise(op) ? check_bits(r, {&dst, &data}, op) : Status{};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    return in_integers() ? reduce_integers(d, a) : reduce_floats(d, a);
  }
  Status reduce_integers(const Operand& d, const Operand& a) const {
    std::vector<uint32_t> total(static_cast<size_t>(a.cols)), row(total.size());
    load_bits(a, 0, 0, a.cols, total.data());
    for (int64_t p = 1; p < a.rows; ++p) {
      load_bits(a, p, 0, a.cols, row.data());
      for (size_t i = 0; i < row.size(); ++i) total[i] = alu_int(op, total[i], row[i], sterna::info(a.dtype).is_signed);
    }
    store_bits(d, 0, 0, d.cols, total.data());
    return {};
  }
  Status reduce_floats(const Operand& d, const Operand& a) const {
    for (int64_t c = 0; c < a.cols; c += kPiece) {
      const int64_t n = std::min(kPiece, a.cols - c);
      float *total = piece_scratch(0), *row = piece_scratch(1);
      load_row(a, 0, c, n, total);
      for (int64_t p = 1; p < a.rows; ++p) {
        const ConstBlock x = load_piece(a, p, 1, c, n, row);
        alu_block(op, {total, n}, x, {total, n}, 1, n);
      }
      const auto count = static_cast<float>(a.rows);
      if (op == AluOp::kAverage) alu_block_scalar(AluOp::kDivide, {total, n}, &count, 0, false, {total, n}, 1, n);
      store_row(d, 0, c, n, total);
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kGpSimd, {&dst, &data}); }
};

/// For each element of a row of segment ids: where its segment (a run of equal ids) begins and where it ends (one past
/// the last). Id 0 is padding: n and -1.
///
/// Shapes  segment_ids: [1, N]; dst: [1, 2, N], begins then ends
/// Rules   P1 P2 ENG2 SEQ1 (one partition) SEQ2 (types) SHAPE4
/// Source  nki.isa.sequence_bounds (SDK 2.32)
struct SequenceBounds {
  static constexpr Info info{"sequence_bounds", 0xa5, "begin and end of each element's segment",
                             "nki.isa.sequence_bounds"};
  View dst, segment_ids;

  static constexpr auto fields() {
    using I = SequenceBounds;
    return std::tuple{out("dst", &I::dst, "[1, 2, N]"), in("segment_ids", &I::segment_ids, "[1, N], 0 is padding")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, segment_ids, "segment_ids"));
    STERNA_TRY(check_gpsimd(r, {&dst, &segment_ids}));
    for (const View* v : {&dst, &segment_ids}) {
      if (v->rows() != 1)
        return Fault(FaultKind::kRuleBroken, "SEQ1",
                     cat("sequence_bounds works on one partition, not ", v->rows(), "."));
      if (v->dtype != DType::kFloat32 && v->dtype != DType::kInt32)
        return Fault(FaultKind::kRuleBroken, "SEQ2",
                     cat("sequence_bounds takes float32 and int32, not ", name(v->dtype), "."));
    }
    return check_cols(dst, 2 * segment_ids.cols(), "dst");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(segment_ids, "segment_ids"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    const int64_t n = a.cols;
    std::vector<uint32_t> id(static_cast<size_t>(n));
    std::vector<float> bounds(static_cast<size_t>(2 * n));
    load_bits(a, 0, 0, n, id.data());
    auto padding = [&](int64_t i) {
      return a.dtype == DType::kFloat32 ? (id[static_cast<size_t>(i)] << 1) == 0 : id[static_cast<size_t>(i)] == 0;
    };
    for (int64_t begin = 0, end; begin < n; begin = end) {
      for (end = begin + 1; end < n && id[static_cast<size_t>(end)] == id[static_cast<size_t>(begin)];) ++end;
      std::fill_n(bounds.begin() + begin, end - begin, static_cast<float>(padding(begin) ? n : begin));
      std::fill_n(bounds.begin() + n + begin, end - begin, static_cast<float>(padding(begin) ? -1 : end));
    }
    store_row(d, 0, 0, 2 * n, bounds.data());
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kGpSimd, {&dst, &segment_ids});
    w.elements = static_cast<double>(segment_ids.cols());
    return w;
  }
};

/// On partitions 0, 16, 32, ...: the places of src's non-zero elements plus index_offset, then padding_val, and in the
/// last element how many there are. The other partitions of dst stay as they are.
///
/// Shapes  src: [P, N]; dst: [P, N + 1]
/// Rules   P1 P2 ENG2 SHAPE1 SHAPE4 NZ1 (types) IOTA3 (index_offset and padding_val are whole numbers)
/// Source  nki.isa.nonzero_with_count (SDK 2.32)
struct NonzeroWithCount {
  static constexpr Info info{"nonzero_with_count", 0xa6, "where elements are not zero, and how many",
                             "nki.isa.nonzero_with_count"};
  View dst, src;
  Scalar index_offset = Scalar::of(0.0), padding_val = Scalar::of(-1.0);
  int32_t every = 0;  ///< partitions of one GpSimd core, which uses the first: check() asks the chip

  static constexpr auto fields() {
    using I = NonzeroWithCount;
    return std::tuple{inout("dst", &I::dst, "[P, N + 1] int32"), in("src", &I::src, "[P, N] float32 or int32"),
                      in("index_offset", &I::index_offset, "added to each index"),
                      in("padding_val", &I::padding_val, "after the last index")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, src, "src"));
    STERNA_TRY(check_gpsimd(r, {&dst, &src}));
    STERNA_TRY(check_rows(src, dst, "src"));
    STERNA_TRY(check_cols(dst, src.cols() + 1, "dst"));
    STERNA_TRY(check_whole(r, index_offset, "index_offset"));
    STERNA_TRY(check_whole(r, padding_val, "padding_val"));
    if (dst.dtype != DType::kInt32 || (src.dtype != DType::kInt32 && src.dtype != DType::kFloat32))
      return Fault(FaultKind::kRuleBroken, "NZ1",
                   cat("nonzero_with_count writes int32 from float32 or int32, not ", name(dst.dtype), " from ",
                       name(src.dtype), "."));
    every = static_cast<int32_t>(r.chip->limits.gpsimd_core_partitions);
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(const uint32_t first, whole_number(m, index_offset));
    STERNA_ASSIGN(const uint32_t padding, whole_number(m, padding_val));
    STERNA_ASSIGN(Operand a, m.read(used_rows(src), "src"));
    STERNA_ASSIGN(Operand d, m.write(used_rows(dst), "dst"));
    std::vector<float> row(static_cast<size_t>(a.cols));
    std::vector<uint32_t> result(static_cast<size_t>(d.cols));
    for (int64_t p = 0; p < a.rows; ++p) {
      load_row(a, p, 0, a.cols, row.data());
      std::fill(result.begin(), result.end(), padding);
      uint32_t count = 0;
      for (size_t i = 0; i < row.size(); ++i)
        if (row[i] != 0.0f) result[count++] = first + static_cast<uint32_t>(i);
      result.back() = count;
      store_bits(d, p, 0, d.cols, result.data());
    }
    return {};
  }
  View used_rows(View v) const {
    v.dims[0].stride *= every;
    v.dims[0].count = (v.dims[0].count + every - 1) / every;
    return v;
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kGpSimd, {&dst, &src}); }
};

using Instructions =
    Joined<InstructionList<Iota, AffineSelect, TensorPartitionReduce, SequenceBounds, NonzeroWithCount>, Gathers,
           Searches>;

}  // namespace sterna::gpsimd_engine
