// SPDX-License-Identifier: Apache-2.0
// What an instruction is: one trivially copyable struct with
//
//   static constexpr Info info{...};          who it is
//   fields                                     operands and options, with defaults
//   static constexpr auto fields();            their names, roles and meaning
//   Status check(const Rules&);                completes choices left open (engine) and refuses what breaks a rule
//   Status execute(Machine&) const;            what it does to the machine
//   Work work(const Rules&) const;             how much work that is, in counts; never in time. The same for whatever
//                                              tensors, places, registers and names (program/work_classes.h)
//
// Everything else is derived from these: the table of functions, the text form, the Python call, the reference page. An
// engine's instructions stand in one header, `isa/ENGINE.h`, which ends with their list; `isa/ENGINE.cc` turns the list
// into its part of the table. To add an instruction, add the struct and its name in that list.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/machine/machine.h"
#include "sterna/machine/tensor.h"
#include "sterna/machine/view.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/functions.h"

namespace sterna {

/// Numbers as in nki.isa.engine (SDK 2.32).
enum class EngineId : uint8_t { kUnknown = 0, kTensor = 1, kScalar = 2, kGpSimd = 3, kDma = 4, kVector = 5, kSync = 6 };
std::string_view name(EngineId engine);

/// nki.isa.reduce_cmd
enum class ReduceCmd : uint8_t { kIdle = 0, kReset = 1, kReduce = 2, kResetReduce = 3, kLoadReduce = 4 };
/// nki.isa.dge_mode
enum class DgeMode : uint8_t { kUnknown = 0, kSoftware = 1, kHardware = 2, kNone = 3 };
/// nki.isa.oob_mode
enum class OobMode : uint8_t { kError = 0, kSkip = 1 };
/// nki.isa.dma_engine
enum class TransferEngine : uint8_t { kNone = 0, kDma = 1, kGpSimdDma = 2 };
/// nki.isa.matmul_perf_mode
enum class PerfMode : uint8_t { kNone = 0, kDoubleRow = 1 };
/// The accumulate argument of nc_matmul: kAuto is None.
enum class AccumulateFlag : uint8_t { kAuto = 0, kOverwrite = 1, kAdd = 2 };

/// [[step, count], ...] of iota and affine_select, outermost first.
struct Pattern {
  int32_t n = 0;
  struct Step {
    int32_t step, count;
  } steps[4] = {};
  /// How many, of positive counts; INT32_MAX and beyond, which no tile has, all count as INT32_MAX.
  int64_t elements() const {
    int64_t total = 1;
    for (int i = 0; i < n; ++i) total = std::min<int64_t>(total * steps[i].count, INT32_MAX);
    return total;
  }
};
/// The mask of nc_stream_shuffle.
struct Lanes32 {
  uint8_t lane[32] = {};
};
/// A short list of small numbers (tile position, axes, ...); n = 0 is "not given".
struct Ints {
  int32_t n = 0;
  int32_t value[4] = {};
};
/// A register by number; kNoRegister is "none".
struct RegisterRef {
  uint32_t id = UINT32_MAX;
};
/// A tensor by id.
struct TensorRef {
  uint32_t id = kNoTensor;
};
/// A text by its id in the program's names; 0 is the empty text.
struct NameRef {
  uint32_t id = 0;
};

struct Info {
  std::string_view mnemonic;
  uint8_t opcode;  ///< of our own records, not the silicon's
  std::string_view summary;
  std::string_view source;  ///< the document that defines it
  /// Operands that take views with .indirect(), separated by blanks. The first that is read is the one whose partitions
  /// the index of a scattered dst follows (TI7).
  std::string_view indirect = {};
  bool array_index = false;  ///< the array reads their index: limits.array_index_partitions share a list
};

enum class Role : uint8_t { kIn, kOut, kInOut, kOption };

template <class Owner, class T>
struct Field {
  std::string_view name;
  T Owner::* member;
  Role role;
  std::string_view doc;
};
template <class O, class T>
constexpr Field<O, T> in(std::string_view n, T O::* m, std::string_view d) {
  return {n, m, Role::kIn, d};
}
template <class O, class T>
constexpr Field<O, T> out(std::string_view n, T O::* m, std::string_view d) {
  return {n, m, Role::kOut, d};
}
template <class O, class T>
constexpr Field<O, T> inout(std::string_view n, T O::* m, std::string_view d) {
  return {n, m, Role::kInOut, d};
}
template <class O, class T>
constexpr Field<O, T> option(std::string_view n, T O::* m, std::string_view d) {
  return {n, m, Role::kOption, d};
}

/// What a rule may ask while an instruction is recorded or counted.
struct Rules {
  const Chip* chip;
  const std::vector<TensorInfo>* tensors;
  const std::vector<DynamicOffset>* dynamics;
  bool strict = false;
  int core = 0, cores = 1;  ///< which core of how many records this
  /// Collects remarks for the current site; may be null.
  void (*remark)(void* context, std::string_view rule, std::string_view message) = nullptr;
  void* context = nullptr;

  const TensorInfo& tensor(const View& v) const { return (*tensors)[v.tensor]; }
  void warn(std::string_view rule, std::string_view message) const {
    if (remark != nullptr) remark(context, rule, message);
  }
  /// Accepted by the official simulator beyond its documents: a warning, or a fault when strict.
  Status compat(std::string_view rule, std::string message) const {
    if (strict) return Fault(FaultKind::kRuleBroken, std::string(rule), std::move(message));
    warn(rule, message);
    return {};
  }
};

/// What an instruction asks of its engine, in counts. The chip file says how fast that is.
struct Work {
  EngineId engine = EngineId::kUnknown;
  double elements = 0;  ///< elements per partition that stream through the engine
  double partitions = 0;
  double multiply_adds = 0;  ///< useful ones, over all lanes
  double moving = 0;         ///< tensor engine: columns of the moving operand
  double stationary = 0;     ///< tensor engine: columns of the stationary operand
  double passes = 1;  ///< tensor engine: passes over the moving operand (fp32: by the chip file), as a type class below
  double per_index = 1;                  ///< gathers: adjoining elements that one index fetches
  double outputs = 0;                    ///< topk: results per partition
  double element_bytes = 4;              ///< gathers: size of an element
  double descriptors = 0;                ///< DMA: runs of adjoining bytes
  double bytes = 0;                      ///< DMA: bytes moved
  double hbm_read = 0, hbm_written = 0;  ///< DMA: bytes at the HBM side
  bool fp32_matmul = false, fp8_matmul = false, double_row = false, is_transpose = false;
  uint32_t fast_cases = 0;  ///< set of bit(FastCase): circumstances that a chip may reward
  bool narrow = false;      ///< every operand is of two bytes (of one, with `narrow8`): wide modes may apply
  bool narrow8 = false;
  bool all_sbuf = false;
  bool contiguous = false;  ///< free dims of every operand adjoin
  bool accumulator_read = false;
  bool dynamic = false;  ///< an operand's place is known at run time only
  bool dma_transpose = false;
  bool store = false;  ///< DMA that writes HBM
  DgeMode dge = DgeMode::kUnknown;
  bool operator==(const Work&) const = default;
};

/// The kinds of field that records, text and Python know how to handle.
enum class FieldType : uint8_t {
  kView,
  kScalar,
  kAluOp,
  kFunction,
  kEngine,
  kReduceCmd,
  kDgeMode,
  kOobMode,
  kTransferEngine,
  kPerfMode,
  kAccumulate,
  kDType,
  kBool,
  kInt,
  kFloat,
  kPattern,
  kLanes32,
  kInts,
  kRegister,
  kTensor,
  kName,
};

template <class T>
constexpr FieldType field_type() {
  if constexpr (std::is_same_v<T, View>)
    return FieldType::kView;
  else if constexpr (std::is_same_v<T, Scalar>)
    return FieldType::kScalar;
  else if constexpr (std::is_same_v<T, AluOp>)
    return FieldType::kAluOp;
  else if constexpr (std::is_same_v<T, Function>)
    return FieldType::kFunction;
  else if constexpr (std::is_same_v<T, EngineId>)
    return FieldType::kEngine;
  else if constexpr (std::is_same_v<T, ReduceCmd>)
    return FieldType::kReduceCmd;
  else if constexpr (std::is_same_v<T, DgeMode>)
    return FieldType::kDgeMode;
  else if constexpr (std::is_same_v<T, OobMode>)
    return FieldType::kOobMode;
  else if constexpr (std::is_same_v<T, TransferEngine>)
    return FieldType::kTransferEngine;
  else if constexpr (std::is_same_v<T, PerfMode>)
    return FieldType::kPerfMode;
  else if constexpr (std::is_same_v<T, AccumulateFlag>)
    return FieldType::kAccumulate;
  else if constexpr (std::is_same_v<T, DType>)
    return FieldType::kDType;
  else if constexpr (std::is_same_v<T, bool>)
    return FieldType::kBool;
  else if constexpr (std::is_same_v<T, int32_t>)
    return FieldType::kInt;
  else if constexpr (std::is_same_v<T, float>)
    return FieldType::kFloat;
  else if constexpr (std::is_same_v<T, Pattern>)
    return FieldType::kPattern;
  else if constexpr (std::is_same_v<T, Lanes32>)
    return FieldType::kLanes32;
  else if constexpr (std::is_same_v<T, Ints>)
    return FieldType::kInts;
  else if constexpr (std::is_same_v<T, RegisterRef>)
    return FieldType::kRegister;
  else if constexpr (std::is_same_v<T, NameRef>)
    return FieldType::kName;
  else {
    static_assert(std::is_same_v<T, TensorRef>, "a field type that records do not know");
    return FieldType::kTensor;
  }
}

/// A field without its owner's type: what generic code walks.
struct FieldSpec {
  std::string_view name;
  std::string_view doc;
  FieldType type;
  Role role;
  uint16_t offset;
};

template <class I>
concept Instruction = std::is_trivially_copyable_v<I> && std::is_standard_layout_v<I> &&
                      requires(I i, const I c, Machine& m, const Rules& r) {
                        { I::info } -> std::convertible_to<Info>;
                        I::fields();
                        { i.check(r) } -> std::same_as<Status>;
                        { c.execute(m) } -> std::same_as<Status>;
                        { c.work(r) } -> std::same_as<Work>;
                      };

/// One row of the instruction table.
struct TableRow {
  Info info{};
  uint16_t bytes = 0;
  uint8_t field_count = 0;
  const FieldSpec* fields = nullptr;
  void (*construct)(void*) = nullptr;  ///< default values
  Status (*check)(void*, const Rules&) = nullptr;
  Status (*execute)(const void*, Machine&) = nullptr;
  Work (*work)(const void*, const Rules&) = nullptr;
  std::span<const FieldSpec> field_list() const { return {fields, field_count}; }
};

template <Instruction... I>
struct InstructionList {};

/// The list of all of A's instructions, then B's, ...
template <class... Lists>
struct JoinLists;
template <class... Lists>
using Joined = typename JoinLists<Lists...>::type;
template <Instruction... A>
struct JoinLists<InstructionList<A...>> {
  using type = InstructionList<A...>;
};
template <Instruction... A, Instruction... B, class... Rest>
struct JoinLists<InstructionList<A...>, InstructionList<B...>, Rest...> {
  using type = Joined<InstructionList<A..., B...>, Rest...>;
};

namespace detail {
template <class I, size_t N>
struct Specs {
  std::array<FieldSpec, N> list;
};

template <class I>
auto make_specs() {
  constexpr size_t n = std::tuple_size_v<decltype(I::fields())>;
  std::array<FieldSpec, n> list{};
  I probe{};
  size_t at = 0;
  std::apply(
      [&](const auto&... f) {
        (..., [&] {
          using T = std::remove_cvref_t<decltype(probe.*(f.member))>;
          const auto offset =
              reinterpret_cast<const char*>(&(probe.*(f.member))) - reinterpret_cast<const char*>(&probe);
          list[at++] = {f.name, f.doc, field_type<T>(), f.role, static_cast<uint16_t>(offset)};
        }());
      },
      I::fields());
  return list;
}

template <class I>
TableRow make_row() {
  static const auto specs = make_specs<I>();
  TableRow row;
  row.info = I::info;
  row.bytes = sizeof(I);
  row.field_count = static_cast<uint8_t>(specs.size());
  row.fields = specs.data();
  row.construct = [](void* at) { new (at) I{}; };
  row.check = [](void* at, const Rules& rules) { return static_cast<I*>(at)->check(rules); };
  row.execute = [](const void* at, Machine& machine) { return static_cast<const I*>(at)->execute(machine); };
  row.work = [](const void* at, const Rules& rules) { return static_cast<const I*>(at)->work(rules); };
  return row;
}
}  // namespace detail

/// The rows of one engine's list, in its order.
template <Instruction... I>
std::vector<TableRow> make_part(InstructionList<I...>) {
  return {detail::make_row<I>()...};
}

/// The whole table, by opcode; rows without an instruction have an empty mnemonic.
const std::array<TableRow, 256>& instruction_table();
const TableRow* find_instruction(std::string_view mnemonic);

/// Calls f(view, role) for every view among the fields (also the one inside a Scalar).
template <class F>
void for_each_view(const TableRow& row, const void* record, const F& f) {
  for (const FieldSpec& spec : row.field_list()) {
    const auto* at = static_cast<const char*>(record) + spec.offset;
    if (spec.type == FieldType::kView) {
      const View& v = *reinterpret_cast<const View*>(at);
      if (!v.empty()) f(v, spec.role);
    } else if (spec.type == FieldType::kScalar) {
      const Scalar& s = *reinterpret_cast<const Scalar*>(at);
      if (s.is_view) f(s.view, spec.role);
    }
  }
}

}  // namespace sterna
