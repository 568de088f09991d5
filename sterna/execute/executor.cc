// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/executor.h"

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/execute/meeting.h"
#include "sterna/isa/control.h"
#include "sterna/machine/rows.h"

namespace sterna {
namespace {

Machine::Options machine_options(const Chip& chip, const Executor::Options& options, const Executor::Seat& seat) {
  Machine::Options out;
  out.sbuf_partition_bytes = chip.sbuf.partition_bytes;
  out.psum_partition_bytes = chip.psum_partition_bytes();
  out.partitions = static_cast<int>(int64_t{chip.sbuf.partitions});
  out.uninit = options.uninit;
  out.strict = options.strict;
  out.buffers = options.buffers;
  out.shared = seat.shared;
  out.core = seat.core;
  out.rank = seat.rank;
  out.rounding_seed = options.rounding_seed;
  return out;
}

/// A fault gets the place and the name of its record, unless it has them.
Status placed(Status status, const RecordHeader& header) {
  if (status || status.error().site != 0) return status;
  status.error().site = header.site;
  status.error().message = cat(instruction_table()[header.opcode].info.mnemonic, ": ", status.error().message);
  return status;
}

/// The stream is larger than the caches, and its records lie one behind the other: fetches as many bytes as this record
/// has from a few records further on. Nothing is read, so the end of a block does not matter.
void fetch_ahead(const RecordHeader& header) {
  constexpr int kLine = 64, kAhead = 16 * kLine;
  const auto* at = reinterpret_cast<const char*>(&header) + kAhead;
  for (int b = 0; b < 8 * header.words + kLine - 1; b += kLine) __builtin_prefetch(at + b);
}

}  // namespace

Executor::Executor(const Program& program, const Chip& chip, ThreadPool* pool, Options options, Seat seat)
    : program_(&program),
      options_(std::move(options)),
      seat_(std::move(seat)),
      machine_(machine_options(chip, options_, seat_), pool, &program.tensors, &program.dynamics) {
  machine_.set_names(&program.names.all());
}

Executor::State Executor::run(size_t end, bool final, Fault* fault) {
  if (final && !final_) begin_final();
  Result<State> state = advance(std::min(end, stream().size()));
  if (state) return *state;
  *fault = std::move(state.error());
  program_->locate(*fault);
  return State::kFault;
}

void Executor::begin_final() {
  final_ = true;
  std::vector<bool> keep(program_->tensors.size(), false);
  for (uint32_t id : program_->results) keep[id] = true;
  const auto& tensors = program_->tensors;
  for (uint32_t id = 0; id < tensors.size(); ++id)
    if (tensors[id].role == TensorRole::kLocal && tensors[id].core == seat_.core && !keep[id])
      by_last_use_.push_back(id);
  std::stable_sort(by_last_use_.begin(), by_last_use_.end(),
                   [&](uint32_t a, uint32_t b) { return tensors[a].last_use < tensors[b].last_use; });
  next_release_ = 0;
}

Result<Executor::State> Executor::advance(size_t end) {
  const Stream& records = stream();
  for (;;) {
    if (!regions_.empty() && at_ == regions_.back().close) {
      const RecordHeader& opening = records[regions_.back().begin];
      STERNA_TRY(placed(next_trip(), opening));
      continue;
    }
    if (regions_.empty()) {
      if (plan_ != nullptr) STERNA_TRY(take_steps(end));
      if (at_ >= end) return State::kDone;
    }
    const RecordHeader& header = records[at_];
    if (control::opens_region(header.opcode)) {
      STERNA_TRY(placed(enter_region(header), header));
      continue;
    }
    fetch_ahead(header);
    if (seat_.meeting != nullptr && Meeting::takes(header.opcode)) {
      STERNA_ASSIGN(const bool met, meet(header));
      if (!met) return State::kBlocked;
    } else {
      STERNA_TRY(plan_ != nullptr && at_ >= plan_->noted && regions_.empty() ? note(header) : step(header));
    }
    ++at_;
    if (!regions_.empty()) continue;
    next_ = at_;
    if (at_ > next_release_) release_dead(at_ - 1);
  }
}

void Executor::use(CorePlan* plan) {
  plan_ = plan;
  next_step_ = 0;
  if (plan->noted < stream().size()) plan->steps.reserve(stream().size());
}

/// Runs records from at_ on for as long as there are steps for them.
Status Executor::take_steps(size_t end) {
  for (; next_step_ < plan_->steps.size(); ++next_step_) {
    const ReplayStep& step = plan_->steps[next_step_];
    if (step.record < at_) continue;
    if (step.record != at_ || at_ >= end) break;
    if (!step.run(step, machine_)) break;
    if ((++executed_ & 15) == 0) STERNA_TRY(look_for_interrupt());
    next_ = ++at_;
    if (at_ > next_release_) release_dead(at_ - 1);
  }
  return {};
}

/// step(), with a look at whether the instruction leaves one for the plan.
Status Executor::note(const RecordHeader& header) {
  ReplayStep noted;
  machine_.note_step_in(&noted);
  Status status = step(header);
  machine_.note_step_in(nullptr);
  plan_->noted = at_ + 1;
  if (!status || noted.run == nullptr || at_ > UINT32_MAX) return status;
  noted.record = static_cast<uint32_t>(at_);
  plan_->steps.push_back(noted);
  return {};
}

Status Executor::look_for_interrupt() {
  if (!options_.interrupted || !options_.interrupted()) return {};
  return Fault(FaultKind::kBadInput, "INTERRUPT", "Interrupted.");
}

Status Executor::step(const RecordHeader& header) {
  const TableRow& row = (*table_)[header.opcode];
  machine_.begin_instruction(header.site);
  if ((++executed_ & 15) == 0) STERNA_TRY(look_for_interrupt());
  return placed(execute(header, row), header);
}

Status Executor::execute(const RecordHeader& header, const TableRow& row) {
  if (header.flags & RecordHeader::kHasDynamic) STERNA_TRY(record_path(row, header.body()));
  if (header.opcode == control::DevicePrint::info.opcode) return print(header.body());
  return row.execute(header.body(), machine_);
}

Result<bool> Executor::meet(const RecordHeader& header) {
  machine_.begin_instruction(header.site);
  Result<bool> met = seat_.meeting->arrive(seat_.core, header, machine_);
  if (met && *met && (header.flags & RecordHeader::kHasDynamic))
    if (Status status = record_path(instruction_table()[header.opcode], header.body()); !status)
      return Fault(std::move(status.error()));
  if (met) {
    executed_ += *met;
    return met;
  }
  return std::move(placed(std::move(met.error()), header).error());
}

Result<size_t> Executor::region_end(size_t begin) const {
  const Stream& records = stream();
  int depth = 0;
  for (size_t i = begin; i < records.size(); ++i) {
    if (control::opens_region(records[i].opcode)) ++depth;
    if (records[i].opcode == control::End::info.opcode && --depth == 0) return i;
  }
  return Fault(FaultKind::kBadInput, "REGION2", "A region is not closed.");
}

/// Of a loop: a register, or the value.
Result<int64_t> Executor::bound(int32_t value, RegisterRef reg) {
  if (reg.id == UINT32_MAX) return int64_t{value};
  STERNA_ASSIGN(const int32_t held, machine_.read_reg(reg.id));
  return int64_t{held};
}

/// The condition of a while or an if.
Result<bool> Executor::holds(const RecordHeader& header) {
  const RegisterRef reg = header.opcode == control::While::info.opcode
                              ? static_cast<const control::While*>(header.body())->reg
                              : static_cast<const control::If*>(header.body())->reg;
  STERNA_ASSIGN(const int32_t held, machine_.read_reg(reg.id));
  return held != 0;
}

/// Opens the region whose first record is at at_, and goes to its first record or behind it.
Status Executor::enter_region(const RecordHeader& header) {
  machine_.begin_instruction(header.site);
  STERNA_ASSIGN(const size_t close, region_end(at_));
  Region region{at_, close};
  bool runs = true;
  if (header.opcode == control::Loop::info.opcode) {
    const auto& loop = *static_cast<const control::Loop*>(header.body());
    STERNA_ASSIGN(region.i, bound(loop.low, loop.low_reg));
    STERNA_ASSIGN(region.high, bound(loop.high, loop.high_reg));
    region.step = loop.step;
    path_.add(region.i);
    path_.add(region.high);
    path_.add(region.step);
    runs = region.i < region.high;
    if (runs) machine_.set_reg(loop.reg.id, static_cast<int32_t>(region.i));
  } else {
    STERNA_ASSIGN(runs, holds(header));
    path_.add(runs);
  }
  regions_.push_back(region);
  if (runs)
    ++at_;
  else
    leave_region();
  return look_for_interrupt();
}

/// At the end of a region's records: once more, or on.
Status Executor::next_trip() {
  Region& region = regions_.back();
  const RecordHeader& header = stream()[region.begin];
  bool again = false;
  if (header.opcode == control::Loop::info.opcode) {
    region.i += region.step;
    again = region.i < region.high;
    if (again)
      machine_.set_reg(static_cast<const control::Loop*>(header.body())->reg.id, static_cast<int32_t>(region.i));
  } else if (header.opcode == control::While::info.opcode) {
    STERNA_ASSIGN(again, holds(header));
    path_.add(again);
  }
  if (again)
    at_ = region.begin + 1;
  else
    leave_region();
  return look_for_interrupt();
}

void Executor::leave_region() {
  const size_t close = regions_.back().close;
  regions_.pop_back();
  at_ = close + 1;
  if (!regions_.empty()) return;
  next_ = at_;
  release_dead(close);
}

Status Executor::record_path(const TableRow& row, const void* body) {
  Status status;
  for_each_view(row, body, [&](const View& v, Role) {
    if (!status || v.kind == ViewKind::kStrided) return;
    const DynamicOffset& dyn = program_->dynamics[v.dynamic];
    // Columns found on chip change neither duration nor order, so the path has none of them.
    const int64_t rows = v.kind != ViewKind::kIndirect ? 1 : v.on_chip() ? 0 : v.rows();
    if (v.kind == ViewKind::kIndirect) path_.add(rows);
    for (int64_t r = 0; r < rows; ++r) {
      auto index = machine_.read_index(dyn, r);
      if (!index) {
        status = Fault(std::move(index.error()));
        return;
      }
      path_.add(v.kind == ViewKind::kIndirect ? *index : *index * dyn.multiplier);
    }
  });
  return status;
}

void Executor::release_dead(size_t index) {
  if (!final_) return;
  const auto last_use = [this] { return program_->tensors[by_last_use_[released_]].last_use; };
  while (released_ < by_last_use_.size() && last_use() <= index) machine_.release(by_last_use_[released_++]);
  next_release_ = released_ < by_last_use_.size() ? last_use() : SIZE_MAX;
}

Status Executor::print(const void* body) {
  const auto& record = *static_cast<const control::DevicePrint*>(body);
  auto opened = machine_.read_any(record.src, "tensor");
  if (!opened) return Fault(std::move(opened.error()));
  if (options_.print) options_.print(cat(program_->names[record.prefix.id], values_text(machine_, record.src)));
  return {};
}

std::string values_text(Machine& machine, const View& view) {
  auto opened = machine.read_any(view, "tensor");
  if (!opened) return opened.error().text();
  std::string out;
  const Operand& o = *opened;
  const int64_t rows = std::min<int64_t>(o.rows, 8), cols = std::min<int64_t>(o.cols, 8);
  const std::vector<ElementState> states = machine.element_states_if_partial(view);
  const bool whole = is_integer(view.dtype), is_signed = info(view.dtype).is_signed;
  float values[8];
  uint32_t bits[8];
  for (int64_t r = 0; r < rows; ++r) {
    if (whole)
      load_bits(o, r, 0, cols, bits);
    else
      load_row(o, r, 0, cols, values);
    out += "\n  [";
    for (int64_t c = 0; c < cols; ++c) {
      out += c ? ", " : "";
      if (!states.empty() && states[static_cast<size_t>(r * o.cols + c)] == ElementState::kUndefined)
        out += '?';  // never written
      else if (!whole)
        out += cat(values[c]);
      else
        out += is_signed ? cat(static_cast<int32_t>(bits[c])) : cat(bits[c]);
    }
    out += o.cols > cols ? ", ...]" : "]";
  }
  if (o.rows > rows) out += "\n  ...";
  return cat(name(view.dtype), shape_text(view), out);
}

}  // namespace sterna
