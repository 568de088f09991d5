// SPDX-License-Identifier: Apache-2.0
// Fabric: where the ranks of one launch wait for each other. A rank is a kernel on one logical core; each of its cores
// that comes to a collective leaves a post here and is blocked until the collective has been executed.
//
// Which cores take part: a collective of SBUF tiles is between cores of one number. Tensors in HBM are shared by the
// cores of a rank, so there the fabric waits for all cores of every rank in the group, and only if that cannot be (no
// core can go on) for those of one number; where the cores of a rank ask for the very same, it is done once.
#pragma once

#include <string>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/isa/collectives.h"
#include "sterna/program/program.h"

namespace sterna {

class Fabric {
 public:
  Fabric(int ranks, int cores) : ranks_(ranks), cores_(cores), posts_(static_cast<size_t>(ranks * cores)) {}

  int ranks() const { return ranks_; }
  /// Core `core` of rank `rank` has come to `record`. True when it may go on; else it is blocked and comes again.
  Result<bool> arrive(int rank, int core, const RecordHeader& record, const Program& program, Machine& machine);
  /// No core can go on: executes what cores of one number can do without the others. False if there is nothing.
  Result<bool> resolve();
  bool waits(int rank, int core) const { return post(rank, core).record != nullptr; }
  /// "rank 0 at kernel.py:12 waits in all_reduce for ranks [0, 1]"; empty if it does not wait.
  std::string describe(int rank, int core) const;

 private:
  struct Post {
    const RecordHeader* record = nullptr;
    const Program* program = nullptr;
    Machine* machine = nullptr;
    std::vector<int> partners;
    bool done = false;
  };
  const Post& post(int rank, int core) const { return posts_[static_cast<size_t>(rank * cores_ + core)]; }
  Post& post(int rank, int core) { return posts_[static_cast<size_t>(rank * cores_ + core)]; }
  /// All of the group have come with cores of this number, to the same collective.
  bool complete(const Post& of, int core) const;
  bool same_on_all_cores(const std::vector<int>& group) const;
  Status run(const std::vector<int>& group, int core);
  Result<bool> try_all_cores(int rank, int core);

  int ranks_, cores_;
  std::vector<Post> posts_;  // by rank, then core
};

}  // namespace sterna
