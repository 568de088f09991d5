// SPDX-License-Identifier: Apache-2.0
// Machine: the state that instructions change (memories, registers, accumulators) and the only way they reach it.
// An instance is one core of one run; there is no global state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sterna/base/buffers.h"
#include "sterna/base/result.h"
#include "sterna/base/threads.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/defined.h"
#include "sterna/machine/generators.h"
#include "sterna/machine/replay_step.h"
#include "sterna/machine/tensor.h"
#include "sterna/machine/view.h"
#include "sterna/numerics/alu.h"

namespace sterna {

/// What an arithmetic read of undefined bytes does (STERNA_UNINIT).
enum class UninitPolicy : uint8_t { kError, kWarn, kFill, kZero };

/// What a move knows about one element of its source or does to one of its destination.
enum class ElementState : uint8_t { kUndefined, kDefined, kKeep };

/// A remark that does not stop the run. One per rule and site is kept.
struct Warning {
  std::string rule, message;
  uint32_t site = 0;
};

/// Where one tensor's bytes are.
struct Storage {
  std::byte* data = nullptr;  ///< partition 0 (on chip) or first element (HBM)
  int64_t pitch = 0;          ///< bytes from one partition to the next; 0 in HBM
  int64_t bytes = 0;          ///< of memory that it takes
  Defined own_defined, own_by_matmul;
  Defined* defined = nullptr;    ///< own_defined, or that of the memory a placed tensor shares
  Defined* by_matmul = nullptr;  ///< PSUM: bytes that a matmul wrote, counted from the tensor's start
  int64_t row0 = 0, byte0 = 0;   ///< place of the tensor inside `defined`
  int64_t row_bytes = 0;         ///< HBM: bytes of a row of `defined`
  Buffer owned;
  bool writable = true;
  bool written = false;  ///< something was ever written
  uint64_t version = 0;  ///< grows with every opening for writing; never repeats in a machine
};

/// HBM tensors that the cores of one kernel share: each core's machine finds their storage here.
class SharedHbm {
 public:
  explicit SharedHbm(int cores) : cores_(cores) {}
  const std::shared_ptr<Storage>& storage(uint32_t tensor);
  /// Every core allocates a shared tensor once for each time it comes to be. True for the first core that does: what
  /// another core wrote since must stay.
  bool first_to_allocate(uint32_t tensor, int core);

 private:
  struct Entry {
    std::shared_ptr<Storage> storage;
    std::vector<uint32_t> allocations;  // by core
    uint32_t made = 0;
  };
  Entry& entry(uint32_t tensor);
  int cores_;
  std::unordered_map<uint32_t, Entry> entries_;
};

/// A matmul operand in the layout of the product kernel, kept while its source does not change.
struct PackedOperand {
  View view = {};
  uint64_t version = 0;
  uint64_t used = 0;  ///< when it was last asked for
  bool moving = false, double_row = false;
  View scale = {};  ///< of an MX operand: its scales, or of a sparse one its tags; empty for others
  uint64_t scale_version = 0;
  Buffer buffer;
  float* data() const { return reinterpret_cast<float*>(buffer.data()); }
};

/// A view resolved to addresses, for the duration of one instruction.
struct Operand {
  std::byte* base = nullptr;
  Storage* storage = nullptr;
  DType dtype = DType::kFloat32;
  int64_t rows = 0, cols = 0;
  ptrdiff_t row_pitch = 0;               ///< bytes; 0 repeats a row
  const int64_t* row_offsets = nullptr;  ///< indirect: byte offset of each row instead of row_pitch; -1 = skip
  const int64_t* col_offsets = nullptr;  ///< indirect on chip: byte offset of each element of a row, for each group
  int64_t group_rows = 0;                ///< rows that share them
  int nfree = 0;                         ///< free dims, outermost first, merged where they continue one another
  struct Free {
    int64_t stride, count;
  } free[kMaxDims - 1];  ///< strides in bytes; nfree of them are set
  // Made for every access, so the free dims are not cleared.
  Operand() {}
  bool unit = false;                      ///< one run of `cols` adjoining elements
  RoundingGenerator* rounding = nullptr;  ///< opened for writing: stores round stochastically; null: to nearest even

  bool direct() const { return unit && dtype == DType::kFloat32 && row_offsets == nullptr; }
  /// The rows lie one behind the other, so that several are one run.
  bool rows_adjoin() const { return unit && row_offsets == nullptr && row_pitch == cols * size_of(dtype); }
  std::byte* row(int64_t r) const { return base + (row_offsets ? row_offsets[r] : r * row_pitch); }
};

class Machine {
 public:
  struct Options {
    int64_t sbuf_partition_bytes = 0, psum_partition_bytes = 0;  ///< from the chip description
    int partitions = 128;
    UninitPolicy uninit = UninitPolicy::kError;
    bool strict = false;
    std::shared_ptr<BufferPool> buffers;  ///< where memory comes from; one of its own when empty
    std::shared_ptr<SharedHbm> shared;    ///< of the kernel's cores; empty when this is the only one
    int core = 0;                         ///< which of them this is
    int rank = 0;                         ///< of the kernel among those that communicate (sterna/isa/collectives.h)
    int64_t rounding_seed = -1;           ///< of stochastic rounding; negative: the engines round to nearest even
  };

  Machine(const Options& options, ThreadPool* pool, const std::vector<TensorInfo>* tensors,
          const std::vector<DynamicOffset>* dynamics);

  // --- tensors
  /// Uses `data` for a parameter's values (borrowed, contiguous, row-major).
  Status bind(uint32_t tensor, void* data, bool writable);
  /// Uses what another core of the kernel bound.
  void adopt(uint32_t tensor) { storage(tensor); }
  /// Makes (or makes again) the storage of a tensor; its bytes become undefined.
  Status allocate(uint32_t tensor);
  /// Gives the bytes back for reuse; the tensor may not be touched until it is allocated again.
  void release(uint32_t tensor);
  Storage& storage(uint32_t tensor);
  bool has_storage(uint32_t tensor) const {
    return tensor < storages_.size() && storages_[tensor] && storages_[tensor]->data != nullptr;
  }
  /// Hands the bytes of a local HBM tensor to the caller (a result); empty for borrowed ones.
  Buffer take(uint32_t tensor);

  // --- access. Inputs are opened before the output, in the order a fault should name them.
  /// For arithmetic: undefined bytes are a fault, a warning or filled, as the policy says.
  Result<Operand> read(const View& view, const char* what);
  /// For moves: undefined bytes are allowed; propagate with copy_definedness.
  Result<Operand> read_any(const View& view, const char* what);
  /// Marks the view defined.
  Result<Operand> write(const View& view, const char* what);
  /// Opens for writing without marking; used by moves and by partial writers, which mark themselves.
  Result<Operand> open(const View& view, const char* what);
  void mark_defined(const View& view);
  /// Marks a view defined and written by a matmul.
  void mark_matmul_result(const View& view);
  bool is_defined(const View& view);
  /// Applies the policy on undefined bytes to all of a tensor that the caller will look at after the run: a result, or
  /// a parameter that was written. Faults with OUT2, or warns and fills, or fills.
  Status check_result(uint32_t tensor, const char* what);
  /// PSUM: all bytes of the view were written by a matmul (returns true), none (false), or some (`mixed`).
  bool by_matmul(const View& view, bool* mixed);
  /// dst[i] becomes defined exactly where src[i] is; views of equal element counts.
  void copy_definedness(const View& dst, const View& src);
  /// The definedness of each element, row-major; kKeep for rows of an indirect view that are out of bounds.
  std::vector<ElementState> element_states(const View& view);
  /// Sets it for each element, as element_states gives it; kKeep leaves an element alone. Elements that change are no
  /// longer a matmul's.
  void set_element_states(const View& view, const std::vector<ElementState>& states);
  /// The same, but quick where every element is set or everything is defined anyway.
  void mark_elements(const View& view, const std::vector<ElementState>& states);
  /// True when single elements of the view matter: not all are defined, or some may be a matmul's.
  bool has_element_states(const View& view);
  /// element_states, or nothing when all are defined.
  std::vector<ElementState> element_states_if_partial(const View& view);
  bool byte_defined(const View& view, int64_t row, int64_t col);

  /// One value for each row of a (P,1) view or an immediate: pointer and pitch for alu_block_scalar. `buffer` holds >=
  /// rows floats.
  struct Values {
    const float* data;
    ptrdiff_t pitch;
  };
  Result<Values> read_scalar(const Scalar& scalar, int64_t rows, float* buffer, const char* what);
  /// For what becomes an address or a register: undefined bytes are always a fault (design, section 4).
  Result<Operand> read_certain(const View& view, const char* what);
  /// The whole number a register or a (1,1) tensor holds now.
  Result<int64_t> read_index(const DynamicOffset& dynamic, int64_t row);
  /// The first out.size() indices of an offset tensor: row-major, or column by column (the order of a gathering DMA
  /// transpose).
  enum class IndexOrder : uint8_t { kRows, kColumns };
  Status read_indices(const DynamicOffset& dynamic, IndexOrder order, std::vector<int64_t>& out);
  /// Of an indirect view on chip: for each group of partitions and each column the place, in elements, that the index
  /// adds. DYN1 where one is out of bounds.
  Status read_columns(const View& view, const char* what, std::vector<int64_t>& places);

  // --- steps (machine/replay_step.h): the common case of read() and write(), for tensors all of whose bytes are
  // defined.
  /// Where such a tensor lies; null where read() has more to do.
  const std::byte* read_whole(uint32_t tensor) const {
    if (!has_storage(tensor)) return nullptr;
    const Storage& s = *storages_[tensor];
    return s.defined->whole() ? s.data : nullptr;
  }
  /// The same for writing. `all`: every byte is about to be written, so that all are defined from now on. Null, and
  /// nothing is changed, where write() has more to do.
  std::byte* write_whole(uint32_t tensor, bool all) {
    if (!has_storage(tensor)) return nullptr;
    Storage& s = *storages_[tensor];
    if (!s.writable || s.by_matmul != nullptr) return nullptr;
    if (!s.defined->whole()) {
      if (!all) return nullptr;
      s.defined->mark_all();
    }
    s.written = true;
    s.version = next_version();
    return s.data;
  }
  /// Instructions leave a step here (note_map, note_copy); null stops that.
  void note_step_in(ReplayStep* step) { noted_step_ = step; }
  ReplayStep* noted_step() const { return noted_step_; }

  // --- registers and accumulators
  /// UNINIT2: a register that nothing was written to; it counts as 0 where the options let a run go on.
  Result<int32_t> read_reg(uint32_t id);
  void set_reg(uint32_t id, int32_t value);
  using Accumulators = std::array<float, kMaxPartitions>;
  Accumulators& vector_accumulator() { return vector_accumulator_; }
  Accumulators& scalar_accumulator() { return scalar_accumulator_; }

  // --- random numbers
  Generators& generators() {
    if (!generators_) generators_ = std::make_unique<Generators>(options_.core);
    return *generators_;
  }

  /// A slot for the packed form of `view`; `fresh` says that it holds the current bytes already. The slot asked for
  /// just before stays valid; older ones may be reused. `scale`: a second view that the packed form depends on.
  PackedOperand& packed(const View& view, bool moving, bool double_row, size_t floats, bool* fresh,
                        const View* scale = nullptr);

  void warn(std::string rule, std::string message);
  std::vector<Warning>& warnings() { return warnings_; }
  void set_site(uint32_t site) { site_ = site; }
  ThreadPool& pool() { return *pool_; }
  const Options& options() const { return options_; }
  const TensorInfo& tensor(uint32_t id) const { return (*tensors_)[id]; }
  const DynamicOffset& dynamic(uint32_t row) const { return (*dynamics_)[row]; }
  std::string describe(const View& view) const;  ///< "tile [128, 512] of tensor 'acc'"
  void set_names(const std::vector<std::string>* names) { names_ = names; }
  /// A text of the program by its number.
  std::string_view text(uint32_t id) const {
    return names_ != nullptr && id < names_->size() ? std::string_view((*names_)[id]) : std::string_view();
  }
  int rank() const { return options_.rank; }

 private:
  Status resolve(const View& view, const char* what, Operand* operand);
  Status resolve_dynamic(const View& view, const char* what, Operand* operand);
  Status resolve_columns(const View& view, const char* what, Operand* operand);
  /// f(view) for each element of an indirect view on chip, row-major, or for each column of a group when `whole`.
  template <class F>
  void for_each_column(const View& view, bool whole, const F& f) const;
  Fault no_storage(const View& view, const char* what) const;
  Status undefined_read(const View& view, const char* what, UninitPolicy policy);
  Result<Operand> read_with(const View& view, const char* what, UninitPolicy policy);
  template <class F>
  void for_each_box(const View& view, const F& f) const;
  /// f(element, row, byte): where each element is under `defined`; row -1 for rows of an indirect view that are out of
  /// bounds.
  template <class F>
  void for_each_element(const View& view, const F& f) const;
  int64_t shifted_offset(const View& view) const;

  struct Placed {  // the shared array behind tensors with an address
    Buffer bytes;
    int64_t pitch = 0;
    Defined defined;
    std::vector<uint32_t> matmul_tensors;  ///< those that a matmul wrote to, and perhaps some that no longer are
  };
  Status place(uint32_t tensor, Storage& s, const TensorInfo& info);
  /// A box of `defined` is written, or allocated anew, for a tensor: what matmuls left there for it is gone, and for
  /// others that share the place.
  void forget_matmuls(uint32_t tensor, const Defined::Box& box);
  void forget_matmuls_of_others(uint32_t tensor, const Defined::Box& box);

  Options options_;
  ThreadPool* pool_;
  const std::vector<TensorInfo>* tensors_;
  const std::vector<DynamicOffset>* dynamics_;
  const std::vector<std::string>* names_ = nullptr;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::vector<std::shared_ptr<Storage>> free_storages_;
  std::shared_ptr<BufferPool> buffers_;
  Placed sbuf_, psum_;
  std::vector<std::optional<int32_t>> registers_;
  Accumulators vector_accumulator_{}, scalar_accumulator_{};
  std::unique_ptr<Generators> generators_;       // made when first used: few programs draw
  std::unique_ptr<RoundingGenerator> rounding_;  // null: to nearest even
  std::vector<Warning> warnings_;
  std::vector<PackedOperand> packed_;
  PackedOperand packed_once_[2];
  uint64_t packed_clock_ = 0;
  // Machines that share storage count in steps, each from its own core, so that no two give out one number.
  static constexpr uint64_t kVersionStep = 16;
  uint64_t next_version() { return version_ += kVersionStep; }
  uint64_t version_ = 0;
  uint32_t site_ = 0;
  static constexpr int kIndirectOperands = 4;            // a scattered dst that accumulates is opened twice
  std::vector<int64_t> row_offsets_[kIndirectOperands];  // of the current instruction
  int row_offsets_used_ = 0;
  ReplayStep* noted_step_ = nullptr;

 public:
  void begin_instruction(uint32_t site) {
    site_ = site;
    row_offsets_used_ = 0;
  }
};

}  // namespace sterna
