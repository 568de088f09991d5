// SPDX-License-Identifier: Apache-2.0
// The Python tensor: indexing and views. Indexing is the hottest call of a kernel, so it allocates nothing but its
// result.
#include <algorithm>
#include <cstring>

#include "binding.h"
#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* register_type = nullptr;
PyTypeObject* handle_type = nullptr;

namespace {

constexpr int kFreeList = 64;
TensorObject* free_tensors[kFreeList];
int free_count = 0;

TensorObject* self_of(PyObject* object) { return reinterpret_cast<TensorObject*>(object); }
Builder& builder_of(PyObject* object) { return self_of(object)->recording->self->builder; }

void tensor_dealloc(PyObject* object) {
  TensorObject* t = self_of(object);
  Py_XDECREF(reinterpret_cast<PyObject*>(t->recording));
  if (free_count < kFreeList) {
    free_tensors[free_count++] = t;
    return;
  }
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

/// A view, or the Python exception of its fault.
PyObject* finish(PyObject* like, Result<View>&& view) {
  if (!view) {
    raise_here(*self_of(like)->recording->self, std::move(view.error()));
    return nullptr;
  }
  return new_tensor(self_of(like)->recording, *view);
}

/// A remark on the line that is being recorded; false when the user made remarks errors.
bool remark(PyObject* object, const char* rule, const std::string& message) {
  Recording& r = *self_of(object)->recording->self;
  r.mark_site();
  r.builder.warn(rule, message);
  return r.show_warnings();
}

bool to_int64(PyObject* object, int64_t* out) {
  if (PyLong_CheckExact(object)) {
    *out = PyLong_AsLongLong(object);
    return !(*out == -1 && PyErr_Occurred());
  }
  PyObject* number = PyNumber_Index(object);
  if (number == nullptr) return false;
  *out = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return !(*out == -1 && PyErr_Occurred());
}

/// A tuple or list of whole numbers.
bool to_ints(PyObject* object, std::vector<int64_t>* out) {
  PyObject* fast = PySequence_Fast(object, "expected a tuple or list of whole numbers");
  if (fast == nullptr) return false;
  out->clear();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) {
    int64_t value;
    if (!to_int64(PySequence_Fast_GET_ITEM(fast, i), &value)) {
      Py_DECREF(fast);
      return false;
    }
    out->push_back(value);
  }
  Py_DECREF(fast);
  return true;
}

struct Index {
  IndexItem items[8];
  int count = 0;
  // A dynamic place on one dimension: start from a register or a (1,1) tensor, static size.
  PyObject* dynamic = nullptr;
  int dynamic_dim = -1;
  int64_t dynamic_size = 0;
  bool dynamic_is_int = false;
  bool past_end = false;  // a slice was clipped
};

bool is_dynamic(PyObject* object) { return Py_TYPE(object) == register_type || Py_TYPE(object) == tensor_type; }

bool parse_slice(PyObject* key, int64_t size, Index* index) {
  auto* s = reinterpret_cast<PySliceObject*>(key);
  int64_t start = 0, stop = 0, step = 1;
  if (s->step != Py_None && !to_int64(s->step, &step)) return false;
  if (s->start != Py_None && !to_int64(s->start, &start)) return false;
  if (s->stop != Py_None && !to_int64(s->stop, &stop)) return false;
  index->past_end = index->past_end || stop > size || start > size;
  index->items[index->count++] = resolve_slice(size, s->start != Py_None, start, s->stop != Py_None, stop, step);
  return true;
}

bool parse_item(PyObject* key, const View& view, int dim, Index* index) {
  const int64_t size = view.dims[dim].count;
  if (PySlice_Check(key)) return parse_slice(key, size, index);
  if (is_dynamic(key)) {
    if (index->dynamic != nullptr) {
      PyErr_SetString(PyExc_TypeError, "only one dimension of a tensor can be indexed dynamically");
      return false;
    }
    index->dynamic = key;
    index->dynamic_dim = dim;
    index->dynamic_size = 1;
    index->dynamic_is_int = true;
    index->items[index->count++] = {IndexItem::Kind::kInt, 0, 1, 1};
    return true;
  }
  PyObject* ds_type = state().ds_type;
  if (ds_type != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(key)) == ds_type) {
    PyObject* start = PyTuple_GET_ITEM(key, 0);
    int64_t n;
    if (!to_int64(PyTuple_GET_ITEM(key, 1), &n)) return false;
    if (is_dynamic(start)) {
      index->dynamic = start;
      index->dynamic_dim = dim;
      index->dynamic_size = n;
      index->items[index->count++] = {IndexItem::Kind::kSlice, 0, n, 1};
      return true;
    }
    int64_t first;
    if (!to_int64(start, &first)) return false;
    index->past_end = index->past_end || first + n > size;
    index->items[index->count++] = resolve_slice(size, true, first, true, first + n, 1);
    return true;
  }
  int64_t value;
  if (!to_int64(key, &value)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "a tensor index must be an int, a slice, nl.ds, ... or a register, not %s",
                 Py_TYPE(key)->tp_name);
    return false;
  }
  if (value < 0 && value + size >= 0) value += size;
  index->items[index->count++] = {IndexItem::Kind::kInt, value, value + 1, 1};
  return true;
}

bool parse_index(PyObject* key, const View& view, Index* index) {
  if (!PyTuple_Check(key) ||
      (state().ds_type != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(key)) == state().ds_type)) {
    if (key == Py_Ellipsis) return true;
    if (view.ndim == 0) {
      PyErr_SetString(PyExc_IndexError, "too many indices for a tensor");
      return false;
    }
    return parse_item(key, view, 0, index);
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  Py_ssize_t given = n;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyTuple_GET_ITEM(key, i) == Py_Ellipsis) --given;
  if (given > view.ndim) {
    PyErr_Format(PyExc_IndexError, "[IDX2] %zd indices for a tensor of %d dimensions", given,
                 static_cast<int>(view.ndim));
    return false;
  }
  int dim = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(key, i);
    if (item == Py_Ellipsis) {
      const int fill = view.ndim - static_cast<int>(given);
      for (int k = 0; k < fill; ++k, ++dim)
        index->items[index->count++] = {IndexItem::Kind::kSlice, 0, view.dims[dim].count, 1};
      continue;
    }
    if (!parse_item(item, view, dim++, index)) return false;
  }
  return true;
}

/// Adds the dynamic start of `index` to a view made with start 0.
bool add_dynamic(TensorObject* t, const Index& index, View* view) {
  DynamicOffset offset;
  const Dim dim = t->view.dims[index.dynamic_dim];
  offset.multiplier = dim.stride;
  offset.limit = dim.count - index.dynamic_size + 1;
  if (index.dynamic_dim == 0 && t->view.on_chip()) {
    PyErr_SetString(PyExc_TypeError, "the partition of an on-chip tensor cannot be indexed dynamically");
    return false;
  }
  if (Py_TYPE(index.dynamic) == register_type) {
    offset.source = DynamicOffset::Source::kRegister;
    offset.reg = reinterpret_cast<RegisterObject*>(index.dynamic)->id;
  } else {
    offset.source = DynamicOffset::Source::kTensor;
    offset.index = self_of(index.dynamic)->view;
  }
  view->kind = ViewKind::kDynamic;
  view->dynamic = t->recording->self->builder.add_dynamic(offset);
  return true;
}

PyObject* tensor_subscript(PyObject* object, PyObject* key) {
  TensorObject* t = self_of(object);
  Index index;
  if (!parse_index(key, t->view, &index)) return nullptr;
  Result<View> view = index_view(t->view, {index.items, static_cast<size_t>(index.count)});
  if (!view) return finish(object, std::move(view));
  if (index.past_end &&
      !remark(object, "IDX5",
              cat("A slice of a tensor ", shape_text(t->view), " reaches past its end and is clipped.")))
    return nullptr;
  if (index.dynamic != nullptr && !add_dynamic(t, index, &*view)) return nullptr;
  return new_tensor(t->recording, *view);
}

int tensor_assign(PyObject* object, PyObject* key, PyObject* value) {
  if (value == nullptr) {
    PyErr_SetString(PyExc_TypeError, "tensor elements cannot be deleted");
    return -1;
  }
  PyObject* hook = PyDict_GetItemString(state().hooks, "assign");
  if (hook == nullptr) {
    PyErr_SetString(PyExc_TypeError, "assignment to a tensor needs a front end");
    return -1;
  }
  PyObject* target = tensor_subscript(object, key);
  if (target == nullptr) return -1;
  PyObject* done = PyObject_CallFunctionObjArgs(hook, target, value, nullptr);
  Py_DECREF(target);
  Py_XDECREF(done);
  return done == nullptr ? -1 : 0;
}

Py_ssize_t tensor_length(PyObject* object) {
  return self_of(object)->view.ndim > 0 ? self_of(object)->view.dims[0].count : 0;
}

int tensor_bool(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "a tensor has no truth value while a kernel is recorded; load it into a register first");
  return -1;
}

// --- attributes

PyObject* dims_tuple(const View& view, bool strides, int64_t row) {
  PyObject* out = PyTuple_New(view.ndim);
  for (int d = 0; out != nullptr && d < view.ndim; ++d) {
    const int64_t stride = d == 0 && view.on_chip() ? view.dims[d].stride * row : view.dims[d].stride;
    PyTuple_SET_ITEM(out, d, PyLong_FromLongLong(strides ? stride : view.dims[d].count));
  }
  return out;
}

int64_t row_elements(PyObject* object) {
  const View& v = self_of(object)->view;
  return builder_of(object).tensor(v.tensor).free_bytes() / size_of(v.dtype);
}

PyObject* get_shape(PyObject* o, void*) { return dims_tuple(self_of(o)->view, false, 1); }
PyObject* get_strides(PyObject* o, void*) { return dims_tuple(self_of(o)->view, true, row_elements(o)); }
PyObject* get_offset(PyObject* o, void*) {
  const View& v = self_of(o)->view;
  return PyLong_FromLongLong(v.offset + (v.on_chip() ? v.partition * row_elements(o) : 0));
}
PyObject* get_ndim(PyObject* o, void*) { return PyLong_FromLong(self_of(o)->view.ndim); }
PyObject* get_size(PyObject* o, void*) { return PyLong_FromLongLong(self_of(o)->view.elements()); }
PyObject* get_itemsize(PyObject* o, void*) { return PyLong_FromLong(size_of(self_of(o)->view.dtype)); }
PyObject* get_tensor_id(PyObject* o, void*) { return PyLong_FromUnsignedLong(self_of(o)->view.tensor); }
PyObject* registered(PyObject* object, const char* what) {
  if (object == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "no front end registered its %s", what);
    return nullptr;
  }
  return Py_NewRef(object);
}
PyObject* get_dtype(PyObject* o, void*) {
  return registered(state().dtype_objects[static_cast<int>(self_of(o)->view.dtype)], "dtypes");
}
PyObject* get_buffer(PyObject* o, void*) {
  return registered(state().buffer_objects[static_cast<int>(self_of(o)->view.memory)], "buffers");
}
PyObject* get_name(PyObject* o, void*) {
  const std::string name = builder_of(o).program().tensor_name(self_of(o)->view.tensor);
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}

PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "Counts of the view's dimensions.", nullptr},
    {"strides", get_strides, nullptr, "Elements from one index to the next, for each dimension.", nullptr},
    {"offset", get_offset, nullptr, "Elements before the view's first one.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of an element.", nullptr},
    {"dtype", get_dtype, nullptr, "Type of the elements.", nullptr},
    {"buffer", get_buffer, nullptr, "Memory the tensor is in.", nullptr},
    {"name", get_name, nullptr, "The tensor's name.", nullptr},
    {"tensor_id", get_tensor_id, nullptr, "Number of the tensor in its program.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- methods

/// Shape arguments: f(1, 2, 3) or f((1, 2, 3)).
bool shape_args(PyObject* args, std::vector<int64_t>* shape) {
  if (PyTuple_GET_SIZE(args) == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0)))
    return to_ints(PyTuple_GET_ITEM(args, 0), shape);
  return to_ints(args, shape);
}

PyObject* tensor_reshape(PyObject* o, PyObject* args, PyObject* kwargs) {
  std::vector<int64_t> shape;
  PyObject* named = kwargs ? PyDict_GetItemString(kwargs, "shape") : nullptr;
  if (!(named ? to_ints(named, &shape) : shape_args(args, &shape))) return nullptr;
  Result<View> view = reshape_view(self_of(o)->view, shape);
  PyObject* hook = PyDict_GetItemString(state().hooks, "move_reshape");
  if (view || view.error().rule != "VIEW2" || hook == nullptr) return finish(o, std::move(view));
  // A reshape over partitions moves data; the front end decides whether it does that.
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  for (size_t d = 0; tuple != nullptr && d < shape.size(); ++d)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(d), PyLong_FromLongLong(shape[d]));
  PyObject* moved = PyObject_CallFunction(hook, "OOs", o, tuple, view.error().message.c_str());
  Py_XDECREF(tuple);
  return moved;
}
PyObject* tensor_broadcast_to(PyObject* o, PyObject* args) {
  std::vector<int64_t> shape;
  if (!shape_args(args, &shape)) return nullptr;
  const View& v = self_of(o)->view;
  Result<View> made = broadcast_to_view(v, shape);
  Recording& r = *self_of(o)->recording->self;
  if (made && v.on_chip() && made->dims[0].count != v.dims[0].count) {
    // Documented views never repeat the partition; the official simulator does.
    const std::string message =
        "Broadcasting over partitions is not documented: dimension 0 of an on-chip tensor is the partition.";
    if (r.options.strict) {
      raise_here(r, Fault(FaultKind::kRuleBroken, "COMPAT1", message));
      return nullptr;
    }
    if (!remark(o, "COMPAT1", message)) return nullptr;
  }
  return finish(o, std::move(made));
}
PyObject* tensor_permute(PyObject* o, PyObject* args) {
  std::vector<int64_t> dims;
  if (!shape_args(args, &dims)) return nullptr;
  std::vector<int> plain(dims.begin(), dims.end());
  return finish(o, permute_view(self_of(o)->view, plain));
}
PyObject* tensor_slice(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dim", "start", "end", "step", nullptr};
  int dim;
  long long start, end, step = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iLL|L", const_cast<char**>(names), &dim, &start, &end, &step))
    return nullptr;
  const View& v = self_of(o)->view;
  if (dim < 0) dim += v.ndim;
  if (dim < 0 || dim >= v.ndim) return PyErr_Format(PyExc_IndexError, "slice: dimension %d does not exist", dim);
  IndexItem items[kMaxDims];
  for (int d = 0; d < v.ndim; ++d) items[d] = {IndexItem::Kind::kSlice, 0, v.dims[d].count, 1};
  items[dim] = resolve_slice(v.dims[dim].count, true, start, true, end, step);
  return finish(o, index_view(v, {items, v.ndim}));
}
PyObject* tensor_select(PyObject* o, PyObject* args) {
  int dim;
  PyObject* item;
  if (!PyArg_ParseTuple(args, "iO", &dim, &item)) return nullptr;
  const View& v = self_of(o)->view;
  if (dim < 0) dim += v.ndim;
  if (dim < 0 || dim >= v.ndim) return PyErr_Format(PyExc_IndexError, "select: dimension %d does not exist", dim);
  PyObject* key = PyTuple_New(dim + 1);
  for (int d = 0; d < dim; ++d) PyTuple_SET_ITEM(key, d, PySlice_New(nullptr, nullptr, nullptr));
  PyTuple_SET_ITEM(key, dim, Py_NewRef(item));
  PyObject* out = tensor_subscript(o, key);
  Py_DECREF(key);
  return out;
}
PyObject* tensor_broadcast(PyObject* o, PyObject* args) {
  int dim;
  long long size;
  if (!PyArg_ParseTuple(args, "iL", &dim, &size)) return nullptr;
  return finish(o, broadcast_view(self_of(o)->view, dim, size));
}
PyObject* tensor_expand_dim(PyObject* o, PyObject* args) {
  int dim;
  return PyArg_ParseTuple(args, "i", &dim) ? finish(o, expand_dim_view(self_of(o)->view, dim)) : nullptr;
}
PyObject* tensor_squeeze_dim(PyObject* o, PyObject* args) {
  int dim;
  return PyArg_ParseTuple(args, "i", &dim) ? finish(o, squeeze_dim_view(self_of(o)->view, dim)) : nullptr;
}
PyObject* tensor_flatten_dims(PyObject* o, PyObject* args) {
  int first, last;
  return PyArg_ParseTuple(args, "ii", &first, &last) ? finish(o, flatten_dims_view(self_of(o)->view, first, last))
                                                     : nullptr;
}
PyObject* tensor_reshape_dim(PyObject* o, PyObject* args) {
  int dim;
  PyObject* shape_object;
  std::vector<int64_t> shape;
  if (!PyArg_ParseTuple(args, "iO", &dim, &shape_object) || !to_ints(shape_object, &shape)) return nullptr;
  return finish(o, split_dim_view(self_of(o)->view, dim, shape));
}
PyObject* tensor_view(PyObject* o, PyObject* arg) {
  DType dtype;
  return to_dtype(arg, &dtype) ? finish(o, reinterpret_view(self_of(o)->view, dtype)) : nullptr;
}

bool offset_from(PyObject* object, DynamicOffset* out) {
  if (Py_TYPE(object) == register_type) {
    out->source = DynamicOffset::Source::kRegister;
    out->reg = reinterpret_cast<RegisterObject*>(object)->id;
    return true;
  }
  if (Py_TYPE(object) == tensor_type) {
    out->source = DynamicOffset::Source::kTensor;
    out->index = self_of(object)->view;
    return true;
  }
  PyErr_SetString(PyExc_TypeError, "an offset must be a register or a tensor");
  return false;
}

PyObject* tensor_ap(PyObject* o, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"pattern",      "offset", "scalar_offset", "vector_offset",
                                "indirect_dim", "dtype",  nullptr};
  PyObject *pattern, *offset = Py_None, *scalar = Py_None, *vector = Py_None, *dtype_object = Py_None;
  int indirect_dim = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOiO", const_cast<char**>(names), &pattern, &offset, &scalar,
                                   &vector, &indirect_dim, &dtype_object))
    return nullptr;
  TensorObject* t = self_of(o);
  Builder& builder = builder_of(o);
  const TensorInfo& tensor = builder.tensor(t->view.tensor);
  DType dtype = t->view.dtype;
  if (dtype_object != Py_None && !to_dtype(dtype_object, &dtype)) return nullptr;
  PyObject* fast = PySequence_Fast(pattern, "ap: the pattern is a list of [stride, count] pairs");
  if (fast == nullptr) return nullptr;
  std::vector<Dim> dims;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) {
    std::vector<int64_t> pair;
    if (!to_ints(PySequence_Fast_GET_ITEM(fast, i), &pair) || pair.size() != 2) {
      Py_DECREF(fast);
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "ap: the pattern is a list of [stride, count] pairs");
      return nullptr;
    }
    dims.push_back({static_cast<int32_t>(pair[0]), static_cast<int32_t>(pair[1])});
  }
  Py_DECREF(fast);
  int64_t extra = 0;
  if (offset != Py_None && !to_int64(offset, &extra)) return nullptr;
  if (extra != 0 && (t->view.offset != 0 || t->view.partition != 0) &&
      !remark(o, "AP3",
              "ap(offset=) on a view that does not start at 0: the offset is added to the view's own; documents differ "
              "on this."))
    return nullptr;
  Result<View> made = pattern_view(t->view, tensor, dims, extra, dtype);
  if (!made) return finish(o, std::move(made));
  View view = *made;
  if (scalar != Py_None || vector != Py_None) {
    DynamicOffset dyn;
    if (!offset_from(scalar != Py_None ? scalar : vector, &dyn)) return nullptr;
    int64_t base = 1;
    for (int d = indirect_dim + 1; d < tensor.ndim; ++d) base *= tensor.shape[d];
    dyn.multiplier = base * size_of(tensor.dtype) / size_of(dtype);
    dyn.limit = indirect_dim < tensor.ndim ? tensor.shape[indirect_dim] : 0;
    if (scalar != Py_None) {
      view.kind = ViewKind::kDynamic;
    } else {
      if (indirect_dim != 0)
        return PyErr_Format(PyExc_ValueError, "ap: vector_offset needs indirect_dim 0, not %d", indirect_dim);
      view.kind = ViewKind::kIndirect;
    }
    view.dynamic = builder.add_dynamic(dyn);
  }
  return new_tensor(t->recording, view);
}

PyObject* tensor_vector_select(PyObject* o, PyObject* args) {
  int dim;
  PyObject* offsets;
  if (!PyArg_ParseTuple(args, "iO", &dim, &offsets)) return nullptr;
  TensorObject* t = self_of(o);
  if (dim != 0 || t->view.on_chip())
    return PyErr_Format(PyExc_ValueError, "vector_select works on dimension 0 of an HBM tensor");
  DynamicOffset dyn;
  if (!offset_from(offsets, &dyn) || dyn.source != DynamicOffset::Source::kTensor) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "vector_select takes an offset tensor");
    return nullptr;
  }
  View view = t->view;
  dyn.multiplier = view.dims[0].stride;
  dyn.limit = view.dims[0].count;
  view.dims[0].count = static_cast<int32_t>(dyn.index.rows());
  view.kind = ViewKind::kIndirect;
  view.dynamic = t->recording->self->builder.add_dynamic(dyn);
  return new_tensor(t->recording, view);
}

PyObject* tensor_get_pattern(PyObject* o, PyObject*) {
  const View& v = self_of(o)->view;
  const int64_t row = row_elements(o);
  PyObject* out = PyList_New(v.ndim);
  for (int d = 0; out != nullptr && d < v.ndim; ++d) {
    const long long stride = d == 0 && v.on_chip() ? v.dims[d].stride * row : v.dims[d].stride;
    PyList_SET_ITEM(out, d, Py_BuildValue("[Li]", stride, static_cast<int>(v.dims[d].count)));
  }
  return out;
}
PyObject* tensor_is_contiguous(PyObject* o, PyObject*) {
  const View& v = self_of(o)->view;
  bool yes = free_contiguous(v);
  if (!v.on_chip() && v.ndim > 0 && v.dims[0].count > 1) yes = yes && v.dims[0].stride == v.cols();
  return PyBool_FromLong(yes);
}
PyObject* tensor_is_indirect(PyObject* o, PyObject*) {
  return PyBool_FromLong(self_of(o)->view.kind == ViewKind::kIndirect);
}

/// Values as text, after executing what was recorded so far.
PyObject* tensor_values_text(PyObject* o, PyObject*) {
  Recording& r = *self_of(o)->recording->self;
  r.host_read = true;
  if (!r.flush(false)) return nullptr;
  const std::string text = values_text(r.running().machine(), self_of(o)->view);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

#define METHOD(name, f, flags, doc) {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), flags, doc}
PyMethodDef tensor_methods[] = {
    METHOD("reshape", tensor_reshape, METH_VARARGS | METH_KEYWORDS,
           "The same elements in another shape; dim 0 of an on-chip tensor stays."),
    METHOD("broadcast_to", tensor_broadcast_to, METH_VARARGS, "Repeats dimensions of size 1."),
    METHOD("permute", tensor_permute, METH_VARARGS, "Reorders dimensions."),
    METHOD("slice", tensor_slice, METH_VARARGS | METH_KEYWORDS, "slice(dim, start, end, step=1)"),
    METHOD("select", tensor_select, METH_VARARGS, "select(dim, index): one index of a dimension."),
    METHOD("broadcast", tensor_broadcast, METH_VARARGS, "broadcast(dim, size)"),
    METHOD("expand_dim", tensor_expand_dim, METH_VARARGS, "expand_dim(dim): inserts a dimension of size 1."),
    METHOD("squeeze_dim", tensor_squeeze_dim, METH_VARARGS, "squeeze_dim(dim): drops a dimension of size 1."),
    METHOD("flatten_dims", tensor_flatten_dims, METH_VARARGS, "flatten_dims(first, last)"),
    METHOD("reshape_dim", tensor_reshape_dim, METH_VARARGS, "reshape_dim(dim, shape): splits a dimension."),
    METHOD("view", tensor_view, METH_O, "view(dtype): the same bits as another type."),
    METHOD("reinterpret_cast", tensor_view, METH_O, "reinterpret_cast(dtype): the same bits as another type."),
    METHOD("ap", tensor_ap, METH_VARARGS | METH_KEYWORDS,
           "ap(pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None)"),
    METHOD("vector_select", tensor_vector_select, METH_VARARGS, "vector_select(0, offsets): rows by index."),
    METHOD("get_pattern", tensor_get_pattern, METH_NOARGS, "[[stride, count], ...]"),
    METHOD("is_contiguous", tensor_is_contiguous, METH_NOARGS, "True when the elements adjoin."),
    METHOD("is_indirect", tensor_is_indirect, METH_NOARGS, "True when an offset tensor is attached."),
    METHOD("_values_text", tensor_values_text, METH_NOARGS, "Values as text; executes what was recorded so far."),
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
    {Py_mp_subscript, reinterpret_cast<void*>(tensor_subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_assign)},
    {Py_mp_length, reinterpret_cast<void*>(tensor_length)},
    {Py_nb_bool, reinterpret_cast<void*>(tensor_bool)},
    {Py_tp_getset, tensor_getset},
    {Py_tp_methods, tensor_methods},
    {Py_tp_doc, const_cast<char*>("A tensor in HBM, SBUF or PSUM, or a view of one (NkiTensor).")},
    {0, nullptr}};
PyType_Spec tensor_spec = {"sterna._core.Tensor", sizeof(TensorObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tensor_slots};

// --- registers

RegisterObject* reg_of(PyObject* o) { return reinterpret_cast<RegisterObject*>(o); }
void register_dealloc(PyObject* object) {
  Py_XDECREF(reinterpret_cast<PyObject*>(reg_of(object)->recording));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}
bool register_value(PyObject* o, int32_t* value) {
  Recording& r = *reg_of(o)->recording->self;
  r.host_read = true;
  if (!r.flush(false)) return false;
  *value = r.running().machine().reg(reg_of(o)->id);
  return true;
}
int register_bool(PyObject* o) {
  int32_t value;
  return register_value(o, &value) ? value != 0 : -1;
}
PyObject* register_int(PyObject* o) {
  int32_t value;
  return register_value(o, &value) ? PyLong_FromLong(value) : nullptr;
}
PyObject* register_id(PyObject* o, void*) { return PyLong_FromUnsignedLong(reg_of(o)->id); }
PyObject* register_frozen(PyObject* o, void*) { return PyBool_FromLong(reg_of(o)->frozen); }
PyGetSetDef register_getset[] = {{"id", register_id, nullptr, "Number of the register.", nullptr},
                                 {"frozen", register_frozen, nullptr, "True for a loop's own register.", nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot register_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(register_dealloc)},
    {Py_nb_bool, reinterpret_cast<void*>(register_bool)},
    {Py_nb_int, reinterpret_cast<void*>(register_int)},
    {Py_nb_index, reinterpret_cast<void*>(register_int)},
    {Py_tp_getset, register_getset},
    {Py_tp_doc,
     const_cast<char*>("A 32-bit register (VirtualRegister). Its truth value executes what was recorded so far.")},
    {0, nullptr}};
PyType_Spec register_spec = {"sterna._core.Register", sizeof(RegisterObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, register_slots};

}  // namespace

PyObject* new_tensor(RecordingObject* recording, const View& view) {
  TensorObject* t;
  if (free_count > 0) {
    t = free_tensors[--free_count];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(t), 1);
  } else {
    t = reinterpret_cast<TensorObject*>(tensor_type->tp_alloc(tensor_type, 0));
    if (t == nullptr) return nullptr;
  }
  Py_INCREF(reinterpret_cast<PyObject*>(recording));
  t->recording = recording;
  t->view = view;
  return reinterpret_cast<PyObject*>(t);
}

bool add_tensor_type(PyObject* module) {
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tensor_spec));
  register_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&register_spec));
  return tensor_type != nullptr && register_type != nullptr &&
         PyModule_AddObject(module, "Tensor", Py_NewRef(reinterpret_cast<PyObject*>(tensor_type))) == 0 &&
         PyModule_AddObject(module, "Register", Py_NewRef(reinterpret_cast<PyObject*>(register_type))) == 0;
}

}  // namespace sterna::python
