// SPDX-License-Identifier: Apache-2.0
// One kernel call in the making: tensors, registers, lazy execution.
#include "recording.h"

#include <algorithm>
#include <chrono>

#include "sterna/base/text.h"
#include "sterna/hardware/catalog.h"
#include "sterna/machine/view_ops.h"
#include "timing_binding.h"

namespace sterna::python {

PyTypeObject* recording_type = nullptr;

namespace {

thread_local std::vector<RecordingObject*> active;  // the innermost is current; each thread has its own

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
  recording.progress.store(recording.run->executed(), std::memory_order_relaxed);
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
  delete recording_of(object)->self;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* recording_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"target",      "name",  "strict", "uninit",        "eager", "threads",
                                "nki_version", "cores", "grid",   "rounding_seed", nullptr};
  const char *target, *name = "", *uninit = "error", *nki_version = "0.6";
  int strict = 0, eager = 0, threads = 0, cores = 1, grid = 0;
  long long rounding_seed = -1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|spspisiiL", const_cast<char**>(names), &target, &name, &strict,
                                   &uninit, &eager, &threads, &nki_version, &cores, &grid, &rounding_seed))
    return nullptr;
  Fault fault;
  auto chip = chip_named(target, &fault);
  if (chip == nullptr) {
    raise_fault(fault);
    return nullptr;
  }
  if (cores < 1 || cores > int64_t{chip->logical_max}) {
    raise_fault(Fault(FaultKind::kNotOnThisChip, "LNC1",
                      cat("kernel[", cores, "]: a logical core of ", chip->name, " joins at most ",
                          int64_t{chip->logical_max}, " physical cores.")));
    return nullptr;
  }
  auto* made = recording_of(type->tp_alloc(type, 0));
  if (made == nullptr) return nullptr;
  static auto* buffers = new std::shared_ptr<BufferPool>(BufferPool::make());
  made->self = new Recording(std::move(chip), strict != 0, shared_pool(threads), *buffers);
  Recording& r = *made->self;
  r.builder.set_cores(cores);
  r.grid = grid;
  r.iterations.resize(static_cast<size_t>(cores));
  r.machine_warnings_shown.resize(static_cast<size_t>(cores));
  r.recorded.resize(static_cast<size_t>(cores));
  r.handed_over.resize(static_cast<size_t>(cores), UINT64_MAX);
  r.builder.program().name = name;
  r.builder.program().nki_version = nki_version;
  r.eager = eager != 0;
  r.options.strict = strict != 0;
  const std::string policy = uninit;
  r.options.uninit = policy == "warn"   ? UninitPolicy::kWarn
                     : policy == "fill" ? UninitPolicy::kFill
                     : policy == "zero" ? UninitPolicy::kZero
                                        : UninitPolicy::kError;
  r.options.rounding_seed = rounding_seed;
  r.options.print = print_text;
  r.options.interrupted = [&r] { return interrupted(r); };
  return reinterpret_cast<PyObject*>(made);
}

PyObject* enter(PyObject* self, PyObject*) {
  active.push_back(recording_of(self));
  return Py_NewRef(self);
}

PyObject* leave(PyObject* self, PyObject*) {
  if (!active.empty() && active.back() == recording_of(self)) active.pop_back();
  recording_of(self)->self->sites.forget();
  Py_RETURN_NONE;
}

// --- tensors

/// A program has kMaxDims dimensions for a tensor; of one in HBM that has more, the leading ones become one there.
bool shape_into(PyObject* object, Shape* shape, TensorInfo* info) {
  if (!to_shape(object, 0, shape)) return false;
  const int merged = std::max(shape->ndim - kMaxDims, 0);
  if (merged > 0 && info->on_chip())
    return raise_argument(FaultKind::kBadInput, "TEN1",
                          cat("A tensor in ", sterna::name(info->memory), " has at most ", kMaxDims, " dimensions."));
  info->ndim = static_cast<uint8_t>(shape->ndim - merged);
  std::copy_n(shape->count + merged, info->ndim, info->shape);
  for (int d = 0; d < merged; ++d) info->shape[0] *= shape->count[d];
  return true;
}

PyObject* made_tensor(RecordingObject* recording, const Shape& shape, Result<uint32_t>&& id) {
  if (!id) {
    raise_here(*recording->self, std::move(id.error()));
    return nullptr;
  }
  if (shape.ndim > kMaxDims) {
    WideView whole = widened(whole_view(*id, recording->self->builder.tensor(*id)));
    whole.ndim = static_cast<uint8_t>(shape.ndim);
    int64_t stride = 1;
    for (int d = shape.ndim - 1; d >= 0; stride *= shape.count[d--])
      whole.dims[d] = {static_cast<int32_t>(stride), static_cast<int32_t>(shape.count[d])};
    recording->self->wide.insert_or_assign(*id, whole);
  }
  return new_whole_tensor(recording, *id);
}

/// tensor(shape, dtype, memory, name, shared, address): a local tensor.
PyObject* add_tensor(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 6) return PyErr_Format(PyExc_TypeError, "tensor() takes shape, dtype, memory, name, shared, address");
  Recording& r = *recording_of(self)->self;
  TensorInfo info;
  Shape shape;
  info.memory = static_cast<Memory>(PyLong_AsLong(args[2]));
  if (PyErr_Occurred() || !shape_into(args[0], &shape, &info) || !to_dtype(args[1], &info.dtype)) return nullptr;
  if (args[3] != Py_None) {
    const char* text = PyUnicode_AsUTF8(args[3]);
    if (text == nullptr) return nullptr;
    info.name = r.builder.program().names.intern(text);
  }
  info.shared = PyObject_IsTrue(args[4]) == 1;
  if (args[5] != Py_None) {
    int64_t place[2];
    int numbers;
    if (!to_ints(args[5], "address", {0, UINT32_MAX}, place, &numbers)) return nullptr;
    if (numbers != 2) return wrong_type("address", "(partition, byte in the partition)", args[5]), nullptr;
    info.has_address = true;
    info.address_partition = static_cast<uint32_t>(place[0]);
    info.address_byte = static_cast<uint32_t>(place[1]);
  }
  r.mark_site();
  return made_tensor(recording_of(self), shape, r.builder.add_tensor(info));
}

/// parameter(shape, dtype, name, address, writable, owner, constant=False): a tensor that borrows the caller's memory;
/// a constant is the kernel's own.
PyObject* add_parameter(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs < 6) return PyErr_Format(PyExc_TypeError, "parameter() takes shape, dtype, name, address, writable, owner");
  Recording& r = *recording_of(self)->self;
  TensorInfo info;
  Shape shape;
  if (!shape_into(args[0], &shape, &info) || !to_dtype(args[1], &info.dtype)) return nullptr;
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
    if (nargs > 6 && PyObject_IsTrue(args[6]) == 1) r.constants.insert(*id);
  }
  return made_tensor(recording_of(self), shape, std::move(id));
}

PyObject* add_register(PyObject* self, PyObject* args) {
  int frozen = 0;
  if (!PyArg_ParseTuple(args, "|p", &frozen)) return nullptr;
  auto* made = PyObject_New(RegisterObject, register_type);
  if (made == nullptr) return nullptr;
  Py_INCREF(self);
  made->recording = recording_of(self);
  made->id = recording_of(self)->self->builder.add_register();
  made->frozen = frozen != 0;
  return reinterpret_cast<PyObject*>(made);
}

// --- cores

PyObject* set_core(PyObject* self, PyObject* number) {
  Recording& r = *recording_of(self)->self;
  const long core = PyLong_AsLong(number);
  if (core == -1 && PyErr_Occurred()) return nullptr;
  if (core < 0 || core >= r.builder.cores()) return PyErr_Format(PyExc_IndexError, "there is no core %ld", core);
  r.builder.set_core(static_cast<int>(core));
  r.sites.forget();
  Py_RETURN_NONE;
}

PyObject* as_rank(PyObject* self, PyObject*) {
  recording_of(self)->self->as_rank = true;
  recording_of(self)->self->eager = false;
  Py_RETURN_NONE;
}

PyObject* core_ended(PyObject* self, PyObject* number) {
  Recording& r = *recording_of(self)->self;
  const long core = PyLong_AsLong(number);
  if (core == -1 && PyErr_Occurred()) return nullptr;
  if (core < 0 || core >= r.builder.cores()) return PyErr_Format(PyExc_IndexError, "there is no core %ld", core);
  r.recorded[static_cast<size_t>(core)] = true;
  Py_RETURN_NONE;
}

// --- running

PyObject* flush_method(PyObject* self, PyObject*) {
  if (!recording_of(self)->self->flush(false)) return nullptr;
  Py_RETURN_NONE;
}

/// Executes what came before an error of the recording itself.
PyObject* settle(PyObject* self, PyObject*) {
  Recording& r = *recording_of(self)->self;
  if (r.builder.open_regions() == 0 && !r.flush(false, false)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_size(PyObject* o, void*) {
  size_t records = 0;
  for (const Stream& stream : recording_of(o)->self->builder.program().cores) records += stream.size();
  return PyLong_FromSize_t(records);
}
PyObject* get_cores(PyObject* o, void*) { return PyLong_FromLong(recording_of(o)->self->builder.cores()); }
PyObject* get_grid(PyObject* o, void*) { return PyLong_FromLong(recording_of(o)->self->grid); }
PyObject* get_core(PyObject* o, void*) { return PyLong_FromLong(recording_of(o)->self->builder.core()); }
PyObject* get_executed(PyObject* o, void*) {
  return PyLong_FromSize_t(recording_of(o)->self->progress.load(std::memory_order_relaxed));
}
PyObject* get_path_length(PyObject* o, void*) {
  size_t values = 0;
  for (const Path& path : recording_of(o)->self->paths()) values += path.values().size();
  return PyLong_FromSize_t(values);
}
PyObject* get_nki_version(PyObject* o, void*) {
  return PyUnicode_FromString(recording_of(o)->self->builder.program().nki_version.c_str());
}
PyObject* get_name(PyObject* o, void*) {
  return PyUnicode_FromString(recording_of(o)->self->builder.program().name.c_str());
}
PyObject* get_parameters(PyObject* o, void*) {
  return PyLong_FromSize_t(recording_of(o)->self->builder.program().parameters.size());
}
PyObject* get_host_read(PyObject* o, void*) { return PyBool_FromLong(recording_of(o)->self->host_read); }
PyObject* get_done(PyObject* o, void*) { return PyBool_FromLong(recording_of(o)->self->done); }
PyObject* get_eager(PyObject* o, void*) { return PyBool_FromLong(recording_of(o)->self->eager); }
PyObject* get_target(PyObject* o, void*) { return PyUnicode_FromString(recording_of(o)->self->chip->name.c_str()); }
PyObject* get_bytes(PyObject* o, void*) {
  size_t bytes = 0;
  for (const Stream& stream : recording_of(o)->self->builder.program().cores)
    bytes += stream.bytes() + stream.size() * sizeof(ReplayStep);
  return PyLong_FromSize_t(bytes);
}

PyMethodDef methods[] = {
    method("__enter__", enter, METH_NOARGS, "Makes this the current recording of the thread."),
    method("__exit__", leave, METH_VARARGS, ""),
    method("tensor", add_tensor, METH_FASTCALL, "tensor(shape, dtype, memory, name, shared, address)"),
    method("parameter", add_parameter, METH_FASTCALL, "parameter(shape, dtype, name, address, writable, owner)"),
    method("register", add_register, METH_VARARGS, "register(frozen=False)"),
    method("as_rank", as_rank, METH_NOARGS, "This is recorded as one of several ranks: it runs with the others."),
    method("set_core", set_core, METH_O, "set_core(number): that core records what follows."),
    method("core_ended", core_ended, METH_O, "core_ended(number): its function has returned."),
    method("run_again", recording_run_again, METH_O, "run_again(arguments): the program on other arguments."),
    method("launch", recording_launch, METH_O | METH_STATIC, "launch(recordings): runs finished recordings as ranks."),
    method("flush", flush_method, METH_NOARGS, "Executes what is recorded so far."),
    method("settle", settle, METH_NOARGS, "Executes what came before an error of the recording."),
    method("finish", recording_finish, METH_VARARGS, "finish(results, execute=True): nothing more will be recorded."),
    method("result", recording_result, METH_O, "result(tensor): its bytes."),
    method("written", recording_written, METH_O, "written(tensor): something was stored into it."),
    method("replay", recording_replay, METH_NOARGS,
           "Runs the recorded program again; gives the number of instructions."),
    method("saved", recording_saved, METH_NOARGS, "saved(): the program as bytes, and the remarks of its recording."),
    method("load", recording_load, METH_VARARGS,
           "load(bytes, warnings): becomes what saved() gave and gives its parameters; None when that cannot be."),
    method("whole", recording_whole, METH_VARARGS, "whole(id, shape): all of a tensor."),
    method("edge", recording_edge, METH_VARARGS, "edge(producer, consumer): the second waits for the first."),
    method("edge_by_name", recording_edge_by_name, METH_VARARGS,
           "edge_by_name(producer, consumer): the same by the name= of instructions."),
    method("edges", recording_edges, METH_NOARGS, "(producer, consumer) of each edge."),
    method("fail", recording_fail, METH_VARARGS,
           "fail(kind, rule, message): raises a fault of the line that is being recorded."),
    method("compat", recording_compat, METH_VARARGS, "compat(rule, message): a remark, in strict mode a fault."),
    method("warnings", recording_warnings, METH_NOARGS, "(rule, message, file, line) of each remark."),
    method("multiply_adds", recording_multiply_adds, METH_NOARGS,
           "Multiply-adds of the run, also of a program that the chip's memories do not hold."),
    method("timing", recording_timing, METH_VARARGS | METH_KEYWORDS, "The predicted run: a Timing object."),
    method("release", recording_release, METH_NOARGS,
           "Gives up values and arguments; what timing() and text() need stays."),
    method("text", recording_text, METH_NOARGS, "The program in its text form."),
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"cores", get_cores, nullptr, "Cores of the kernel.", nullptr},
    {"grid", get_grid, nullptr, "Dimensions of the grid that the caller gave.", nullptr},
    {"core", get_core, nullptr, "The core that is being recorded.", nullptr},
    {"size", get_size, nullptr, "Records so far.", nullptr},
    {"executed", get_executed, nullptr, "Records executed, about; may be read while another thread runs them.",
     nullptr},
    {"path_length", get_path_length, nullptr, "Values that only the run could know; 0 when nothing depends on data.",
     nullptr},
    {"nki_version", get_nki_version, nullptr, "Release of NKI whose rules hold.", nullptr},
    {"name", get_name, nullptr, "Name of the kernel.", nullptr},
    {"parameters", get_parameters, nullptr, "How many parameters it has; constants of the kernel are some too.",
     nullptr},
    {"host_read", get_host_read, nullptr, "True when Python looked at a value.", nullptr},
    {"done", get_done, nullptr, "True when nothing more can be executed.", nullptr},
    {"eager", get_eager, nullptr, "True when each instruction is executed at once.", nullptr},
    {"target", get_target, nullptr, "Name of the chip.", nullptr},
    {"program_bytes", get_bytes, nullptr, "Memory of the recorded stream, and of its plan.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(recording_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(recording_dealloc)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
PyType_Spec spec = {"sterna._core.Recording", sizeof(RecordingObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

Recording::~Recording() {
  for (PyObject* object : keep) Py_DECREF(object);
}

Run& Recording::running() {
  if (!run) {
    run = std::make_unique<Run>(builder.program(), *chip, pool, options, fabric, rank);
    if (runs_again) run->use(&plan);
  }
  while (!bound.empty() && bound_done < bound.size()) {
    auto& [id, memory] = bound[bound_done++];
    Status status = run->bind(id, memory.first, memory.second);
    (void)status;  // binding a parameter cannot fail
  }
  return *run;
}

bool Recording::flush(bool final, bool wait) {
  if (done) return true;
  if (builder.open_regions() > 0) {
    PyErr_SetString(PyExc_TypeError,
                    "a value cannot be read inside nl.dynamic_range, nl.fori_loop or nl.while_loop: their bodies are "
                    "recorded once and run on the "
                    "device. Use nl.device_print, or set STERNA_EAGER=1, which runs them step by step.");
    return false;
  }
  for (;;) {
    Run& cores = running();
    Fault fault;
    Executor::State end;
    const int core = builder.core();
    Py_BEGIN_ALLOW_THREADS end = final ? cores.finish(&fault) : cores.run_core(core, &fault);
    Py_END_ALLOW_THREADS if (end == Executor::State::kFault) done = true;
    if (PyErr_Occurred()) return false;  // Ctrl-C, or an error of a print hook
    if (!show_warnings()) return false;
    if (end == Executor::State::kDone) return true;
    if (end == Executor::State::kBlocked) {
      if (!wait) return true;
      if (!hand_over()) return false;
      continue;
    }
    raise_fault(fault, &builder.program());
    return false;
  }
}

bool Recording::hand_over() {
  const int mine = builder.core();
  // Where nothing was recorded or executed since this core last gave up its turn, no core can go on.
  uint64_t known = run->executed();
  for (const Stream& stream : builder.program().cores) known += stream.size();
  const bool stalled = handed_over[static_cast<size_t>(mine)] == known;
  handed_over[static_cast<size_t>(mine)] = known;
  bool others = false;
  for (int core = 0; core < builder.cores(); ++core)
    others = others || (core != mine && !recorded[static_cast<size_t>(core)]);
  PyObject* hook = PyDict_GetItemString(state().hooks, "hand_over");
  if (!others || stalled || hook == nullptr) {
    done = true;
    Fault fault = run->deadlock();
    raise_fault(fault, &builder.program());
    return false;
  }
  sites.forget();
  PyObject* returned = PyObject_CallNoArgs(hook);
  sites.forget();
  builder.set_core(mine);
  if (returned == nullptr) return false;
  Py_DECREF(returned);
  return true;
}

void Recording::mark_site() { builder.set_site(sites.here(builder.program())); }

void Recording::count_iteration() {
  const uint32_t site = builder.site();
  const auto core = static_cast<size_t>(builder.core());
  std::vector<uint32_t>& counts = iterations[core];
  if (site >= counts.size()) counts.resize(site + 64, 0);
  Stream& stream = builder.program().cores[core];
  stream.at(stream.size() - 1).iteration = counts[site]++;
}

Machine* Recording::look() {
  if (done) {
    PyErr_SetString(PyExc_RuntimeError, "the kernel call has ended; its values are in its results");
    return nullptr;
  }
  if (as_rank) {
    raise_here(*this, Fault(FaultKind::kNotImplemented, "CC14",
                            "Python cannot look at a value while the ranks of a launch are recorded: they run together "
                            "once all are. nl.device_print prints it when they do."));
    return nullptr;
  }
  host_read = true;
  return flush(false) ? &machine() : nullptr;
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
  return recording_type != nullptr &&
         PyModule_AddObject(module, "Recording", Py_NewRef(reinterpret_cast<PyObject*>(recording_type))) == 0;
}

}  // namespace sterna::python
