// SPDX-License-Identifier: Apache-2.0
// Regions: which records of one core's stream lie in which region (loop, while, if).
#pragma once

#include <cstdint>
#include <vector>

#include "sterna/program/program.h"

namespace sterna {

class Regions {
 public:
  Regions() = default;
  /// Those of a whole stream.
  explicit Regions(const Stream& stream);

  /// Record `at`, behind all that were added, joins. False: it is an end without an open region.
  bool add(uint32_t at, uint8_t opcode);
  /// How many are open behind the last record.
  int depth() const { return depth_; }

  /// Every region that is open at `producer` is open at `consumer`, which comes after it, too.
  bool open_until(uint32_t producer, uint32_t consumer) const;

  /// `first`, or the beginning of the outermost region that holds `first` and not `allocated`: what a trip leaves in
  /// the tensor, the next one finds.
  uint32_t retract(uint32_t allocated, uint32_t first) const;

  /// `until`, or the end of the outermost region that holds `until` and not `from`. A tensor allocated inside a region
  /// begins anew in each trip, so inside it its last use is enough.
  uint32_t extend(uint32_t from, uint32_t until) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Region {
    uint32_t first, last;  ///< records; the last of an open one is kNone
    uint32_t parent;
  };
  std::vector<Region>::const_iterator after(uint32_t record) const;

  std::vector<Region> list_;  // by first
  uint32_t innermost_ = kNone;
  int depth_ = 0;
};

/// An edge leads forward between two records (SCHED2), and out of no region: how often the producer runs there is not
/// known (SCHED3; docs/decisions/0011-loops-are-regions.md).
Status check_edge(const Stream& stream, const Regions& regions, uint32_t producer, uint32_t consumer);

}  // namespace sterna
