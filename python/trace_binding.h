// SPDX-License-Identifier: Apache-2.0
// The face of traces towards Python.
#pragma once

#include <string>

#include "binding.h"
#include "sterna/trace/trace.h"

namespace sterna::python {

/// Writes the binary form, or Perfetto's where the name ends in .json; throws the Python exception of a fault.
void save_trace_as(const Trace& trace, const std::string& path);
void add_trace_type(PyObject* module);

}  // namespace sterna::python
