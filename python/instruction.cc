// SPDX-License-Identifier: Apache-2.0
// The Python instruction: a callable made from a table row and the front end's signature. A call fills the row's
// struct, argument by argument, through the field list; then the builder records it.
#include <cstddef>
#include <cstring>

#include "arguments.h"
#include "sterna/base/text.h"
#include "sterna/program/text_names.h"

namespace sterna::python {
namespace {

constexpr int kMaxParameters = 24;
constexpr size_t kMostBytes = 2048;  // of an instruction's struct

struct InstructionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const TableRow* row;
  int parameters;
  int label_parameter;                      // name=; -1 when there is none
  PyObject* names[kMaxParameters];          // interned
  PyObject* defaults[kMaxParameters];       // null: required
  const FieldSpec* fields[kMaxParameters];  // null: not a field (name=)
  bool settled[kMaxParameters];             // the default is what the instruction holds when it is made
  PyObject* function;                       // the front end's declaration: signature, doc
};

PyTypeObject* instruction_type = nullptr;

bool fill_int(const FieldSpec& field, PyObject* value, Range range, int64_t* out) {
  // A register could give its value, but that would execute what is recorded; no field asks for that.
  if (Py_TYPE(value) == register_type) return wrong_type(field.name, "a whole number", value);
  return to_int(value, field.name, range, out);
}

/// The number of an enumerator by its name, which NKI 0.3 takes for perf_mode; -1 for another name.
int64_t named(const FieldSpec& field, PyObject* value) {
  const char* given = PyUnicode_AsUTF8(value);
  const auto& names = text::spellings(field.type);
  for (size_t i = 0; given != nullptr && i < names.size(); ++i)
    if (names[i] == given) return static_cast<int64_t>(i);
  PyErr_Clear();
  return -1;
}

/// What nki.isa calls the enumeration of such a field.
template <class E>
constexpr const char* enumeration() {
  if constexpr (std::is_same_v<E, EngineId>) return "engine";
  if constexpr (std::is_same_v<E, ReduceCmd>) return "reduce_cmd";
  if constexpr (std::is_same_v<E, DgeMode>) return "dge_mode";
  if constexpr (std::is_same_v<E, OobMode>) return "oob_mode";
  if constexpr (std::is_same_v<E, TransferEngine>) return "dma_engine";
  if constexpr (std::is_same_v<E, PerfMode>) return "matmul_perf_mode";
}

/// A number of another kind than int; seldom asked.
[[gnu::cold, gnu::noinline]] bool is_plain_number(PyObject* value) {
  if (PyBool_Check(value) || Py_TYPE(value) == register_type) return false;
  return PyIndex_Check(value) && !PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__members__");
}

/// Plain numbers are taken as they are; a member of another enumeration is a mistake, whatever its number.
template <class E>
bool fill_enum(const FieldSpec& field, PyObject* value, void* at) {
  int64_t number;
  if (std::is_same_v<E, PerfMode> && PyUnicode_Check(value) && (number = named(field, value)) >= 0) {
    *static_cast<E*>(at) = static_cast<E>(number);
    return true;
  }
  const bool member = PyLong_Check(value) && std::strcmp(Py_TYPE(value)->tp_name, enumeration<E>()) == 0;
  if (!member && !PyLong_CheckExact(value) && !is_plain_number(value))
    return wrong_type(field.name, cat("a member of nki.isa.", enumeration<E>()), value);
  if (!fill_int(field, value, kInt32, &number)) return false;
  const auto known = static_cast<int64_t>(text::spellings(field.type).size());
  if (number < 0 || number >= known)
    return raise_argument(FaultKind::kBadInput, "ARG7",
                          cat("'", field.name, "' is ", number, ", which has no meaning; give a member of nki.isa.",
                              enumeration<E>(), "."));
  *static_cast<E*>(at) = static_cast<E>(number);
  return true;
}

bool fill_view(const FieldSpec& field, PyObject* value, View* out, RecordingObject* recording) {
  if (Py_TYPE(value) != tensor_type) return wrong_type(field.name, "a tensor", value);
  *out = tensor_of(value)->view;
  return check_owner(recording, tensor_of(value)->recording, field.name);
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
  } else if (PyUnicode_Check(value) || PyBytes_Check(value) || PyByteArray_Check(value)) {
    return wrong_type(field.name, "a number or a tensor", value);  // float() would read a text
  } else {
    PyObject* converted = PyNumber_Float(value);
    if (converted == nullptr) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;  // an error of the object itself
      PyErr_Clear();
      return wrong_type(field.name, "a number or a tensor", value);
    }
    number = PyFloat_AS_DOUBLE(converted);
    Py_DECREF(converted);
  }
  if (number == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
    return raise_argument(FaultKind::kBadInput, "ARG7",
                          cat("'", field.name, "' is a number beyond every type's range."));
  }
  *out = Scalar::of(number);
  return true;
}

/// Numbers are taken as Python takes them. Anything else, such as a text, would be true whatever it says; and what a
/// tensor or a register holds is not known while a kernel is recorded.
[[gnu::cold, gnu::noinline]] bool fill_truth(const FieldSpec& field, PyObject* value, bool* out) {
  if (!PyNumber_Check(value) || Py_TYPE(value) == tensor_type || Py_TYPE(value) == register_type)
    return wrong_type(field.name, "True or False", value);
  const int truth = PyObject_IsTrue(value);
  *out = truth == 1;
  return truth >= 0;
}
bool fill_bool(const FieldSpec& field, PyObject* value, bool* out) {
  if (!PyBool_Check(value)) return fill_truth(field, value, out);
  *out = value == Py_True;
  return true;
}

bool fill_pattern(const FieldSpec& field, PyObject* value, Pattern* out) {
  int n = 0;
  if (const Py_ssize_t pairs = PyList_Check(value) || PyTuple_Check(value) ? PySequence_Size(value) : 0; pairs > 4)
    return raise_argument(FaultKind::kBadInput, "ARG7",
                          cat("'", field.name, "' has ", pairs, " [step, count] pairs; at most 4 are possible."));
  const bool good = for_each_item(value, field.name, [&](PyObject* pair) {
    int64_t numbers[2];
    int k = 0;
    if (n == 4) return wrong_type(field.name, "a list of up to 4 [step, count] pairs", value);
    if (!to_ints(pair, field.name, kInt32, numbers, &k)) return false;
    if (k != 2) return wrong_type(field.name, "a list of up to 4 [step, count] pairs", value);
    out->steps[n++] = {static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
    return true;
  });
  out->n = n;
  return good;
}

/// nc_stream_shuffle: lanes 0 to 31, or 255 for "keep".
bool fill_lanes(const FieldSpec& field, PyObject* value, Lanes32* out) {
  int n = 0;
  const bool good = for_each_item(value, field.name, [&](PyObject* item) {
    int64_t lane;
    if (n == 32) return wrong_type(field.name, "a list of 32 lanes", value);
    if (!fill_int(field, item, kInt32, &lane)) return false;
    if ((lane < 0 || lane > 31) && lane != 255)
      return raise_argument(FaultKind::kBadInput, "ARG7",
                            cat("'", field.name, "' has a lane ", lane, "; it must be 0 to 31, or 255."));
    out->lane[n++] = static_cast<uint8_t>(lane);
    return true;
  });
  return good && (n == 32 || wrong_type(field.name, "a list of 32 lanes", value));
}

/// A single number is a list of one.
bool fill_ints(const FieldSpec& field, PyObject* value, Ints* out) {
  int64_t numbers[4];
  int n = 1;
  if (!(PyIndex_Check(value) ? fill_int(field, value, kInt32, numbers)
                             : to_ints(value, field.name, kInt32, numbers, &n)))
    return false;
  out->n = n;
  for (int i = 0; i < n; ++i) out->value[i] = static_cast<int32_t>(numbers[i]);
  return true;
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
    case FieldType::kTransferEngine: return fill_enum<TransferEngine>(field, value, at);
    case FieldType::kPerfMode: return fill_enum<PerfMode>(field, value, at);
    case FieldType::kAccumulate: {
      bool add = false;
      if (!fill_bool(field, value, &add)) return false;
      *static_cast<AccumulateFlag*>(at) = add ? AccumulateFlag::kAdd : AccumulateFlag::kOverwrite;
      return true;
    }
    case FieldType::kDType: return to_dtype(value, static_cast<DType*>(at));
    case FieldType::kBool: return fill_bool(field, value, static_cast<bool*>(at));
    case FieldType::kInt: {
      int64_t number;
      // Registers and offsets are 32 bits: the upper half of the unsigned range is the same bits.
      if (!fill_int(field, value, {INT32_MIN, UINT32_MAX}, &number)) return false;
      *static_cast<int32_t*>(at) = static_cast<int32_t>(number);
      return true;
    }
    case FieldType::kFloat: {
      Scalar scalar;
      if (!fill_scalar(field, value, &scalar, recording)) return false;
      if (scalar.is_view) return wrong_type(field.name, "a number", value);
      *static_cast<float*>(at) = static_cast<float>(scalar.value);
      return true;
    }
    case FieldType::kPattern: return fill_pattern(field, value, static_cast<Pattern*>(at));
    case FieldType::kLanes32: return fill_lanes(field, value, static_cast<Lanes32*>(at));
    case FieldType::kInts: return fill_ints(field, value, static_cast<Ints*>(at));
    case FieldType::kRegister:
      if (Py_TYPE(value) != register_type) return wrong_type(field.name, "a register", value);
      *static_cast<RegisterRef*>(at) = {register_of(value)->id};
      return check_owner(recording, register_of(value)->recording, field.name);
    case FieldType::kName: {
      Py_ssize_t length;
      const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : nullptr;
      if (text == nullptr) return wrong_type(field.name, "a text", value);
      *static_cast<NameRef*>(at) = {
          recording->self->builder.program().names.intern({text, static_cast<size_t>(length)})};
      return true;
    }
    case FieldType::kTensor:
      if (Py_TYPE(value) != tensor_type) return wrong_type(field.name, "a tensor", value);
      *static_cast<TensorRef*>(at) = {tensor_of(value)->view.tensor};
      return check_owner(recording, tensor_of(value)->recording, field.name);
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

/// None is "as if not given": where the signature has a default, or where the instruction says itself what a missing
/// operand means (a view; a scalar operand of an operator that may have none).
bool check_none(InstructionObject* self, int i, const char* body) {
  const FieldSpec* field = self->fields[i];
  if (self->defaults[i] != nullptr || field == nullptr || field->type == FieldType::kView ||
      (field->type == FieldType::kScalar && reinterpret_cast<const Scalar*>(body + field->offset)->is_none))
    return true;
  return raise_argument(FaultKind::kWrongType, "ARG2",
                        cat(mnemonic(self), ": '", field->name, "' is None; it has no default and must be given."));
}

/// Where None is the default of a whole number, the instruction's own default is a negative one that stands for it: no
/// value to be given.
bool fill_argument(InstructionObject* self, int i, PyObject* value, char* body, RecordingObject* current) {
  const FieldSpec& field = *self->fields[i];
  char* at = body + field.offset;
  const bool stands_for_none =
      field.type == FieldType::kInt && self->defaults[i] == Py_None && *reinterpret_cast<int32_t*>(at) < 0;
  if (!fill_field(field, value, at, current)) return false;
  if (const int32_t number = stands_for_none ? *reinterpret_cast<int32_t*>(at) : 0; number < 0)
    return raise_argument(FaultKind::kBadInput, "ARG7", cat("'", field.name, "' is ", number, "; it is not negative."));
  return true;
}

/// Arguments into `body` and the label. This may run Python code, which may record instructions of its own.
bool convert(InstructionObject* self, PyObject* const* slots, RecordingObject* current, char* body, uint32_t* label) {
  self->row->construct(body);
  for (int i = 0; i < self->parameters; ++i) {
    PyObject* value = slots[i];
    if (value == Py_None) {
      if (!check_none(self, i, body)) return false;
    } else if (self->fields[i] != nullptr) {
      if (self->settled[i] && value == self->defaults[i]) continue;
      if (!fill_argument(self, i, value, body, current)) return false;
    } else if (i == self->label_parameter) {
      const char* text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
      if (text == nullptr) return wrong_type("name", "a text", value);
      *label = current->self->builder.program().names.intern(text);
    }
  }
  return true;
}

bool record(InstructionObject* self, Recording& r, const char* body, uint32_t label) {
  r.mark_site();
  std::memcpy(r.builder.begin(*self->row), body, self->row->bytes);
  if (r.finds_columns) r.builder.read_indices_by_engine();
  if (Status status = r.builder.commit(label); !status) {
    status.error().message = cat(self->row->info.mnemonic, ": ", status.error().message);
    raise_here(r, std::move(status.error()));
    return false;
  }
  r.count_iteration();
  return (r.builder.warnings().empty() || r.show_warnings()) && (!r.eager || r.flush(false));
}

PyObject* call(PyObject* object, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* self = reinterpret_cast<InstructionObject*>(object);
  RecordingObject* current = current_recording();
  if (current == nullptr) return nullptr;
  PyObject* slots[kMaxParameters];
  if (!gather(self, args, PyVectorcall_NARGS(nargsf), kwnames, slots)) return nullptr;
  alignas(std::max_align_t) char body[kMostBytes];
  uint32_t label = 0;
  Py_INCREF(reinterpret_cast<PyObject*>(current));  // becomes the handle's
  HandleObject* handle = nullptr;
  if (convert(self, slots, current, body, &label) && record(self, *current->self, body, label))
    handle = PyObject_New(HandleObject, handle_type);
  if (handle == nullptr) {
    Py_DECREF(reinterpret_cast<PyObject*>(current));
    return nullptr;
  }
  handle->recording = current;
  handle->index = static_cast<uint32_t>(current->self->builder.size() - 1);
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

/// Most calls leave most parameters at their defaults, and most defaults are the instruction's own: finds these once.
void find_settled(InstructionObject* self) {
  alignas(std::max_align_t) char made[kMostBytes] = {}, filled[kMostBytes] = {};
  self->row->construct(made);
  for (int i = 0; i < self->parameters; ++i) {
    PyObject* value = self->defaults[i];
    self->settled[i] = false;
    if (value == nullptr || value == Py_None || self->fields[i] == nullptr) continue;
    if (self->fields[i]->type == FieldType::kName) continue;  // belongs to a recording
    std::memcpy(filled, made, sizeof(filled));
    const bool good = fill_field(*self->fields[i], value, filled + self->fields[i]->offset, nullptr);
    if (!good) PyErr_Clear();  // a call that leaves it so will say it
    self->settled[i] = good && std::memcmp(made, filled, self->row->bytes) == 0;
  }
}

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
  if (n > kMaxParameters || row->bytes > kMostBytes)
    return PyErr_Format(PyExc_ValueError, "%s: too many parameters", wanted);
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
  find_settled(self);
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
