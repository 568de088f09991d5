// SPDX-License-Identifier: Apache-2.0
// Instructions of the GpSimd engine that gather along the free axes.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::gpsimd_engine {

/// GAT1: gathers do not convert.
inline Status check_gather_types(const View& dst, const View& data, std::string_view what) {
  if (dst.dtype == data.dtype) return {};
  return Fault(FaultKind::kRuleBroken, "GAT1",
               cat("A gather does not convert: dst is ", name(dst.dtype), ", '", what, "' ", name(data.dtype), "."));
}

/// GAT2: an index outside a partition.
inline Status check_index(int64_t index, int64_t size, int64_t row, std::string_view what) {
  if (index >= 0 && index < size) return {};
  return Fault(FaultKind::kOutOfBounds, "GAT2",
               cat("'", what, "' has the index ", index, " for partition ", row, "; allowed are 0 to ", size - 1, "."));
}

/// One row of a gather: dst's elements are data's at `from`, bits and definedness alike.
class RowGather {
 public:
  RowGather(Machine& m, const View& dst, const Operand& d, const View& data, Operand& s)
      : m_(m),
        dst_(dst),
        d_(d),
        s_(s),
        from_states_(m.element_states_if_partial(data)),
        row_(static_cast<size_t>(s.cols)),
        picked_(static_cast<size_t>(d.cols)) {
    if (s.storage->defined == d.storage->defined) snapshot_.copy(s_);
    if (!from_states_.empty()) states_.resize(static_cast<size_t>(d.rows * d.cols));
  }
  void row(int64_t r, const std::vector<int64_t>& from) {
    load_bits(s_, r, 0, s_.cols, row_.data());
    for (size_t i = 0; i < picked_.size(); ++i) picked_[i] = row_[static_cast<size_t>(from[i])];
    store_bits(d_, r, 0, d_.cols, picked_.data());
    for (size_t i = 0; i < picked_.size() && !states_.empty(); ++i)
      states_[static_cast<size_t>(r * d_.cols) + i] = from_states_[static_cast<size_t>(r * s_.cols + from[i])];
  }
  void finish() { states_.empty() ? m_.mark_defined(dst_) : m_.mark_elements(dst_, states_); }

 private:
  Machine& m_;
  const View& dst_;
  const Operand& d_;
  Operand& s_;
  Snapshot snapshot_;
  std::vector<ElementState> from_states_, states_;
  std::vector<uint32_t> row_, picked_;
};

/// dst[p, i] = data[p, indices[p, i]], free axes of data flattened.
///
/// Shapes  data: [P, N]; indices, dst: [P, M]
/// Types   bits are kept; indices uint32
/// Rules   P1 P2 ENG2 SHAPE1 SHAPE4 GAT1 GAT2 GAT3 (indices uint32)
/// Source  nki.isa.nc_n_gather (SDK 2.32)
struct NcNGather {
  static constexpr Info info{"nc_n_gather", 0xa3, "dst[p, i] = data[p, indices[p, i]]", "nki.isa.nc_n_gather"};
  View dst, data, indices;

  static constexpr auto fields() {
    using I = NcNGather;
    return std::tuple{out("dst", &I::dst, "result tile"), in("data", &I::data, "where from"),
                      in("indices", &I::indices, "uint32: which elements")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_moved_tile(r, data, "data"));
    STERNA_TRY(check_packed_move(dst, data));
    STERNA_TRY(check_tile(r, indices, "indices"));
    STERNA_TRY(check_engine(r, EngineId::kGpSimd, {EngineId::kGpSimd}, {&dst, &data, &indices}));
    STERNA_TRY(check_rows(data, dst, "data"));
    STERNA_TRY(check_rows(indices, dst, "indices"));
    STERNA_TRY(check_cols(indices, dst.cols(), "indices"));
    STERNA_TRY(check_gather_types(dst, data, "data"));
    if (is_float(indices.dtype))
      return Fault(FaultKind::kRuleBroken, "GAT3", cat("'indices' must be uint32, not ", name(indices.dtype), "."));
    if (indices.dtype != DType::kUInt32)
      return r.compat("GAT3", cat("'indices' must be uint32, not ", name(indices.dtype), "."));
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand s, m.read_any(data, "data"));
    STERNA_ASSIGN(Operand index, m.read(indices, "indices"));
    std::vector<uint32_t> words(static_cast<size_t>(index.rows * index.cols));
    for (int64_t r = 0; r < index.rows; ++r) load_bits(index, r, 0, index.cols, words.data() + r * index.cols);
    STERNA_ASSIGN(Operand d, m.open(dst, "dst"));
    RowGather gather(m, dst, d, data, s);
    std::vector<int64_t> from(static_cast<size_t>(d.cols));
    for (int64_t r = 0; r < d.rows; ++r) {
      for (int64_t i = 0; i < d.cols; ++i) {
        from[static_cast<size_t>(i)] = words[static_cast<size_t>(r * d.cols + i)];
        STERNA_TRY(check_index(from[static_cast<size_t>(i)], s.cols, r, "indices"));
      }
      gather.row(r, from);
    }
    gather.finish();
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kGpSimd, {&dst, &indices});
    w.element_bytes = size_of(data.dtype);
    return w;
  }
};

/// In each group of partitions that one GpSimd core has (16): the group's indices, read partition by partition and then
/// column by column, name places in the partitions of src_buffer; dst gets num_elem_per_idx adjoining elements from
/// each, in every partition of the group.
///
/// Shapes  src_buffer: [P, N]; index: [P, M]; dst: [P, num_valid_indices * num_elem_per_idx]; P a multiple of the group
/// Types   bits are kept; index uint16
/// Rules   P1 P2 ENG2 SHAPE1 SHAPE4 GAT1 GAT2 GAT4 (P) GAT5 (num_elem_per_idx) GAT6 (number of indices) GAT7 (index
/// type) Source  nki.isa.local_gather (SDK 2.32)
struct LocalGather {
  static constexpr Info info{"local_gather", 0xa4, "gather by indices shared by 16 partitions", "nki.isa.local_gather"};
  View dst, src_buffer, index;
  int32_t num_elem_per_idx = 1;
  int32_t num_valid_indices = -1;
  int32_t group_rows = 0;  ///< partitions of one GpSimd core: check() asks the chip

  static constexpr auto fields() {
    using I = LocalGather;
    return std::tuple{out("dst", &I::dst, "result tile"), in("src_buffer", &I::src_buffer, "where from"),
                      in("index", &I::index, "uint16: which elements"),
                      option("num_elem_per_idx", &I::num_elem_per_idx, "adjoining elements for each index"),
                      option("num_valid_indices", &I::num_valid_indices, "indices of a group that count, -1: all")};
  }
  int64_t valid() const { return num_valid_indices > 0 ? num_valid_indices : index.cols() * group_rows; }
  Status check(const Rules& r) {
    const int64_t most = r.chip->limits.gather_indices, most_run = r.chip->limits.gather_run;
    group_rows = static_cast<int32_t>(r.chip->limits.gpsimd_core_partitions);
    STERNA_TRY(check_moved_tile(r, dst, "dst"));
    STERNA_TRY(check_moved_tile(r, src_buffer, "src_buffer"));
    STERNA_TRY(check_packed_move(dst, src_buffer));
    STERNA_TRY(check_tile(r, index, "index"));
    STERNA_TRY(check_engine(r, EngineId::kGpSimd, {EngineId::kGpSimd}, {&dst, &src_buffer, &index}));
    STERNA_TRY(check_rows(src_buffer, dst, "src_buffer"));
    STERNA_TRY(check_rows(index, dst, "index"));
    STERNA_TRY(check_gather_types(dst, src_buffer, "src_buffer"));
    auto broken = [](const char* rule, std::string text) {
      return Fault(FaultKind::kRuleBroken, rule, std::move(text));
    };
    if (dst.rows() % group_rows != 0)
      return broken("GAT4", cat("local_gather works on groups of ", group_rows, " partitions; ", dst.rows(),
                                " is not a multiple of that."));
    if (num_elem_per_idx < 1 || num_elem_per_idx > most_run || (num_elem_per_idx & (num_elem_per_idx - 1)) != 0)
      return broken("GAT5",
                    cat("num_elem_per_idx is a power of two up to ", most_run, ", not ", num_elem_per_idx, "."));
    if (num_valid_indices != -1 && num_valid_indices < 1)
      return broken("GAT6", cat("num_valid_indices is at least 1, not ", num_valid_indices, "."));
    if (valid() > index.cols() * group_rows || valid() > most)
      return broken("GAT6", cat("A group has ", index.cols() * group_rows, " indices, ", valid(),
                                " are asked for; at most ", most, " are taken."));
    if (is_float(index.dtype)) return broken("GAT7", cat("'index' must be uint16, not ", name(index.dtype), "."));
    if (index.dtype != DType::kUInt16)
      STERNA_TRY(r.compat("GAT7", cat("'index' must be uint16, not ", name(index.dtype), ".")));
    return check_cols(dst, valid() * num_elem_per_idx, "dst");
  }
  /// Only the indices that count have to be defined.
  Status check_indices_defined(Machine& m) const {
    const std::vector<ElementState> states = m.element_states_if_partial(index);
    for (size_t i = 0; i < states.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / index.cols(), col = static_cast<int64_t>(i) % index.cols();
      if (states[i] == ElementState::kDefined || col * group_rows + row % group_rows >= valid()) continue;
      STERNA_ASSIGN(Operand refused, m.read(index, "index"));
      (void)refused;
    }
    return {};
  }
  Status execute(Machine& m) const {
    STERNA_ASSIGN(Operand s, m.read_any(src_buffer, "src_buffer"));
    STERNA_ASSIGN(Operand at, m.read_any(index, "index"));
    std::vector<uint32_t> words(static_cast<size_t>(at.rows * at.cols));
    for (int64_t r = 0; r < at.rows; ++r) load_bits(at, r, 0, at.cols, words.data() + r * at.cols);
    STERNA_TRY(check_indices_defined(m));
    STERNA_ASSIGN(Operand d, m.open(dst, "dst"));
    RowGather gather(m, dst, d, src_buffer, s);
    std::vector<int64_t> from(static_cast<size_t>(d.cols));
    for (int64_t group = 0; group < d.rows; group += group_rows) {
      for (int64_t k = 0; k < valid(); ++k) {
        const int64_t first = words[static_cast<size_t>((group + k % group_rows) * at.cols + k / group_rows)];
        STERNA_TRY(check_index(first, s.cols - num_elem_per_idx + 1, group, "index"));
        for (int64_t e = 0; e < num_elem_per_idx; ++e) from[static_cast<size_t>(k * num_elem_per_idx + e)] = first + e;
      }
      for (int64_t r = group; r < group + group_rows; ++r) gather.row(r, from);
    }
    gather.finish();
    return {};
  }
  Work work(const Rules& r) const {
    Work w = count_elements(r, EngineId::kGpSimd, {&dst, &index});
    w.elements = static_cast<double>(valid() * num_elem_per_idx);
    w.per_index = num_elem_per_idx;
    w.element_bytes = size_of(src_buffer.dtype);
    return w;
  }
};

using Gathers = InstructionList<NcNGather, LocalGather>;

}  // namespace sterna::gpsimd_engine
