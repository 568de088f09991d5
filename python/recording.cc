// SPDX-License-Identifier: Apache-2.0
// One kernel call: recording, lazy flush, results.
#include <chrono>
#include <cstring>

#include "binding.h"
#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/isa/control.h"
#include "sterna/machine/view_ops.h"
#include "timing_binding.h"

namespace sterna::python {

PyTypeObject* recording_type = nullptr;

namespace {

thread_local std::vector<RecordingObject*> active;  // the innermost is current; each thread has its own

RecordingObject* rec_of(PyObject* object) { return reinterpret_cast<RecordingObject*>(object); }

ThreadPool* shared_pool(int threads) {
  // One pool for each thread count that was asked for; pools live as long as the process.
  static auto* pools = new std::unordered_map<int, std::unique_ptr<ThreadPool>>;
  auto& pool = (*pools)[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return pool.get();
}

std::shared_ptr<const Chip> chip_named(const std::string& name, Fault* fault) {
  static auto* chips = new std::unordered_map<std::string, std::shared_ptr<const Chip>>;
  auto found = chips->find(name);
  if (found != chips->end()) return found->second;
  Result<Chip> chip = find_chip(name);
  if (!chip) {
    *fault = std::move(chip.error());
    return nullptr;
  }
  auto shared = std::make_shared<const Chip>(std::move(*chip));
  chips->emplace(name, shared);
  return shared;
}

bool interrupted(Recording& recording) {
  // Called from a run without the GIL, every few instructions: look at signals a few times a second only.
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last;
  recording.progress.store(recording.executor->next(), std::memory_order_relaxed);
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(100)) return false;
  last = now;
  PyGILState_STATE gil = PyGILState_Ensure();
  const bool stop = PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  return stop;
}

void print_text(const std::string& text) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* hook = PyDict_GetItemString(state().hooks, "print");
  if (hook != nullptr) {
    PyObject* done = PyObject_CallFunction(hook, "s#", text.data(), static_cast<Py_ssize_t>(text.size()));
    if (done == nullptr) PyErr_WriteUnraisable(hook);
    Py_XDECREF(done);
  }
  PyGILState_Release(gil);
}

// --- lifetime

void recording_dealloc(PyObject* object) {
  delete rec_of(object)->self;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* recording_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"target", "name", "strict", "uninit", "eager", "threads", "nki_version", nullptr};
  const char *target, *name = "", *uninit = "error", *nki_version = "0.6";
  int strict = 0, eager = 0, threads = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|spspis", const_cast<char**>(names), &target, &name, &strict,
                                   &uninit, &eager, &threads, &nki_version))
    return nullptr;
  Fault fault;
  auto chip = chip_named(target, &fault);
  if (chip == nullptr) {
    raise_fault(fault);
    return nullptr;
  }
  auto* made = rec_of(type->tp_alloc(type, 0));
  if (made == nullptr) return nullptr;
  static auto* buffers = new std::shared_ptr<BufferPool>(BufferPool::make());
  made->self = new Recording(std::move(chip), strict != 0, shared_pool(threads), *buffers);
  Recording& r = *made->self;
  r.builder.program().name = name;
  r.builder.program().nki_version = nki_version;
  r.eager = eager != 0;
  r.options.strict = strict != 0;
  const std::string policy = uninit;
  r.options.uninit = policy == "warn"   ? UninitPolicy::kWarn
                     : policy == "fill" ? UninitPolicy::kFill
                                        : UninitPolicy::kError;
  r.options.print = print_text;
  r.options.interrupted = [&r] { return interrupted(r); };
  return reinterpret_cast<PyObject*>(made);
}

PyObject* enter(PyObject* self, PyObject*) {
  active.push_back(rec_of(self));
  return Py_NewRef(self);
}

PyObject* leave(PyObject* self, PyObject*) {
  if (!active.empty() && active.back() == rec_of(self)) active.pop_back();
  rec_of(self)->self->sites.forget();
  Py_RETURN_NONE;
}

// --- tensors

bool shape_into(PyObject* shape, TensorInfo* info) {
  PyObject* fast = PySequence_Fast(shape, "a shape is a tuple or list of whole numbers");
  if (fast == nullptr) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
  if (n > kMaxDims) {
    Py_DECREF(fast);
    PyErr_Format(PyExc_ValueError, "[TEN1] a tensor has at most %d dimensions, the shape has %zd", kMaxDims, n);
    return false;
  }
  info->ndim = static_cast<uint8_t>(n);
  for (Py_ssize_t d = 0; d < n; ++d) {
    PyObject* number = PyNumber_Index(PySequence_Fast_GET_ITEM(fast, d));
    if (number == nullptr) {
      Py_DECREF(fast);
      return false;
    }
    info->shape[d] = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (info->shape[d] == -1 && PyErr_Occurred()) {
      Py_DECREF(fast);
      return false;
    }
  }
  Py_DECREF(fast);
  return true;
}

PyObject* made_tensor(RecordingObject* recording, Result<uint32_t>&& id) {
  if (!id) {
    raise_here(*recording->self, std::move(id.error()));
    return nullptr;
  }
  return new_tensor(recording, whole_view(*id, recording->self->builder.tensor(*id)));
}

/// tensor(shape, dtype, memory, name, shared, address): a local tensor.
PyObject* add_tensor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 6) return PyErr_Format(PyExc_TypeError, "tensor() takes shape, dtype, memory, name, shared, address");
  Recording& r = *rec_of(self)->self;
  TensorInfo info;
  if (!shape_into(args[0], &info) || !to_dtype(args[1], &info.dtype)) return nullptr;
  info.memory = static_cast<Memory>(PyLong_AsLong(args[2]));
  if (PyErr_Occurred()) return nullptr;
  if (args[3] != Py_None) {
    const char* text = PyUnicode_AsUTF8(args[3]);
    if (text == nullptr) return nullptr;
    info.name = r.builder.program().names.intern(text);
  }
  info.shared = PyObject_IsTrue(args[4]) == 1;
  if (args[5] != Py_None) {
    unsigned int partition, byte;
    if (!PyArg_ParseTuple(args[5], "II", &partition, &byte)) return nullptr;
    info.has_address = true;
    info.address_partition = partition;
    info.address_byte = byte;
  }
  r.mark_site();
  return made_tensor(rec_of(self), r.builder.add_tensor(info));
}

/// parameter(shape, dtype, name, address, writable, owner): a tensor that borrows the caller's memory.
PyObject* add_parameter(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 6) return PyErr_Format(PyExc_TypeError, "parameter() takes shape, dtype, name, address, writable, owner");
  Recording& r = *rec_of(self)->self;
  TensorInfo info;
  if (!shape_into(args[0], &info) || !to_dtype(args[1], &info.dtype)) return nullptr;
  const char* text = PyUnicode_AsUTF8(args[2]);
  if (text == nullptr) return nullptr;
  info.name = r.builder.program().names.intern(text);
  info.role = TensorRole::kParameter;
  info.shared = true;
  const bool writable = PyObject_IsTrue(args[4]) == 1;
  info.read_only = !writable;
  void* address = PyLong_AsVoidPtr(args[3]);
  if (PyErr_Occurred()) return nullptr;
  Result<uint32_t> id = r.builder.add_tensor(info);
  if (id) {
    r.bound.push_back({*id, {address, writable}});
    r.keep.push_back(Py_NewRef(args[5]));
  }
  return made_tensor(rec_of(self), std::move(id));
}

PyObject* add_register(PyObject* self, PyObject* args) {
  int frozen = 0;
  if (!PyArg_ParseTuple(args, "|p", &frozen)) return nullptr;
  auto* made = PyObject_New(RegisterObject, register_type);
  if (made == nullptr) return nullptr;
  Py_INCREF(self);
  made->recording = rec_of(self);
  made->id = rec_of(self)->self->builder.add_register();
  made->frozen = frozen != 0;
  return reinterpret_cast<PyObject*>(made);
}

// --- running

PyObject* flush_method(PyObject* self, PyObject*) {
  if (!rec_of(self)->self->flush(false)) return nullptr;
  Py_RETURN_NONE;
}

/// Executes what came before an error of the recording itself.
PyObject* settle(PyObject* self, PyObject*) {
  Recording& r = *rec_of(self)->self;
  if (r.builder.open_regions() == 0 && !r.flush(false)) return nullptr;
  Py_RETURN_NONE;
}

/// A result is a whole tensor, shared in HBM or one of the arguments.
Status add_result(Recording& r, const View& view) {
  TensorInfo& info = r.builder.program().tensors[view.tensor];
  auto fault = [&](const char* rule, std::string message) {
    Fault made(FaultKind::kRuleBroken, rule, std::move(message));
    made.site = info.site;
    return made;
  };
  const std::string name = r.builder.program().tensor_name(view.tensor);
  if (info.on_chip())
    return fault("OUT3", cat("The result '", name, "' is in ", sterna::name(info.memory),
                             ". A kernel returns tensors in nl.shared_hbm: store it there."));
  if (view.kind != ViewKind::kStrided || view.elements() != info.elements() || view.dtype != info.dtype ||
      !free_contiguous(view) || (view.ndim > 0 && view.dims[0].count > 1 && view.dims[0].stride != view.cols()))
    return fault("OUT4", cat("The result is a part of '", name,
                             "', or its elements in another order. A kernel returns whole tensors."));
  if (info.role == TensorRole::kLocal && !info.shared) {
    std::string message = cat("The result '", name, "' is in private HBM; results belong in nl.shared_hbm.");
    if (r.options.strict) return fault("OUT5", std::move(message));
    r.builder.set_site(info.site);
    r.builder.warn("OUT5", message);
    info.shared = true;
  }
  r.builder.add_result(view.tensor);
  return {};
}

/// finish(tensors, execute=True): the results in order; executes everything, unless only the recording is wanted. After
/// this only reading is possible.
PyObject* finish(PyObject* self, PyObject* args) {
  Recording& r = *rec_of(self)->self;
  PyObject* results;
  int execute = 1;
  if (!PyArg_ParseTuple(args, "O|p", &results, &execute)) return nullptr;
  PyObject* fast = PySequence_Fast(results, "results");
  if (fast == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(fast, i);
    if (Py_TYPE(item) != tensor_type) {
      PyErr_Format(PyExc_TypeError, "a kernel returns tensors, not %s", Py_TYPE(item)->tp_name);
      Py_DECREF(fast);
      return nullptr;
    }
    if (Status status = add_result(r, reinterpret_cast<TensorObject*>(item)->view); !status) {
      Py_DECREF(fast);
      raise_here(r, std::move(status.error()));
      return nullptr;
    }
  }
  Py_DECREF(fast);
  r.sites.forget();
  if (r.builder.open_regions() > 0) {
    raise_fault(Fault(FaultKind::kBadInput, "REGION2",
                      "A recorded loop was left before its end: no break or return inside nl.dynamic_range."));
    return nullptr;
  }
  if (execute != 0 && !r.flush(true)) return nullptr;
  r.done = true;
  Py_RETURN_NONE;
}

// Bytes of a result, handed to Python without a copy.
struct BytesObject {
  PyObject_HEAD Buffer buffer;
  Py_ssize_t size;
};
PyTypeObject* bytes_type = nullptr;
int bytes_buffer(PyObject* object, Py_buffer* view, int flags) {
  auto* b = reinterpret_cast<BytesObject*>(object);
  return PyBuffer_FillInfo(view, object, b->buffer.data(), b->size, 0, flags);
}
void bytes_dealloc(PyObject* object) {
  reinterpret_cast<BytesObject*>(object)->buffer.~Buffer();
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}
PyType_Slot bytes_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(bytes_dealloc)},
                             {Py_bf_getbuffer, reinterpret_cast<void*>(bytes_buffer)},
                             {0, nullptr}};
PyType_Spec bytes_spec = {"sterna._core.ResultBytes", sizeof(BytesObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, bytes_slots};

/// result(tensor): the bytes of a local HBM tensor (taken, not copied). Faults when it was never written, or in part
/// (by the policy).
PyObject* take_result(PyObject* self, PyObject* tensor) {
  Recording& r = *rec_of(self)->self;
  if (Py_TYPE(tensor) != tensor_type)
    return PyErr_Format(PyExc_TypeError, "a kernel returns tensors, not %s", Py_TYPE(tensor)->tp_name);
  const View& view = reinterpret_cast<TensorObject*>(tensor)->view;
  const TensorInfo& info = r.builder.tensor(view.tensor);
  const View all = whole_view(view.tensor, info);
  Machine& machine = r.running().machine();
  auto raise = [&](Fault fault) -> PyObject* {
    fault.site = info.site;
    r.builder.program().locate(fault);
    raise_fault(fault, &r.builder.program());
    return nullptr;
  };
  if (!machine.has_storage(view.tensor) || (!machine.storage(view.tensor).written && info.elements() > 0))
    return raise(Fault(
        FaultKind::kRuleBroken, "OUT1",
        cat("The result ", machine.describe(all), " was never written. Store something into it before returning it.")));
  if (!machine.is_defined(all)) {
    machine.set_site(info.site);
    auto opened = machine.read(all, "result");
    if (!opened) {
      opened.error().rule = "OUT2";
      return raise(std::move(opened.error()));
    }
    if (!r.show_warnings()) return nullptr;
  }
  auto* out = PyObject_New(BytesObject, bytes_type);
  if (out == nullptr) return nullptr;
  out->size = static_cast<Py_ssize_t>(info.bytes());
  new (&out->buffer) Buffer(machine.take(view.tensor));
  return reinterpret_cast<PyObject*>(out);
}

/// Runs the recorded program once more on the same arguments; local results are computed anew. For measurements of
/// values alone.
PyObject* replay(PyObject* self, PyObject*) {
  Recording& r = *rec_of(self)->self;
  Executor again(r.builder.program(), *r.chip, r.pool, r.options);
  Fault fault;
  Executor::State end = Executor::State::kDone;
  for (auto& [id, memory] : r.bound)
    if (Status bound = again.machine().bind(id, memory.first, memory.second); !bound) return nullptr;
  Py_BEGIN_ALLOW_THREADS end = again.run(SIZE_MAX, true, &fault);
  Py_END_ALLOW_THREADS if (end == Executor::State::kFault) {
    raise_fault(fault);
    return nullptr;
  }
  return PyLong_FromUnsignedLongLong(again.executed());
}

PyObject* add_edge(PyObject* self, PyObject* args) {
  unsigned int producer, consumer;
  if (!PyArg_ParseTuple(args, "II", &producer, &consumer) || !rec_of(self)->self->add_edge(producer, consumer))
    return nullptr;
  Py_RETURN_NONE;
}

/// edge_by_name(producer, consumer): by the name= of instructions. Names that a loop repeats are paired in order where
/// both have the same number of instructions; else every consumer waits for the last producer before it.
PyObject* edge_by_name(PyObject* self, PyObject* args) {
  const char *producer, *consumer;
  if (!PyArg_ParseTuple(args, "ss", &producer, &consumer)) return nullptr;
  Recording& r = *rec_of(self)->self;
  auto find = [&](const char* label, std::vector<uint32_t>* out) {
    const uint32_t id = r.builder.program().names.intern(label);
    const Stream& stream = r.builder.program().cores[0];
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

PyObject* edges(PyObject* self, PyObject*) {
  PyObject* out = PyList_New(0);
  for (const ExtraEdge& e : rec_of(self)->self->builder.program().edges) {
    PyObject* item = Py_BuildValue("(II)", e.producer, e.consumer);
    PyList_Append(out, item);
    Py_XDECREF(item);
  }
  return out;
}

/// fail(kind, rule, message): raises a fault of the user's line that is being recorded.
PyObject* fail(PyObject* self, PyObject* args) {
  const char *kind, *rule, *message;
  if (!PyArg_ParseTuple(args, "sss", &kind, &rule, &message)) return nullptr;
  Fault fault(FaultKind::kBug, rule, message);
  for (int k = 0; k <= static_cast<int>(FaultKind::kBug); ++k)
    if (name(static_cast<FaultKind>(k)) == kind) fault.kind = static_cast<FaultKind>(k);
  raise_here(*rec_of(self)->self, std::move(fault));
  return nullptr;
}

/// compat(rule, message): something that only the official simulator accepts: one remark a line, a fault in strict
/// mode.
PyObject* compat(PyObject* self, PyObject* args) {
  const char *rule, *message;
  if (!PyArg_ParseTuple(args, "ss", &rule, &message)) return nullptr;
  Recording& r = *rec_of(self)->self;
  if (r.options.strict) {
    raise_here(r, Fault(FaultKind::kRuleBroken, rule, message));
    return nullptr;
  }
  r.mark_site();
  r.builder.warn(rule, message);
  if (!r.show_warnings()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* written(PyObject* self, PyObject* tensor) {
  Recording& r = *rec_of(self)->self;
  if (Py_TYPE(tensor) != tensor_type) return PyErr_Format(PyExc_TypeError, "not a tensor");
  const uint32_t id = reinterpret_cast<TensorObject*>(tensor)->view.tensor;
  return PyBool_FromLong(r.running().machine().has_storage(id) && r.running().machine().storage(id).written);
}

PyObject* get_size(PyObject* o, void*) { return PyLong_FromSize_t(rec_of(o)->self->builder.size()); }
PyObject* get_executed(PyObject* o, void*) {
  return PyLong_FromSize_t(rec_of(o)->self->progress.load(std::memory_order_relaxed));
}
PyObject* get_path_length(PyObject* o, void*) { return PyLong_FromSize_t(rec_of(o)->self->path().values().size()); }
PyObject* get_nki_version(PyObject* o, void*) {
  return PyUnicode_FromString(rec_of(o)->self->builder.program().nki_version.c_str());
}
PyObject* get_name(PyObject* o, void*) { return PyUnicode_FromString(rec_of(o)->self->builder.program().name.c_str()); }
PyObject* get_host_read(PyObject* o, void*) { return PyBool_FromLong(rec_of(o)->self->host_read); }
PyObject* get_done(PyObject* o, void*) { return PyBool_FromLong(rec_of(o)->self->done); }
PyObject* get_eager(PyObject* o, void*) { return PyBool_FromLong(rec_of(o)->self->eager); }
PyObject* get_target(PyObject* o, void*) { return PyUnicode_FromString(rec_of(o)->self->chip->name.c_str()); }
PyObject* get_bytes(PyObject* o, void*) {
  return PyLong_FromSize_t(rec_of(o)->self->builder.program().cores[0].bytes());
}

PyObject* warnings_list(PyObject* self, PyObject*) {
  Recording& r = *rec_of(self)->self;
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
  if (r.executor) add(r.executor->machine().warnings());
  return out;
}

#define METHOD(name, f, flags, doc) {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), flags, doc}
PyMethodDef methods[] = {
    METHOD("__enter__", enter, METH_NOARGS, "Makes this the current recording of the thread."),
    METHOD("__exit__", leave, METH_VARARGS, ""),
    METHOD("tensor", add_tensor, METH_FASTCALL, "tensor(shape, dtype, memory, name, shared, address)"),
    METHOD("parameter", add_parameter, METH_FASTCALL, "parameter(shape, dtype, name, address, writable, owner)"),
    METHOD("register", add_register, METH_VARARGS, "register(frozen=False)"),
    METHOD("flush", flush_method, METH_NOARGS, "Executes what is recorded so far."),
    METHOD("settle", settle, METH_NOARGS, "Executes what came before an error of the recording."),
    METHOD("finish", finish, METH_VARARGS, "finish(results, execute=True): nothing more will be recorded."),
    METHOD("result", take_result, METH_O, "result(tensor): its bytes."),
    METHOD("written", written, METH_O, "written(tensor): something was stored into it."),
    METHOD("replay", replay, METH_NOARGS, "Runs the recorded program again; gives the number of instructions."),
    METHOD("edge", add_edge, METH_VARARGS, "edge(producer, consumer): the second waits for the first."),
    METHOD("edge_by_name", edge_by_name, METH_VARARGS,
           "edge_by_name(producer, consumer): the same by the name= of instructions."),
    METHOD("edges", edges, METH_NOARGS, "(producer, consumer) of each edge."),
    METHOD("fail", fail, METH_VARARGS, "fail(kind, rule, message): raises a fault of the line that is being recorded."),
    METHOD("compat", compat, METH_VARARGS, "compat(rule, message): a remark, in strict mode a fault."),
    METHOD("warnings", warnings_list, METH_NOARGS, "(rule, message, file, line) of each remark."),
    METHOD("timing", recording_timing, METH_VARARGS | METH_KEYWORDS, "The predicted run: a Timing object."),
    METHOD("release", recording_release, METH_NOARGS,
           "Gives up values and arguments; what timing() and text() need stays."),
    METHOD("text", recording_text, METH_NOARGS, "The program in its text form."),
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {{"size", get_size, nullptr, "Records so far.", nullptr},
                        {"executed", get_executed, nullptr,
                         "Records executed, about; may be read while another thread runs them.", nullptr},
                        {"path_length", get_path_length, nullptr,
                         "Values that only the run could know; 0 when nothing depends on data.", nullptr},
                        {"nki_version", get_nki_version, nullptr, "Release of NKI whose rules hold.", nullptr},
                        {"name", get_name, nullptr, "Name of the kernel.", nullptr},
                        {"host_read", get_host_read, nullptr, "True when Python looked at a value.", nullptr},
                        {"done", get_done, nullptr, "True when nothing more can be executed.", nullptr},
                        {"eager", get_eager, nullptr, "True when each instruction is executed at once.", nullptr},
                        {"target", get_target, nullptr, "Name of the chip.", nullptr},
                        {"program_bytes", get_bytes, nullptr, "Memory of the recorded stream.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(recording_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(recording_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"sterna._core.Recording", sizeof(RecordingObject), 0, Py_TPFLAGS_DEFAULT, slots};

void handle_dealloc(PyObject* object) {
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<HandleObject*>(object)->recording));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}
PyObject* handle_depends_on(PyObject* object, PyObject* producers) {
  auto* self = reinterpret_cast<HandleObject*>(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(producers); ++i) {
    PyObject* item = PyTuple_GET_ITEM(producers, i);
    if (Py_TYPE(item) != handle_type)
      return PyErr_Format(PyExc_TypeError, "depends_on takes instructions, not %s", Py_TYPE(item)->tp_name);
    auto* producer = reinterpret_cast<HandleObject*>(item);
    if (producer->recording != self->recording)
      return PyErr_Format(PyExc_ValueError, "depends_on: an instruction of another kernel call");
    if (!self->recording->self->add_edge(producer->index, self->index)) return nullptr;
  }
  Py_RETURN_NONE;
}
PyObject* handle_index(PyObject* object, void*) {
  return PyLong_FromUnsignedLong(reinterpret_cast<HandleObject*>(object)->index);
}
PyMethodDef handle_methods[] = {
    METHOD("depends_on", handle_depends_on, METH_VARARGS, "depends_on(*producers): waits for them on the chip."),
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef handle_getset[] = {{"index", handle_index, nullptr, "Place in the program.", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot handle_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
                              {Py_tp_methods, handle_methods},
                              {Py_tp_getset, handle_getset},
                              {Py_tp_doc, const_cast<char*>("A recorded instruction (NkiInstruction).")},
                              {0, nullptr}};
PyType_Spec handle_spec = {"sterna._core.NkiInstruction", sizeof(HandleObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};

}  // namespace

Recording::~Recording() {
  for (PyObject* object : keep) Py_DECREF(object);
}

Executor& Recording::running() {
  if (!executor) {
    executor = std::make_unique<Executor>(builder.program(), *chip, pool, options);
  }
  while (!bound.empty() && bound_done < bound.size()) {
    auto& [id, memory] = bound[bound_done++];
    Status status = executor->machine().bind(id, memory.first, memory.second);
    (void)status;  // binding a parameter cannot fail
  }
  return *executor;
}

bool Recording::flush(bool final) {
  if (done) return true;
  if (builder.open_regions() > 0) {
    PyErr_SetString(PyExc_TypeError,
                    "a value cannot be read inside nl.dynamic_range, nl.fori_loop or nl.while_loop: their bodies are "
                    "recorded once and run on the "
                    "device. Use nl.device_print, or set STERNA_EAGER=1, which runs them step by step.");
    return false;
  }
  Executor& run = running();
  Fault fault;
  Executor::State end;
  Py_BEGIN_ALLOW_THREADS end = run.run(SIZE_MAX, final, &fault);
  Py_END_ALLOW_THREADS if (end == Executor::State::kFault) done = true;
  if (PyErr_Occurred()) return false;  // Ctrl-C, or an error of a print hook
  if (!show_warnings()) return false;
  if (end != Executor::State::kFault) return true;
  raise_fault(fault, &builder.program());
  return false;
}

bool Recording::add_edge(uint32_t producer, uint32_t consumer) {
  if (producer < consumer && consumer < builder.size()) {
    builder.program().edges.push_back({producer, consumer});
    return true;
  }
  Fault fault(
      FaultKind::kBadInput, "SCHED2",
      "An instruction can only wait for one that comes before it in the program; Sterna keeps each engine's order.");
  if (consumer < builder.size()) fault.site = builder.program().cores[0][consumer].site;
  raise_here(*this, std::move(fault));
  return false;
}

void Recording::mark_site() { builder.set_site(sites.here(builder.program())); }

void Recording::count_iteration() {
  const uint32_t site = builder.site();
  if (site >= iterations.size()) iterations.resize(site + 64, 0);
  Stream& stream = builder.program().cores[0];
  stream.at(stream.size() - 1).iteration = iterations[site]++;
}

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
  return show(builder.warnings(), &warnings_shown) &&
         (!executor || show(executor->machine().warnings(), &machine_warnings_shown));
}

RecordingObject* current_recording_or_null() { return active.empty() ? nullptr : active.back(); }

RecordingObject* current_recording() {
  if (!active.empty()) return active.back();
  PyErr_SetString(PyExc_RuntimeError,
                  "no kernel is being recorded: call this inside a function decorated with nki.jit");
  return nullptr;
}

bool add_recording_type(PyObject* module) {
  recording_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  handle_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&handle_spec));
  bytes_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&bytes_spec));
  return recording_type != nullptr && handle_type != nullptr && bytes_type != nullptr &&
         PyModule_AddObject(module, "Recording", Py_NewRef(reinterpret_cast<PyObject*>(recording_type))) == 0 &&
         PyModule_AddObject(module, "NkiInstruction", Py_NewRef(reinterpret_cast<PyObject*>(handle_type))) == 0;
}

}  // namespace sterna::python
