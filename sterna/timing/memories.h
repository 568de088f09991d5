// SPDX-License-Identifier: Apache-2.0
// Where views lie: the access maps of SBUF, PSUM and the tensors in HBM whose order matters, and the box that a view
// takes in its map.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sterna/hardware/chip.h"
#include "sterna/program/placement.h"
#include "sterna/program/program.h"
#include "sterna/timing/access_map.h"
#include "sterna/timing/costs.h"

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

  /// The same for a plain operand, whose extent is known beforehand and lies inside its tensor.
  AccessMap& map(Memory memory) { return memory == Memory::kPsum ? psum_ : sbuf_; }
  Box box(const OperandShape& shape, const View& v) const {
    const int64_t place = int64_t{placement_.byte[v.tensor]} + v.offset * shape.size;
    const int64_t row = int64_t{placement_.partition[v.tensor]} + v.partition;
    const int64_t columns = shape.memory == Memory::kPsum ? psum_columns_ : sbuf_columns_;
    return {least(row, partitions_), least(row + shape.rows, partitions_),
            least(static_cast<uint64_t>(place + shape.low) / kUnit, columns),
            least(static_cast<uint64_t>(place + shape.high + kUnit - 1) / kUnit, columns)};
  }

 private:
  static constexpr int64_t kUnit = 4;  // bytes on chip; places of smaller elements are widened to it

  /// A tensor in HBM as rows of `pitch` bytes, columns of `unit` bytes.
  struct Hbm {
    int64_t pitch, unit;
    AccessMap map;
  };

  static uint32_t least(uint64_t x, int64_t most) {
    return static_cast<uint32_t>(std::min(x, static_cast<uint64_t>(most)));
  }
  Box chip_box(const Access& access, int64_t columns) const;
  Box hbm_box(const Access& access, const Hbm& hbm) const;

  const Program& program_;
  const Placement& placement_;
  int64_t partitions_, sbuf_columns_, psum_columns_;
  AccessMap sbuf_, psum_;
  std::vector<std::unique_ptr<Hbm>> hbm_;  // by tensor
};

}  // namespace sterna
