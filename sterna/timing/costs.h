// SPDX-License-Identifier: Apache-2.0
// What an instruction costs on a chip: found once for each work class of a stream, from its work() and the chip's
// formulas, and the same for all of its records.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/program/program.h"
#include "sterna/timing/model.h"

namespace sterna {

/// Memory ports that two engines share on some chips.
enum Port : uint8_t {
  kSbufPort = 1,  ///< Vector and GpSimd
  kPsumPort = 2,  ///< Vector and Scalar
};

/// What a transfer asks of the DMA system, in picoseconds.
struct Transfer {
  int64_t engine_ps = 0, issue_ps = 0, hbm_ps = 0;
  int32_t engines = 1;
};

/// What the walk does at a record.
enum class Step : uint8_t {
  kUnknown,
  kSkip,
  kAlloc,
  kLoop,
  kWhile,
  kIf,
  kEnd,
  kRegister,
  kEngine,
  kDma,
  kMeet,  ///< other cores or ranks take part
};

/// Where a view stands in the records of a class, and how far it reaches from its place.
struct OperandShape {
  uint16_t offset;  ///< in the record's struct
  Role role;
  Memory memory;
  bool plain;         ///< on chip, its place known beforehand: what follows is enough to find its box
  uint8_t size;       ///< bytes of an element
  uint32_t rows;      ///< from its first partition to its last
  int64_t low, high;  ///< bytes in a partition, from its place
};

struct Cost {
  bool known = false;
  Step step = Step::kUnknown;
  Queue queue = Queue::kSync;
  uint8_t opcode = 0;
  uint8_t ports = 0;  ///< bits of Port that the instruction holds
  bool dynamic = false;
  uint8_t operands = 0;
  bool transfers = false;      ///< `transfer` says what it takes, not duration_ps
  uint32_t first_operand = 0;  ///< in Costs::operand()
  int64_t duration_ps = 0;     ///< on an engine; of a collective, each record has its own
  Transfer transfer;           ///< of DMA
  double multiply_adds = 0, dma_bytes = 0, hbm_read = 0, hbm_written = 0, hbm_ps = 0;
};

/// What of a chip's description took part.
struct Used {
  std::bitset<256> opcodes;
  bool issue_static = false, issue_hardware = false, issue_software = false;
  bool transfers = false, gpsimd_dma = false;
  bool psum_fill = false;  ///< PSUM was filled, on the queue that the chip's description names
  std::vector<const InstructionCost*> default_costs;  ///< of instructions without an entry of their own
};

class Costs {
 public:
  Costs(const Program& program, const Stream& stream, const Chip& chip, const TimingOptions& options);

  /// The cost of a class, found when the walk first meets it. COST1: the chip's description has none.
  Result<const Cost*> find(uint32_t work_class);
  const Cost& operator[](uint32_t work_class) const { return costs_[work_class]; }
  const OperandShape* operands(const Cost& cost) const { return operands_.data() + cost.first_operand; }
  /// The chip's formula for an opcode whose cost was found.
  Formula formula(uint8_t opcode) const { return plans_[opcode].cost->formula; }
  /// What the walk does at a record of this opcode; kUnknown until a default is taken.
  Step step(uint8_t opcode) const { return plans_[opcode].step; }
  /// Calls f(view, role) for every view of the record.
  template <class F>
  void views(const RecordHeader& header, const F& f) const {
    const Plan& plan = plans_[header.opcode];
    for (int i = 0; i < plan.views; ++i)
      if (const View* v = view_at(plan.slot[i], header)) f(*v, plan.slot[i].role);
  }
  /// Ports that the instructions of each queue hold.
  const std::array<uint8_t, kQueues>& ports_of_queues() const { return ports_of_queues_; }
  Used& used() { return used_; }
  const Used& used() const { return used_; }

 private:
  static constexpr size_t kMostViews = 20;  // dma_compute has a result, sixteen sources and room to grow

  /// What is the same for every record of one opcode.
  struct Plan {
    struct Slot {
      uint16_t offset;
      Role role;
      bool scalar;
    };
    Step step = Step::kUnknown;
    uint8_t views = 0;
    Slot slot[kMostViews] = {};
    const InstructionCost* cost = nullptr;
  };

  static Step step_of(const TableRow& row, const InstructionCost* cost);
  static Step step_of(Formula formula);
  static const View* view_at(const Plan::Slot& slot, const RecordHeader& header) {
    const char* at = static_cast<const char*>(header.body()) + slot.offset;
    if (slot.scalar) {
      const Scalar& scalar = *reinterpret_cast<const Scalar*>(at);
      return scalar.is_view ? &scalar.view : nullptr;
    }
    const View* view = reinterpret_cast<const View*>(at);
    return view->empty() ? nullptr : view;
  }
  void make_plans();
  Status take_default_cost(const RecordHeader& header, EngineId engine);
  void list_operands(const RecordHeader& header, Cost& cost);
  Queue queue_of(const RecordHeader& header, const Work& work);
  int64_t duration(const RecordHeader& header, const Work& work, const InstructionCost& cost, Queue queue) const;
  void fill_transfer(const Work& work, const InstructionCost& from, Cost& cost);
  void fill_meeting(const RecordHeader& header, const Work& work, const InstructionCost& from, Cost& cost);
  double sharers() const;
  uint8_t ports_of(const RecordHeader& header, const Work& work, const InstructionCost& cost, Queue queue) const;

  const Program& program_;
  const WorkClasses& classes_;
  const Chip& chip_;
  const TimingOptions options_;
  Rules rules_;
  std::array<Plan, 256> plans_{};
  std::vector<Cost> costs_;  // by work class
  std::vector<OperandShape> operands_;
  std::array<uint8_t, kQueues> ports_of_queues_{};
  Used used_;
};

}  // namespace sterna
