// SPDX-License-Identifier: Apache-2.0
// The data paths of the DMA instructions, apart from their rules.
#pragma once

#include <string_view>
#include <vector>

#include "sterna/isa/instruction.h"

namespace sterna {

/// DMA4: a row of an indirect operand is outside, and rows outside are not to be skipped.
Status check_indirect(const Operand& o, const View& v, OobMode mode, const Machine& m, std::string_view what);

/// A transfer from or to `view` whose start, an index of one element, puts it outside its tensor, whole or in part,
/// where such indices are to be skipped: it moves nothing (nki.isa.dma_copy: oob_mode.skip skips "the DMA transfer for
/// a given dynamic address or index when it is out of bound").
inline bool left_alone(const Result<Operand>& operand, const View& view, OobMode mode) {
  if (operand || mode != OobMode::kSkip) return false;
  const std::string& rule = operand.error().rule;
  return rule == "DYN1" || (rule == "DYN2" && view.kind == ViewKind::kDynamic);
}

/// Equal views, though each may have a row of its own in the table of dynamic offsets, which `dynamic(id)` looks up.
template <class Lookup>
bool same_place(const Lookup& dynamic, View a, const View& b) {
  if (a.kind != ViewKind::kStrided && b.kind != ViewKind::kStrided && dynamic(a.dynamic) == dynamic(b.dynamic))
    a.dynamic = b.dynamic;
  return a == b;
}

/// dst = src with its first and last axis exchanged (ranks 2 to 4).
Status execute_dma_transpose(Machine& m, const View& dst, const View& src, OobMode mode);
/// dst = sources[0] + sources[1] + ... in fp32.
Status execute_dma_sum(Machine& m, const View& dst, const std::vector<const View*>& sources, OobMode mode);

}  // namespace sterna
