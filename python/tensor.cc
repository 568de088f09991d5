// SPDX-License-Identifier: Apache-2.0
// The Python tensor: its type, attributes and plain views.
#include "tensor.h"

#include <utility>

#include "sterna/base/text.h"
#include "sterna/program/check_program.h"

namespace sterna::python {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kFreeList = 64;
TensorObject* free_tensors[kFreeList];
int free_count = 0;

Builder& builder_of(PyObject* object) { return tensor_of(object)->recording->self->builder; }

void tensor_dealloc(PyObject* object) {
  TensorObject* t = tensor_of(object);
  Py_XDECREF(reinterpret_cast<PyObject*>(t->recording));
  delete std::exchange(t->wide, nullptr);
  if (free_count < kFreeList) {
    free_tensors[free_count++] = t;
    return;
  }
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

Py_ssize_t tensor_length(PyObject* object) {
  const TensorObject* t = tensor_of(object);
  if (t->wide != nullptr) return t->wide->dims[0].count;
  return t->view.ndim > 0 ? t->view.dims[0].count : 0;
}

/// `if tensor:` asks in kernels whether there is one (nki-library does, where None is the alternative, also of tensors
/// with one element). Its value nobody knows while a kernel is recorded, so the remark says what was not looked at.
int tensor_bool(PyObject* object) {
  const TensorObject* t = tensor_of(object);
  const bool one = t->wide == nullptr && t->view.elements() == 1;
  const bool good = t->recording->self->compat(
      FaultKind::kWrongType, "TRUTH1",
      one ? "The truth of a tensor is that it is there, its one element is not looked at; write `is not None`, or load "
            "the element into a register to branch on it."
          : "The truth of a tensor is that it is there; write `is not None`.");
  return good ? 1 : -1;
}

// --- attributes

template <class V>
PyObject* dims_tuple(const V& view, bool strides, int64_t row) {
  PyObject* out = PyTuple_New(view.ndim);
  for (int d = 0; out != nullptr && d < view.ndim; ++d) {
    const int64_t stride = d == 0 && view.on_chip() ? view.dims[d].stride * row : view.dims[d].stride;
    PyTuple_SET_ITEM(out, d, PyLong_FromLongLong(strides ? stride : view.dims[d].count));
  }
  return out;
}

int64_t row_elements(PyObject* object) {
  const View& v = tensor_of(object)->view;
  return builder_of(object).tensor(v.tensor).free_bytes() / size_of(v.dtype);
}

PyObject* get_shape(PyObject* o, void*) {
  const TensorObject* t = tensor_of(o);
  return t->wide != nullptr ? dims_tuple(*t->wide, false, 1) : dims_tuple(t->view, false, 1);
}
PyObject* get_strides(PyObject* o, void*) {
  const TensorObject* t = tensor_of(o);
  return t->wide != nullptr ? dims_tuple(*t->wide, true, 1) : dims_tuple(t->view, true, row_elements(o));
}
PyObject* get_offset(PyObject* o, void*) {
  const View& v = tensor_of(o)->view;
  return PyLong_FromLongLong(v.offset + (v.on_chip() ? v.partition * row_elements(o) : 0));
}
int ndim_of(const TensorObject* t) { return t->wide != nullptr ? t->wide->ndim : t->view.ndim; }
PyObject* get_ndim(PyObject* o, void*) { return PyLong_FromLong(ndim_of(tensor_of(o))); }
PyObject* get_size(PyObject* o, void*) { return PyLong_FromLongLong(tensor_of(o)->view.elements()); }
PyObject* get_itemsize(PyObject* o, void*) { return PyLong_FromLong(size_of(tensor_of(o)->view.dtype)); }
PyObject* get_tensor_id(PyObject* o, void*) { return PyLong_FromUnsignedLong(tensor_of(o)->view.tensor); }
PyObject* registered(PyObject* object, const char* what) {
  if (object == nullptr) {
    PyErr_Format(PyExc_RuntimeError, "no front end registered its %s", what);
    return nullptr;
  }
  return Py_NewRef(object);
}
PyObject* get_dtype(PyObject* o, void*) {
  return registered(state().dtype_objects[static_cast<int>(tensor_of(o)->view.dtype)], "dtypes");
}
PyObject* get_buffer(PyObject* o, void*) {
  const View& v = tensor_of(o)->view;
  const TensorInfo& info = builder_of(o).tensor(v.tensor);
  const ModuleState& known = state();
  // An argument is private to a kernel of one core, and shared by the cores of a larger one (simulator guide).
  const bool shared = v.memory == Memory::kHbm && info.shared &&
                      (info.role == TensorRole::kLocal || builder_of(o).cores() > 1 ||
                       tensor_of(o)->recording->self->constants.contains(v.tensor));
  if (shared && known.shared_buffer != nullptr) return Py_NewRef(known.shared_buffer);
  return registered(known.buffer_objects[static_cast<int>(v.memory)], "buffers");
}
PyObject* get_name(PyObject* o, void*) {
  const std::string name = builder_of(o).program().tensor_name(tensor_of(o)->view.tensor);
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}

// In no document. Kernels of a public library (nki-library 2.29, MX experts) ask it of plain tensors, as of its own
// views.
PyObject* get_base_tensor(PyObject* o, void*) {
  return new_whole_tensor(tensor_of(o)->recording, tensor_of(o)->view.tensor);
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
    {"base_tensor", get_base_tensor, nullptr, "The whole tensor that this is a view of.", nullptr},
    {"tensor_id", get_tensor_id, nullptr, "Number of the tensor in its program.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- methods

/// PyArg_ParseTupleAndKeywords with the names of the stub of NkiTensor.
template <size_t n, class... Outputs>
bool parse(PyObject* args, PyObject* kwargs, const char* format, const char* const (&names)[n], Outputs*... out) {
  static_assert(n == sizeof...(out));
  const char* ended[n + 1] = {};
  std::copy(names, names + n, ended);
  return PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(ended), out...) != 0;
}

/// Shape arguments: f(1, 2, 3), f((1, 2, 3)) or f(name=(1, 2, 3)); null with an exception for another keyword.
PyObject* list_of(PyObject* args, PyObject* kwargs, const char* name) {
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) > 0) {
    PyObject* list;
    return parse(args, kwargs, "O", {name}, &list) ? list : nullptr;
  }
  const bool one = PyTuple_GET_SIZE(args) == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0));
  return one ? PyTuple_GET_ITEM(args, 0) : args;
}

/// The view that `make` makes of the tensor's.
template <class F>
PyObject* viewed(PyObject* o, const F& make) {
  const TensorObject* t = tensor_of(o);
  if (t->wide != nullptr) return keep_wide_place(t, make);
  Result<View> made = keep_place(t->recording->self->builder.program(), t->view, make);
  if (!made && may_be_wide(t->view, made.error())) return keep_wide_place(t, make);
  return finish_view(o, std::move(made));
}

PyObject* tensor_reshape(PyObject* o, PyObject* args, PyObject* kwargs) {
  Shape shape;
  PyObject* list = list_of(args, kwargs, "shape");
  if (list == nullptr || !to_shape(list, -1, &shape)) return nullptr;
  const auto reshaped = [&](const auto& v) { return reshape_view(v, shape.span()); };
  const TensorObject* t = tensor_of(o);
  if (t->wide != nullptr) return keep_wide_place(t, reshaped);
  Result<View> view = keep_place(builder_of(o).program(), t->view, reshaped);
  if (!view && may_be_wide(t->view, view.error())) return keep_wide_place(t, reshaped);
  PyObject* hook = PyDict_GetItemString(state().hooks, "move_reshape");
  if (view || view.error().rule != "VIEW2" || hook == nullptr) return finish_view(o, std::move(view));
  // A reshape over partitions moves data; the front end decides whether it does that.
  PyObject* tuple = PyTuple_New(shape.ndim);
  for (int d = 0; tuple != nullptr && d < shape.ndim; ++d)
    PyTuple_SET_ITEM(tuple, d, PyLong_FromLongLong(shape.count[d]));
  PyObject* moved = PyObject_CallFunction(hook, "OOs", o, tuple, view.error().message.c_str());
  Py_XDECREF(tuple);
  return moved;
}
PyObject* tensor_broadcast_to(PyObject* o, PyObject* args, PyObject* kwargs) {
  Shape shape;
  PyObject* list = list_of(args, kwargs, "shape");
  if (list == nullptr || !to_shape(list, 0, &shape)) return nullptr;
  const View& v = tensor_of(o)->view;
  const bool over_partitions = v.on_chip() && shape.ndim == v.ndim && shape.count[0] != v.dims[0].count;
  // Documented views never repeat the partition; the official simulator does.
  if (over_partitions && v.dims[0].count == 1 &&
      !tensor_of(o)->recording->self->compat(
          FaultKind::kRuleBroken, "COMPAT1",
          "Broadcasting over partitions is not documented: dimension 0 of an on-chip tensor is the partition."))
    return nullptr;
  return viewed(o, [&](const auto& from) { return broadcast_to_view(from, shape.span()); });
}
PyObject* tensor_permute(PyObject* o, PyObject* args, PyObject* kwargs) {
  int64_t dims[kMaxTensorDims + 1];
  int n;
  PyObject* list = list_of(args, kwargs, "dims");
  if (list == nullptr || !to_ints(list, "dims", {-kMaxTensorDims, kMaxTensorDims - 1}, dims, &n)) return nullptr;
  const std::vector<int> plain(dims, dims + n);
  return viewed(o, [&](const auto& v) { return permute_view(v, plain); });
}
PyObject* tensor_broadcast(PyObject* o, PyObject* args, PyObject* kwargs) {
  int dim;
  PyObject* size_object;
  int64_t size;
  if (!parse(args, kwargs, "iO", {"dim", "size"}, &dim, &size_object) || !to_int(size_object, "size", kCount, &size))
    return nullptr;
  if (const int64_t both[2] = {tensor_of(o)->view.elements(), size}; !check_elements(both)) return nullptr;
  return viewed(o, [&](const auto& v) { return broadcast_view(v, dim, size); });
}
PyObject* tensor_expand_dim(PyObject* o, PyObject* args, PyObject* kwargs) {
  int dim;
  if (!parse(args, kwargs, "i", {"dim"}, &dim)) return nullptr;
  return viewed(o, [&](const auto& v) { return expand_dim_view(v, dim); });
}
PyObject* tensor_squeeze_dim(PyObject* o, PyObject* args, PyObject* kwargs) {
  int dim;
  if (!parse(args, kwargs, "i", {"dim"}, &dim)) return nullptr;
  return viewed(o, [&](const auto& v) { return squeeze_dim_view(v, dim); });
}
PyObject* tensor_flatten_dims(PyObject* o, PyObject* args, PyObject* kwargs) {
  int first, last;
  if (!parse(args, kwargs, "ii", {"start_dim", "end_dim"}, &first, &last)) return nullptr;
  return viewed(o, [&](const auto& v) { return flatten_dims_view(v, first, last); });
}
PyObject* tensor_reshape_dim(PyObject* o, PyObject* args, PyObject* kwargs) {
  int dim;
  PyObject* shape_object;
  Shape shape;
  if (!parse(args, kwargs, "iO", {"dim", "shape"}, &dim, &shape_object) || !to_shape(shape_object, -1, &shape))
    return nullptr;
  return viewed(o, [&](const auto& v) { return split_dim_view(v, dim, shape.span()); });
}
PyObject* tensor_view(PyObject* o, PyObject* args, PyObject* kwargs) {
  DType dtype;
  PyObject* wanted;
  if (!parse(args, kwargs, "O", {"dtype"}, &wanted) || !to_dtype(wanted, &dtype)) return nullptr;
  const TensorObject* t = tensor_of(o);
  Result<View> made =
      keep_place(builder_of(o).program(), t->view, [&](const View& v) { return reinterpret_view(v, dtype); });
  if (!made || t->wide == nullptr) return finish_view(o, std::move(made));
  return keep_wide_place(t, [&](const WideView& v) {
    Result<WideView> wide = reinterpret_view(v, dtype);
    if (wide) wide->dynamic = made->dynamic;
    return wide;
  });
}

PyObject* tensor_get_pattern(PyObject* o, PyObject*) {
  const TensorObject* t = tensor_of(o);
  const int64_t row = row_elements(o);
  const int ndim = ndim_of(t);
  const Dim* dims = t->wide != nullptr ? t->wide->dims : t->view.dims;
  PyObject* out = PyList_New(ndim);
  for (int d = 0; out != nullptr && d < ndim; ++d) {
    const long long stride = d == 0 && t->view.on_chip() ? dims[d].stride * row : dims[d].stride;
    PyList_SET_ITEM(out, d, Py_BuildValue("[Li]", stride, static_cast<int>(dims[d].count)));
  }
  return out;
}
PyObject* tensor_is_contiguous(PyObject* o, PyObject*) {
  const View& v = tensor_of(o)->view;
  bool yes = free_contiguous(v);
  if (!v.on_chip() && v.ndim > 0 && v.dims[0].count > 1) yes = yes && v.dims[0].stride == v.cols();
  return PyBool_FromLong(yes);
}
PyObject* tensor_is_indirect(PyObject* o, PyObject*) {
  return PyBool_FromLong(tensor_of(o)->view.kind != ViewKind::kStrided);
}

/// Values as text, after executing what was recorded so far.
PyObject* tensor_values_text(PyObject* o, PyObject*) {
  Recording& r = *tensor_of(o)->recording->self;
  const View view = tensor_of(o)->view;
  // The builder checks the views of instructions; this one goes to the machine directly.
  if (Status inside = check_view(r.builder.program(), view); !inside) {
    raise_here(r, std::move(inside.error()));
    return nullptr;
  }
  Machine* machine = r.look();
  if (machine == nullptr) return nullptr;
  auto opened = machine->read_any(view, "print");
  if (!opened) {
    raise_here(r, Fault(std::move(opened.error())));
    return nullptr;
  }
  const std::string text = values_text(*machine, view);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

PyMethodDef tensor_methods[] = {
    method("reshape", tensor_reshape, METH_VARARGS | METH_KEYWORDS,
           "The same elements in another shape; dim 0 of an on-chip tensor stays."),
    method("broadcast_to", tensor_broadcast_to, METH_VARARGS | METH_KEYWORDS, "Repeats dimensions of size 1."),
    method("permute", tensor_permute, METH_VARARGS | METH_KEYWORDS, "Reorders dimensions."),
    method("slice", tensor_slice, METH_VARARGS | METH_KEYWORDS, "slice(dim, start, end, step=1)"),
    method("select", tensor_select, METH_VARARGS | METH_KEYWORDS, "select(dim, index): one index of a dimension."),
    method("broadcast", tensor_broadcast, METH_VARARGS | METH_KEYWORDS, "broadcast(dim, size)"),
    method("expand_dim", tensor_expand_dim, METH_VARARGS | METH_KEYWORDS,
           "expand_dim(dim): inserts a dimension of size 1."),
    method("squeeze_dim", tensor_squeeze_dim, METH_VARARGS | METH_KEYWORDS,
           "squeeze_dim(dim): drops a dimension of size 1."),
    method("flatten_dims", tensor_flatten_dims, METH_VARARGS | METH_KEYWORDS, "flatten_dims(first, last)"),
    method("reshape_dim", tensor_reshape_dim, METH_VARARGS | METH_KEYWORDS,
           "reshape_dim(dim, shape): splits a dimension."),
    method("view", tensor_view, METH_VARARGS | METH_KEYWORDS, "view(dtype): the same bits as another type."),
    method("reinterpret_cast", tensor_view, METH_VARARGS | METH_KEYWORDS,
           "reinterpret_cast(dtype): the same bits as another type."),
    method("ap", tensor_ap, METH_VARARGS | METH_KEYWORDS,
           "ap(pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None)"),
    method("indirect", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tensor_indirect)),
           METH_VARARGS | METH_KEYWORDS,
           "indirect(index, num_elem=None): columns by the places in index (by default 16 for each of its columns), "
           "trn3 and later."),
    method("vector_select", tensor_vector_select, METH_VARARGS | METH_KEYWORDS,
           "vector_select(0, offsets): rows by index."),
    method("get_pattern", tensor_get_pattern, METH_NOARGS, "[[stride, count], ...]"),
    method("is_contiguous", tensor_is_contiguous, METH_NOARGS, "True when the elements adjoin."),
    method("is_indirect", tensor_is_indirect, METH_NOARGS, "True when the place depends on a register or a tensor."),
    method("_values_text", tensor_values_text, METH_NOARGS, "Values as text; executes what was recorded so far."),
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

}  // namespace

PyObject* finish_view(PyObject* like, Result<View>&& view) {
  if (view) return new_tensor(tensor_of(like)->recording, *view);
  raise_here(*tensor_of(like)->recording->self, std::move(view.error()));
  return nullptr;
}

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
  t->wide = nullptr;
  return reinterpret_cast<PyObject*>(t);
}

PyObject* new_wide_tensor(RecordingObject* recording, const WideView& view) {
  Result<View> merged = merge_leading(view);
  if (!merged) {
    raise_here(*recording->self, std::move(merged.error()));
    return nullptr;
  }
  PyObject* made = new_tensor(recording, *merged);
  if (made != nullptr && view.ndim > kMaxDims) tensor_of(made)->wide = new WideView(view);
  return made;
}

PyObject* new_whole_tensor(RecordingObject* recording, uint32_t id) {
  const auto wide = recording->self->wide.find(id);
  if (wide != recording->self->wide.end()) return new_wide_tensor(recording, wide->second);
  return new_tensor(recording, whole_view(id, recording->self->builder.tensor(id)));
}

bool add_tensor_type(PyObject* module) {
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tensor_spec));
  return tensor_type != nullptr &&
         PyModule_AddObject(module, "Tensor", Py_NewRef(reinterpret_cast<PyObject*>(tensor_type))) == 0;
}

}  // namespace sterna::python
