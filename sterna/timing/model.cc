// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/model.h"

#include <algorithm>
#include <cmath>

#include "sterna/hardware/schema.h"
#include "sterna/timing/critical.h"
#include "sterna/timing/formulas.h"
#include "sterna/timing/lower.h"
#include "sterna/timing/schedule.h"

namespace sterna {
namespace {

/// Collects the numbers of the chip file that took part and are not documented or measured.
class Uncertainty {
 public:
  Uncertainty(const Chip& chip, std::vector<UncertainNumber>& out) : chip_(chip), out_(out) {}

  void use(const Number& number) {
    if (!number.is_uncertain()) return;
    for (const UncertainNumber& known : out_)
      if (known.key == number.key) return;
    out_.push_back({number.key, number.text(), number.source, number.trust});
  }

  void of_engine(const Engine& engine) {
    for (const Number* n : {static_cast<const Number*>(&engine.clock), static_cast<const Number*>(&engine.min_interval),
                            static_cast<const Number*>(&engine.fixed), static_cast<const Number*>(&engine.start)})
      use(*n);
  }

  void of_transfers(const Used& used, bool hbm) {
    const Dma& dma = chip_.dma;
    use(dma.engines);
    use(dma.rate);
    use(dma.start);
    use(dma.descriptor);
    use(dma.completion);
    if (used.issue_static) use(dma.issue_static);
    if (used.issue_hardware) use(dma.issue_hardware);
    if (used.issue_software) use(dma.issue_software);
    if (hbm) {
      use(chip_.hbm.bandwidth);
      use(chip_.hbm.stacks);
      use(chip_.hbm.efficiency);
    }
  }

  void of_link(const LoweredCore& core) {
    const Link& link = chip_.link;
    if (core.link_inside_chip) use(link.core_rate), use(link.core_latency);
    if (core.link_between_chips) use(link.chip_rate), use(link.chip_latency);
  }

  void of_instructions(const Used& used) {
    for (const TableRow& row : instruction_table()) {
      if (row.info.mnemonic.empty() || !used.opcodes[row.info.opcode]) continue;
      const InstructionCost* cost = chip_.instruction_cost(row.info.mnemonic);
      if (cost == nullptr) continue;
      of_cost(*cost);
      if (cost->formula == Formula::kDmaTranspose) use(chip_.dma.transpose_rate);
      if (cost->formula == Formula::kDmaCompute) use(chip_.dma.compute_rate);
    }
    for (const InstructionCost* cost : used.default_costs) of_cost(*cost);
  }
  void of_cost(const InstructionCost& cost) {
    visit_constants(cost,
                    [this](std::string_view, const Number& number, const KeySpec&, std::string_view) { use(number); });
  }

 private:
  const Chip& chip_;
  std::vector<UncertainNumber>& out_;
};

void list_uncertain(const Chip& chip, const Lowered& lowered, Timing& out) {
  Uncertainty uncertain(chip, out.uncertain);
  const auto count = [&](Queue q) { return out.counts[static_cast<size_t>(q)]; };
  const auto any = [&](auto&& of_core) { return std::any_of(lowered.cores.begin(), lowered.cores.end(), of_core); };
  uncertain.use(chip.launch.cost);
  if (lowered.cores.size() > 1) uncertain.use(chip.launch.second_core);
  if (count(Queue::kTensor) > 0) {
    uncertain.of_engine(chip.tensor);
    uncertain.use(chip.tensor.result_latency);
    uncertain.use(chip.tensor.ramp_window);
    uncertain.use(chip.tensor.ramp_rate);
  }
  if (count(Queue::kVector) > 0) uncertain.of_engine(chip.vector);
  if (count(Queue::kScalar) > 0) uncertain.of_engine(chip.scalar);
  if (count(Queue::kGpSimd) > 0) uncertain.of_engine(chip.gpsimd);
  if (count(Queue::kSync) > 0) uncertain.use(chip.sync.clock);
  if (any([](const LoweredCore& c) { return !c.waits.empty(); }) || !lowered.meetings.empty())
    uncertain.use(chip.semaphore.latency);
  for (const LoweredCore& core : lowered.cores) {
    const Used& used = core.costs.used();
    if (used.transfers) uncertain.of_transfers(used, lowered.hbm_ps > 0);
    if (used.gpsimd_dma) uncertain.use(chip.dma.gpsimd_rate);
    uncertain.of_link(core);
  }
  if (count(Queue::kStore) > 0) uncertain.use(chip.scheduling.separate_store_queue);
  for (const LoweredCore& core : lowered.cores) uncertain.of_instructions(core.costs.used());
}

void list_notes(const Chip& chip, const Lowered& lowered, Timing& out) {
  const auto any = [&](auto&& of_core) { return std::any_of(lowered.cores.begin(), lowered.cores.end(), of_core); };
  if (lowered.cores.size() > 1)
    out.notes.emplace_back(
        "The cores start together and wait for each other in sendrecv, core_barrier and collectives only: nothing else "
        "orders their accesses to shared HBM.");
  if (any([](const LoweredCore& c) { return c.link_inside_chip || c.link_between_chips; }))
    out.notes.emplace_back(
        "Every rank is taken to come to a collective when this one does, and each collective to be a ring at the rate "
        "of "
        "its slowest step, on links and DMA engines of its own; small ones are faster on the chip, in other shapes.");
  if (!any([](const LoweredCore& c) { return c.costs.used().psum_fill; })) return;
  Uncertainty uncertain(chip, out.uncertain);
  uncertain.use(chip.scheduling.psum_memset_on_gpsimd);
  if (chip.scheduling.psum_memset_on_gpsimd)
    out.notes.emplace_back(
        "A fill of PSUM is counted on the GpSimd queue: published times rule out that it takes its turn on the vector "
        "engine.");
}

/// What each core did, their mean and their sum.
void list_cores(const Lowered& lowered, const Schedule& times, Timing& out) {
  const auto cores = static_cast<int64_t>(lowered.cores.size());
  for (size_t i = 0; i < lowered.cores.size(); ++i) {
    CoreTiming& core = out.cores.emplace_back();
    core.end_ps = times.cores[i].end;
    core.busy_ps = times.cores[i].busy_ps;
    for (size_t q = 0; q < kQueues; ++q) {
      core.counts[q] = static_cast<int64_t>(lowered.cores[i].order[q].size());
      out.counts[q] += core.counts[q];
      out.busy_ps[q] += core.busy_ps[q];
    }
  }
  for (int64_t& busy : out.busy_ps) busy /= cores;
}

/// Cores of one kernel lie side by side, and so do the stacks they use.
int64_t stacks_of(const Program& program, const Chip& chip) {
  const int64_t per_stack = std::max<int64_t>(1, chip.cores_per_stack());
  return (static_cast<int64_t>(program.cores.size()) + per_stack - 1) / per_stack;
}

}  // namespace

Result<double> multiply_adds(const Program& program, std::span<const Path> paths, const Chip& chip,
                             const TimingOptions& options) {
  Lowered lowered(program);
  STERNA_TRY(lower(program, paths, chip, Placement(), options, lowered));
  return lowered.multiply_adds;
}

Result<Timing> predict(const Program& program, std::span<const Path> paths, const Chip& chip,
                       const TimingOptions& options) {
  STERNA_ASSIGN(const Placement placement, place_tensors(program, chip));
  Lowered lowered(program);
  STERNA_TRY(lower(program, paths, chip, placement, options, lowered));
  Timing out;
  const Schedule times = schedule(lowered, chip, program.cores[0].pool());
  list_cores(lowered, times, out);
  out.kernel_ps = times.end;
  out.total_ps = times.end + std::llround(chip.launch.cost * 1000);
  if (program.cores.size() > 1) out.total_ps += std::llround(chip.launch.second_core * 1000);
  out.hbm_ps = std::llround(lowered.hbm_ps) / stacks_of(program, chip);
  out.dma_bytes = lowered.dma_bytes;
  out.hbm_read = lowered.hbm_read;
  out.hbm_written = lowered.hbm_written;
  out.multiply_adds = lowered.multiply_adds;
  out.sbuf_peak = placement.sbuf_peak;
  out.psum_peak = placement.psum_peak;
  out.sbuf_capacity = chip.sbuf_usable_bytes();
  out.psum_capacity = chip.psum_partition_bytes();
  find_critical_path(program, lowered, times, out);
  list_uncertain(chip, lowered, out);
  list_notes(chip, lowered, out);
  out.instructions = std::move(lowered.instructions);
  return out;
}

}  // namespace sterna
