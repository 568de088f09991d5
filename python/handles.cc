// SPDX-License-Identifier: Apache-2.0
// Handles of recorded instructions, and the edges between instructions that users ask for.
#include "recording.h"
#include "sterna/base/text.h"

namespace sterna::python {

PyTypeObject* handle_type = nullptr;

namespace {

HandleObject* handle_of(PyObject* object) { return reinterpret_cast<HandleObject*>(object); }

void dealloc(PyObject* object) {
  Py_XDECREF(reinterpret_cast<PyObject*>(handle_of(object)->recording));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}
PyObject* depends_on(PyObject* object, PyObject* producers) {
  HandleObject* self = handle_of(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(producers); ++i) {
    PyObject* item = PyTuple_GET_ITEM(producers, i);
    if (Py_TYPE(item) != handle_type)
      return PyErr_Format(PyExc_TypeError, "depends_on takes instructions, not %s", Py_TYPE(item)->tp_name);
    HandleObject* producer = handle_of(item);
    if (producer->recording != self->recording)
      return check_owner(self->recording, producer->recording, "depends_on"), nullptr;
    if (!self->recording->self->add_edge(producer->index, self->index)) return nullptr;
  }
  return Py_NewRef(object);
}
PyObject* get_index(PyObject* object, void*) { return PyLong_FromUnsignedLong(handle_of(object)->index); }
PyMethodDef methods[] = {
    method("depends_on", depends_on, METH_VARARGS, "depends_on(*producers): waits for them on the chip."),
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {{"index", get_index, nullptr, "Place in the program.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_doc, const_cast<char*>("A recorded instruction (NkiInstruction).")},
                       {0, nullptr}};
PyType_Spec spec = {"sterna._core.NkiInstruction", sizeof(HandleObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

bool Recording::add_edge(uint32_t producer, uint32_t consumer) {
  Status status = builder.add_edge(producer, consumer);
  if (status) return true;
  raise_here(*this, std::move(status.error()));
  return false;
}

PyObject* recording_edge(PyObject* self, PyObject* args) {
  unsigned int producer, consumer;
  if (!PyArg_ParseTuple(args, "II", &producer, &consumer) || !recording_of(self)->self->add_edge(producer, consumer))
    return nullptr;
  Py_RETURN_NONE;
}

/// edge_by_name(producer, consumer): by the name= of instructions. Names that a loop repeats are paired in order where
/// both have the same number of instructions; else every consumer waits for the last producer before it.
PyObject* recording_edge_by_name(PyObject* self, PyObject* args) {
  const char *producer, *consumer;
  if (!PyArg_ParseTuple(args, "ss", &producer, &consumer)) return nullptr;
  Recording& r = *recording_of(self)->self;
  auto find = [&](const char* label, std::vector<uint32_t>* out) {
    const uint32_t id = r.builder.program().names.intern(label);
    const Stream& stream = r.builder.program().cores[static_cast<size_t>(r.builder.core())];
    for (uint32_t i = 0; i < stream.size(); ++i)
      if (id != 0 && stream[i].label == id) out->push_back(i);
    if (!out->empty()) return true;
    raise_fault(
        Fault(FaultKind::kBadInput, "SCHED1",
              cat("with_schedule: no instruction of '", r.builder.program().name, "' has name='", label, "'.")));
    return false;
  };
  std::vector<uint32_t> from, to;
  if (!find(producer, &from) || !find(consumer, &to)) return nullptr;
  for (size_t i = 0; i < to.size(); ++i) {
    uint32_t before = from[0];
    for (uint32_t p : from)
      if (p < to[i]) before = p;
    if (from.size() == to.size()) before = from[i];
    if (!r.add_edge(before, to[i])) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* recording_edges(PyObject* self, PyObject*) {
  PyObject* out = PyList_New(0);
  for (const ExtraEdge& e : recording_of(self)->self->builder.program().edges) {
    PyObject* item = Py_BuildValue("(II)", e.producer, e.consumer);
    PyList_Append(out, item);
    Py_XDECREF(item);
  }
  return out;
}

bool add_handle_type(PyObject* module) {
  handle_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return handle_type != nullptr &&
         PyModule_AddObject(module, "NkiInstruction", Py_NewRef(reinterpret_cast<PyObject*>(handle_type))) == 0;
}

}  // namespace sterna::python
