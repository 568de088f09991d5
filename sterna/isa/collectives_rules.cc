// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/collectives_rules.h"

#include "sterna/base/text.h"
#include "sterna/machine/rows.h"
#include "sterna/machine/view_ops.h"

namespace sterna::collectives {

Status check_places(const View& dst, const View& src, bool sbuf) {
  for (const View* v : {&dst, &src}) {
    if (v->empty()) return Fault(FaultKind::kWrongType, "ARG2", "A collective needs its source and destination.");
    if (v->kind != ViewKind::kStrided)
      return Fault(FaultKind::kRuleBroken, "CC2",
                   "Tensors of a collective have fixed places: no offset known at run time.");
    if (v->memory == Memory::kPsum || (v->memory == Memory::kSbuf && !sbuf))
      return Fault(
          FaultKind::kRuleBroken, "CC2",
          cat("Tensors of this collective are in HBM", sbuf ? " or SBUF" : "", ", not in ", name(v->memory), "."));
  }
  if (dst.memory != src.memory)
    return Fault(FaultKind::kRuleBroken, "CC2",
                 "Source and destination of a collective are both in HBM or both in SBUF.");
  if (dst.dtype != src.dtype)
    return Fault(FaultKind::kRuleBroken, "CC3",
                 cat("A collective does not convert: dst is ", name(dst.dtype), ", src ", name(src.dtype), "."));
  return {};
}

Status check_dim(const View& view, int32_t dim, bool free_dim) {
  const int most = free_dim && view.memory == Memory::kSbuf ? 1 : 0;
  if (dim >= 0 && dim <= most && dim < view.ndim) return {};
  return Fault(FaultKind::kRuleBroken, "CC4",
               cat("collective_dim is ", dim, "; here it can be 0", most ? " or 1." : " only."));
}

Status check_same(const View& dst, const View& src) {
  if (dst.elements() == src.elements()) return {};
  return Fault(FaultKind::kRuleBroken, "CC5",
               cat("dst ", shape_text(dst), " and src ", shape_text(src), " of this collective have different sizes."));
}

Status check_divides(const View& view, int dim, int64_t n) {
  if (view.ndim > dim && view.dims[dim].count % n == 0) return {};
  return Fault(FaultKind::kRuleBroken, "CC5",
               cat("A tensor ", shape_text(view), " has no ", n, " equal parts along dimension ", dim,
                   ", one for each rank of the group."));
}

Status check_joined(const View& dst, const View& src, int dim) {
  for (const View* v : {&dst, &src})
    if (v->on_chip() && v->ndim != 2)
      return Fault(FaultKind::kRuleBroken, "CC5",
                   cat("all_gather in SBUF takes tensors of two dimensions, not ", shape_text(*v), "."));
  if (dst.ndim != src.ndim) return {};
  for (int d = 0; d < dst.ndim; ++d)
    if (d != dim && dst.dims[d].count != src.dims[d].count)
      return Fault(FaultKind::kRuleBroken, "CC5",
                   cat("all_gather joins tensors ", shape_text(src), " along dimension ", dim, "; dst ",
                       shape_text(dst), " differs in another dimension."));
  return {};
}

Status check_chunks(const Rules& rules, bool has_places, bool uniform) {
  if (!uniform && has_places && !rules.chip->features.chunk_places)
    return Fault(FaultKind::kNotOnThisChip, "CC17",
                 "all_to_all_v supports has_rdispls=True where chips are joined by a NeuronSwitch only; leave it out.");
  if (uniform && has_places)
    return Fault(FaultKind::kRuleBroken, "CC17", "all_gather_v does not support has_rdispls=True; leave it out.");
  if (uniform && rules.cores != 2)
    return Fault(FaultKind::kRuleBroken, "CC17", "all_gather_v runs on two cores only (LNC=2): call kernel[2].");
  return {};
}

Status check_channel(const Rules& rules, int32_t channel) {
  const int64_t channels = rules.chip->limits.collective_channels;
  if (channel >= 0 && channel < channels) return {};
  return Fault(FaultKind::kRuleBroken, "CC16", cat("Channel ", channel, ": channels are 0 to ", channels - 1, "."));
}

Status check_reduction(AluOp op) {
  if (op == AluOp::kAdd || op == AluOp::kMinimum || op == AluOp::kMaximum) return {};
  return Fault(FaultKind::kRuleBroken, "CC6",
               cat("Collectives reduce by add, minimum or maximum, not by ", name(op), "."));
}

Status check_flat(const View& view, std::string_view what) {
  if (free_contiguous(view) && (view.ndim == 0 || view.dims[0].count <= 1 || view.dims[0].stride == view.cols()))
    return {};
  return Fault(FaultKind::kRuleBroken, "CC2", cat("'", what, "' is a flat buffer: its elements must adjoin."));
}

Status check_metadata(const View& metadata) {
  if (!metadata.empty() && metadata.dtype == DType::kUInt32 && metadata.memory != Memory::kPsum) return {};
  return Fault(FaultKind::kRuleBroken, "CC7", "'metadata' is a uint32 tensor in HBM, or on one partition of SBUF.");
}

}  // namespace sterna::collectives
