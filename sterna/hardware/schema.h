// SPDX-License-Identifier: Apache-2.0
// The keys of a chip file: one list that the loader, the printer and provenance all walk.
#pragma once

#include "sterna/hardware/chip.h"
#include "sterna/hardware/units.h"

namespace sterna {

/// What a key's value must be.
struct KeySpec {
  Dimension dimension = {};
  bool required = true;
  bool positive = true;     ///< false: zero is allowed too. Nothing in a chip file is negative
  double absent_value = 0;  ///< of an optional key that no file states: the neutral value
};

namespace key {
constexpr KeySpec of(const Dimension& d) { return {d, true, true, 0}; }
constexpr KeySpec or_zero(const Dimension& d) { return {d, true, false, 0}; }
constexpr KeySpec optional(const Dimension& d, double neutral) { return {d, false, false, neutral}; }
inline constexpr KeySpec kCount = of(dimension::kCount);
inline constexpr KeySpec kElements = of(dimension::kElements);
inline constexpr KeySpec kBytes = of(dimension::kBytes);
inline constexpr KeySpec kTime = of(dimension::kTime);
inline constexpr KeySpec kCycles = of(dimension::kCycles);
inline constexpr KeySpec kFrequency = of(dimension::kFrequency);
inline constexpr KeySpec kRate = of(dimension::kByteRate);
inline constexpr KeySpec kRatio = of(dimension::kRatio);
inline constexpr KeySpec kSpeedup = optional(dimension::kRatio, 1);
inline constexpr KeySpec kFlag = {dimension::kRatio, true, false, 0};
inline constexpr KeySpec kFeature = {dimension::kRatio, false, false, 0};  // not stated means no
}  // namespace key

/// Calls visit(key, field, spec, meaning) for every number of a chip outside its instruction table.
template <class ChipType, class Visit>
void visit_numbers(ChipType& c, Visit&& visit) {
  visit("chip.generation", c.generation, key::kCount, "NKI's nc_version");
  visit("chip.cores", c.cores, key::kCount, "physical NeuronCores");
  visit("chip.logical_default", c.logical_default, key::kCount, "physical cores in a logical core by default");
  visit("chip.logical_max", c.logical_max, key::kCount, "most cores in a logical core");

  auto& t = c.tensor;
  visit("engine.tensor.clock", t.clock, key::kFrequency, "one moving column enters per cycle");
  visit("engine.tensor.rows", t.rows, key::of(dimension::kLanes), "contraction rows of the array");
  visit("engine.tensor.columns", t.columns, key::of(dimension::kLanes), "output columns of the array");
  visit("engine.tensor.min_interval", t.min_interval, key::kCycles, "least cycles between two instructions");
  visit("engine.tensor.dynamic_interval", t.dynamic_interval, key::kCycles, "the same with an address from a register");
  visit("engine.tensor.fp32_passes", t.fp32_passes, key::kCount, "passes of an fp32 matmul");
  visit("engine.tensor.onezero_speedup", t.onezero_speedup, key::kRatio, "fp32 with an operand of ones and zeros");
  visit("engine.tensor.double_row", t.double_row, key::kSpeedup, "fp8 contraction rows per array row");
  visit("engine.tensor.mx_rows", t.mx_rows, key::kSpeedup, "x4-packed fp8 contraction rows per array row");
  visit("engine.tensor.fp4_rows", t.fp4_rows, key::kSpeedup, "x4-packed fp4 contraction rows per array row");
  visit("engine.tensor.load_speedup", t.load_speedup, key::kRatio, "loading stationary data against moving");
  visit("engine.tensor.load_hidden", t.load_hidden, key::kFlag, "that load hides behind the matmul before");
  visit("engine.tensor.result_latency", t.result_latency, key::kTime, "end of issue until visible in PSUM");
  visit("engine.tensor.fp32_transpose_speedup", t.fp32_transpose_speedup, key::kSpeedup, "against four passes");
  visit("engine.tensor.background_transpose_speedup", t.background_transpose_speedup, key::kSpeedup,
        "of a chain of transposes");
  visit("engine.tensor.ramp_window", t.ramp_window, key::optional(dimension::kTime, 0), "speeding up after idling");
  visit("engine.tensor.ramp_rate", t.ramp_rate, key::kSpeedup, "speed when that window begins");

  auto& v = c.vector;
  visit("engine.vector.clock", v.clock, key::kFrequency, "");
  visit("engine.vector.lanes", v.lanes, key::of(dimension::kLanes), "partitions at once");
  visit("engine.vector.min_interval", v.min_interval, key::kCycles, "least cycles between two instructions");
  visit("engine.vector.fixed", v.fixed, key::or_zero(dimension::kCycles), "added to every instruction");
  visit("engine.vector.dynamic_interval", v.dynamic_interval, key::kCycles, "with an address from a register");
  visit("engine.vector.accumulator_read", v.accumulator_read, key::or_zero(dimension::kCycles), "to read it out");
  visit("engine.vector.wide_contiguous", v.wide_contiguous, key::kSpeedup, "two-byte, SBUF only, contiguous");
  visit("engine.vector.wide", v.wide, key::kSpeedup, "two-byte, strided or one side in PSUM");
  visit("engine.vector.stride_bytes", v.stride_bytes, key::kBytes, "innermost stride from which access slows");
  visit("engine.vector.stride_rate", v.stride_rate, key::kRatio, "speed from that stride on");

  auto& a = c.scalar;
  visit("engine.scalar.clock", a.clock, key::kFrequency, "");
  visit("engine.scalar.lanes", a.lanes, key::of(dimension::kLanes), "partitions at once");
  visit("engine.scalar.min_interval", a.min_interval, key::kCycles, "least cycles between two instructions");
  visit("engine.scalar.fixed", a.fixed, key::or_zero(dimension::kCycles), "added to every instruction");
  visit("engine.scalar.dynamic_interval", a.dynamic_interval, key::kCycles, "with an address from a register");
  visit("engine.scalar.accumulator_read", a.accumulator_read, key::or_zero(dimension::kCycles), "to read it out");
  visit("engine.scalar.wide_contiguous", a.wide_contiguous, key::kSpeedup, "two-byte, SBUF only, contiguous");
  visit("engine.scalar.wide", a.wide, key::kSpeedup, "two-byte, strided or one side in PSUM");
  visit("engine.scalar.stride_bytes", a.stride_bytes, key::kBytes, "innermost stride from which access slows");
  visit("engine.scalar.stride_rate", a.stride_rate, key::kRatio, "speed from that stride on");

  auto& g = c.gpsimd;
  visit("engine.gpsimd.clock", g.clock, key::kFrequency, "");
  visit("engine.gpsimd.lanes", g.lanes, key::of(dimension::kLanes), "partitions at once, eight cores of sixteen");
  visit("engine.gpsimd.min_interval", g.min_interval, key::kCycles, "least cycles between two instructions");
  visit("engine.gpsimd.fixed", g.fixed, key::or_zero(dimension::kCycles), "added to every instruction");
  visit("engine.gpsimd.dynamic_interval", g.dynamic_interval, key::kCycles, "with an address from a register");
  visit("engine.gpsimd.start", g.start, key::or_zero(dimension::kCycles), "to enter a library routine");
  visit("engine.gpsimd.stride_bytes", g.stride_bytes, key::kBytes, "innermost stride from which access slows");
  visit("engine.gpsimd.stride_rate", g.stride_rate, key::kRatio, "speed from that stride on");

  visit("engine.sync.clock", c.sync.clock, key::kFrequency, "");
  visit("semaphore.latency", c.semaphore.latency, key::or_zero(dimension::kTime), "signal until the waiter may start");

  visit("sbuf.partitions", c.sbuf.partitions, key::kCount, "");
  visit("sbuf.partition_bytes", c.sbuf.partition_bytes, key::kBytes, "of each partition");
  visit("sbuf.reserved_bytes", c.sbuf.reserved_bytes, key::or_zero(dimension::kBytes), "kept by system software");
  visit("psum.banks", c.psum.banks, key::kCount, "");
  visit("psum.bank_bytes", c.psum.bank_bytes, key::kBytes, "of each bank in each partition");

  auto& p = c.ports;
  visit("ports.vector_gpsimd_exclusive_sbuf", p.vector_gpsimd_exclusive_sbuf, key::kFlag, "take turns on SBUF");
  visit("ports.vector_scalar_exclusive_psum", p.vector_scalar_exclusive_psum, key::kFlag, "take turns on PSUM");
  visit("ports.wide_mode_excludes_gpsimd", p.wide_mode_excludes_gpsimd, key::kFlag, "shared bus in wide modes");
  visit("ports.gpsimd_reaches_psum", p.gpsimd_reaches_psum, key::kFlag, "");

  auto& d = c.dma;
  visit("dma.engines", d.engines, key::kCount, "per core");
  visit("dma.rings", d.rings, key::kCount, "queues per engine");
  visit("dma.rate", d.rate, key::kRate, "one engine, achieved");
  visit("dma.peak_rate", d.peak_rate, key::kRate, "one engine, theoretical");
  visit("dma.start", d.start, key::kTime, "trigger to first byte");
  visit("dma.semaphore_start", d.semaphore_start, key::kTime, "cross-engine signal to first byte, guide's text");
  visit("dma.descriptor", d.descriptor, key::or_zero(dimension::kTime), "added per descriptor");
  visit("dma.issue_static", d.issue_static, key::or_zero(dimension::kTime), "issuing queue, prepared descriptors");
  visit("dma.issue_hardware", d.issue_hardware, key::optional(dimension::kTime, 0), "issuing queue, hardware DGE");
  visit("dma.issue_software", d.issue_software, key::or_zero(dimension::kTime), "issuing queue, software DGE");
  visit("dma.generators", d.generators, key::optional(dimension::kCount, 0), "hardware DGE blocks per core");
  visit("dma.completion", d.completion, key::or_zero(dimension::kTime), "last byte until the waiter may start");
  visit("dma.receipt", d.receipt, key::or_zero(dimension::kTime), "last semaphore to consumer in one profile");
  visit("dma.transpose_rate", d.transpose_rate, key::kRatio, "of the copy rate, HBM to SBUF");
  visit("dma.transpose_rate_sbuf", d.transpose_rate_sbuf, key::kRatio, "of the copy rate, SBUF to SBUF");
  visit("dma.compute_rate", d.compute_rate, key::kRatio, "of the copy rate, adding while copying");
  visit("dma.gpsimd_rate", d.gpsimd_rate, key::optional(dimension::kByteRate, 0), "DMA inside GpSimd, each way");

  visit("hbm.bytes", c.hbm.bytes, key::kBytes, "of the chip");
  visit("hbm.bandwidth", c.hbm.bandwidth, key::kRate, "of the chip");
  visit("hbm.stacks", c.hbm.stacks, key::kCount, "");
  visit("hbm.efficiency", c.hbm.efficiency, key::kRatio, "of the bandwidth when streaming");
  visit("launch.cost", c.launch.cost, key::or_zero(dimension::kTime), "start and stop of a kernel");
  visit("launch.second_core", c.launch.second_core, key::optional(dimension::kTime, 0), "more for two cores");
  visit("link.core_rate", c.link.core_rate, key::kRate, "ring of ranks inside a chip, one way");
  visit("link.core_latency", c.link.core_latency, key::or_zero(dimension::kTime), "of one step of it");
  visit("link.chip_rate", c.link.chip_rate, key::kRate, "ring of ranks over neighbouring chips, one way");
  visit("link.chip_latency", c.link.chip_latency, key::or_zero(dimension::kTime), "of one step of it");

  auto& l = c.limits;
  visit("limits.partitions", l.partitions, key::kCount, "of one tile");
  visit("limits.stationary_free", l.stationary_free, key::kElements, "matmul, stationary tile");
  visit("limits.moving_free", l.moving_free, key::kElements, "matmul, moving tile, fp32 result");
  visit("limits.moving_free_16bit", l.moving_free_16bit, key::kElements, "matmul, moving tile, two-byte result");
  visit("limits.tile_min", l.tile_min, key::of(dimension::kLanes), "smallest tile side of the array");
  visit("limits.vector_transpose", l.vector_transpose, key::kElements, "block side on the vector engine");
  visit("limits.bn_stats_free", l.bn_stats_free, key::kElements, "bn_stats");
  visit("limits.top8_min", l.top8_min, key::kElements, "max8 and its kin");
  visit("limits.top8_max", l.top8_max, key::kElements, "max8 and its kin");
  visit("limits.sbuf_free", l.sbuf_free, key::kElements, "one operand in SBUF");
  visit("limits.psum_free", l.psum_free, key::kElements, "one operand in PSUM");
  visit("limits.address_align", l.address_align, key::kBytes, "of a tensor's start in a partition");
  visit("limits.free_dimensions", l.free_dimensions, key::kCount, "of an access pattern");
  visit("limits.pattern_count", l.pattern_count, key::kElements, "largest count in a pattern");
  visit("limits.pattern_stride", l.pattern_stride, key::kElements, "largest stride in a pattern");
  visit("limits.registers", l.registers, key::kCount, "per engine, 32 bits each");

  visit("limits.dma_priorities", l.dma_priorities, key::kCount, "classes of DMA traffic, where there are any");
  visit("limits.dge_transpose_rows", l.dge_transpose_rows, key::kElements, "DMA transpose with hardware descriptors");
  visit("limits.dge_transpose_last", l.dge_transpose_last, key::kElements, "its last axis");
  visit("limits.gather_transpose_rows", l.gather_transpose_rows, key::kElements, "rows come in multiples of this");
  visit("limits.gpsimd_send_elements", l.gpsimd_send_elements, key::kCount, "of a partition, exchanged by GpSimd");
  visit("limits.collective_channels", l.collective_channels, key::kCount, "of one ring of ranks");
  visit("limits.gpsimd_core_partitions", l.gpsimd_core_partitions, key::kCount, "served by one GpSimd core");
  visit("limits.array_index_partitions", l.array_index_partitions, key::kCount,
        "share a list of columns, in the array");
  visit("limits.gather_indices", l.gather_indices, key::kElements, "local_gather, of one GpSimd core");
  visit("limits.gather_run", l.gather_run, key::kElements, "local_gather, adjoining elements for each index");

  visit("scheduling.psum_memset_on_gpsimd", c.scheduling.psum_memset_on_gpsimd, key::kFlag,
        "else on the vector engine");
  visit("scheduling.separate_store_queue", c.scheduling.separate_store_queue, key::kFlag,
        "DMA stores do not follow the loads");

  auto& f = c.features;
  visit("features.exact_transpose", f.exact_transpose, key::kFeature, "tensor-engine transpose keeps bits");
  visit("features.psum_bfloat16", f.psum_bfloat16, key::kFeature, "matmul results as bfloat16");
  visit("features.copy_on_scalar", f.copy_on_scalar, key::kFeature, "tensor_copy on the scalar engine");
  visit("features.exact_copy_on_scalar", f.exact_copy_on_scalar, key::kFeature, "and keeps bits");
  visit("features.tensor_scalar_on_scalar", f.tensor_scalar_on_scalar, key::kFeature, "add and multiply");
  visit("features.activation_bias_immediate", f.activation_bias_immediate, key::kFeature, "");
  visit("features.reciprocal_bias", f.reciprocal_bias, key::kFeature, "activation with reciprocal");
  visit("features.unary_alu", f.unary_alu, key::kFeature, "square, relu, abs_max, abs_min");
  visit("features.wide_float8", f.wide_float8, key::kFeature, "wide modes for one-byte floats");
  visit("features.indirect_views", f.indirect_views, key::kFeature, "gather along the free dimension");
  visit("features.xorwow", f.xorwow, key::kFeature, "vector engine's random generator");
  visit("features.gpsimd_random", f.gpsimd_random, key::kFeature, "rng on the GpSimd engine");
  visit("features.hardware_dge", f.hardware_dge, key::kFeature, "descriptors generated in hardware");
  visit("features.dma_transpose", f.dma_transpose, key::kFeature, "");
  visit("features.dma_indirect_transpose", f.dma_indirect_transpose, key::kFeature, "gather, then transpose");
  visit("features.dma_priority", f.dma_priority, key::kFeature, "classes of traffic");
  visit("features.chunk_places", f.chunk_places, key::kFeature, "all_to_all_v with has_rdispls");
}

/// The same for the constants of one instruction; keys are relative to its table.
template <class CostType, class Visit>
void visit_constants(CostType& i, Visit&& visit) {
  const KeySpec per = key::optional(dimension::kCyclesPerElement, 0);
  visit("per_element", i.per_element, per, "cycles per element");
  visit("fast_per_element", i.fast_per_element, per, "in a fast case");
  visit("per_output", i.per_output, per, "cycles per result");
  visit("cycles", i.cycles, key::optional(dimension::kCycles, 0), "in all");
  visit("gather_base", i.gather_base, key::optional(dimension::kCycles, 0), "of the gather formula");
  visit("gather_width", i.gather_width, key::optional(dimension::kCycles, 0), "of the gather formula");
}

}  // namespace sterna
