// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/meetings.h"

#include "sterna/base/text.h"
#include "sterna/isa/cores.h"

namespace sterna {
namespace {

class Matching {
 public:
  Matching(const Program& program, Lowered& lowered)
      : program_(program), lowered_(lowered), next_(lowered.cores.size()) {}

  Status run() {
    for (;;) {
      bool progress = false;
      for (uint32_t core = 0; core < next_.size(); ++core)
        while (has_front(core) && match(core)) progress = true;
      if (progress) continue;
      // Cores of a rank that do not all come to a collective in HBM: what one can do with those of its number.
      const uint32_t stuck = first_stuck();
      if (stuck == next_.size()) return {};
      if (front(stuck).group == UINT32_MAX) return deadlock(stuck);
      ++next_[stuck];
    }
  }

 private:
  bool has_front(uint32_t core) const { return next_[core] < lowered_.cores[core].meets.size(); }
  Meet& front(uint32_t core) const { return lowered_.cores[core].meets[next_[core]]; }
  const RecordHeader& record(uint32_t core) const {
    return program_.cores[core][lowered_.instructions[front(core).instruction].record];
  }
  bool is(uint32_t core, uint8_t opcode) const { return has_front(core) && record(core).opcode == opcode; }
  const cores::SendRecv& send(uint32_t core) const { return *static_cast<const cores::SendRecv*>(record(core).body()); }
  const cores::CoreBarrier& barrier(uint32_t core) const {
    return *static_cast<const cores::CoreBarrier*>(record(core).body());
  }

  /// True if the front of `core` has found its partners, or needs none.
  bool match(uint32_t core) {
    const uint8_t opcode = record(core).opcode;
    if (opcode == cores::SendRecv::info.opcode) return match_send(core);
    if (opcode == cores::CoreBarrier::info.opcode) return match_barrier(core);
    if (front(core).group == UINT32_MAX || next_.size() == 1) return meet({core});
    return match_collective(core);
  }
  bool match_send(uint32_t core) {
    for (uint32_t other = 0; other < next_.size(); ++other)
      if (other != core && is(other, cores::SendRecv::info.opcode) &&
          send(core).meets(static_cast<int>(core), send(other), static_cast<int>(other)))
        return meet({core, other});
    return false;
  }
  bool match_barrier(uint32_t core) {
    const cores::CoreBarrier& b = barrier(core);
    if (!b.lists(static_cast<int>(core))) return meet({core});
    std::vector<uint32_t> all;
    for (int i = 0; i < b.cores.n; ++i) {
      const auto other = static_cast<uint32_t>(b.cores.value[i]);
      if (other >= next_.size() || !is(other, cores::CoreBarrier::info.opcode) ||
          !barrier(other).lists(static_cast<int>(core)))
        return false;
      all.push_back(other);
    }
    return meet(all);
  }
  bool match_collective(uint32_t core) {
    std::vector<uint32_t> all;
    for (uint32_t other = 0; other < next_.size(); ++other) {
      if (!has_front(other) || front(other).group != front(core).group) return false;
      all.push_back(other);
    }
    return meet(all);
  }

  bool meet(const std::vector<uint32_t>& with) {
    if (with.size() > 1) {
      Meeting& meeting = lowered_.meetings.emplace_back();
      for (uint32_t core : with) {
        front(core).meeting = static_cast<uint32_t>(lowered_.meetings.size() - 1);
        meeting.push_back({core, static_cast<uint32_t>(next_[core])});
      }
    }
    for (uint32_t core : with) ++next_[core];
    return true;
  }

  /// A core that is not through, one at a collective if there is any; the number of cores if all are.
  uint32_t first_stuck() const {
    auto found = static_cast<uint32_t>(next_.size());
    for (uint32_t core = 0; core < next_.size(); ++core) {
      if (!has_front(core)) continue;
      if (front(core).group != UINT32_MAX) return core;
      if (found == next_.size()) found = core;
    }
    return found;
  }
  Fault deadlock(uint32_t core) const {
    const RecordHeader& r = record(core);
    Fault fault(
        FaultKind::kRuleBroken, "LNC7",
        cat("Core ", core, " waits for ever in a ", instruction_table()[r.opcode].info.mnemonic,
            ": no other core comes to it. Both sides of a sendrecv name each other and the same pipe, and every "
            "core of a barrier reaches it."));
    fault.site = r.site;
    program_.locate(fault);
    return fault;
  }

  const Program& program_;
  Lowered& lowered_;
  std::vector<size_t> next_;  // by core
};

}  // namespace

Status match_meetings(const Program& program, Lowered& lowered) { return Matching(program, lowered).run(); }

}  // namespace sterna
