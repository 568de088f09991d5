// SPDX-License-Identifier: Apache-2.0
#include "sterna/trace/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "sterna/base/text.h"
#include "sterna/trace/svg_columns.h"

namespace sterna {
namespace {

constexpr int kLeft = 138, kRight = 22, kTop = 74, kLane = 62;
constexpr int kBusyHeight = 28, kPathHeight = 4, kWaitHeight = 7;
constexpr int kPathTop = 31, kWaitTop = 38;
constexpr double kLetter = 6.9;  // width in the small text of the widest usual font
constexpr size_t kKinds = 9;     // the last is all others

constexpr const char* kStyle =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1f2328}"
    ".t{font-size:17px;font-weight:600}.n{font-size:13px;font-weight:600}.m{fill:#59636e}.e{text-anchor:end}.c{text-"
    "anchor:middle}"
    ".bg{fill:#fff}.lane{fill:#f3f5f8}.g{fill:#d9dee4}.s{fill:#fff;opacity:.45}.p0{fill:#1f2328}.p1{fill:#a5adb6}"
    ".k0{fill:#3b78d8}.k1{fill:#1fa187}.k2{fill:#7d5fd3}.k3{fill:#6fb44a}.k4{fill:#4fb6e3}.k5{fill:#2b4f9e}.k6{fill:#"
    "b58be0}.k7{fill:#2f7d4f}"
    ".k8{fill:#8a94a0}"
    ".w0{fill:#b3bac2}.w1{fill:#f0a43a}.w2{fill:#d6455d}.w3{fill:#8a5a3c}.w4{fill:#f2cf4a}.w5{fill:#e8743b}.w6{fill:#"
    "a8324e}.w7{fill:#e58fb4}"
    ".w8{fill:#c08552}.w9{fill:#3fa7a0}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9aa4af}.bg{fill:#0d1117}.lane{fill:#171d26}.g{fill:#"
    "30363d}"
    ".s{fill:#0d1117}.p0{fill:#f0f3f6}.p1{fill:#69737e}.k0{fill:#5a96f0}.k1{fill:#2fbf9f}.k2{fill:#9a7ff0}.k5{fill:#"
    "4a6fd0}"
    ".k7{fill:#3f9d66}.w0{fill:#565f6a}.w3{fill:#a8754f}.w6{fill:#c4496a}}";

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}
std::string us(int64_t ps) { return fixed(static_cast<double>(ps) / 1e6, 2) + " us"; }
std::string percent(int64_t part, int64_t whole) {
  return fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

/// As XML text, at most `letters` long.
std::string text_of(std::string_view text, size_t letters) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool inside = (byte & 0xC0) == 0x80;  // of a character that began before
    if (!inside && letters-- == 0) return out + "…";
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (byte < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out;
}

struct Lane {
  size_t queue;
  int64_t covered = 0;  ///< time in which at least one of its instructions ran
  SvgColumns busy, waits, path;
  std::string cuts;     ///< where one instruction ends and the next begins
  int64_t on_path = 0;  ///< time of its instructions on the critical path
};

class Picture {
 public:
  Picture(const Trace& trace, int width, size_t columns)
      : t_(trace),
        c_(trace.instructions),
        width_(width),
        columns_(columns),
        column_(static_cast<double>(width - kLeft - kRight) / static_cast<double>(columns)) {
    span_ = std::max<int64_t>(1, t_.kernel_ps);
    if (t_.kernel_ps <= 0)
      for (size_t i = 0; i < c_.size(); ++i) span_ = std::max({span_, c_.start_ps[i], c_.duration_ps[i]});
    name_kinds();
    make_lanes();
    mark_path();
  }

  std::string draw() {
    const int bottom = kTop + kLane * static_cast<int>(lanes_.size());
    std::string body;
    draw_title(body);
    draw_axis(body, bottom);
    for (size_t i = 0; i < lanes_.size(); ++i) draw_lane(body, lanes_[i], kTop + kLane * static_cast<int>(i));
    const int height = draw_legends(body, bottom + 34);
    return cat("<svg xmlns='http://www.w3.org/2000/svg' width='", width_, "' height='", height, "' viewBox='0 0 ",
               width_, ' ', height, "' role='img'>\n<style>", kStyle,
               "</style>\n<rect class='bg' width='100%' height='100%' rx='6'/>\n", body, "</svg>\n");
  }

 private:
  using Entries = std::vector<std::pair<std::string, std::string>>;  ///< CSS class of the patch, empty for none; text

  int64_t start(size_t i) const { return std::clamp<int64_t>(c_.start_ps[i], 0, span_); }
  int64_t end(size_t i) const { return start(i) + std::min(c_.duration_ps[i], span_ - start(i)); }

  /// The names with most time have a colour each, the rest share one.
  void name_kinds() {
    std::vector<double> time(t_.names.size());
    for (size_t i = 0; i < c_.size(); ++i) time[c_.what[i]] += static_cast<double>(c_.duration_ps[i]) + 1;
    for (uint32_t name = 0; name < time.size(); ++name)
      if (time[name] > 0) kinds_.push_back(name);
    std::stable_sort(kinds_.begin(), kinds_.end(), [&](uint32_t a, uint32_t b) { return time[a] > time[b]; });
    kind_.assign(t_.names.size(), kKinds - 1);
    for (size_t k = 0; k < kinds_.size() && k < kKinds - 1; ++k) kind_[kinds_[k]] = k;
  }

  void make_lanes() {
    std::vector<std::vector<uint32_t>> order(t_.queues.size());
    for (uint32_t i = 0; i < c_.size(); ++i) order[c_.queue[i]].push_back(i);
    lane_of_.assign(order.size(), 0);
    caused_.assign(t_.causes.size(), false);
    for (size_t q = 0; q < order.size(); ++q) {
      if (order[q].empty()) continue;
      lane_of_[q] = lanes_.size();
      const auto strip = [&](size_t kinds) { return SvgColumns(columns_, kinds, span_); };
      lanes_.push_back({q, 0, strip(kKinds), strip(t_.causes.size()), strip(2), {}, 0});
      std::stable_sort(order[q].begin(), order[q].end(),
                       [&](uint32_t a, uint32_t b) { return c_.start_ps[a] < c_.start_ps[b]; });
      fill(lanes_.back(), order[q]);
    }
  }

  /// Transfers of a queue may overlap; what an earlier one covers is not counted again.
  void fill(Lane& lane, const std::vector<uint32_t>& order) {
    int64_t now = 0, before = 0;  // end and start of the one before
    const auto wide = static_cast<int64_t>(4 / column_ * static_cast<double>(span_) / static_cast<double>(columns_));
    for (uint32_t i : order) {
      if (start(i) > now) {
        lane.waits.add(now, start(i), c_.cause[i]);
        caused_[c_.cause[i]] = true;
      }
      const int64_t from = std::max(now, start(i));
      if (end(i) <= from && c_.duration_ps[i] > 0) continue;
      lane.busy.add(from, end(i), kind_[c_.what[i]]);
      lane.covered += std::max<int64_t>(0, end(i) - from);
      if (from == now && from > 0 && end(i) - from >= wide && from - before >= wide) {
        lane.cuts +=
            cat('M', fixed(static_cast<double>(from) / static_cast<double>(span_) * static_cast<double>(columns_), 1),
                " 0v", kBusyHeight * 10, "h", fixed(.7 / column_, 1), "V0z");
      }
      before = from;
      now = std::max(now, end(i));
    }
  }

  /// Back from the instruction that ends last through the cause of each start. The time between a cause's end and the
  /// start is latency, of the lane that waits. A transfer that another one waited for in its DMA queue is on the path
  /// by its issue: its bytes had no part in it.
  void mark_path() {
    uint32_t k = kNoCause;
    for (uint32_t i = 0; i < c_.size(); ++i)
      if (k == kNoCause || end(i) >= end(k)) k = i;
    int64_t now = span_;
    size_t waiting = k == kNoCause ? 0 : c_.queue[k];
    bool issue_only = false;
    for (size_t steps = c_.size(); k < c_.size() && steps > 0; --steps) {
      std::string_view cause = t_.causes[c_.cause[k]];
      if (!issue_only) {
        spend(end(k), now, waiting, 1);
        spend(start(k), now, c_.queue[k], 0);
      }
      waiting = c_.queue[k];
      uint32_t by = c_.cause_instruction[k];
      if (issue_only && (cause == "dma" || cause == "hbm")) {
        // What its issue waited for is not in the trace: mostly the transfer before it.
        by = k - 1;
        while (by < k && c_.queue[by] != c_.queue[k]) --by;  // below 0 is kNoCause
        cause = "queue";
      }
      issue_only = cause == "queue";
      k = by;
    }
    if (!lanes_.empty()) spend(0, now, waiting, 1);
  }
  void spend(int64_t from, int64_t& now, size_t queue, size_t kind) {
    if (from >= now) return;
    Lane& lane = lanes_[lane_of_[queue]];
    lane.path.add(from, now, kind);
    (kind == 0 ? lane.on_path : latency_) += now - from;
    now = from;
  }

  void draw_title(std::string& out) const {
    const auto room = static_cast<size_t>((width_ - 32) / 10);
    const auto room_below = static_cast<size_t>((width_ - 32) / kLetter);
    out += cat("<text class='t' x='16' y='30'>",
               text_of(cat(t_.program.empty() ? "(no name)" : t_.program, " on ", t_.target), room), "</text>\n");
    const std::string summary = cat("predicted ", us(t_.total_ps), " (", us(t_.kernel_ps),
                                    " without launch), bound by ", t_.bound, ", ", c_.size(), " instructions");
    out += cat("<text x='16' y='52'>", text_of(summary, room_below), "</text>\n");
  }

  void draw_axis(std::string& out, int bottom) const {
    const double plot = width_ - kLeft - kRight, span = static_cast<double>(span_) / 1e6;
    const double least = span * 70 / plot;
    double step = std::pow(10, std::floor(std::log10(least)));
    step *= step >= least ? 1 : 2 * step >= least ? 2 : 5 * step >= least ? 5 : 10;
    const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
    for (int i = 0; i * step <= span * (1 + 1e-9); ++i) {
      const double x = kLeft + i * step / span * plot;
      out += cat("<rect class='g' x='", fixed(x - .5, 1), "' y='", kTop - 6, "' width='1' height='", bottom - kTop - 2,
                 "'/>");
      const std::string label = fixed(i * step, digits);
      if (x + kLetter / 2 * static_cast<double>(label.size()) < width_ - 4)
        out +=
            cat("<text class='m c' x='", fixed(x, 1), "' y='", bottom + 9, "'>", label, i == 0 ? " us" : "", "</text>");
    }
    out += '\n';
  }

  void draw_lane(std::string& out, const Lane& lane, int y) const {
    const TraceQueue& q = t_.queues[lane.queue];
    // Several transfers at once.
    const bool several = std::abs(static_cast<double>(lane.covered) - static_cast<double>(q.busy_ps)) >
                         static_cast<double>(span_) / 2000;
    const std::string count = cat(q.instructions, q.instructions == 1      ? " instruction"
                                                  : q.instructions < 10000 ? " instructions"
                                                                           : " instr.");
    const int x = kLeft - 12;
    out += cat("<text class='n e' x='", x, "' y='", y + 11, "'>", text_of(shown(lane.queue), 17),
               "</text><text class='e' x='", x, "' y='", y + 27, "'>", percent(q.busy_ps, span_),
               " active</text><text class='e m' x='", x, "' y='", y + 42, "'>",
               several ? percent(lane.covered, span_) + " in flight" : count, "</text>\n");
    out += cat("<rect class='lane' x='", kLeft, "' y='", y, "' width='", width_ - kLeft - kRight, "' height='",
               kBusyHeight, "'/>\n");
    std::string id = t_.queue_name(lane.queue);
    std::replace(id.begin(), id.end(), ' ', '_');
    const auto strip = [&](const SvgColumns& columns, const char* css, const char* what, int top, int height,
                           std::string_view cuts = {}) {
      out += cat("<g id='", text_of(id, 40), '-', what, "' transform='translate(", kLeft, ' ', y + top + height,
                 ") scale(", column_, " -.1)'>\n");
      columns.draw(out, css, height);
      if (!cuts.empty()) out += cat("<path class='s' d='", cuts, "'/>\n");
      out += "</g>\n";
    };
    strip(lane.busy, "k", "busy", 0, kBusyHeight, lane.cuts);
    strip(lane.path, "p", "path", kPathTop, kPathHeight);
    strip(lane.waits, "w", "waits", kWaitTop, kWaitHeight);
  }

  /// Returns the height of the whole picture.
  int draw_legends(std::string& out, int y) const {
    Entries busy, waits;
    for (size_t k = 0; k < kinds_.size() && k < kKinds - 1; ++k) busy.emplace_back(cat('k', k), t_.name(kinds_[k]));
    if (kinds_.size() >= kKinds) busy.emplace_back(cat('k', kKinds - 1), cat(kinds_.size() - kKinds + 1, " others"));
    for (size_t i = 0; i < caused_.size(); ++i)
      if (caused_[i]) waits.emplace_back(cat('w', i), explained(t_.causes[i]));
    y = draw_legend(out, y, "busy with", busy);
    y = draw_legend(out, y, "critical path", path_entries());
    y = draw_legend(out, y, "idle, waits for", waits);
    const Entries notes = {{"", "A bar's height is the part of that pixel's time that it fills."},
                           {"", "All times are predicted, not measured."}};
    return draw_legend(out, y, "", notes) + 6;
  }

  Entries path_entries() const {
    Entries out = {{"p1", cat("latency ", percent(latency_, span_))}};
    for (const Lane& lane : lanes_)
      if (lane.on_path > 0) out.emplace_back("", cat(shown(lane.queue), ' ', percent(lane.on_path, span_)));
    std::rotate(out.begin(), out.begin() + 1, out.end());
    if (out[0].first.empty()) out[0].first = "p0";  // one colour for all
    return out;
  }

  int draw_legend(std::string& out, int y, const char* title, const Entries& entries) const {
    if (entries.empty()) return y;
    out += cat("<text class='m e' x='", kLeft - 12, "' y='", y + 10, "'>", title, "</text>");
    double x = kLeft;
    for (const auto& [css, text] : entries) {
      const double patch = css.empty() ? 0 : 16, room = patch + 14 + kLetter * static_cast<double>(text.size());
      if (x + room > width_ - 4 && x > kLeft) x = kLeft, y += 20;
      if (!css.empty())
        out += cat("<rect class='", css, "' x='", fixed(x, 0), "' y='", y, "' width='11' height='11' rx='2'/>");
      out += cat("<text", css.empty() ? " class='m'" : "", " x='", fixed(x + patch, 0), "' y='", y + 10, "'>",
                 text_of(text, 160), "</text>");
      x += room;
    }
    out += '\n';
    return y + 22;
  }

  std::string shown(size_t queue) const {
    std::string name = t_.queue_name(queue);
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  }
  static std::string explained(const std::string& cause) {
    static constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
        {"operand", "data not there yet"}, {"buffer", "memory still in use"}, {"queue", "transfers being issued"},
        {"dma", "other transfers"},        {"hbm", "bandwidth taken"},        {"semaphore", "program order"},
        {"port", "another engine has it"}, {"partner", "another core"},
    };
    for (const auto& [name, text] : kTexts)
      if (cause == name) return cat(cause, ": ", text);
    return cause;
  }

  const Trace& t_;
  const TraceColumns& c_;
  int width_;
  size_t columns_;
  double column_;  ///< pixels
  int64_t span_ = 1;
  std::vector<uint32_t> kinds_;  ///< names, most time first
  std::vector<size_t> kind_;     ///< colour of each name
  std::vector<size_t> lane_of_;  ///< of each queue
  std::vector<bool> caused_;
  std::vector<Lane> lanes_;
  int64_t latency_ = 0;  ///< on the critical path
};

}  // namespace

void write_svg(std::ostream& out, const Trace& trace, int width) {
  width = std::clamp(width, kSvgLeastWidth, kSvgMostWidth);
  auto columns = static_cast<size_t>(2 * (width - kLeft - kRight));
  std::string picture = Picture(trace, width, columns).draw();
  for (; picture.size() > kSvgLimit && columns > 64; columns /= 2) picture = Picture(trace, width, columns / 2).draw();
  out << picture;
}

}  // namespace sterna
