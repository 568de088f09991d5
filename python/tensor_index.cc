// SPDX-License-Identifier: Apache-2.0
// t[...]: the hottest call of a kernel, so for static indices it allocates nothing but its result.
#include <algorithm>

#include "sterna/base/text.h"
#include "tensor.h"

namespace sterna::python {
namespace {

struct Index {
  IndexItem items[kMaxTensorDims];
  int count = 0;
  // A dynamic place on one dimension: start from a register or a (1,1) tensor, static size.
  PyObject* dynamic = nullptr;
  int dynamic_dim = -1;
  int64_t dynamic_size = 0;
  bool clipped = false;  // a slice reaches past an end

  std::span<const IndexItem> span() const { return {items, static_cast<size_t>(count)}; }
  bool add(IndexItem item) {
    items[count++] = item;
    return true;
  }
};

bool add_slice(int64_t size, bool has_start, int64_t start, bool has_stop, int64_t stop, int64_t step, Index* index) {
  index->clipped = index->clipped || (has_stop && stop > size) || (has_start && (start > size || start < -size));
  return index->add(resolve_slice(size, has_start, start, has_stop, stop, std::min<int64_t>(step, INT32_MAX)));
}

bool parse_slice(PyObject* key, int64_t size, Index* index) {
  auto* s = reinterpret_cast<PySliceObject*>(key);
  int64_t start = 0, stop = 0, step = 1;
  if (s->step != Py_None && !to_number(s->step, &step)) return false;
  if (s->start != Py_None && !to_number(s->start, &start)) return false;
  if (s->stop != Py_None && !to_number(s->stop, &stop)) return false;
  return add_slice(size, s->start != Py_None, start, s->stop != Py_None, stop, step, index);
}

bool add_dynamic(PyObject* start, int dim, int64_t size, IndexItem item, Index* index) {
  if (index->dynamic != nullptr) {
    PyErr_SetString(PyExc_TypeError, "only one dimension of a tensor can be indexed dynamically");
    return false;
  }
  index->dynamic = start;
  index->dynamic_dim = dim;
  index->dynamic_size = size;
  return index->add(item);
}

/// nl.ds(start, size)
bool parse_window(PyObject* key, int dim, int64_t size, Index* index) {
  PyObject* start = PyTuple_GET_ITEM(key, 0);
  int64_t n, first;
  if (!to_number(PyTuple_GET_ITEM(key, 1), &n)) return false;
  if (is_dynamic(start)) return add_dynamic(start, dim, n, {IndexItem::Kind::kSlice, 0, n, 1}, index);
  if (!to_number(start, &first)) return false;
  if (n < 0) return raise_argument(FaultKind::kOutOfBounds, "IDX6", cat("A window cannot have a size of ", n, "."));
  if (first < 0 && first + size >= 0) first += size;
  return add_slice(size, true, first, true, first + n, 1, index);
}

bool is_window(PyObject* key) {
  return state().ds_type != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(key)) == state().ds_type;
}

bool parse_item(PyObject* key, std::span<const Dim> dims, int dim, Index* index) {
  const int64_t size = dims[static_cast<size_t>(dim)].count;
  if (PySlice_Check(key)) return parse_slice(key, size, index);
  if (is_dynamic(key)) return add_dynamic(key, dim, 1, {IndexItem::Kind::kInt, 0, 1, 1}, index);
  if (is_window(key)) return parse_window(key, dim, size, index);
  if (!PyIndex_Check(key)) {
    PyErr_Format(PyExc_TypeError, "a tensor index must be an int, a slice, nl.ds, ... or a register, not %s",
                 Py_TYPE(key)->tp_name);
    return false;
  }
  int64_t value;
  if (!to_number(key, &value)) return false;
  if (value < 0 && value + size >= 0) value += size;
  return index->add({IndexItem::Kind::kInt, value, value + 1, 1});
}

bool parse_index(PyObject* key, std::span<const Dim> dims, Index* index) {
  const int ndim = static_cast<int>(dims.size());
  if (!PyTuple_Check(key) || is_window(key)) {
    if (key == Py_Ellipsis) return true;
    if (ndim > 0) return parse_item(key, dims, 0, index);
    PyErr_SetString(PyExc_IndexError, "too many indices for a tensor");
    return false;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  Py_ssize_t given = n;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyTuple_GET_ITEM(key, i) == Py_Ellipsis) --given;
  if (given > ndim || n > given + 1) {
    PyErr_Format(PyExc_IndexError, "[IDX2] %zd indices and %zd ... for a tensor of %d dimensions", given, n - given,
                 ndim);
    return false;
  }
  int dim = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(key, i);
    if (item != Py_Ellipsis) {
      if (!parse_item(item, dims, dim++, index)) return false;
      continue;
    }
    for (int fill = ndim - static_cast<int>(given); fill > 0; --fill, ++dim)
      index->add({IndexItem::Kind::kSlice, 0, dims[static_cast<size_t>(dim)].count, 1});
  }
  return true;
}

/// The view of start 0, moved by a start that the run knows.
PyObject* view_from(PyObject* object, const Index& index) {
  TensorObject* t = tensor_of(object);
  DynamicOffset start;
  if (!dynamic_start(t, index.dynamic, index.dynamic_dim, index.dynamic_size, &start)) return nullptr;
  if (t->wide != nullptr)
    return keep_wide_place(t, [&](const WideView& v) {
      Result<WideView> made = index_view(v, index.span());
      if (made) {
        made->kind = ViewKind::kDynamic;
        made->dynamic = t->recording->self->builder.add_dynamic(start);
      }
      return made;
    });
  Result<View> view = index_view(t->view, index.span());
  if (view) {
    view->kind = ViewKind::kDynamic;
    view->dynamic = t->recording->self->builder.add_dynamic(start);
  }
  return finish_view(object, std::move(view));
}

PyObject* view_at(PyObject* object, const Index& index) {
  TensorObject* t = tensor_of(object);
  Recording& r = *t->recording->self;
  if (index.clipped &&
      !r.compat(FaultKind::kOutOfBounds, "IDX5",
                cat("A slice of a tensor ", t->wide != nullptr ? shape_text(*t->wide) : shape_text(t->view),
                    " reaches past its end and is clipped.")))
    return nullptr;
  if (index.dynamic != nullptr) return view_from(object, index);
  if (t->wide != nullptr) return keep_wide_place(t, [&](const WideView& v) { return index_view(v, index.span()); });
  if (t->view.kind == ViewKind::kIndirect)
    return finish_view(object, index_rows(r.builder.program(), t->view, index.span()));
  Result<View> view = index_view(t->view, index.span());
  return view ? new_tensor(t->recording, *view) : finish_view(object, std::move(view));
}

/// A dimension by its number, negative ones from the end.
bool to_dim(PyObject* object, std::span<const Dim> dims, const char* what, int* dim) {
  int64_t number;
  if (!PyIndex_Check(object)) return wrong_type("dim", "a whole number", object);
  if (!to_number(object, &number)) return false;
  const auto ndim = static_cast<int64_t>(dims.size());
  if (number < 0) number += ndim;
  if (number < 0 || number >= ndim) {
    PyErr_Format(PyExc_IndexError, "%s: dimension %lld does not exist", what, static_cast<long long>(number));
    return false;
  }
  *dim = static_cast<int>(number);
  return true;
}

/// An index of everything in the dimensions before `dim`.
Index all_before(std::span<const Dim> dims, int dim) {
  Index index;
  for (const Dim& d : dims.first(static_cast<size_t>(dim))) index.add({IndexItem::Kind::kSlice, 0, d.count, 1});
  return index;
}

}  // namespace

PyObject* tensor_subscript(PyObject* object, PyObject* key) {
  Index index;
  return parse_index(key, dims_of(tensor_of(object)), &index) ? view_at(object, index) : nullptr;
}

PyObject* tensor_slice(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dim", "start", "end", "step", nullptr};
  PyObject *dim_object, *start_object, *end_object, *step_object = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O", const_cast<char**>(names), &dim_object, &start_object,
                                   &end_object, &step_object))
    return nullptr;
  const std::span<const Dim> dims = dims_of(tensor_of(o));
  int dim;
  int64_t start, end, step = 1;
  if (!to_dim(dim_object, dims, "slice", &dim) || !to_number(start_object, &start) || !to_number(end_object, &end) ||
      (step_object != nullptr && !to_number(step_object, &step)))
    return nullptr;
  Index index = all_before(dims, dim);
  return add_slice(dims[static_cast<size_t>(dim)].count, true, start, true, end, step, &index) ? view_at(o, index)
                                                                                               : nullptr;
}

PyObject* tensor_select(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dim", "index", nullptr};
  PyObject *dim_object, *item;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", const_cast<char**>(names), &dim_object, &item)) return nullptr;
  const std::span<const Dim> dims = dims_of(tensor_of(o));
  int dim;
  if (!to_dim(dim_object, dims, "select", &dim)) return nullptr;
  Index index = all_before(dims, dim);
  return parse_item(item, dims, dim, &index) ? view_at(o, index) : nullptr;
}

int tensor_assign(PyObject* object, PyObject* key, PyObject* value) {
  PyObject* hook = PyDict_GetItemString(state().hooks, "assign");
  if (value == nullptr || hook == nullptr) {
    PyErr_SetString(PyExc_TypeError,
                    value ? "assignment to a tensor needs a front end" : "tensor elements cannot be deleted");
    return -1;
  }
  PyObject* target = tensor_subscript(object, key);
  if (target == nullptr) return -1;
  PyObject* done = PyObject_CallFunctionObjArgs(hook, target, value, nullptr);
  Py_DECREF(target);
  Py_XDECREF(done);
  return done == nullptr ? -1 : 0;
}

}  // namespace sterna::python
