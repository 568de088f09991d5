// SPDX-License-Identifier: Apache-2.0
// The GpSimd engine's search for the largest elements.
#pragma once

#include <algorithm>
#include <vector>

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::gpsimd_engine {

/// In each group of 16 partitions (those of one GpSimd core) the K largest of the group's n elements, in ascending
/// order, and where they were. Element i of a group lies in its partition i mod 16, column i / 16. K: columns of
/// val_dst.
///
/// Order   that of maximum: NaN above everything, -0 below +0; of equal elements the one with the lower index counts as
///         the larger (assumed: the document is silent)
/// Result  every partition of a group gets the group's result. The document says "each partition operates
/// independently"
///         and "a 16-partition snake", which leaves open where results go; this choice serves either reading (assumed)
/// Shapes  src: [P, X], X >= n / 16 rounded up; val_dst, idx_dst: [P, K]; P a multiple of 16
/// Rules   P1 P2 ENG2 SHAPE1 SHAPE4 TOPK1 (types) TOPK2 (n and K) TOPK3 (P) TOPK4 (columns of src)
/// Source  nki.isa.topk (SDK 2.32)
struct TopK {
  static constexpr Info info{"topk", 0xa7, "the K largest of each 16 partitions, and where they are", "nki.isa.topk"};
  View val_dst, idx_dst, src;
  int32_t n = 0;
  int32_t group_rows = 0;  ///< partitions of one GpSimd core: check() asks the chip

  static constexpr int64_t kLeast = 8, kEndN = 65536, kEndK = 32768;  // nki.isa.topk: 8 <= n < 65536, 1 <= K < 32768

  static constexpr auto fields() {
    using I = TopK;
    return std::tuple{out("val_dst", &I::val_dst, "bfloat16 [P, K]: the largest, ascending"),
                      out("idx_dst", &I::idx_dst, "uint32 [P, K]: their indices in the snake"),
                      in("src", &I::src, "bfloat16 [P, X]"), option("n", &I::n, "elements of a group")};
  }
  Status check(const Rules& r) {
    auto broken = [](const char* rule, std::string text) {
      return Fault(FaultKind::kRuleBroken, rule, std::move(text));
    };
    group_rows = static_cast<int32_t>(r.chip->limits.gpsimd_core_partitions);
    STERNA_TRY(check_tile(r, val_dst, "val_dst"));
    STERNA_TRY(check_tile(r, idx_dst, "idx_dst"));
    STERNA_TRY(check_tile(r, src, "src"));
    STERNA_TRY(check_engine(r, EngineId::kGpSimd, {EngineId::kGpSimd}, {&val_dst, &idx_dst, &src}));
    STERNA_TRY(check_rows(val_dst, src, "val_dst"));
    STERNA_TRY(check_rows(idx_dst, src, "idx_dst"));
    STERNA_TRY(check_cols(idx_dst, val_dst.cols(), "idx_dst"));
    if (src.dtype != DType::kBFloat16 || val_dst.dtype != DType::kBFloat16 || idx_dst.dtype != DType::kUInt32)
      return broken("TOPK1", cat("topk takes bfloat16 and gives bfloat16 and uint32, not ", name(src.dtype), " to ",
                                 name(val_dst.dtype), " and ", name(idx_dst.dtype), "."));
    if (n < kLeast || n >= kEndN || val_dst.cols() < 1 || val_dst.cols() >= kEndK || val_dst.cols() > n)
      return broken("TOPK2", cat("topk of n = ", n, " and K = ", val_dst.cols(), ": n is ", kLeast, " to ", kEndN - 1,
                                 ", K 1 to ", kEndK - 1, " and at most n."));
    if (src.rows() % group_rows != 0)
      return broken("TOPK3", cat("topk works on groups of ", group_rows, " partitions; ", src.rows(),
                                 " is not a multiple of that."));
    if (src.cols() < (n + group_rows - 1) / group_rows)
      return broken("TOPK4", cat("'src' ", shape_text(src), " is too narrow for ", n, " elements in ", group_rows,
                                 " partitions."));
    return {};
  }
  /// An order of bfloat16 bits: ascending as maximum sees them.
  static uint32_t rank(uint32_t bits) {
    if ((bits & 0x7fff) > 0x7f80) return 0x10000;  // NaN
    return (bits & 0x8000) != 0 ? 0xffff - bits : bits + 0x8000;
  }
  /// Only the n elements that count have to be defined.
  Status check_defined(Machine& m) const {
    const std::vector<ElementState> states = m.element_states_if_partial(src);
    for (size_t i = 0; i < states.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / src.cols(), col = static_cast<int64_t>(i) % src.cols();
      if (states[i] == ElementState::kDefined || col * group_rows + row % group_rows >= n) continue;
      STERNA_ASSIGN(Operand refused, m.read(src, "src"));
      (void)refused;
    }
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_TRY(check_defined(m));
    STERNA_ASSIGN(Operand s, m.read_any(src, "src"));
    const int64_t columns = (n + group_rows - 1) / group_rows, k = val_dst.cols();
    std::vector<uint32_t> words(static_cast<size_t>(s.rows * columns));
    for (int64_t r = 0; r < s.rows; ++r) load_bits(s, r, 0, columns, words.data() + r * columns);
    STERNA_ASSIGN(Operand values, m.write(val_dst, "val_dst"));
    STERNA_ASSIGN(Operand indices, m.write(idx_dst, "idx_dst"));
    std::vector<uint32_t> index(static_cast<size_t>(n)), best(static_cast<size_t>(k)), bits(best.size());
    for (int64_t group = 0; group < s.rows; group += group_rows) {
      auto at = [&](uint32_t i) {
        return words[static_cast<size_t>((group + i % group_rows) * columns + i / group_rows)];
      };
      for (uint32_t i = 0; i < index.size(); ++i) index[i] = i;
      const auto larger = [&](uint32_t a, uint32_t b) {
        const uint32_t x = rank(at(a)), y = rank(at(b));
        return x != y ? x > y : a < b;
      };
      std::partial_sort(index.begin(), index.begin() + k, index.end(), larger);
      for (size_t j = 0; j < best.size(); ++j) {
        best[j] = index[best.size() - 1 - j];
        bits[j] = at(best[j]);
      }
      for (int64_t r = group; r < group + group_rows; ++r) {
        store_bits(values, r, 0, k, bits.data());
        store_bits(indices, r, 0, k, best.data());
      }
    }
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kGpSimd, {&val_dst, &idx_dst});
    w.elements = n;
    w.outputs = static_cast<double>(val_dst.cols());
    return w;
  }
};

using Searches = InstructionList<TopK>;

}  // namespace sterna::gpsimd_engine
