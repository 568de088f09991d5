// SPDX-License-Identifier: Apache-2.0
// The face of timing and text towards Python; methods of Recording.
#pragma once

#include "binding.h"

namespace sterna::python {

PyObject* recording_timing(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* recording_multiply_adds(PyObject* self, PyObject*);
PyObject* recording_release(PyObject* self, PyObject*);
PyObject* recording_text(PyObject* self, PyObject*);
bool add_timing_type(PyObject* module);

}  // namespace sterna::python
