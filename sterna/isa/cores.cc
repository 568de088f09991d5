// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/cores.h"

#include "sterna/isa/parcel.h"

namespace sterna {
namespace cores {

Status exchange(const SendRecv& a, Machine& of_a, const SendRecv& b, Machine& of_b) {
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (from->src.rows() != to->dst.rows() || from->src.cols() != to->dst.cols() || from->src.dtype != to->dst.dtype)
      return Fault(
          FaultKind::kRuleBroken, "SR5",
          cat("The two sides of a sendrecv differ: one core sends ", name(from->src.dtype), ' ', shape_text(from->src),
              ", the other receives ", name(to->dst.dtype), ' ', shape_text(to->dst), '.'));
  // Each tile is copied before the other arrives, since it may arrive where this one lies.
  Parcel from_a, from_b;
  STERNA_TRY(from_a.pack(a.src, of_a, "src"));
  STERNA_TRY(from_b.pack(b.src, of_b, "src"));
  STERNA_TRY(from_a.deliver(b.dst, of_b, "dst"));
  return from_b.deliver(a.dst, of_a, "dst");
}

}  // namespace cores

std::vector<TableRow> cores_part() { return make_part(cores::Instructions{}); }

}  // namespace sterna
