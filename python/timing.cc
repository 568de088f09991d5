// SPDX-License-Identifier: Apache-2.0
#include "timing_binding.h"

namespace sterna::python {

PyObject* recording_timing(PyObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "timing");
  return nullptr;
}
PyObject* recording_text(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "text");
  return nullptr;
}
bool add_timing_type(PyObject*) { return true; }

}  // namespace sterna::python
