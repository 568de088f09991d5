// SPDX-License-Identifier: Apache-2.0
// Meeting: where the cores of one kernel wait for each other. A core that comes to such a record leaves a post there
// and is blocked until its partners have come too; the last to come does what is to be done for all.
#pragma once

#include <string>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/execute/fabric.h"
#include "sterna/machine/machine.h"
#include "sterna/program/program.h"

namespace sterna {

class Meeting {
 public:
  /// `fabric` is where this kernel, as rank `rank`, meets others.
  Meeting(const Program& program, int cores, Fabric* fabric, int rank)
      : program_(&program), fabric_(fabric), rank_(rank), posts_(static_cast<size_t>(cores)) {}

  /// True for the instructions of sterna/isa/cores.h, and for collectives.
  static constexpr bool takes(uint8_t opcode) { return (opcode & 0xf0) == 0x90; }
  /// Core `core` has come to `record`. True when it may go on; else it is blocked and comes again.
  Result<bool> arrive(int core, const RecordHeader& record, Machine& machine);

  bool waits(int core) const { return post(core).record != nullptr || fabric_->waits(rank_, core); }
  /// LNC7: no core can go on. Says for each where and for whom it waits, or that its program has ended.
  Fault deadlock() const;
  /// Where and for whom each core waits.
  std::string describe() const;

 private:
  struct Post {
    const RecordHeader* record = nullptr;
    Machine* machine = nullptr;
    bool met = false;
  };
  const Post& post(int core) const { return posts_[static_cast<size_t>(core)]; }
  Result<bool> exchange(int core);
  bool pass_barrier(int core);
  std::string describe(int core) const;

  const Program* program_;
  Fabric* fabric_;
  int rank_;
  std::vector<Post> posts_;  // by core
};

}  // namespace sterna
