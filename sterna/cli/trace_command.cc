// SPDX-License-Identifier: Apache-2.0
#include "sterna/cli/trace_command.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <ostream>

#include "sterna/base/text.h"
#include "sterna/cli/table.h"
#include "sterna/trace/perfetto.h"
#include "sterna/trace/svg.h"

namespace sterna::cli {
namespace {

constexpr size_t kLinesShown = 10;

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}
std::string us(int64_t ps) { return fixed(static_cast<double>(ps) / 1e6, 2); }
std::string percent(int64_t part, int64_t whole) {
  return whole > 0 ? fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %" : "-";
}

void print_queues(std::ostream& out, const Trace& t) {
  Table table("  ");
  for (size_t column : {1u, 2u, 3u}) table.align_right(column);
  table.add({"engine", "instructions", "busy us", "active"});
  for (size_t i = 0; i < t.queues.size(); ++i)
    if (const TraceQueue& q = t.queues[i]; q.instructions > 0)
      table.add({t.queue_name(i), cat(q.instructions), us(q.busy_ps), percent(q.busy_ps, t.kernel_ps)});
  table.print(out << '\n');
}

/// How long starts were put off, by cause: the time between an instruction's start and the end of the one before it in
/// its queue.
void print_waits(std::ostream& out, const Trace& t) {
  std::vector<std::vector<int64_t>> waited(t.queues.size(), std::vector<int64_t>(t.causes.size()));
  std::vector<int64_t> end(t.queues.size());
  const TraceColumns& c = t.instructions;
  for (size_t i = 0; i < c.size(); ++i) {
    const size_t q = c.queue[i];
    waited[q][c.cause[i]] += std::max<int64_t>(0, c.start_ps[i] - end[q]);
    end[q] = std::max(end[q], c.start_ps[i] + c.duration_ps[i]);
  }
  Table table("  ");
  table.align_right(2);
  table.add({"engine", "idle, waiting for", "us"});
  bool any = false;
  for (size_t q = 0; q < waited.size(); ++q)
    for (size_t cause = 0; cause < t.causes.size(); ++cause)
      if (waited[q][cause] > 0) any = true, table.add({t.queue_name(q), t.causes[cause], us(waited[q][cause])});
  if (any) table.print(out << '\n');
}

void print_lines(std::ostream& out, const Trace& t) {
  if (t.lines.empty()) return;
  Table table("  ");
  table.align_right(0);
  table.align_right(1);
  table.add({"us", "share", "on the critical path"});
  for (size_t i = 0; i < t.lines.size() && i < kLinesShown; ++i) {
    const std::string place = t.place(t.lines[i].site);
    table.add({us(t.lines[i].ps), percent(t.lines[i].ps, t.kernel_ps), place.empty() ? "(no source line)" : place});
  }
  table.print(out << '\n');
}

void print_metrics(std::ostream& out, const Trace& t) {
  Table table("  ");
  table.align_right(1);
  for (const TraceMetric& m : t.metrics) {
    if (m.name.rfind("critical_", 0) == 0) continue;  // the lines say it better
    table.add({m.name, number_text(m.value), m.unit == "1" || m.unit == "count" ? "" : m.unit});
  }
  if (!table.empty()) table.print(out << '\n');
}

void print_doubts(std::ostream& out, const Trace& t) {
  if (!t.uncertain.empty()) {
    Table table("  ");
    table.add({"uncertain number used", "value", "trust", "basis"});
    for (const TraceUncertain& u : t.uncertain) table.add({u.key, u.text, u.trust, u.source});
    table.print(out << '\n');
  }
  for (const std::string& note : t.notes) out << "\nnote: " << note << '\n';
}

/// 0 if `text` is no width that the picture can have.
int width_of(const std::string& text) {
  int width = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), width);
  const bool number = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return number && width >= kSvgLeastWidth && width <= kSvgMostWidth ? width : 0;
}

template <class Write>
bool write_file(const std::string& path, Output output, const Write& write) {
  std::ofstream file(path, std::ios::binary);
  write(file);
  file.flush();
  if (!file) output.err << "sterna trace: cannot write " << path << '\n';
  return static_cast<bool>(file);
}

int run(const Arguments& arguments, Output output) {
  const int width = arguments.has("--width") ? width_of(arguments.text("--width")) : kSvgWidth;
  if (width == 0) {
    output.err << "sterna trace: --width is a number of pixels from " << kSvgLeastWidth << " to " << kSvgMostWidth
               << '\n';
    return 2;
  }
  auto trace = load_trace(arguments.text("FILE"));
  if (!trace) {
    output.err << "sterna trace: " << trace.error().text() << '\n';
    return 1;
  }
  bool good = true;
  if (arguments.has("--perfetto"))
    good &= write_file(arguments.text("--perfetto"), output, [&](std::ostream& file) { write_perfetto(file, *trace); });
  if (arguments.has("--svg"))
    good &= write_file(arguments.text("--svg"), output, [&](std::ostream& file) { write_svg(file, *trace, width); });
  if (!arguments.has("--perfetto") && !arguments.has("--svg")) print_trace(output.out, *trace);
  return good ? 0 : 1;
}

}  // namespace

void print_trace(std::ostream& out, const Trace& t) {
  out << (t.program.empty() ? "(no name)" : t.program) << " on " << t.target << ": predicted " << us(t.total_ps)
      << " us (" << us(t.kernel_ps) << " without launch), bound by " << t.bound << ", " << t.instructions.size()
      << " instructions\n";
  print_queues(out, t);
  print_waits(out, t);
  print_lines(out, t);
  print_metrics(out, t);
  print_doubts(out, t);
}

Command trace_command() {
  Command command;
  command.name = "trace";
  command.summary = "show the trace of a run, or convert it for another viewer";
  command.arguments = {{"FILE", Argument::kPositional, "trace written by `sterna run --trace FILE`"},
                       {"--perfetto", Argument::kValue, "write JSON for ui.perfetto.dev to this file"},
                       {"--svg", Argument::kValue, "write a picture to this file"},
                       {"--width", Argument::kValue, "of the picture, in pixels (1000)"}};
  command.run = run;
  return command;
}

}  // namespace sterna::cli
