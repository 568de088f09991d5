// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/dma_execute.h"

#include <algorithm>
#include <cstring>

#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna {

Status check_indirect(const Operand& o, const View& v, OobMode mode, const Machine& m, std::string_view what) {
  if (o.row_offsets == nullptr || mode == OobMode::kSkip) return {};
  for (int64_t r = 0; r < o.rows; ++r)
    if (o.row_offsets[r] < 0)
      return Fault(FaultKind::kOutOfBounds, "DMA4",
                   cat("'", what, "': the index of row ", r, " is outside 0 to ", m.dynamic(v.dynamic).limit - 1,
                       "; use oob_mode.skip to leave such rows alone."));
  return {};
}

namespace {

/// A source of a transpose: its first axis, its middle axes as one run of places, its last axis. Strides in bytes.
struct Turned {
  int64_t rows = 0, last = 0, last_stride = 0;
  std::vector<int64_t> middle;  ///< byte offset of each index of the middle axes, in order
};

Turned turned(const View& src) {
  Turned t;
  const int64_t size = size_of(src.dtype);
  t.rows = src.dims[0].count;
  t.last = src.dims[src.ndim - 1].count;
  t.last_stride = src.dims[src.ndim - 1].stride * size;
  t.middle = {0};
  for (int d = 1; d + 1 < src.ndim; ++d) {
    std::vector<int64_t> wider;
    for (int64_t base : t.middle)
      for (int64_t i = 0; i < src.dims[d].count; ++i) wider.push_back(base + i * src.dims[d].stride * size);
    t.middle = std::move(wider);
  }
  return t;
}

/// dst[k][mid][r] = src[r][mid][k] for r in [first, first + rows), in dst's flattened rows.
void turn_rows(const Operand& d, const std::byte* from, int64_t row_pitch, const Turned& t, int64_t first,
               int64_t rows) {
  const int64_t size = size_of(d.dtype);
  for (size_t mid = 0; mid < t.middle.size(); ++mid) {
    const int64_t col = static_cast<int64_t>(mid) * t.rows + first;
    const std::byte* at = from + t.middle[mid];
    if (d.unit && t.last_stride == size) {
      transpose_bytes(at, row_pitch, d.base + col * size, d.row_pitch, rows, t.last, static_cast<int>(size));
      continue;
    }
    Operand column;  // one column of this part of src is a run of dst
    column.dtype = d.dtype;
    column.rows = t.last;
    column.cols = rows;
    column.nfree = 1;
    column.free[0] = {row_pitch, rows};
    column.base = const_cast<std::byte*>(at);
    column.row_pitch = t.last_stride;
    std::vector<uint32_t> words(static_cast<size_t>(rows));
    for (int64_t k = 0; k < t.last; ++k) {
      load_bits(column, k, 0, rows, words.data());
      store_bits(d, k, col, rows, words.data());
    }
  }
}

/// The definedness of dst's elements, row-major, from that of src's.
std::vector<ElementState> turn_states(const std::vector<ElementState>& from, const Turned& t) {
  std::vector<ElementState> out(from.size());
  const int64_t middle = static_cast<int64_t>(t.middle.size());
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t mid = 0; mid < middle; ++mid)
      for (int64_t k = 0; k < t.last; ++k)
        out[static_cast<size_t>((k * middle + mid) * t.rows + r)] =
            from[static_cast<size_t>((r * middle + mid) * t.last + k)];
  return out;
}

/// The same for a gather: a row's elements are those of the row that its index names.
std::vector<ElementState> gathered_states(Machine& m, const View& plain, const std::vector<int64_t>& places) {
  std::vector<ElementState> out;
  View row = plain;
  row.dims[0].count = 1;
  for (int64_t place : places) {
    row.offset = plain.offset + std::max<int64_t>(0, place);
    std::vector<ElementState> one = m.element_states(row);
    if (place < 0) std::fill(one.begin(), one.end(), ElementState::kKeep);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

/// Every row is inside and defined: nothing is to be kept or marked by element.
bool rows_are_whole(Machine& m, const View& plain, const std::vector<int64_t>& places) {
  View row = plain;
  row.dims[0].count = 1;
  return std::all_of(places.begin(), places.end(), [&](int64_t place) {
    row.offset = plain.offset + place;
    return place >= 0 && m.is_defined(row);
  });
}

/// Rows side by side first: a transpose of many rows works on whole cache lines, one of a single row on single
/// elements.
void turn_gathered(const Operand& d, const std::byte* base, const std::vector<int64_t>& offsets, Turned t,
                   int64_t size) {
  const int64_t part = t.last * size, pitch = part * static_cast<int64_t>(t.middle.size());
  std::vector<std::byte> rows(static_cast<size_t>(pitch) * offsets.size());
  std::byte* to = rows.data();
  for (int64_t offset : offsets)
    for (int64_t middle : t.middle) {
      std::memcpy(to, base + offset + middle, static_cast<size_t>(part));
      to += part;
    }
  for (size_t i = 0; i < t.middle.size(); ++i) t.middle[i] = static_cast<int64_t>(i) * part;
  turn_rows(d, rows.data(), pitch, t, 0, t.rows);
}

/// Gather, then transpose: row r of src is the one that the r-th index names, indices read column by column.
Status gather_transpose(Machine& m, const View& dst, const View& src, OobMode mode) {
  View plain = src;
  plain.kind = ViewKind::kStrided;
  STERNA_ASSIGN(Operand s, m.read_any(plain, "src"));
  const DynamicOffset& dyn = m.dynamic(src.dynamic);
  std::vector<int64_t> places(static_cast<size_t>(s.rows)), offsets(places.size());
  STERNA_TRY(m.read_indices(dyn, Machine::IndexOrder::kColumns, places));
  for (size_t r = 0; r < places.size(); ++r) {
    places[r] = places[r] < 0 || places[r] >= dyn.limit ? -1 : places[r] * dyn.multiplier;
    offsets[r] = places[r] < 0 ? -1 : places[r] * size_of(src.dtype);
    View row = plain;
    row.dims[0] = {0, 1};
    row.offset += std::max<int64_t>(0, places[r]);
    if (places[r] >= 0 && !in_bounds(row, m.tensor(src.tensor)))
      return Fault(FaultKind::kOutOfBounds, "DYN2",
                   cat("src: with the index of row ", r, " the view leaves the ", m.describe(src), "."));
  }
  s.row_offsets = offsets.data();
  Result<Operand> to = m.open(dst, "dst");
  if (left_alone(to, dst, mode)) return {};
  STERNA_ASSIGN(Operand d, std::move(to));
  STERNA_TRY(check_indirect(s, src, mode, m, "src"));
  const Turned t = turned(src);
  const bool whole = rows_are_whole(m, plain, places);
  const std::vector<ElementState> states = whole ? std::vector<ElementState>{} : gathered_states(m, plain, places);
  if (whole && t.last_stride == size_of(src.dtype)) {
    turn_gathered(d, s.base, offsets, t, size_of(src.dtype));
  } else {
    for (int64_t r = 0; r < t.rows; ++r)
      if (offsets[static_cast<size_t>(r)] >= 0) turn_rows(d, s.base + offsets[static_cast<size_t>(r)], 0, t, r, 1);
  }
  if (whole)
    m.mark_defined(dst);
  else
    m.mark_elements(dst, turn_states(states, t));
  return {};
}

}  // namespace

Status execute_dma_transpose(Machine& m, const View& dst, const View& src, OobMode mode) {
  if (src.kind == ViewKind::kIndirect) return gather_transpose(m, dst, src, mode);
  Result<Operand> from = m.read_any(src, "src"), to = m.open(dst, "dst");
  if (left_alone(from, src, mode) || left_alone(to, dst, mode)) return {};
  STERNA_ASSIGN(Operand s, std::move(from));
  STERNA_ASSIGN(Operand d, std::move(to));
  const std::vector<ElementState> states = m.element_states_if_partial(src);
  Turned t = turned(src);
  Snapshot snapshot;
  if (s.storage->defined == d.storage->defined) {
    // Everything is read before anything is written. The copy lies row after row.
    snapshot.copy(s);
    const int64_t size = size_of(src.dtype);
    t.last_stride = size;
    for (size_t i = 0; i < t.middle.size(); ++i) t.middle[i] = static_cast<int64_t>(i) * t.last * size;
  }
  turn_rows(d, s.base, s.row_pitch, t, 0, t.rows);
  if (states.empty())
    m.mark_defined(dst);
  else
    m.mark_elements(dst, turn_states(states, t));
  return {};
}

/// DC7: a row that is scattered to twice. The values here are those of one addition after the other.
static void note_repeated_rows(Machine& m, const Operand& d) {
  if (d.row_offsets == nullptr) return;
  std::vector<int64_t> rows(d.row_offsets, d.row_offsets + d.rows);
  std::sort(rows.begin(), rows.end());
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] != rows[i - 1]) continue;
    m.warn(
        "DC7",
        "dma_compute scatters to one row more than once, though unique_indices is True: the chip may lose one of the "
        "additions.");
    return;
  }
}

Status execute_dma_sum(Machine& m, const View& dst, const std::vector<const View*>& sources, OobMode mode) {
  std::vector<Operand> from;
  for (const View* v : sources) {
    STERNA_ASSIGN(Operand s, m.read(*v, "srcs"));
    STERNA_TRY(check_indirect(s, *v, mode, m, "srcs"));
    from.push_back(s);
  }
  STERNA_ASSIGN(Operand d, m.open(dst, "dst"));
  d.rounding =
      nullptr;  // stochastic rounding is the engines' (arch-v2: "programmable rounding mode" of the NeuronCore)
  STERNA_TRY(check_indirect(d, dst, mode, m, "dst"));
  note_repeated_rows(m, d);
  std::vector<Snapshot> snapshots(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    // The view that is read and written by one read-modify-write is resolved twice, so compare the views.
    if (same_place([&](uint32_t id) -> const DynamicOffset& { return m.dynamic(id); }, *sources[i], dst)) continue;
    if (snapshots[i].take(d, from[i])) warn_aliased(m);
  }
  std::vector<ElementState> states(static_cast<size_t>(d.rows * d.cols), ElementState::kDefined);
  float *total = piece_scratch(0), *more = piece_scratch(1);
  for (int64_t e = 0; e < d.rows * d.cols;) {
    // The longest run that stays inside one row of every operand.
    int64_t n = std::min({kPiece, d.cols - e % d.cols, d.rows * d.cols - e});
    auto skipped = [&](const Operand& o) { return o.row_offsets != nullptr && o.row_offsets[e / o.cols] < 0; };
    bool skip = skipped(d);
    for (const Operand& s : from) {
      n = std::min(n, s.cols - e % s.cols);
      skip = skip || skipped(s);
    }
    if (skip) {
      std::fill_n(states.begin() + e, n, ElementState::kKeep);
    } else {
      load_row(from[0], e / from[0].cols, e % from[0].cols, n, total);
      for (size_t i = 1; i < from.size(); ++i) {
        load_row(from[i], e / from[i].cols, e % from[i].cols, n, more);
        alu_block(AluOp::kAdd, {total, n}, {more, n}, {total, n}, 1, n);
      }
      store_row(d, e / d.cols, e % d.cols, n, total);
    }
    e += n;
  }
  m.mark_elements(dst, states);
  return {};
}

}  // namespace sterna
