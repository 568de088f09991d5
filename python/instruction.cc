// SPDX-License-Identifier: Apache-2.0
// The Python instruction: a callable made from a table row and the front end's signature. A call fills the row's struct
// in place in the stream, argument by argument, through the field list; the builder does the rest.

#include <cstring>

#include "binding.h"
#include "sterna/base/text.h"
#include "sterna/program/text_names.h"

namespace sterna::python {
namespace {

constexpr int kMaxParameters = 24;

struct InstructionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const TableRow* row;
  int parameters;
  int label_parameter;                      // name=; -1 when there is none
  PyObject* names[kMaxParameters];          // interned
  PyObject* defaults[kMaxParameters];       // null: required
  const FieldSpec* fields[kMaxParameters];  // null: not a field (name=)
  PyObject* function;                       // the front end's declaration: signature, doc
};

PyTypeObject* instruction_type = nullptr;

bool wrong_type(const FieldSpec& field, const char* wanted, PyObject* got) {
  PyErr_SetString(PyExc_TypeError, cat("'", field.name, "' must be ", wanted, ", not ", Py_TYPE(got)->tp_name).c_str());
  return false;
}

bool fill_int(const FieldSpec& field, PyObject* value, long long* out) {
  if (PyLong_Check(value)) {
    *out = PyLong_AsLongLong(value);
    return !(*out == -1 && PyErr_Occurred());
  }
  if (PyIndex_Check(value) && Py_TYPE(value) != register_type) {
    PyObject* number = PyNumber_Index(value);
    if (number == nullptr) return false;
    *out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return !(*out == -1 && PyErr_Occurred());
  }
  return wrong_type(field, "a whole number", value);
}

template <class E>
bool fill_enum(const FieldSpec& field, PyObject* value, void* at) {
  long long number;
  if (!fill_int(field, value, &number)) return false;
  const long long known = static_cast<long long>(text::spellings(field.type).size());
  if (number < 0 || number >= known) {
    PyErr_SetString(PyExc_ValueError, cat("'", field.name, "' is ", number, ", which has no meaning").c_str());
    return false;
  }
  *static_cast<E*>(at) = static_cast<E>(number);
  return true;
}

bool fill_view(const FieldSpec& field, PyObject* value, View* out, RecordingObject* recording) {
  if (Py_TYPE(value) != tensor_type) return wrong_type(field, "a tensor", value);
  auto* t = reinterpret_cast<TensorObject*>(value);
  if (t->recording != recording) {
    PyErr_SetString(PyExc_ValueError, cat("'", field.name, "' is a tensor of another kernel call").c_str());
    return false;
  }
  *out = t->view;
  return true;
}

bool fill_scalar(const FieldSpec& field, PyObject* value, Scalar* out, RecordingObject* recording) {
  if (Py_TYPE(value) == tensor_type) {
    out->is_view = true;
    out->is_none = false;
    return fill_view(field, value, &out->view, recording);
  }
  double number;
  if (PyFloat_CheckExact(value)) {
    number = PyFloat_AS_DOUBLE(value);
  } else if (PyLong_Check(value)) {
    number = PyLong_AsDouble(value);
  } else {
    PyObject* converted = PyNumber_Float(value);
    if (converted == nullptr) {
      PyErr_Clear();
      return wrong_type(field, "a number or a tensor", value);
    }
    number = PyFloat_AS_DOUBLE(converted);
    Py_DECREF(converted);
  }
  if (number == -1.0 && PyErr_Occurred()) return false;
  *out = Scalar::of(number);
  return true;
}

bool fill_pattern(const FieldSpec& field, PyObject* value, Pattern* out) {
  PyObject* fast = PySequence_Fast(value, "a pattern is a list of [step, count] pairs");
  if (fast == nullptr) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
  bool good = n <= 4;
  for (Py_ssize_t i = 0; good && i < n; ++i) {
    PyObject* pair = PySequence_Fast_GET_ITEM(fast, i);
    good = PySequence_Check(pair) && PySequence_Size(pair) == 2;
    for (int k = 0; good && k < 2; ++k) {
      PyObject* item = PySequence_GetItem(pair, k);
      long long number = 0;
      good = item != nullptr && fill_int(field, item, &number);
      Py_XDECREF(item);
      (k == 0 ? out->steps[i].step : out->steps[i].count) = static_cast<int32_t>(number);
    }
  }
  Py_DECREF(fast);
  out->n = static_cast<int32_t>(n);
  if (!good && !PyErr_Occurred()) return wrong_type(field, "a list of up to 4 [step, count] pairs", value);
  return good;
}

/// Numbers into a short array; a single number is a list of one.
bool fill_list(const FieldSpec& field, PyObject* value, long long* out, int most, int* count) {
  if (PyLong_Check(value)) {
    *count = 1;
    return fill_int(field, value, out);
  }
  PyObject* fast = PySequence_Fast(value, "expected a tuple or list of whole numbers");
  if (fast == nullptr) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
  bool good = n <= most;
  for (Py_ssize_t i = 0; good && i < n; ++i) good = fill_int(field, PySequence_Fast_GET_ITEM(fast, i), out + i);
  *count = static_cast<int>(n);
  Py_DECREF(fast);
  if (!good && !PyErr_Occurred())
    PyErr_SetString(PyExc_ValueError, cat("'", field.name, "' has ", n, " items, at most ", most, " fit").c_str());
  return good;
}

bool fill_field(const FieldSpec& field, PyObject* value, void* at, RecordingObject* recording) {
  switch (field.type) {
    case FieldType::kView: return fill_view(field, value, static_cast<View*>(at), recording);
    case FieldType::kScalar: return fill_scalar(field, value, static_cast<Scalar*>(at), recording);
    case FieldType::kAluOp: return to_alu_op(value, static_cast<AluOp*>(at));
    case FieldType::kFunction: return to_function(value, static_cast<Function*>(at));
    case FieldType::kEngine: return fill_enum<EngineId>(field, value, at);
    case FieldType::kReduceCmd: return fill_enum<ReduceCmd>(field, value, at);
    case FieldType::kDgeMode: return fill_enum<DgeMode>(field, value, at);
    case FieldType::kOobMode: return fill_enum<OobMode>(field, value, at);
    case FieldType::kPerfMode: return fill_enum<PerfMode>(field, value, at);
    case FieldType::kAccumulate: {
      const int truth = PyObject_IsTrue(value);
      *static_cast<AccumulateFlag*>(at) = truth == 1 ? AccumulateFlag::kAdd : AccumulateFlag::kOverwrite;
      return truth >= 0;
    }
    case FieldType::kDType: return to_dtype(value, static_cast<DType*>(at));
    case FieldType::kBool: {
      const int truth = PyObject_IsTrue(value);
      *static_cast<bool*>(at) = truth == 1;
      return truth >= 0;
    }
    case FieldType::kInt: {
      long long number;
      if (!fill_int(field, value, &number)) return false;
      // Registers and offsets are 32 bits: the upper half of the unsigned range is the same bits.
      if (number < INT32_MIN || number > int64_t{UINT32_MAX}) {
        PyErr_SetString(PyExc_OverflowError,
                        cat("'", field.name, "' is ", number, ", which does not fit 32 bits").c_str());
        return false;
      }
      *static_cast<int32_t*>(at) = static_cast<int32_t>(number);
      return true;
    }
    case FieldType::kFloat: {
      Scalar scalar;
      if (!fill_scalar(field, value, &scalar, recording)) return false;
      if (scalar.is_view) return wrong_type(field, "a number", value);
      *static_cast<float*>(at) = static_cast<float>(scalar.value);
      return true;
    }
    case FieldType::kPattern: return fill_pattern(field, value, static_cast<Pattern*>(at));
    case FieldType::kLanes32: {
      long long lanes[32];
      int n;
      if (!fill_list(field, value, lanes, 32, &n)) return false;
      if (n != 32) return wrong_type(field, "a list of 32 lanes", value);
      for (int i = 0; i < 32; ++i) static_cast<Lanes32*>(at)->lane[i] = static_cast<uint8_t>(lanes[i]);
      return true;
    }
    case FieldType::kInts: {
      long long numbers[4];
      int n;
      if (!fill_list(field, value, numbers, 4, &n)) return false;
      auto* ints = static_cast<Ints*>(at);
      ints->n = n;
      for (int i = 0; i < n; ++i) ints->value[i] = static_cast<int32_t>(numbers[i]);
      return true;
    }
    case FieldType::kRegister:
      if (Py_TYPE(value) != register_type) return wrong_type(field, "a register", value);
      *static_cast<RegisterRef*>(at) = {reinterpret_cast<RegisterObject*>(value)->id};
      return true;
    case FieldType::kName: {
      Py_ssize_t length;
      const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : nullptr;
      if (text == nullptr) return wrong_type(field, "a text", value);
      *static_cast<NameRef*>(at) = {
          recording->self->builder.program().names.intern({text, static_cast<size_t>(length)})};
      return true;
    }
    case FieldType::kTensor:
      if (Py_TYPE(value) != tensor_type) return wrong_type(field, "a tensor", value);
      *static_cast<TensorRef*>(at) = {reinterpret_cast<TensorObject*>(value)->view.tensor};
      return true;
  }
  return false;
}

const char* mnemonic(InstructionObject* self) { return self->row->info.mnemonic.data(); }

/// Places arguments by position and name; borrowed references.
bool gather(InstructionObject* self, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames,
            PyObject** slots) {
  if (positional > self->parameters) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments, %zd given", mnemonic(self), self->parameters,
                 positional);
    return false;
  }
  std::memcpy(slots, args, static_cast<size_t>(positional) * sizeof(PyObject*));
  for (int i = static_cast<int>(positional); i < self->parameters; ++i) slots[i] = nullptr;
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int found = -1;
    for (int i = 0; i < self->parameters && found < 0; ++i)
      if (self->names[i] == name) found = i;
    for (int i = 0; i < self->parameters && found < 0; ++i)
      if (PyUnicode_Compare(self->names[i], name) == 0) found = i;
    if (found < 0) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", mnemonic(self), name);
      return false;
    }
    if (slots[found] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", mnemonic(self), name);
      return false;
    }
    slots[found] = args[positional + k];
  }
  for (int i = 0; i < self->parameters; ++i)
    if (slots[i] == nullptr && (slots[i] = self->defaults[i]) == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() is missing the argument '%U'", mnemonic(self), self->names[i]);
      return false;
    }
  return true;
}

PyObject* call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* self = reinterpret_cast<InstructionObject*>(object);
  RecordingObject* current = current_recording();
  if (current == nullptr) return nullptr;
  Recording& r = *current->self;
  PyObject* slots[kMaxParameters];
  if (!gather(self, args, PyVectorcall_NARGS(nargsf), kwnames, slots)) return nullptr;
  r.mark_site();
  auto* body = static_cast<char*>(r.builder.begin(*self->row));
  uint32_t label = 0;
  for (int i = 0; i < self->parameters; ++i) {
    PyObject* value = slots[i];
    if (value == Py_None) continue;  // None is "as if not given" for every parameter
    if (const FieldSpec* field = self->fields[i]) {
      if (!fill_field(*field, value, body + field->offset, current)) return nullptr;
    } else if (i == self->label_parameter) {
      const char* text = PyUnicode_AsUTF8(value);
      if (text == nullptr) return nullptr;
      label = r.builder.program().names.intern(text);
    }
  }
  Status status = r.builder.commit(label);
  if (!status) {
    status.error().message = cat(self->row->info.mnemonic, ": ", status.error().message);
    raise_here(r, std::move(status.error()));
    return nullptr;
  }
  r.count_iteration();
  if (!r.builder.warnings().empty() && !r.show_warnings()) return nullptr;
  if (r.eager && !r.flush(false)) return nullptr;
  auto* handle = PyObject_New(HandleObject, handle_type);
  if (handle == nullptr) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(current));
  handle->recording = current;
  handle->index = static_cast<uint32_t>(r.builder.size() - 1);
  return reinterpret_cast<PyObject*>(handle);
}

void dealloc(PyObject* object) {
  auto* self = reinterpret_cast<InstructionObject*>(object);
  for (int i = 0; i < self->parameters; ++i) {
    Py_XDECREF(self->names[i]);
    Py_XDECREF(self->defaults[i]);
  }
  Py_XDECREF(self->function);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* get_doc(PyObject* object, void*) {
  return PyObject_GetAttrString(reinterpret_cast<InstructionObject*>(object)->function, "__doc__");
}
PyObject* get_name(PyObject* object, void*) {
  const std::string_view name = reinterpret_cast<InstructionObject*>(object)->row->info.mnemonic;
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}
PyObject* get_wrapped(PyObject* object, void*) {
  return Py_NewRef(reinterpret_cast<InstructionObject*>(object)->function);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(InstructionObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {{"__doc__", get_doc, nullptr, nullptr, nullptr},
                        {"__name__", get_name, nullptr, nullptr, nullptr},
                        {"__wrapped__", get_wrapped, nullptr, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"sterna._core.Instruction", sizeof(InstructionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

/// instruction(mnemonic, names, defaults, function): names is a tuple of parameter names, defaults the values of the
/// last ones.
PyObject* make_instruction(PyObject*, PyObject* args) {
  const char* wanted;
  PyObject *names, *defaults, *function;
  if (!PyArg_ParseTuple(args, "sO!O!O", &wanted, &PyTuple_Type, &names, &PyTuple_Type, &defaults, &function))
    return nullptr;
  const TableRow* row = find_instruction(wanted);
  if (row == nullptr) return PyErr_Format(PyExc_KeyError, "no instruction '%s' in the table", wanted);
  const Py_ssize_t n = PyTuple_GET_SIZE(names), given = PyTuple_GET_SIZE(defaults);
  if (n > kMaxParameters) return PyErr_Format(PyExc_ValueError, "%s: too many parameters", wanted);
  auto* self = reinterpret_cast<InstructionObject*>(instruction_type->tp_alloc(instruction_type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = call;
  self->row = row;
  self->parameters = 0;
  self->label_parameter = -1;
  self->function = Py_NewRef(function);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyUnicode_InternInPlace(&name);
    const char* text = PyUnicode_AsUTF8(name);
    self->fields[i] = nullptr;
    for (const FieldSpec& field : row->field_list())
      if (field.name == text) self->fields[i] = &field;
    if (self->fields[i] == nullptr && std::strcmp(text, "name") == 0) self->label_parameter = static_cast<int>(i);
    // Older signatures carry options without effect here (dtype= of tensor_copy): accepted, not recorded.
    const bool ignored = std::strcmp(text, "dtype") == 0;
    if (self->fields[i] == nullptr && self->label_parameter != i && !ignored) {
      PyErr_Format(PyExc_ValueError, "%s: the parameter '%s' is not a field of the instruction", wanted, text);
      Py_DECREF(reinterpret_cast<PyObject*>(self));
      return nullptr;
    }
    self->names[i] = Py_NewRef(name);
    const Py_ssize_t k = i - (n - given);
    self->defaults[i] = k >= 0 ? Py_NewRef(PyTuple_GET_ITEM(defaults, k)) : nullptr;
    self->parameters = static_cast<int>(i + 1);
  }
  return reinterpret_cast<PyObject*>(self);
}

PyMethodDef functions[] = {{"instruction", make_instruction, METH_VARARGS,
                            "instruction(mnemonic, names, defaults, function): a callable that records."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_instruction_type(PyObject* module) {
  instruction_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return instruction_type != nullptr && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObject(module, "Instruction", Py_NewRef(reinterpret_cast<PyObject*>(instruction_type))) == 0;
}

}  // namespace sterna::python
