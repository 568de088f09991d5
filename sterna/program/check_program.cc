// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/check_program.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sterna/base/text.h"
#include "sterna/isa/control.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/check_indirect.h"
#include "sterna/program/regions.h"
#include "sterna/program/text_names.h"

namespace sterna {
namespace {

constexpr int kMaxNesting = 4;
constexpr int64_t kMost = int64_t{1} << 44;  // bytes of a tensor, offset of a view: no product overflows below it
constexpr int64_t kMostElements = int64_t{1} << 40;  // of a view

std::vector<int64_t> shape_of(const TensorInfo& t) { return {t.shape, t.shape + std::min<int>(t.ndim, kMaxDims)}; }

/// Its numbers are such that arithmetic with them means something.
bool sound(const View& v) {
  if (v.ndim > kMaxDims || (v.on_chip() && v.ndim < 2) || static_cast<int>(v.dtype) >= kDTypeCount ||
      v.offset < -kMost || v.offset > kMost || v.partition < 0 || (v.partition != 0 && !v.on_chip()))
    return false;
  int64_t elements = 1;
  for (int d = 0; d < v.ndim; ++d) {
    if (v.dims[d].count < 0 || v.dims[d].count > kMostElements / elements) return false;
    elements *= std::max(v.dims[d].count, 1);
  }
  return true;
}

Status outside(const Program& p, const View& v) {
  return Fault(FaultKind::kOutOfBounds, "IDX4",
               cat("A view ", shape_text(v), " reaches outside tensor '", p.tensor_name(v.tensor), "' ",
                   shape_text(shape_of(p.tensors[v.tensor])), "."));
}

Fault bad_offset(std::string message) { return Fault(FaultKind::kOutOfBounds, "DYN4", std::move(message)); }

/// Where an index leads is checked when the program runs; here its numbers must not overflow.
Status check_offset(const View& v, const DynamicOffset& d) {
  if ((d.group != 0) != (v.kind == ViewKind::kIndirect && v.on_chip()))
    return bad_offset("Rows found by an index tensor must be in HBM, columns found by one on chip.");
  if (d.limit >= 0 && d.limit <= INT32_MAX && d.multiplier >= INT32_MIN && d.multiplier <= INT32_MAX) return {};
  return bad_offset(cat("Indices below ", d.limit, " times ", d.multiplier, " elements lead into no tensor."));
}

/// TI3: of an indirect view on chip: every place that an index may name lies in the tensor, and there is an index for
/// each column in each group of partitions.
Status check_columns(const TensorInfo& t, const View& v, const DynamicOffset& d) {
  const auto bad = [](std::string message) { return Fault(FaultKind::kRuleBroken, "TI3", std::move(message)); };
  if (d.source != DynamicOffset::Source::kTensor || d.index.memory != Memory::kSbuf || d.group < 1 || v.ndim != 2)
    return bad("Columns are found by an index tensor in SBUF, of a view with one free dimension.");
  if (d.index.rows() != v.rows())
    return bad(cat("The index ", shape_text(d.index), " must have the ", v.rows(), " partitions of the tensor."));
  View all = v;
  all.kind = ViewKind::kStrided;
  all.dims[1] = {static_cast<int32_t>(d.multiplier), static_cast<int32_t>(d.limit)};
  if (d.limit < 1 || !in_bounds(all, t)) return bad(cat("Indices below ", d.limit, " lead outside the tensor."));
  const int64_t last = v.rows() % d.group == 0 ? d.group : v.rows() % d.group;
  if (v.cols() > d.index.cols() * d.group || (last < d.group && v.cols() > last))
    return bad(cat("The index ", shape_text(d.index), " has no ", v.cols(), " numbers for each group of ", d.group,
                   " partitions; a view for the tensor engine names its larger groups."));
  return {};
}

Status check_view_at(const Program& p, const View& v, int nesting) {
  if (v.tensor >= p.tensors.size())
    return Fault(FaultKind::kBadInput, "PRG5", "A view is of a tensor that the program does not have.");
  const TensorInfo& t = p.tensors[v.tensor];
  if (!sound(v) || v.memory != t.memory)
    return Fault(FaultKind::kBadInput, "PRG5",
                 cat("A view of tensor '", p.tensor_name(v.tensor), "' has impossible numbers."));
  if (v.kind == ViewKind::kStrided) return in_bounds(v, t) ? Status() : outside(p, v);
  if (v.dynamic == 0 || v.dynamic >= p.dynamics.size() || nesting > kMaxNesting)
    return bad_offset(
        cat("The dynamic offset of a view of tensor '", p.tensor_name(v.tensor), "' is not in the program's table."));
  const DynamicOffset& d = p.dynamics[v.dynamic];
  if (d.source == DynamicOffset::Source::kRegister && d.reg >= p.register_count)
    return bad_offset(cat("A view moves by register $", d.reg, "; the program has ", p.register_count, "."));
  if (d.source == DynamicOffset::Source::kTensor) {
    STERNA_TRY(check_view_at(p, d.index, nesting + 1));
    if (d.index.elements() == 0) return bad_offset("An offset tensor has no element.");
  }
  STERNA_TRY(check_offset(v, d));
  return d.group != 0 ? check_columns(t, v, d) : Status();
}

class Checker {
 public:
  /// `completed`: the same program, whose records take what check() adds to them; may be null.
  Checker(const Program& program, const Chip& chip, Program* completed)
      : program_(program), completed_(completed), allocated_(program.tensors.size(), false) {
    rules_.chip = &chip;
    rules_.tensors = &program.tensors;
    rules_.dynamics = &program.dynamics;
  }

  std::vector<Fault> check() {
    sites();
    for (uint32_t id = 0; id < program_.tensors.size(); ++id) tensor(id);
    parameters();
    results();
    if (!faults_.empty()) return std::move(faults_);  // what follows takes these tables for granted
    rules_.cores = static_cast<int>(program_.cores.size());
    for (int core = 0; core < rules_.cores; ++core) {
      rules_.core = core;
      records(program_.cores[static_cast<size_t>(core)]);
      edges();
    }
    return std::move(faults_);
  }

 private:
  void add(std::string rule, std::string message, uint32_t site = 0, FaultKind kind = FaultKind::kBadInput) {
    add(Fault(kind, std::move(rule), std::move(message)), site);
  }
  void add(Fault fault, uint32_t site) {
    fault.site = site;
    program_.locate(fault);
    faults_.push_back(std::move(fault));
  }
  bool known(uint32_t name) const { return name < program_.names.all().size(); }

  void sites() {
    for (uint32_t id = 1; id < program_.sites.size(); ++id) {
      const Site& s = program_.sites[id];
      if (!known(s.file) || !known(s.function) || s.parent >= id)
        add("PRG1", cat("Site ", id, " has no name, or its caller comes after it."));
    }
  }

  void tensor(uint32_t id) {
    const TensorInfo& t = program_.tensors[id];
    const auto bad = [&](std::string_view why) { add("PRG2", cat("Tensor ", id, ' ', why, ".")); };
    if (!known(t.name) || t.site >= program_.sites.size())
      return add("PRG1", cat("Tensor ", id, " has no name or no site."));
    if (static_cast<int>(t.dtype) >= kDTypeCount || static_cast<int>(t.memory) > static_cast<int>(Memory::kPsum))
      return bad("has no type or no memory");
    if (t.ndim > kMaxDims || (t.on_chip() && t.ndim < 2)) return bad("has too many or too few dimensions");
    int64_t bytes = size_of(t.dtype);
    for (int64_t n : shape_of(t)) {
      if (n < 0 || n > INT32_MAX || n > kMost / bytes) return bad(cat("has the shape ", shape_text(shape_of(t))));
      bytes *= std::max<int64_t>(n, 1);
    }
    if (t.on_chip() && t.shape[0] > rules_.chip->sbuf.partitions) return bad("has more partitions than the chip");
  }

  void parameters() {
    size_t count = 0;
    for (const TensorInfo& t : program_.tensors) count += t.role == TensorRole::kParameter;
    bool good = count == program_.parameters.size();
    for (uint32_t i = 0; good && i < program_.parameters.size(); ++i) {
      const uint32_t id = program_.parameters[i];
      good = id < program_.tensors.size() && program_.tensors[id].role == TensorRole::kParameter &&
             program_.tensors[id].parameter == i;
    }
    if (!good) add("PRG3", "The list of parameters and the tensors' roles disagree.");
  }

  void results() {
    for (uint32_t id : program_.results) {
      if (id >= program_.tensors.size()) return add("PRG3", cat("A result is tensor ", id, ", which does not exist."));
      const TensorInfo& t = program_.tensors[id];
      if (t.memory != Memory::kHbm || (t.role != TensorRole::kParameter && !t.shared))
        add("PRG3", cat("The result '", program_.tensor_name(id), "' must be a parameter or a shared tensor in HBM."),
            t.site);
    }
  }

  void records(const Stream& stream) {
    regions_ = {};
    uint32_t opened = 0;
    for (size_t i = 0; i < stream.size(); ++i) {
      const RecordHeader& h = stream[i];
      const TableRow& row = instruction_table()[h.opcode];
      if (row.info.mnemonic.empty() || h.words != (sizeof(RecordHeader) + row.bytes + 7) / 8) {
        add("PRG4", cat("Record ", i, " has the operation code ", int{h.opcode}, " and ", int{h.words},
                        " words, which is no instruction."));
        return;  // its length cannot be trusted either
      }
      if (h.site >= program_.sites.size() || !known(h.label))
        add("PRG1", cat("Record ", i, " has no site or no label."));
      if (Status s = record(row, h); !s) {
        s.error().message = cat(row.info.mnemonic, " (record ", i, "): ", s.error().message);
        add(std::move(s.error()), h.site);
      }
      if (control::opens_region(h.opcode)) opened = h.site;
      if (!regions_.add(static_cast<uint32_t>(i), h.opcode))
        add("REGION1", cat("Record ", i, " is an 'end' without an open region."), h.site);
    }
    if (regions_.depth() > 0) add("REGION2", "A region is not closed.", opened);
  }

  Status record(const TableRow& row, const RecordHeader& h) {
    for (const FieldSpec& spec : row.field_list())
      STERNA_TRY(field(spec, static_cast<const char*>(h.body()) + spec.offset));
    if (h.opcode == control::Alloc::info.opcode) {
      const uint32_t id = static_cast<const control::Alloc*>(h.body())->tensor.id;
      if (id < allocated_.size()) allocated_[id] = true;
    }
    Status status;
    bool dynamic = false;
    bool by_index = false;
    for_each_view(row, h.body(), [&](const View& v, Role role) {
      if (status) status = used(v);
      if (status) status = check_written_once(rules_, v, role);
      dynamic = dynamic || v.kind != ViewKind::kStrided;
      by_index = by_index || finds_columns(v);
    });
    if (status && by_index) status = check_indirect(rules_, row, h.body());
    STERNA_TRY(std::move(status));
    if (dynamic != ((h.flags & RecordHeader::kHasDynamic) != 0))
      return Fault(FaultKind::kBadInput, "PRG4", "Its flags do not say whether a view is dynamic.");
    if (!rules_.chip->has_instruction(row.info.mnemonic))
      return Fault(FaultKind::kNotOnThisChip, "ISA1",
                   cat("This instruction does not exist on ", rules_.chip->name, "."));
    std::vector<std::max_align_t> copy(row.bytes / sizeof(std::max_align_t) + 1);  // check() completes what it is given
    std::memcpy(copy.data(), h.body(), row.bytes);
    STERNA_TRY(row.check(copy.data(), rules_));
    if (completed_ != nullptr) std::memcpy(const_cast<void*>(h.body()), copy.data(), row.bytes);
    return {};
  }

  Status used(const View& v) {
    STERNA_TRY(check_view(program_, v));
    STERNA_TRY(check_core(program_, v, rules_.core));
    if (program_.tensors[v.tensor].role == TensorRole::kLocal && !allocated_[v.tensor])
      return Fault(FaultKind::kBadInput, "PRG6",
                   cat("Tensor '", program_.tensor_name(v.tensor), "' is used before it is allocated."));
    if (v.kind != ViewKind::kStrided && program_.dynamics[v.dynamic].source == DynamicOffset::Source::kTensor)
      return used(program_.dynamics[v.dynamic].index);
    return {};
  }

  Status field(const FieldSpec& spec, const void* at) {
    const auto bad = [&](std::string_view why) {
      return Fault(FaultKind::kBadInput, "PRG5", cat("'", spec.name, "' ", why, "."));
    };
    const auto byte = *static_cast<const uint8_t*>(at);
    if (const auto names = text::spellings(spec.type); !names.empty())
      return byte < names.size() ? Status() : bad("has a value without a meaning");
    switch (spec.type) {
      case FieldType::kAluOp: return byte < kAluOpCount ? Status() : bad("is no operator");
      case FieldType::kFunction: return byte < kFunctionCount ? Status() : bad("is no function");
      case FieldType::kDType: return byte < kDTypeCount ? Status() : bad("is no number format");
      case FieldType::kRegister: {
        const uint32_t id = static_cast<const RegisterRef*>(at)->id;
        return id == UINT32_MAX || id < program_.register_count
                   ? Status()
                   : bad(cat("is register $", id, "; the program has ", program_.register_count));
      }
      case FieldType::kTensor: {
        const uint32_t id = static_cast<const TensorRef*>(at)->id;
        return id < program_.tensors.size() ? Status() : bad("is a tensor that does not exist");
      }
      case FieldType::kName:
        return known(static_cast<const NameRef*>(at)->id) ? Status() : bad("is a text that does not exist");
      case FieldType::kPattern: {
        const Pattern& p = *static_cast<const Pattern*>(at);
        return p.n >= 0 && p.n <= 4 ? Status() : bad("has an impossible length");
      }
      case FieldType::kInts: {
        const Ints& list = *static_cast<const Ints*>(at);
        return list.n >= 0 && list.n <= 4 ? Status() : bad("has an impossible length");
      }
      default: return {};
    }
  }

  /// Those of this core; of a core that there is not, with the first.
  void edges() {
    for (const ExtraEdge& e : program_.edges) {
      const bool of_none = e.core >= program_.cores.size();
      if (of_none ? rules_.core != 0 : e.core != static_cast<uint32_t>(rules_.core)) continue;
      const Stream* stream = of_none ? nullptr : &program_.cores[e.core];
      if (of_none || e.consumer >= stream->size() || e.producer >= e.consumer) {
        add("PRG7", cat("The edge ", e.producer, " -> ", e.consumer, " does not lead forward between two records."));
        continue;
      }
      if (Status s = check_edge(*stream, regions_, e.producer, e.consumer); !s) {
        const uint32_t site = s.error().site;
        add(std::move(s.error()), site);
      }
    }
  }

  const Program& program_;
  Program* completed_;
  Rules rules_;
  Regions regions_;  // of the core being checked
  std::vector<bool> allocated_;
  std::vector<Fault> faults_;
};

}  // namespace

Status check_view(const Program& program, const View& view) { return check_view_at(program, view, 0); }

Status check_core(const Program& program, const View& view, int core) {
  const TensorInfo& t = program.tensors[view.tensor];
  if (t.core == core || t.of_every_core()) return {};
  return Fault(FaultKind::kRuleBroken, "LNC6",
               cat("Core ", core, " uses ", name(t.memory), " tensor '", program.tensor_name(view.tensor), "' of core ",
                   int{t.core}, ". Cores share nl.shared_hbm and exchange tiles with nisa.sendrecv."));
}

Status check_written_once(const Rules& rules, const View& view, Role role) {
  if ((role != Role::kOut && role != Role::kInOut) || !repeats_elements(view)) return {};
  return rules.compat("ALIAS2", cat("A destination ", shape_text(view),
                                    " is a broadcast: it writes one place several times, and the last element stays. "
                                    "Write a tensor of the full shape."));
}

std::vector<Fault> check_program(const Program& program, const Chip& chip) {
  return Checker(program, chip, nullptr).check();
}

std::vector<Fault> complete_program(Program& program, const Chip& chip) {
  return Checker(program, chip, &program).check();
}

}  // namespace sterna
