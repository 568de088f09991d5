// SPDX-License-Identifier: Apache-2.0
#include "sterna/execute/executor.h"

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"
#include "sterna/machine/rows.h"

namespace sterna {
namespace {

Machine::Options machine_options(const Chip& chip, const Executor::Options& options) {
  Machine::Options out;
  out.sbuf_partition_bytes = chip.sbuf.partition_bytes;
  out.psum_partition_bytes = chip.psum_partition_bytes();
  out.partitions = static_cast<int>(int64_t{chip.sbuf.partitions});
  out.uninit = options.uninit;
  out.strict = options.strict;
  out.buffers = options.buffers;
  return out;
}

bool opens_region(uint8_t opcode) {
  return opcode == control::Loop::info.opcode || opcode == control::While::info.opcode ||
         opcode == control::If::info.opcode;
}

}  // namespace

Executor::Executor(const Program& program, const Chip& chip, ThreadPool* pool, Options options)
    : program_(&program),
      options_(std::move(options)),
      machine_(machine_options(chip, options_), pool, &program.tensors, &program.dynamics) {
  machine_.set_names(&program.names.all());
}

Executor::State Executor::run(size_t end, bool final, Fault* fault) {
  end = std::min(end, program_->cores[0].size());
  if (final && !final_) {
    final_ = true;
    std::vector<bool> keep(program_->tensors.size(), false);
    for (uint32_t id : program_->results) keep[id] = true;
    for (uint32_t id = 0; id < program_->tensors.size(); ++id)
      if (program_->tensors[id].role == TensorRole::kLocal && !keep[id]) by_last_use_.push_back(id);
    const auto& tensors = program_->tensors;
    std::stable_sort(by_last_use_.begin(), by_last_use_.end(),
                     [&](uint32_t a, uint32_t b) { return tensors[a].last_use < tensors[b].last_use; });
  }
  Status status = run_range(next_, end);
  if (status) return State::kDone;
  *fault = std::move(status.error());
  program_->locate(*fault);
  return State::kFault;
}

Status Executor::run_range(size_t begin, size_t end) {
  const Stream& stream = program_->cores[0];
  for (size_t i = begin; i < end;) {
    const RecordHeader& header = stream[i];
    if (opens_region(header.opcode)) {
      machine_.begin_instruction(header.site);
      STERNA_ASSIGN(const size_t close, region_end(i));
      ++region_depth_;
      Status status = header.opcode == control::Loop::info.opcode    ? run_loop(i, close)
                      : header.opcode == control::While::info.opcode ? run_while(i, close)
                                                                     : run_if(i, close);
      --region_depth_;
      if (!status) {
        if (status.error().site == 0) status.error().site = header.site;
        return status;
      }
      i = close + 1;
      next_ = std::max(next_, i);
      if (region_depth_ == 0) release_dead(close);
      continue;
    }
    // The stream is larger than the caches: fetch the record after next while this one runs.
    if (i + 2 < end)
      for (int line = 0; line < 4; ++line)
        __builtin_prefetch(reinterpret_cast<const char*>(&stream[i + 2]) + 64 * line);
    STERNA_TRY(step(i));
    ++i;
    if (region_depth_ > 0) continue;
    next_ = i;
    if (final_) release_dead(i - 1);
  }
  return {};
}

Status Executor::look_for_interrupt() {
  if (!options_.interrupted || !options_.interrupted()) return {};
  return Fault(FaultKind::kBadInput, "INTERRUPT", "Interrupted.");
}

Status Executor::step(size_t index) {
  const RecordHeader& header = program_->cores[0][index];
  const TableRow& row = instruction_table()[header.opcode];
  machine_.begin_instruction(header.site);
  if ((++executed_ & 3) == 0) STERNA_TRY(look_for_interrupt());
  Status status;
  if (header.flags & RecordHeader::kHasDynamic) status = record_path(row, header.body());
  if (status) {
    if (header.opcode == control::DevicePrint::info.opcode)
      status = print(header.body());
    else
      status = row.execute(header.body(), machine_);
  }
  if (!status && status.error().site == 0) {
    status.error().site = header.site;
    status.error().message = cat(row.info.mnemonic, ": ", status.error().message);
  }
  return status;
}

Result<size_t> Executor::region_end(size_t begin) const {
  const Stream& stream = program_->cores[0];
  int depth = 0;
  for (size_t i = begin; i < stream.size(); ++i) {
    if (opens_region(stream[i].opcode)) ++depth;
    if (stream[i].opcode == control::End::info.opcode && --depth == 0) return i;
  }
  return Fault(FaultKind::kBadInput, "REGION2", "A region is not closed.");
}

Status Executor::run_loop(size_t begin, size_t close) {
  const auto& loop = *static_cast<const control::Loop*>(program_->cores[0][begin].body());
  const int64_t low = loop.low_reg.id == UINT32_MAX ? loop.low : machine_.reg(loop.low_reg.id);
  const int64_t high = loop.high_reg.id == UINT32_MAX ? loop.high : machine_.reg(loop.high_reg.id);
  path_.add(low);
  path_.add(high);
  path_.add(loop.step);
  for (int64_t i = low; i < high; i += loop.step) {
    machine_.set_reg(loop.reg.id, static_cast<int32_t>(i));
    STERNA_TRY(look_for_interrupt());
    STERNA_TRY(run_range(begin + 1, close));
  }
  return {};
}

Status Executor::run_while(size_t begin, size_t close) {
  const auto& loop = *static_cast<const control::While*>(program_->cores[0][begin].body());
  while (machine_.reg(loop.reg.id) != 0) {
    path_.add(1);
    STERNA_TRY(run_range(begin + 1, close));
    STERNA_TRY(look_for_interrupt());
  }
  path_.add(0);
  return {};
}

Status Executor::run_if(size_t begin, size_t close) {
  const auto& branch = *static_cast<const control::If*>(program_->cores[0][begin].body());
  const bool taken = machine_.reg(branch.reg.id) != 0;
  path_.add(taken);
  return taken ? run_range(begin + 1, close) : Status();
}

Status Executor::record_path(const TableRow& row, const void* body) {
  Status status;
  for_each_view(row, body, [&](const View& v, Role) {
    if (!status || v.kind == ViewKind::kStrided) return;
    const DynamicOffset& dyn = program_->dynamics[v.dynamic];
    const int64_t rows = v.kind == ViewKind::kIndirect ? v.rows() : 1;
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
  while (released_ < by_last_use_.size() && program_->tensors[by_last_use_[released_]].last_use <= index)
    machine_.release(by_last_use_[released_++]);
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
