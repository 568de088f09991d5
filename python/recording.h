// SPDX-License-Identifier: Apache-2.0
// Methods of Recording that stand in files of their own: results.cc, saved.cc, handles.cc and
// remarks.cc.
#pragma once

#include "arguments.h"

namespace sterna::python {

// results.cc
PyObject* recording_launch(PyObject* self, PyObject* recordings);
PyObject* recording_run_again(PyObject* self, PyObject* arguments);
PyObject* recording_finish(PyObject* self, PyObject* args);
PyObject* recording_result(PyObject* self, PyObject* tensor);
PyObject* recording_written(PyObject* self, PyObject* tensor);
PyObject* recording_replay(PyObject* self, PyObject*);

// saved.cc
PyObject* recording_saved(PyObject* self, PyObject*);
PyObject* recording_load(PyObject* self, PyObject* args);
PyObject* recording_whole(PyObject* self, PyObject* args);

// handles.cc
PyObject* recording_edge(PyObject* self, PyObject* args);
PyObject* recording_edge_by_name(PyObject* self, PyObject* args);
PyObject* recording_edges(PyObject* self, PyObject*);

// remarks.cc
PyObject* recording_fail(PyObject* self, PyObject* args);
PyObject* recording_compat(PyObject* self, PyObject* args);
PyObject* recording_warnings(PyObject* self, PyObject*);

}  // namespace sterna::python
