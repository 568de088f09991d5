// SPDX-License-Identifier: Apache-2.0
// WorkClasses: which records of a stream ask for the same work. Records of one class are equal but for what work() does
// not look at: which tensors they touch and where in them, which registers, which names. So what one of them asks of
// its engine is found once for all of them. Equality is compared in full; a hash only finds candidates.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sterna {

struct RecordHeader;

class WorkClasses {
 public:
  /// The class of a record, a new one if no earlier record is like it. The record must stay where it is.
  uint32_t find(const RecordHeader& record);
  uint32_t size() const { return static_cast<uint32_t>(examples_.size()); }
  /// The first record of a class.
  const RecordHeader& example(uint32_t id) const { return *examples_[id]; }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = kFree;
  };
  static constexpr uint32_t kFree = UINT32_MAX;

  uint32_t look_up(const RecordHeader& record);
  Slot& free_slot(uint32_t key);
  void grow();

  std::vector<const RecordHeader*> examples_;
  std::vector<Slot> slots_;               // by hash; a power of two of them
  std::array<uint32_t, 64> recent_ = {};  // by site and opcode: a line mostly records the same again
};

}  // namespace sterna
