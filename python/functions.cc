// SPDX-License-Identifier: Apache-2.0
// Module functions: registrations by the Python layers, faults, number formats, the hardware folder.

#include "binding.h"
#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/numerics/convert.h"
#include "sterna/numerics/dispatch.h"

namespace sterna::python {

ModuleState& state() {
  static auto* instance = new ModuleState;
  return *instance;
}

namespace {

/// True when the innermost Python frame stands at this place already.
bool stands_at(const Place& place) {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (frame == nullptr || PyFrame_GetLineNumber(frame) != place.line) return false;
  PyCodeObject* code = PyFrame_GetCode(frame);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  const bool same = file != nullptr && place.file == file;
  if (file == nullptr) PyErr_Clear();
  Py_DECREF(code);
  return same;
}

/// Puts a frame at `place` before those that the traceback of the current exception has.
void add_frame(const Place& place) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* globals = PyDict_New();
  PyCodeObject* code = PyCode_NewEmpty(place.file.c_str(), place.function.c_str(), place.line);
  PyFrameObject* frame = code && globals ? PyFrame_New(PyThreadState_Get(), code, globals, nullptr) : nullptr;
  PyErr_Restore(type, value, traceback);
  if (frame != nullptr) PyTraceBack_Here(frame);
  Py_XDECREF(reinterpret_cast<PyObject*>(frame));
  Py_XDECREF(reinterpret_cast<PyObject*>(code));
  Py_XDECREF(globals);
}

}  // namespace

void raise_fault(const Fault& fault, const Program* program) {
  ModuleState& s = state();
  const std::string kind(name(fault.kind));
  PyObject* exception = nullptr;
  if (s.make_fault != nullptr)
    exception = PyObject_CallFunction(s.make_fault, "ssssis", kind.c_str(), fault.rule.c_str(), fault.message.c_str(),
                                      fault.where.file.c_str(), fault.where.line, fault.where.function.c_str());
  if (exception == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, fault.text().c_str());
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
  // A frame at the user's line, so that the traceback ends where the instruction stands.
  if (fault.where.file.empty() || stands_at(fault.where)) return;
  add_frame(fault.where);
  if (program == nullptr) return;
  for (uint32_t caller = program->sites[fault.site].parent; caller != 0; caller = program->sites[caller].parent)
    add_frame(program->place(caller));
}

void raise_here(Recording& recording, Fault fault) {
  if (fault.site == 0) {
    recording.mark_site();
    fault.site = recording.builder.site();
  }
  recording.builder.program().locate(fault);
  raise_fault(fault);
}

bool to_dtype(PyObject* object, DType* out) {
  ModuleState& s = state();
  auto found = s.dtypes.find(object);
  if (found != s.dtypes.end()) {
    *out = static_cast<DType>(found->second);
    return true;
  }
  // A name, or anything whose text is one (numpy and torch dtypes: "torch.bfloat16").
  PyObject* text = PyUnicode_Check(object) ? Py_NewRef(object) : nullptr;
  if (text == nullptr && PyType_Check(object)) text = PyObject_GetAttrString(object, "__name__");
  if (text == nullptr) {
    PyErr_Clear();
    text = PyObject_Str(object);
  }
  const char* chars = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string spelled = chars ? chars : "";
  Py_XDECREF(text);
  PyErr_Clear();
  if (const size_t dot = spelled.rfind('.'); dot != std::string::npos) spelled = spelled.substr(dot + 1);
  if (spelled == "bool_") spelled = "bool";
  if (auto dtype = parse_dtype(spelled)) {
    *out = *dtype;
    return true;
  }
  PyErr_Format(PyExc_TypeError, "%R is not a type that Sterna knows", object);
  return false;
}

namespace {

/// Operators are registered once and live as long as the process, so a small table of the last ones can answer by
/// address.
const ModuleState::Op* find_op(PyObject* object) {
  struct Recent {
    PyObject* object;
    const ModuleState::Op* op;
  };
  static Recent recent[64];
  Recent& slot = recent[(reinterpret_cast<uintptr_t>(object) >> 4) % 64];
  if (slot.object == object) return slot.op;
  auto found = state().ops.find(object);
  if (found == state().ops.end()) return nullptr;
  slot = {object, &found->second};
  return slot.op;
}

}  // namespace

bool to_alu_op(PyObject* object, AluOp* out) {
  const ModuleState::Op* op = find_op(object);
  if (op == nullptr || op->alu < 0) {
    PyErr_Format(PyExc_TypeError, "%R is not an operator of the vector engine; use nl.add, nl.multiply, ...", object);
    return false;
  }
  *out = static_cast<AluOp>(op->alu);
  return true;
}

bool to_function(PyObject* object, Function* out) {
  const ModuleState::Op* op = find_op(object);
  if (op == nullptr || op->function < 0) {
    PyErr_Format(PyExc_TypeError, "%R is not an activation function; use nl.exp, nl.copy, ...", object);
    return false;
  }
  *out = static_cast<Function>(op->function);
  return true;
}

namespace {

PyObject* register_op(PyObject*, PyObject* args) {
  PyObject* object;
  const char *alu_name, *function_name;
  if (!PyArg_ParseTuple(args, "Ozz", &object, &alu_name, &function_name)) return nullptr;
  ModuleState::Op op;
  if (alu_name != nullptr) {
    auto parsed = parse_alu_op(alu_name);
    if (!parsed) return PyErr_Format(PyExc_KeyError, "no operator '%s'", alu_name);
    op.alu = static_cast<int>(*parsed);
  }
  if (function_name != nullptr) {
    auto parsed = parse_function(function_name);
    if (!parsed) return PyErr_Format(PyExc_KeyError, "no activation function '%s'", function_name);
    op.function = static_cast<int>(*parsed);
  }
  state().ops[Py_NewRef(object)] = op;
  Py_RETURN_NONE;
}

PyObject* register_dtype(PyObject*, PyObject* args) {
  PyObject* object;
  const char* text;
  int canonical = 1;
  if (!PyArg_ParseTuple(args, "Os|p", &object, &text, &canonical)) return nullptr;
  auto dtype = parse_dtype(text);
  if (!dtype) return PyErr_Format(PyExc_KeyError, "no type '%s'", text);
  state().dtypes[Py_NewRef(object)] = static_cast<int>(*dtype);
  if (canonical) state().dtype_objects[static_cast<int>(*dtype)] = Py_NewRef(object);
  Py_RETURN_NONE;
}

PyObject* register_buffer(PyObject*, PyObject* args) {
  PyObject* object;
  int memory, shared = 0;
  if (!PyArg_ParseTuple(args, "Oi|p", &object, &memory, &shared)) return nullptr;
  (shared != 0 ? state().shared_buffer : state().buffer_objects[memory]) = Py_NewRef(object);
  Py_RETURN_NONE;
}

PyObject* set_hook(PyObject*, PyObject* args) {
  const char* name;
  PyObject* object;
  if (!PyArg_ParseTuple(args, "sO", &name, &object)) return nullptr;
  const std::string text = name;
  if (text == "fault")
    state().make_fault = Py_NewRef(object);
  else if (text == "ds")
    state().ds_type = Py_NewRef(object);
  else if (text == "entry")
    state().entry_code = Py_NewRef(object);
  else if (PyDict_SetItemString(state().hooks, name, object) != 0)
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* internal_prefix(PyObject*, PyObject* args) {
  const char* prefix;
  if (!PyArg_ParseTuple(args, "s", &prefix)) return nullptr;
  add_internal_prefix(prefix);
  Py_RETURN_NONE;
}

PyObject* is_internal(PyObject*, PyObject* file) {
  const char* text = PyUnicode_AsUTF8(file);
  return text ? PyBool_FromLong(is_internal_file(text)) : nullptr;
}

PyObject* current(PyObject*, PyObject*) {
  RecordingObject* recording = current_recording();
  return recording ? Py_NewRef(reinterpret_cast<PyObject*>(recording)) : nullptr;
}
PyObject* is_recording(PyObject*, PyObject*) { return PyBool_FromLong(current_recording_or_null() != nullptr); }

PyObject* decode(PyObject*, PyObject* args) {
  const char* dtype_name;
  Py_buffer bits;
  if (!PyArg_ParseTuple(args, "sy*", &dtype_name, &bits)) return nullptr;
  auto dtype = parse_dtype(dtype_name);
  PyObject* out = nullptr;
  if (!dtype) {
    PyErr_Format(PyExc_KeyError, "no type '%s'", dtype_name);
  } else {
    const Py_ssize_t n = bits.len / size_of(*dtype);
    out = PyBytes_FromStringAndSize(nullptr, n * 4);
    if (out != nullptr)
      decode_row(*dtype, bits.buf, size_of(*dtype), reinterpret_cast<float*>(PyBytes_AS_STRING(out)), n);
  }
  PyBuffer_Release(&bits);
  return out;
}

PyObject* encode(PyObject*, PyObject* args) {
  const char* dtype_name;
  Py_buffer floats;
  if (!PyArg_ParseTuple(args, "sy*", &dtype_name, &floats)) return nullptr;
  auto dtype = parse_dtype(dtype_name);
  PyObject* out = nullptr;
  if (!dtype) {
    PyErr_Format(PyExc_KeyError, "no type '%s'", dtype_name);
  } else {
    const Py_ssize_t n = floats.len / 4;
    out = PyBytes_FromStringAndSize(nullptr, n * size_of(*dtype));
    if (out != nullptr)
      encode_row(*dtype, static_cast<const float*>(floats.buf), PyBytes_AS_STRING(out), size_of(*dtype), n);
  }
  PyBuffer_Release(&floats);
  return out;
}

PyObject* set_simd(PyObject*, PyObject* args) {
  const char* wanted;
  if (!PyArg_ParseTuple(args, "s", &wanted)) return nullptr;
  for (SimdTarget target : simd_targets())
    if (name(target) == wanted) {
      Status status = set_simd_target(target);
      if (!status) {
        raise_fault(status.error());
        return nullptr;
      }
      Py_RETURN_NONE;
    }
  return PyErr_Format(PyExc_ValueError, "no SIMD target '%s' on this processor", wanted);
}

PyObject* simd_names(PyObject*, PyObject*) {
  PyObject* out = PyList_New(0);
  for (SimdTarget target : simd_targets()) {
    const std::string text(name(target));
    PyObject* item = PyUnicode_FromString(text.c_str());
    PyList_Append(out, item);
    Py_DECREF(item);
  }
  return out;
}

PyObject* simd_now(PyObject*, PyObject*) {
  const std::string text(name(simd_target()));
  return PyUnicode_FromString(text.c_str());
}

PyObject* set_hardware(PyObject*, PyObject* args) {
  const char* folder;
  if (!PyArg_ParseTuple(args, "s", &folder)) return nullptr;
  set_hardware_directories({folder});
  Py_RETURN_NONE;
}

/// chip(name): a dict of what front ends ask: name, generation, limits.
PyObject* chip_info(PyObject*, PyObject* args) {
  const char* wanted;
  if (!PyArg_ParseTuple(args, "s", &wanted)) return nullptr;
  Result<Chip> chip = find_chip(wanted);
  if (!chip) {
    raise_fault(chip.error());
    return nullptr;
  }
  return Py_BuildValue("{s:s,s:s,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:O}", "name", chip->name.c_str(), "title",
                       chip->title.c_str(), "generation", static_cast<long long>(int64_t{chip->generation}),
                       "partitions", static_cast<long long>(int64_t{chip->sbuf.partitions}), "sbuf_partition_bytes",
                       static_cast<long long>(chip->sbuf_usable_bytes()), "psum_banks",
                       static_cast<long long>(int64_t{chip->psum.banks}), "psum_bank_bytes",
                       static_cast<long long>(int64_t{chip->psum.bank_bytes}), "stationary_free",
                       static_cast<long long>(int64_t{chip->limits.stationary_free}), "moving_free",
                       static_cast<long long>(int64_t{chip->limits.moving_free}), "bn_stats_free",
                       static_cast<long long>(int64_t{chip->limits.bn_stats_free}), "address_align",
                       static_cast<long long>(int64_t{chip->limits.address_align}), "cores",
                       static_cast<long long>(int64_t{chip->cores}), "xorwow",
                       chip->features.xorwow ? Py_True : Py_False);
}

PyObject* instructions(PyObject*, PyObject*) {
  PyObject* out = PyDict_New();
  for (const TableRow& row : instruction_table()) {
    if (row.info.mnemonic.empty()) continue;
    PyObject* fields = PyList_New(0);
    for (const FieldSpec& f : row.field_list()) {
      const std::string field(f.name);
      PyObject* item = PyUnicode_FromString(field.c_str());
      PyList_Append(fields, item);
      Py_DECREF(item);
    }
    const std::string mnemonic(row.info.mnemonic), summary(row.info.summary), source(row.info.source);
    PyObject* entry =
        Py_BuildValue("{s:s,s:s,s:N}", "summary", summary.c_str(), "source", source.c_str(), "fields", fields);
    PyDict_SetItemString(out, mnemonic.c_str(), entry);
    Py_DECREF(entry);
  }
  return out;
}

PyMethodDef methods[] = {
    {"register_op", register_op, METH_VARARGS, "register_op(object, alu, function): the object names an operator."},
    {"register_dtype", register_dtype, METH_VARARGS, "register_dtype(object, name, canonical=True)"},
    {"register_buffer", register_buffer, METH_VARARGS, "register_buffer(object, memory, shared=False)"},
    {"set_hook", set_hook, METH_VARARGS, "set_hook(name, object)"},
    {"internal_prefix", internal_prefix, METH_VARARGS, "Frames of files below this path are not the user's."},
    {"is_internal", is_internal, METH_O, "True for a file of a front end."},
    {"current", current, METH_NOARGS, "The recording of this thread."},
    {"is_recording", is_recording, METH_NOARGS, "True inside a kernel."},
    {"decode", decode, METH_VARARGS, "decode(dtype, bits): bytes of fp32."},
    {"encode", encode, METH_VARARGS, "encode(dtype, floats): bytes of the type."},
    {"set_simd", set_simd, METH_VARARGS, "Chooses a SIMD target by name."},
    {"simd_targets", simd_names, METH_NOARGS, "SIMD targets of this processor."},
    {"simd_target", simd_now, METH_NOARGS, "The SIMD target in use."},
    {"set_hardware", set_hardware, METH_VARARGS, "Folder of the hardware descriptions."},
    {"chip", chip_info, METH_VARARGS, "chip(name): what a front end needs to know of a chip."},
    {"instructions", instructions, METH_NOARGS, "The instruction table."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_functions(PyObject* module) {
  state().hooks = PyDict_New();
  return state().hooks != nullptr && PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace sterna::python
