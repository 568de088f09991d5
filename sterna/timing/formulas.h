// SPDX-License-Identifier: Apache-2.0
// How long an instruction's work takes: one short function for each Formula of the chip files. An instruction says its
// work in counts, the chip file gives the constants; nothing here knows an instruction or a chip.
// sterna/hardware/chip.h states each formula.
#pragma once

#include <cstdint>

#include "sterna/hardware/chip.h"
#include "sterna/isa/instruction.h"

namespace sterna {

// Cycles of the engine, without the engine's fixed cost.

/// `strided`: an operand's innermost step reaches engine.stride_bytes.
double elements_cycles(const Work& work, const InstructionCost& cost, const Engine& engine, const Features& features,
                       bool strided);
double start_elements_cycles(const Work& work, const InstructionCost& cost, const Engine& engine);
double gather_cycles(const Work& work, const InstructionCost& cost, const Engine& engine);
double top_k_cycles(const Work& work, const InstructionCost& cost);
double fixed_cycles(const InstructionCost& cost);
double matmul_cycles(const Work& work, const TensorEngine& engine);
double tensor_transpose_cycles(const Work& work, const TensorEngine& engine);
double vector_transpose_cycles(const Work& work, const Engine& engine);

/// The factor by which wide modes speed this work up on this engine; 1 if they do not apply.
double wide_factor(const Work& work, const InstructionCost& cost, const Engine& engine, const Features& features);

/// The engine of that id; null for DMA, sync and unknown.
const Engine* engine_of(const Chip& chip, EngineId id);

/// Nanoseconds on an engine, its fixed cost and the least interval of dynamic addresses included.
double engine_ns(const Work& work, const InstructionCost& cost, const Chip& chip, bool strided);

/// What one transfer asks of the DMA system.
struct DmaDemand {
  int engines = 1;       ///< that take part
  double engine_ns = 0;  ///< each of them is busy
  double issue_ns = 0;   ///< its queue is busy before
  double hbm_ns = 0;     ///< of one core's bandwidth to its stack
};
/// `sharers`: how many times the bandwidth of the core's stack is divided.
DmaDemand dma_demand(const Work& work, const InstructionCost& cost, const Chip& chip, double sharers);

/// Nanoseconds that a transfer's queue is held, by who makes its descriptors.
const Real& dma_issue(const Work& work, const Chip& chip);

// Where cores meet: nanoseconds from the last one's arrival.

double barrier_ns(const Chip& chip);
/// Of the DMA inside GpSimd; the instruction's own cost on that engine included.
double gpsimd_send_ns(double bytes, const Chip& chip);

// Collectives of n ranks: nanoseconds from the last one's arrival.

/// One step of the ring, and what it carries.
struct Hop {
  double rate = 0, latency_ns = 0;  ///< bytes/ns
};
/// Between ranks of one chip, or of several.
Hop hop_of(const Link& link, bool several_chips);

/// All-gather of `bytes` in all, or reduce-scatter of `bytes` on each rank.
double ring_ns(double bytes, int ranks, const Hop& hop);
double all_reduce_ns(double bytes, int ranks, const Hop& hop);
double all_to_all_ns(double bytes, int ranks, const Hop& hop);
double permute_ns(double bytes, const Hop& hop);
double collective_ns(Formula formula, double bytes, int ranks, const Hop& hop);

}  // namespace sterna
