// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/formulas.h"

#include <algorithm>
#include <cmath>

namespace sterna {

double wide_factor(const Work& work, const InstructionCost& cost, const Engine& engine, const Features& features) {
  if (!cost.wide) return 1;
  if (!work.narrow && !(work.narrow8 && features.wide_float8)) return 1;
  return work.all_sbuf && work.contiguous ? engine.wide_contiguous : engine.wide;
}

double elements_cycles(const Work& work, const InstructionCost& cost, const Engine& engine, const Features& features,
                       bool strided) {
  double stream = work.elements * cost.rate(work.fast_cases) / wide_factor(work, cost, engine, features);
  if (strided) stream /= engine.stride_rate;
  return std::max<double>(engine.min_interval, stream) +
         (work.accumulator_read ? double{engine.accumulator_read} : 0.0);
}

double start_elements_cycles(const Work& work, const InstructionCost& cost, const Engine& engine) {
  return engine.start + work.elements * cost.per_element;
}

double gather_cycles(const Work& work, const InstructionCost& cost, const Engine& engine) {
  const double e = std::max(1.0, work.per_index);
  const double width = cost.gather_width * e;
  const double per_cycle = (cost.gather_base + width) / width / std::min(4.0 / work.element_bytes, e);
  return engine.start + work.elements / per_cycle;
}

double top_k_cycles(const Work& work, const InstructionCost& cost) {
  return work.elements * cost.per_element + work.outputs * cost.per_output;
}

double fixed_cycles(const InstructionCost& cost) { return cost.cycles; }

double matmul_cycles(const Work& work, const TensorEngine& engine) {
  double passes = 1;
  if (work.fp32_matmul) {
    passes = static_cast<double>(int64_t{engine.fp32_passes});
    if (work.is_transpose) passes /= engine.fp32_transpose_speedup;
    if (work.passes == 0) passes /= engine.onezero_speedup;  // an operand of ones and zeros
  }
  double cycles = passes * std::max(std::min<double>(engine.min_interval, work.stationary), work.moving);
  if (!engine.load_hidden) cycles += work.stationary / engine.load_speedup;
  return cycles;
}

double tensor_transpose_cycles(const Work& work, const TensorEngine& engine) {
  const double passes =
      work.fp32_matmul ? static_cast<double>(int64_t{engine.fp32_passes}) / engine.fp32_transpose_speedup : 1;
  return passes * std::max(work.moving, std::min<double>(engine.min_interval, work.stationary));
}

double vector_transpose_cycles(const Work& work, const Engine& engine) {
  return std::max<double>(engine.min_interval, work.elements);
}

const Engine* engine_of(const Chip& chip, EngineId id) {
  switch (id) {
    case EngineId::kTensor: return &chip.tensor;
    case EngineId::kVector: return &chip.vector;
    case EngineId::kScalar: return &chip.scalar;
    case EngineId::kGpSimd: return &chip.gpsimd;
    default: return nullptr;
  }
}

double engine_ns(const Work& work, const InstructionCost& cost, const Chip& chip, bool strided) {
  const Engine* engine = engine_of(chip, work.engine);
  if (engine == nullptr) return fixed_cycles(cost) / chip.sync.clock;
  const bool tensor = work.engine == EngineId::kTensor;
  double cycles = 0;
  switch (cost.formula) {
    case Formula::kElements: cycles = elements_cycles(work, cost, *engine, chip.features, strided); break;
    case Formula::kStartElements: cycles = start_elements_cycles(work, cost, *engine); break;
    case Formula::kGather: cycles = gather_cycles(work, cost, *engine); break;
    case Formula::kTopK: cycles = top_k_cycles(work, cost); break;
    case Formula::kFixed: cycles = fixed_cycles(cost); break;
    case Formula::kMatmul: cycles = matmul_cycles(work, chip.tensor); break;
    case Formula::kTranspose:
      cycles = tensor ? tensor_transpose_cycles(work, chip.tensor) : vector_transpose_cycles(work, *engine);
      break;
    default: return 0;
  }
  if (work.dynamic) cycles = std::max<double>(cycles, engine->dynamic_interval);
  return (cycles + (tensor ? 0.0 : double{engine->fixed})) / engine->clock;
}

const Real& dma_issue(const Work& work, const Chip& chip) {
  switch (work.dge) {
    case DgeMode::kSoftware: return chip.dma.issue_software;
    case DgeMode::kHardware: return chip.dma.issue_hardware;
    default: break;
  }
  // Descriptors with addresses known beforehand lie ready in HBM; others are made when the address is known.
  if (!work.dynamic) return chip.dma.issue_static;
  return chip.features.hardware_dge ? chip.dma.issue_hardware : chip.dma.issue_software;
}

DmaDemand dma_demand(const Work& work, const InstructionCost& cost, const Chip& chip, double sharers) {
  DmaDemand out;
  const Dma& dma = chip.dma;
  double rate = dma.rate;
  double descriptors = std::max(1.0, work.descriptors);
  if (cost.formula == Formula::kDmaTranspose) {
    rate *= work.hbm_read > 0 ? dma.transpose_rate : dma.transpose_rate_sbuf;
    descriptors = std::max(1.0, work.partitions);  // the engine turns whole blocks, not elements
  } else if (cost.formula == Formula::kDmaCompute) {
    rate *= dma.compute_rate;
  }
  const double engines = static_cast<double>(int64_t{dma.engines});
  const bool on_chip = work.hbm_read == 0 || work.hbm_written == 0;
  // Partitions are dealt out in equal runs; a copy inside HBM has none and is cut at will.
  const double rows = on_chip ? std::max(1.0, work.partitions) : engines;
  const double per_engine = std::ceil(rows / engines);
  out.engines = static_cast<int>(std::ceil(rows / per_engine));
  const double part = per_engine / rows;
  out.engine_ns = std::max(1.0, descriptors * part) * dma.descriptor + work.bytes * part / rate;
  out.issue_ns = dma_issue(work, chip);
  const double stack = chip.hbm_stack_rate() * chip.hbm.efficiency / sharers;
  out.hbm_ns = (work.hbm_read + work.hbm_written) / stack;
  return out;
}

double barrier_ns(const Chip& chip) { return chip.semaphore.latency; }

double gpsimd_send_ns(double bytes, const Chip& chip) {
  return chip.gpsimd.fixed / chip.gpsimd.clock + bytes / chip.dma.gpsimd_rate;
}

Hop hop_of(const Link& link, bool several_chips) {
  if (several_chips) return {link.chip_rate, link.chip_latency};
  return {link.core_rate, link.core_latency};
}

double ring_ns(double bytes, int ranks, const Hop& hop) {
  const double n = ranks;
  return (n - 1) / n * bytes / hop.rate + (n - 1) * hop.latency_ns;
}

double all_reduce_ns(double bytes, int ranks, const Hop& hop) { return 2 * ring_ns(bytes, ranks, hop); }

double all_to_all_ns(double bytes, int ranks, const Hop& hop) {
  if (ranks <= 1) return 0;
  return (ranks - 1.0) / ranks * bytes / hop.rate + hop.latency_ns;
}

double permute_ns(double bytes, const Hop& hop) { return bytes / hop.rate + hop.latency_ns; }

double collective_ns(Formula formula, double bytes, int ranks, const Hop& hop) {
  switch (formula) {
    case Formula::kAllReduce: return all_reduce_ns(bytes, ranks, hop);
    case Formula::kAllToAll: return all_to_all_ns(bytes, ranks, hop);
    case Formula::kPermute: return permute_ns(bytes, hop);
    default: return ring_ns(bytes, ranks, hop);
  }
}

}  // namespace sterna
