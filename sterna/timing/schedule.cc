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
  Scheduler(Lowered& lowered, const Chip& chip)
      : in_(lowered),
        semaphore_(picoseconds(chip.semaphore.latency)),
        result_latency_(picoseconds(chip.tensor.result_latency)),
        dma_start_(picoseconds(chip.dma.start)),
        dma_completion_(picoseconds(chip.dma.completion)),
        ramp_window_(picoseconds(chip.tensor.ramp_window)),
        ramp_rate_(chip.tensor.ramp_rate),
        engine_free_(static_cast<size_t>(int64_t{chip.dma.engines})),
        engine_user_(engine_free_.size(), kNoInstruction) {
    out_.visible.assign(in_.instructions.size(), -1);
    for (int i = 0; i < 2; ++i) out_.issues[i].resize(in_.transfers[i].size());
    find_sharing();
  }

  Schedule run() {
    size_t left = in_.instructions.size();
    while (left > 0) {
      size_t done = 0;
      for (int q = 0; q < kQueues; ++q)
        if (!shares_[q]) done += run_ahead(q);
      left -= done;
      if (done > 0) continue;
      const int q = earliest();
      if (q < 0) break;  // cannot happen: waits point to earlier instructions
      take(q);
      --left;
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
  };

  static size_t index(Queue q) { return static_cast<size_t>(q); }

  void find_sharing() {
    shares_[index(Queue::kLoad)] = shares_[index(Queue::kStore)] = true;
    bool uses[2][kQueues] = {};
    for (size_t k = 0; k < in_.ports.size(); ++k)
      for (int port = 0; port < 2; ++port)
        uses[port][index(in_.instructions[k].queue)] |= (in_.ports[k] >> port & 1) != 0;
    for (const auto& port : uses) {
      const int users = std::count(port, port + kQueues, true) > 1;
      for (int q = 0; q < kQueues && users; ++q) shares_[q] = shares_[q] || port[q];
      ports_shared_ = ports_shared_ || users;
    }
  }

  bool has_head(int q) const { return state_[q].head < in_.order[q].size(); }
  uint32_t head(int q) const { return in_.order[q][state_[q].head]; }

  /// True if everything the head of q waits for is known; then state_[q].ready says when and why.
  bool head_ready(int q) {
    State& s = state_[q];
    if (s.known) return true;
    const uint32_t k = in_.order[q][s.head];
    Ready ready;
    for (uint32_t w = in_.wait_begin[k], end = in_.wait_begin[k + 1]; w < end; ++w) {
      const Wait& wait = in_.waits[w];
      int64_t at = out_.visible[wait.producer];
      if (at < 0) return false;
      const InstructionTime& producer = in_.instructions[wait.producer];
      if (wait.after_read && producer.queue == Queue::kTensor) at = producer.end;
      at += semaphore_;
      if (at > ready.at) ready = {at, wait.producer, wait.cause};
    }
    s.ready = ready;
    s.known = true;
    return true;
  }

  size_t run_ahead(int q) {
    size_t done = 0;
    for (; has_head(q) && head_ready(q); ++done) take(q);
    return done;
  }

  /// The queue whose head can start first; of several, the one that comes first in the program.
  int earliest() {
    int best = -1;
    int64_t best_at = 0;
    for (int q = 0; q < kQueues; ++q) {
      if (!has_head(q) || !head_ready(q)) continue;
      const int64_t at = std::max(state_[q].free, state_[q].ready.at);
      if (best < 0 || at < best_at || (at == best_at && head(q) < head(best))) best = q, best_at = at;
    }
    return best;
  }

  void take(int q) {
    State& s = state_[q];
    const uint32_t k = in_.order[q][s.head];
    InstructionTime& out = in_.instructions[k];
    // An operand that arrives just as the engine becomes free was not what the instruction waited for.
    Ready start = s.ready;
    if (s.last != kNoInstruction && s.free >= start.at)
      start = {s.free, s.last, is_dma(static_cast<Queue>(q)) ? Cause::kQueue : Cause::kEngine};
    if (is_dma(static_cast<Queue>(q)))
      run_transfer(q, k, start);
    else
      run_on_engine(q, k, start);
    if (out_.visible[k] >= out_.end) {
      out_.end = out_.visible[k];
      out_.last = k;
    }
    out_.busy_ps[q] += out.duration();
    s.last = k;
    ++s.head;
    s.known = false;
  }

  void run_on_engine(int q, uint32_t k, Ready start) {
    InstructionTime& out = in_.instructions[k];
    int64_t duration = out.end;
    if (ports_shared_) wait_for_port(q, k, start);
    if (q == static_cast<int>(Queue::kTensor) && ramp_window_ > 0) duration = ramped(start.at, duration);
    out.start = start.at;
    out.end = start.at + duration;
    out.cause = start.cause;
    out.cause_instruction = start.by;
    state_[q].free = out.end;
    out_.visible[k] = out.end + (q == static_cast<int>(Queue::kTensor) ? result_latency_ : 0);
    if (ports_shared_) hold_ports(q, k);
  }

  // ---- Memory ports: the engines that share one take turns.

  void wait_for_port(int q, uint32_t k, Ready& start) const {
    for (int port = 0; port < 2; ++port) {
      if ((in_.ports[k] >> port & 1) == 0) continue;
      for (int other = 0; other < kQueues; ++other)
        if (other != q && port_free_[port][other] > start.at)
          start = {port_free_[port][other], port_user_[port][other], Cause::kPort};
    }
  }
  void hold_ports(int q, uint32_t k) {
    for (int port = 0; port < 2; ++port) {
      if ((in_.ports[k] >> port & 1) == 0) continue;
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

  void run_transfer(int q, uint32_t k, Ready start) {
    State& s = state_[q];
    const int which = q - static_cast<int>(Queue::kLoad);
    const Transfer& t = in_.transfers[which][s.head];
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

Schedule schedule(Lowered& lowered, const Chip& chip) {
  Scheduler scheduler(lowered, chip);
  Schedule out = scheduler.run();
  for (int i = 0; i < 2; ++i)
    out.busy_ps[static_cast<size_t>(Queue::kLoad) + static_cast<size_t>(i)] = scheduler.dma_engine_ps(i);
  return out;
}

}  // namespace sterna
