// SPDX-License-Identifier: Apache-2.0
// The end of a kernel call: which tensors are results, whether everything handed back was written, and its bytes.
#include <algorithm>

#include "recording.h"
#include "sterna/base/text.h"
#include "sterna/machine/view_ops.h"

namespace sterna::python {
namespace {

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

/// A tensor of this call, or null with a Python exception.
TensorObject* tensor_here(PyObject* self, PyObject* object, const char* what) {
  if (Py_TYPE(object) != tensor_type) {
    PyErr_Format(PyExc_TypeError, "a kernel returns tensors, not %s", Py_TYPE(object)->tp_name);
    return nullptr;
  }
  return check_owner(recording_of(self), tensor_of(object)->recording, what) ? tensor_of(object) : nullptr;
}

bool was_written(Recording& r, uint32_t tensor) {
  Machine& machine = r.running().machine();
  return machine.has_storage(tensor) && machine.storage(tensor).written;
}

/// OUT2: what is handed to the caller may not hold bytes that were never written, unless the setting fills them.
bool check_defined(Recording& r, uint32_t tensor, const char* what) {
  const TensorInfo& info = r.builder.tensor(tensor);
  Status status = r.running().machine().check_result(tensor, what);
  if (status) return r.show_warnings();
  // The machine speaks of reading; here the bytes were stored by a move whose source was never written.
  std::string& text = status.error().message;
  constexpr std::string_view kNever = ", which was never written";
  if (const size_t at = text.find(kNever); at != std::string::npos)
    text.replace(at, kNever.size(), ", which was never written or was written from bytes that were never written");
  status.error().site = info.site;
  r.builder.program().locate(status.error());
  raise_fault(status.error(), &r.builder.program());
  return false;
}

bool check_parameters(Recording& r) {
  for (const auto& [id, memory] : r.bound)
    if (was_written(r, id) && !check_defined(r, id, "argument")) return false;
  return true;
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

}  // namespace

/// finish(tensors, execute=True): the results in order; executes everything, unless only the recording is wanted. After
/// this only reading is possible.
PyObject* recording_finish(PyObject* self, PyObject* args) {
  Recording& r = *recording_of(self)->self;
  PyObject* results;
  int execute = 1;
  if (!PyArg_ParseTuple(args, "O|p", &results, &execute)) return nullptr;
  if (!for_each_item(results, "results", [&](PyObject* item) {
        const TensorObject* tensor = tensor_here(self, item, "result");
        if (tensor == nullptr) return false;
        Status status = add_result(r, tensor->view);
        if (!status) raise_here(r, std::move(status.error()));
        return static_cast<bool>(status);
      }))
    return nullptr;
  r.sites.forget();
  for (int core = 0; core < r.builder.cores(); ++core) {
    r.builder.set_core(core);
    if (r.builder.open_regions() > 0) {
      raise_fault(Fault(FaultKind::kBadInput, "REGION2",
                        "A recorded loop was left before its end: no break or return inside nl.dynamic_range."));
      return nullptr;
    }
  }
  r.builder.set_core(0);
  if (execute != 0 && !r.flush(true)) return nullptr;
  r.done = true;
  if (execute != 0 && !check_parameters(r)) return nullptr;
  Py_RETURN_NONE;
}

/// run_again([(address, writable, owner), ...]): the recorded program on other arguments, in the order of its
/// parameters.
PyObject* recording_run_again(PyObject* self, PyObject* list) {
  Recording& r = *recording_of(self)->self;
  const std::vector<uint32_t>& parameters = r.builder.program().parameters;
  r.run.reset();
  r.runs_again = true;
  r.bound.clear();
  r.bound_done = 0;
  r.done = false;
  r.fabric = nullptr;
  r.rank = 0;
  r.warnings_shown = 0;
  r.shown.clear();
  std::fill(r.machine_warnings_shown.begin(), r.machine_warnings_shown.end(), 0);
  if (!for_each_item(list, "arguments", [&](PyObject* item) {
        unsigned long long address;
        int writable;
        PyObject* owner;
        if (!PyArg_ParseTuple(item, "KpO", &address, &writable, &owner)) return false;
        if (r.bound.size() == parameters.size())
          return wrong_type("arguments", "a list as long as the parameters", list);
        r.bound.push_back({parameters[r.bound.size()], {reinterpret_cast<void*>(address), writable != 0}});
        r.keep.push_back(Py_NewRef(owner));
        return true;
      }))
    return nullptr;
  if (!r.flush(true)) return nullptr;
  r.done = true;
  if (!check_parameters(r)) return nullptr;
  Py_RETURN_NONE;
}

/// launch(recordings): executes recordings that were finished without executing, as ranks 0, 1, ... of one launch.
PyObject* recording_launch(PyObject*, PyObject* list) {
  std::vector<Recording*> ranks;
  if (!for_each_item(list, "recordings", [&](PyObject* item) {
        if (Py_TYPE(item) != recording_type) return wrong_type("recordings", "a list of recordings", item);
        ranks.push_back(recording_of(item)->self);
        return true;
      }))
    return nullptr;
  if (ranks.empty()) Py_RETURN_NONE;
  const int cores = ranks[0]->builder.cores();
  Ranks launch(static_cast<int>(ranks.size()), cores);
  for (size_t i = 0; i < ranks.size(); ++i) {
    Recording& r = *ranks[i];
    if (r.run || r.builder.cores() != cores) {
      PyErr_SetString(PyExc_ValueError, "a rank was executed before, or has another number of cores");
      return nullptr;
    }
    r.fabric = launch.fabric();
    r.rank = static_cast<int>(i);
    launch.add(&r.running());
  }
  Fault fault;
  size_t failed = 0;
  Executor::State end = Executor::State::kDone;
  Py_BEGIN_ALLOW_THREADS end = launch.finish(&fault, &failed);
  Py_END_ALLOW_THREADS if (PyErr_Occurred()) return nullptr;
  for (Recording* r : ranks)
    if (!r->show_warnings()) return nullptr;
  if (end == Executor::State::kFault) {
    fault.message = cat("Seen at rank ", failed, " of ", ranks.size(), ": ", fault.message);
    raise_fault(fault, &ranks[failed]->builder.program());
    return nullptr;
  }
  for (Recording* r : ranks)
    if (!check_parameters(*r)) return nullptr;
  Py_RETURN_NONE;
}

/// result(tensor): the bytes of a local HBM tensor (taken, not copied). Faults when it was never written, or in part
/// (by the policy).
PyObject* recording_result(PyObject* self, PyObject* object) {
  Recording& r = *recording_of(self)->self;
  const TensorObject* tensor = tensor_here(self, object, "result");
  if (tensor == nullptr) return nullptr;
  const uint32_t id = tensor->view.tensor;
  const TensorInfo& info = r.builder.tensor(id);
  Machine& machine = r.running().machine();
  if (!was_written(r, id) && (!machine.has_storage(id) || info.elements() > 0)) {
    Fault fault(FaultKind::kRuleBroken, "OUT1",
                cat("The result ", machine.describe(whole_view(id, info)),
                    " was never written. Store something into it before returning it."));
    fault.site = info.site;
    r.builder.program().locate(fault);
    raise_fault(fault, &r.builder.program());
    return nullptr;
  }
  if (!check_defined(r, id, "result")) return nullptr;
  auto* out = PyObject_New(BytesObject, bytes_type);
  if (out == nullptr) return nullptr;
  out->size = static_cast<Py_ssize_t>(info.bytes());
  new (&out->buffer) Buffer(machine.take(id));
  return reinterpret_cast<PyObject*>(out);
}

PyObject* recording_written(PyObject* self, PyObject* object) {
  const TensorObject* tensor = tensor_here(self, object, "tensor");
  return tensor ? PyBool_FromLong(was_written(*recording_of(self)->self, tensor->view.tensor)) : nullptr;
}

/// Runs the recorded program once more on the same arguments; local results are computed anew. For measurements of
/// values alone.
PyObject* recording_replay(PyObject* self, PyObject*) {
  Recording& r = *recording_of(self)->self;
  Run again(r.builder.program(), *r.chip, r.pool, r.options);
  again.use(&r.plan);
  Fault fault;
  Executor::State end = Executor::State::kDone;
  for (auto& [id, memory] : r.bound)
    if (Status bound = again.bind(id, memory.first, memory.second); !bound) {
      raise_fault(bound.error());
      return nullptr;
    }
  Py_BEGIN_ALLOW_THREADS end = again.finish(&fault);
  Py_END_ALLOW_THREADS if (end == Executor::State::kFault) {
    raise_fault(fault);
    return nullptr;
  }
  return PyLong_FromUnsignedLongLong(again.executed());
}

bool add_result_type(PyObject*) {
  bytes_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&bytes_spec));
  return bytes_type != nullptr;
}

}  // namespace sterna::python
