// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/lower.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"
#include "sterna/isa/vector_move.h"
#include "sterna/timing/formulas.h"
#include "sterna/timing/memories.h"

namespace sterna {
namespace {

int64_t picoseconds(double ns) { return std::llround(ns * 1000); }

constexpr size_t kMostViews = 20;  // dma_compute has a result, sixteen sources and room to grow

bool is_dma_formula(Formula f) { return f >= Formula::kDma && f <= Formula::kSend; }

/// What is the same for every record of one opcode.
struct Plan {
  enum class Kind : uint8_t { kUnknown, kSkip, kAlloc, kLoop, kWhile, kIf, kEnd, kRegister, kEngine, kDma };
  struct Slot {
    uint16_t offset;
    Role role;
    bool scalar;
  };
  Kind kind = Kind::kUnknown;
  uint8_t views = 0;
  Slot slot[kMostViews] = {};
  const InstructionCost* cost = nullptr;
};

class Lowering {
 public:
  Lowering(const Program& program, const Path& path, const Chip& chip, const Placement& placement,
           const TimingOptions& options)
      : program_(program),
        chip_(chip),
        options_(options),
        path_(path),
        has_path_(!path.empty()),
        rules_{&chip, &program.tensors, &program.dynamics},
        memories_(program, chip, placement),
        registers_(program.register_count) {}

  Result<Lowered> run() {
    make_plans();
    track_hbm();
    sort_edges();
    share_ports_ = chip_.ports.vector_gpsimd_exclusive_sbuf || chip_.ports.wide_mode_excludes_gpsimd ||
                   chip_.ports.vector_scalar_exclusive_psum;
    const size_t n = program_.cores[0].size();
    out_.instructions.reserve(n);
    out_.wait_begin.reserve(n + 1);
    out_.waits.reserve(2 * n);
    STERNA_TRY(run_range(0, n));
    if (path_.short_of_values)
      return Fault(FaultKind::kBadInput, "PATH1",
                   "The path ends before the program does; it belongs to another program or run.");
    out_.wait_begin.push_back(static_cast<uint32_t>(out_.waits.size()));
    return std::move(out_);
  }

 private:
  static constexpr int kSlots = kQueues + 1;

  void make_plans() {
    for (const TableRow& row : instruction_table()) {
      if (row.info.mnemonic.empty()) continue;
      Plan& plan = plans_[row.info.opcode];
      plan.cost = chip_.instruction_cost(row.info.mnemonic);
      plan.kind = kind_of(row, plan.cost);
      for (const FieldSpec& field : row.field_list()) {
        if (field.type != FieldType::kView && field.type != FieldType::kScalar) continue;
        if (plan.views < kMostViews)
          plan.slot[plan.views++] = {field.offset, field.role, field.type == FieldType::kScalar};
      }
    }
  }
  static Plan::Kind kind_of(const TableRow& row, const InstructionCost* cost) {
    using Kind = Plan::Kind;
    switch (row.info.opcode) {
      case control::Alloc::info.opcode: return Kind::kAlloc;
      case control::Loop::info.opcode: return Kind::kLoop;
      case control::While::info.opcode: return Kind::kWhile;
      case control::If::info.opcode: return Kind::kIf;
      case control::End::info.opcode: return Kind::kEnd;
      case control::DevicePrint::info.opcode: return Kind::kSkip;  // the host's work
      case control::RegisterMove::info.opcode:
      case control::RegisterLoad::info.opcode:
      case control::RegisterStore::info.opcode: return Kind::kRegister;
      default: break;
    }
    if (cost == nullptr) return Kind::kUnknown;
    if (cost->formula == Formula::kFree) return Kind::kSkip;
    return is_dma_formula(cost->formula) ? Kind::kDma : Kind::kEngine;
  }

  template <class F>
  void views(const Plan& plan, const RecordHeader& header, const F& f) const {
    for (int i = 0; i < plan.views; ++i) {
      const char* at = static_cast<const char*>(header.body()) + plan.slot[i].offset;
      const View* view = reinterpret_cast<const View*>(at);
      if (plan.slot[i].scalar) {
        const Scalar& scalar = *reinterpret_cast<const Scalar*>(at);
        if (!scalar.is_view) continue;
        view = &scalar.view;
      } else if (view->empty()) {
        continue;
      }
      f(*view, plan.slot[i].role);
    }
  }

  /// Order in HBM matters only for tensors that are both read and written: what is only read needs none, and what is
  /// only written leaves through one queue in order.
  void track_hbm() {
    std::vector<uint8_t> use(program_.tensors.size());
    const Stream& stream = program_.cores[0];
    for (size_t i = 0; i < stream.size(); ++i) {
      const Plan& plan = plans_[stream[i].opcode];
      if (plan.kind != Plan::Kind::kDma && plan.kind != Plan::Kind::kRegister && plan.kind != Plan::Kind::kUnknown)
        continue;
      views(plan, stream[i], [&](const View& v, Role role) {
        if (v.on_chip()) return;
        use[v.tensor] |= (role == Role::kIn ? 1 : 0) | (role == Role::kOut ? 2 : 0) | (role == Role::kInOut ? 3 : 0);
        if (v.kind != ViewKind::kStrided) {
          const DynamicOffset& dynamic = program_.dynamics[v.dynamic];
          if (dynamic.source == DynamicOffset::Source::kTensor && !dynamic.index.on_chip())
            use[dynamic.index.tensor] |= 1;
        }
      });
    }
    for (uint32_t id = 0; id < use.size(); ++id)
      if (use[id] == 3) memories_.track_hbm(id);
  }

  void sort_edges() {
    edges_ = program_.edges;
    std::sort(edges_.begin(), edges_.end(), [](const ExtraEdge& a, const ExtraEdge& b) {
      return a.consumer != b.consumer ? a.consumer < b.consumer : a.producer < b.producer;
    });
    if (!edges_.empty()) latest_.assign(program_.cores[0].size(), kNoInstruction);
  }

  // ---- The walk.

  Status run_range(size_t begin, size_t end) {
    const Stream& stream = program_.cores[0];
    for (size_t i = begin; i < end; ++i) {
      const RecordHeader& header = stream[i];
      const Plan& plan = plans_[header.opcode];
      switch (plan.kind) {
        case Plan::Kind::kSkip:
        case Plan::Kind::kEnd: skip_path(plan, header); break;
        case Plan::Kind::kAlloc:
          memories_.allocate(static_cast<const control::Alloc*>(header.body())->tensor.id);
          break;
        case Plan::Kind::kLoop:
        case Plan::Kind::kWhile:
        case Plan::Kind::kIf: {
          STERNA_ASSIGN(const size_t close, region_end(i));
          STERNA_TRY(plan.kind == Plan::Kind::kLoop    ? run_loop(i, close)
                     : plan.kind == Plan::Kind::kWhile ? run_while(i, close)
                                                       : run_if(i, close));
          i = close;
          break;
        }
        case Plan::Kind::kUnknown: STERNA_TRY(take_default_cost(header)); [[fallthrough]];
        default: add(static_cast<uint32_t>(i), header, plan);
      }
      if (path_.short_of_values) return {};
    }
    if (out_.instructions.size() > Ref::kMaxIndex)
      return Fault(FaultKind::kNotImplemented, "", "More than 500 million instructions in one run cannot be timed.");
    return {};
  }

  /// The cost that the chip's description has for whatever else runs on that engine.
  Status take_default_cost(const RecordHeader& header) {
    const TableRow& row = instruction_table()[header.opcode];
    const EngineId engine = row.work(header.body(), rules_).engine;
    const InstructionCost* cost = chip_.cost_or_default(row.info.mnemonic, name(engine));
    if (cost == nullptr) {
      Fault fault(FaultKind::kBug, "COST1",
                  cat("The description of ", chip_.name, " gives no cost for ", row.info.mnemonic,
                      " and no default for the engine ", name(engine), "."));
      fault.site = header.site;
      program_.locate(fault);
      return fault;
    }
    Plan& plan = plans_[header.opcode];
    plan.cost = cost;
    plan.kind = is_dma_formula(cost->formula) ? Plan::Kind::kDma : Plan::Kind::kEngine;
    out_.default_costs.push_back(cost);
    return {};
  }

  Result<size_t> region_end(size_t begin) const {
    const Stream& stream = program_.cores[0];
    int depth = 0;
    for (size_t i = begin; i < stream.size(); ++i) {
      const auto kind = plans_[stream[i].opcode].kind;
      if (kind == Plan::Kind::kLoop || kind == Plan::Kind::kWhile || kind == Plan::Kind::kIf) ++depth;
      if (kind == Plan::Kind::kEnd && --depth == 0) return i;
    }
    return Fault(FaultKind::kBadInput, "REGION2", "A region is not closed.");
  }

  static Fault no_path() {
    return Fault(FaultKind::kBadInput, "PATH1",
                 "This program's course depends on values; its time needs the path of a run.");
  }

  Status run_loop(size_t begin, size_t close) {
    const auto& loop = *static_cast<const control::Loop*>(program_.cores[0][begin].body());
    int64_t low = loop.low, high = loop.high, step = loop.step;
    if (has_path_) {
      low = path_.next();
      high = path_.next();
      step = path_.next();
    } else if (loop.low_reg.id != UINT32_MAX || loop.high_reg.id != UINT32_MAX) {
      return no_path();
    }
    if (step <= 0)
      return Fault(FaultKind::kBadInput, "PATH1",
                   "The path does not belong to this program: a loop's step is not positive.");
    follow(loop.low_reg);
    follow(loop.high_reg);
    for (int64_t i = low; i < high; i += step) {
      STERNA_TRY(run_range(begin + 1, close));
      if (path_.short_of_values) break;
    }
    return {};
  }
  Status run_while(size_t begin, size_t close) {
    if (!has_path_) return no_path();
    const auto& loop = *static_cast<const control::While*>(program_.cores[0][begin].body());
    follow(loop.reg);
    while (path_.next() != 0) {
      STERNA_TRY(run_range(begin + 1, close));
      follow(loop.reg);
    }
    return {};
  }
  Status run_if(size_t begin, size_t close) {
    if (!has_path_) return no_path();
    follow(static_cast<const control::If*>(program_.cores[0][begin].body())->reg);
    return path_.next() != 0 ? run_range(begin + 1, close) : Status();
  }
  /// What follows a decision on a register waits for the register.
  void follow(RegisterRef reg) {
    if (reg.id >= registers_.size() || registers_[reg.id].none()) return;
    if (control_.none() || control_.index() < registers_[reg.id].index()) control_ = registers_[reg.id];
  }

  // ---- One instruction.

  void skip_path(const Plan& plan, const RecordHeader& header) {
    if (header.flags & RecordHeader::kHasDynamic) read_path(plan, header);
  }
  /// Takes this record's dynamic offsets from the path, in the order in which the executor wrote them.
  void read_path(const Plan& plan, const RecordHeader& header) {
    offsets_.clear();
    views(plan, header, [&](const View& v, Role) {
      if (v.kind == ViewKind::kStrided) return;
      if (v.kind == ViewKind::kDynamic) {
        offsets_.push_back(path_.next());
        return;
      }
      offsets_.push_back(0);
      const int64_t rows = path_.next();
      for (int64_t r = 0; r < rows && !path_.short_of_values; ++r) path_.next();
    });
  }

  void add(uint32_t record, const RecordHeader& header, const Plan& plan) {
    const auto index = static_cast<uint32_t>(out_.instructions.size());
    const Work work = instruction_table()[header.opcode].work(header.body(), rules_);
    collect(plan, header);
    const bool own_queue = work.store && chip_.scheduling.separate_store_queue;
    const Queue queue =
        plan.kind == Plan::Kind::kDma ? (own_queue ? Queue::kStore : Queue::kLoad) : queue_of(header, work);
    const Ref ref(index, static_cast<uint32_t>(queue));
    InstructionTime& out = out_.instructions.emplace_back();
    out.record = record;
    out.queue = queue;
    out_.opcodes.set(header.opcode);
    out_.order[static_cast<size_t>(queue)].push_back(index);
    if (plan.kind == Plan::Kind::kDma)
      add_transfer(work, *plan.cost, queue);
    else
      out.end = duration(work, *plan.cost, queue);
    if (share_ports_) out_.ports.push_back(ports_of(work, *plan.cost, queue));
    out_.multiply_adds += work.multiply_adds;
    find_waits(record, header, plan, ref);
  }

  Queue queue_of(const RecordHeader& header, const Work& work) {
    switch (work.engine) {
      case EngineId::kTensor: return Queue::kTensor;
      case EngineId::kScalar: return Queue::kScalar;
      case EngineId::kGpSimd: return Queue::kGpSimd;
      case EngineId::kVector:
        if (header.opcode == vector_engine::Memset::info.opcode && operands_[0].view->memory == Memory::kPsum) {
          out_.psum_fill = true;
          return chip_.scheduling.psum_memset_on_gpsimd ? Queue::kGpSimd : Queue::kVector;
        }
        return Queue::kVector;
      default: return Queue::kSync;
    }
  }

  int64_t duration(const Work& work, const InstructionCost& cost, Queue queue) const {
    bool strided = false;
    const Engine* engine = engine_of(chip_, work.engine);
    if (engine != nullptr && engine->stride_bytes > 0)
      for (int i = 0; i < count_; ++i) strided = strided || is_strided(*operands_[i].view, engine->stride_bytes);
    if (queue == Queue::kGpSimd && work.engine == EngineId::kVector) {
      Work moved = work;
      moved.engine = EngineId::kGpSimd;
      return picoseconds(engine_ns(moved, cost, chip_, strided));
    }
    return picoseconds(engine_ns(work, cost, chip_, strided));
  }
  /// True if neighbours along the innermost dimension lie `bytes` or more apart.
  static bool is_strided(const View& v, int64_t bytes) {
    for (int d = v.ndim - 1; d >= 1; --d)
      if (v.dims[d].count > 1)
        return std::abs(v.dims[d].stride) * static_cast<int64_t>(size_of(v.dtype)) >= bytes && v.dims[d].stride != 1;
    return false;
  }

  void add_transfer(const Work& work, const InstructionCost& cost, Queue queue) {
    const DmaDemand demand = dma_demand(work, cost, chip_, options_.cores_on_stack);
    out_.transfers[queue == Queue::kStore].push_back(
        {picoseconds(demand.engine_ns), picoseconds(demand.issue_ns), picoseconds(demand.hbm_ns), demand.engines});
    out_.dma_bytes += work.bytes;
    out_.hbm_read += work.hbm_read;
    out_.hbm_written += work.hbm_written;
    out_.hbm_ps += demand.hbm_ns * 1000;
    const Real* issue = &dma_issue(work, chip_);
    out_.issue_static |= issue == &chip_.dma.issue_static;
    out_.issue_hardware |= issue == &chip_.dma.issue_hardware;
    out_.issue_software |= issue == &chip_.dma.issue_software;
  }

  uint8_t ports_of(const Work& work, const InstructionCost& cost, Queue queue) const {
    if (queue != Queue::kVector && queue != Queue::kScalar &&
        !(queue == Queue::kGpSimd && work.engine == EngineId::kGpSimd))
      return 0;
    bool sbuf = false, psum = false;
    for (int i = 0; i < count_; ++i) {
      sbuf = sbuf || operands_[i].view->memory == Memory::kSbuf;
      psum = psum || operands_[i].view->memory == Memory::kPsum;
    }
    uint8_t ports = 0;
    if (queue != Queue::kScalar && sbuf) {
      const bool wide = queue == Queue::kGpSimd || wide_factor(work, cost, chip_.vector, chip_.features) > 1;
      if (chip_.ports.vector_gpsimd_exclusive_sbuf || (chip_.ports.wide_mode_excludes_gpsimd && wide))
        ports |= kSbufPort;
    }
    if (queue != Queue::kGpSimd && psum && chip_.ports.vector_scalar_exclusive_psum) ports |= kPsumPort;
    return ports;
  }

  void collect(const Plan& plan, const RecordHeader& header) {
    count_ = 0;
    const bool dynamic = (header.flags & RecordHeader::kHasDynamic) != 0;
    if (dynamic) read_path(plan, header);
    size_t at = 0;
    views(plan, header, [&](const View& v, Role role) {
      Access& operand = operands_[count_++];
      operand = {&v, role, 0, false};
      if (!dynamic || v.kind == ViewKind::kStrided) return;
      operand.extra = offsets_[at++];
      operand.whole = v.kind == ViewKind::kIndirect;
    });
  }

  // ---- What it waits for.

  void find_waits(uint32_t record, const RecordHeader& header, const Plan& plan, Ref ref) {
    out_.wait_begin.push_back(static_cast<uint32_t>(out_.waits.size()));
    mask_ = 0;
    const auto note = [&](Ref producer, Hazard hazard) {
      add_wait(producer, ref, hazard == Hazard::kReadAfterWrite ? Cause::kOperand : Cause::kBuffer,
               hazard == Hazard::kWriteAfterRead);
    };
    for (int i = 0; i < count_; ++i)
      if (operands_[i].role != Role::kOut) read(operands_[i], ref, note);
    if (header.flags & RecordHeader::kHasDynamic) wait_for_offsets(ref, note);
    for (int i = 0; i < count_; ++i)
      if (operands_[i].role != Role::kIn) write(operands_[i], ref, note);
    if (plan.kind == Plan::Kind::kRegister) use_registers(header, ref);
    if (!control_.none()) add_wait(control_, ref, Cause::kSemaphore, false);
    if (!edges_.empty()) wait_for_edges(record, ref);
    for (uint32_t left = mask_; left != 0; left &= left - 1) out_.waits.push_back(latest_wait_[std::countr_zero(left)]);
  }

  template <class Note>
  void read(const Access& access, Ref ref, const Note& note) {
    Box box;
    if (AccessMap* map = memories_.find(access, &box)) map->read(box, ref, note);
  }
  template <class Note>
  void write(const Access& access, Ref ref, const Note& note) {
    Box box;
    if (AccessMap* map = memories_.find(access, &box)) map->write(box, ref, note);
  }

  void add_wait(Ref producer, Ref consumer, Cause cause, bool after_read) {
    const uint32_t queue = producer.queue();
    // An engine runs its own instructions in order; transfers of one queue overlap, so they must wait for one another.
    if (queue == consumer.queue() && !is_dma(static_cast<Queue>(queue))) return;
    // The tensor engine's results come later than its reads end, so each has a slot.
    const uint32_t slot = queue == static_cast<uint32_t>(Queue::kTensor) && after_read ? kSlots - 1 : queue;
    Wait& wait = latest_wait_[slot];
    const bool fresh = (mask_ >> slot & 1) == 0;
    if (!fresh &&
        (wait.producer > producer.index() || (wait.producer == producer.index() && wait.cause == Cause::kOperand)))
      return;
    wait = {producer.index(), cause, after_read};
    mask_ |= 1u << slot;
  }

  template <class Note>
  void wait_for_offsets(Ref ref, const Note& note) {
    for (int i = 0; i < count_; ++i) {
      const View& v = *operands_[i].view;
      if (v.kind == ViewKind::kStrided) continue;
      const DynamicOffset& dynamic = program_.dynamics[v.dynamic];
      if (dynamic.source == DynamicOffset::Source::kRegister) {
        if (dynamic.reg < registers_.size() && !registers_[dynamic.reg].none())
          add_wait(registers_[dynamic.reg], ref, Cause::kSemaphore, false);
      } else {
        read({&dynamic.index, Role::kIn, 0, false}, ref, note);
      }
    }
  }

  void use_registers(const RecordHeader& header, Ref ref) {
    if (header.opcode == control::RegisterStore::info.opcode) return;  // reads on its own queue, in order
    const RegisterRef dst = header.opcode == control::RegisterMove::info.opcode
                                ? static_cast<const control::RegisterMove*>(header.body())->dst
                                : static_cast<const control::RegisterLoad*>(header.body())->dst;
    if (dst.id < registers_.size()) registers_[dst.id] = ref;
  }

  void wait_for_edges(uint32_t record, Ref ref) {
    latest_[record] = ref.bits;
    auto at = std::lower_bound(edges_.begin(), edges_.end(), record,
                               [](const ExtraEdge& e, uint32_t r) { return e.consumer < r; });
    for (; at != edges_.end() && at->consumer == record; ++at) {
      if (at->producer >= latest_.size() || latest_[at->producer] == kNoInstruction) continue;
      Ref producer;
      producer.bits = latest_[at->producer];
      add_wait(producer, ref, Cause::kSemaphore, false);
    }
  }

  const Program& program_;
  const Chip& chip_;
  const TimingOptions options_;
  PathReader path_;
  bool has_path_;
  Rules rules_;
  bool share_ports_ = false;
  std::array<Plan, 256> plans_{};
  Memories memories_;
  std::vector<Ref> registers_;    // who wrote each register last
  Ref control_;                   // what the current region's decision waited for
  std::vector<ExtraEdge> edges_;  // by consumer
  std::vector<uint32_t> latest_;  // Ref bits of the latest run of each record
  std::vector<int64_t> offsets_;
  Access operands_[kMostViews] = {};
  int count_ = 0;
  std::array<Wait, kSlots> latest_wait_{};
  uint32_t mask_ = 0;
  Lowered out_;
};

}  // namespace

Result<Lowered> lower(const Program& program, const Path& path, const Chip& chip, const Placement& placement,
                      const TimingOptions& options) {
  return Lowering(program, path, chip, placement, options).run();
}

}  // namespace sterna
