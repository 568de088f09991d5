// SPDX-License-Identifier: Apache-2.0
#include "binding.h"
#include "nanobind_quiet.h"
#include "timing_binding.h"

NB_MODULE(_core, module) {
  using namespace sterna::python;
  module.doc() = "The C++ core of Sterna.";
  PyObject* m = module.ptr();
  if (!add_functions(m) || !add_tensor_type(m) || !add_register_type(m) || !add_recording_type(m) ||
      !add_handle_type(m) || !add_result_type(m) || !add_instruction_type(m) || !add_timing_type(m) ||
      !add_numpy_types(m))
    throw nanobind::python_error();
}
