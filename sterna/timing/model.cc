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
  const Used& used = lowered.costs.used();
  const auto count = [&](Queue q) { return out.counts[static_cast<size_t>(q)]; };
  uncertain.use(chip.launch.cost);
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
  if (!lowered.waits.empty()) uncertain.use(chip.semaphore.latency);
  if (count(Queue::kLoad) + count(Queue::kStore) > 0) uncertain.of_transfers(used, lowered.hbm_ps > 0);
  if (count(Queue::kStore) > 0) uncertain.use(chip.scheduling.separate_store_queue);
  uncertain.of_instructions(used);
  if (!used.psum_fill) return;
  uncertain.use(chip.scheduling.psum_memset_on_gpsimd);
  if (chip.scheduling.psum_memset_on_gpsimd)
    out.notes.emplace_back(
        "A fill of PSUM is counted on the GpSimd queue: published times rule out that it takes its turn on the vector "
        "engine.");
}

}  // namespace

Result<Timing> predict(const Program& program, const Path& path, const Chip& chip, const TimingOptions& options) {
  STERNA_ASSIGN(const Placement placement, place_tensors(program, chip));
  const Stream& stream = program.cores[0];
  Lowered lowered(program, stream, chip, options);
  STERNA_TRY(lower(program, path, chip, placement, lowered));
  Timing out;
  const Schedule times = schedule(lowered, chip, stream.pool());
  for (size_t q = 0; q < kQueues; ++q) out.counts[q] = static_cast<int64_t>(lowered.order[q].size());
  out.busy_ps = times.busy_ps;
  out.kernel_ps = times.end;
  out.total_ps = times.end + std::llround(chip.launch.cost * 1000);
  out.hbm_ps = std::llround(lowered.hbm_ps);
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
  out.instructions = std::move(lowered.instructions);
  return out;
}

}  // namespace sterna
