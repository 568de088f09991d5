// SPDX-License-Identifier: Apache-2.0
// Builder: the one way a Program comes to be. Front ends, the text form and C++ code describe tensors and instructions
// here; the builder completes, checks and records them. It belongs to one thread at a time and is never global.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/machine.h"
#include "sterna/program/program.h"
#include "sterna/program/regions.h"

namespace sterna {

class Builder {
 public:
  /// `chip` must outlive the builder. `strict` turns what only the official simulator accepts into faults.
  Builder(const Chip& chip, bool strict, std::shared_ptr<BufferPool> pool = nullptr);

  Program& program() { return program_; }
  const Program& program() const { return program_; }
  const Chip& chip() const { return *chip_; }

  /// A tensor and, unless it is a parameter, the record that allocates it. Faults: TEN1 (dims), TEN2 (partitions), TEN3
  /// (address), TYPE2 (dtype not on this chip), LNC5 (a shared tensor that another core made otherwise).
  /// The n-th shared HBM tensor of a name (or without one) of each core is one tensor.
  Result<uint32_t> add_tensor(TensorInfo info);
  const TensorInfo& tensor(uint32_t id) const { return program_.tensors[id]; }
  uint32_t add_register() { return program_.register_count++; }
  uint32_t add_dynamic(const DynamicOffset& offset);
  /// The row of one of the last few offsets if it is the same: operands of one instruction that move alike share a row,
  /// as an instruction that reads and writes one place compares them.
  uint32_t share_dynamic(const DynamicOffset& offset);

  // --- cores of one kernel, recorded one at a time
  /// How many cores the kernel has, before anything is recorded.
  void set_cores(int count);
  int cores() const { return static_cast<int>(program_.cores.size()); }
  /// The core that records what follows.
  void set_core(int core) { core_ = rules_.core = core; }
  int core() const { return core_; }

  /// Site of the records that follow.
  void set_site(uint32_t site) { site_ = site; }
  uint32_t site() const { return site_; }

  /// A default-constructed instruction to fill in. Only one may be open; it joins the program by commit().
  void* begin(const TableRow& row);
  /// Of the open instruction's views with .indirect(): their index is shared by as many partitions as in its engine.
  /// For front ends, whose views do not know yet which instruction takes them.
  void read_indices_by_engine();
  /// Checks the open instruction and records it; on a fault nothing is recorded.
  Status commit(uint32_t label = 0);
  /// begin, copy, commit for C++ code: `builder.record(vector_engine::TensorTensor{...})`.
  template <class I>
  Status record(const I& instruction) {
    *static_cast<I*>(begin(instruction_table()[I::info.opcode])) = instruction;
    return commit();
  }

  /// `consumer` waits for `producer`; both are records of this core. Faults: SCHED2, SCHED3 (check_edge).
  Status add_edge(uint32_t producer, uint32_t consumer);
  void add_result(uint32_t tensor) { program_.results.push_back(tensor); }
  size_t size() const { return stream().size(); }
  std::vector<Warning>& warnings() { return warnings_; }
  void warn(std::string_view rule, std::string_view message);
  int open_regions() const { return regions_[static_cast<size_t>(core_)].depth(); }

 private:
  Stream& stream() { return program_.cores[static_cast<size_t>(core_)]; }
  const Stream& stream() const { return program_.cores[static_cast<size_t>(core_)]; }
  Status check_tensor(TensorInfo& info) const;
  Result<uint32_t> shared_with_other_cores(const TensorInfo& info);
  Status check_views(const TableRow& row, const void* body);
  void touch(const TableRow& row, const void* body, RecordHeader& header);

  const Chip* chip_;
  Program program_;
  std::shared_ptr<BufferPool> buffers_;
  Rules rules_;
  std::vector<Warning> warnings_;
  uint32_t site_ = 0;
  RecordHeader* open_ = nullptr;
  const TableRow* open_row_ = nullptr;
  int core_ = 0;
  std::vector<Regions> regions_{1};  // by core
  // The shared HBM tensors of one name, in the order in which they were made, and how many of them each core made.
  struct SharedTensors {
    std::vector<uint32_t> ids;
    std::vector<uint32_t> made;  // by core
  };
  std::unordered_map<uint32_t, SharedTensors> shared_;  // by name
  std::array<bool, 256> absent_{};                      ///< by opcode: not on this chip
};

}  // namespace sterna
