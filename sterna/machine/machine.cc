// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/machine.h"

#include <algorithm>

#include "sterna/base/text.h"

namespace sterna {

Machine::Machine(const Options& options, ThreadPool* pool, const std::vector<TensorInfo>* tensors,
                 const std::vector<DynamicOffset>* dynamics)
    : options_(options),
      pool_(pool),
      tensors_(tensors),
      dynamics_(dynamics),
      buffers_(options.buffers ? options.buffers : BufferPool::make()),
      version_(static_cast<uint64_t>(options.core)) {
  if (options.rounding_seed >= 0)
    rounding_ = std::make_unique<RoundingGenerator>(static_cast<uint32_t>(options.rounding_seed), options.core);
}

SharedHbm::Entry& SharedHbm::entry(uint32_t tensor) {
  Entry& e = entries_[tensor];
  if (!e.storage) {
    e.storage = std::make_shared<Storage>();
    e.allocations.resize(static_cast<size_t>(cores_));
  }
  return e;
}

const std::shared_ptr<Storage>& SharedHbm::storage(uint32_t tensor) { return entry(tensor).storage; }

bool SharedHbm::first_to_allocate(uint32_t tensor, int core) {
  Entry& e = entry(tensor);
  if (++e.allocations[static_cast<size_t>(core)] <= e.made) return false;
  ++e.made;
  return true;
}

// --- tensors

Storage& Machine::storage(uint32_t tensor) {
  if (tensor >= storages_.size()) storages_.resize(std::max<size_t>(tensor + 1, storages_.size() * 2));
  auto& slot = storages_[tensor];
  if (!slot) {
    if (options_.shared && this->tensor(tensor).of_every_core()) {
      slot = options_.shared->storage(tensor);
    } else if (free_storages_.empty()) {
      slot = std::make_shared<Storage>();
    } else {
      slot = std::move(free_storages_.back());
      free_storages_.pop_back();
    }
  }
  return *slot;
}

namespace {
/// Rows and bytes of a row under which definedness of a tensor is kept.
void defined_shape(const TensorInfo& info, int64_t& rows, int64_t& row_bytes) {
  if (info.on_chip()) {
    rows = info.shape[0];
    row_bytes = info.free_bytes();
    return;
  }
  row_bytes = info.ndim == 0 ? size_of(info.dtype) : info.shape[info.ndim - 1] * size_of(info.dtype);
  rows = row_bytes == 0 ? 0 : info.bytes() / row_bytes;
}

/// Rows a power of two apart would meet in the same few cache sets, so the pitch is an odd number of cache lines.
int64_t padded_pitch(int64_t row_bytes) {
  const int64_t lines = (row_bytes + 63) / 64;
  return lines <= 1 ? row_bytes : (lines | 1) * 64;
}
}  // namespace

Status Machine::bind(uint32_t tensor, void* data, bool writable) {
  const TensorInfo& info = this->tensor(tensor);
  Storage& s = storage(tensor);
  s.data = static_cast<std::byte*>(data);
  s.bytes = info.bytes();
  s.pitch = 0;
  s.writable = writable;
  s.owned.reset();
  int64_t rows, row_bytes;
  defined_shape(info, rows, row_bytes);
  s.row_bytes = row_bytes;
  s.own_defined.reset(rows, row_bytes, true);
  s.defined = &s.own_defined;
  s.by_matmul = nullptr;
  s.written = false;
  return {};
}

Status Machine::place(uint32_t tensor, Storage& s, const TensorInfo& info) {
  Placed& memory = info.memory == Memory::kSbuf ? sbuf_ : psum_;
  const int64_t partition_bytes =
      info.memory == Memory::kSbuf ? options_.sbuf_partition_bytes : options_.psum_partition_bytes;
  if (info.address_partition + info.partitions() > options_.partitions ||
      info.address_byte + info.free_bytes() > partition_bytes)
    return Fault(
        FaultKind::kOutOfBounds, "ADDR1",
        cat("A tensor of ", info.partitions(), " partitions and ", info.free_bytes(), " bytes a partition at address (",
            info.address_partition, ", ", info.address_byte, ") does not fit ", name(info.memory), ", which has ",
            options_.partitions, " partitions of ", partition_bytes, " bytes."));
  if (!memory.bytes) {
    memory.pitch = padded_pitch(partition_bytes);
    memory.bytes = buffers_->take(static_cast<size_t>(memory.pitch * options_.partitions), Touched::kSparse);
    if (!memory.bytes) return Fault(FaultKind::kBadInput, "MEM1", "Out of memory for the on-chip memories.");
    memory.defined.reset(options_.partitions, partition_bytes, false);
  }
  s.row0 = info.address_partition;
  s.byte0 = info.address_byte;
  s.pitch = memory.pitch;
  s.data = memory.bytes.data() + s.row0 * s.pitch + s.byte0;
  s.defined = &memory.defined;
  const Defined::Box box{s.row0, s.row0 + info.partitions(), s.byte0, s.byte0 + info.free_bytes()};
  memory.defined.clear(box);
  s.own_by_matmul.reset(info.partitions(), info.free_bytes(), false);
  s.by_matmul = &s.own_by_matmul;
  forget_matmuls_of_others(tensor, box);
  return {};
}

Status Machine::allocate(uint32_t tensor) {
  const TensorInfo& info = this->tensor(tensor);
  Storage& s = storage(tensor);
  if (options_.shared && info.of_every_core() && !options_.shared->first_to_allocate(tensor, options_.core)) return {};
  s.version = next_version();
  s.bytes = info.bytes();
  s.writable = true;
  s.written = false;
  if (info.has_address && info.on_chip()) return place(tensor, s, info);
  s.row0 = s.byte0 = 0;
  s.pitch = info.on_chip() ? padded_pitch(info.free_bytes()) : 0;
  if (info.on_chip()) s.bytes = s.pitch * info.partitions();
  int64_t rows, row_bytes;
  defined_shape(info, rows, row_bytes);
  s.row_bytes = row_bytes;
  s.own_defined.reset(rows, row_bytes, false);
  s.defined = &s.own_defined;
  s.by_matmul = nullptr;
  if (info.memory == Memory::kPsum) {
    s.own_by_matmul.reset(rows, row_bytes, false);
    s.by_matmul = &s.own_by_matmul;
  }
  if (!s.owned || s.owned.capacity() < static_cast<size_t>(s.bytes))
    s.owned = buffers_->take(static_cast<size_t>(s.bytes));
  if (!s.owned) return Fault(FaultKind::kBadInput, "MEM1", cat("Out of memory for a tensor of ", s.bytes, " bytes."));
  s.data = s.owned.data();
  return {};
}

void Machine::release(uint32_t tensor) {
  if (!has_storage(tensor) || (options_.shared && this->tensor(tensor).of_every_core())) return;
  auto& slot = storages_[tensor];
  slot->owned.reset();
  slot->data = nullptr;
  free_storages_.push_back(std::move(slot));
}

Buffer Machine::take(uint32_t tensor) {
  if (!has_storage(tensor) || !storages_[tensor]->owned) return Buffer();
  storages_[tensor]->data = nullptr;
  return std::move(storages_[tensor]->owned);
}

// --- naming

std::string Machine::describe(const View& view) const {
  const TensorInfo& info = tensor(view.tensor);
  std::string out = cat(name(view.memory), " tensor ");
  if (names_ != nullptr && info.name != 0 && info.name < names_->size() && !(*names_)[info.name].empty())
    out += cat("'", (*names_)[info.name], "' ");
  std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
  return out + cat(shape_text(shape), " ", name(info.dtype));
}

void Machine::warn(std::string rule, std::string message) {
  for (const Warning& w : warnings_)
    if (w.site == site_ && w.rule == rule) return;
  warnings_.push_back({std::move(rule), std::move(message), site_});
}

void Machine::set_reg(uint32_t id, int32_t value) {
  if (id >= registers_.size()) registers_.resize(id + 1);
  registers_[id] = value;
}

Result<int32_t> Machine::read_reg(uint32_t id) {
  if (id < registers_.size() && registers_[id]) return *registers_[id];
  const std::string message =
      cat("Register $", id, " is read, and nothing was written to it on this core. Give register_alloc a value, ",
          "write it first (register_move, register_load), or set STERNA_UNINIT=warn to go on with 0.");
  if (options_.uninit == UninitPolicy::kError) return Fault(FaultKind::kRuleBroken, "UNINIT2", message);
  if (options_.uninit != UninitPolicy::kFill) warn("UNINIT2", message);
  return 0;
}

}  // namespace sterna
