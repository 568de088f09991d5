// SPDX-License-Identifier: Apache-2.0
// The description of one chip, read from hardware/chips/NAME.toml. Plain fields in base units (ns, bytes, bytes/ns,
// GHz = cycles/ns, cycles, elements); each is a Number that knows its source and its trust (number.h).
//
// No code compares a chip's name: it asks the description. What a chip cannot do is a flag in `features`, a size in
// `limits`, an entry in `absent_instructions` or `absent_dtypes`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/number.h"

namespace sterna {

/// More partitions than any chip file may state: what buffers of one value a partition are made for.
inline constexpr int kMaxPartitions = 512;

/// An in-order engine of one core. All cycles are of the engine's own clock.
struct Engine {
  Real clock;             ///< GHz, that is cycles per ns
  Count lanes;            ///< partitions served at once (vector, scalar, gpsimd)
  Real min_interval;      ///< least cycles between the starts of two instructions
  Real fixed;             ///< cycles every instruction costs on top of its elements (vector, scalar, gpsimd)
  Real dynamic_interval;  ///< least cycles of an instruction whose address comes from a register
  Real accumulator_read;  ///< cycles to read the accumulator registers out (vector, scalar)
  Real start;             ///< cycles to enter a library routine (gpsimd)
  /// Speed-up of instructions marked `wide` when every operand is of two bytes (or one, with `features.wide_float8`):
  /// `wide_contiguous` when all lie in SBUF and are contiguous, `wide` when strided or when one side is in PSUM.
  Real wide_contiguous, wide;
  /// Elements at this stride in bytes or more along the innermost dimension are read at `stride_rate` of full speed.
  Count stride_bytes;
  Real stride_rate;
};

/// The systolic array. One moving column enters per cycle.
struct TensorEngine : Engine {
  Count rows, columns;
  Count fp32_passes;                  ///< passes over the array of an fp32 matmul
  Real onezero_speedup;               ///< of an fp32 matmul with an operand declared to hold ones and zeros only
  Real double_row;                    ///< contraction rows per array row in fp8 double-row mode; 1 = no such mode
  Real mx_rows;                       ///< contraction rows per array row with x4-packed fp8 operands; 1 = no such mode
  Real fp4_rows;                      ///< the same with x4-packed fp4 operands
  Real load_speedup;                  ///< loading stationary data takes its columns / load_speedup cycles
  Flag load_hidden;                   ///< that load runs behind the matmul before it
  Real result_latency;                ///< ns from the end of issue until the result is visible in PSUM
  Real fp32_transpose_speedup;        ///< of an fp32 transpose against its four passes
  Real background_transpose_speedup;  ///< of a chain of transposes
  Real ramp_window;                   ///< ns over which the engine speeds up after idling; 0 = none
  Real ramp_rate;                     ///< speed at the start of that window
};

struct SyncEngine {
  Real clock;
};

/// A signal from one engine to another.
struct Semaphore {
  Real latency;  ///< ns from the signal until the waiting engine may start
};

struct Sbuf {
  Count partitions;  ///< at most kMaxPartitions
  Count partition_bytes;
  Count reserved_bytes;  ///< per partition, kept by the system software
};

struct Psum {
  Count banks;
  Count bank_bytes;  ///< per partition
};

/// Which engines cannot use the on-chip memories at the same time.
struct Ports {
  Flag vector_gpsimd_exclusive_sbuf;  ///< Vector and GpSimd take turns on SBUF
  Flag vector_scalar_exclusive_psum;  ///< Vector and Scalar take turns on PSUM
  Flag wide_mode_excludes_gpsimd;     ///< a wide-mode Vector instruction holds the port GpSimd needs
  Flag gpsimd_reaches_psum;
};

/// DMA engines of one core. A transfer is cut into descriptors, one per contiguous run in each partition; engine i
/// serves 1/engines of the partitions. Engine occupancy = sum over its descriptors of (descriptor + bytes / rate), in
/// order of arrival; transfers of different queues overlap. The per-descriptor time is added, not a lower bound.
struct Dma {
  Count engines;             ///< per core
  Count rings;               ///< queues per engine; in order within a ring
  Real rate;                 ///< bytes/ns of one engine, achieved
  Real peak_rate;            ///< bytes/ns of one engine, theoretical
  Real start;                ///< ns from trigger to the first byte
  Real semaphore_start;      ///< ns from a cross-engine signal to the first byte as the guide's text gives it
  Real descriptor;           ///< ns per descriptor
  Real issue_static;         ///< ns the issuing queue is held per DMA with descriptors prepared in HBM
  Real issue_hardware;       ///< ns with descriptors generated in hardware
  Real issue_software;       ///< ns with descriptors generated by GpSimd
  Count generators;          ///< hardware descriptor generators per core; 0 = none
  Real completion;           ///< ns from the last byte until a waiting engine may start, as the timing model uses it
  Real receipt;              ///< ns from the last DMA semaphore to the consumer's start as one profile shows it
  Real transpose_rate;       ///< of the copy rate, HBM to SBUF
  Real transpose_rate_sbuf;  ///< of the copy rate, SBUF to SBUF
  Real compute_rate;         ///< of the copy rate, when the DMA adds while it copies
  Real gpsimd_rate;          ///< bytes/ns per direction of the DMA inside GpSimd; 0 = none
};

struct Hbm {
  Count bytes;     ///< of the chip
  Real bandwidth;  ///< bytes/ns of the chip
  Count stacks;
  Real efficiency;  ///< of the bandwidth, when streaming
};

struct Launch {
  Real cost;         ///< ns of a kernel's start and stop, seen from outside
  Real second_core;  ///< ns more when two cores run one kernel
};

/// What the ranks of a collective send over, as a ring of ranks achieves it: one way, for one ring.
struct Link {
  Real core_rate;     ///< bytes/ns between two ranks of one chip
  Real core_latency;  ///< ns of one step between them
  Real chip_rate;     ///< bytes/ns between ranks of neighbouring chips
  Real chip_latency;  ///< ns of one step between them
};

/// What validators check against. Elements unless the name says bytes.
struct Limits {
  Count partitions;         ///< of one instruction's tile
  Count stationary_free;    ///< free elements of a matmul's stationary tile
  Count moving_free;        ///< free elements of a matmul's moving tile, fp32 result
  Count moving_free_16bit;  ///< the same with a two-byte result
  Count tile_min;           ///< smallest rows and columns of a tile of the array
  Count vector_transpose;   ///< block side of a transpose on the vector engine
  Count bn_stats_free;
  Count top8_min, top8_max;      ///< free elements of max8, nc_find_index8, nc_match_replace8
  Count sbuf_free, psum_free;    ///< free elements of one operand
  Count address_align;           ///< bytes, of where a tensor starts in a partition
  Count free_dimensions;         ///< of an access pattern
  Count pattern_count;           ///< largest count in an access pattern
  Count pattern_stride;          ///< largest stride in an access pattern, either sign
  Count registers;               ///< per engine, 32 bits each
  Count dma_priorities;          ///< classes of DMA traffic, where there are any
  Count dge_transpose_rows;      ///< most rows of a DMA transpose with hardware descriptors, a power of two
  Count dge_transpose_last;      ///< most elements of its last axis
  Count gather_transpose_rows;   ///< rows of a gathering DMA transpose come in multiples of this
  Count gpsimd_core_partitions;  ///< partitions that one GpSimd core serves
  Count array_index_partitions;  ///< that share a list of columns found by an index, in the tensor engine
  Count gather_indices;          ///< most indices of local_gather in such a group
  Count gather_run;              ///< most adjoining elements for each of them
  Count gpsimd_send_elements;    ///< most elements a partition that GpSimd's DMA exchanges between cores
  Count collective_channels;     ///< most channels of one ring of ranks
};

/// On which queue the model counts what no document assigns.
struct Scheduling {
  Flag psum_memset_on_gpsimd;  ///< a memset of PSUM takes GpSimd's time; else that of the vector engine
  Flag separate_store_queue;   ///< DMA stores have a queue of their own; else they follow the loads
};

struct Features {
  Flag exact_transpose;            ///< a tensor-engine transpose copies bits, NaN included
  Flag psum_bfloat16;              ///< matmul results may be kept in PSUM as bfloat16
  Flag copy_on_scalar;             ///< tensor_copy may run on the scalar engine
  Flag exact_copy_on_scalar;       ///< and keeps bits when types match
  Flag tensor_scalar_on_scalar;    ///< tensor_scalar with add and multiply may run on the scalar engine
  Flag activation_bias_immediate;  ///< activation's bias may be an immediate value
  Flag reciprocal_bias;            ///< activation with reciprocal takes a bias
  Flag unary_alu;                  ///< tensor_scalar knows square, relu, abs_max, abs_min
  Flag wide_float8;                ///< wide modes include one-byte floats
  Flag indirect_views;             ///< gather and scatter along the free dimension on all engines
  Flag xorwow;                     ///< the vector engine's random generator is XORWOW rather than an LFSR
  Flag gpsimd_random;              ///< the GpSimd engine has a random generator
  Flag hardware_dge;
  Flag dma_transpose;
  Flag dma_indirect_transpose;
  Flag dma_priority;
  Flag chunk_places;  ///< all_to_all_v puts received chunks where its metadata says
};

/// Which formula of sterna/timing gives an instruction's duration in cycles of its engine. N is the number of free
/// elements per partition that the instruction's work() reports; max(...) is with the engine's min_interval; the
/// engine's `fixed` is added by the timing model to every vector, scalar and gpsimd instruction.
enum class Formula : uint8_t {
  kElements,       ///< max(min_interval, N * c), c = fast_per_element in a fast case, else per_element, divided by the
                   ///< wide factor when marked `wide`; + accumulator_read if the instruction reads the accumulator
  kStartElements,  ///< engine start + N * per_element
  kGather,         ///< engine start + N / C, C = ((b + w*e) / (w*e)) / min(4 / bytes, e) with b = gather_base,
                   ///< w = gather_width, e = elements per index; N = indices * e
  kTopK,           ///< N * per_element + K * per_output
  kFixed,          ///< `cycles`
  kMatmul,         ///< passes * max(min(min_interval, stationary free), moving free); TensorEngine has the rest
  kTranspose,      ///< tensor engine: max(partitions, min(min_interval, free)), for fp32 times fp32_passes /
                   ///< fp32_transpose_speedup; vector engine: max(min_interval, N)
  kDma,            ///< see Dma
  kDmaTranspose,   ///< the same at transpose_rate or transpose_rate_sbuf
  kDmaCompute,     ///< the same at compute_rate
  kSend,           ///< exchange between two cores: when both have come, the DMA named by the instruction
  kBarrier,        ///< both cores' arrivals, then the semaphore latency
  kRing,           ///< n ranks, B bytes gathered or scattered: (n-1)/n * B / rate + (n-1) * latency, see Link
  kAllReduce,      ///< twice that: reduce-scatter, then all-gather
  kAllToAll,       ///< (n-1)/n * B / rate + latency
  kPermute,        ///< B / rate + latency
  kFree,           ///< takes no time on any engine (allocation)
};
inline constexpr std::string_view kFormulaNames[] = {
    "elements",   "start_elements", "gather",      "top_k", "fixed",   "matmul", "transpose",
    "dma",        "dma_transpose",  "dma_compute", "send",  "barrier", "ring",   "all_reduce",
    "all_to_all", "permute",        "free"};
constexpr std::string_view name(Formula formula) { return kFormulaNames[static_cast<size_t>(formula)]; }

/// Circumstances in which an instruction runs at fast_per_element. An instruction reports the set that holds for it;
/// the chip lists those that its hardware rewards.
enum class FastCase : uint8_t {
  kPsumInput,                 ///< one of the two tile inputs is in PSUM
  kBFloat16Simple,            ///< everything contiguous bfloat16 in SBUF; add, subtract or multiply
  kBFloat16SubtractMultiply,  ///< inputs bfloat16, op0 subtract, op1 multiply, N even
  kBFloat16AddMax,            ///< input and output bfloat16; add or max
  kSixteenBitSbuf,            ///< both inputs in SBUF and every operand a two-byte float
  kZeroSixteenBit,            ///< zero written to a two-byte float
};
inline constexpr std::string_view kFastCaseNames[] = {
    "psum_input",       "bfloat16_simple",  "bfloat16_subtract_multiply",
    "bfloat16_add_max", "sixteen_bit_sbuf", "zero_sixteen_bit"};
constexpr std::string_view name(FastCase fast) { return kFastCaseNames[static_cast<size_t>(fast)]; }
constexpr uint32_t bit(FastCase fast) { return 1u << static_cast<unsigned>(fast); }

/// What one instruction costs on this chip: a formula and its constants.
struct InstructionCost {
  std::string name;  ///< NKI's: "tensor_tensor"
  Formula formula = Formula::kFree;
  Real per_element;       ///< cycles per element
  Real fast_per_element;  ///< the same in a fast case
  Real per_output;        ///< cycles per result element
  Real cycles;
  Real gather_base, gather_width;
  uint32_t fast_cases = 0;  ///< set of bit(FastCase)
  bool wide = false;        ///< runs in the engine's wide modes
  Place place;

  /// Cycles per element before any wide factor, given the cases that hold (a set of bit(FastCase)).
  const Real& rate(uint32_t cases) const { return (cases & fast_cases) != 0 ? fast_per_element : per_element; }
};

struct Chip {
  std::string name;                  ///< "trn2"
  std::string title;                 ///< "AWS Trainium2 (NeuronCore-v3)"
  std::string inherits;              ///< "trn1"; empty for a chip that stands alone
  std::vector<std::string> aliases;  ///< "gen3"
  std::string file;

  Count generation;       ///< NKI's nc_version: 2, 3, 4
  Count cores;            ///< physical NeuronCores
  Count logical_default;  ///< physical cores in a logical one by default
  Count logical_max;      ///< most that can be joined
  TensorEngine tensor;
  Engine vector, scalar, gpsimd;
  SyncEngine sync;
  Semaphore semaphore;
  Sbuf sbuf;
  Psum psum;
  Ports ports;
  Dma dma;
  Hbm hbm;
  Launch launch;
  Link link;
  Limits limits;
  Scheduling scheduling;
  Features features;

  std::vector<InstructionCost> instructions;                    ///< sorted by name
  std::vector<InstructionCost> instruction_defaults;            ///< by engine, sorted by name
  std::vector<std::string> absent_instructions, absent_dtypes;  ///< sorted
  std::map<std::string, std::string> sources;  ///< id to text, those of the chips it inherits from included

  /// The cost of an instruction by NKI's name; null if the file has none, which is a gap in the file.
  const InstructionCost* instruction_cost(std::string_view mnemonic) const;
  /// The same, or the engine's default ("tensor", "vector", "scalar", "gpsimd", "sync", "dma") where the file has none;
  /// null if it has no default either.
  const InstructionCost* cost_or_default(std::string_view mnemonic, std::string_view engine) const;
  bool has_instruction(std::string_view mnemonic) const;
  /// By the names of sterna/numerics/dtype.h.
  bool has_dtype(std::string_view dtype) const;

  int64_t cores_per_stack() const { return cores / stacks_or_one(); }
  double hbm_stack_rate() const { return hbm.bandwidth / static_cast<double>(stacks_or_one()); }
  /// Bytes/ns for one core when every core of the chip streams.
  double hbm_core_share() const { return hbm.bandwidth / static_cast<double>(int64_t{cores}); }
  /// Bytes/ns of all DMA engines of one core.
  double dma_core_rate() const { return dma.rate * static_cast<double>(int64_t{dma.engines}); }
  int64_t sbuf_usable_bytes() const { return sbuf.partition_bytes - sbuf.reserved_bytes; }
  int64_t psum_partition_bytes() const { return psum.banks * psum.bank_bytes; }

  /// Every stated number, in the order of the schema, then of the instructions. Valid while the chip lives.
  std::vector<const Number*> numbers() const;
  /// One number by key, such as "dma.start" or "instruction.reciprocal.per_element"; null if not stated.
  const Number* number(std::string_view key) const;

 private:
  int64_t stacks_or_one() const { return hbm.stacks > 0 ? int64_t{hbm.stacks} : 1; }
};

}  // namespace sterna
