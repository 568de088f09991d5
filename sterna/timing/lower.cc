// SPDX-License-Identifier: Apache-2.0
#include "sterna/timing/lower.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sterna/isa/control.h"
#include "sterna/isa/cores.h"
#include "sterna/timing/collective.h"
#include "sterna/timing/formulas.h"
#include "sterna/timing/meetings.h"
#include "sterna/timing/memories.h"

namespace sterna {
namespace {

class Lowering {
 public:
  Lowering(const Program& program, size_t core, const Path& path, const Chip& chip, const Placement& placement,
           const TimingOptions& options, Lowered& out)
      : program_(program),
        stream_(program.cores[core]),
        core_number_(static_cast<uint8_t>(core)),
        chip_(chip),
        rank_(options.rank),
        path_(path),
        has_path_(!path.empty()),
        memories_(program, chip, placement),
        work_only_(placement.byte.size() < program.tensors.size()),
        registers_(program.register_count),
        out_(out),
        core_(out.cores[core]),
        costs_(core_.costs) {}

  Status run() {
    if (!work_only_) track_hbm();
    sort_edges();
    const size_t n = stream_.size();
    out_.instructions.reserve(out_.instructions.size() + n);
    core_.waits.reserve(2 * n);
    STERNA_TRY(run_range(0, n));
    if (path_.short_of_values)
      return Fault(FaultKind::kBadInput, "PATH1",
                   "The path ends before the program does; it belongs to another program or run.");
    return {};
  }

 private:
  static constexpr int kSlots = kQueues + 1;

  /// Order in HBM matters only for tensors that are both read and written: what is only read needs none, and what is
  /// only written leaves through one queue in order.
  void track_hbm() {
    std::vector<uint8_t> use(program_.tensors.size());
    std::vector<bool> reaches(stream_.work_classes().size());
    for (uint32_t c = 0; c < reaches.size(); ++c) {
      const Step step = costs_.step(stream_.work_classes().example(c).opcode);
      reaches[c] = step == Step::kDma || step == Step::kRegister || step == Step::kMeet || step == Step::kUnknown;
    }
    for (size_t i = 0; i < stream_.size(); ++i) {
      if (!reaches[stream_.work_class(i)]) continue;
      costs_.views(stream_[i], [&](const View& v, Role role) {
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
    std::copy_if(program_.edges.begin(), program_.edges.end(), std::back_inserter(edges_),
                 [this](const ExtraEdge& e) { return e.core == core_number_; });
    std::sort(edges_.begin(), edges_.end(), [](const ExtraEdge& a, const ExtraEdge& b) {
      return a.consumer != b.consumer ? a.consumer < b.consumer : a.producer < b.producer;
    });
    if (!edges_.empty()) latest_.assign(stream_.size(), kNoInstruction);
  }

  // ---- The walk.

  Status run_range(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t work_class = stream_.work_class(i);
      const Cost* cost = &costs_[work_class];
      if (!cost->known) STERNA_TRY(costs_.find(work_class));
      switch (cost->step) {
        case Step::kSkip:
        case Step::kEnd:
          if (cost->dynamic) read_path(stream_[i]);
          break;
        case Step::kAlloc:
          if (!work_only_) memories_.allocate(static_cast<const control::Alloc*>(stream_[i].body())->tensor.id);
          break;
        case Step::kLoop:
        case Step::kWhile:
        case Step::kIf: {
          STERNA_ASSIGN(const size_t close, region_end(i));
          STERNA_TRY(cost->step == Step::kLoop    ? run_loop(i, close)
                     : cost->step == Step::kWhile ? run_while(i, close)
                                                  : run_if(i, close));
          i = close;
          break;
        }
        case Step::kMeet: STERNA_TRY(add_meet(static_cast<uint32_t>(i), work_class, *cost)); break;
        default: add(static_cast<uint32_t>(i), work_class, *cost);
      }
      if (path_.short_of_values) return {};
    }
    if (out_.instructions.size() > Ref::kMaxIndex)
      return Fault(FaultKind::kNotImplemented, "", "More than 500 million instructions in one run cannot be timed.");
    return {};
  }

  Result<size_t> region_end(size_t begin) const {
    int depth = 0;
    for (size_t i = begin; i < stream_.size(); ++i) {
      const Step step = costs_.step(stream_[i].opcode);
      if (step == Step::kLoop || step == Step::kWhile || step == Step::kIf) ++depth;
      if (step == Step::kEnd && --depth == 0) return i;
    }
    return Fault(FaultKind::kBadInput, "REGION2", "A region is not closed.");
  }

  static Fault no_path() {
    return Fault(FaultKind::kBadInput, "PATH1",
                 "This program's course depends on values; its time needs the path of a run.");
  }

  Status run_loop(size_t begin, size_t close) {
    const auto& loop = *static_cast<const control::Loop*>(stream_[begin].body());
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
    const auto& loop = *static_cast<const control::While*>(stream_[begin].body());
    follow(loop.reg);
    while (path_.next() != 0) {
      STERNA_TRY(run_range(begin + 1, close));
      follow(loop.reg);
    }
    return {};
  }
  Status run_if(size_t begin, size_t close) {
    if (!has_path_) return no_path();
    follow(static_cast<const control::If*>(stream_[begin].body())->reg);
    return path_.next() != 0 ? run_range(begin + 1, close) : Status();
  }
  /// What follows a decision on a register waits for the register.
  void follow(RegisterRef reg) {
    if (reg.id >= registers_.size() || registers_[reg.id].none()) return;
    if (control_.none() || control_.index() < registers_[reg.id].index()) control_ = registers_[reg.id];
  }

  // ---- One instruction.

  /// Takes what this record's operands add to their places from the path, in the order in which the executor wrote it.
  void read_path(const RecordHeader& header) {
    offsets_.clear();
    costs_.views(header, [&](const View& v, Role) {
      offsets_.push_back(v.kind == ViewKind::kDynamic ? path_.next() : 0);
      if (v.kind != ViewKind::kIndirect) return;
      const int64_t rows = path_.next();
      for (int64_t r = 0; r < rows && !path_.short_of_values; ++r) path_.next();
    });
  }

  void add(uint32_t record, uint32_t work_class, const Cost& cost) {
    const RecordHeader& header = stream_[record];
    const Ref ref(static_cast<uint32_t>(out_.instructions.size()), static_cast<uint32_t>(cost.queue));
    out_.instructions.push_back({0, 0, record, kNoInstruction, header.site, cost.queue, Cause::kLaunch, core_number_});
    out_.multiply_adds += cost.multiply_adds;
    if (cost.step >= Step::kDma) count_bytes(cost);
    if (work_only_) {
      if (cost.dynamic) read_path(header);
      return;
    }
    find_waits(record, header, cost, ref);
    const auto first = static_cast<uint32_t>(core_.waits.size());
    for (uint32_t left = mask_; left != 0; left &= left - 1)
      core_.waits.push_back(latest_wait_[std::countr_zero(left)]);
    core_.order[static_cast<size_t>(cost.queue)].push_back(
        {ref.index(), work_class, first, static_cast<uint32_t>(core_.waits.size()) - first});
  }

  /// A collective in which this rank takes no part is none.
  Status add_meet(uint32_t record, uint32_t work_class, const Cost& cost) {
    const RecordHeader& header = stream_[record];
    Meet meet{static_cast<uint32_t>(out_.instructions.size()), cost.queue, cost.duration_ps};
    if (collectives::is_collective(header.opcode)) {
      STERNA_ASSIGN(const Collective c, find_collective(program_, header, rank_, chip_));
      if (c.ranks == 0) return {};
      const Hop hop = hop_of(chip_.link, c.several_chips);
      meet.duration_ps = std::llround(collective_ns(costs_.formula(header.opcode), c.bytes, c.ranks, hop) * 1000);
      if (c.in_hbm) meet.group = c.group;
      (c.several_chips ? core_.link_between_chips : core_.link_inside_chip) = true;
    }
    add(record, work_class, cost);
    if (!work_only_) core_.meets.push_back(meet);
    return {};
  }

  void count_bytes(const Cost& cost) {
    out_.dma_bytes += cost.dma_bytes;
    out_.hbm_read += cost.hbm_read;
    out_.hbm_written += cost.hbm_written;
    out_.hbm_ps += cost.hbm_ps;
  }

  // ---- What it waits for.

  void find_waits(uint32_t record, const RecordHeader& header, const Cost& cost, Ref ref) {
    mask_ = 0;
    if (cost.dynamic) read_path(header);
    const auto note = [&](Ref producer, Hazard hazard) {
      add_wait(producer, ref, hazard == Hazard::kReadAfterWrite ? Cause::kOperand : Cause::kBuffer,
               hazard == Hazard::kWriteAfterRead);
    };
    const OperandShape* shapes = costs_.operands(cost);
    for (uint32_t i = 0; i < cost.operands; ++i)
      if (shapes[i].role != Role::kOut)
        access(shapes[i], i, header, [&](AccessMap& map, const Box& box) { map.read(box, ref, note); });
    if (cost.dynamic) wait_for_offsets(header, ref, note);
    for (uint32_t i = 0; i < cost.operands; ++i)
      if (shapes[i].role != Role::kIn)
        access(shapes[i], i, header, [&](AccessMap& map, const Box& box) { map.write(box, ref, note); });
    if (cost.step == Step::kRegister) use_registers(header, ref);
    if (!control_.none()) add_wait(control_, ref, Cause::kSemaphore, false);
    if (!edges_.empty()) wait_for_edges(record, ref);
  }

  /// Calls f(map, box) with the place of the record's i-th operand, if its order matters.
  template <class F>
  void access(const OperandShape& shape, uint32_t i, const RecordHeader& header, const F& f) {
    const View& v = *reinterpret_cast<const View*>(static_cast<const char*>(header.body()) + shape.offset);
    if (shape.plain) return f(memories_.map(shape.memory), memories_.box(shape, v));
    const int64_t extra = v.kind == ViewKind::kStrided ? 0 : offsets_[i];
    Box box;
    // A barrier orders all of its tensor, whichever part of it is named.
    const bool whole = v.kind == ViewKind::kIndirect || header.opcode == cores::CoreBarrier::info.opcode;
    if (AccessMap* map = memories_.find({&v, shape.role, extra, whole}, &box)) f(*map, box);
  }

  void add_wait(Ref producer, Ref consumer, Cause cause, bool after_read) {
    const uint32_t queue = producer.queue();
    // An engine runs its own instructions in order; transfers of one queue overlap, so they must wait for one another.
    if (queue == consumer.queue() && !is_dma(static_cast<Queue>(queue))) return;
    // The tensor engine's results come later than its reads end, so each has a slot.
    const uint32_t slot = queue == static_cast<uint32_t>(Queue::kTensor) && after_read ? kSlots - 1 : queue;
    Wait& wait = latest_wait_[slot];
    const bool fresh = (mask_ >> slot & 1) == 0;
    if (!fresh && (wait.producer.bits > producer.bits || (wait.producer == producer && wait.cause == Cause::kOperand)))
      return;
    wait = {producer, cause, after_read};
    mask_ |= 1u << slot;
  }

  template <class Note>
  void wait_for_offsets(const RecordHeader& header, Ref ref, const Note& note) {
    costs_.views(header, [&](const View& v, Role) {
      if (v.kind == ViewKind::kStrided) return;
      const DynamicOffset& dynamic = program_.dynamics[v.dynamic];
      if (dynamic.source == DynamicOffset::Source::kRegister) {
        if (dynamic.reg < registers_.size() && !registers_[dynamic.reg].none())
          add_wait(registers_[dynamic.reg], ref, Cause::kSemaphore, false);
        return;
      }
      Box box;
      if (AccessMap* map = memories_.find({&dynamic.index, Role::kIn, 0, false}, &box)) map->read(box, ref, note);
    });
  }

  void use_registers(const RecordHeader& header, Ref ref) {
    if (header.opcode == control::RegisterStore::info.opcode) return;  // reads on its own queue, in order
    const RegisterRef dst = register_of(header);
    if (dst.id < registers_.size()) registers_[dst.id] = ref;
  }
  static RegisterRef register_of(const RecordHeader& header) {
    switch (header.opcode) {
      case control::RegisterMove::info.opcode: return static_cast<const control::RegisterMove*>(header.body())->dst;
      case collectives::RankId::info.opcode: return static_cast<const collectives::RankId*>(header.body())->dst;
      case collectives::RingRankId::info.opcode: return static_cast<const collectives::RingRankId*>(header.body())->dst;
      default: return static_cast<const control::RegisterLoad*>(header.body())->dst;
    }
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
  const Stream& stream_;
  const uint8_t core_number_;
  const Chip& chip_;
  const int rank_;
  PathReader path_;
  bool has_path_;
  Memories memories_;
  const bool work_only_;
  std::vector<Ref> registers_;    // who wrote each register last
  Ref control_;                   // what the current region's decision waited for
  std::vector<ExtraEdge> edges_;  // by consumer
  std::vector<uint32_t> latest_;  // Ref bits of the latest run of each record
  std::vector<int64_t> offsets_;  // of the record's operands: what the path adds to their places
  std::array<Wait, kSlots> latest_wait_{};
  uint32_t mask_ = 0;
  Lowered& out_;
  LoweredCore& core_;
  Costs& costs_;
};

}  // namespace

Status lower(const Program& program, std::span<const Path> paths, const Chip& chip, const Placement& placement,
             const TimingOptions& options, Lowered& out) {
  const Path empty;
  out.cores.reserve(program.cores.size());
  for (size_t core = 0; core < program.cores.size(); ++core) {
    out.cores.emplace_back(program, program.cores[core], chip, options);
    const Path& path = core < paths.size() ? paths[core] : empty;
    STERNA_TRY(Lowering(program, core, path, chip, placement, options, out).run());
  }
  return match_meetings(program, out);
}

}  // namespace sterna
