// SPDX-License-Identifier: Apache-2.0
// Whole numbers out of Python objects, each checked against the range that it is used with. Converting an object may
// run Python code that records instructions, so nothing here keeps a pointer into a recording, and lists are read item
// by item.
#pragma once

#include <span>
#include <string_view>

#include "binding.h"

namespace sterna::python {

struct Range {
  int64_t least, most;
};
inline constexpr Range kInt32{INT32_MIN, INT32_MAX};
inline constexpr Range kCount{0, INT32_MAX};
/// Elements that a tensor or a view can have: far more than any memory, far fewer than numbers of 64 bits can count.
inline constexpr int64_t kMostElements = int64_t{1} << 47;

/// Raises a fault of the line that is being recorded, or of no line. Returns false, to be returned.
bool raise_argument(FaultKind kind, std::string_view rule, std::string message);

/// Raises a fault of rule ARG8, a TypeError: 'what' must be `wanted`. Returns false.
bool wrong_type(std::string_view what, std::string_view wanted, PyObject* got);

/// A whole number, clamped to +-2^61; false with a Python exception when it is none.
bool to_number(PyObject* object, int64_t* out);
/// A whole number within the range, else a fault of rule ARG7 that names `what`.
bool to_int(PyObject* object, std::string_view what, Range range, int64_t* out);

/// Calls f(item) for each item of a tuple or list until it returns false; the list may change meanwhile.
template <class F>
bool for_each_item(PyObject* list, std::string_view what, const F& f) {
  PyObject* fast = PySequence_Fast(list, "");
  if (fast == nullptr) return PyErr_Clear(), wrong_type(what, "a tuple or list", list);
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(fast); ++i) {
    PyObject* item = Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
    good = f(item);
    Py_DECREF(item);
  }
  Py_DECREF(fast);
  return good;
}

/// A tuple or list of at most out.size() whole numbers; `count` says how many.
bool to_ints(PyObject* list, std::string_view what, Range range, std::span<int64_t> out, int* count);

/// A shape: at most kMaxTensorDims counts, together no more than kMostElements. `least` is -1 where one count may be
/// left open.
struct Shape {
  int64_t count[kMaxTensorDims + 1] = {};
  int ndim = 0;
  std::span<const int64_t> span() const { return {count, static_cast<size_t>(ndim)}; }
};
bool to_shape(PyObject* list, int64_t least, Shape* out);
/// Counts multiply to no more than kMostElements, else a fault.
bool check_elements(std::span<const int64_t> counts);

/// The object belongs to this kernel call, else a fault of rule ARG6 that names `what`.
bool check_owner(const RecordingObject* recording, const RecordingObject* owner, std::string_view what);

}  // namespace sterna::python
