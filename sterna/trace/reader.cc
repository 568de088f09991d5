// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>

#include "sterna/base/text.h"
#include "sterna/trace/format.h"
#include "sterna/trace/trace.h"
#include "sterna/trace/varint.h"

namespace sterna {
namespace {

template <class T, class Get>
void list(ByteReader& in, std::vector<T>& items, const Get& get) {
  const size_t n = in.count();
  for (size_t i = 0; i < n && !in.damaged; ++i) get(items.emplace_back());
}

void summary(ByteReader& in, Trace& t) {
  t.program = in.text();
  t.target = in.text();
  t.bound = in.text();
  t.kernel_ps = in.signed_number();
  t.total_ps = in.signed_number();
}

void sites(ByteReader& in, Trace& t) {
  list(in, t.sites, [&](TraceSite& s) {
    s.file = in.fitting<uint32_t>();
    s.function = in.fitting<uint32_t>();
    s.line = static_cast<int32_t>(in.signed_number());
    s.parent = in.fitting<uint32_t>();
  });
}

void paths(ByteReader& in, Trace& t, bool one) {
  const auto read = [&](Path& path) { path.assign(in.column<int64_t>()); };
  if (one)
    read(t.paths.emplace_back());
  else
    list(in, t.paths, read);
}

void queues(ByteReader& in, Trace& t, bool one) {
  list(in, t.queues, [&](TraceQueue& q) {
    q.name = in.text();
    q.instructions = in.signed_number();
    q.busy_ps = in.signed_number();
    if (!one) q.core = in.fitting<uint32_t>();
  });
  list(in, t.causes, [&](std::string& s) { s = in.text(); });
}

void instructions(ByteReader& in, TraceColumns& c) {
  c.record = in.column<uint32_t>();
  c.what = in.column<uint32_t>();
  c.queue = in.column<uint8_t>();
  c.start_ps = in.column<int64_t>();
  c.duration_ps = in.column<int64_t>();
  c.cause = in.column<uint8_t>();
  c.cause_instruction = in.column<uint32_t>();
  for (size_t i = 0; i < c.cause_instruction.size(); ++i) {
    // Modulo 2^32: a transfer can wait for one that comes later in the program, if another queue issued that one first.
    uint32_t& back = c.cause_instruction[i];
    const uint32_t cause = static_cast<uint32_t>(i) - back;
    if (cause >= c.cause_instruction.size()) in.damaged = true;
    back = back == 0 ? kNoCause : cause;
  }
  c.site = in.column<uint32_t>();
  c.iteration = in.column<uint32_t>();
}

void tensors(ByteReader& in, Trace& t) {
  list(in, t.tensors, [&](TraceTensor& x) {
    x.name = in.fitting<uint32_t>();
    x.memory = in.text();
    x.dtype = in.text();
    x.shape = in.column<int64_t>();
    x.byte = in.signed_number();
    x.partition = in.fitting<uint32_t>();
    x.site = in.fitting<uint32_t>();
  });
}

void metrics(ByteReader& in, Trace& t) {
  list(in, t.metrics, [&](TraceMetric& m) {
    m.name = in.text();
    m.unit = in.text();
    m.value = in.real();
  });
}

void report(ByteReader& in, Trace& t) {
  list(in, t.lines, [&](TraceLine& l) {
    l.site = in.fitting<uint32_t>();
    l.ps = in.signed_number();
  });
  list(in, t.uncertain, [&](TraceUncertain& u) {
    for (std::string* s : {&u.key, &u.text, &u.source, &u.trust}) *s = in.text();
  });
  list(in, t.notes, [&](std::string& s) { s = in.text(); });
}

/// `one`: the file is of version 1 and has one core.
void section(TraceSection id, ByteReader& in, Trace& t, bool one) {
  switch (id) {
    case TraceSection::kPath: paths(in, t, one); break;
    case TraceSection::kSummary: summary(in, t); break;
    case TraceSection::kNames: list(in, t.names, [&](std::string& s) { s = in.text(); }); break;
    case TraceSection::kSites: sites(in, t); break;
    case TraceSection::kQueues: queues(in, t, one); break;
    case TraceSection::kInstructions: instructions(in, t.instructions); break;
    case TraceSection::kTensors: tensors(in, t); break;
    case TraceSection::kMetrics: metrics(in, t); break;
    case TraceSection::kReport: report(in, t); break;
    default: in.damaged = true;
  }
}

/// Every number that points into a table points inside it, so that those who show a trace need not ask.
bool consistent(const Trace& t) {
  const TraceColumns& c = t.instructions;
  const size_t n = c.size();
  for (size_t size : {c.what.size(), c.queue.size(), c.start_ps.size(), c.duration_ps.size(), c.cause.size(),
                      c.cause_instruction.size(), c.site.size(), c.iteration.size()})
    if (size != n) return false;
  for (size_t i = 0; i < n; ++i)
    if (c.what[i] >= t.names.size() || c.queue[i] >= t.queues.size() || c.cause[i] >= t.causes.size() ||
        c.site[i] >= t.sites.size() || c.duration_ps[i] < 0)
      return false;
  for (size_t i = 0; i < t.sites.size(); ++i) {
    const TraceSite& s = t.sites[i];
    if (s.file >= t.names.size() || s.function >= t.names.size() || (i > 0 && s.parent >= i)) return false;
  }
  for (const TraceTensor& x : t.tensors)
    if (x.name >= t.names.size() || x.site >= t.sites.size()) return false;
  for (const TraceLine& l : t.lines)
    if (l.site >= t.sites.size()) return false;
  return true;
}

Fault damaged() {
  return Fault(FaultKind::kBadInput, "TRACE3", "The trace is damaged or cut short; run again to make a new one.");
}

}  // namespace

std::string Trace::place(uint32_t site) const {
  if (site == 0 || site >= sites.size()) return {};
  return cat(name(sites[site].file), ":", sites[site].line);
}

uint32_t Trace::cores() const {
  uint32_t most = 0;
  for (const TraceQueue& q : queues) most = std::max(most, q.core);
  return most + 1;
}

std::string Trace::queue_name(size_t queue) const {
  const TraceQueue& q = queues[queue];
  return cores() > 1 ? cat("core ", q.core, ' ', q.name) : q.name;
}

Result<Trace> read_trace(std::string_view bytes) {
  if (bytes.substr(0, kTraceMagic.size()) != kTraceMagic)
    return Fault(FaultKind::kBadInput, "TRACE1", "This is not a trace.");
  ByteReader in(bytes.substr(kTraceMagic.size()));
  const uint64_t version = in.number();
  if (!in.damaged && version != kTraceVersion && version != 1)
    return Fault(FaultKind::kBadInput, "TRACE2",
                 cat("The trace is of version ", version, "; this program reads version 1 to ", kTraceVersion, "."));
  if (in.damaged || in.left() < 8) return damaged();
  uint64_t check = 0;
  for (size_t i = 0; i < 8; ++i) check |= uint64_t{static_cast<uint8_t>(bytes[bytes.size() - 8 + i])} << (8 * i);
  if (check != trace_check(bytes.substr(0, bytes.size() - 8))) return damaged();
  Trace out;
  while (in.left() > 8 && !in.damaged) {
    const auto id = static_cast<TraceSection>(in.fitting<uint8_t>());
    ByteReader body(in.view());
    if (in.damaged) break;
    section(id, body, out, version == 1);
    if (body.damaged || !body.at_end()) return damaged();
  }
  if (in.damaged || in.left() != 8 || !consistent(out)) return damaged();
  return out;
}

Result<Trace> load_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fault(FaultKind::kBadInput, "FILE1", cat("Cannot read ", path, "."));
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto trace = read_trace(bytes);
  if (!trace) trace.error().where.file = path;
  return trace;
}

}  // namespace sterna
