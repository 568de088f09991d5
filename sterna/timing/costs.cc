// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/costs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sterna/base/text.h"
#include "sterna/isa/collectives.h"
#include "sterna/isa/control.h"
#include "sterna/isa/vector_move.h"
#include "sterna/timing/formulas.h"

namespace sterna {
namespace {

int64_t picoseconds(double ns) { return std::llround(ns * 1000); }

/// True if neighbours along the innermost dimension lie `bytes` or more apart.
bool is_strided(const View& v, int64_t bytes) {
  for (int d = v.ndim - 1; d >= 1; --d)
    if (v.dims[d].count > 1)
      return std::abs(v.dims[d].stride) * static_cast<int64_t>(size_of(v.dtype)) >= bytes && v.dims[d].stride != 1;
  return false;
}

OperandShape shape_of(const View& v, uint16_t offset, Role role) {
  OperandShape out{};
  out.offset = offset;
  out.role = role;
  out.memory = v.memory;
  out.plain = v.on_chip() && v.kind == ViewKind::kStrided;
  out.size = static_cast<uint8_t>(size_of(v.dtype));
  int64_t low = 0, high = 0;
  for (int d = 1; d < v.ndim; ++d) {
    const int64_t reach = int64_t{v.dims[d].count - 1} * v.dims[d].stride;
    (reach < 0 ? low : high) += reach;
  }
  out.low = low * out.size;
  out.high = (high + 1) * out.size;
  if (out.plain) out.rows = static_cast<uint32_t>(int64_t{v.rows() - 1} * v.dims[0].stride + 1);
  return out;
}

}  // namespace

Costs::Costs(const Program& program, const Stream& stream, const Chip& chip, const TimingOptions& options)
    : program_(program),
      classes_(stream.work_classes()),
      chip_(chip),
      options_(options),
      rules_{&chip, &program.tensors, &program.dynamics},
      costs_(classes_.size()) {
  make_plans();
}

void Costs::make_plans() {
  for (const TableRow& row : instruction_table()) {
    if (row.info.mnemonic.empty()) continue;
    Plan& plan = plans_[row.info.opcode];
    plan.cost = chip_.instruction_cost(row.info.mnemonic);
    plan.step = step_of(row, plan.cost);
    for (const FieldSpec& field : row.field_list()) {
      if (field.type != FieldType::kView && field.type != FieldType::kScalar) continue;
      if (plan.views < kMostViews)
        plan.slot[plan.views++] = {field.offset, field.role, field.type == FieldType::kScalar};
    }
  }
}

Step Costs::step_of(const TableRow& row, const InstructionCost* cost) {
  switch (row.info.opcode) {
    case control::Alloc::info.opcode: return Step::kAlloc;
    case control::Loop::info.opcode: return Step::kLoop;
    case control::While::info.opcode: return Step::kWhile;
    case control::If::info.opcode: return Step::kIf;
    case control::End::info.opcode: return Step::kEnd;
    case control::DevicePrint::info.opcode: return Step::kSkip;  // the host's work
    case control::RegisterMove::info.opcode:
    case collectives::RankId::info.opcode:
    case collectives::RingRankId::info.opcode:
    case control::RegisterLoad::info.opcode:
    case control::RegisterStore::info.opcode: return Step::kRegister;
    default: break;
  }
  if (cost == nullptr) return Step::kUnknown;
  return step_of(cost->formula);
}

Step Costs::step_of(Formula formula) {
  if (formula == Formula::kFree) return Step::kSkip;
  if (formula >= Formula::kSend) return Step::kMeet;
  return formula >= Formula::kDma ? Step::kDma : Step::kEngine;
}

Result<const Cost*> Costs::find(uint32_t work_class) {
  Cost& cost = costs_[work_class];
  if (cost.known) return &cost;
  const RecordHeader& header = classes_.example(work_class);
  cost.step = plans_[header.opcode].step;
  cost.opcode = header.opcode;
  cost.dynamic = (header.flags & RecordHeader::kHasDynamic) != 0;
  cost.known = true;
  if (cost.step != Step::kUnknown && cost.step < Step::kRegister) return &cost;

  const Work work = instruction_table()[header.opcode].work(header.body(), rules_);
  if (cost.step == Step::kUnknown) STERNA_TRY(take_default_cost(header, work.engine));
  cost.step = plans_[header.opcode].step;
  const InstructionCost& from = *plans_[header.opcode].cost;
  list_operands(header, cost);
  used_.opcodes.set(header.opcode);
  if (cost.step == Step::kDma) {
    fill_transfer(work, from, cost);
  } else if (cost.step == Step::kMeet) {
    fill_meeting(header, work, from, cost);
    return &cost;
  } else {
    cost.queue = queue_of(header, work);
    cost.duration_ps = duration(header, work, from, cost.queue);
  }
  cost.ports = ports_of(header, work, from, cost.queue);
  ports_of_queues_[static_cast<size_t>(cost.queue)] |= cost.ports;
  cost.multiply_adds = work.multiply_adds;
  return &cost;
}

/// The cost that the chip's description has for whatever else runs on that engine.
Status Costs::take_default_cost(const RecordHeader& header, EngineId engine) {
  const std::string_view mnemonic = instruction_table()[header.opcode].info.mnemonic;
  const InstructionCost* cost = chip_.cost_or_default(mnemonic, name(engine));
  if (cost == nullptr) {
    Fault fault(FaultKind::kBug, "COST1",
                cat("The description of ", chip_.name, " gives no cost for ", mnemonic,
                    " and no default for the engine ", name(engine), "."));
    fault.site = header.site;
    program_.locate(fault);
    return fault;
  }
  Plan& plan = plans_[header.opcode];
  plan.cost = cost;
  plan.step = step_of(cost->formula);
  used_.default_costs.push_back(cost);
  return {};
}

void Costs::list_operands(const RecordHeader& header, Cost& cost) {
  cost.first_operand = static_cast<uint32_t>(operands_.size());
  views(header, [&](const View& v, Role role) {
    const auto offset = reinterpret_cast<const char*>(&v) - static_cast<const char*>(header.body());
    operands_.push_back(shape_of(v, static_cast<uint16_t>(offset), role));
    ++cost.operands;
  });
}

Queue Costs::queue_of(const RecordHeader& header, const Work& work) {
  switch (work.engine) {
    case EngineId::kTensor: return Queue::kTensor;
    case EngineId::kScalar: return Queue::kScalar;
    case EngineId::kGpSimd: return Queue::kGpSimd;
    case EngineId::kVector:
      if (header.opcode == vector_engine::Memset::info.opcode &&
          static_cast<const vector_engine::Memset*>(header.body())->dst.memory == Memory::kPsum) {
        used_.psum_fill = true;
        return chip_.scheduling.psum_memset_on_gpsimd ? Queue::kGpSimd : Queue::kVector;
      }
      return Queue::kVector;
    default: return Queue::kSync;
  }
}

int64_t Costs::duration(const RecordHeader& header, const Work& work, const InstructionCost& cost, Queue queue) const {
  bool strided = false;
  const Engine* engine = engine_of(chip_, work.engine);
  if (engine != nullptr && engine->stride_bytes > 0)
    views(header, [&](const View& v, Role) { strided = strided || is_strided(v, engine->stride_bytes); });
  Work counted = work;
  if (queue == Queue::kGpSimd) counted.engine = EngineId::kGpSimd;
  return picoseconds(engine_ns(counted, cost, chip_, strided));
}

void Costs::fill_transfer(const Work& work, const InstructionCost& from, Cost& cost) {
  cost.queue = work.store && chip_.scheduling.separate_store_queue ? Queue::kStore : Queue::kLoad;
  cost.transfers = used_.transfers = true;
  const DmaDemand demand = dma_demand(work, from, chip_, sharers());
  cost.transfer = {picoseconds(demand.engine_ns), picoseconds(demand.issue_ns), picoseconds(demand.hbm_ns),
                   demand.engines};
  cost.dma_bytes = work.bytes;
  cost.hbm_read = work.hbm_read;
  cost.hbm_written = work.hbm_written;
  cost.hbm_ps = demand.hbm_ns * 1000;
  const Real* issue = &dma_issue(work, chip_);
  used_.issue_static |= issue == &chip_.dma.issue_static;
  used_.issue_hardware |= issue == &chip_.dma.issue_hardware;
  used_.issue_software |= issue == &chip_.dma.issue_software;
}

/// What is done together holds no memory port: it moves by DMA or not at all.
void Costs::fill_meeting(const RecordHeader& header, const Work& work, const InstructionCost& from, Cost& cost) {
  if (from.formula == Formula::kBarrier) {
    cost.queue = queue_of(header, work);
    cost.duration_ps = picoseconds(barrier_ns(chip_));
  } else if (from.formula == Formula::kSend && work.engine == EngineId::kGpSimd && chip_.dma.gpsimd_rate > 0) {
    cost.queue = Queue::kGpSimd;
    cost.duration_ps = picoseconds(gpsimd_send_ns(work.bytes, chip_));
    cost.dma_bytes = work.bytes;
    used_.gpsimd_dma = true;
  } else if (from.formula == Formula::kSend) {
    fill_transfer(work, from, cost);
    cost.queue = Queue::kExchange;
  } else {
    cost.queue = Queue::kExchange;
    cost.dma_bytes = work.bytes;
    cost.hbm_read = work.hbm_read;
    cost.hbm_written = work.hbm_written;
  }
}

/// Cores of this program that share a stack take turns on it in the schedule; others halve, third, ... its bandwidth.
double Costs::sharers() const {
  const auto own = std::min<size_t>(program_.cores.size(), static_cast<size_t>(chip_.cores_per_stack()));
  return std::max(1.0, options_.cores_on_stack / std::max(1.0, static_cast<double>(own)));
}

uint8_t Costs::ports_of(const RecordHeader& header, const Work& work, const InstructionCost& cost, Queue queue) const {
  if (queue != Queue::kVector && queue != Queue::kScalar &&
      !(queue == Queue::kGpSimd && work.engine == EngineId::kGpSimd))
    return 0;
  bool sbuf = false, psum = false;
  views(header, [&](const View& v, Role) {
    sbuf = sbuf || v.memory == Memory::kSbuf;
    psum = psum || v.memory == Memory::kPsum;
  });
  uint8_t ports = 0;
  if (queue != Queue::kScalar && sbuf) {
    const bool wide = queue == Queue::kGpSimd || wide_factor(work, cost, chip_.vector, chip_.features) > 1;
    if (chip_.ports.vector_gpsimd_exclusive_sbuf || (chip_.ports.wide_mode_excludes_gpsimd && wide)) ports |= kSbufPort;
  }
  if (queue != Queue::kGpSimd && psum && chip_.ports.vector_scalar_exclusive_psum) ports |= kPsumPort;
  return ports;
}

}  // namespace sterna
