// SPDX-License-Identifier: Apache-2.0
// The predicted run of a recording, as Python sees it.
#include "nanobind_quiet.h"
#include "sterna/program/text.h"
#include "sterna/timing/model.h"
#include "sterna/timing/to_trace.h"
#include "timing_binding.h"
#include "trace_binding.h"

namespace nb = nanobind;

namespace sterna::python {
namespace {

/// Timing and what keeps its program alive.
struct Prediction {
  Timing timing;
  nb::object recording;

  const Recording& from() const { return *reinterpret_cast<RecordingObject*>(recording.ptr())->self; }
};

double us(int64_t ps) { return static_cast<double>(ps) / 1e6; }

double part(int64_t ps, int64_t whole) { return whole > 0 ? static_cast<double>(ps) / static_cast<double>(whole) : 0; }

nb::str text(std::string_view view) { return nb::str(view.data(), view.size()); }

/// {"tensor": {"busy_us", "active", "instructions"}, ...}; loads and stores together are "dma".
nb::dict engines_of(const Timing& t, const TimePerQueue& busy, const TimePerQueue& counts, bool with_hbm) {
  nb::dict out;
  auto add = [&](std::string_view name, int64_t time, double active, int64_t count) {
    nb::dict row;
    row["busy_us"] = us(time);
    row["active"] = active;
    row["instructions"] = count;
    out[text(name)] = row;
  };
  for (int q = 0; q < kQueues; ++q) {
    const Queue queue = static_cast<Queue>(q);
    if (!is_dma(queue)) add(name(queue), busy[q], t.share(busy[q]), counts[q]);
  }
  const size_t load = static_cast<size_t>(Queue::kLoad), store = static_cast<size_t>(Queue::kStore);
  const int64_t dma = busy[load] + busy[store];
  add("dma", dma, t.share(busy[load]) + t.share(busy[store]), counts[load] + counts[store]);
  const size_t exchange = static_cast<size_t>(Queue::kExchange);
  if (counts[exchange] > 0) add("exchange", busy[exchange], t.share(busy[exchange]), counts[exchange]);
  if (with_hbm) add("hbm", t.hbm_ps, t.hbm_share(), 0);
  return out;
}

nb::dict engines(const Prediction& p) { return engines_of(p.timing, p.timing.busy_ps, p.timing.counts, true); }

/// [{"end_us", "engines"}, ...], by core.
nb::list cores(const Prediction& p) {
  nb::list out;
  for (const CoreTiming& core : p.timing.cores) {
    nb::dict row;
    row["end_us"] = us(core.end_ps);
    row["engines"] = engines_of(p.timing, core.busy_ps, core.counts, false);
    out.append(row);
  }
  return out;
}

nb::list lines(const Prediction& p) {
  nb::list out;
  for (const LineTime& line : p.timing.lines)
    out.append(nb::make_tuple(line.where.file, line.where.line, line.where.function, us(line.ps),
                              part(line.ps, p.timing.kernel_ps)));
  return out;
}

nb::list uncertain(const Prediction& p) {
  nb::list out;
  for (const UncertainNumber& n : p.timing.uncertain)
    out.append(nb::make_tuple(n.key, n.text, text(name(n.trust)), n.source));
  return out;
}

/// {"operand": share, ...}: the time that engines and queues stand still between two of their instructions, by what the
/// second one waited for.
nb::dict waits(const Prediction& p) {
  std::array<int64_t, kCauses> still = {};
  std::vector<TimePerQueue> free_from(p.timing.cores.size());
  int64_t sum = 0;
  for (const InstructionTime& i : p.timing.instructions) {
    int64_t& from = free_from[i.core][static_cast<size_t>(i.queue)];
    if (i.start > from) {
      still[static_cast<size_t>(i.cause)] += i.start - from;
      sum += i.start - from;
    }
    from = std::max(from, i.end);
  }
  nb::dict out;
  for (size_t c = 0; c < kCauses; ++c)
    if (still[c] > 0) out[text(kCauseNames[c])] = part(still[c], sum);
  return out;
}

/// Share of the critical path by what it was spent on.
nb::dict critical(const Prediction& p) {
  const auto& spent = p.timing.critical_ps;
  nb::dict out;
  for (size_t i = 0; i < spent.size(); ++i) {
    const std::string_view label = i < kQueues    ? kQueueNames[i]
                                   : i == kQueues ? std::string_view("hbm")
                                                  : std::string_view("latency");
    if (spent[i] > 0) out[text(label)] = part(spent[i], p.timing.kernel_ps);
  }
  return out;
}

/// One column of the instructions as bytes, for numpy.frombuffer.
template <class T, class F>
nb::bytes column(const Prediction& p, F value) {
  std::vector<T> out;
  out.reserve(p.timing.instructions.size());
  for (const InstructionTime& i : p.timing.instructions) out.push_back(static_cast<T>(value(i)));
  return nb::bytes(reinterpret_cast<const char*>(out.data()), out.size() * sizeof(T));
}

void add_columns(nb::class_<Prediction>& c) {
  c.def(
       "start", [](const Prediction& p) { return column<int64_t>(p, [](auto& i) { return i.start; }); },
       "int64 picoseconds of each instruction, in program order, one core after the other.")
      .def(
          "end", [](const Prediction& p) { return column<int64_t>(p, [](auto& i) { return i.end; }); },
          "int64 picoseconds.")
      .def(
          "queue", [](const Prediction& p) { return column<uint8_t>(p, [](auto& i) { return i.queue; }); },
          "uint8, an index into queue_names.")
      .def(
          "cause", [](const Prediction& p) { return column<uint8_t>(p, [](auto& i) { return i.cause; }); },
          "uint8, an index into cause_names.")
      .def(
          "cause_instruction",
          [](const Prediction& p) { return column<uint32_t>(p, [](auto& i) { return i.cause_instruction; }); },
          "uint32, the instruction that was waited for; 4294967295 for none.")
      .def(
          "record", [](const Prediction& p) { return column<uint32_t>(p, [](auto& i) { return i.record; }); },
          "uint32, the record in its core's stream.")
      .def(
          "core", [](const Prediction& p) { return column<uint8_t>(p, [](auto& i) { return i.core; }); },
          "uint8, the core that has it.");
}

Trace trace_of(const Prediction& p) {
  const Recording& r = p.from();
  return to_trace(r.builder.program(), std::span<const Path>(r.paths()), *r.chip, p.timing);
}

}  // namespace

PyObject* recording_timing(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cores_on_stack", nullptr};
  TimingOptions options;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|i", const_cast<char**>(names), &options.cores_on_stack))
    return nullptr;
  Recording& r = *reinterpret_cast<RecordingObject*>(self)->self;
  options.rank = r.rank;
  Result<Timing> timing = Fault();
  const std::vector<Path> paths = r.paths();
  Py_BEGIN_ALLOW_THREADS timing = predict(r.builder.program(), std::span(paths), *r.chip, options);
  Py_END_ALLOW_THREADS if (!timing) {
    if (timing.error().where.file.empty()) r.builder.program().locate(timing.error());
    raise_fault(timing.error());
    return nullptr;
  }
  try {
    return nb::cast(Prediction{std::move(*timing), nb::borrow(self)}).release().ptr();
  } catch (std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* recording_multiply_adds(PyObject* self, PyObject*) {
  Recording& r = *reinterpret_cast<RecordingObject*>(self)->self;
  TimingOptions options;
  options.rank = r.rank;
  Result<double> sum = Fault();
  const std::vector<Path> paths = r.paths();
  Py_BEGIN_ALLOW_THREADS sum = multiply_adds(r.builder.program(), std::span(paths), *r.chip, options);
  Py_END_ALLOW_THREADS if (!sum) {
    raise_fault(sum.error());
    return nullptr;
  }
  return PyFloat_FromDouble(*sum);
}

PyObject* recording_release(PyObject* self, PyObject*) {
  Recording& r = *reinterpret_cast<RecordingObject*>(self)->self;
  r.kept_paths = r.paths();
  r.done = true;
  r.run.reset();
  r.bound.clear();
  r.bound_done = 0;
  for (PyObject* object : std::exchange(r.keep, {})) Py_DECREF(object);
  Py_RETURN_NONE;
}

PyObject* recording_text(PyObject* self, PyObject*) {
  const std::string out = print_program(reinterpret_cast<RecordingObject*>(self)->self->builder.program());
  return PyUnicode_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size()));
}

bool add_timing_type(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  nb::class_<Prediction> c(m, "Timing", "The predicted run of one kernel call.");
  c.def_prop_ro(
       "total_ns", [](const Prediction& p) { return p.timing.total_ns(); }, "From the launch to the last result.")
      .def_prop_ro(
          "kernel_ns", [](const Prediction& p) { return static_cast<double>(p.timing.kernel_ps) / 1000; },
          "The same without the launch.")
      .def_prop_ro(
          "bound", [](const Prediction& p) { return p.timing.bound; }, "What the critical path is spent on most.")
      .def_prop_ro(
          "engines", engines,
          "Name -> busy_us, active (share of the kernel's time), both means of the cores; instructions of all.")
      .def_prop_ro("cores", cores, "For each core: end_us and its engines.")
      .def_prop_ro("lines", lines, "(file, line, function, us, share) on the critical path, most first.")
      .def_prop_ro("critical", critical, "What the critical path is spent on: name -> share.")
      .def_prop_ro("waits", waits, "Why engines and queues stand still: cause -> share of all waiting.")
      .def_prop_ro("uncertain", uncertain,
                   "(key, text, trust, source) of each number used that is neither documented nor measured.")
      .def_prop_ro(
          "notes", [](const Prediction& p) { return p.timing.notes; }, "Assumptions of the model itself.")
      .def_prop_ro("dma_bytes", [](const Prediction& p) { return p.timing.dma_bytes; })
      .def_prop_ro(
          "hbm_read", [](const Prediction& p) { return p.timing.hbm_read; }, "Bytes.")
      .def_prop_ro(
          "hbm_written", [](const Prediction& p) { return p.timing.hbm_written; }, "Bytes.")
      .def_prop_ro("multiply_adds", [](const Prediction& p) { return p.timing.multiply_adds; })
      .def_prop_ro(
          "sbuf_peak", [](const Prediction& p) { return p.timing.sbuf_peak; }, "Bytes of one partition.")
      .def_prop_ro(
          "psum_peak", [](const Prediction& p) { return p.timing.psum_peak; }, "Bytes of one partition.")
      .def_prop_ro(
          "sbuf_capacity", [](const Prediction& p) { return p.timing.sbuf_capacity; }, "Bytes of one partition.")
      .def_prop_ro(
          "psum_capacity", [](const Prediction& p) { return p.timing.psum_capacity; }, "Bytes of one partition.")
      .def_prop_ro(
          "instructions", [](const Prediction& p) { return p.timing.instructions.size(); }, "How many ran.")
      .def("trace", trace_of, "The run as a Trace.")
      .def(
          "save", [](const Prediction& p, const std::string& path) { save_trace_as(trace_of(p), path); },
          nb::arg("path"), "Writes the trace; a name that ends in .json gives Perfetto's form.");
  add_columns(c);
  add_trace_type(module);
  auto names = [](auto& list) {
    nb::list out;
    for (std::string_view one : list) out.append(text(one));
    return nb::tuple(out);
  };
  c.attr("queue_names") = names(kQueueNames);
  c.attr("cause_names") = names(kCauseNames);
  return true;
}

}  // namespace sterna::python
