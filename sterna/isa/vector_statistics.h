// SPDX-License-Identifier: Apache-2.0
// Instructions of the vector engine for means and variances.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::vector_engine {

/// (count, mean, variance * count) of some numbers, in fp32: the sum in the order of alu.h's reduce_block, divided by
/// the count; then the sum of the squared differences in the same order.
struct Moments {
  float count = 0, mean = 0, spread = 0;

  static Moments of(float* x, int64_t n) {
    Moments out{static_cast<float>(n), 0, 0};
    if (n == 0) return out;
    float sum;
    reduce_block(AluOp::kAdd, {x, n}, &sum, 1, 1, n);
    out.mean = alu(AluOp::kDivide, sum, out.count);
    alu_block_scalar(AluOp::kSubtract, {x, n}, &out.mean, 0, false, {x, n}, 1, n);
    alu_block(AluOp::kSquare, {x, n}, {x, n}, {x, n}, 1, n);
    reduce_block(AluOp::kAdd, {x, n}, &out.spread, 1, 1, n);
    return out;
  }
};

/// dst = count, mean, variance * count of the even elements of a partition, then of the odd ones.
///
/// Shapes  data: [P, N]; dst: [P, 6]
/// Rules   P1 P2 SHAPE1 SHAPE4 BN1 (N)
/// Source  nki.isa.bn_stats (SDK 2.32)
struct BnStats {
  static constexpr Info info{"bn_stats", 0x1e, "count, mean and variance * count of even and of odd elements",
                             "nki.isa.bn_stats"};
  View dst, data;

  static constexpr auto fields() {
    return std::tuple{out("dst", &BnStats::dst, "[P, 6]"), in("data", &BnStats::data, "input tile")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_rows(data, dst, "data"));
    STERNA_TRY(check_cols(dst, 6, "dst"));
    const int64_t most = r.chip->limits.bn_stats_free;
    if (data.cols() > most)
      return Fault(FaultKind::kRuleBroken, "BN1",
                   cat("data ", shape_text(data), " has ", data.cols(),
                       " elements in a partition, bn_stats takes at most ", most, "; use several and one bn_aggr."));
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    float *row = piece_scratch(0), *even = piece_scratch(1), *odd = piece_scratch(2);
    for (int64_t r = 0; r < a.rows; ++r) {
      load_row(a, r, 0, a.cols, row);
      for (int64_t i = 0; i < a.cols; ++i) (i % 2 == 0 ? even : odd)[i / 2] = row[i];
      const Moments e = Moments::of(even, (a.cols + 1) / 2), o = Moments::of(odd, a.cols / 2);
      const float six[6] = {e.count, e.mean, e.spread, o.count, o.mean, o.spread};
      store_row(d, r, 0, 6, six);
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

/// dst = mean, variance of everything that went into the (count, mean, variance * count) triples of data.
///
/// Types   fp32: n = sum of counts, mean = sum(count * mean) / n, variance = sum(spread + count * (mean_i - mean)^2) /
/// n; sums in the
///         order of alu.h's reduce_block
/// Shapes  data: [P, 3 K]; dst: [P, 2]
/// Rules   P1 P2 SHAPE1 SHAPE4 BN2 (a multiple of three)
/// Source  nki.isa.bn_aggr (SDK 2.32)
struct BnAggr {
  static constexpr Info info{"bn_aggr", 0x1f, "mean and variance from results of bn_stats", "nki.isa.bn_aggr"};
  View dst, data;

  static constexpr auto fields() {
    return std::tuple{out("dst", &BnAggr::dst, "[P, 2]"), in("data", &BnAggr::data, "triples of bn_stats")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_tile(r, dst, "dst"));
    STERNA_TRY(check_tile(r, data, "data"));
    STERNA_TRY(check_rows(data, dst, "data"));
    STERNA_TRY(check_cols(dst, 2, "dst"));
    if (data.cols() % 3 != 0 || data.cols() == 0)
      return Fault(
          FaultKind::kRuleBroken, "BN2",
          cat("data ", shape_text(data), " must hold triples, it has ", data.cols(), " elements in a partition."));
    return {};
  }
  static float sum(const std::vector<float>& x) {
    float out;
    reduce_block(AluOp::kAdd, {x.data(), static_cast<ptrdiff_t>(x.size())}, &out, 1, 1,
                 static_cast<ptrdiff_t>(x.size()));
    return out;
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand a, m.read(data, "data"));
    STERNA_ASSIGN(Operand d, m.write(dst, "dst"));
    std::array<Snapshot, 1> snapshots;
    take_snapshots(m, snapshots, d, a);
    const auto n = static_cast<size_t>(a.cols / 3);
    std::vector<float> row(n * 3), counts(n), terms(n);
    for (int64_t r = 0; r < a.rows; ++r) {
      load_row(a, r, 0, a.cols, row.data());
      for (size_t i = 0; i < n; ++i) {
        counts[i] = row[3 * i];
        terms[i] = alu(AluOp::kMultiply, row[3 * i], row[3 * i + 1]);
      }
      const float total = sum(counts), mean = alu(AluOp::kDivide, sum(terms), total);
      for (size_t i = 0; i < n; ++i) {
        const float away = alu(AluOp::kSubtract, row[3 * i + 1], mean);
        terms[i] = alu(AluOp::kAdd, row[3 * i + 2], alu(AluOp::kMultiply, counts[i], alu(AluOp::kSquare, away, 0.0f)));
      }
      const float two[2] = {mean, alu(AluOp::kDivide, sum(terms), total)};
      store_row(d, r, 0, 2, two);
    }
    return {};
  }
  Work work(const Rules& r) const { return count_elements(r, EngineId::kVector, {&dst, &data}); }
};

using Statistics = InstructionList<BnStats, BnAggr>;

}  // namespace sterna::vector_engine
