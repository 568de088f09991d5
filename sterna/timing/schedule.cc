// SPDX-License-Identifier: Apache-2.0
//
// Each queue runs its instructions in order, so an instruction's start follows from the queue's previous one, from the
// results it waits for, and from what it shares with other queues. Only the last needs the queues to be taken in the
// order of time: DMA queues share engines and HBM, and some engines share memory ports. So the engines that share
// nothing run ahead as far as their operands are known; then the earliest instruction among the sharing queues goes
// next. That order is right: whatever still waits for an unknown operand waits, through a chain, for one of those
// heads, and so cannot start before the earliest of them.
#include "sterna/timing/schedule.h"

#include <algorithm>
#include <cmath>

namespace sterna {
namespace {

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
        engine_free_(static_cast<size_t>(int64_t{chip.dma.engines})),
        engine_user_(engine_free_.size(), kNoInstruction) {
    out_.visible = Column<int64_t>(pool);
    out_.visible.resize(in_.instructions.size());
    for (size_t i = 0; i < 2; ++i) out_.issues[i].resize(in_.order[index(Queue::kLoad) + i].size());
    for (int q = 0; q < kQueues; ++q) note_head(q);
    find_sharing();
  }

  Schedule run() {
    for (;;) {
      bool done = false;
      for (int q = 0; q < kQueues; ++q)
        if (!shares_[q]) done |= run_ahead(q);
      if (done) continue;
      const int q = earliest();
      if (q < 0) break;  // all queues are empty: waits point to earlier instructions
      take(q);
    }
    return std::move(out_);
  }

 private:
  struct Ready {
    int64_t at = 0;
    uint32_t by = kNoInstruction;
    Cause cause = Cause::kLaunch;
  };
  struct State {
    size_t head = 0;
    int64_t free = 0;     ///< when the next instruction may be issued
    int64_t visible = 0;  ///< DMA: results are seen in order
    uint32_t last = kNoInstruction;
    bool known = false;  ///< `ready` is that of the head
    Ready ready;
    Ref unknown;  ///< what the head waits for and was not known when last looked at
  };

  static size_t index(Queue q) { return static_cast<size_t>(q); }

  void find_sharing() {
    shares_[index(Queue::kLoad)] = shares_[index(Queue::kStore)] = true;
    const auto& held = in_.costs.ports_of_queues();
    for (int port = 0; port < 2; ++port) {
      const auto uses = [port](uint8_t ports) { return (ports >> port & 1) != 0; };
      if (std::count_if(held.begin(), held.end(), uses) < 2) continue;
      ports_shared_ = true;
      for (int q = 0; q < kQueues; ++q) shares_[q] = shares_[q] || uses(held[q]);
    }
  }

  bool has_head(int q) const { return state_[q].head < in_.order[q].size(); }
  const Queued& head(int q) const { return in_.order[q][state_[q].head]; }
  void note_head(int q) { next_[q] = has_head(q) ? head(q).instruction : kNoInstruction; }
  /// True if that instruction has its times: all before the head of its queue do.
  bool known(Ref instruction) const { return instruction.index() < next_[instruction.queue()]; }

  /// True if everything the head of q waits for is known; then state_[q].ready says when and why.
  bool head_ready(int q) {
    State& s = state_[q];
    if (s.known) return true;
    if (!s.unknown.none() && !known(s.unknown)) return false;
    const Queued& k = head(q);
    Ready ready;
    for (const Wait *w = in_.waits.data() + k.first_wait, *end = w + k.waits; w < end; ++w) {
      if (!known(w->producer)) {
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

  bool run_ahead(int q) {
    bool done = false;
    for (; has_head(q) && head_ready(q); done = true) take(q);
    return done;
  }

  /// The queue whose head can start first; of several, the one that comes first in the program.
  int earliest() {
    int best = -1;
    int64_t best_at = 0;
    for (int q = 0; q < kQueues; ++q) {
      if (!has_head(q) || !head_ready(q)) continue;
      const int64_t at = std::max(state_[q].free, state_[q].ready.at);
      if (best < 0 || at < best_at || (at == best_at && head(q).instruction < head(best).instruction))
        best = q, best_at = at;
    }
    return best;
  }

  void take(int q) {
    State& s = state_[q];
    const uint32_t k = head(q).instruction;
    const Cost& cost = in_.costs[head(q).cost];
    InstructionTime& out = in_.instructions[k];
    // An operand that arrives just as the engine becomes free was not what the instruction waited for.
    Ready start = s.ready;
    if (s.last != kNoInstruction && s.free >= start.at)
      start = {s.free, s.last, is_dma(static_cast<Queue>(q)) ? Cause::kQueue : Cause::kEngine};
    if (is_dma(static_cast<Queue>(q)))
      run_transfer(q, k, cost.transfer, start);
    else
      run_on_engine(q, k, cost, start);
    if (out_.visible[k] >= out_.end) {
      out_.end = out_.visible[k];
      out_.last = k;
    }
    out_.busy_ps[q] += out.duration();
    s.last = k;
    s.known = false;
    s.unknown = Ref();
    ++s.head;
    note_head(q);
  }

  void run_on_engine(int q, uint32_t k, const Cost& cost, Ready start) {
    InstructionTime& out = in_.instructions[k];
    int64_t duration = cost.duration_ps;
    if (ports_shared_) wait_for_port(q, cost.ports, start);
    if (q == static_cast<int>(Queue::kTensor) && ramp_window_ > 0) duration = ramped(start.at, duration);
    out.start = start.at;
    out.end = start.at + duration;
    out.cause = start.cause;
    out.cause_instruction = start.by;
    state_[q].free = out.end;
    out_.visible[k] = out.end + (q == static_cast<int>(Queue::kTensor) ? result_latency_ : 0);
    if (ports_shared_) hold_ports(q, cost.ports, k);
  }

  // ---- Memory ports: the engines that share one take turns.

  void wait_for_port(int q, uint8_t ports, Ready& start) const {
    for (int port = 0; port < 2; ++port) {
      if ((ports >> port & 1) == 0) continue;
      for (int other = 0; other < kQueues; ++other)
        if (other != q && port_free_[port][other] > start.at)
          start = {port_free_[port][other], port_user_[port][other], Cause::kPort};
    }
  }
  void hold_ports(int q, uint8_t ports, uint32_t k) {
    for (int port = 0; port < 2; ++port) {
      if ((ports >> port & 1) == 0) continue;
      port_free_[port][q] = in_.instructions[k].end;
      port_user_[port][q] = k;
    }
  }

  /// After idling, the tensor engine's speed rises linearly from ramp_rate to 1 over ramp_window. The documents say
  /// that it falls back when less than half of a window was used; an idle gap of half a window does that.
  int64_t ramped(int64_t start, int64_t duration) {
    if (!ramped_before_ || start - tensor_end_ > ramp_window_ / 2) ramp_start_ = start;
    ramped_before_ = true;
    const int64_t into = start - ramp_start_;
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
    tensor_end_ = start + duration;
    return duration;
  }

  // ---- Transfers.

  void run_transfer(int q, uint32_t k, const Transfer& t, Ready start) {
    State& s = state_[q];
    const int which = q - static_cast<int>(Queue::kLoad);
    s.free = start.at + t.issue_ps;
    const int64_t first = s.free + dma_start_;
    Ready begin{first, start.by, start.cause};
    int64_t end = first;
    const size_t engines = engine_free_.size();
    // A transfer that needs fewer engines takes the next ones in turn.
    size_t e = static_cast<size_t>(t.engines) < engines ? next_engine_ : 0;
    for (int i = 0; i < t.engines; ++i) {
      const int64_t at = std::max(engine_free_[e], first);
      if (at + t.engine_ps > end) {
        end = at + t.engine_ps;
        begin = at > first ? Ready{at, engine_user_[e], Cause::kDmaEngine} : Ready{first, start.by, start.cause};
      }
      engine_free_[e] = at + t.engine_ps;
      engine_user_[e] = k;
      if (++e == engines) e = 0;
    }
    if (static_cast<size_t>(t.engines) < engines) next_engine_ = e;
    Issue& issue = out_.issues[which][s.head];
    issue = {start.at, start.by, start.cause, false};
    if (t.hbm_ps > 0) {
      if (hbm_free_ > begin.at) begin = {hbm_free_, hbm_user_, Cause::kHbm};
      issue.hbm_bound = begin.at + t.hbm_ps > end;
      end = std::max(end, begin.at + t.hbm_ps);
      hbm_free_ = std::max(hbm_free_, first) + t.hbm_ps;
      hbm_user_ = k;
    }
    InstructionTime& out = in_.instructions[k];
    out.start = begin.at;
    out.end = end;
    out.cause = begin.cause;
    out.cause_instruction = begin.by;
    // Completions are counted, so a transfer is seen when those before it in its queue are done too.
    s.visible = std::max(s.visible, end + dma_completion_);
    out_.visible[k] = s.visible;
    dma_engine_ps_[which] += t.engine_ps * t.engines;
  }

 public:
  int64_t dma_engine_ps(int which) const { return dma_engine_ps_[which] / static_cast<int64_t>(engine_free_.size()); }

 private:
  Lowered& in_;
  const int64_t semaphore_, result_latency_, dma_start_, dma_completion_, ramp_window_;
  const double ramp_rate_;
  std::array<State, kQueues> state_{};
  std::array<uint32_t, kQueues + 1> next_{};  ///< the instruction at the head of each queue
  std::array<bool, kQueues> shares_{};
  bool ports_shared_ = false;
  int64_t port_free_[2][kQueues] = {};
  uint32_t port_user_[2][kQueues] = {};
  bool ramped_before_ = false;
  int64_t ramp_start_ = 0, tensor_end_ = 0;
  std::vector<int64_t> engine_free_;
  std::vector<uint32_t> engine_user_;
  size_t next_engine_ = 0;
  int64_t hbm_free_ = 0;
  uint32_t hbm_user_ = kNoInstruction;
  int64_t dma_engine_ps_[2] = {};
  Schedule out_;
};

}  // namespace

Schedule schedule(Lowered& lowered, const Chip& chip, const std::shared_ptr<BufferPool>& pool) {
  Scheduler scheduler(lowered, chip, pool);
  Schedule out = scheduler.run();
  for (int i = 0; i < 2; ++i)
    out.busy_ps[static_cast<size_t>(Queue::kLoad) + static_cast<size_t>(i)] = scheduler.dma_engine_ps(i);
  return out;
}

}  // namespace sterna
