// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine that look for values: the eight largest, where they are, and taking them out.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/search8.h"

namespace sterna::vector_engine {

/// TOP1: between limits.top8_min and limits.top8_max elements in a partition.
inline Status check_searched(const Rules& r, const View& v, std::string_view what) {
  const int64_t low = r.chip->limits.top8_min, high = r.chip->limits.top8_max;
  if (v.cols() >= low && v.cols() <= high) return {};
  return Fault(FaultKind::kRuleBroken, "TOP1",
               cat("'", what, "' ", shape_text(v), " has ", v.cols(), " elements in a partition; ", low, " to ", high,
                   " can be searched."));
}
/// TOP2: indices are uint16 or uint32.
inline Status check_index_tile(const Rules& r, const View& v, std::string_view what) {
  if (v.dtype == DType::kUInt16 || v.dtype == DType::kUInt32) return {};
  if (is_float(v.dtype))
    return Fault(FaultKind::kRuleBroken, "TOP2",
                 cat("'", what, "' must be uint16 or uint32, not ", name(v.dtype), "."));
  return r.compat("TOP2", cat("'", what, "' must be uint16 or uint32, not ", name(v.dtype), "."));
}

/// Room to decode one row of `o`: nothing if its rows are read in place.
inline std::vector<float> scratch_for(const Operand& o) {
  return std::vector<float>(o.direct() ? 0 : static_cast<size_t>(o.cols));
}

/// dst = the eight largest elements of each partition, descending. NaN counts as larger than every number, +0 as larger
/// than -0.
///
/// Shapes  src: [P, N], 8 <= N <= 16384; dst: [P, 8]
/// Rules   P1 P2 SHAPE1 SHAPE4 TOP1
/// Source  nki.isa.max8 (SDK 2.32); NaN: as maximum propagates it
struct Max8 {
  static constexpr Info info{"max8", 0x20, "the eight largest elements of each partition", "nki.isa.max8"};
  View dst, src;

  static constexpr auto fields() {
    return std::tuple{out("dst", &Max8::dst, "[P, 8], descending"), in("src", &Max8::src, "input tile")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, src, "src"));
    STERNA_TRY(check_rows(src, dst, "src"));
    STERNA_TRY(check_cols(dst, kEight, "dst"));
    return check_searched(r, src, "src");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(src, "src"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    over_rows(m, a.rows, a.cols, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch = scratch_for(a);
      for (int64_t r = begin; r < end; ++r) {
        float out_row[kEight];
        eight_largest(load_piece(a, r, 1, 0, a.cols, scratch.data()).data, a.cols, out_row);
        store_row(d, r, 0, kEight, out_row);
      }
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &src}); }
};

/// dst[k] = index of vals[k] in its partition of data: the first occurrence; a value that vals repeats gets its next
/// occurrence each time. A value that is not there gives all ones.
///
/// Shapes  data: [P, N], 8 <= N <= 16384; vals, dst: [P, 8]
/// Types   compared in fp32; dst uint16 or uint32
/// Rules   P1 P2 SHAPE1 SHAPE4 TOP1 TOP2
/// Source  nki.isa.nc_find_index8 (SDK 2.32), NKI 0.6 release notes for repeated and absent values
struct NcFindIndex8 {
  static constexpr Info info{"nc_find_index8", 0x21, "where eight values are in each partition",
                             "nki.isa.nc_find_index8"};
  View dst, data, vals;

  static constexpr auto fields() {
    using I = NcFindIndex8;
    return std::tuple{out("dst", &I::dst, "[P, 8] indices"), in("data", &I::data, "tile to search"),
                      in("vals", &I::vals, "[P, 8] values")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_tile(r, vals, "vals"));
    STERNA_TRY(check_rows(data, dst, "data"));
    STERNA_TRY(check_rows(vals, dst, "vals"));
    STERNA_TRY(check_cols(dst, kEight, "dst"));
    STERNA_TRY(check_cols(vals, kEight, "vals"));
    STERNA_TRY(check_searched(r, data, "data"));
    return check_index_tile(r, dst, "dst");
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    STERNA_ASSIGN(Operand v, m.read(vals, "vals"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, a, v);
    over_rows(m, a.rows, a.cols, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch = scratch_for(a);
      for (int64_t r = begin; r < end; ++r) {
        float wanted[kEight];
        load_row(v, r, 0, kEight, wanted);
        uint32_t found[kEight];
        find_eight(load_piece(a, r, 1, 0, a.cols, scratch.data()).data, a.cols, wanted, found);
        store_bits(d, r, 0, kEight, found);
      }
    });
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

/// dst = data with one occurrence of each of eight values replaced by imm. vals[7] comes first, vals[0] last, and each
/// takes the first occurrence that none before it took; dst_idx[k] gets the place of vals[k], all ones if there is
/// none.
///
/// Shapes  dst, data: [P, N], 8 <= N <= 16384; vals, dst_idx: [P, 8]
/// Rules   P1 P2 SHAPE1 SHAPE2 SHAPE4 TOP1 TOP2
/// Source  nki.isa.nc_match_replace8 (SDK 2.32), NKI 0.6 release notes for the order
struct NcMatchReplace8 {
  static constexpr Info info{"nc_match_replace8", 0x22, "data with eight values replaced", "nki.isa.nc_match_replace8"};
  View dst, data, vals;
  float imm = 0;
  View dst_idx;

  static constexpr auto fields() {
    using I = NcMatchReplace8;
    return std::tuple{out("dst", &I::dst, "result tile"), in("data", &I::data, "tile to search"),
                      in("vals", &I::vals, "[P, 8] values"), option("imm", &I::imm, "what replaces them"),
                      out("dst_idx", &I::dst_idx, "[P, 8] where they were")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_tile(r, vals, "vals"));
    STERNA_TRY(check_rows(data, dst, "data"));
    STERNA_TRY(check_rows(vals, dst, "vals"));
    STERNA_TRY(check_cols(data, dst.cols(), "data"));
    STERNA_TRY(check_cols(vals, kEight, "vals"));
    STERNA_TRY(check_searched(r, data, "data"));
    if (dst_idx.empty()) return {};
    STERNA_TRY(check_tile(r, dst_idx, "dst_idx"));
    STERNA_TRY(check_rows(dst_idx, dst, "dst_idx"));
    STERNA_TRY(check_cols(dst_idx, kEight, "dst_idx"));
    return check_index_tile(r, dst_idx, "dst_idx");
  }
  /// The places of wanted[7] first, wanted[0] last.
  static void find_from_last(const float* row, int64_t n, float (&wanted)[kEight], uint32_t* found) {
    std::reverse(wanted, wanted + kEight);
    find_eight(row, n, wanted, found);
    std::reverse(found, found + kEight);
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    STERNA_ASSIGN(Operand v, m.read(vals, "vals"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 2> snapshots;
    take_snapshots(m, snapshots, d, a, v);
    std::vector<uint32_t> found(static_cast<size_t>(a.rows) * kEight);
    over_rows(m, a.rows, a.cols, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch = d.direct() ? scratch_for(a) : std::vector<float>(static_cast<size_t>(a.cols));
      for (int64_t r = begin; r < end; ++r) {
        float wanted[kEight];
        load_row(v, r, 0, kEight, wanted);
        const float* row = load_piece(a, r, 1, 0, a.cols, scratch.data()).data;
        uint32_t* places = found.data() + r * kEight;
        find_from_last(row, a.cols, wanted, places);
        float* result = d.direct() ? reinterpret_cast<float*>(d.row(r)) : scratch.data();
        if (result != row) std::memmove(result, row, static_cast<size_t>(a.cols) * sizeof(float));
        for (int k = 0; k < kEight; ++k)
          if (places[k] != kNotFound) result[places[k]] = imm;
        if (!d.direct()) store_row(d, r, 0, d.cols, result);
      }
    });
    if (dst_idx.empty()) return {};
    STERNA_ASSIGN(Operand index, m.write(dst_idx, "dst_idx"));
    for (int64_t r = 0; r < a.rows; ++r) store_bits(index, r, 0, kEight, found.data() + r * kEight);
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

using Searches = InstructionList<Max8, NcFindIndex8, NcMatchReplace8>;

}  // namespace sterna::vector_engine
