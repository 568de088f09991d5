// SPDX-License-Identifier: Apache-2.0
#include "sterna/trace/perfetto.h"

#include <cstdio>
#include <ostream>

#include "sterna/base/text.h"

namespace sterna {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", byte);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// Microseconds with all digits of a picosecond.
std::string microseconds(int64_t ps) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%lld.%06lld", static_cast<long long>(ps / 1000000),
                static_cast<long long>(ps % 1000000));
  return buffer;
}

/// Tracks of one queue. Transfers of a queue may overlap, and events on one track must not: those go to further tracks.
class Lanes {
 public:
  size_t take(int64_t start, int64_t end) {
    for (size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] <= start) return ends_[i] = end, i;
    ends_.push_back(end);
    return ends_.size() - 1;
  }
  size_t size() const { return ends_.size(); }

 private:
  std::vector<int64_t> ends_;
};

constexpr size_t kLanesOfAQueue = 1000;

std::string other_core(const Trace& t, size_t i, size_t by) {
  const auto core = [&t](size_t k) { return t.queues[t.instructions.queue[k]].core; };
  return core(i) == core(by) ? std::string() : cat(" on core ", core(by));
}

void write_event(std::ostream& out, const Trace& t, size_t i, size_t track) {
  const TraceColumns& c = t.instructions;
  const TraceSite& site = t.sites[c.site[i]];
  out << ",\n{\"ph\":\"X\",\"pid\":" << t.queues[c.queue[i]].core + 1 << ",\"tid\":" << track
      << ",\"ts\":" << microseconds(c.start_ps[i]) << ",\"dur\":" << microseconds(c.duration_ps[i])
      << ",\"name\":" << quoted(t.name(c.what[i])) << ",\"args\":{\"instruction\":" << i
      << ",\"record\":" << c.record[i];
  if (c.site[i] != 0) {
    out << ",\"site\":" << quoted(t.place(c.site[i])) << ",\"function\":" << quoted(t.name(site.function))
        << ",\"iteration\":" << c.iteration[i];
  }
  out << ",\"cause\":" << quoted(t.causes[c.cause[i]]);
  if (const uint32_t by = c.cause_instruction[i]; by != kNoCause)
    out << ",\"waited for\":"
        << quoted(cat(t.name(c.what[by]), " #", by, c.site[by] != 0 ? " at " : "", t.place(c.site[by]),
                      other_core(t, i, by)));
  out << "}}";
}

}  // namespace

void write_perfetto(std::ostream& out, const Trace& t) {
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  // A process for each core.
  const uint32_t cores = t.cores();
  for (uint32_t core = 0; core < cores; ++core)
    out << (core > 0 ? "," : "") << "\n{\"ph\":\"M\",\"pid\":" << core + 1
        << ",\"name\":\"process_name\",\"args\":{\"name\":"
        << quoted(cat(t.program, " on ", t.target, cores > 1 ? cat(", core ", core) : "", " (predicted)")) << "}}";
  std::vector<Lanes> lanes(t.queues.size());
  const TraceColumns& c = t.instructions;
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t lane = lanes[c.queue[i]].take(c.start_ps[i], c.start_ps[i] + c.duration_ps[i]);
    write_event(out, t, i, c.queue[i] * kLanesOfAQueue + lane + 1);
  }
  for (size_t q = 0; q < lanes.size(); ++q)
    for (size_t lane = 0; lane < lanes[q].size(); ++lane)
      out << ",\n{\"ph\":\"M\",\"pid\":" << t.queues[q].core + 1 << ",\"tid\":" << q * kLanesOfAQueue + lane + 1
          << ",\"name\":\"thread_name\",\"args\":{\"name\":"
          << quoted(lane == 0 ? t.queues[q].name : cat(t.queues[q].name, " (", lane + 1, ")")) << "}}";
  out << "\n]}\n";
}

}  // namespace sterna
