// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <algorithm>

#include "sterna/base/text.h"

namespace sterna::python {

bool raise_argument(FaultKind kind, std::string_view rule, std::string message) {
  Fault fault(kind, std::string(rule), std::move(message));
  if (RecordingObject* recording = current_recording_or_null())
    raise_here(*recording->self, std::move(fault));
  else
    raise_fault(fault);
  return false;
}

bool wrong_type(std::string_view what, std::string_view wanted, PyObject* got) {
  return raise_argument(FaultKind::kWrongType, "ARG8",
                        cat("'", what, "' must be ", wanted, ", not ", Py_TYPE(got)->tp_name, "."));
}

bool to_number(PyObject* object, int64_t* out) {
  static constexpr int64_t kFar = int64_t{1} << 61;
  PyObject* number = PyLong_CheckExact(object) ? Py_NewRef(object) : PyNumber_Index(object);
  if (number == nullptr) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  if (overflow == 0 && value == -1 && PyErr_Occurred()) return false;
  *out = overflow > 0 ? kFar : overflow < 0 ? -kFar : std::clamp<int64_t>(value, -kFar, kFar);
  return true;
}

bool to_int(PyObject* object, std::string_view what, Range range, int64_t* out) {
  if (!PyIndex_Check(object)) return wrong_type(what, "a whole number", object);
  if (!to_number(object, out)) return false;
  if (*out >= range.least && *out <= range.most) return true;
  return raise_argument(FaultKind::kBadInput, "ARG7",
                        cat("'", what, "' is ", *out, "; it must be ", range.least, " to ", range.most, "."));
}

bool to_ints(PyObject* list, std::string_view what, Range range, std::span<int64_t> out, int* count) {
  size_t n = 0;
  const bool good = for_each_item(list, what, [&](PyObject* item) {
    if (n < out.size()) return to_int(item, what, range, &out[n++]);
    return raise_argument(FaultKind::kBadInput, "ARG7", cat("'", what, "' has at most ", out.size(), " items."));
  });
  *count = static_cast<int>(n);
  return good;
}

bool check_elements(std::span<const int64_t> counts) {
  int64_t elements = 1;
  for (int64_t n : counts) {
    if (n > 0 && elements > kMostElements / n)
      return raise_argument(FaultKind::kBadInput, "ARG7",
                            cat("The shape ", shape_text(counts), " has more elements than any memory holds."));
    elements *= std::max<int64_t>(n, 1);
  }
  return true;
}

bool to_shape(PyObject* list, int64_t least, Shape* out) {
  if (!to_ints(list, "shape", {least, INT32_MAX}, out->count, &out->ndim)) return false;
  if (out->ndim > kMaxTensorDims)
    return raise_argument(FaultKind::kBadInput, "TEN1", cat("A tensor has at most ", kMaxTensorDims, " dimensions."));
  return check_elements(out->span());
}

bool check_owner(const RecordingObject* recording, const RecordingObject* owner, std::string_view what) {
  if (owner == recording) return true;
  return raise_argument(FaultKind::kBadInput, "ARG6", cat("'", what, "' belongs to another kernel call."));
}

}  // namespace sterna::python
