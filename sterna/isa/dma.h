// SPDX-License-Identifier: Apache-2.0
// Instructions of the DMA engines.
#pragma once

#include <algorithm>

#include "sterna/base/text.h"
#include "sterna/isa/dma_execute.h"
#include "sterna/isa/rules.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::dma_engine {

/// DMA1: an operand is in HBM or SBUF.
inline Status check_reach(const View& v, std::string_view what) {
  if (v.empty()) return Fault(FaultKind::kWrongType, "ARG2", cat("'", what, "' is missing."));
  if (v.memory != Memory::kPsum) return {};
  return Fault(FaultKind::kRuleBroken, "DMA1",
               cat("'", what, "' is in PSUM; a DMA reaches HBM and SBUF only. Use tensor_copy first."));
}

/// DMA5, DMA6: priorities and hardware descriptor generation exist on this chip.
inline Status check_queue(const Rules& r, int32_t priority, DgeMode mode) {
  STERNA_TRY(check_priority(r, priority));
  if (mode == DgeMode::kHardware && !r.chip->features.hardware_dge)
    return Fault(FaultKind::kNotOnThisChip, "DMA6",
                 "Hardware descriptor generation does not exist on this chip; use dge_mode unknown or swdge.");
  return {};
}

/// DMA8: who makes the descriptors of a transfer with a dynamic place (nki.isa.dma_copy: gathers and scatters by
/// software only, dynamic starts by software or hardware). DMA9: the indices of a gather or scatter are in SBUF.
inline Status check_dynamic_place(const Rules& r, const View& v, DgeMode mode, std::string_view what) {
  const bool indirect = v.kind == ViewKind::kIndirect;
  if (indirect && (mode == DgeMode::kHardware || mode == DgeMode::kNone))
    return Fault(FaultKind::kRuleBroken, "DMA8",
                 cat("'", what, "' has a vector_offset: a gather or scatter needs dge_mode swdge or unknown."));
  if (v.kind == ViewKind::kDynamic && mode == DgeMode::kNone)
    return r.compat("DMA8",
                    cat("'", what, "' starts where a scalar_offset says, which by the documents needs dge_mode ",
                        "swdge, hwdge or unknown."));
  if (const View* index = indirect ? &(*r.dynamics)[v.dynamic].index : nullptr;
      index != nullptr && index->memory != Memory::kSbuf)
    return r.compat("DMA9", cat("The vector_offset of '", what, "' is in ", name(index->memory),
                                "; by the documents it is in SBUF."));
  return {};
}

/// dst takes src's elements in order, converted when the types differ: exactly between
/// integer types, else through fp32.
///
/// Shapes  any two shapes of equal element counts; gather and scatter by a vector offset on dim 0; dynamic start by a
/// scalar offset Rules   DMA1 (no PSUM) DMA2 (element counts) DMA3 (hardware DGE: equal types) DMA4 (indices in bounds
/// unless skip)
///         DMA5 (priority) DMA6 (hardware DGE exists) DMA7 (engine) DMA8 (dynamic places) DMA9 (indices in SBUF)
/// Source  nki.isa.dma_copy (SDK 2.32)
struct DmaCopy {
  static constexpr Info info{"dma_copy", 0x80, "dst takes src's elements in order", "nki.isa.dma_copy"};
  View dst, src;
  int32_t priority = kNoPriority;
  OobMode oob_mode = OobMode::kError;
  DgeMode dge_mode = DgeMode::kUnknown;
  EngineId engine = EngineId::kUnknown;

  static constexpr auto fields() {
    using I = DmaCopy;
    return std::tuple{out("dst", &I::dst, "where to"),
                      in("src", &I::src, "where from"),
                      option("priority", &I::priority, "queue priority, -1: none"),
                      option("oob_mode", &I::oob_mode, "indices outside: error or skip"),
                      option("dge_mode", &I::dge_mode, "who makes the descriptors"),
                      option("engine", &I::engine, "queue that issues it")};
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_reach(dst, "dst"));
    STERNA_TRY(check_reach(src, "src"));
    STERNA_TRY(check_packed_move(dst, src));
    if (dst.elements() != src.elements())
      return Fault(FaultKind::kRuleBroken, "DMA2",
                   cat("dst ", shape_text(dst), " has ", dst.elements(), " elements, src ", shape_text(src), " has ",
                       src.elements(), "."));
    if (dge_mode == DgeMode::kHardware && dst.dtype != src.dtype)
      return Fault(FaultKind::kRuleBroken, "DMA3",
                   cat("Hardware descriptor generation does not convert: dst is ", name(dst.dtype), ", src ",
                       name(src.dtype), "."));
    STERNA_TRY(check_issuer());
    STERNA_TRY(check_dynamic_place(r, dst, dge_mode, "dst"));
    STERNA_TRY(check_dynamic_place(r, src, dge_mode, "src"));
    return check_queue(r, priority, dge_mode);
  }
  Status check_issuer() const {
    if (engine == EngineId::kUnknown) return {};
    if (engine != EngineId::kSync && engine != EngineId::kScalar)
      return Fault(FaultKind::kRuleBroken, "DMA7",
                   cat("'engine' of dma_copy is sync or scalar, not ", name(engine), "."));
    if (dge_mode == DgeMode::kHardware) return {};
    return Fault(FaultKind::kRuleBroken, "DMA7",
                 "'engine' of dma_copy says who issues hardware descriptors; it needs dge_mode hwdge.");
  }
  Status execute(Machine& m) const {
    Result<Operand> from = m.read_any(src, "src"), to = m.open(dst, "dst");
    if (left_alone(from, src, oob_mode) || left_alone(to, dst, oob_mode)) return {};
    STERNA_ASSIGN(Operand s, std::move(from));
    STERNA_ASSIGN(Operand d, std::move(to));
    d.rounding = nullptr;  // stochastic rounding is the engines'
    STERNA_TRY(check_indirect(s, src, oob_mode, m, "src"));
    STERNA_TRY(check_indirect(d, dst, oob_mode, m, "dst"));
    // Rows left alone keep their definedness; the others take their source's.
    const std::vector<ElementState> states = skips(s) ? m.element_states(src) : std::vector<ElementState>{};
    STERNA_TRY(copy_elements(m, d, s));
    if (states.empty())
      m.copy_definedness(dst, src);
    else
      m.mark_elements(dst, states);
    note_copy(m, {dst, d}, {src, s});
    return {};
  }
  static bool skips(const Operand& o) {
    return o.row_offsets != nullptr &&
           std::any_of(o.row_offsets, o.row_offsets + o.rows, [](int64_t offset) { return offset < 0; });
  }
  Work work(const Rules& r) const {
    Work w = count_dma(r, dst, src);
    w.dge = dge_mode;
    return w;
  }
};

/// dst = src with its axes turned round: dst's axis i is src's axis axes[i].
///
/// Shapes  axes (1, 0), (2, 1, 0) or (3, 1, 2, 0), by default the one of src's rank; dst in SBUF has exactly the
/// transposed shape. With an
///         offset tensor: src's rows are gathered first, indices read column by column
/// Types   equal types, bits are kept
/// Rules   DMA1 DMA4 DMA5 DMA6 DT1 (axes) DT2 (dst in SBUF) DT3 (shape) DT4 (types) DT5 (hardware DGE) DT6 (indirect)
///         DT7 (who makes the descriptors)
/// Source  nki.isa.dma_transpose (SDK 2.32)
struct DmaTranspose {
  static constexpr Info info{"dma_transpose", 0x81, "dst = src with its axes turned round", "nki.isa.dma_transpose"};
  View dst, src;
  Ints axes;
  int32_t priority = kNoPriority;
  DgeMode dge_mode = DgeMode::kUnknown;
  OobMode oob_mode = OobMode::kError;

  static constexpr auto fields() {
    using I = DmaTranspose;
    return std::tuple{out("dst", &I::dst, "where to, SBUF"),
                      in("src", &I::src, "where from"),
                      option("axes", &I::axes, "(1, 0), (2, 1, 0) or (3, 1, 2, 0)"),
                      option("priority", &I::priority, "queue priority, -1: none"),
                      option("dge_mode", &I::dge_mode, "who makes the descriptors"),
                      option("oob_mode", &I::oob_mode, "indices outside: error or skip")};
  }
  Status check_axes() {
    static constexpr int32_t kTurn[3][4] = {{1, 0}, {2, 1, 0}, {3, 1, 2, 0}};
    const bool rank = src.ndim >= 2 && src.ndim <= 4;
    if (rank && axes.n == 0) {
      axes.n = src.ndim;
      std::copy_n(kTurn[src.ndim - 2], 4, axes.value);
    }
    if (rank && axes.n == src.ndim && std::equal(axes.value, axes.value + axes.n, kTurn[src.ndim - 2])) return {};
    return Fault(
        FaultKind::kRuleBroken, "DT1",
        cat("dma_transpose turns axes (1, 0), (2, 1, 0) or (3, 1, 2, 0) of a source of that rank; src is ",
            shape_text(src), ", axes ", shape_text(std::vector<int32_t>(axes.value, axes.value + axes.n)), "."));
  }
  Status check_shape(const Rules& r) const {
    bool exact = dst.ndim == src.ndim;
    for (int i = 0; i < axes.n && exact; ++i) exact = dst.dims[i].count == src.dims[axes.value[i]].count;
    if (exact) return {};
    std::vector<int64_t> wanted;
    for (int i = 0; i < axes.n; ++i) wanted.push_back(src.dims[axes.value[i]].count);
    const std::string text =
        cat("dst ", shape_text(dst), " must be ", shape_text(wanted), ", src ", shape_text(src), " transposed.");
    if (dst.rows() != wanted[0] || dst.elements() != src.elements()) return Fault(FaultKind::kRuleBroken, "DT3", text);
    return r.compat("DT3", text);
  }
  /// A tile of two axes has 16 rows; one of three or four has a power of two up to that, and together with the axis
  /// before the last a multiple of 16.
  Status check_hardware(const Limits& limits) const {
    const int64_t rows = src.dims[0].count, last = src.dims[src.ndim - 1].count;
    const int64_t most_rows = limits.dge_transpose_rows, most_last = limits.dge_transpose_last;
    const bool power = rows > 0 && rows <= most_rows && (rows & (rows - 1)) == 0;
    const bool fits = src.ndim == 2 ? rows == most_rows : power && rows * src.dims[src.ndim - 2].count % most_rows == 0;
    if (size_of(src.dtype) == 2 && fits && last <= most_last) return {};
    return Fault(FaultKind::kRuleBroken, "DT5",
                 cat("Hardware descriptor generation transposes 2-byte types with at most ", most_last,
                     " in the last axis, and ", most_rows, " rows; of rank 3 or 4 a power of two of rows, so that ",
                     "shape[0] * shape[-2] is a multiple of ", most_rows, ". src is ", shape_text(src), " ",
                     name(src.dtype), "."));
  }
  /// The only modes of a direct transpose are unknown and hwdge.
  Status check_direct(const Rules& r) const {
    if (dge_mode == DgeMode::kHardware) return check_hardware(r.chip->limits);
    if (dge_mode == DgeMode::kUnknown) return {};
    const std::string text = "dma_transpose without a vector_offset takes dge_mode unknown or hwdge.";
    if (dge_mode == DgeMode::kNone) return r.compat("DT7", text);
    return Fault(FaultKind::kRuleBroken, "DT7", text);
  }
  /// What a gathering transpose asks for and does not get, or nothing.
  std::string missing_of_gather(const Limits& limits, const View& index) const {
    const int64_t rows = limits.gather_transpose_rows, most_last = limits.dge_transpose_last;
    const int64_t index_rows = index.rows(), most = limits.partitions;
    if (src.on_chip()) return "reads HBM";
    if (size_of(src.dtype) != 2) return "moves 2-byte types";
    if (src.dims[0].count % rows != 0) return cat("moves a multiple of ", rows, " rows");
    if (src.dims[src.ndim - 1].count > most_last) return cat("has at most ", most_last, " in the last axis");
    if (src.ndim == 4 && src.dims[1].count != 1 && src.dims[2].count != 1)
      return "of rank 4 has one element in axis 1 or 2";
    if (dge_mode == DgeMode::kHardware || dge_mode == DgeMode::kNone) return "takes dge_mode unknown or swdge";
    if (index.memory != Memory::kSbuf) return "has its indices in SBUF";
    if (index.dtype != DType::kUInt32) return "has uint32 indices";
    if (index.ndim != 2) return "has indices of rank 2";
    if (index_rows % rows != 0 || index_rows > most)
      return cat("has indices in ", rows, " to ", most, " partitions, a multiple of ", rows);
    if (index.cols() > 1 && index_rows != most)
      return cat("has indices in ", most, " partitions where there are several in each");
    return {};
  }
  Status check_indirect_source(const Rules& r) const {
    if (!r.chip->features.dma_indirect_transpose)
      return Fault(FaultKind::kNotOnThisChip, "DT6",
                   cat("A gathering transpose does not exist on ", r.chip->name, "; gather with dma_copy first."));
    const View& index = (*r.dynamics)[src.dynamic].index;
    const std::string missing = missing_of_gather(r.chip->limits, index);
    if (missing.empty()) return {};
    return r.compat("DT6", cat("By the documents a gathering transpose ", missing, "; src is ", shape_text(src), " ",
                               name(src.dtype), " in ", name(src.memory), ", the indices are ", shape_text(index), " ",
                               name(index.dtype), " in ", name(index.memory), "."));
  }
  Status check(const Rules& r) {
    STERNA_TRY(check_reach(dst, "dst"));
    STERNA_TRY(check_reach(src, "src"));
    STERNA_TRY(check_queue(r, priority, dge_mode));
    if (dst.memory != Memory::kSbuf)
      return Fault(FaultKind::kRuleBroken, "DT2", "'dst' of dma_transpose must be in SBUF.");
    if (dst.dtype != src.dtype)
      return Fault(FaultKind::kRuleBroken, "DT4",
                   cat("dma_transpose does not convert: dst is ", name(dst.dtype), ", src ", name(src.dtype), "."));
    STERNA_TRY(check_axes());
    STERNA_TRY(check_shape(r));
    return src.kind == ViewKind::kIndirect ? check_indirect_source(r) : check_direct(r);
  }
  Status execute(Machine& m) const { return execute_dma_transpose(m, dst, src, oob_mode); }
  Work work(const Rules& r) const {
    Work w = count_dma(r, dst, src);
    w.dge = dge_mode;
    w.dma_transpose = true;
    return w;
  }
};

/// dst = src0 + src1 + ..., element by element, in the order of the sources, in fp32, converted once.
///
/// Shapes  any shapes of equal element counts, HBM or SBUF. Read-modify-write: two sources, one of which is dst or a
/// gather Rules   DMA1 DMA2 DMA4 DC1 (add only) DC2 (2 to 16 sources; 2 with an offset tensor) DC3 (unique indices)
///         DC5 (no dynamic start) DC6 (what is read, modified and written) DC7 (a remark: a row scattered to twice)
/// Source  nki.isa.dma_compute (SDK 2.32); srcs is src0, src1, ... here; scales are all 1
struct DmaCompute {
  static constexpr Info info{"dma_compute", 0x82, "dst = sum of the sources", "nki.isa.dma_compute"};
  View dst, src0, src1, src2, src3, src4, src5, src6, src7, src8, src9, src10, src11, src12, src13, src14, src15;
  AluOp reduce_op = AluOp::kAdd;
  bool unique_indices = true;
  OobMode oob_mode = OobMode::kError;

  static constexpr auto fields() {
    using I = DmaCompute;
    return std::tuple{out("dst", &I::dst, "where to"),
                      in("src0", &I::src0, "first source"),
                      in("src1", &I::src1, "second source"),
                      in("src2", &I::src2, "third source"),
                      in("src3", &I::src3, "a source"),
                      in("src4", &I::src4, "a source"),
                      in("src5", &I::src5, "a source"),
                      in("src6", &I::src6, "a source"),
                      in("src7", &I::src7, "a source"),
                      in("src8", &I::src8, "a source"),
                      in("src9", &I::src9, "a source"),
                      in("src10", &I::src10, "a source"),
                      in("src11", &I::src11, "a source"),
                      in("src12", &I::src12, "a source"),
                      in("src13", &I::src13, "a source"),
                      in("src14", &I::src14, "a source"),
                      in("src15", &I::src15, "a source"),
                      option("reduce_op", &I::reduce_op, "add"),
                      option("unique_indices", &I::unique_indices, "no index appears twice"),
                      option("oob_mode", &I::oob_mode, "indices outside: error or skip")};
  }
  /// The sources that are given.
  std::vector<const View*> sources() const {
    std::vector<const View*> list;
    for (const View* v : {&src0, &src1, &src2, &src3, &src4, &src5, &src6, &src7, &src8, &src9, &src10, &src11, &src12,
                          &src13, &src14, &src15})
      if (!v->empty()) list.push_back(v);
    return list;
  }
  /// With an offset tensor, one source is where dst is and the other what is added: a gather of HBM rows into a tile in
  /// SBUF, or a tile in SBUF into scattered HBM rows.
  Status check_read_modify_write(const Rules& r, const View& a, const View& b) const {
    auto dynamic = [&](uint32_t id) -> const DynamicOffset& { return (*r.dynamics)[id]; };
    auto good = [&](const View& kept, const View& added) {
      const View& rows = dst.kind == ViewKind::kIndirect ? dst : added;
      const View& tile = dst.kind == ViewKind::kIndirect ? added : dst;
      return same_place(dynamic, kept, dst) && rows.kind == ViewKind::kIndirect && rows.memory == Memory::kHbm &&
             tile.kind == ViewKind::kStrided && tile.memory == Memory::kSbuf;
    };
    if (good(a, b) || good(b, a)) return {};
    return Fault(
        FaultKind::kRuleBroken, "DC6",
        "With a vector_offset dma_compute adds a tile in SBUF to rows of HBM, 'dst' and one of 'srcs' being these "
        "rows, or rows of HBM to a tile in SBUF, 'dst' and one of 'srcs' being this tile.");
  }
  Status check(const Rules& r) {
    const auto list = sources();
    STERNA_TRY(check_reach(dst, "dst"));
    STERNA_TRY(check_start(dst, "dst"));
    STERNA_TRY(check_dynamic_place(r, dst, DgeMode::kSoftware, "dst"));
    bool indirect = dst.kind == ViewKind::kIndirect;
    for (const View* v : list) {
      STERNA_TRY(check_reach(*v, "srcs"));
      STERNA_TRY(check_start(*v, "srcs"));
      STERNA_TRY(check_dynamic_place(r, *v, DgeMode::kSoftware, "srcs"));
      indirect = indirect || v->kind == ViewKind::kIndirect;
      if (is_packed(v->dtype) || is_packed(dst.dtype))
        return Fault(FaultKind::kRuleBroken, "PACK1", "dma_compute does not add packed elements.");
      if (v->elements() != dst.elements())
        return Fault(FaultKind::kRuleBroken, "DMA2",
                     cat("dst ", shape_text(dst), " has ", dst.elements(), " elements, a source ", shape_text(*v),
                         " has ", v->elements(), "."));
    }
    if (reduce_op != AluOp::kAdd)
      return Fault(FaultKind::kRuleBroken, "DC1",
                   cat("dma_compute adds; 'reduce_op' may not be ", name(reduce_op), "."));
    if (list.empty() || (indirect && list.size() != 2))
      return Fault(
          FaultKind::kRuleBroken, "DC2",
          cat("dma_compute takes up to 16 sources, and exactly 2 with an offset tensor; ", list.size(), " given."));
    if (indirect && !unique_indices)
      return Fault(FaultKind::kNotImplemented, "DC3",
                   "dma_compute with indices that repeat (unique_indices=False) is not supported by NKI either.");
    return indirect ? check_read_modify_write(r, *list[0], *list[1]) : Status{};
  }
  static Status check_start(const View& v, std::string_view what) {
    if (v.kind != ViewKind::kDynamic) return {};
    return Fault(
        FaultKind::kRuleBroken, "DC5",
        cat("'", what, "' of dma_compute starts where a scalar_offset says; its address must be known when the ",
            "kernel is compiled. Use dma_copy first."));
  }
  Status execute(Machine& m) const { return execute_dma_sum(m, dst, sources(), oob_mode); }
  Work work(const Rules& r) const {
    Work w = count_dma(r, dst, src0);
    for (const View* v : sources()) {
      if (v == &src0) continue;
      const Work more = count_dma(r, dst, *v);
      w.bytes += more.bytes;
      w.descriptors += more.descriptors;
      w.hbm_read += more.hbm_read;
      w.dynamic = w.dynamic || more.dynamic;
    }
    return w;
  }
};

using Instructions = InstructionList<DmaCopy, DmaTranspose, DmaCompute>;

}  // namespace sterna::dma_engine
