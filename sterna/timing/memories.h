// SPDX-License-Identifier: Apache-2.0
// Where views lie: the access maps of SBUF, PSUM and the tensors in HBM whose order matters, and the box that a view
// takes in its map.
#pragma once

#include <memory>
#include <vector>

#include "sterna/hardware/chip.h"
#include "sterna/program/placement.h"
#include "sterna/program/program.h"
#include "sterna/timing/access_map.h"

namespace sterna {

/// One operand of an instruction as it ran.
struct Access {
  const View* view = nullptr;
  Role role = Role::kIn;
  int64_t extra = 0;   ///< what its dynamic offset added, in elements
  bool whole = false;  ///< rows picked one by one: taken as all of its tensor
};

class Memories {
 public:
  Memories(const Program& program, const Chip& chip, const Placement& placement);

  /// From here on the order of accesses to this tensor in HBM matters.
  void track_hbm(uint32_t tensor);
  /// A tensor without an address begins its life at its place.
  void allocate(uint32_t tensor);
  /// The map and the box of an access; null if its order does not matter.
  AccessMap* find(const Access& access, Box* box);

 private:
  static constexpr int64_t kUnit = 4;  // bytes on chip; places of smaller elements are widened to it

  /// A tensor in HBM as rows of `pitch` bytes, columns of `unit` bytes.
  struct Hbm {
    int64_t pitch, unit;
    AccessMap map;
  };

  Box chip_box(const Access& access, int64_t columns) const;
  Box hbm_box(const Access& access, const Hbm& hbm) const;

  const Program& program_;
  const Placement& placement_;
  int64_t partitions_, sbuf_columns_, psum_columns_;
  AccessMap sbuf_, psum_;
  std::vector<std::unique_ptr<Hbm>> hbm_;  // by tensor
};

}  // namespace sterna
