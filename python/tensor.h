// SPDX-License-Identifier: Apache-2.0
// What the parts of the Python tensor share: tensor.cc (type, attributes, plain views), tensor_index.cc (t[...]),
// tensor_dynamic.cc (places that only the run knows).
#pragma once

#include <span>

#include "arguments.h"
#include "sterna/machine/view_ops.h"

namespace sterna::python {

inline Recording& recording_of_tensor(PyObject* object) { return *tensor_of(object)->recording->self; }
/// The dimensions that Python sees.
inline std::span<const Dim> dims_of(const TensorObject* tensor) {
  if (tensor->wide != nullptr) return {tensor->wide->dims, tensor->wide->ndim};
  return {tensor->view.dims, tensor->view.ndim};
}
/// A tensor of the same recording, or the Python exception of the fault.
PyObject* finish_view(PyObject* like, Result<View>&& view);

// tensor_index.cc
PyObject* tensor_subscript(PyObject* object, PyObject* key);
int tensor_assign(PyObject* object, PyObject* key, PyObject* value);
PyObject* tensor_slice(PyObject* object, PyObject* args, PyObject* kwargs);
PyObject* tensor_select(PyObject* object, PyObject* args, PyObject* kwargs);

// tensor_dynamic.cc
/// True for what may stand for a number that only the run knows.
inline bool is_dynamic(PyObject* object) { return Py_TYPE(object) == register_type || Py_TYPE(object) == tensor_type; }
/// The offset that makes `start` (a register or a tensor of one number) the first of `size` indices of a dimension.
bool dynamic_start(const TensorObject* tensor, PyObject* start, int dim, int64_t size, DynamicOffset* out);
/// view[items] where rows are found by an offset tensor: dimension 0 indexes the list.
Result<View> index_rows(Program& program, const View& view, std::span<const IndexItem> items);
/// The view that `make` makes of `view`. Rows found by an offset tensor stay dimension 0 (DYN6), and what the run adds
/// is counted in elements of the new view's type.
template <class F>
Result<View> keep_place(Program& program, const View& view, const F& make);
/// The same for a view of more dimensions than instructions walk; its type stays.
template <class F>
PyObject* keep_wide_place(const TensorObject* tensor, const F& make);
Status check_kept_rows(const View& before, const View& after);
Result<View> rescaled(Program& program, const View& view, DType from);
PyObject* tensor_ap(PyObject* object, PyObject* args, PyObject* kwargs);
PyObject* tensor_vector_select(PyObject* object, PyObject* args, PyObject* kwargs);
PyObject* tensor_indirect(PyObject* object, PyObject* args, PyObject* kwargs);
/// TI4: a view with .indirect() is handed to an instruction as it is.
Fault columns_stay(const View& view);

template <class F>
Result<View> keep_place(Program& program, const View& view, const F& make) {
  if (view.kind == ViewKind::kStrided) return make(view);
  if (view.kind == ViewKind::kIndirect && view.on_chip()) return columns_stay(view);
  // Rows that are found are for view operations what partitions are: a dimension that stays as it is.
  View fixed = view;
  if (view.kind == ViewKind::kIndirect) fixed.memory = Memory::kSbuf;
  Result<View> made = make(fixed);
  if (!made) {
    if (view.kind != ViewKind::kIndirect || made.error().rule != "VIEW2") return made;
    View moved = view;
    moved.ndim = 0;
    return Fault(std::move(check_kept_rows(view, moved).error()));
  }
  made->memory = view.memory;
  STERNA_TRY(check_kept_rows(view, *made));
  return rescaled(program, *made, view.dtype);
}

template <class F>
PyObject* keep_wide_place(const TensorObject* tensor, const F& make) {
  Result<WideView> made = make(tensor->wide != nullptr ? *tensor->wide : widened(tensor->view));
  if (made) return new_wide_tensor(tensor->recording, *made);
  raise_here(*tensor->recording->self, std::move(made.error()));
  return nullptr;
}

/// Whether more dimensions than instructions walk are worth a try: HBM has them.
inline bool may_be_wide(const View& view, const Fault& fault) {
  return fault.rule == "VIEW3" && !view.on_chip() && view.kind != ViewKind::kIndirect;
}

}  // namespace sterna::python
