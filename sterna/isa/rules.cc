// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/rules.h"

#include <algorithm>
#include <cmath>

#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"
#include "sterna/numerics/convert.h"

namespace sterna {
namespace {

/// Elements [c, c+n) of row r as words: in place where they are, else in scratch; a repeated element is one word.
Words bits_of_row(const Operand& o, int64_t r, int64_t c, int64_t n, int slot) {
  if (o.unit && size_of(o.dtype) == 4) return {reinterpret_cast<const uint32_t*>(o.row(r)) + c};
  auto* words = reinterpret_cast<uint32_t*>(piece_scratch(slot));
  const bool repeated = !o.unit && o.nfree == 1 && o.free[0].stride == 0;
  load_bits(o, r, c, repeated ? 1 : n, words);
  return {words, repeated};
}

/// The same for a result: fill(words) writes in place, or into scratch that is then stored.
template <class F>
void put_bits(const Operand& o, int64_t r, int64_t c, int64_t n, const F& fill) {
  if (o.unit && size_of(o.dtype) == 4) return fill(reinterpret_cast<uint32_t*>(o.row(r)) + c);
  auto* words = reinterpret_cast<uint32_t*>(piece_scratch(2));
  fill(words);
  store_bits(o, r, c, n, words);
}

Fault broken(std::string rule, std::string message) {
  return Fault(FaultKind::kRuleBroken, std::move(rule), std::move(message));
}

}  // namespace

Status check_reduced(const View& data, int64_t depth) {
  if (data.rows() > 0 && depth > 0) return {};
  return broken("RED7", cat("data ", shape_text(data), " has nothing to reduce, so the result has no value. ",
                            "Leave the instruction out, or write dst with memset."));
}

Status check_tile(const Rules& rules, const View& view, std::string_view what) {
  STERNA_TRY(check_moved_tile(rules, view, what));
  if (!is_packed(view.dtype)) return {};
  return broken("PACK1", cat("'", what, "' is ", name(view.dtype),
                             ": this instruction does not take packed elements. They are moved, transposed, set to 0, "
                             "and multiplied by nc_matmul_mx; .view(dtype) shows their bytes."));
}

Status check_packed_move(const View& dst, const View& src) {
  if (dst.dtype == src.dtype || (!is_packed(dst.dtype) && !is_packed(src.dtype))) return {};
  return broken("PACK1", cat("Packed elements are not converted: dst is ", name(dst.dtype), ", src ", name(src.dtype),
                             ". .view(dtype) sees the same bytes as another type."));
}

Status check_moved_tile(const Rules& rules, const View& view, std::string_view what) {
  if (view.empty()) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing."));
  if (!view.on_chip())
    return broken("P1", cat("'", what,
                            "' is in HBM; a compute engine reads and writes SBUF and PSUM. Load it first (dma_copy)."));
  const int64_t most = rules.chip->limits.partitions;
  if (view.rows() > most)
    return broken("P2", cat("'", what, "' has ", view.rows(), " partitions, the chip has ", most, "."));
  return check_adjoining(rules, view, what);
}

Status check_adjoining(const Rules& rules, const View& view, std::string_view what) {
  if (view.rows() <= 1 || view.dims[0].stride <= 1) return {};
  return rules.compat("P3", cat("'", what, "' takes every ", view.dims[0].stride,
                                ". partition; an engine reads and writes partitions that follow one another."));
}

Status fit(const Rules& rules, View& view, const View& like, std::string_view what) {
  if (view.rows() != like.rows()) {
    if (view.rows() != 1)
      return broken("SHAPE1", cat("'", what, "' has ", view.rows(), " partitions, the result has ", like.rows(), "."));
    STERNA_TRY(rules.compat("COMPAT1", cat("'", what, "' has one partition and the result ", like.rows(),
                                           ": broadcasting over partitions is not documented for this instruction.")));
    view.dims[0] = {0, static_cast<int32_t>(like.rows())};
  }
  const int64_t have = view.cols(), want = like.cols();
  if (have == want) return {};
  if (have != 1 || view.kind == ViewKind::kIndirect)
    return broken("SHAPE2", cat("'", what, "' ", shape_text(view), " has ", have,
                                " elements in a partition, the result ", shape_text(like), " has ", want, "."));
  view.ndim = 2;
  view.dims[1] = {0, static_cast<int32_t>(want)};
  for (int d = 2; d < kMaxDims; ++d) view.dims[d] = {};
  return {};
}

Status fit_scalar(const Rules& rules, Scalar& scalar, const View& like, std::string_view what) {
  if (!scalar.is_view) return {};
  STERNA_TRY(check_tile(rules, scalar.view, what));
  View& view = scalar.view;
  if (view.cols() != 1)
    return broken("SHAPE3",
                  cat("'", what, "' ", shape_text(view), " must hold one value for each partition: shape (P, 1)."));
  if (view.rows() == like.rows()) return {};
  if (view.rows() != 1)
    return broken("SHAPE1", cat("'", what, "' has ", view.rows(), " partitions, the result has ", like.rows(), "."));
  STERNA_TRY(rules.compat("COMPAT1", cat("'", what, "' has one partition and the result ", like.rows(),
                                         ": broadcasting over partitions is not documented for this instruction.")));
  view.dims[0] = {0, static_cast<int32_t>(like.rows())};
  return {};
}

Status check_not_both_psum(const View& a, const View& b, std::string_view what_a, std::string_view what_b) {
  if (a.memory == Memory::kPsum && b.memory == Memory::kPsum)
    return broken("BUF1", cat("'", what_a, "' and '", what_b, "' are both in PSUM; copy one to SBUF first."));
  return {};
}

Status check_engine(const Rules& rules, EngineId engine, std::initializer_list<EngineId> allowed,
                    std::initializer_list<const View*> operands) {
  if (std::find(allowed.begin(), allowed.end(), engine) == allowed.end()) {
    std::string list;
    for (EngineId e : allowed) list += cat(list.empty() ? "" : ", ", name(e));
    return broken("ENG1",
                  cat("This instruction does not run on the ", name(engine), " engine; it runs on: ", list, "."));
  }
  if (engine == EngineId::kGpSimd && !rules.chip->ports.gpsimd_reaches_psum)
    for (const View* v : operands)
      if (!v->empty() && v->memory == Memory::kPsum)
        return broken("ENG2", "The GpSimd engine does not reach PSUM; copy the tile to SBUF or use another engine.");
  return {};
}

Status check_alu_of_chip(const Rules& rules, std::initializer_list<AluOp> ops) {
  if (rules.chip->features.unary_alu) return {};
  for (AluOp op : ops)
    if (op == AluOp::kAbsMax || op == AluOp::kAbsMin || op == AluOp::kSquare || op == AluOp::kRelu)
      return rules.compat("ALU1", cat("The operator ", name(op), " does not exist in the ALUs of ", rules.chip->name,
                                      "; the documents have it on later chips."));
  return {};
}

Status check_scatter(EngineId engine, const View& dst) {
  if (engine != EngineId::kScalar || dst.kind != ViewKind::kIndirect || dst.memory != Memory::kPsum) return {};
  return broken("TI5",
                "The scalar engine does not scatter into PSUM: dst is a view with .indirect() of a PSUM tensor.");
}

int bit_width(std::initializer_list<DType> types) {
  int width = 0;
  for (DType t : types) width = std::max(width, 8 * size_of(t));
  return width;
}

namespace {

int width_of(std::initializer_list<const View*> views) {
  int width = 0;
  for (const View* v : views) width = std::max(width, 8 * size_of(v->dtype));
  return width;
}

Fault not_whole(AluOp op, std::string_view what) {
  return broken("TYPE1", cat(name(op), " works on bits and does not convert: ", what));
}

}  // namespace

Status check_bits(const Rules& rules, std::initializer_list<const View*> views, AluOp op) {
  for (const View* v : views)
    if (!is_integer(v->dtype))
      return not_whole(op, cat("every operand must be of an integer type, one is ", name(v->dtype), "."));
  const int width = width_of(views);
  for (const View* v : views)
    if (8 * size_of(v->dtype) != width)
      return rules.compat("BITS1", cat(name(op), " on operands or to a result of different widths (", name(v->dtype),
                                       ", ", width, " bits): each operand is extended by its own type to ", width,
                                       " bits, and the low bits of the result are kept."));
  return {};
}

Status check_bit_operand(const Rules& rules, const Scalar& operand, std::initializer_list<const View*> views, AluOp op,
                         std::string_view what) {
  if (operand.is_none || op == AluOp::kBypass || is_unary(op)) return {};
  if (operand.is_view) {
    const View* first = *views.begin();
    const View* widest = first;
    for (const View* v : views)
      if (size_of(v->dtype) > size_of(widest->dtype)) widest = v;
    return check_bits(rules, {&operand.view, widest}, op);
  }
  const int width = width_of(views);
  const double end = std::ldexp(1.0, width);
  if (operand.value >= -end / 2 && operand.value < end && operand.value == std::floor(operand.value)) return {};
  return not_whole(op, cat("'", what, "' must be a whole number of ", width, " bits, not ", operand.value, "."));
}

Status check_arithmetic(AluOp op, std::string_view what) {
  if (!is_bitwise(op)) return {};
  return broken("OPS2", cat("'", what, "' is ", name(op), "; this instruction takes arithmetic operators only."));
}

Status check_operand(const Scalar& operand, AluOp op, std::string_view what, std::string_view what_op) {
  if (!operand.is_none || op == AluOp::kBypass || is_unary(op)) return {};
  return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing for ", what_op, " ", name(op), "."));
}

Status check_rows(const View& view, const View& like, std::string_view what) {
  if (view.rows() == like.rows()) return {};
  return broken("SHAPE1", cat("'", what, "' has ", view.rows(), " partitions, the result has ", like.rows(), "."));
}

Status check_cols(const View& view, int64_t cols, std::string_view what) {
  if (view.cols() == cols) return {};
  return broken("SHAPE4", cat("'", what, "' ", shape_text(view), " has ", view.cols(), " elements in a partition, ",
                              cols, " expected."));
}

uint32_t value_bits(DType type, double value) {
  if (is_packed(type)) return 0;
  return is_integer(type) ? integer_bits(type, value) : from_float_bits(type, static_cast<float>(value));
}

Status check_float_operand(const Rules& rules, const Scalar& operand, std::string_view what) {
  if (!operand.is_view || operand.view.dtype == DType::kFloat32) return {};
  return rules.compat("OPS5", cat("By the documents '", what, "' of arithmetic is float32; this tile is ",
                                  name(operand.view.dtype), "."));
}

Status check_priority(const Rules& rules, int32_t priority) {
  if (priority == kNoPriority) return {};
  if (!rules.chip->features.dma_priority)
    return Fault(FaultKind::kNotOnThisChip, "DMA5", "DMA priorities do not exist on this chip; leave 'priority' out.");
  const int64_t most = rules.chip->limits.dma_priorities - 1;
  if (priority >= 0 && priority <= most) return {};
  return Fault(FaultKind::kRuleBroken, "DMA5", cat("A DMA priority is 0 to ", most, ", not ", priority, "."));
}

Work count_elements(const Rules&, EngineId engine, std::initializer_list<const View*> views) {
  Work w;
  w.engine = engine;
  w.narrow = w.narrow8 = w.all_sbuf = w.contiguous = true;
  bool psum_in = false, first = true;
  for (const View* v : views) {
    if (v->empty()) continue;
    w.elements = std::max(w.elements, static_cast<double>(v->cols()));
    w.partitions = std::max(w.partitions, static_cast<double>(v->rows()));
    const int size = size_of(v->dtype);
    w.narrow = w.narrow && size == 2 && is_float(v->dtype);
    w.narrow8 = w.narrow8 && size <= 2 && is_float(v->dtype);
    w.all_sbuf = w.all_sbuf && v->memory == Memory::kSbuf;
    w.contiguous = w.contiguous && v->kind != ViewKind::kIndirect && free_contiguous(*v);
    w.dynamic = w.dynamic || v->kind != ViewKind::kStrided;
    if (!first && v->memory == Memory::kPsum) psum_in = true;
    first = false;
  }
  if (psum_in) w.fast_cases |= bit(FastCase::kPsumInput);
  if (w.narrow && w.all_sbuf) w.fast_cases |= bit(FastCase::kSixteenBitSbuf);
  return w;
}

Work count_dma(const Rules& rules, const View& dst, const View& src) {
  Work w;
  w.engine = EngineId::kDma;
  w.partitions = static_cast<double>(dst.on_chip() ? dst.rows() : src.rows());
  const double elements = static_cast<double>(dst.elements());
  w.bytes = elements * std::max(size_of(dst.dtype), size_of(src.dtype));
  // A descriptor moves one run of adjoining bytes on both sides, inside one partition.
  auto run_elements = [](const View& v) {
    int64_t run = 1;
    int d = v.ndim - 1;
    const int first = v.on_chip() ? 1 : 0;
    for (; d >= first; --d) {
      if (v.dims[d].count == 1) continue;
      if (v.dims[d].stride != run) break;
      run *= v.dims[d].count;
    }
    return std::max<int64_t>(1, run);
  };
  const int64_t run = std::min(run_elements(dst), run_elements(src));
  w.descriptors = elements / static_cast<double>(run);
  if (!src.on_chip()) w.hbm_read = elements * size_of(src.dtype);
  if (!dst.on_chip()) w.hbm_written = elements * size_of(dst.dtype);
  w.store = !dst.on_chip();
  w.dynamic = dst.kind != ViewKind::kStrided || src.kind != ViewKind::kStrided;
  (void)rules;
  return w;
}

namespace {

/// d[i] = f(a[i], b[i]) on raw words, by rows: f(Words, Words, uint32_t* out, n).
template <class F>
Status map_words(Machine& m, const Operand& dst, const Operand& a, const Operand& b, const F& f) {
  over_rows(
      m, dst.rows, dst.cols,
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (int64_t c = 0; c < dst.cols; c += kPiece) {
            const int64_t n = std::min(kPiece, dst.cols - c);
            const Words x = bits_of_row(a, r, c, n, 0), y = bits_of_row(b, r, c, n, 1);
            put_bits(dst, r, c, n, [&](uint32_t* out) { f(x, y, out, n); });
          }
      },
      rows_may_meet(dst));
  return {};
}

}  // namespace

Status map_bits(Machine& m, const Operand& dst, const Operand& a, const Operand& b, AluOp op) {
  const int bits = bit_width({dst.dtype, a.dtype, b.dtype});
  return map_words(m, dst, a, b,
                   [=](Words x, Words y, uint32_t* out, int64_t n) { alu_bits_block(op, x, y, out, n, bits); });
}

Status map_integers(Machine& m, const Operand& dst, const Operand& a, const Operand& b, AluOp op, bool is_signed) {
  return map_words(m, dst, a, b,
                   [=](Words x, Words y, uint32_t* out, int64_t n) { alu_int_block(op, x, y, out, n, is_signed); });
}

void map_bits_by_row(Machine& m, const Operand& dst, const Operand& a, const BitStep* steps, int count, int bits) {
  over_rows(
      m, dst.rows, dst.cols,
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (int64_t c = 0; c < dst.cols; c += kPiece) {
            const int64_t n = std::min(kPiece, dst.cols - c);
            Words x = bits_of_row(a, r, c, n, 0);
            put_bits(dst, r, c, n, [&](uint32_t* out) {
              for (int i = 0; i < count; ++i) {
                const Words one{&steps[i].words[r], true};
                alu_bits_block(steps[i].op, steps[i].reverse ? one : x, steps[i].reverse ? x : one, out, n, bits);
                x = {out};
              }
            });
          }
      },
      rows_may_meet(dst));
}

}  // namespace sterna
