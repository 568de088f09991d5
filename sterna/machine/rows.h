// SPDX-License-Identifier: Apache-2.0
// The cursor: how instructions walk the rows of their operands as blocks of fp32. Operands that are not plain fp32 rows
// are converted to and from scratch piece by piece, so that instruction code sees one form only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sterna/machine/machine.h"
#include "sterna/machine/replay_step.h"
#include "sterna/numerics/alu.h"
#include "sterna/numerics/convert.h"

namespace sterna {

/// Elements [col, col+n) of row `r`, as fp32, into `out`.
void load_row(const Operand& operand, int64_t r, int64_t col, int64_t n, float* out);
/// The same the other way.
void store_row(const Operand& operand, int64_t r, int64_t col, int64_t n, const float* in);
/// The partition in which a row of an on-chip operand lies: the lane that computes it. Counted from 0, or from the
/// tensor's address; automatic placement does not change it.
inline int64_t lane_of(const Operand& operand, int64_t r) {
  const Storage& s = *operand.storage;
  return s.pitch == 0 ? r : s.row0 + (operand.row(r) - s.data) / s.pitch;
}
/// values[r] into the one element of each row.
inline void store_column(const Operand& operand, const float* values) {
  if (operand.direct())
    for (int64_t r = 0; r < operand.rows; ++r)
      *reinterpret_cast<float*>(operand.base + r * operand.row_pitch) = values[r];
  else
    for (int64_t r = 0; r < operand.rows; ++r) store_row(operand, r, 0, 1, values + r);
}
/// The same for raw bits, zero-extended to 32 (sign-extended for signed integers).
void load_bits(const Operand& operand, int64_t r, int64_t col, int64_t n, uint32_t* out);
void store_bits(const Operand& operand, int64_t r, int64_t col, int64_t n, const uint32_t* in);

/// True when reading `src` while writing `dst` element by element could see a value already written.
bool overlaps_shifted(const Operand& dst, const Operand& src);

/// ALIAS1: the remark on a shifted overlap.
void warn_aliased(Machine& m);

/// A private copy of an operand, bit by bit, for shifted overlaps.
class Snapshot {
 public:
  /// Copies `operand` if it overlaps `dst` shifted; afterwards operand refers to the copy. Returns true if it did.
  bool take(const Operand& dst, Operand& operand) {
    if (dst.storage != operand.storage && dst.storage->defined != operand.storage->defined) return false;
    if (!overlaps_shifted(dst, operand)) return false;
    copy(operand);
    return true;
  }
  /// Copies it in any case.
  void copy(Operand& operand);

 private:
  std::unique_ptr<std::byte[]> data_;
  std::vector<int64_t> row_offsets_;  // of a copied indirect operand: its skipped rows stay skipped
};
/// take() for a whole list, with the remark that is due when something was copied.
template <class... O>
void take_snapshots(Machine& m, std::array<Snapshot, sizeof...(O)>& snapshots, const Operand& dst, O&... operands) {
  size_t at = 0;
  bool any = false;
  ((any |= snapshots[at++].take(dst, operands)), ...);
  if (any) warn_aliased(m);
}

/// `values` copied into `buffer` when they lie in memory that dst's instruction writes before it last reads them.
inline Machine::Values kept_apart(const Operand& dst, Machine::Values values, int64_t rows, float* buffer) {
  const auto* at = reinterpret_cast<const std::byte*>(values.data);
  const Storage& s = *dst.storage;
  const bool alone = s.defined == &s.own_defined;  // a placed tensor shares bytes with others
  if (values.data == buffer || (alone && (at < s.data || at >= s.data + s.bytes))) return values;
  for (int64_t r = 0; r < rows; ++r) buffer[r] = values.data[r * values.pitch];
  return {buffer, 1};
}

/// Rows of `dst` share an element, or may: their order of writing shows, so one thread writes them in order.
bool rows_may_meet(const Operand& dst);

/// Scratch for one piece of one operand: kPiece floats.
inline constexpr int64_t kPiece = 8192;
float* piece_scratch(int slot);  // thread-local, slots 0..7

/// How a range of rows and columns is cut: pieces of whole rows, or of part of one row.
struct Pieces {
  int64_t rows, cols, row_step, col_step;
  Pieces(int64_t r, int64_t c) : rows(r), cols(c) {
    col_step = std::min(cols, kPiece);
    row_step = col_step > 0 ? std::max<int64_t>(1, kPiece / col_step) : rows;
    if (col_step < cols) row_step = 1;
  }
};

/// Elements from which a loop is worth splitting over threads.
inline constexpr int64_t kThreadWorth = 65536;

/// Runs f(row_begin, row_end) over rows, on the pool when the work is large; `in_order`: on one thread.
template <class F>
void over_rows(Machine& m, int64_t rows, int64_t cols, const F& f, bool in_order = false) {
  if (rows * cols < kThreadWorth || m.pool().threads() == 1 || rows < 2 || in_order) {
    f(int64_t{0}, rows);
    return;
  }
  m.pool().run_shares(rows, [&](ptrdiff_t b, ptrdiff_t e) { f(static_cast<int64_t>(b), static_cast<int64_t>(e)); });
}

/// The piece of an operand as a block: in place when it is plain fp32, else decoded into scratch.
inline ConstBlock load_piece(const Operand& o, int64_t r, int64_t nr, int64_t c, int64_t nc, float* scratch) {
  if (o.direct()) return {reinterpret_cast<const float*>(o.base + r * o.row_pitch) + c, o.row_pitch / 4};
  if (o.row_pitch == 0 && o.row_offsets == nullptr) {
    load_row(o, r, c, nc, scratch);
    return {scratch, 0};
  }
  if (o.rows_adjoin() && nc == o.cols) {
    decode_row(o.dtype, o.row(r), size_of(o.dtype), scratch, nr * nc);
    return {scratch, static_cast<ptrdiff_t>(nc)};
  }
  for (int64_t i = 0; i < nr; ++i) load_row(o, r + i, c, nc, scratch + i * nc);
  return {scratch, static_cast<ptrdiff_t>(nc)};
}

/// Which rows and columns of the operands a piece is.
struct Piece {
  int64_t row, rows, col, cols;
};

/// An operand in a list of them: they are large, so a list holds references.
struct OperandRef {
  OperandRef(const Operand& o) : operand(&o) {}  // NOLINT: a braced list of operands is meant
  operator const Operand&() const { return *operand; }
  const Operand* operand;
};

/// out = body(inputs), piece by piece: body(const ConstBlock (&in)[N], Block out, const Piece&). Pieces of one row come
/// in ascending order on one thread. Inputs have the shape of dst (checks broadcast them).
template <size_t N, class F>
void map_rows(Machine& m, const Operand& dst, const std::array<OperandRef, N>& in, const F& body) {
  if (const int64_t elements = dst.rows * dst.cols; elements > 0 && elements <= kPiece && dst.direct()) {
    // Most small instructions: one piece, in place.
    bool direct = true;
    ConstBlock blocks[N > 0 ? N : 1];
    for (size_t i = 0; i < N; ++i) {
      const Operand& o = in[i];
      direct = direct && o.direct();
      blocks[i] = {reinterpret_cast<const float*>(o.base), o.row_pitch / 4};
    }
    if (direct)
      return body(blocks, Block{reinterpret_cast<float*>(dst.base), dst.row_pitch / 4}, {0, dst.rows, 0, dst.cols});
  }
  const auto run = [&](int64_t row_begin, int64_t row_end) {
    const Pieces p(row_end - row_begin, dst.cols);
    for (int64_t r = row_begin; r < row_end; r += p.row_step) {
      const int64_t nr = std::min(p.row_step, row_end - r);
      for (int64_t c = 0; c < dst.cols; c += p.col_step) {
        const int64_t nc = std::min(p.col_step, dst.cols - c);
        ConstBlock blocks[N > 0 ? N : 1];
        for (size_t i = 0; i < N; ++i)
          blocks[i] = load_piece(in[i], r, nr, c, nc, piece_scratch(static_cast<int>(i) + 1));
        const bool in_place = dst.direct();
        Block out = in_place ? Block{reinterpret_cast<float*>(dst.base + r * dst.row_pitch) + c, dst.row_pitch / 4}
                             : Block{piece_scratch(0), static_cast<ptrdiff_t>(nc)};
        body(blocks, out, Piece{r, nr, c, nc});
        if (in_place) continue;
        if (dst.rows_adjoin() && nc == dst.cols && dst.rounding == nullptr)
          encode_row(dst.dtype, out.data, dst.row(r), size_of(dst.dtype), nr * nc);
        else
          for (int64_t i = 0; i < nr; ++i) store_row(dst, r + i, c, nc, out.data + i * nc);
      }
    }
  };
  over_rows(m, dst.rows, dst.cols, run, rows_may_meet(dst));
}

/// A view and what it was opened as.
struct Opened {
  const View& view;
  const Operand& operand;
};

/// Runs a step: Call::run(step, inputs, output) on the places of its operands. `kAll`: it writes all of its output.
template <class Call, size_t N, bool kAll>
bool run_step(const ReplayStep& step, Machine& m) {
  const std::byte* in[N];
  for (size_t i = 0; i < N; ++i) {
    in[i] = m.read_whole(step.in[i].tensor);
    if (in[i] == nullptr) return false;
    in[i] += step.in[i].offset;
  }
  std::byte* out = m.write_whole(step.out.tensor, kAll);
  if (out == nullptr) return false;
  Call::run(step, in, out + step.out.offset);
  return true;
}

/// map_rows in one piece. Body is map_rows' body: values only, no references.
template <class Body, size_t N>
struct MapCall {
  static void run(const ReplayStep& step, const std::byte* const (&in)[N], std::byte* out) {
    ConstBlock blocks[N];
    for (size_t i = 0; i < N; ++i) blocks[i] = {reinterpret_cast<const float*>(in[i]), step.in[i].pitch / 4};
    const auto& body = *reinterpret_cast<const Body*>(step.body);
    body(blocks, Block{reinterpret_cast<float*>(out), step.out.pitch / 4}, Piece{0, step.rows, 0, step.cols});
  }
};

/// Fills a step's places when its operands lie plainly in tensors all of whose bytes are defined, and dst holds nothing
/// of a matmul's. `all`: dst is a whole tensor.
bool place_step(Machine& m, ReplayStep& step, const Opened& dst, const Opened* const* in, size_t n, bool* all);

/// What an instruction with these operands does is Call::run(body) and no more: a step for when the program runs again.
template <class Call, size_t N, class Body>
void note_step(Machine& m, const Opened& dst, const std::array<const Opened*, N>& in, const Body& body) {
  static_assert(N <= ReplayStep::kMostInputs && sizeof(Body) <= ReplayStep::kBodyBytes && alignof(Body) <= 4);
  static_assert(std::is_trivially_copyable_v<Body>);
  ReplayStep& step = *m.noted_step();
  bool all = false;
  if (!place_step(m, step, dst, in.data(), N, &all)) return;
  std::memcpy(step.body, &body, sizeof(Body));
  step.run = all ? run_step<Call, N, true> : run_step<Call, N, false>;
}

/// map_rows as all that an instruction does, with a body that holds its values: with immediates, without sums, remarks
/// or anything else that is not in dst.
template <class Body, class... In>
void map_only(Machine& m, const Opened& dst, const Body& body, const In&... in) {
  constexpr size_t kInputs = sizeof...(In);
  if (m.noted_step() != nullptr) [[unlikely]]
    if (dst.operand.rows * dst.operand.cols <= kPiece && dst.operand.direct() && (in.operand.direct() && ...))
      note_step<MapCall<Body, kInputs>, kInputs>(m, dst, {&in...}, body);
  map_rows<kInputs>(m, dst.operand, {OperandRef(in.operand)...}, body);
}

/// body(const ConstBlock (&in)[N], const Piece&) over the pieces of in[0]'s shape, for instructions that write
/// elsewhere.
template <size_t N, class F>
void visit_rows(Machine& m, const std::array<OperandRef, N>& in, const F& body) {
  const Operand& first = in[0];
  over_rows(m, first.rows, first.cols, [&](int64_t row_begin, int64_t row_end) {
    const Pieces p(row_end - row_begin, first.cols);
    for (int64_t r = row_begin; r < row_end; r += p.row_step) {
      const int64_t nr = std::min(p.row_step, row_end - r);
      for (int64_t c = 0; c < first.cols; c += p.col_step) {
        const int64_t nc = std::min(p.col_step, first.cols - c);
        ConstBlock blocks[N];
        for (size_t i = 0; i < N; ++i)
          blocks[i] = load_piece(in[i], r, nr, c, nc, piece_scratch(static_cast<int>(i) + 1));
        body(blocks, Piece{r, nr, c, nc});
      }
    }
  });
}

/// out[i] = words[i], the integers of a `from` (as load_bits gives them), as a `to`: exact where it fits, else the
/// nearest that `to` has; bool: 1 unless zero. In place too.
void convert_integers(DType from, DType to, const uint32_t* words, uint32_t* out, int64_t n);

/// A step for a copy between plain rows of one type, which keeps bits. Called when the copy is made.
void note_copy(Machine& m, const Opened& dst, const Opened& src);

/// dst takes src's elements in order; both may have any shape with the same element count. Equal types keep bits,
/// integer types convert exactly with saturation, others through fp32.
Status copy_elements(Machine& m, const Operand& dst, const Operand& src);

}  // namespace sterna
