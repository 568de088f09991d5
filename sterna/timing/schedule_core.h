// SPDX-License-Identifier: Apache-2.0
// The state of a core while its instructions are scheduled: how far each queue has come, and what its queues share.
// What starts when, and in which order queues are taken, is in schedule.cc.
#pragma once

#include <algorithm>

#include "sterna/timing/schedule.h"

namespace sterna::scheduling {

inline size_t index(Queue q) { return static_cast<size_t>(q); }

/// When, after which instruction and why something can start.
struct Ready {
  int64_t at = 0;
  uint32_t by = kNoInstruction;
  Cause cause = Cause::kLaunch;
};
struct QueueState {
  size_t head = 0;
  int64_t free = 0;     ///< when the next instruction may be issued
  int64_t visible = 0;  ///< DMA: results are seen in order
  uint32_t last = kNoInstruction;
  bool known = false;  ///< `ready` is that of the head
  Ready ready;
  Ref unknown;  ///< what the head waits for and was not known when last looked at
};
/// HBM that several cores may share.
struct Stack {
  int64_t free = 0;
  uint32_t user = kNoInstruction;
};
struct Core {
  const LoweredCore* in = nullptr;
  CoreSchedule* out = nullptr;
  Stack* stack = nullptr;
  std::array<QueueState, kQueues> state{};
  std::array<uint32_t, kQueues> next{};  ///< the instruction at the head of each queue
  std::array<bool, kQueues> shares{};
  bool ports_shared = false;
  int64_t port_free[2][kQueues] = {};
  uint32_t port_user[2][kQueues] = {};
  bool ramped_before = false;
  int64_t ramp_start = 0, tensor_end = 0;
  std::vector<int64_t> engine_free;
  std::vector<uint32_t> engine_user;
  size_t next_engine = 0;
  int64_t dma_engine_ps[kDmaQueues] = {}, collective_ps[kDmaQueues] = {};

  /// What meets takes its turn too, so a queue that has nothing but that need not share otherwise.
  void find_sharing() {
    for (Queue q : {Queue::kLoad, Queue::kStore, Queue::kExchange}) shares[index(q)] = true;
    for (const Meet& meet : in->meets) shares[index(meet.queue)] = true;
    const auto& held = in->costs.ports_of_queues();
    for (int port = 0; port < 2; ++port) {
      const auto uses = [port](uint8_t ports) { return (ports >> port & 1) != 0; };
      if (std::count_if(held.begin(), held.end(), uses) < 2) continue;
      ports_shared = true;
      for (int q = 0; q < kQueues; ++q) shares[q] = shares[q] || uses(held[q]);
    }
  }

  bool has_head(int q) const { return state[q].head < in->order[q].size(); }
  const Queued& head(int q) const { return in->order[q][state[q].head]; }
  void note_head(int q) { next[q] = has_head(q) ? head(q).instruction : kNoInstruction; }
  /// True if that instruction has its times: all before the head of its queue do.
  bool known(Ref instruction) const { return instruction.index() < next[instruction.queue()]; }

  /// When and why the head of q, whose operands are known, can start by itself. An operand that arrives just as the
  /// engine becomes free was not what the instruction waited for.
  Ready own_start(int q) const {
    const QueueState& s = state[q];
    if (s.last != kNoInstruction && s.free >= s.ready.at)
      return {s.free, s.last, is_dma(static_cast<Queue>(q)) ? Cause::kQueue : Cause::kEngine};
    return s.ready;
  }

  bool head_meets(int q) const { return in->costs[head(q).cost].step == Step::kMeet; }
  const Meet& meet_of(uint32_t instruction) const {
    return *std::partition_point(in->meets.begin(), in->meets.end(),
                                 [instruction](const Meet& m) { return m.instruction < instruction; });
  }

  // ---- Memory ports: the engines that share one take turns.

  void wait_for_port(int q, uint8_t ports, Ready& start) const {
    for (int port = 0; port < 2; ++port) {
      if ((ports >> port & 1) == 0) continue;
      for (int other = 0; other < kQueues; ++other)
        if (other != q && port_free[port][other] > start.at)
          start = {port_free[port][other], port_user[port][other], Cause::kPort};
    }
  }
  void hold_ports(int q, uint8_t ports, uint32_t k, int64_t until) {
    for (int port = 0; port < 2; ++port) {
      if ((ports >> port & 1) == 0) continue;
      port_free[port][q] = until;
      port_user[port][q] = k;
    }
  }
};

}  // namespace sterna::scheduling
