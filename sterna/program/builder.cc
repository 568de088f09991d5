// SPDX-License-Identifier: Apache-2.0
#include "sterna/program/builder.h"

#include "sterna/base/text.h"
#include "sterna/isa/control.h"
#include "sterna/machine/view_ops.h"
#include "sterna/program/check_indirect.h"
#include "sterna/program/check_program.h"

namespace sterna {

Builder::Builder(const Chip& chip, bool strict, std::shared_ptr<BufferPool> pool)
    : chip_(&chip), program_(pool), buffers_(std::move(pool)) {
  program_.target = chip.name;
  for (const TableRow& row : instruction_table())
    absent_[row.info.opcode] = !row.info.mnemonic.empty() && !chip.has_instruction(row.info.mnemonic);
  rules_.chip = chip_;
  rules_.tensors = &program_.tensors;
  rules_.dynamics = &program_.dynamics;
  rules_.strict = strict;
  rules_.context = this;
  rules_.remark = [](void* self, std::string_view rule, std::string_view message) {
    static_cast<Builder*>(self)->warn(rule, message);
  };
}

void Builder::warn(std::string_view rule, std::string_view message) {
  const Site& here = program_.sites[site_];
  for (const Warning& w : warnings_) {
    const Site& there = program_.sites[w.site];
    if (w.rule == rule && there.file == here.file && there.line == here.line) return;
  }
  warnings_.push_back({std::string(rule), std::string(message), site_});
}

void Builder::set_cores(int count) {
  while (cores() < count) program_.cores.emplace_back(buffers_);
  regions_.resize(static_cast<size_t>(count));
  rules_.cores = count;
}

Status Builder::check_tensor(TensorInfo& info) const {
  std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
  for (int64_t n : shape)
    if (n < 0 || n > INT32_MAX)
      return Fault(FaultKind::kBadInput, "TEN1", cat("A tensor cannot have the shape ", shape_text(shape), "."));
  if (!chip_->has_dtype(name(info.dtype)))
    return Fault(FaultKind::kNotOnThisChip, "TYPE2",
                 cat("The type ", name(info.dtype), " does not exist on ", chip_->name, "."));
  if (!info.on_chip()) return {};
  if (info.ndim < 2) {  // a partition dim and at least one free dim
    if (info.ndim == 0)
      return Fault(FaultKind::kBadInput, "TEN1", "A tensor in SBUF or PSUM has at least a partition dimension.");
    info.shape[1] = 1;
    info.ndim = 2;
  }
  if (info.shape[0] > chip_->sbuf.partitions)
    return Fault(FaultKind::kRuleBroken, "TEN2",
                 cat("A tensor ", shape_text(shape), " in ", name(info.memory), " has ", info.shape[0],
                     " partitions; the chip has ", int64_t{chip_->sbuf.partitions}, ". Dimension 0 is the partition."));
  if (info.has_address && info.memory == Memory::kPsum && info.address_byte % chip_->psum.bank_bytes != 0)
    return Fault(FaultKind::kRuleBroken, "TEN3",
                 cat("A PSUM address must be a multiple of the bank's ", int64_t{chip_->psum.bank_bytes}, " bytes."));
  return {};
}

/// kNoTensor if no other core made this tensor yet.
Result<uint32_t> Builder::shared_with_other_cores(const TensorInfo& info) {
  SharedTensors& known = shared_[info.name];
  known.made.resize(program_.cores.size(), 0);
  const uint32_t n = known.made[static_cast<size_t>(core_)]++;
  if (n >= known.ids.size()) {
    known.ids.push_back(static_cast<uint32_t>(program_.tensors.size()));
    return kNoTensor;
  }
  const uint32_t id = known.ids[n];
  const TensorInfo& other = program_.tensors[id];
  if (other.dtype == info.dtype && other.ndim == info.ndim &&
      std::equal(info.shape, info.shape + info.ndim, other.shape))
    return id;
  return Fault(
      FaultKind::kRuleBroken, "LNC5",
      cat("Core ", core_, " allocates shared HBM ", name(info.dtype), " ",
          shape_text(std::vector<int64_t>(info.shape, info.shape + info.ndim)), " where core ", int{other.core},
          " has ", name(other.dtype), " ", shape_text(std::vector<int64_t>(other.shape, other.shape + other.ndim)),
          ". The cores of a kernel make the same shared tensors in the same order, or give them names."));
}

Result<uint32_t> Builder::add_tensor(TensorInfo info) {
  STERNA_TRY(check_tensor(info));
  auto id = static_cast<uint32_t>(program_.tensors.size());
  info.core = static_cast<uint8_t>(core_);
  info.site = site_;
  info.allocated_at = info.first_use = info.last_use = static_cast<uint32_t>(stream().size());
  if (cores() > 1 && info.of_every_core() && info.role == TensorRole::kLocal) {
    STERNA_ASSIGN(const uint32_t other, shared_with_other_cores(info));
    if (other != kNoTensor) {
      STERNA_TRY(record(control::Alloc{{other}}));
      return other;
    }
  }
  program_.tensors.push_back(info);
  if (info.role == TensorRole::kParameter) {
    program_.tensors[id].parameter = static_cast<uint32_t>(program_.parameters.size());
    program_.parameters.push_back(id);
    return id;
  }
  STERNA_TRY(record(control::Alloc{{id}}));
  return id;
}

uint32_t Builder::add_dynamic(const DynamicOffset& offset) {
  program_.dynamics.push_back(offset);
  return static_cast<uint32_t>(program_.dynamics.size() - 1);
}

uint32_t Builder::share_dynamic(const DynamicOffset& offset) {
  const auto& rows = program_.dynamics;
  for (size_t i = rows.size(); i > 1 && i + 4 > rows.size(); --i)
    if (rows[i - 1] == offset) return static_cast<uint32_t>(i - 1);
  return add_dynamic(offset);
}

void* Builder::begin(const TableRow& row) {
  open_ = stream().reserve(row.bytes);
  open_->opcode = row.info.opcode;
  open_row_ = &row;
  row.construct(open_->body());
  return open_->body();
}

Status Builder::check_views(const TableRow& row, const void* body) {
  Status status;
  bool by_index = false;
  for_each_view(row, body, [&](const View& v, Role role) {
    if (!status) return;
    status = check_written_once(rules_, v, role);
    if (status && cores() > 1) status = check_core(program_, v, core_);
    if (!status) return;
    const TensorInfo& t = program_.tensors[v.tensor];
    if (v.kind != ViewKind::kStrided) {
      status = check_view(program_, v);
      by_index = by_index || finds_columns(v);
      return;
    }
    if (!in_bounds(v, t)) {
      std::vector<int64_t> shape(t.shape, t.shape + t.ndim);
      status = Fault(FaultKind::kOutOfBounds, "IDX4",
                     cat("A view ", shape_text(v), " reaches outside tensor '", program_.tensor_name(v.tensor), "' ",
                         shape_text(shape), "."));
    }
  });
  return status && by_index ? check_indirect(rules_, row, body) : std::move(status);
}

void Builder::read_indices_by_engine() {
  const int32_t group = index_group(*chip_, open_row_->info);
  for_each_view(*open_row_, open_->body(), [&](const View& v, Role) {
    if (!finds_columns(v) || program_.dynamics[v.dynamic].group == group) return;
    DynamicOffset offset = program_.dynamics[v.dynamic];
    offset.group = group;
    const_cast<View&>(v).dynamic = share_dynamic(offset);  // a field of the open record
  });
}

void Builder::touch(const TableRow& row, const void* body, RecordHeader& header) {
  const auto at = static_cast<uint32_t>(stream().size());
  const auto used = [&](uint32_t tensor) {
    TensorInfo& t = program_.tensors[tensor];
    if (t.first_use == t.allocated_at) t.first_use = at;
    t.last_use = at;
  };
  for_each_view(row, body, [&](const View& v, Role) {
    used(v.tensor);
    if (v.kind == ViewKind::kStrided) return;
    header.flags |= RecordHeader::kHasDynamic;
    const DynamicOffset& dyn = program_.dynamics[v.dynamic];
    if (dyn.source == DynamicOffset::Source::kTensor) used(dyn.index.tensor);
  });
}

Status Builder::commit(uint32_t label) {
  void* body = open_->body();
  const TableRow& row = *open_row_;
  STERNA_TRY(check_views(row, body));
  if (absent_[row.info.opcode])
    return Fault(FaultKind::kNotOnThisChip, "ISA1", cat(row.info.mnemonic, " does not exist on ", chip_->name, "."));
  STERNA_TRY(row.check(body, rules_));
  open_->site = site_;
  open_->label = label;
  touch(row, body, *open_);
  if (!regions_[static_cast<size_t>(core_)].add(static_cast<uint32_t>(stream().size()), row.info.opcode))
    return Fault(FaultKind::kBadInput, "REGION1", "'end' without an open region.");
  stream().push(open_);
  open_ = nullptr;
  return {};
}

Status Builder::add_edge(uint32_t producer, uint32_t consumer) {
  STERNA_TRY(check_edge(stream(), regions_[static_cast<size_t>(core_)], producer, consumer));
  program_.edges.push_back({producer, consumer, static_cast<uint32_t>(core_)});
  return {};
}

}  // namespace sterna
