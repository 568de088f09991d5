// SPDX-License-Identifier: Apache-2.0
// The Python extension `sterna._core`. Objects on the hot path (tensors, instructions, registers) are raw CPython types
// with their own slots, since a kernel makes hundreds of thousands of calls; the rest goes through nanobind.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
// After Python.h
#include <frameobject.h>
#include <structmember.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "sterna/execute/run.h"
#include "sterna/program/builder.h"

namespace sterna::python {

struct Recording;

struct RecordingObject {
  PyObject_HEAD Recording* self;
};

/// A tensor or a view of one, as Python sees it.
struct TensorObject {
  PyObject_HEAD RecordingObject* recording;
  View view;       // what instructions get
  WideView* wide;  // in HBM, what Python sees where that has more than kMaxDims dimensions; else null
};

struct RegisterObject {
  PyObject_HEAD RecordingObject* recording;
  uint32_t id;
  bool frozen;
};

/// What an instruction call returns: the record's place, for depends_on.
struct HandleObject {
  PyObject_HEAD RecordingObject* recording;
  uint32_t index;
};

inline RecordingObject* recording_of(PyObject* object) { return reinterpret_cast<RecordingObject*>(object); }
inline TensorObject* tensor_of(PyObject* object) { return reinterpret_cast<TensorObject*>(object); }
inline RegisterObject* register_of(PyObject* object) { return reinterpret_cast<RegisterObject*>(object); }

extern PyTypeObject* tensor_type;
extern PyTypeObject* register_type;
extern PyTypeObject* handle_type;
extern PyTypeObject* recording_type;

PyObject* new_tensor(RecordingObject* recording, const View& view);
/// The same for a view in HBM of any number of dimensions; an exception (VIEW3) where no instruction could walk it.
PyObject* new_wide_tensor(RecordingObject* recording, const WideView& view);
/// All of a tensor, in the shape it was made with.
PyObject* new_whole_tensor(RecordingObject* recording, uint32_t id);
/// A row of a method table, for a function of any of CPython's signatures.
template <class F>
PyMethodDef method(const char* name, F* f, int flags, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), flags, doc};
}

/// State of the module: registrations made by the Python layers at import. One instance, made with the module.
struct ModuleState {
  struct Op {
    int alu = -1, function = -1;
  };
  std::unordered_map<PyObject*, Op> ops;      // nl.add, np.add, ... -> operator
  std::unordered_map<PyObject*, int> dtypes;  // dtype objects -> DType
  PyObject* dtype_objects[kDTypeCount] = {};  // DType -> what tensor.dtype gives
  PyObject* buffer_objects[3] = {};           // Memory -> what tensor.buffer gives
  PyObject* shared_buffer = nullptr;          // what it gives for HBM that cores share
  PyObject* make_fault = nullptr;             // (kind, rule, message, file, line, function) -> exception
  PyObject* hooks = nullptr;                  // dict of Python functions: "assign", "warn", "show", "hand_over"
  PyObject* entry_code = nullptr;             // code object of the front end's runner: sites end there
  PyObject* ds_type = nullptr;                // nl.ds objects: (start, size)
};
ModuleState& state();

/// Turns an object into a value of the table; sets a Python exception and returns false when it cannot.
bool to_dtype(PyObject* object, DType* out);
bool to_alu_op(PyObject* object, AluOp* out);
bool to_function(PyObject* object, Function* out);

/// Raises the Python exception of a fault. With a place, the traceback ends in a frame there; with `program` too, the
/// frames of the calls that led there stand before it.
void raise_fault(const Fault& fault, const Program* program = nullptr);
/// Raises a fault of the line that is being recorded now.
void raise_here(Recording& recording, Fault fault);

/// Where an instruction was called from; also marks frames of the front ends, which are not the user's.
class SiteFinder {
 public:
  ~SiteFinder();
  /// The site of the innermost frame that is the user's, interned in `program`.
  uint32_t here(Program& program);
  void forget();

 private:
  struct CodeInfo {
    uint32_t file = 0, function = 0;
    bool internal = false;
    PyObject* code = nullptr;
  };
  const CodeInfo& info(Program& program, PyCodeObject* code);
  uint32_t site_of(Program& program, PyFrameObject* frame, int depth);
  struct Key {
    const CodeInfo* code;
    uint32_t parent;
    int lasti;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return (reinterpret_cast<size_t>(k.code) >> 4) * 0x9e3779b97f4a7c15u ^ (size_t{k.parent} << 20) ^
             static_cast<size_t>(k.lasti);
    }
  };

  std::unordered_map<PyCodeObject*, CodeInfo> codes_;
  std::unordered_map<Key, uint32_t, KeyHash> sites_;
  PyFrameObject* last_frame_ = nullptr;  // strong
  uint32_t last_parent_ = 0;
  const CodeInfo* last_info_ = nullptr;
};
/// Files whose frames belong to the front ends; a prefix of co_filename.
void add_internal_prefix(const std::string& prefix);
bool is_internal_file(const std::string& file);

/// One kernel call in the making: builder, executor, borrowed arguments.
struct Recording {
  std::shared_ptr<const Chip> chip;
  Builder builder;
  std::unique_ptr<Run> run;
  Plan plan;                 // for runs after the first
  bool runs_again = false;   // the run is not the first
  Fabric* fabric = nullptr;  // of the launch that this is a rank of; null when it is alone
  int rank = 0;
  bool as_rank = false;  // recorded as one of several: nothing runs before all are recorded
  Executor::Options options;
  ThreadPool* pool;
  SiteFinder sites;
  std::vector<PyObject*> keep;  // arguments, kept alive
  std::vector<std::pair<uint32_t, std::pair<void*, bool>>> bound;
  std::vector<std::vector<uint32_t>> iterations = {{}};  // by core and site
  bool eager = false, host_read = false, done = false;
  bool finds_columns = false;  ///< some view was made with .indirect()
  size_t warnings_shown = 0, bound_done = 0;
  std::vector<size_t> machine_warnings_shown;  // by core
  std::vector<Path> kept_paths;                // of the run, once the values are given up
  std::vector<bool> recorded;                  // by core: nothing more will come from its function
  std::vector<uint64_t> handed_over;  // by core: records and executed instructions when it last gave up its turn
  int grid = 0;                       // dimensions of the grid that the caller gave
  std::atomic<size_t> progress{0};    // records executed, for another thread to look at
  std::set<std::string> shown;        // rule and line of each remark shown: one a line
  std::set<uint32_t> constants;       // parameters that the kernel brought itself: shared_hbm
  std::unordered_map<uint32_t, WideView> wide;  // tensors with more dimensions than a program has for them

  Recording(std::shared_ptr<const Chip> c, bool strict, ThreadPool* p, std::shared_ptr<BufferPool> buffers)
      : chip(std::move(c)), builder(*chip, strict, buffers), pool(p) {
    options.buffers = std::move(buffers);
  }
  ~Recording();
  Run& running();
  /// The machine of the core that is being recorded.
  Machine& machine() { return running().machine(builder.core()); }
  /// What the run decided, by core; empty before it.
  std::vector<Path> paths() const { return run ? run->paths() : kept_paths; }
  /// Executes what is recorded so far; raises on a fault. `final`: nothing more will come. Where that waits for another
  /// core, the others record on, or with `wait` false it is left at that.
  bool flush(bool final, bool wait = true);
  /// Other cores record until this one can go on; false with a Python exception when they cannot.
  bool hand_over();
  void mark_site();
  void count_iteration();
  bool show_warnings();
  /// A remark on the line that is being recorded; false with a Python exception when the user made remarks errors.
  bool remark(const char* rule, const std::string& message);
  /// The same for what only the official simulator accepts, or what is hardly meant: a fault in strict mode.
  bool compat(FaultKind kind, const char* rule, const std::string& message);
  /// The machine with the values of everything recorded so far; null with a Python exception.
  Machine* look();
  /// Adds an edge from `producer` to `consumer`; false with a Python exception when it would lead backwards.
  bool add_edge(uint32_t producer, uint32_t consumer);
};

/// The recording of this thread; a Python error when there is none.
RecordingObject* current_recording();
RecordingObject* current_recording_or_null();

bool add_tensor_type(PyObject* module);
bool add_register_type(PyObject* module);
bool add_handle_type(PyObject* module);
bool add_result_type(PyObject* module);
bool add_numpy_types(PyObject* module);
bool add_instruction_type(PyObject* module);
bool add_recording_type(PyObject* module);
bool add_functions(PyObject* module);

}  // namespace sterna::python
