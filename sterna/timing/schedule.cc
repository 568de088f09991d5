// SPDX-License-Identifier: Apache-2.0
//
// Each queue runs its instructions in order, so an instruction's start follows from the queue's previous one, from the
// results it waits for, and from what it shares with other queues. Only the last needs the queues to be taken in the
// order of time: DMA queues share engines and HBM, and some engines share memory ports. So the engines that share
// nothing run ahead as far as their operands are known; then the earliest instruction among the sharing queues goes
// next. That order is right: whatever still waits for an unknown operand waits, through a chain, for one of those
// heads, and so cannot start before the earliest of them.
//
// Cores share HBM stacks, and meet. What they do together starts when all have come: it is taken like an instruction of
// a sharing queue, at the time at which the last of them can start it.
#include "sterna/timing/schedule.h"

#include <algorithm>
#include <cmath>

#include "sterna/timing/schedule_core.h"

namespace sterna {
namespace {

using scheduling::Core;
using scheduling::index;
using scheduling::QueueState;
using scheduling::Ready;
using scheduling::Stack;

int64_t picoseconds(double ns) { return std::llround(ns * 1000); }

class Scheduler {
 public:
  Scheduler(Lowered& lowered, const Chip& chip, const std::shared_ptr<BufferPool>& pool)
      : in_(lowered),
        semaphore_(picoseconds(chip.semaphore.latency)),
        result_latency_(picoseconds(chip.tensor.result_latency)),
        dma_start_(picoseconds(chip.dma.start)),
        dma_completion_(picoseconds(chip.dma.completion)),
        ramp_window_(picoseconds(chip.tensor.ramp_window)),
        ramp_rate_(chip.tensor.ramp_rate),
        cores_(lowered.cores.size()),
        stacks_(lowered.cores.size()) {
    out_.visible = Column<int64_t>(pool);
    out_.visible.resize(in_.instructions.size());
    out_.cores.resize(cores_.size());
    const auto per_stack = static_cast<size_t>(std::max<int64_t>(1, chip.cores_per_stack()));
    for (size_t i = 0; i < cores_.size(); ++i) {
      Core& c = cores_[i];
      c.in = &in_.cores[i];
      c.out = &out_.cores[i];
      c.stack = &stacks_[i / per_stack];
      c.engine_free.resize(static_cast<size_t>(int64_t{chip.dma.engines}));
      c.engine_user.resize(c.engine_free.size(), kNoInstruction);
      for (size_t q = 0; q < kDmaQueues; ++q) c.out->issues[q].resize(c.in->order[index(Queue::kLoad) + q].size());
      for (int q = 0; q < kQueues; ++q) c.note_head(q);
      c.find_sharing();
    }
  }

  Schedule run() {
    for (;;) {
      bool done = false;
      for (Core& c : cores_)
        for (int q = 0; q < kQueues; ++q)
          if (!c.shares[q]) done |= run_ahead(c, q);
      if (done) continue;
      const Choice next = earliest();
      if (next.core == nullptr) break;  // all queues are empty: waits point to earlier instructions
      take(*next.core, next.queue);
    }
    for (Core& c : cores_) {
      const auto engines = static_cast<int64_t>(c.engine_free.size());
      for (size_t q = 0; q < kDmaQueues; ++q)
        c.out->busy_ps[index(Queue::kLoad) + q] = c.dma_engine_ps[q] / engines + c.collective_ps[q];
    }
    return std::move(out_);
  }

 private:
  struct Choice {
    Core* core = nullptr;
    int queue = -1;
    int64_t at = 0;
    uint32_t instruction = 0;
  };

  /// True if everything the head of q waits for is known; then state[q].ready says when and why.
  bool head_ready(Core& c, int q) {
    QueueState& s = c.state[q];
    if (s.known) return true;
    if (!s.unknown.none() && !c.known(s.unknown)) return false;
    const Queued& k = c.head(q);
    Ready ready;
    for (const Wait *w = c.in->waits.data() + k.first_wait, *end = w + k.waits; w < end; ++w) {
      if (!c.known(w->producer)) {
        s.unknown = w->producer;
        return false;
      }
      const uint32_t producer = w->producer.index();
      const bool read = w->after_read && w->producer.queue() == index(Queue::kTensor);
      const int64_t at = (read ? in_.instructions[producer].end : out_.visible[producer]) + semaphore_;
      if (at > ready.at) ready = {at, producer, w->cause};
    }
    s.ready = ready;
    s.known = true;
    return true;
  }

  bool run_ahead(Core& c, int q) {
    bool done = false;
    for (; c.has_head(q) && head_ready(c, q); done = true) take(c, q);
    return done;
  }

  /// The queue whose head can start first; of several, the one that comes first in the program.
  Choice earliest() {
    Choice best;
    for (Core& c : cores_) {
      for (int q = 0; q < kQueues; ++q) {
        if (!c.has_head(q) || !head_ready(c, q)) continue;
        int64_t at = std::max(c.state[q].free, c.state[q].ready.at);
        const uint32_t k = c.head(q).instruction;
        if (!in_.meetings.empty() && c.head_meets(q) && !all_have_come(c.meet_of(k), &at)) continue;
        if (best.core == nullptr || at < best.at || (at == best.at && k < best.instruction)) best = {&c, q, at, k};
      }
    }
    return best;
  }

  void take(Core& c, int q) {
    if (c.head_meets(q)) return take_meet(c, q);
    const Queued& queued = c.head(q);
    const Cost& cost = c.in->costs[queued.cost];
    if (is_dma(static_cast<Queue>(q)))
      run_transfer(c, q, queued.instruction, cost.transfer, c.own_start(q));
    else
      run_on_engine(c, q, queued.instruction, cost, c.own_start(q));
    leave(c, q, queued.instruction);
  }

  /// The head of q has its times.
  void leave(Core& c, int q, uint32_t k) {
    QueueState& s = c.state[q];
    if (out_.visible[k] >= out_.end) {
      out_.end = out_.visible[k];
      out_.last = k;
    }
    c.out->end = std::max(c.out->end, out_.visible[k]);
    c.out->busy_ps[q] += in_.instructions[k].duration();
    s.last = k;
    s.known = false;
    s.unknown = Ref();
    ++s.head;
    c.note_head(q);
  }

  void run_on_engine(Core& c, int q, uint32_t k, const Cost& cost, Ready start) {
    InstructionTime& out = in_.instructions[k];
    int64_t duration = cost.duration_ps;
    if (c.ports_shared) c.wait_for_port(q, cost.ports, start);
    if (q == static_cast<int>(Queue::kTensor) && ramp_window_ > 0) duration = ramped(c, start.at, duration);
    out.start = start.at;
    out.end = start.at + duration;
    out.cause = start.cause;
    out.cause_instruction = start.by;
    c.state[q].free = out.end;
    out_.visible[k] = out.end + (q == static_cast<int>(Queue::kTensor) ? result_latency_ : 0);
    if (c.ports_shared) c.hold_ports(q, cost.ports, k, out.end);
  }

  /// After idling, the tensor engine's speed rises linearly from ramp_rate to 1 over ramp_window. The documents say
  /// that it falls back when less than half of a window was used; an idle gap of half a window does that.
  int64_t ramped(Core& c, int64_t start, int64_t duration) const {
    if (!c.ramped_before || start - c.tensor_end > ramp_window_ / 2) c.ramp_start = start;
    c.ramped_before = true;
    const int64_t into = start - c.ramp_start;
    if (into < ramp_window_) {
      const double w = static_cast<double>(ramp_window_), slope = (1 - ramp_rate_) / (2 * w);
      const double x = static_cast<double>(into), goal = ramp_rate_ * x + slope * x * x + static_cast<double>(duration);
      const double in_window = ramp_rate_ * w + slope * w * w;
      // Time at which the work done since the ramp began reaches `goal`.
      double at = w + goal - in_window;
      if (goal < in_window)
        at = slope > 0 ? (std::sqrt(ramp_rate_ * ramp_rate_ + 4 * slope * goal) - ramp_rate_) / (2 * slope)
                       : goal / ramp_rate_;
      duration = std::llround(at - x);
    }
    c.tensor_end = start + duration;
    return duration;
  }

  // ---- Transfers.

  void run_transfer(Core& c, int q, uint32_t k, const Transfer& t, Ready start) {
    QueueState& s = c.state[q];
    const int which = q - static_cast<int>(Queue::kLoad);
    s.free = start.at + t.issue_ps;
    const int64_t first = s.free + dma_start_;
    Ready begin{first, start.by, start.cause};
    int64_t end = first;
    const size_t engines = c.engine_free.size();
    // A transfer that needs fewer engines takes the next ones in turn.
    size_t e = static_cast<size_t>(t.engines) < engines ? c.next_engine : 0;
    for (int i = 0; i < t.engines; ++i) {
      const int64_t at = std::max(c.engine_free[e], first);
      if (at + t.engine_ps > end) {
        end = at + t.engine_ps;
        begin = at > first ? Ready{at, c.engine_user[e], Cause::kDmaEngine} : Ready{first, start.by, start.cause};
      }
      c.engine_free[e] = at + t.engine_ps;
      c.engine_user[e] = k;
      if (++e == engines) e = 0;
    }
    if (static_cast<size_t>(t.engines) < engines) c.next_engine = e;
    Issue& issue = c.out->issues[which][s.head];
    issue = {start.at, start.by, start.cause, false};
    if (t.hbm_ps > 0) {
      Stack& hbm = *c.stack;
      if (hbm.free > begin.at) begin = {hbm.free, hbm.user, Cause::kHbm};
      issue.hbm_bound = begin.at + t.hbm_ps > end;
      end = std::max(end, begin.at + t.hbm_ps);
      hbm.free = std::max(hbm.free, first) + t.hbm_ps;
      hbm.user = k;
    }
    InstructionTime& out = in_.instructions[k];
    out.start = begin.at;
    out.end = end;
    out.cause = begin.cause;
    out.cause_instruction = begin.by;
    // Completions are counted, so a transfer is seen when those before it in its queue are done too.
    s.visible = std::max(s.visible, end + dma_completion_);
    out_.visible[k] = s.visible;
    c.dma_engine_ps[which] += t.engine_ps * t.engines;
  }

  // ---- Meetings.

  static int queue_of(const Meet& meet) { return static_cast<int>(meet.queue); }

  /// True if every side of it is at the head of its queue and its operands are known; then `at` is when the last comes.
  bool all_have_come(const Meet& meet, int64_t* at) {
    if (meet.meeting == Meet::kAlone) return true;
    for (const MeetingPart& part : in_.meetings[meet.meeting]) {
      Core& c = cores_[part.core];
      const Meet& other = c.in->meets[part.meet];
      const int q = queue_of(other);
      if (!c.has_head(q) || c.head(q).instruction != other.instruction || !head_ready(c, q)) return false;
      *at = std::max({*at, c.state[q].free, c.state[q].ready.at});
    }
    return true;
  }

  void take_meet(Core& c, int q) {
    const Meet& meet = c.meet_of(c.head(q).instruction);
    if (meet.meeting == Meet::kAlone) {
      run_meet(c, meet, c.own_start(q));
      leave(c, q, meet.instruction);
      return;
    }
    const Meeting& meeting = in_.meetings[meet.meeting];
    Ready last;  // to come; the others wait for it
    for (const MeetingPart& part : meeting) {
      const Meet& m = meet_of(part);
      const int64_t at = cores_[part.core].own_start(queue_of(m)).at;
      if (last.by == kNoInstruction || at > last.at) last = {at, m.instruction, Cause::kPartner};
    }
    for (const MeetingPart& part : meeting) {
      const Meet& m = meet_of(part);
      const Ready own = cores_[part.core].own_start(queue_of(m));
      run_meet(cores_[part.core], m, own.at < last.at ? last : own);
    }
    end_together(meeting);
    for (const MeetingPart& part : meeting) {
      const Meet& m = meet_of(part);
      leave(cores_[part.core], queue_of(m), m.instruction);
    }
  }
  const Meet& meet_of(const MeetingPart& part) const { return in_.cores[part.core].meets[part.meet]; }

  void run_meet(Core& c, const Meet& meet, Ready start) {
    const int q = queue_of(meet);
    const uint32_t k = meet.instruction;
    const Cost& cost = c.in->costs[c.head(q).cost];
    if (cost.transfers) return run_transfer(c, q, k, cost.transfer, start);
    InstructionTime& out = in_.instructions[k];
    out.start = start.at;
    out.end = start.at + meet.duration_ps;
    out.cause = start.cause;
    out.cause_instruction = start.by;
    QueueState& s = c.state[q];
    s.free = out.end;
    s.visible = std::max(s.visible, out.end);
    out_.visible[k] = out.end;
    if (!is_dma(meet.queue)) return;
    const auto which = static_cast<size_t>(q) - index(Queue::kLoad);
    c.out->issues[which][s.head] = {start.at, start.by, start.cause, false};
    c.collective_ps[which] += meet.duration_ps;
  }

  /// What a core receives is there when the other has sent it.
  void end_together(const Meeting& meeting) {
    uint32_t slowest = kNoInstruction;
    int64_t visible = 0;
    for (const MeetingPart& part : meeting) {
      const uint32_t k = meet_of(part).instruction;
      if (slowest == kNoInstruction || in_.instructions[k].end > in_.instructions[slowest].end) slowest = k;
      visible = std::max(visible, out_.visible[k]);
    }
    for (const MeetingPart& part : meeting) {
      const Meet& m = meet_of(part);
      InstructionTime& out = in_.instructions[m.instruction];
      if (out.end < in_.instructions[slowest].end) {
        out.start = in_.instructions[slowest].start;
        out.end = in_.instructions[slowest].end;
        // The one that the slowest waited for came last: its start has a cause of its own.
        if (in_.instructions[slowest].cause_instruction != m.instruction) {
          out.cause = Cause::kPartner;
          out.cause_instruction = slowest;
        }
      }
      out_.visible[m.instruction] = visible;
      QueueState& s = cores_[part.core].state[queue_of(m)];
      s.visible = std::max(s.visible, visible);
    }
  }

  Lowered& in_;
  const int64_t semaphore_, result_latency_, dma_start_, dma_completion_, ramp_window_;
  const double ramp_rate_;
  std::vector<Core> cores_;
  std::vector<Stack> stacks_;
  Schedule out_;
};

}  // namespace

Schedule schedule(Lowered& lowered, const Chip& chip, const std::shared_ptr<BufferPool>& pool) {
  return Scheduler(lowered, chip, pool).run();
}

}  // namespace sterna
