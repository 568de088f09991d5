// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor_sparse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "sterna/isa/tensor_product.h"
#include "sterna/isa/tensor_types.h"
#include "sterna/machine/rows.h"

namespace sterna::tensor_engine {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

constexpr int kTagBits = 4, kTagsInWord = 4;
constexpr std::array<std::array<int, 2>, 7> kPatterns{{{4, 16}, {4, 12}, {4, 8}, {2, 8}, {2, 4}, {1, 4}, {1, 2}}};

/// One element that is kept: its place in the whole contraction, its value.
struct Kept {
  int64_t place;
  float value;
};

std::vector<float> all_of(const Operand& o) {
  std::vector<float> out(static_cast<size_t>(o.rows * o.cols));
  for (int64_t r = 0; r < o.rows; ++r) load_row(o, r, 0, o.cols, out.data() + r * o.cols);
  return out;
}

}  // namespace

Status NcMatmulSparse::check(const Rules& r) {
  for (const View* v : {&stationary, &moving, &tags})
    if (v->empty() || v->memory != Memory::kSbuf)
      return broken("SP1", "'stationary', 'moving' and 'tags' of a sparse matmul are in SBUF.");
  if (dst.memory != Memory::kPsum) return broken("SP1", "A sparse matmul writes PSUM.");
  for (const auto& [v, what] : {std::pair(&dst, "dst"), std::pair(&stationary, "stationary"),
                                std::pair(&moving, "moving"), std::pair(&tags, "tags")})
    STERNA_TRY(check_adjoining(r, *v, what));
  bool known = false;
  for (const auto& [kept, of] : kPatterns)
    known = known || (pattern.n == 2 && pattern.value[0] == kept && pattern.value[1] == of);
  if (!known) return broken("SP2", "The patterns of structured sparsity are 4:16, 4:12, 4:8, 2:8, 2:4, 1:4 and 1:2.");
  const auto& limits = r.chip->limits;
  const int64_t c = compression();
  if (stationary.rows() != moving.rows() || tags.rows() != moving.rows() || moving.rows() > limits.partitions ||
      moving.rows() % pattern.value[0] != 0 || moving.ndim < 3 || moving.dims[1].count != c ||
      tags.cols() != (stationary.cols() + kTagsInWord - 1) / kTagsInWord || dst.rows() != stationary.cols() ||
      dst.cols() != columns() || stationary.cols() > limits.stationary_free || columns() > limits.moving_free)
    return broken("SP3", cat("stationary ", shape_text(stationary), ", moving ", shape_text(moving), ", tags ",
                             shape_text(tags), ", dst ", shape_text(dst), ": expected [K, M], [K, ", c,
                             ", N], [K, ceil(M / 4)] and [M, N], K a ", "multiple of ", pattern.value[0], "."));
  if (tags.dtype != DType::kUInt16) return broken("SP4", cat("'tags' is ", name(tags.dtype), "; it is uint16."));
  STERNA_TRY(check_matmul_types(stationary.dtype, moving.dtype, "SP4"));
  if (size_of(moving.dtype) == 4 && moving.dtype != DType::kTFloat32)
    return broken("SP4", "A sparse matmul takes inputs of two bytes or one, or tfloat32.");
  if (!is_matmul_result(*r.chip, dst.dtype))
    return broken("SP6", cat("dst is ", name(dst.dtype), "; matmul results in PSUM are float32."));
  return check_array_tile(r, {tile_position, tile_size, moving.rows(), stationary.cols(), false});
}

Status NcMatmulSparse::execute(Machine& m) const {
  STERNA_ASSIGN(const Operand s, m.read(stationary, "stationary"));
  STERNA_ASSIGN(const Operand v, m.read(moving, "moving"));
  STERNA_ASSIGN(const Operand t, m.read(tags, "tags"));
  STERNA_ASSIGN(const Accumulation how, find_accumulation(m, dst, accumulate));
  STERNA_ASSIGN(const Operand d, m.open(dst, "dst"));
  const int64_t depth = s.rows, rows = s.cols, cols = d.cols, kept = pattern.value[0], of = pattern.value[1];
  const std::vector<float> weights = all_of(s), places = all_of(v);  // moving's rows are places, in their order
  std::vector<uint32_t> words(static_cast<size_t>(depth * t.cols));
  for (int64_t p = 0; p < depth; ++p) load_bits(t, p, 0, t.cols, words.data() + p * t.cols);

  std::vector<float> product(static_cast<size_t>(rows * cols)), gathered(static_cast<size_t>(depth * cols)),
      column(static_cast<size_t>(depth)), scratch(static_cast<size_t>(matmul_scratch_floats(depth, 1, cols)));
  std::vector<Kept> elements(static_cast<size_t>(depth));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t p = 0; p < depth; ++p) {
      const uint32_t tag = words[static_cast<size_t>(p * t.cols + r / kTagsInWord)] >> r % kTagsInWord * kTagBits & 15;
      if (tag >= of)
        return broken("SP5", cat("The tag of stationary[", p, ", ", r, "] is ", tag, "; a group has ", of, " places."));
      elements[static_cast<size_t>(p)] = {p / kept * of + tag, weights[static_cast<size_t>(p * rows + r)]};
    }
    std::sort(elements.begin(), elements.end(), [](const Kept& a, const Kept& b) { return a.place < b.place; });
    for (size_t p = 0; p < elements.size(); ++p) {
      const Kept& e = elements[p];
      if (p > 0 && elements[p - 1].place == e.place)
        return broken("SP5", cat("Two elements of column ", r, " of stationary have the same place, ", e.place % of,
                                 " of group ", e.place / of, "."));
      column[p] = e.value;
      std::memcpy(gathered.data() + static_cast<int64_t>(p) * cols, places.data() + e.place * cols,
                  static_cast<size_t>(cols) * sizeof(float));
    }
    matmul_block({column.data(), 1}, {gathered.data(), cols}, {product.data() + r * cols, cols}, depth, 1, cols,
                 Accumulate::kOverwrite, scratch.data());
  }
  put_product(m, dst, d, how, product);
  return {};
}

}  // namespace sterna::tensor_engine
