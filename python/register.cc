// SPDX-License-Identifier: Apache-2.0
// The Python register: asking for its value executes what was recorded so far.
#include <optional>

#include "arguments.h"

namespace sterna::python {

PyTypeObject* register_type = nullptr;

namespace {

void dealloc(PyObject* object) {
  Py_XDECREF(reinterpret_cast<PyObject*>(register_of(object)->recording));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

/// What it holds now; none with a Python error set.
std::optional<int32_t> look(PyObject* o) {
  Recording& recording = *register_of(o)->recording->self;
  Machine* machine = recording.look();
  if (machine == nullptr) return {};
  recording.mark_site();
  machine->begin_instruction(recording.builder.site());  // a remark is on the line that asks
  Result<int32_t> held = machine->read_reg(register_of(o)->id);
  if (held) return *held;
  raise_here(recording, std::move(held.error()));
  return {};
}
int truth(PyObject* o) {
  const auto held = look(o);
  return held ? *held != 0 : -1;
}
PyObject* number(PyObject* o) {
  const auto held = look(o);
  return held ? PyLong_FromLong(*held) : nullptr;
}
/// `if register == 0:` would be decided while the kernel is recorded, silently (dynamic loops guide: a register is no
/// host-side value). Against None and the like it is what an object is.
PyObject* compare(PyObject* o, PyObject* other, int op) {
  const bool number = PyLong_Check(other) || PyFloat_Check(other) || Py_TYPE(other) == register_type;
  if (!number || o == other || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  PyErr_SetString(PyExc_TypeError,
                  "a register's value is not known while a kernel is recorded, so it cannot be compared in Python; "
                  "int(register) asks for it outside of loops, nl.while_loop runs on it");
  return nullptr;
}
Py_hash_t hash(PyObject* o) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(o) >> 4); }
PyObject* get_id(PyObject* o, void*) { return PyLong_FromUnsignedLong(register_of(o)->id); }
PyObject* get_frozen(PyObject* o, void*) { return PyBool_FromLong(register_of(o)->frozen); }

PyGetSetDef getset[] = {{"id", get_id, nullptr, "Number of the register.", nullptr},
                        {"frozen", get_frozen, nullptr, "True for a loop's own register.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_nb_bool, reinterpret_cast<void*>(truth)},
    {Py_nb_int, reinterpret_cast<void*>(number)},
    {Py_nb_index, reinterpret_cast<void*>(number)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, getset},
    {Py_tp_doc,
     const_cast<char*>("A 32-bit register (VirtualRegister). Its truth value executes what was recorded so far.")},
    {0, nullptr}};
PyType_Spec spec = {"sterna._core.Register", sizeof(RegisterObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

bool add_register_type(PyObject* module) {
  register_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return register_type != nullptr &&
         PyModule_AddObject(module, "Register", Py_NewRef(reinterpret_cast<PyObject*>(register_type))) == 0;
}

}  // namespace sterna::python
