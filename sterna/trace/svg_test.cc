// SPDX-License-Identifier: Apache-2.0
#include "sterna/trace/svg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>

#include "sterna/base/text.h"

namespace sterna {
namespace {

constexpr int64_t kUs = 1'000'000;
enum { kTensor, kVector, kLoad };
enum { kLaunch, kOperand, kQueue };

/// A run of `us` with three queues, no instructions yet.
Trace empty_run(int64_t us) {
  Trace t;
  t.program = "kernel";
  t.target = "trn2";
  t.bound = "tensor";
  t.kernel_ps = us * kUs;
  t.total_ps = (us + 13) * kUs;
  t.names = {"", "nc_matmul", "tensor_copy", "dma_copy"};
  t.sites.resize(1);
  t.queues = {{"tensor"}, {"vector"}, {"dma_load"}};
  t.causes = {"launch", "operand", "queue"};
  return t;
}

uint32_t add(Trace& t, uint8_t queue, int64_t start, int64_t duration, uint8_t cause = kLaunch, uint32_t by = kNoCause,
             uint32_t what = 1) {
  TraceColumns& c = t.instructions;
  const auto id = static_cast<uint32_t>(c.size());
  c.record.push_back(id);
  c.what.push_back(what);
  c.queue.push_back(queue);
  c.start_ps.push_back(start);
  c.duration_ps.push_back(duration);
  c.cause.push_back(cause);
  c.cause_instruction.push_back(by);
  c.site.push_back(0);
  c.iteration.push_back(0);
  ++t.queues[queue].instructions;
  t.queues[queue].busy_ps += duration;
  return id;
}

std::string svg(const Trace& t, int width = kSvgWidth) {
  std::ostringstream out;
  write_svg(out, t, width);
  return out.str();
}

bool has(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

/// Empty if every tag is closed in order, attributes are quoted, and & only begins an entity; else where it is not.
std::string malformed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t i = 0; i < xml.size(); ++i) {
    if (xml[i] == '&' && xml.compare(i, 5, "&amp;") != 0 && xml.compare(i, 4, "&lt;") != 0) return xml.substr(i, 40);
    if (xml[i] == '>') return xml.substr(i, 40);
    if (xml[i] != '<') continue;
    const size_t end = xml.find('>', i);
    if (end == std::string::npos) return xml.substr(i, 40);
    const std::string tag = xml.substr(i + 1, end - i - 1);
    if (has(tag, "<") || std::count(tag.begin(), tag.end(), '\'') % 2 != 0) return tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /\n", 1));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    i = end;
  }
  return open.empty() ? "" : open.back();
}

/// Heights, in tenths of a pixel, of the outlines of class `css` in the group `id`; of all classes that begin with it,
/// the highest.
std::vector<int> heights(const std::string& picture, const std::string& id, const std::string& css) {
  std::vector<int> out;
  const size_t begin = picture.find("<g id='" + id + "'");
  if (begin == std::string::npos) return out;
  const std::string group = picture.substr(begin, picture.find("</g>", begin) - begin);
  const std::string start = "<path class='" + css;
  for (size_t at = group.find(start); at != std::string::npos; at = group.find(start, at + 1)) {
    const char* p = group.c_str() + group.find("M0 0", at) + 4;
    size_t column = 0;
    int height = 0;
    while (*p == 'v' || *p == 'h') {
      char* next = nullptr;
      const long value = std::strtol(p + 1, &next, 10);
      if (*p == 'v') height += static_cast<int>(value);
      for (long i = 0; *p == 'h' && i < value; ++i, ++column) {
        if (column >= out.size()) out.push_back(0);
        out[column] = std::max(out[column], height);
      }
      p = next;
    }
  }
  return out;
}

/// Part of the area of a strip `height` pixels high that is filled.
double filled(const std::string& picture, const std::string& id, const std::string& css, int height) {
  const std::vector<int> all = heights(picture, id, css);
  return all.empty() ? 0
                     : std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()) / (10 * height);
}

constexpr int kBusy = 28, kPath = 4, kWaits = 7;

TEST(Svg, LanesThatDidSomethingWithTheirShares) {
  Trace t = empty_run(10);
  const uint32_t first = add(t, kTensor, 1 * kUs, 2 * kUs);
  add(t, kTensor, 5 * kUs, kUs / 2, kOperand, first);
  add(t, kLoad, 0, 4 * kUs, kLaunch, kNoCause, 3);
  const std::string s = svg(t);
  EXPECT_EQ(malformed(s), "");
  EXPECT_TRUE(has(s, ">tensor<") && has(s, ">dma load<"));
  EXPECT_FALSE(has(s, ">vector<"));
  EXPECT_TRUE(has(s, ">25.0 % active<") && has(s, ">40.0 % active<"));
  EXPECT_TRUE(has(s, ">2 instructions<") && has(s, ">1 instruction<"));
  EXPECT_TRUE(has(s, ">kernel on trn2<") &&
              has(s, "predicted 23.00 us (10.00 us without launch), bound by tensor, 3 instructions"));
  EXPECT_TRUE(has(s, "prefers-color-scheme:dark"));
  EXPECT_TRUE(has(s, ">0 us<") && has(s, ">10<"));
  EXPECT_NEAR(filled(s, "tensor-busy", "k", kBusy), 0.25, 0.002);
  EXPECT_NEAR(filled(s, "dma_load-busy", "k", kBusy), 0.40, 0.002);
}

TEST(Svg, IdleTimeHasItsCause) {
  Trace t = empty_run(10);
  const uint32_t first = add(t, kTensor, 1 * kUs, 2 * kUs);
  add(t, kTensor, 6 * kUs, kUs, kOperand, first);
  const std::string s = svg(t);
  EXPECT_NEAR(filled(s, "tensor-waits", "w0", kWaits), 0.1, 0.002);
  EXPECT_NEAR(filled(s, "tensor-waits", "w1", kWaits), 0.3, 0.002);
  EXPECT_EQ(filled(s, "tensor-waits", "w2", kWaits), 0);
  EXPECT_TRUE(has(s, ">launch<") && has(s, ">operand: ") && !has(s, ">queue: "));
}

TEST(Svg, OverlappingTransfersAreCountedOnce) {
  Trace t = empty_run(10);
  add(t, kLoad, 0, 4 * kUs, kLaunch, kNoCause, 3);
  add(t, kLoad, 2 * kUs, 4 * kUs, kQueue, 0, 3);
  add(t, kLoad, 3 * kUs, kUs, kQueue, 1, 3);
  add(t, kLoad, 3 * kUs, 0, kQueue, 2, 3);
  t.queues[kLoad].busy_ps = kUs;  // mean of the engines
  const std::string s = svg(t);
  EXPECT_NEAR(filled(s, "dma_load-busy", "k", kBusy), 0.6, 0.002);
  EXPECT_TRUE(has(s, ">10.0 % active<") && has(s, ">60.0 % in flight<"));
}

TEST(Svg, CriticalPathFollowsCauses) {
  Trace t = empty_run(10);
  const uint32_t load = add(t, kLoad, kUs, 3 * kUs, kLaunch, kNoCause, 3);
  add(t, kTensor, 0, kUs);  // not on it
  const uint32_t copy = add(t, kVector, 5 * kUs, kUs, kOperand, load, 2);
  add(t, kTensor, 6 * kUs, 4 * kUs, kOperand, copy);
  const std::string s = svg(t);
  EXPECT_NEAR(filled(s, "tensor-path", "p0", kPath), 0.4, 0.003);
  EXPECT_NEAR(filled(s, "vector-path", "p0", kPath), 0.1, 0.003);
  EXPECT_NEAR(filled(s, "dma_load-path", "p0", kPath), 0.3, 0.003);
  EXPECT_NEAR(filled(s, "vector-path", "p1", kPath), 0.1, 0.003);
  EXPECT_NEAR(filled(s, "dma_load-path", "p1", kPath), 0.1, 0.003);
  EXPECT_TRUE(has(s, ">tensor 40.0 %<") && has(s, ">vector 10.0 %<") && has(s, ">dma load 30.0 %<") &&
              has(s, ">latency 20.0 %<"));
}

TEST(Svg, TransferOnThePathByItsIssueOnlyHasNoTimeThere) {
  Trace t = empty_run(10);
  const uint32_t first = add(t, kLoad, kUs, 8 * kUs, kLaunch, kNoCause, 3);
  add(t, kLoad, 2 * kUs, 8 * kUs, kQueue, first, 3);
  EXPECT_TRUE(has(svg(t), ">dma load 80.0 %<") && has(svg(t), ">latency 20.0 %<"));
}

TEST(Svg, TheShortestEventIsVisible) {
  Trace t = empty_run(1'000'000);
  add(t, kTensor, 500'000 * kUs, 1);
  add(t, kVector, 0, 0);
  add(t, kLoad, t.kernel_ps, 0);
  const std::string s = svg(t);
  for (const char* lane : {"tensor-busy", "vector-busy", "dma_load-busy"}) {
    const std::vector<int> all = heights(s, lane, "k");
    ASSERT_FALSE(all.empty()) << lane;
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](int h) { return h > 0; }), 1) << lane;
    EXPECT_GE(*std::max_element(all.begin(), all.end()), 10) << lane;
  }
}

/// 1e5 instructions of many kinds, each much narrower than a pixel.
Trace long_run(double busy) {
  Trace t = empty_run(10'000);
  for (int i = 0; i < 20; ++i) t.names.push_back(cat("kind_", i));
  std::mt19937 random(1);
  for (uint8_t q = 0; q < 3; ++q) {
    const int64_t step = t.kernel_ps / 33'333;
    for (int64_t i = 0; i < 33'333; ++i) {
      const auto longest = static_cast<int64_t>(2 * busy * static_cast<double>(step));
      add(t, q, i * step, std::min<int64_t>(step, static_cast<int64_t>(random()) % longest),
          static_cast<uint8_t>(random() % 3), kNoCause, static_cast<uint32_t>(1 + random() % 22));
    }
  }
  return t;
}

TEST(Svg, ManyInstructionsKeepTheirShareInASmallFile) {
  const Trace t = long_run(0.4);
  for (int width : {kSvgLeastWidth, kSvgWidth, kSvgMostWidth}) {
    const std::string s = svg(t, width);
    EXPECT_EQ(malformed(s), "");
    EXPECT_LE(s.size(), kSvgLimit);
    EXPECT_GT(s.size(), 20'000u);
    const double share = static_cast<double>(t.queues[kTensor].busy_ps) / static_cast<double>(t.kernel_ps);
    EXPECT_NEAR(share, 0.4, 0.01);
    EXPECT_NEAR(filled(s, "tensor-busy", "k", kBusy), share, 0.01) << width;
    EXPECT_TRUE(has(s, " others<"));
  }
}

TEST(Svg, NamesAreEscapedAndCut) {
  Trace t = empty_run(10);
  t.program = "a<b & 'c'\n" + std::string(300, 'x');
  t.names[1] = "<&>";
  t.names[1].pop_back();
  t.queues[0].name = "a_lane_with_a_name_far_too_long";
  add(t, kTensor, 0, kUs);
  const std::string s = svg(t);
  EXPECT_EQ(malformed(s), "");
  EXPECT_TRUE(has(s, "a&lt;b &amp; 'c' xxx") && has(s, "x…<"));
  EXPECT_FALSE(has(s, std::string(150, 'x')));
}

TEST(Svg, StrangeTracesAreDrawn) {
  EXPECT_EQ(malformed(svg(empty_run(10))), "");
  EXPECT_EQ(malformed(svg(Trace())), "");
  Trace t = empty_run(0);
  add(t, kTensor, INT64_MAX, INT64_MAX);
  add(t, kVector, INT64_MIN, INT64_MAX);
  add(t, kLoad, 5, 5, kOperand, 99);
  add(t, kLoad, 5, 5, kQueue, 3);  // its own cause
  t.queues[kTensor].busy_ps = INT64_MAX;
  EXPECT_EQ(malformed(svg(t, -1)), "");
}

}  // namespace
}  // namespace sterna
