// SPDX-License-Identifier: Apache-2.0
// A recorded program as bytes, and a recording made of such bytes: what the kernel cache on disk stands on
// (python/sterna/cache_disk.py, docs/decisions/0014-kernel-cache.md).
#include <algorithm>
#include <cstring>
#include <utility>

#include "recording.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/binary.h"
#include "sterna/program/check_program.h"

namespace sterna::python {
namespace {

/// Builds the streams anew. The class of a record's work is found when it joins a stream, and rests on what check()
/// adds to the record, which the binary form leaves out: classes that were found before complete_program() are too
/// coarse.
void join_again(Program& program) {
  for (Stream& stream : program.cores) {
    Stream made(stream.pool());
    for (size_t i = 0; i < stream.size(); ++i) {
      const RecordHeader& record = stream[i];
      const size_t bytes = instruction_table()[record.opcode].bytes;
      RecordHeader* copy = made.reserve(bytes);
      *copy = record;
      std::memcpy(copy->body(), record.body(), bytes);
      made.push(copy);
    }
    stream = std::move(made);
  }
}

/// The program, complete and right for this chip and this number of cores; a fault for anything else.
Result<Program> read_saved(std::string_view bytes, const Chip& chip, size_t cores,
                           const std::shared_ptr<BufferPool>& pool) {
  STERNA_ASSIGN(Program program, read_program(bytes, pool));
  if (program.target != chip.name || program.cores.size() != cores)
    return Fault(FaultKind::kBadInput, "PRGB2", "The program is for another chip or number of cores.");
  std::vector<Fault> faults = complete_program(program, chip);
  if (!faults.empty()) return std::move(faults.front());
  join_again(program);
  return program;
}

/// Appends (rule, message, site) to `warnings`; false with a Python exception when the object is no such list.
bool read_warnings(PyObject* list, size_t sites, std::vector<Warning>* warnings) {
  return for_each_item(list, "warnings", [&](PyObject* item) {
    const char *rule, *message;
    unsigned int site;
    if (!PyArg_ParseTuple(item, "ssI", &rule, &message, &site)) return false;
    if (site >= sites) {
      PyErr_SetString(PyExc_ValueError, "a remark is on a line that the program does not have");
      return false;
    }
    warnings->push_back({rule, message, site});
    return true;
  });
}

}  // namespace

/// saved(): (the program in its binary form, [(rule, message, site) of each remark of the recording]).
PyObject* recording_saved(PyObject* self, PyObject*) {
  Recording& r = *recording_of(self)->self;
  PyObject* warnings = PyList_New(0);
  if (warnings == nullptr) return nullptr;
  for (const Warning& w : r.builder.warnings()) {
    PyObject* item = Py_BuildValue("(ssI)", w.rule.c_str(), w.message.c_str(), w.site);
    const int added = item == nullptr ? -1 : PyList_Append(warnings, item);
    Py_XDECREF(item);
    if (added != 0) {
      Py_DECREF(warnings);
      return nullptr;
    }
  }
  const std::string bytes = write_program(r.builder.program());
  return Py_BuildValue("(y#N)", bytes.data(), static_cast<Py_ssize_t>(bytes.size()), warnings);
}

/// load(bytes, warnings): this recording, in which nothing was recorded yet, becomes the one that saved() gave.
/// Gives its parameters; None, and nothing has changed, where the bytes are damaged or from another Sterna.
/// run_again() comes next.
PyObject* recording_load(PyObject* self, PyObject* args) {
  Recording& r = *recording_of(self)->self;
  const char* data;
  Py_ssize_t size;
  PyObject* list;
  if (!PyArg_ParseTuple(args, "y#O", &data, &size, &list)) return nullptr;
  if (r.builder.size() != 0 || r.run) {
    PyErr_SetString(PyExc_ValueError, "something is recorded already");
    return nullptr;
  }
  Result<Program> read = Fault();
  const auto cores = static_cast<size_t>(r.builder.cores());
  Py_BEGIN_ALLOW_THREADS read = read_saved({data, static_cast<size_t>(size)}, *r.chip, cores, r.options.buffers);
  Py_END_ALLOW_THREADS if (!read) Py_RETURN_NONE;
  std::vector<Warning> warnings;
  if (!read_warnings(list, read->sites.size(), &warnings)) return nullptr;
  r.builder.program() = std::move(*read);
  r.builder.warnings() = std::move(warnings);
  PyObject* parameters = PyList_New(0);
  for (uint32_t id : r.builder.program().parameters) {
    PyObject* tensor = new_tensor(recording_of(self), whole_view(id, r.builder.tensor(id)));
    const int added = tensor == nullptr || parameters == nullptr ? -1 : PyList_Append(parameters, tensor);
    Py_XDECREF(tensor);
    if (added != 0) {
      Py_XDECREF(parameters);
      return nullptr;
    }
  }
  return parameters;
}

/// whole(id, shape): all of a tensor, in that shape.
PyObject* recording_whole(PyObject* self, PyObject* args) {
  Recording& r = *recording_of(self)->self;
  unsigned int id;
  PyObject* wanted;
  Shape shape;
  if (!PyArg_ParseTuple(args, "IO", &id, &wanted) || !to_shape(wanted, 0, &shape)) return nullptr;
  if (id >= r.builder.program().tensors.size()) return PyErr_Format(PyExc_ValueError, "there is no tensor %u", id);
  const TensorInfo& info = r.builder.tensor(id);
  Result<WideView> view = widened(whole_view(id, info));
  if (!std::equal(info.shape, info.shape + info.ndim, shape.count, shape.count + shape.ndim))
    view = reshape_view(*view, shape.span());
  if (!view) {
    raise_fault(view.error());
    return nullptr;
  }
  return new_wide_tensor(recording_of(self), *view);
}

}  // namespace sterna::python
