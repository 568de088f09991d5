// SPDX-License-Identifier: Apache-2.0
// Remarks and faults of the line that is being recorded.
#include "recording.h"
#include "sterna/base/text.h"

namespace sterna::python {

bool Recording::show_warnings() {
  PyObject* hook = PyDict_GetItemString(state().hooks, "warn");
  auto show = [&](const std::vector<Warning>& list, size_t* next) {
    for (; *next < list.size(); ++*next) {
      if (hook == nullptr) continue;
      const Warning& w = list[*next];
      const Place at = builder.program().place(w.site);
      if (!shown.insert(cat(w.rule, ' ', at.file, ':', at.line)).second) continue;
      PyObject* result =
          PyObject_CallFunction(hook, "sssi", w.rule.c_str(), w.message.c_str(), at.file.c_str(), at.line);
      if (result == nullptr) return false;
      Py_DECREF(result);
    }
    return true;
  };
  if (!show(builder.warnings(), &warnings_shown)) return false;
  for (int core = 0; run && core < run->cores(); ++core)
    if (!show(run->machine(core).warnings(), &machine_warnings_shown[static_cast<size_t>(core)])) return false;
  return true;
}

bool Recording::remark(const char* rule, const std::string& message) {
  mark_site();
  builder.warn(rule, message);
  return show_warnings();
}

bool Recording::compat(FaultKind kind, const char* rule, const std::string& message) {
  if (!options.strict) return remark(rule, message);
  raise_here(*this, Fault(kind, rule, message));
  return false;
}

/// fail(kind, rule, message): raises a fault of the user's line that is being recorded.
PyObject* recording_fail(PyObject* self, PyObject* args) {
  const char *kind, *rule, *message;
  if (!PyArg_ParseTuple(args, "sss", &kind, &rule, &message)) return nullptr;
  Fault fault(FaultKind::kBug, rule, message);
  for (int k = 0; k <= static_cast<int>(FaultKind::kBug); ++k)
    if (name(static_cast<FaultKind>(k)) == kind) fault.kind = static_cast<FaultKind>(k);
  raise_here(*recording_of(self)->self, std::move(fault));
  return nullptr;
}

/// compat(rule, message): something that only the official simulator accepts: one remark a line, a fault in strict
/// mode.
PyObject* recording_compat(PyObject* self, PyObject* args) {
  const char *rule, *message;
  if (!PyArg_ParseTuple(args, "ss", &rule, &message) ||
      !recording_of(self)->self->compat(FaultKind::kRuleBroken, rule, message))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* recording_warnings(PyObject* self, PyObject*) {
  Recording& r = *recording_of(self)->self;
  PyObject* out = PyList_New(0);
  auto add = [&](const std::vector<Warning>& list) {
    for (const Warning& w : list) {
      const Place at = r.builder.program().place(w.site);
      PyObject* item = Py_BuildValue("(sssi)", w.rule.c_str(), w.message.c_str(), at.file.c_str(), at.line);
      PyList_Append(out, item);
      Py_XDECREF(item);
    }
  };
  add(r.builder.warnings());
  for (int core = 0; r.run && core < r.run->cores(); ++core) add(r.run->machine(core).warnings());
  return out;
}

}  // namespace sterna::python
