// SPDX-License-Identifier: Apache-2.0
// Views whose place only the run knows: ap() with an offset, vector_select, an index that is a register, and what may
// be made of such views. A view carries one such offset; what would need two is refused.
#include "sterna/base/text.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/check_program.h"
#include "tensor.h"

namespace sterna::python {
namespace {

Fault second_offset(const View& view) {
  return Fault(FaultKind::kNotImplemented, "DYN5",
               cat("A view ", shape_text(view), " that is already found ",
                   view.kind == ViewKind::kDynamic ? "by a register" : "by an offset tensor",
                   " cannot take a second dynamic offset. Add the numbers first, in one register."));
}

Fault rows_move(const View& view) {
  return Fault(FaultKind::kNotImplemented, "DYN6",
               cat("The rows of a view ", shape_text(view),
                   " are found by an offset tensor: they stay dimension 0, in their order. Copy the rows first."));
}

/// Where an offset comes from. `one`: it is a single number.
bool offset_from(RecordingObject* recording, PyObject* object, const char* what, bool one, DynamicOffset* out) {
  if (Py_TYPE(object) == register_type) {
    out->source = DynamicOffset::Source::kRegister;
    out->reg = register_of(object)->id;
    return check_owner(recording, register_of(object)->recording, what);
  }
  if (Py_TYPE(object) != tensor_type) return wrong_type(what, "a register or a tensor", object);
  const TensorObject* tensor = tensor_of(object);
  if (!check_owner(recording, tensor->recording, what)) return false;
  out->source = DynamicOffset::Source::kTensor;
  out->index = tensor->view;
  if (one && tensor->view.elements() != 1)
    return raise_argument(FaultKind::kBadInput, "DYN4",
                          cat("'", what, "' must be one number, not a tensor ", shape_text(tensor->view),
                              "; rows by a list of numbers are found by vector_offset."));
  return is_integer(tensor->view.dtype) ||
         recording->self->compat(FaultKind::kRuleBroken, "DYN7",
                                 cat("The offset tensor '", what, "' is ", name(tensor->view.dtype),
                                     "; only integers are documented, and fractions are rounded."));
}

/// The numbers `rows` of a list of `size`, as a view of its own.
Result<View> part_of_list(const View& list, const IndexItem& rows, int64_t count, const View& of) {
  int long_dim = 0, long_dims = 0;
  for (int d = 0; d < list.ndim; ++d)
    if (list.dims[d].count != 1) long_dim = d, ++long_dims;
  // A list of two dimensions is read row by row or column by column, as the instruction says.
  if (long_dims > 1 || list.kind == ViewKind::kIndirect) return rows_move(of);
  View part = list;
  Dim& dim = part.dims[long_dim];
  if (rows.start + (count - 1) * rows.step >= dim.count)
    return Fault(FaultKind::kOutOfBounds, "DYN3",
                 cat("An offset tensor ", shape_text(list), " has no number for row ",
                     rows.start + (count - 1) * rows.step, " of a view ", shape_text(of), "."));
  if (long_dim == 0 && list.on_chip())
    part.partition += static_cast<int32_t>(rows.start * dim.stride);
  else
    part.offset += rows.start * dim.stride;
  dim = {static_cast<int32_t>(dim.stride * rows.step), static_cast<int32_t>(count)};
  return part;
}

uint32_t add_dynamic(Program& program, const DynamicOffset& offset) {
  program.dynamics.push_back(offset);
  return static_cast<uint32_t>(program.dynamics.size() - 1);
}

/// The one row of the list that an int selects: a view that moves by a single number.
View only_row(const View& view) {
  View out = view;
  out.kind = ViewKind::kDynamic;
  if (view.ndim == 1) {
    out.dims[0] = {1, 1};
    return out;
  }
  for (int d = 0; d + 1 < view.ndim; ++d) out.dims[d] = view.dims[d + 1];
  out.dims[--out.ndim] = {};
  return out;
}

}  // namespace

Fault columns_stay(const View& view) {
  return Fault(FaultKind::kRuleBroken, "TI4",
               cat("A view ", shape_text(view),
                   " with .indirect() is not sliced or reshaped: make the view before, or "
                   "copy the elements first."));
}

Result<View> index_rows(Program& program, const View& view, std::span<const IndexItem> items) {
  if (view.on_chip()) return columns_stay(view);
  const IndexItem all{IndexItem::Kind::kSlice, 0, view.dims[0].count, 1};
  const IndexItem rows = items.empty() ? all : items[0];
  STERNA_ASSIGN(const View range, index_view(view, {&rows, 1}));  // checks the item; its place does not matter
  IndexItem others[kMaxDims];
  std::copy(items.begin(), items.end(), others);
  others[0] = all;
  STERNA_ASSIGN(View out, index_view(view, {others, std::max<size_t>(items.size(), 1)}));
  const bool one = rows.kind == IndexItem::Kind::kInt;
  const int64_t count = one ? 1 : range.dims[0].count;
  out.dims[0].count = static_cast<int32_t>(count);
  if (count == 0 || (!one && count == view.dims[0].count)) return out;
  DynamicOffset offset = program.dynamics[view.dynamic];
  if (offset.source == DynamicOffset::Source::kTensor) {
    STERNA_ASSIGN(offset.index, part_of_list(offset.index, rows, count, view));
  }
  out.dynamic = add_dynamic(program, offset);
  return one ? only_row(out) : out;
}

Status check_kept_rows(const View& before, const View& after) {
  if (before.kind != ViewKind::kIndirect || (after.ndim > 0 && after.dims[0] == before.dims[0])) return {};
  return rows_move(before);
}

Result<View> rescaled(Program& program, const View& view, DType from) {
  const int before = size_of(from), after = size_of(view.dtype);
  if (before == after) return view;
  DynamicOffset offset = program.dynamics[view.dynamic];
  if (offset.multiplier * before % after != 0)
    return Fault(FaultKind::kBadInput, "VIEW7",
                 cat("The dynamic offset moves by ", offset.multiplier, " elements of ", before,
                     " bytes, which is no whole number of elements of ", after, "."));
  offset.multiplier = offset.multiplier * before / after;
  View out = view;
  out.dynamic = add_dynamic(program, offset);
  return out;
}

bool dynamic_start(const TensorObject* tensor, PyObject* start, int dim, int64_t size, DynamicOffset* out) {
  const View& v = tensor->view;
  if (v.kind != ViewKind::kStrided) return raise_here(*tensor->recording->self, second_offset(v)), false;
  if (dim == 0 && v.on_chip()) {
    PyErr_SetString(PyExc_TypeError, "the partition of an on-chip tensor cannot be indexed dynamically");
    return false;
  }
  const Dim at = dims_of(tensor)[static_cast<size_t>(dim)];
  if (size < 1 || size > at.count)
    return raise_argument(FaultKind::kOutOfBounds, "IDX6",
                          cat("A window of ", size, " does not fit dimension ", dim, " of a view ",
                              tensor->wide != nullptr ? shape_text(*tensor->wide) : shape_text(v), "."));
  out->multiplier = at.stride;
  out->limit = at.count - size + 1;
  return offset_from(tensor->recording, start, "index", true, out);
}

namespace {

struct Pattern {
  Dim dims[kMaxDims + 1] = {};
  size_t n = 0;
};

bool to_pattern(PyObject* object, Pattern* out) {
  int64_t counts[kMaxDims + 1];
  const bool good = for_each_item(object, "pattern", [&](PyObject* pair) {
    int64_t numbers[2];
    size_t k = 0;
    const bool numbers_good = for_each_item(pair, "pattern", [&](PyObject* number) {
      if (k == 2) return wrong_type("pattern", "a list of [stride, count] pairs", object);
      const bool stride = k == 0;
      return to_int(number, stride ? "stride of the pattern" : "count of the pattern", stride ? kInt32 : kCount,
                    &numbers[k++]);
    });
    if (!numbers_good) return false;
    if (k != 2) return wrong_type("pattern", "a list of [stride, count] pairs", object);
    if (out->n > kMaxDims) return true;  // pattern_view refuses it
    counts[out->n] = numbers[1];
    out->dims[out->n++] = {static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
    return true;
  });
  return good && check_elements({counts, out->n});
}

/// A tensor's dimensions, and its type, as an index of `ap` sees them.
struct BaseShape {
  DType dtype;
  int ndim;
  int64_t counts[kMaxTensorDims];
};

/// Those of the view where it is the whole tensor in another shape (`t.reshape((1, n)).ap(..., indirect_dim=1)`),
/// those of the tensor where the view is a part of it.
BaseShape base_shape(const TensorInfo& tensor, const TensorObject* object) {
  const View& view = object->view;
  BaseShape out{tensor.dtype, tensor.ndim, {}};
  std::copy(tensor.shape, tensor.shape + tensor.ndim, out.counts);
  const auto& wide = object->recording->self->wide;
  if (const auto at = wide.find(view.tensor); at != wide.end()) {
    out.ndim = at->second.ndim;
    for (int d = 0; d < out.ndim; ++d) out.counts[d] = at->second.dims[d].count;
  }
  const bool whole = view.kind == ViewKind::kStrided && view.offset == 0 && view.partition == 0 && view.ndim > 0 &&
                     view.elements() * size_of(view.dtype) == tensor.bytes() && free_contiguous(view) &&
                     (view.dims[0].count <= 1 || view.dims[0].stride == (view.on_chip() ? 1 : view.cols()));
  if (!whole) return out;
  out.dtype = view.dtype;
  out.ndim = 0;
  for (const Dim& d : dims_of(object)) out.counts[out.ndim++] = d.count;
  return out;
}

/// What an index moves: rows along `dim`, counted in elements of the view's type. A dimension of one row has the step
/// of the dimension before it, so that an index of it walks over the rows of that one: kernels look a dimension up by
/// its step.
Result<DynamicOffset> walk(const BaseShape& base, int dim, const View& view) {
  while (dim > 0 && base.counts[dim] == 1) --dim;
  DynamicOffset offset;
  int64_t bytes = size_of(base.dtype);
  for (int d = dim + 1; d < base.ndim; ++d) bytes *= base.counts[d];
  if (bytes % size_of(view.dtype) != 0)
    return Fault(FaultKind::kBadInput, "AP4",
                 cat("ap: an index moves by ", bytes, " bytes, which is no whole number of elements of ",
                     size_of(view.dtype), "."));
  offset.multiplier = bytes / size_of(view.dtype);
  offset.limit = base.counts[dim];
  return offset;
}

}  // namespace

PyObject* tensor_ap(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"pattern",      "offset", "scalar_offset", "vector_offset",
                                "indirect_dim", "dtype",  nullptr};
  PyObject *pattern_object, *offset_object = Py_None, *scalar = Py_None, *vector = Py_None, *dim_object = nullptr,
                            *dtype_object = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOOO", const_cast<char**>(names), &pattern_object, &offset_object,
                                   &scalar, &vector, &dim_object, &dtype_object))
    return nullptr;
  TensorObject* t = tensor_of(o);
  Recording& r = *t->recording->self;
  const TensorInfo tensor = r.builder.tensor(t->view.tensor);
  const BaseShape base = base_shape(tensor, t);
  DType dtype = t->view.dtype;
  Pattern pattern;
  int64_t extra = 0, dim = 0;
  const Range far = t->view.on_chip() ? kInt32 : Range{-kMostElements, kMostElements};
  if ((dtype_object != Py_None && !to_dtype(dtype_object, &dtype)) || !to_pattern(pattern_object, &pattern) ||
      (offset_object != Py_None && !to_int(offset_object, "offset", far, &extra)) ||
      (dim_object != nullptr && !to_int(dim_object, "indirect_dim", {0, base.ndim - 1}, &dim)))
    return nullptr;
  if (extra != 0 && (t->view.offset != 0 || t->view.partition != 0) &&
      !r.remark("AP3",
                "ap(offset=) on a view that does not start at 0: the offset is added to the view's own; documents "
                "differ on this."))
    return nullptr;
  if ((scalar != Py_None || vector != Py_None) && t->view.kind != ViewKind::kStrided)
    return finish_view(o, second_offset(t->view));
  Program& program = r.builder.program();
  Result<View> made = pattern_view(t->view, tensor, {pattern.dims, pattern.n}, extra, dtype);
  if (made && made->kind == ViewKind::kIndirect) made = rows_move(t->view);
  if (made && made->kind == ViewKind::kDynamic) made = rescaled(program, *made, t->view.dtype);
  if (!made || (scalar == Py_None && vector == Py_None)) return finish_view(o, std::move(made));
  if (scalar != Py_None && vector != Py_None)
    return PyErr_Format(PyExc_ValueError, "ap: only one of scalar_offset and vector_offset can be given");
  const bool one = scalar != Py_None;
  if (!one && dim != 0)
    return PyErr_Format(PyExc_ValueError, "ap: vector_offset needs indirect_dim 0, not %d", static_cast<int>(dim));
  Result<DynamicOffset> offset = walk(base, static_cast<int>(dim), *made);
  if (!offset) return finish_view(o, Fault(std::move(offset.error())));
  if (!offset_from(t->recording, one ? scalar : vector, one ? "scalar_offset" : "vector_offset", one, &*offset))
    return nullptr;
  made->kind = one ? ViewKind::kDynamic : ViewKind::kIndirect;
  made->dynamic = add_dynamic(program, *offset);
  return new_tensor(t->recording, *made);
}

namespace {

Result<View> indirect_columns(Recording& r, View view, const View& index, int64_t count) {
  if (!r.chip->features.indirect_views)
    return Fault(FaultKind::kNotOnThisChip, "TI1", cat("Views with .indirect() do not exist on ", r.chip->name, "."));
  if (!view.on_chip())
    return Fault(FaultKind::kRuleBroken, "TI3",
                 "indirect() is for tensors in SBUF and PSUM; in HBM use vector_select.");
  if (view.kind != ViewKind::kStrided) return second_offset(view);
  if (view.ndim > 2) {
    STERNA_ASSIGN(view, flatten_dims_view(view, 1, view.ndim - 1));
  }
  DynamicOffset offset;
  offset.source = DynamicOffset::Source::kTensor;
  offset.index = index;
  offset.multiplier = view.dims[1].stride;
  offset.limit = view.dims[1].count;
  // Which engine reads the index, and so how it is shared, the instruction says (Builder::read_indices_by_engine). By
  // default there are as many columns as every engine finds.
  const Limits& limits = r.chip->limits;
  offset.group = static_cast<int32_t>(limits.gpsimd_core_partitions);
  if (count < 0) count = index.cols() * std::min<int64_t>(offset.group, view.rows());
  view.dims[1] = {1, static_cast<int32_t>(count)};
  view.kind = ViewKind::kIndirect;
  view.dynamic = add_dynamic(r.builder.program(), offset);
  Status status = check_view(r.builder.program(), view);
  if (!status) {  // too many for those engines, but perhaps not for the array
    offset.group = static_cast<int32_t>(limits.array_index_partitions);
    view.dynamic = add_dynamic(r.builder.program(), offset);
    if (!check_view(r.builder.program(), view)) return std::move(status.error());
  }
  r.finds_columns = true;
  return view;
}

}  // namespace

PyObject* tensor_indirect(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"index", "num_elem", nullptr};
  PyObject *index, *count_object = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(names), &index, &count_object))
    return nullptr;
  TensorObject* t = tensor_of(o);
  int64_t count = -1;
  if (Py_TYPE(index) != tensor_type) return wrong_type("index", "a tensor of places", index), nullptr;
  if (count_object != Py_None && !to_int(count_object, "num_elem", {1, INT32_MAX}, &count)) return nullptr;
  DynamicOffset checked;
  if (!offset_from(t->recording, index, "index", false, &checked)) return nullptr;
  return finish_view(o, indirect_columns(*t->recording->self, t->view, tensor_of(index)->view, count));
}

PyObject* tensor_vector_select(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dim", "vector_offset", nullptr};
  int dim;
  PyObject* offsets;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO", const_cast<char**>(names), &dim, &offsets)) return nullptr;
  TensorObject* t = tensor_of(o);
  View view = t->view;
  if (t->wide != nullptr)
    return finish_view(o, Fault(FaultKind::kNotImplemented, "VIEW3",
                                cat("vector_select: a view ", shape_text(*t->wide), " has more than ", kMaxDims,
                                    " dimensions; reshape it first.")));
  if (dim != 0 || view.on_chip() || view.ndim == 0)
    return PyErr_Format(PyExc_ValueError, "vector_select works on dimension 0 of an HBM tensor");
  if (view.kind != ViewKind::kStrided) return finish_view(o, second_offset(view));
  if (Py_TYPE(offsets) != tensor_type) return wrong_type("vector_offset", "an offset tensor", offsets), nullptr;
  DynamicOffset offset;
  if (!offset_from(t->recording, offsets, "vector_offset", false, &offset)) return nullptr;
  offset.multiplier = view.dims[0].stride;
  offset.limit = view.dims[0].count;
  view.dims[0].count = static_cast<int32_t>(offset.index.rows());
  view.kind = ViewKind::kIndirect;
  view.dynamic = add_dynamic(t->recording->self->builder.program(), offset);
  return new_tensor(t->recording, view);
}

}  // namespace sterna::python
