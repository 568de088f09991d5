// SPDX-License-Identifier: Apache-2.0
#include "sterna/machine/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/convert.h"

namespace sterna {

Machine::Machine(const Options& options, ThreadPool* pool, const std::vector<TensorInfo>* tensors,
                 const std::vector<DynamicOffset>* dynamics)
    : options_(options),
      pool_(pool),
      tensors_(tensors),
      dynamics_(dynamics),
      buffers_(options.buffers ? options.buffers : BufferPool::make()) {}

Machine::Placed::~Placed() {
  if (data != nullptr) munmap(data, static_cast<size_t>(mapped));
}

// --- tensors

Storage& Machine::storage(uint32_t tensor) {
  if (tensor >= storages_.size()) storages_.resize(std::max<size_t>(tensor + 1, storages_.size() * 2));
  auto& slot = storages_[tensor];
  if (!slot) {
    if (free_storages_.empty()) {
      slot = std::make_unique<Storage>();
    } else {
      slot = std::move(free_storages_.back());
      free_storages_.pop_back();
    }
  }
  return *slot;
}

bool Machine::has_storage(uint32_t tensor) const {
  return tensor < storages_.size() && storages_[tensor] && storages_[tensor]->data != nullptr;
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

Status Machine::place(Storage& s, const TensorInfo& info) {
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
  if (memory.data == nullptr) {
    memory.mapped = partition_bytes * options_.partitions;
    void* at = mmap(nullptr, static_cast<size_t>(memory.mapped), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return Fault(FaultKind::kBadInput, "MEM1", "Out of memory for the on-chip memories.");
    memory.data = static_cast<std::byte*>(at);
    memory.partition_bytes = partition_bytes;
    memory.partitions = options_.partitions;
    memory.defined.reset(options_.partitions, partition_bytes, false);
    memory.by_matmul.reset(options_.partitions, partition_bytes, false);
  }
  s.row0 = info.address_partition;
  s.byte0 = info.address_byte;
  s.pitch = partition_bytes;
  s.data = memory.data + s.row0 * partition_bytes + s.byte0;
  s.defined = &memory.defined;
  s.by_matmul = &memory.by_matmul;
  const Defined::Box box{s.row0, s.row0 + info.partitions(), s.byte0, s.byte0 + info.free_bytes()};
  memory.defined.clear(box);
  memory.by_matmul.clear(box);
  return {};
}

namespace {
/// Rows a power of two apart would meet in the same few cache sets, so the pitch is an odd number of cache lines.
int64_t padded_pitch(int64_t row_bytes) {
  const int64_t lines = (row_bytes + 63) / 64;
  return lines <= 1 ? row_bytes : (lines | 1) * 64;
}
}  // namespace

Status Machine::allocate(uint32_t tensor) {
  const TensorInfo& info = this->tensor(tensor);
  Storage& s = storage(tensor);
  s.version = ++version_;
  s.bytes = info.bytes();
  s.writable = true;
  s.written = false;
  if (info.has_address && info.on_chip()) return place(s, info);
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
  if (!has_storage(tensor)) return;
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

// --- access

namespace {
Fault not_allocated(const std::string& what) {
  return Fault(FaultKind::kBadInput, "MEM2",
               cat("The ", what, " has no storage: it is used before it is allocated or after it was freed."));
}
}  // namespace

namespace {
/// Element (row, col) of an index tensor as a whole number.
int64_t index_at(const Operand& index, int64_t row, int64_t col) {
  uint32_t bits;
  load_bits(index, row, col, 1, &bits);
  if (is_float(index.dtype)) return static_cast<int64_t>(std::nearbyint(to_float_bits(index.dtype, bits)));
  return info(index.dtype).is_signed ? static_cast<int64_t>(static_cast<int32_t>(bits)) : static_cast<int64_t>(bits);
}
}  // namespace

Result<int64_t> Machine::read_index(const DynamicOffset& dynamic, int64_t row) {
  if (dynamic.source == DynamicOffset::Source::kRegister) return static_cast<int64_t>(reg(dynamic.reg));
  // Element `row` of the flattened (P, n) index tensor, row-major.
  const int64_t cols = dynamic.index.cols();
  STERNA_ASSIGN(Operand index, read_certain(dynamic.index, "offset"));
  return index_at(index, cols > 0 ? row / cols : 0, cols > 0 ? row % cols : 0);
}

Status Machine::read_indices(const DynamicOffset& dynamic, IndexOrder order, std::vector<int64_t>& out) {
  if (dynamic.source == DynamicOffset::Source::kRegister) {
    std::fill(out.begin(), out.end(), int64_t{reg(dynamic.reg)});
    return {};
  }
  STERNA_ASSIGN(Operand index, read_certain(dynamic.index, "offset"));
  if (static_cast<int64_t>(out.size()) > index.rows * index.cols)
    return Fault(FaultKind::kOutOfBounds, "DYN3",
                 cat("An offset tensor ", shape_text(dynamic.index), " has ", index.rows * index.cols, " indices, ",
                     out.size(), " rows are to be found with it."));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = order == IndexOrder::kRows ? index_at(index, at / index.cols, at % index.cols)
                                        : index_at(index, at % index.rows, at / index.rows);
  }
  return {};
}

Status Machine::resolve(const View& view, const char* what, Operand* operand) {
  if (view.empty()) return Fault(FaultKind::kBug, "", cat(what, ": empty operand"));
  if (!has_storage(view.tensor)) return not_allocated(describe(view));
  Storage& s = *storages_[view.tensor];
  const int64_t size = size_of(view.dtype);
  Operand& o = *operand;  // filled in place: an operand is too large to copy for each access
  o.storage = &s;
  o.dtype = view.dtype;
  o.rows = view.rows();
  o.cols = view.cols();
  o.base = s.data + view.offset * size + view.partition * s.pitch;
  o.row_pitch = view.ndim == 0 ? 0 : (view.on_chip() ? view.dims[0].stride * s.pitch : view.dims[0].stride * size);
  // Merge free dims that continue one another.
  for (int d = 1; d < view.ndim; ++d) {
    if (view.dims[d].count == 1) continue;
    const int64_t stride = static_cast<int64_t>(view.dims[d].stride) * size;
    if (o.nfree > 0 && o.free[o.nfree - 1].stride == stride * view.dims[d].count) {
      o.free[o.nfree - 1].stride = stride;
      o.free[o.nfree - 1].count *= view.dims[d].count;
    } else {
      o.free[o.nfree++] = {stride, view.dims[d].count};
    }
  }
  o.unit = o.nfree == 0 ? o.cols <= 1 : (o.nfree == 1 && o.free[0].stride == size);
  if (view.kind == ViewKind::kStrided) return {};

  const DynamicOffset& dyn = dynamic(view.dynamic);
  if (view.kind == ViewKind::kDynamic) {
    STERNA_ASSIGN(const int64_t index, read_index(dyn, 0));
    if (index < 0 || (dyn.limit > 0 && index >= dyn.limit))
      return Fault(FaultKind::kOutOfBounds, "DYN1",
                   cat(what, ": the dynamic offset is ", index, ", allowed are 0 to ", dyn.limit - 1, " (",
                       describe(view), ")."));
    o.base += index * dyn.multiplier * size;
    View moved = view;
    moved.kind = ViewKind::kStrided;
    moved.offset += index * dyn.multiplier;
    if (!in_bounds(moved, tensor(view.tensor)))
      return Fault(FaultKind::kOutOfBounds, "DYN2",
                   cat(what, ": with the dynamic offset ", index, " the view leaves the ", describe(view), "."));
    return {};
  }
  if (row_offsets_used_ >= 3) return Fault(FaultKind::kBug, "", "too many indirect operands");
  auto& offsets = row_offsets_[row_offsets_used_++];
  offsets.resize(static_cast<size_t>(o.rows));
  STERNA_TRY(read_indices(dyn, IndexOrder::kRows, offsets));
  View row = view;
  row.dims[0] = {0, 1};
  const ByteRange range = byte_range(row);
  const int64_t step = dyn.multiplier * size;
  for (int64_t& index : offsets) {
    // Out of bounds: the instruction decides (error or skip).
    if (index < 0 || index >= dyn.limit) {
      index = -1;
      continue;
    }
    if (range.begin + index * step < 0 || range.end + index * step > tensor(view.tensor).bytes())
      return Fault(FaultKind::kOutOfBounds, "DYN2",
                   cat(what, ": with the index ", index, " the view leaves the ", describe(view), "."));
    index *= step;
  }
  o.row_offsets = offsets.data();
  return {};
}

int64_t Machine::shifted_offset(const View& view) const {
  if (view.kind != ViewKind::kDynamic) return view.offset;
  const DynamicOffset& dyn = dynamic(view.dynamic);
  auto index = const_cast<Machine*>(this)->read_index(dyn, 0);
  return view.offset + (index ? *index : 0) * dyn.multiplier;
}

template <class F>
void Machine::for_each_box(const View& view, const F& f) const {
  if (view.elements() == 0) return;
  const Storage& s = *storages_[view.tensor];
  const int64_t size = size_of(view.dtype);
  const int64_t offset = shifted_offset(view) * size;
  struct D {
    int64_t stride, count;
  };
  D dims[kMaxDims];
  int n = 0;
  int64_t run = size;  // bytes that adjoin at the innermost level
  const int first = view.on_chip() ? 1 : 0;
  for (int d = view.ndim - 1; d >= first; --d) {
    const int64_t stride = static_cast<int64_t>(view.dims[d].stride) * size;
    if (view.dims[d].count == 1 || stride == 0) continue;
    if (n == 0 && stride == run)
      run *= view.dims[d].count;
    else
      dims[n++] = {stride, view.dims[d].count};  // innermost first
  }
  if (view.on_chip()) {
    // One box for each run, over all partitions at once.
    const int64_t step = view.dims[0].stride;
    auto box_rows = [&](int64_t row, int64_t rows) {
      auto emit = [&](int64_t at, int64_t length) {
        f(Defined::Box{s.row0 + row, s.row0 + row + rows, s.byte0 + at, s.byte0 + at + length});
      };
      if (n == 0) return emit(offset, run);
      auto inner = [&](auto&& self, int level, int64_t at) -> void {
        if (level < 0) return emit(at, run);
        for (int64_t i = 0; i < dims[level].count; ++i) self(self, level - 1, at + i * dims[level].stride);
      };
      inner(inner, n - 1, offset);
    };
    if (step == 1 || view.dims[0].count == 1)
      box_rows(view.partition, view.dims[0].count);
    else if (step == 0)
      box_rows(view.partition, 1);
    else
      for (int64_t r = 0; r < view.dims[0].count; ++r) box_rows(view.partition + r * step, 1);
    return;
  }
  // HBM: rows of `row_bytes`. A run inside one row, repeated row by row, is one box.
  const int64_t row_bytes = s.row_bytes;
  auto emit_run = [&](int64_t at, int64_t length, int64_t rows) {
    if (rows > 1 || at % row_bytes + length <= row_bytes) {
      f(Defined::Box{at / row_bytes, at / row_bytes + rows, at % row_bytes, at % row_bytes + length});
      return;
    }
    while (length > 0) {
      const int64_t column = at % row_bytes;
      if (column == 0 && length >= row_bytes) {
        const int64_t whole = length / row_bytes;
        f(Defined::Box{at / row_bytes, at / row_bytes + whole, 0, row_bytes});
        at += whole * row_bytes;
        length -= whole * row_bytes;
        continue;
      }
      const int64_t part = std::min(length, row_bytes - column);
      f(Defined::Box{at / row_bytes, at / row_bytes + 1, column, column + part});
      at += part;
      length -= part;
    }
  };
  auto emit_from = [&](int64_t at) {
    if (n > 0 && dims[0].stride == row_bytes && at % row_bytes + run <= row_bytes) {
      auto inner = [&](auto&& self, int level, int64_t base) -> void {
        if (level < 1) return emit_run(base, run, dims[0].count);
        for (int64_t i = 0; i < dims[level].count; ++i) self(self, level - 1, base + i * dims[level].stride);
      };
      return inner(inner, n - 1, at);
    }
    auto inner = [&](auto&& self, int level, int64_t base) -> void {
      if (level < 0) return emit_run(base, run, 1);
      for (int64_t i = 0; i < dims[level].count; ++i) self(self, level - 1, base + i * dims[level].stride);
    };
    inner(inner, n - 1, at);
  };
  if (view.kind != ViewKind::kIndirect) return emit_from(offset);
  // Indirect: dims[0] is replaced by the index list, so walk it here.
  const DynamicOffset& dyn = dynamic(view.dynamic);
  View row = view;
  row.kind = ViewKind::kStrided;
  row.dims[0].count = 1;
  std::vector<int64_t> indices(static_cast<size_t>(view.rows()));
  if (!const_cast<Machine*>(this)->read_indices(dyn, IndexOrder::kRows, indices)) return;
  for (int64_t index : indices) {
    if (index < 0 || index >= dyn.limit) continue;
    row.offset = view.offset + index * dyn.multiplier;
    for_each_box(row, f);
  }
}

Status Machine::undefined_read(const View& view, const char* what, UninitPolicy policy) {
  Storage& s = *storages_[view.tensor];
  int64_t row = -1, byte = -1;
  for_each_box(view, [&](const Defined::Box& box) {
    if (row >= 0 || s.defined->test(box)) return;
    s.defined->first_undefined(box, row, byte);
  });
  row -= s.row0;
  byte -= s.byte0;
  const TensorInfo& t = tensor(view.tensor);
  std::string where;
  if (t.on_chip()) {
    where = cat("partition ", row, ", byte ", byte, " (element ", byte / size_of(t.dtype), " of the partition)");
  } else {
    int64_t element = (row * s.row_bytes + byte) / size_of(t.dtype);
    int64_t index[kMaxDims];
    for (int d = t.ndim - 1; d >= 0; --d) {
      index[d] = element % t.shape[d];
      element /= t.shape[d];
    }
    where = cat("index ", shape_text(std::vector<int64_t>(index, index + t.ndim)));
  }
  const std::string message = cat("'", what, "' reads ", describe(view), " at ", where,
                                  ", which was never written. Write it first (memset, dma_copy, ...), or set "
                                  "STERNA_UNINIT=warn to go on with a fill value.");
  if (policy == UninitPolicy::kError) return Fault(FaultKind::kRuleBroken, "UNINIT1", message);
  if (policy == UninitPolicy::kWarn) warn("UNINIT1", message);
  // The fill value is the official simulator's: NaN for floats, 4 for integers.
  std::byte pattern[4] = {};
  if (is_float(view.dtype) && !is_packed(view.dtype))
    from_float(view.dtype, std::nanf(""), pattern);
  else if (!is_packed(view.dtype))
    from_float(view.dtype, 4.0f, pattern);
  const int64_t size = size_of(view.dtype);
  for_each_box(view, [&](const Defined::Box& box) {
    for (int64_t r = box.row_begin; r < box.row_end; ++r)
      for (int64_t b = box.byte_begin; b < box.byte_end; ++b) {
        if (s.defined->test_byte(r, b)) continue;
        std::byte* at = t.on_chip() ? s.data + (r - s.row0) * s.pitch + (b - s.byte0) : s.data + r * s.row_bytes + b;
        *at = pattern[(b - s.byte0) % size];
      }
  });
  return {};
}

bool Machine::is_defined(const View& view) {
  Storage& s = *storages_[view.tensor];
  if (s.defined->whole()) return true;
  bool all = true;
  for_each_box(view, [&](const Defined::Box& box) { all = all && s.defined->test(box); });
  return all;
}

bool Machine::byte_defined(const View& view, int64_t row, int64_t byte) {
  Storage& s = *storages_[view.tensor];
  return s.defined->test_byte(s.row0 + row, s.byte0 + byte);
}

Result<Operand> Machine::read_with(const View& view, const char* what, UninitPolicy policy) {
  Result<Operand> result;
  Status status = resolve(view, what, &*result);
  if (status && !is_defined(view)) status = undefined_read(view, what, policy);
  if (!status) result.fail(std::move(status.error()));
  return result;
}

Result<Operand> Machine::read(const View& view, const char* what) { return read_with(view, what, options_.uninit); }

Result<Operand> Machine::read_certain(const View& view, const char* what) {
  return read_with(view, what, UninitPolicy::kError);
}

Result<Operand> Machine::read_any(const View& view, const char* what) {
  Result<Operand> result;
  if (Status status = resolve(view, what, &*result); !status) result.fail(std::move(status.error()));
  return result;
}

Result<Operand> Machine::open(const View& view, const char* what) {
  Result<Operand> result;
  Status status = resolve(view, what, &*result);
  if (status && !result->storage->writable)
    status = Fault(FaultKind::kBadInput, "ARG1",
                   cat("'", what, "' writes ", describe(view),
                       ", a read-only argument. Pass a writable array (for example a copy)."));
  if (status) {
    result->storage->written = true;
    result->storage->version = ++version_;
  } else {
    result.fail(std::move(status.error()));
  }
  return result;
}

Result<Operand> Machine::write(const View& view, const char* what) {
  Result<Operand> result = open(view, what);
  if (result) mark_defined(view);
  return result;
}

void Machine::mark_defined(const View& view) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  if (!s.defined->whole()) for_each_box(view, [&](const Defined::Box& box) { s.defined->mark(box); });
  // Whatever is written next is not a matmul's until it says so.
  if (s.by_matmul != nullptr && !s.by_matmul->none())
    for_each_box(view, [&](const Defined::Box& box) { s.by_matmul->clear(box); });
}

void Machine::mark_matmul_result(const View& view) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  for_each_box(view, [&](const Defined::Box& box) {
    s.defined->mark(box);
    if (s.by_matmul != nullptr) s.by_matmul->mark(box);
  });
}

void Machine::mark_by_matmul(const View& view, bool value) {
  Storage& s = *storages_[view.tensor];
  if (s.by_matmul == nullptr) return;
  for_each_box(view, [&](const Defined::Box& box) {
    if (value)
      s.by_matmul->mark(box);
    else
      s.by_matmul->clear(box);
  });
}

bool Machine::by_matmul(const View& view, bool* mixed) {
  Storage& s = *storages_[view.tensor];
  *mixed = false;
  if (s.by_matmul == nullptr || s.by_matmul->none()) return false;
  if (s.by_matmul->whole()) return true;
  bool all = true, any = false;
  for_each_box(view, [&](const Defined::Box& box) {
    if (s.by_matmul->test(box)) {
      any = true;
      return;
    }
    all = false;
    for (int64_t r = box.row_begin; r < box.row_end && !any; ++r)
      for (int64_t b = box.byte_begin; b < box.byte_end && !any; b += 2) any = s.by_matmul->test_byte(r, b);
  });
  *mixed = any && !all;
  return all;
}

void Machine::copy_definedness(const View& dst, const View& src) {
  if (is_defined(src)) {
    mark_defined(dst);
    return;
  }
  set_element_states(dst, element_states(src));
}

template <class F>
void Machine::for_each_element(const View& view, const F& f) const {
  const Storage& s = *storages_[view.tensor];
  const int64_t size = size_of(view.dtype), offset = shifted_offset(view);
  std::vector<int64_t> indices(view.kind == ViewKind::kIndirect ? static_cast<size_t>(view.rows()) : 0);
  const DynamicOffset* dyn = indices.empty() ? nullptr : &dynamic(view.dynamic);
  if (dyn != nullptr && !const_cast<Machine*>(this)->read_indices(*dyn, IndexOrder::kRows, indices)) return;
  const int64_t cols = view.cols();
  size_t element = 0;
  for (int64_t r = 0; r < view.rows(); ++r) {
    int64_t start = offset;
    if (dyn != nullptr)
      start = indices[static_cast<size_t>(r)] < 0 || indices[static_cast<size_t>(r)] >= dyn->limit
                  ? -1
                  : offset + indices[static_cast<size_t>(r)] * dyn->multiplier;
    else if (!view.on_chip() && view.ndim > 0)
      start += r * view.dims[0].stride;
    for (int64_t c = 0; c < cols; ++c, ++element) {
      if (start < 0) {
        f(element, int64_t{-1}, int64_t{-1});
        continue;
      }
      int64_t rest = c, at = start;
      for (int k = view.ndim - 1; k >= 1; --k) {
        at += (rest % view.dims[k].count) * view.dims[k].stride;
        rest /= view.dims[k].count;
      }
      if (view.on_chip())
        f(element, s.row0 + view.partition + r * view.dims[0].stride, s.byte0 + at * size);
      else
        f(element, at * size / s.row_bytes, at * size % s.row_bytes);
    }
  }
}

std::vector<ElementState> Machine::element_states(const View& view) {
  const Defined& defined = *storages_[view.tensor]->defined;
  std::vector<ElementState> out(static_cast<size_t>(view.elements()), ElementState::kKeep);
  const int size = size_of(view.dtype);
  for_each_element(view, [&](size_t element, int64_t row, int64_t byte) {
    if (row < 0) return;
    bool all = true;
    for (int b = 0; b < size; ++b) all = all && defined.test_byte(row, byte + b);
    out[element] = all ? ElementState::kDefined : ElementState::kUndefined;
  });
  return out;
}

void Machine::set_element_states(const View& view, const std::vector<ElementState>& states) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  const int size = size_of(view.dtype);
  for_each_element(view, [&](size_t element, int64_t row, int64_t byte) {
    if (row < 0 || states[element] == ElementState::kKeep) return;
    const Defined::Box box{row, row + 1, byte, byte + size};
    if (states[element] == ElementState::kDefined)
      s.defined->mark(box);
    else
      s.defined->clear(box);
    if (s.by_matmul != nullptr) s.by_matmul->clear(box);
  });
}

std::vector<ElementState> Machine::element_states_if_partial(const View& view) {
  return is_defined(view) ? std::vector<ElementState>{} : element_states(view);
}

bool Machine::has_element_states(const View& view) {
  const Storage& s = *storages_[view.tensor];
  return !is_defined(view) || (s.by_matmul != nullptr && !s.by_matmul->none());
}

void Machine::mark_elements(const View& view, const std::vector<ElementState>& states) {
  bool all = true, none_undefined = true;
  for (ElementState s : states) {
    all = all && s == ElementState::kDefined;
    none_undefined = none_undefined && s != ElementState::kUndefined;
  }
  if (all) return mark_defined(view);
  if (none_undefined && !has_element_states(view)) return;
  set_element_states(view, states);
}

Result<Machine::Values> Machine::read_scalar(const Scalar& scalar, int64_t rows, float* buffer, const char* what) {
  if (!scalar.is_view) {
    buffer[0] = static_cast<float>(scalar.value);
    return Values{buffer, 0};
  }
  STERNA_ASSIGN(Operand o, read(scalar.view, what));
  if (o.rows == 1 || o.row_pitch == 0) {
    load_row(o, 0, 0, 1, buffer);
    return Values{buffer, 0};
  }
  if (o.dtype == DType::kFloat32 && o.row_pitch % 4 == 0 && o.row_offsets == nullptr)
    return Values{reinterpret_cast<const float*>(o.base), o.row_pitch / 4};
  for (int64_t r = 0; r < rows; ++r) load_row(o, r, 0, 1, buffer + r);
  return Values{buffer, 1};
}

PackedOperand& Machine::packed(const View& view, bool moving, bool double_row, size_t floats, bool* fresh) {
  // Tensors with an address share bytes, so their own version says nothing; dynamic views move.
  constexpr size_t kSlots = 96;
  const Storage& s = *storages_[view.tensor];
  const bool reusable = s.defined == &s.own_defined && view.kind == ViewKind::kStrided;
  if (reusable)
    for (PackedOperand& p : packed_)
      if (p.version == s.version && p.moving == moving && p.double_row == double_row && p.view == view) {
        *fresh = true;
        return p;
      }
  *fresh = false;
  // The operand asked for just before must stay: take the slot after it.
  if (packed_.size() < kSlots) {
    if (packed_.capacity() < kSlots) packed_.reserve(kSlots);
    packed_.emplace_back();
    packed_next_ = packed_.size() - 1;
  } else {
    packed_next_ = (packed_next_ + 1) % kSlots;
  }
  PackedOperand& p = packed_[packed_next_];
  if (p.buffer.capacity() < floats * 4) p.buffer = buffers_->take(floats * 4);
  p.view = view;
  p.version = reusable ? s.version : 0;
  p.moving = moving;
  p.double_row = double_row;
  return p;
}

void Machine::set_reg(uint32_t id, int32_t value) {
  if (id >= registers_.size()) registers_.resize(id + 1);
  registers_[id] = value;
}

}  // namespace sterna
