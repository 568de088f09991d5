// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/to_trace.h"

#include "sterna/program/placement.h"

namespace sterna {
namespace {

void copy_names(const Program& program, Trace& out) {
  out.names = program.names.all();
  for (uint32_t i = 0; i < program.sites.size(); ++i) {
    const Site& s = program.sites[i];
    out.sites.push_back({s.file, s.function, s.line, s.parent});
  }
}

void copy_instructions(const Program& program, const Timing& timing, Trace& out) {
  // Mnemonics join the program's names.
  std::vector<uint32_t> what(256);
  TraceColumns& c = out.instructions;
  for (const InstructionTime& i : timing.instructions) {
    const RecordHeader& header = program.cores[i.core][i.record];
    uint32_t& name = what[header.opcode];
    if (name == 0) {
      name = static_cast<uint32_t>(out.names.size());
      out.names.emplace_back(instruction_table()[header.opcode].info.mnemonic);
    }
    c.record.push_back(i.record);
    c.what.push_back(name);
    c.queue.push_back(static_cast<uint8_t>(i.core * kQueues + static_cast<int>(i.queue)));
    c.start_ps.push_back(i.start);
    c.duration_ps.push_back(i.duration());
    c.cause.push_back(static_cast<uint8_t>(i.cause));
    c.cause_instruction.push_back(i.cause_instruction == kNoInstruction ? kNoCause : i.cause_instruction);
    c.site.push_back(header.site);
    c.iteration.push_back(header.iteration);
  }
}

void copy_tensors(const Program& program, const Chip& chip, Trace& out) {
  const auto placement = place_tensors(program, chip);
  for (uint32_t id = 0; id < program.tensors.size(); ++id) {
    const TensorInfo& t = program.tensors[id];
    TraceTensor& x = out.tensors.emplace_back();
    x.name = t.name;
    x.memory = sterna::name(t.memory);
    x.dtype = sterna::name(t.dtype);
    x.shape.assign(t.shape, t.shape + t.ndim);
    x.site = t.site;
    if (!t.on_chip() || !placement) continue;
    x.byte = placement->byte[id];
    x.partition = placement->partition[id];
  }
}

void copy_metrics(const Timing& timing, Trace& out) {
  const auto add = [&](const char* what, const char* unit, double value) {
    out.metrics.push_back({what, unit, value});
  };
  add("multiply_adds", "count", timing.multiply_adds);
  add("dma_bytes", "B", timing.dma_bytes);
  add("hbm_read", "B", timing.hbm_read);
  add("hbm_written", "B", timing.hbm_written);
  add("hbm_share", "1", timing.hbm_share());
  add("sbuf_peak", "B", static_cast<double>(timing.sbuf_peak));
  add("sbuf_capacity", "B", static_cast<double>(timing.sbuf_capacity));
  add("psum_peak", "B", static_cast<double>(timing.psum_peak));
  add("psum_capacity", "B", static_cast<double>(timing.psum_capacity));
  for (size_t q = 0; q < kQueues; ++q)
    out.metrics.push_back(
        {"critical_" + std::string(kQueueNames[q]), "ps", static_cast<double>(timing.critical_ps[q])});
  add("critical_hbm", "ps", static_cast<double>(timing.critical_ps[kQueues]));
  add("critical_latency", "ps", static_cast<double>(timing.critical_ps[kQueues + 1]));
}

}  // namespace

Trace to_trace(const Program& program, std::span<const Path> paths, const Chip& chip, const Timing& timing) {
  Trace out;
  out.paths.assign(paths.begin(), paths.end());
  out.paths.resize(program.cores.size());
  out.program = program.name;
  out.target = chip.name;
  out.bound = timing.bound;
  out.kernel_ps = timing.kernel_ps;
  out.total_ps = timing.total_ps;
  copy_names(program, out);
  for (uint32_t core = 0; core < timing.cores.size(); ++core)
    for (size_t q = 0; q < kQueues; ++q)
      out.queues.push_back(
          {std::string(kQueueNames[q]), timing.cores[core].counts[q], timing.cores[core].busy_ps[q], core});
  for (std::string_view cause : kCauseNames) out.causes.emplace_back(cause);
  copy_instructions(program, timing, out);
  copy_tensors(program, chip, out);
  copy_metrics(timing, out);
  for (const LineTime& line : timing.lines) out.lines.push_back({line.site, line.ps});
  for (const UncertainNumber& u : timing.uncertain)
    out.uncertain.push_back({u.key, u.text, u.source, std::string(sterna::name(u.trust))});
  out.notes = timing.notes;
  return out;
}

}  // namespace sterna
