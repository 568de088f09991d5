// SPDX-License-Identifier: Apache-2.0
// Which bytes of a view hold a value, and which a matmul wrote.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "sterna/base/text.h"
#include "sterna/machine/machine.h"
#include "sterna/numerics/convert.h"

namespace sterna {

int64_t Machine::shifted_offset(const View& view) const {
  if (view.kind != ViewKind::kDynamic) return view.offset;
  const DynamicOffset& dyn = dynamic(view.dynamic);
  auto index = const_cast<Machine*>(this)->read_index(dyn, 0);
  return view.offset + (index ? *index : 0) * dyn.multiplier;
}

template <class F>
void Machine::for_each_column(const View& view, bool whole, const F& f) const {
  std::vector<int64_t> places;
  if (!const_cast<Machine*>(this)->read_columns(view, "", places)) return;
  const int64_t group = dynamic(view.dynamic).group, step = whole ? group : 1;
  View one = view;
  one.kind = ViewKind::kStrided;
  one.dims[1] = {1, 1};
  for (int64_t r = 0; r < view.rows(); r += step)
    for (int64_t i = 0; i < view.cols(); ++i) {
      one.partition = static_cast<int32_t>(view.partition + r * view.dims[0].stride);
      one.dims[0].count = static_cast<int32_t>(std::min(step, view.rows() - r));
      one.offset = view.offset + places[static_cast<size_t>(r / group * view.cols() + i)];
      f(one);
    }
}

template <class F>
void Machine::for_each_box(const View& view, const F& f) const {
  if (view.elements() == 0) return;
  if (view.kind == ViewKind::kIndirect && view.on_chip())
    return for_each_column(view, true, [&](const View& column) { for_each_box(column, f); });
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
    if (n > 0 && dims[0].stride == row_bytes) {
      auto inner = [&](auto&& self, int level, int64_t base) -> void {
        if (level < 1 && base % row_bytes + run <= row_bytes) return emit_run(base, run, dims[0].count);
        if (level < 0) return emit_run(base, run, 1);  // this run ends in the next row
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

namespace {

/// Byte i becomes byte `phase` + i of a pattern that repeats.
void fill_pattern(std::span<std::byte> bytes, const std::byte (&pattern)[4], int64_t size, int64_t phase) {
  if (size == 1 || std::all_of(pattern, pattern + size, [&](std::byte b) { return b == pattern[0]; })) {
    std::fill(bytes.begin(), bytes.end(), pattern[0]);
    return;
  }
  // The first repetition byte by byte, then doubled.
  const size_t first = std::min(bytes.size(), static_cast<size_t>(size));
  for (size_t i = 0; i < first; ++i) bytes[i] = pattern[(static_cast<size_t>(phase) + i) % static_cast<size_t>(size)];
  for (size_t done = first; done < bytes.size(); done *= 2)
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
}

}  // namespace

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
  if (policy != UninitPolicy::kFill) warn("UNINIT1", message);
  // The fill value on chip is the official simulator's: NaN for floats, 4 for integers. In HBM it is zero: a caller's
  // fresh buffer holds zeros, and public kernels leave the padding of their results to that (assumed).
  std::byte pattern[4] = {};
  // Zero, where it is asked for: of a chip's leftovers some kernels need only that they are finite.
  if (t.on_chip() && policy != UninitPolicy::kZero && !is_packed(view.dtype))
    from_float(view.dtype, is_float(view.dtype) ? std::nanf("") : 4.0f, pattern);
  const int64_t size = size_of(view.dtype);
  for_each_box(view, [&](const Defined::Box& box) {
    for (int64_t r = box.row_begin; r < box.row_end; ++r)
      for (int64_t b = box.byte_begin; (b = s.defined->next_undefined(r, b, box.byte_end)) < box.byte_end;) {
        const int64_t end = s.defined->next_defined(r, b, box.byte_end);
        std::byte* at = t.on_chip() ? s.data + (r - s.row0) * s.pitch + (b - s.byte0) : s.data + r * s.row_bytes + b;
        fill_pattern({at, static_cast<size_t>(end - b)}, pattern, size, (b - s.byte0) % size);
        b = end;
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

Status Machine::check_result(uint32_t tensor, const char* what) {
  const View all = whole_view(tensor, this->tensor(tensor));
  if (is_defined(all)) return {};
  Result<Operand> opened = read(all, what);
  if (opened) return {};
  opened.error().rule = "OUT2";
  return std::move(opened.error());
}

bool Machine::byte_defined(const View& view, int64_t row, int64_t byte) {
  Storage& s = *storages_[view.tensor];
  return s.defined->test_byte(s.row0 + row, s.byte0 + byte);
}

void Machine::mark_defined(const View& view) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  if (!s.defined->whole()) for_each_box(view, [&](const Defined::Box& box) { s.defined->mark(box); });
  // Whatever is written next is not a matmul's until it says so.
  if (s.by_matmul != nullptr &&
      (!s.by_matmul->none() || (s.defined == &psum_.defined && !psum_.matmul_tensors.empty())))
    for_each_box(view, [&](const Defined::Box& box) { forget_matmuls(view.tensor, box); });
}

namespace {
Defined::Box inside(const Storage& s, const Defined::Box& box) {
  return {box.row_begin - s.row0, box.row_end - s.row0, box.byte_begin - s.byte0, box.byte_end - s.byte0};
}
}  // namespace

void Machine::forget_matmuls(uint32_t tensor, const Defined::Box& box) {
  Storage& s = *storages_[tensor];
  if (s.by_matmul == nullptr) return;
  if (!s.by_matmul->none()) s.by_matmul->clear(inside(s, box));
  if (s.defined == &psum_.defined) forget_matmuls_of_others(tensor, box);
}

// "First write overwrites, subsequent writes accumulate" (nki.isa.nc_matmul, accumulate=None) speaks of a dst tile.
// Kernels that place their tiles themselves let many tiles take turns in one bank, so the first write is one of each
// tile, and a tile that another was written over starts again.
void Machine::forget_matmuls_of_others(uint32_t tensor, const Defined::Box& box) {
  for (const uint32_t id : psum_.matmul_tensors) {
    if (id == tensor || !has_storage(id) || storages_[id]->by_matmul == nullptr || storages_[id]->by_matmul->none())
      continue;
    const TensorInfo& info = this->tensor(id);
    Defined::Box part = inside(*storages_[id], box);
    part.row_begin = std::max<int64_t>(part.row_begin, 0);
    part.row_end = std::min<int64_t>(part.row_end, info.partitions());
    part.byte_begin = std::max<int64_t>(part.byte_begin, 0);
    part.byte_end = std::min<int64_t>(part.byte_end, info.free_bytes());
    if (part.row_begin < part.row_end && part.byte_begin < part.byte_end) storages_[id]->by_matmul->clear(part);
  }
  std::erase_if(psum_.matmul_tensors, [&](uint32_t id) {
    return !has_storage(id) || storages_[id]->by_matmul == nullptr || storages_[id]->by_matmul->none();
  });
}

void Machine::mark_matmul_result(const View& view) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  const bool shares = s.by_matmul != nullptr && s.defined == &psum_.defined;
  for_each_box(view, [&](const Defined::Box& box) {
    s.defined->mark(box);
    if (shares) forget_matmuls_of_others(view.tensor, box);
    if (s.by_matmul != nullptr) s.by_matmul->mark(inside(s, box));
  });
  auto& placed = psum_.matmul_tensors;
  if (shares && std::find(placed.begin(), placed.end(), view.tensor) == placed.end()) placed.push_back(view.tensor);
}

bool Machine::by_matmul(const View& view, bool* mixed) {
  Storage& s = *storages_[view.tensor];
  *mixed = false;
  if (s.by_matmul == nullptr || s.by_matmul->none()) return false;
  if (s.by_matmul->whole()) return true;
  bool all = true, any = false;
  for_each_box(view, [&](const Defined::Box& place) {
    const Defined::Box box = inside(s, place);
    if (s.by_matmul->test(box)) {
      any = true;
      return;
    }
    all = false;
    for (int64_t r = box.row_begin; r < box.row_end && !any; ++r)
      any = s.by_matmul->next_defined(r, box.byte_begin, box.byte_end) < box.byte_end;
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
  if (view.kind == ViewKind::kIndirect && view.on_chip()) {
    size_t element = 0;
    for_each_column(view, false,
                    [&](const View& one) { f(element++, s.row0 + one.partition, s.byte0 + one.offset * size); });
    return;
  }
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
    const bool all = defined.next_undefined(row, byte, byte + size) == byte + size;
    out[element] = all ? ElementState::kDefined : ElementState::kUndefined;
  });
  return out;
}

void Machine::set_element_states(const View& view, const std::vector<ElementState>& states) {
  Storage& s = *storages_[view.tensor];
  s.written = true;
  const int size = size_of(view.dtype);
  Defined::Box run{};  // elements of one state that adjoin
  ElementState state = ElementState::kKeep;
  const auto set_run = [&] {
    if (state == ElementState::kKeep) return;
    if (state == ElementState::kDefined)
      s.defined->mark(run);
    else
      s.defined->clear(run);
    forget_matmuls(view.tensor, run);
  };
  for_each_element(view, [&](size_t element, int64_t row, int64_t byte) {
    const ElementState next = row < 0 ? ElementState::kKeep : states[element];
    if (next == state && row == run.row_begin && byte == run.byte_end) {
      run.byte_end += size;
      return;
    }
    set_run();
    state = next;
    run = {row, row + 1, byte, byte + size};
  });
  set_run();
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

}  // namespace sterna
