// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "sterna/base/text.h"
#include "sterna/trace/format.h"
#include "sterna/trace/trace.h"
#include "sterna/trace/varint.h"

namespace sterna {
namespace {

template <class T, class Put>
void list(ByteWriter& out, const std::vector<T>& items, const Put& put) {
  out.number(items.size());
  for (const T& item : items) put(item);
}

void summary(ByteWriter& out, const Trace& t) {
  out.text(t.program);
  out.text(t.target);
  out.text(t.bound);
  out.signed_number(t.kernel_ps);
  out.signed_number(t.total_ps);
}

void sites(ByteWriter& out, const Trace& t) {
  list(out, t.sites, [&](const TraceSite& s) {
    out.number(s.file);
    out.number(s.function);
    out.signed_number(s.line);
    out.number(s.parent);
  });
}

void queues(ByteWriter& out, const Trace& t) {
  list(out, t.queues, [&](const TraceQueue& q) {
    out.text(q.name);
    out.signed_number(q.instructions);
    out.signed_number(q.busy_ps);
    out.number(q.core);
  });
  list(out, t.causes, [&](const std::string& s) { out.text(s); });
}

void instructions(ByteWriter& out, const TraceColumns& c) {
  out.column(c.record);
  out.column(c.what);
  out.column(c.queue);
  out.column(c.start_ps);
  out.column(c.duration_ps);
  out.column(c.cause);
  // A cause mostly lies close before its effect, so the distance is short; 0 is "none".
  std::vector<uint32_t> back(c.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[i] = c.cause_instruction[i] == kNoCause ? 0 : static_cast<uint32_t>(i) - c.cause_instruction[i];
  out.column(back);
  out.column(c.site);
  out.column(c.iteration);
}

void tensors(ByteWriter& out, const Trace& t) {
  list(out, t.tensors, [&](const TraceTensor& x) {
    out.number(x.name);
    out.text(x.memory);
    out.text(x.dtype);
    out.column(x.shape);
    out.signed_number(x.byte);
    out.number(x.partition);
    out.number(x.site);
  });
}

void metrics(ByteWriter& out, const Trace& t) {
  list(out, t.metrics, [&](const TraceMetric& m) {
    out.text(m.name);
    out.text(m.unit);
    out.real(m.value);
  });
}

void report(ByteWriter& out, const Trace& t) {
  list(out, t.lines, [&](const TraceLine& l) {
    out.number(l.site);
    out.signed_number(l.ps);
  });
  list(out, t.uncertain, [&](const TraceUncertain& u) {
    for (const std::string* s : {&u.key, &u.text, &u.source, &u.trust}) out.text(*s);
  });
  list(out, t.notes, [&](const std::string& s) { out.text(s); });
}

}  // namespace

std::string write_trace(const Trace& trace) {
  ByteWriter out;
  out.raw(kTraceMagic);
  out.number(kTraceVersion);
  const auto section = [&](TraceSection id, const auto& fill) {
    ByteWriter body;
    fill(body);
    out.number(static_cast<uint64_t>(id));
    out.text(body.bytes());
  };
  section(TraceSection::kPath,
          [&](ByteWriter& b) { list(b, trace.paths, [&](const Path& p) { b.column(p.values()); }); });
  section(TraceSection::kSummary, [&](ByteWriter& b) { summary(b, trace); });
  section(TraceSection::kNames, [&](ByteWriter& b) { list(b, trace.names, [&](const std::string& s) { b.text(s); }); });
  section(TraceSection::kSites, [&](ByteWriter& b) { sites(b, trace); });
  section(TraceSection::kQueues, [&](ByteWriter& b) { queues(b, trace); });
  section(TraceSection::kInstructions, [&](ByteWriter& b) { instructions(b, trace.instructions); });
  section(TraceSection::kTensors, [&](ByteWriter& b) { tensors(b, trace); });
  section(TraceSection::kMetrics, [&](ByteWriter& b) { metrics(b, trace); });
  section(TraceSection::kReport, [&](ByteWriter& b) { report(b, trace); });
  const uint64_t check = trace_check(out.bytes());
  std::string bytes = out.take();
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(check >> (8 * i));
  return bytes;
}

Status save_trace(const Trace& trace, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string bytes = write_trace(trace);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  if (!file) return Fault(FaultKind::kBadInput, "FILE1", cat("Cannot write ", path, "."));
  return {};
}

}  // namespace sterna
