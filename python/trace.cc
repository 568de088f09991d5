// SPDX-License-Identifier: Apache-2.0
// Traces as Python objects: from a prediction or from a file, to a file.
#include <fstream>

#include "nanobind_quiet.h"
#include "sterna/trace/perfetto.h"
#include "timing_binding.h"
#include "trace_binding.h"

namespace nb = nanobind;

namespace sterna::python {
namespace {

nb::str text(std::string_view view) { return nb::str(view.data(), view.size()); }

[[noreturn]] void raise(const Fault& fault) {
  raise_fault(fault);
  throw nb::python_error();
}

Trace load(const std::string& path) {
  Result<Trace> trace = Fault();
  {
    nb::gil_scoped_release free;
    trace = load_trace(path);
  }
  if (!trace) raise(trace.error());
  return std::move(*trace);
}

template <class T>
nb::bytes bytes_of(const std::vector<T>& column) {
  return nb::bytes(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(T));
}

/// Name -> bytes, for numpy.frombuffer with the type in `column_types`.
nb::dict columns(const Trace& t) {
  const TraceColumns& c = t.instructions;
  nb::dict out;
  out["record"] = bytes_of(c.record);
  out["what"] = bytes_of(c.what);
  out["queue"] = bytes_of(c.queue);
  out["start_ps"] = bytes_of(c.start_ps);
  out["duration_ps"] = bytes_of(c.duration_ps);
  out["cause"] = bytes_of(c.cause);
  out["cause_instruction"] = bytes_of(c.cause_instruction);
  out["site"] = bytes_of(c.site);
  out["iteration"] = bytes_of(c.iteration);
  return out;
}

nb::dict column_types() {
  nb::dict out;
  for (const char* name : {"record", "what", "cause_instruction", "site", "iteration"}) out[name] = "uint32";
  for (const char* name : {"queue", "cause"}) out[name] = "uint8";
  for (const char* name : {"start_ps", "duration_ps"}) out[name] = "int64";
  return out;
}

nb::list queues(const Trace& t) {
  nb::list out;
  for (size_t q = 0; q < t.queues.size(); ++q) out.append(text(t.queue_name(q)));
  return out;
}

nb::list tensors(const Trace& t) {
  nb::list out;
  for (const TraceTensor& tensor : t.tensors) {
    nb::dict row;
    row["name"] = text(t.name(tensor.name));
    row["memory"] = text(tensor.memory);
    row["dtype"] = text(tensor.dtype);
    row["shape"] = nb::tuple(nb::cast(tensor.shape));
    row["byte"] = tensor.byte < 0 ? nb::object(nb::none()) : nb::object(nb::cast(tensor.byte));
    row["partition"] = tensor.partition;
    row["place"] = t.place(tensor.site);
    out.append(row);
  }
  return out;
}

nb::dict metrics(const Trace& t) {
  nb::dict out;
  for (const TraceMetric& metric : t.metrics) out[text(metric.name)] = nb::make_tuple(metric.value, text(metric.unit));
  return out;
}

}  // namespace

void save_trace_as(const Trace& trace, const std::string& path) {
  if (!path.ends_with(".json")) {
    if (Status saved = save_trace(trace, path); !saved) raise(saved.error());
    return;
  }
  std::ofstream out(path, std::ios::binary);
  write_perfetto(out, trace);
  out.flush();
  if (!out) raise(Fault(FaultKind::kBadInput, "", path + ": cannot be written."));
}

void add_trace_type(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  nb::class_<Trace> c(m, "Trace", "The record of one predicted run.");
  c.def_ro("program", &Trace::program, "Name of the kernel.")
      .def_ro("target", &Trace::target)
      .def_ro("bound", &Trace::bound)
      .def_prop_ro("total_ns", [](const Trace& t) { return static_cast<double>(t.total_ps) / 1000; })
      .def_prop_ro("kernel_ns", [](const Trace& t) { return static_cast<double>(t.kernel_ps) / 1000; })
      .def_ro("names", &Trace::names, "Texts that columns refer to.")
      .def_prop_ro("queues", queues)
      .def_ro("causes", &Trace::causes)
      .def_prop_ro("columns", columns, "Name -> bytes, one value for each instruction; types in column_types.")
      .def_prop_ro("tensors", tensors)
      .def_prop_ro("metrics", metrics, "Name -> (value, unit).")
      .def_ro("notes", &Trace::notes)
      .def("place", &Trace::place, nb::arg("site"), "\"kernel.py:12\" for a value of the column site.")
      .def("save", save_trace_as, nb::arg("path"), "Writes it; a name that ends in .json gives Perfetto's form.")
      .def("__len__", [](const Trace& t) { return t.instructions.size(); });
  c.attr("column_types") = column_types();
  m.def("load_trace", load, nb::arg("path"), "Reads a binary trace.");
}

}  // namespace sterna::python
