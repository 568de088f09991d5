// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/cores.h"

namespace sterna {
namespace cores {
namespace {

/// One tile of an exchange on its way: bytes and what is known of them.
struct Parcel {
  Operand tile;
  Snapshot bytes;
  std::vector<ElementState> states;
  bool defined = false;
};

Status pack(const SendRecv& from, Machine& m, Parcel& parcel) {
  STERNA_ASSIGN(parcel.tile, m.read_any(from.src, "src"));
  parcel.defined = m.is_defined(from.src);
  if (!parcel.defined) parcel.states = m.element_states(from.src);
  // The other tile may arrive where this one lies.
  parcel.bytes.copy(parcel.tile);
  return {};
}

Status deliver(const Parcel& parcel, const SendRecv& to, Machine& m) {
  STERNA_ASSIGN(const Operand dst, m.open(to.dst, "dst"));
  if (dst.rows != parcel.tile.rows || dst.cols != parcel.tile.cols || dst.dtype != parcel.tile.dtype)
    return Fault(FaultKind::kRuleBroken, "SR5",
                 cat("The two sides of a sendrecv differ: one core sends ", parcel.tile.rows, " x ", parcel.tile.cols,
                     " elements of ", name(parcel.tile.dtype), ", the other receives ", dst.rows, " x ", dst.cols,
                     " of ", name(dst.dtype), "."));
  STERNA_TRY(copy_elements(m, dst, parcel.tile));
  if (parcel.defined)
    m.mark_defined(to.dst);
  else
    m.mark_elements(to.dst, parcel.states);
  return {};
}

}  // namespace

Status exchange(const SendRecv& a, Machine& of_a, const SendRecv& b, Machine& of_b) {
  Parcel from_a, from_b;
  STERNA_TRY(pack(a, of_a, from_a));
  STERNA_TRY(pack(b, of_b, from_b));
  STERNA_TRY(deliver(from_a, b, of_b));
  return deliver(from_b, a, of_a);
}

}  // namespace cores

std::vector<TableRow> cores_part() { return make_part(cores::Instructions{}); }

}  // namespace sterna
