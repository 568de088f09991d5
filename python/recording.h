// SPDX-License-Identifier: Apache-2.0
// Methods of Recording that stand in files of their own: results.cc and handles.cc.
#pragma once

#include "arguments.h"

namespace sterna::python {

// results.cc
PyObject* recording_finish(PyObject* self, PyObject* args);
PyObject* recording_result(PyObject* self, PyObject* tensor);
PyObject* recording_written(PyObject* self, PyObject* tensor);
PyObject* recording_replay(PyObject* self, PyObject*);

// handles.cc
PyObject* recording_edge(PyObject* self, PyObject* args);
PyObject* recording_edge_by_name(PyObject* self, PyObject* args);
PyObject* recording_edges(PyObject* self, PyObject*);

}  // namespace sterna::python
