// SPDX-License-Identifier: Apache-2.0
// Making one view from another. All of them are free of data movement and keep the dtype unless they say otherwise.
// Rules are those of NkiTensor (nki.language, SDK 2.32): on chip, dim 0 is the partition; it is never dropped, moved,
// split, merged or broadcast by these, and a view keeps at least two dimensions there, one in HBM. V is View or
// WideView.
#pragma once

#include <span>

#include "sterna/base/result.h"
#include "sterna/machine/tensor.h"
#include "sterna/machine/view.h"

namespace sterna {

/// One item of an index: a whole number or start:stop:step, already resolved against the dimension's size (negative
/// numbers, missing ends and clipping are the caller's or `resolve_slice`'s).
struct IndexItem {
  enum class Kind : uint8_t { kInt, kSlice } kind = Kind::kSlice;
  int64_t start = 0, stop = 0, step = 1;
};

/// Python's rules for start:stop:step on a dimension of `size`: negative numbers count from the end, ends are clipped.
IndexItem resolve_slice(int64_t size, bool has_start, int64_t start, bool has_stop, int64_t stop, int64_t step);

/// view[items]; missing trailing items mean all. Faults: kOutOfBounds (IDX1: an index outside the dimension), kBadInput
/// (too many items, step <= 0).
template <class V>
Result<V> index_view(const V& view, std::span<const IndexItem> items);
template <class V>
Result<V> reshape_view(const V& view, std::span<const int64_t> shape);  ///< one -1 allowed
template <class V>
Result<V> permute_view(const V& view, std::span<const int> dims);
template <class V>
Result<V> broadcast_view(const V& view, int dim, int64_t size);  ///< dim of count 1 becomes `size`
template <class V>
Result<V> broadcast_to_view(const V& view, std::span<const int64_t> shape);  ///< numpy rules; dim 0 too (NAP: compat)
template <class V>
Result<V> expand_dim_view(const V& view, int dim);
template <class V>
Result<V> squeeze_dim_view(const V& view, int dim);
template <class V>
Result<V> flatten_dims_view(const V& view, int first, int last);
template <class V>
Result<V> split_dim_view(const V& view, int dim, std::span<const int64_t> shape);
/// Same bits seen as another type; the last dim scales by the size ratio and must be contiguous.
template <class V>
Result<V> reinterpret_view(const V& view, DType dtype);
/// The raw pattern [[stride, count], ...] against the tensor. `offset` in elements of `dtype`, added to the view's own
/// offset. On chip the first pair is the partition: its stride must equal the tensor's free element count (of `dtype`).
Result<View> pattern_view(const View& view, const TensorInfo& tensor, std::span<const Dim> pattern, int64_t offset,
                          DType dtype);

/// The same view with room for more dimensions.
WideView widened(const View& view);
/// The View that walks the same elements in the same order, the leading dimensions as one where there are more than
/// kMaxDims. Fault VIEW3: no such view.
Result<View> merge_leading(const WideView& view);

/// Free dims laid out without gaps, in order.
bool free_contiguous(const View& view);
/// True when all elements lie inside the tensor.
bool in_bounds(const View& view, const TensorInfo& tensor);
/// True when the pattern visits one place more than once: a stride of 0 that is taken several times.
bool repeats_elements(const View& view);
/// First and one-past-last byte that a view touches: inside a partition on chip, in the tensor in HBM.
struct ByteRange {
  int64_t begin = 0, end = 0;
};
ByteRange byte_range(const View& view);

}  // namespace sterna
