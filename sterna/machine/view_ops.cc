// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/view_ops.h"

#include <algorithm>
#include <limits>

#include "sterna/base/text.h"

namespace sterna {
namespace {

Fault bad(std::string rule, std::string message) {
  return Fault(FaultKind::kBadInput, std::move(rule), std::move(message));
}

/// First dim that view operations may reshape: the partition dim of an on-chip view stays.
template <class V>
int first_free(const V& v) {
  return v.on_chip() ? 1 : 0;
}

template <class V>
Status check_dim(const V& v, int dim, const char* what) {
  if (dim < 0 || dim >= v.ndim)
    return bad("VIEW1", cat(what, ": dimension ", dim, " of a view of shape ", shape_text(v), " does not exist."));
  return {};
}

template <class V>
Status check_free_dim(const V& v, int dim, const char* what) {
  STERNA_TRY(check_dim(v, dim, what));
  if (dim < first_free(v))
    return bad("VIEW2",
               cat(what, ": dimension 0 of an on-chip tensor is the partition and cannot be changed by a view."));
  return {};
}

/// A count that a view can hold: 0 to 2^31 - 1.
Status check_count(int64_t count, const char* what) {
  if (count >= 0 && count <= std::numeric_limits<int32_t>::max()) return {};
  return bad("VIEW8", cat(what, ": a dimension cannot have ", count, " elements."));
}

/// Splits or merges the run dims[from, to) so that it gets the counts `shape`; a split is always possible, a merge
/// needs strides that continue one another.
template <class V>
Result<V> refit(const V& v, int from, int to, std::span<const int64_t> shape, const char* what) {
  V out = v;
  int n = from;
  // Merge everything in [from, to) into maximal uniform runs first.
  struct Run {
    int64_t stride, count;
  };
  Run runs[V::kDims];
  int nruns = 0;
  for (int d = from; d < to; ++d) {
    if (v.dims[d].count == 1) continue;
    if (nruns > 0 && runs[nruns - 1].stride == static_cast<int64_t>(v.dims[d].stride) * v.dims[d].count) {
      runs[nruns - 1].count *= v.dims[d].count;
      runs[nruns - 1].stride = v.dims[d].stride;
    } else {
      runs[nruns++] = {v.dims[d].stride, v.dims[d].count};
    }
  }
  int run = 0;
  int64_t left = nruns > 0 ? runs[0].count : 1;
  for (int64_t count : shape) {
    if (n >= V::kDims) return bad("VIEW3", cat(what, ": a view has at most ", V::kDims, " dimensions."));
    if (count == 1) {
      out.dims[n++] = {0, 1};
      continue;
    }
    if (left == 1 && run + 1 < nruns) left = runs[++run].count;
    if (count == 0 || left % count != 0)
      return bad("VIEW4", cat(what, ": ", shape_text(v), " cannot be seen as ", shape_text(shape),
                              " without moving data; copy the tensor first."));
    left /= count;
    out.dims[n++] = {static_cast<int32_t>(runs[run].stride * left), static_cast<int32_t>(count)};
  }
  const int tail = v.ndim - to;
  if (n + tail > V::kDims) return bad("VIEW3", cat(what, ": a view has at most ", V::kDims, " dimensions."));
  for (int d = 0; d < tail; ++d) out.dims[n + d] = v.dims[to + d];
  out.ndim = static_cast<uint8_t>(n + tail);
  return out;
}

}  // namespace

std::string_view name(Memory memory) {
  switch (memory) {
    case Memory::kHbm: return "hbm";
    case Memory::kSbuf: return "sbuf";
    case Memory::kPsum: return "psum";
  }
  return "?";
}

template <int kMost>
std::string shape_text(const BasicView<kMost>& view) {
  std::string out = "[";
  for (int d = 0; d < view.ndim; ++d) out += (d ? ", " : "") + std::to_string(view.dims[d].count);
  return out + "]";
}

View whole_view(uint32_t id, const TensorInfo& info) {
  View v;
  v.tensor = id;
  v.dtype = info.dtype;
  v.memory = info.memory;
  v.ndim = info.ndim;
  int64_t stride = 1;
  for (int d = info.ndim - 1; d >= 0; --d) {
    v.dims[d] = {static_cast<int32_t>(stride), static_cast<int32_t>(info.shape[d])};
    stride *= info.shape[d];
  }
  if (v.on_chip() && v.ndim > 0) v.dims[0].stride = 1;
  return v;
}

IndexItem resolve_slice(int64_t size, bool has_start, int64_t start, bool has_stop, int64_t stop, int64_t step) {
  IndexItem item;
  item.step = step;
  auto fix = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  item.start = has_start ? fix(start) : 0;
  item.stop = has_stop ? fix(stop) : size;
  return item;
}

template <class V>
Result<V> index_view(const V& view, std::span<const IndexItem> items) {
  if (items.size() > view.ndim)
    return Fault(FaultKind::kOutOfBounds, "IDX2",
                 cat("An index of ", items.size(), " items on a view of shape ", shape_text(view), "."));
  V out = view;
  int n = 0;
  for (int d = 0; d < view.ndim; ++d) {
    const Dim dim = view.dims[d];
    const bool partition = d == 0 && view.on_chip();
    IndexItem item{IndexItem::Kind::kSlice, 0, dim.count, 1};
    if (static_cast<size_t>(d) < items.size()) item = items[static_cast<size_t>(d)];
    const bool is_int = item.kind == IndexItem::Kind::kInt;
    if (is_int) {
      if (item.start < 0 || item.start >= dim.count)
        return Fault(FaultKind::kOutOfBounds, "IDX1",
                     cat("Index ", item.start, " is outside dimension ", d, " of size ", dim.count, " (shape ",
                         shape_text(view), ")."));
      item.stop = item.start + 1;
    }
    if (item.step <= 0) return bad("IDX3", cat("A slice step must be positive, not ", item.step, "."));
    const int64_t count = item.stop <= item.start ? 0 : (item.stop - item.start + item.step - 1) / item.step;
    if (partition)
      out.partition += static_cast<int32_t>(item.start * dim.stride);
    else
      out.offset += item.start * dim.stride;
    // Ints drop a dimension; on chip the partition stays, and so does the last free one when nothing else is left.
    const bool last_chance = view.on_chip() && d == view.ndim - 1 && n < 2;
    const bool only_one = !view.on_chip() && d == view.ndim - 1 && n == 0;
    if (is_int && !partition && !last_chance && !only_one) continue;
    out.dims[n++] = {static_cast<int32_t>(dim.stride * item.step), static_cast<int32_t>(count)};
  }
  out.ndim = static_cast<uint8_t>(n);
  for (int d = n; d < V::kDims; ++d) out.dims[d] = {};
  return out;
}

template <class V>
Result<V> reshape_view(const V& view, std::span<const int64_t> shape) {
  int64_t wanted[V::kDims];
  if (shape.size() > V::kDims || shape.empty())
    return bad("VIEW3", cat("reshape: a view has 1 to ", V::kDims, " dimensions, ", shape.size(), " asked for."));
  int64_t known = 1;
  int unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    wanted[d] = shape[d];
    if (shape[d] != -1) STERNA_TRY(check_count(shape[d], "reshape"));
    if (shape[d] == -1 && unknown >= 0) return bad("VIEW8", "reshape: only one dimension can be -1.");
    if (shape[d] == -1)
      unknown = static_cast<int>(d);
    else
      known *= shape[d];
  }
  if (unknown >= 0) wanted[unknown] = known == 0 ? 0 : view.elements() / known;
  int64_t total = 1;
  for (size_t d = 0; d < shape.size(); ++d) total *= wanted[d];
  std::span<const int64_t> target(wanted, shape.size());
  if (total != view.elements())
    return bad("VIEW5", cat("reshape: ", shape_text(view), " has ", view.elements(), " elements, ", shape_text(target),
                            " has ", total, "."));
  if (!view.on_chip()) return refit(view, 0, view.ndim, target, "reshape");
  if (wanted[0] != view.dims[0].count)
    return bad("VIEW2", cat("reshape: dimension 0 of an on-chip tensor is the partition: it stays ", view.dims[0].count,
                            ", ", wanted[0], " asked for."));
  return refit(view, 1, view.ndim, target.subspan(1), "reshape");
}

template <class V>
Result<V> permute_view(const V& view, std::span<const int> dims) {
  if (dims.size() != view.ndim)
    return bad("VIEW1", cat("permute: ", dims.size(), " dims for a view of shape ", shape_text(view), "."));
  bool seen[V::kDims] = {};
  V out = view;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int from = dims[d] < 0 ? dims[d] + view.ndim : dims[d];
    STERNA_TRY(check_dim(view, from, "permute"));
    if (seen[from]) return bad("VIEW1", cat("permute: dimension ", from, " appears twice."));
    seen[from] = true;
    if (view.on_chip() && (d == 0) != (from == 0))
      return bad("VIEW2", "permute: dimension 0 of an on-chip tensor is the partition and cannot move.");
    out.dims[d] = view.dims[from];
  }
  return out;
}

template <class V>
Result<V> broadcast_view(const V& view, int dim, int64_t size) {
  STERNA_TRY(check_free_dim(view, dim, "broadcast"));
  STERNA_TRY(check_count(size, "broadcast"));
  if (view.dims[dim].count != 1)
    return bad("VIEW6",
               cat("broadcast: dimension ", dim, " has ", view.dims[dim].count, " elements, only 1 can be broadcast."));
  V out = view;
  out.dims[dim] = {0, static_cast<int32_t>(size)};
  return out;
}

template <class V>
Result<V> broadcast_to_view(const V& view, std::span<const int64_t> shape) {
  if (shape.size() < view.ndim || shape.size() > V::kDims)
    return bad("VIEW6", cat("broadcast_to: ", shape_text(view), " cannot become ", shape_text(shape), "."));
  V out = view;
  out.ndim = static_cast<uint8_t>(shape.size());
  const size_t lead = shape.size() - view.ndim;
  if (lead > 0 && view.on_chip())
    return bad("VIEW2", cat("broadcast_to: ", shape_text(view), " cannot gain a dimension before the partition."));
  for (size_t d = 0; d < shape.size(); ++d) {
    STERNA_TRY(check_count(shape[d], "broadcast_to"));
    const Dim have = d < lead ? Dim{0, 1} : view.dims[d - lead];
    if (have.count == shape[d])
      out.dims[d] = have;
    else if (have.count == 1)
      out.dims[d] = {0, static_cast<int32_t>(shape[d])};
    else
      return bad("VIEW6", cat("broadcast_to: ", shape_text(view), " cannot become ", shape_text(shape), "."));
  }
  return out;
}

template <class V>
Result<V> expand_dim_view(const V& view, int dim) {
  const int at = dim < 0 ? dim + view.ndim + 1 : dim;
  if (at < first_free(view) || at > view.ndim)
    return bad("VIEW2", cat("expand_dim: no dimension can be inserted at ", dim, " of shape ", shape_text(view), "."));
  if (view.ndim == V::kDims) return bad("VIEW3", cat("expand_dim: a view has at most ", V::kDims, " dimensions."));
  V out = view;
  for (int d = view.ndim; d > at; --d) out.dims[d] = view.dims[d - 1];
  out.dims[at] = {0, 1};
  ++out.ndim;
  return out;
}

template <class V>
Result<V> squeeze_dim_view(const V& view, int dim) {
  const int at = dim < 0 ? dim + view.ndim : dim;
  STERNA_TRY(check_free_dim(view, at, "squeeze_dim"));
  if (view.dims[at].count != 1)
    return bad("VIEW6", cat("squeeze_dim: dimension ", at, " has ", view.dims[at].count, " elements."));
  V out = view;
  for (int d = at; d + 1 < view.ndim; ++d) out.dims[d] = view.dims[d + 1];
  --out.ndim;
  out.dims[out.ndim] = {};
  return out;
}

template <class V>
Result<V> flatten_dims_view(const V& view, int first, int last) {
  STERNA_TRY(check_free_dim(view, first, "flatten_dims"));
  STERNA_TRY(check_free_dim(view, last, "flatten_dims"));
  if (last < first) return bad("VIEW1", "flatten_dims: the last dimension comes before the first.");
  int64_t count = 1;
  for (int d = first; d <= last; ++d) count *= view.dims[d].count;
  const int64_t shape[1] = {count};
  STERNA_ASSIGN(V out, refit(view, first, last + 1, shape, "flatten_dims"));
  for (int d = out.ndim; d < V::kDims; ++d) out.dims[d] = {};
  return out;
}

template <class V>
Result<V> split_dim_view(const V& view, int dim, std::span<const int64_t> shape) {
  STERNA_TRY(check_free_dim(view, dim, "reshape_dim"));
  int64_t fixed[V::kDims];
  if (shape.size() > V::kDims) return bad("VIEW3", cat("reshape_dim: a view has at most ", V::kDims, " dimensions."));
  int64_t known = 1, total = 1;
  int unknown = 0;
  for (int64_t n : shape) {
    if (n != -1) STERNA_TRY(check_count(n, "reshape_dim"));
    if (n == -1 && ++unknown > 1) return bad("VIEW8", "reshape_dim: only one dimension can be -1.");
    if (n != -1) known *= n;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    fixed[d] = shape[d] == -1 ? (known ? view.dims[dim].count / known : 0) : shape[d];
    total *= fixed[d];
  }
  if (total != view.dims[dim].count)
    return bad("VIEW5", cat("reshape_dim: dimension ", dim, " has ", view.dims[dim].count,
                            " elements, the new shape has ", total, "."));
  return refit(view, dim, dim + 1, {fixed, shape.size()}, "reshape_dim");
}

template <class V>
Result<V> reinterpret_view(const V& view, DType dtype) {
  const int from = size_of(view.dtype), to = size_of(dtype);
  V out = view;
  out.dtype = dtype;
  if (from == to) return out;
  const int last = view.ndim - 1;
  if (last < first_free(view) || (view.dims[last].stride != 1 && view.dims[last].count != 1))
    return bad("VIEW7", cat("view: the last dimension must be contiguous to change the element size from ", from,
                            " to ", to, " bytes."));
  // Everything is rescaled from units of `from` bytes to units of `to` bytes.
  auto scale = [&](int64_t n, int64_t& result) {
    result = n * from / to;
    return n * from % to == 0;
  };
  int64_t scaled;
  if (!scale(view.offset, scaled))
    return bad("VIEW7", cat("view: the start of the view is not aligned to ", to, " bytes."));
  out.offset = scaled;
  for (int d = first_free(view); d < last; ++d) {
    if (!scale(view.dims[d].stride, scaled))
      return bad("VIEW7", cat("view: dimension ", d, " is not aligned to ", to, " bytes."));
    out.dims[d].stride = static_cast<int32_t>(scaled);
  }
  if (!scale(view.dims[last].count, scaled))
    return bad("VIEW7", cat("view: ", view.dims[last].count, " elements of ", from,
                            " bytes do not make whole elements of ", to, " bytes."));
  out.dims[last] = {1, static_cast<int32_t>(scaled)};
  return out;
}

/// Views on chip have a partition and at least one free dimension.
static View two_dims(View view) {
  if (view.ndim == 1) {
    view.dims[1] = {1, 1};
    view.ndim = 2;
  }
  return view;
}

Result<View> pattern_view(const View& view, const TensorInfo& tensor, std::span<const Dim> pattern, int64_t offset,
                          DType dtype) {
  if (pattern.empty() || pattern.size() > kMaxDims)
    return bad("AP1", cat("ap: a pattern has 1 to ", kMaxDims, " [stride, count] pairs, ", pattern.size(), " given."));
  View out = view;
  out.dtype = dtype;
  out.ndim = static_cast<uint8_t>(pattern.size());
  for (int d = 0; d < kMaxDims; ++d) out.dims[d] = d < out.ndim ? pattern[static_cast<size_t>(d)] : Dim{};
  for (const Dim& d : pattern) STERNA_TRY(check_count(d.count, "ap"));
  const int64_t start_byte = view.offset * size_of(view.dtype);
  if (start_byte % size_of(dtype) != 0)
    return bad("VIEW7", cat("ap: the view starts at byte ", start_byte, ", which is not aligned to the ",
                            size_of(dtype), " bytes of ", name(dtype), "."));
  const int64_t own = start_byte / size_of(dtype);
  if (!view.on_chip()) {
    out.offset = own + offset;
    return out;
  }
  const int64_t row = tensor.free_bytes() / size_of(dtype);
  if (tensor.free_bytes() % size_of(dtype) != 0)
    return bad("VIEW7", cat("ap: the ", tensor.free_bytes(), " bytes of a partition do not make whole elements of ",
                            size_of(dtype), " bytes."));
  // Called on a part of a tensor, a pattern may also count in the part's own rows (nki-library's TensorView does).
  const int64_t own_row = view.cols() * size_of(view.dtype) / size_of(dtype);
  if (pattern[0].count > 1 && pattern[0].stride != row && pattern[0].stride == own_row && own_row > 0) {
    out.partition = view.partition + static_cast<int32_t>(offset / own_row) * view.dims[0].stride;
    out.offset = own + offset % own_row;
    out.dims[0].stride = view.dims[0].stride;
    return two_dims(out);
  }
  if (pattern[0].count > 1 && pattern[0].stride != row)
    return bad("AP2", cat("ap: the first pair walks partitions, so its stride must be the tensor's ", row,
                          " free elements; it is ", pattern[0].stride, "."));
  // An offset past the end of a partition moves to a later one.
  const int64_t start = own + offset;
  out.partition = view.partition + static_cast<int32_t>(row > 0 ? start / row : 0);
  out.offset = row > 0 ? start % row : 0;
  out.dims[0].stride = 1;
  return two_dims(out);
}

namespace {

/// The same view with room for another number of dimensions; those it has must fit.
template <class To, class From>
To resized(const From& view) {
  To out;
  out.tensor = view.tensor;
  out.dtype = view.dtype;
  out.ndim = view.ndim;
  out.memory = view.memory;
  out.kind = view.kind;
  out.partition = view.partition;
  out.dynamic = view.dynamic;
  out.offset = view.offset;
  std::copy_n(view.dims, view.ndim, out.dims);
  return out;
}

}  // namespace

WideView widened(const View& view) { return resized<WideView>(view); }

Result<View> merge_leading(const WideView& view) {
  if (view.ndim <= kMaxDims) return resized<View>(view);
  const int first = view.ndim - kMaxDims;  // those up to it become one
  int64_t count = 1;
  for (int d = 0; d <= first; ++d) count *= view.dims[d].count;
  const bool countable = count <= std::numeric_limits<int32_t>::max();
  if (countable && view.elements() == 0) {  // nothing to walk; only the counts matter
    WideView empty = view;
    empty.ndim = kMaxDims;
    empty.dims[0] = {0, static_cast<int32_t>(count)};
    std::copy_n(view.dims + first + 1, kMaxDims - 1, empty.dims + 1);
    return resized<View>(empty);
  }
  if (auto merged = refit(view, 0, first + 1, {&count, 1}, "merge"); countable && merged) return resized<View>(*merged);
  return bad("VIEW3", cat("An instruction walks at most ", kMaxDims, " dimensions, and those of a view ",
                          shape_text(view), " do not merge into so many; index it, or copy the tensor first."));
}

bool free_contiguous(const View& view) {
  int64_t expect = 1;
  for (int d = view.ndim - 1; d >= 1; --d) {
    if (view.dims[d].count == 1) continue;
    if (view.dims[d].stride != expect) return false;
    expect *= view.dims[d].count;
  }
  return true;
}

bool repeats_elements(const View& view) {
  // The rows of an indirect view come from its indices, not from its stride.
  for (int d = view.kind == ViewKind::kIndirect ? 1 : 0; d < view.ndim; ++d)
    if (view.dims[d].stride == 0 && view.dims[d].count > 1) return view.elements() > 0;
  return false;
}

ByteRange byte_range(const View& view) {
  int64_t low = view.offset, high = view.offset;
  for (int d = first_free(view); d < view.ndim; ++d) {
    if (view.dims[d].count == 0) return {};
    const int64_t span = static_cast<int64_t>(view.dims[d].stride) * (view.dims[d].count - 1);
    (span < 0 ? low : high) += span;
  }
  return {low * size_of(view.dtype), (high + 1) * size_of(view.dtype)};
}

bool in_bounds(const View& view, const TensorInfo& tensor) {
  if (view.elements() == 0) return true;
  const ByteRange range = byte_range(view);
  if (range.begin < 0 || range.end > tensor.free_bytes()) return false;
  if (!view.on_chip()) return true;
  const int64_t last = view.partition + static_cast<int64_t>(view.dims[0].stride) * (view.dims[0].count - 1);
  return view.partition >= 0 && last >= 0 && std::max<int64_t>(view.partition, last) < tensor.partitions();
}

template Result<View> index_view(const View&, std::span<const IndexItem>);
template Result<View> reshape_view(const View&, std::span<const int64_t>);
template Result<View> permute_view(const View&, std::span<const int>);
template Result<View> broadcast_view(const View&, int, int64_t);
template Result<View> broadcast_to_view(const View&, std::span<const int64_t>);
template Result<View> expand_dim_view(const View&, int);
template Result<View> squeeze_dim_view(const View&, int);
template Result<View> flatten_dims_view(const View&, int, int);
template Result<View> split_dim_view(const View&, int, std::span<const int64_t>);
template Result<View> reinterpret_view(const View&, DType);
template Result<WideView> index_view(const WideView&, std::span<const IndexItem>);
template Result<WideView> reshape_view(const WideView&, std::span<const int64_t>);
template Result<WideView> permute_view(const WideView&, std::span<const int>);
template Result<WideView> broadcast_view(const WideView&, int, int64_t);
template Result<WideView> broadcast_to_view(const WideView&, std::span<const int64_t>);
template Result<WideView> expand_dim_view(const WideView&, int);
template Result<WideView> squeeze_dim_view(const WideView&, int);
template Result<WideView> flatten_dims_view(const WideView&, int, int);
template Result<WideView> split_dim_view(const WideView&, int, std::span<const int64_t>);
template Result<WideView> reinterpret_view(const WideView&, DType);
template std::string shape_text(const View&);
template std::string shape_text(const WideView&);

}  // namespace sterna
