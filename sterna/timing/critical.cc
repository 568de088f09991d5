// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/critical.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sterna {
namespace {

class Walk {
 public:
  Walk(const Program& program, const Lowered& lowered, const Schedule& schedule, Timing& out)
      : program_(program),
        lowered_(lowered),
        schedule_(schedule),
        out_(out),
        by_site_(program.sites.size()),
        searched_(lowered.cores.size()) {
    for (auto& core : searched_) core.fill(SIZE_MAX);
  }

  void run() {
    out_.critical = Column<uint32_t>(program_.cores[0].pool());
    uint32_t k = schedule_.last;
    now_ = schedule_.end;
    bool issue_only = false;  // the path enters a transfer by its issue: its bytes had no part in it
    while (k != kNoInstruction) {
      const InstructionTime& i = lowered_.instructions[k];
      out_.critical.push_back(k);
      Cause cause = i.cause;
      uint32_t by = i.cause_instruction;
      if (is_dma(i.queue)) {
        const Issue& issue = issue_of(k, i);
        if (!issue_only) {
          spend(i.end, kCriticalLatency, i);
          spend(i.start, issue.hbm_bound ? kCriticalHbm : static_cast<size_t>(i.queue), i);
        }
        if (issue_only || cause == issue.cause) {
          // What lies between the issue and the first byte is the start latency.
          spend(issue.at, issue_only ? static_cast<size_t>(i.queue) : kCriticalLatency, i);
          cause = issue.cause;
          by = issue.cause_instruction;
        }
      } else {
        spend(i.end, kCriticalLatency, i);
        spend(i.start, static_cast<size_t>(i.queue), i);
      }
      issue_only = cause == Cause::kQueue;
      k = by;
      if (k == kNoInstruction) spend(0, kCriticalLatency, i);
    }
    std::reverse(out_.critical.begin(), out_.critical.end());
    name_bound();
    list_lines();
  }

 private:
  /// The path's time from `now` back to `until` went to `what`, at the source line of `i`.
  void spend(int64_t until, size_t what, const InstructionTime& i) {
    if (until >= now_) return;
    out_.critical_ps[what] += now_ - until;
    by_site_[i.site] += now_ - until;
    now_ = until;
  }

  /// The path mostly goes back through a queue, so the search begins where the last one ended.
  const Issue& issue_of(uint32_t k, const InstructionTime& i) {
    const auto& order = lowered_.cores[i.core].order[static_cast<size_t>(i.queue)];
    const size_t which = static_cast<size_t>(i.queue) - static_cast<size_t>(Queue::kLoad);
    size_t& at = searched_[i.core][which];
    at = std::min(at, order.size() - 1);
    while (order[at].instruction > k) --at;
    while (order[at].instruction < k) ++at;
    return schedule_.cores[i.core].issues[which][at];
  }

  void name_bound() {
    const auto& ps = out_.critical_ps;
    const int64_t dma = ps[static_cast<size_t>(Queue::kLoad)] + ps[static_cast<size_t>(Queue::kStore)];
    const int64_t exchange = ps[static_cast<size_t>(Queue::kExchange)];
    out_.bound = "latency";
    int64_t most = ps[kCriticalLatency];
    const auto offer = [&](std::string_view what, int64_t time) {
      if (time > most) most = time, out_.bound = what;
    };
    for (Queue q : {Queue::kTensor, Queue::kVector, Queue::kScalar, Queue::kGpSimd, Queue::kSync})
      offer(name(q), ps[static_cast<size_t>(q)]);
    offer("dma", dma);
    offer("exchange", exchange);
    offer("hbm", ps[kCriticalHbm]);
  }

  void list_lines() {
    std::map<std::pair<uint32_t, int32_t>, LineTime> lines;
    for (uint32_t site = 0; site < by_site_.size(); ++site) {
      if (by_site_[site] == 0) continue;
      const Site& s = program_.sites[site];
      LineTime& line = lines[{s.file, s.line}];
      line.ps += by_site_[site];
      if (line.site == 0) line.site = site;
    }
    for (auto& [key, line] : lines) {
      line.where = program_.place(line.site);
      out_.lines.push_back(line);
    }
    std::sort(out_.lines.begin(), out_.lines.end(),
              [](const LineTime& a, const LineTime& b) { return a.ps != b.ps ? a.ps > b.ps : a.site < b.site; });
  }

  const Program& program_;
  const Lowered& lowered_;
  const Schedule& schedule_;
  Timing& out_;
  int64_t now_ = 0;
  std::vector<int64_t> by_site_;
  std::vector<std::array<size_t, kDmaQueues>> searched_;  // by core: places in its DMA queues
};

}  // namespace

void find_critical_path(const Program& program, const Lowered& lowered, const Schedule& schedule, Timing& out) {
  Walk(program, lowered, schedule, out).run();
}

}  // namespace sterna
