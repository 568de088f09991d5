// SPDX-License-Identifier: Apache-2.0
// The data paths of the DMA instructions, apart from their rules.
#pragma once

#include <string_view>
#include <vector>

#include "sterna/isa/instruction.h"

namespace sterna {

/// DMA4: a row of an indirect operand is outside, and rows outside are not to be skipped.
Status check_indirect(const Operand& o, const View& v, OobMode mode, const Machine& m, std::string_view what);

/// A transfer whose start, an index of one element, is outside its tensor, where such indices are to be skipped: it
/// moves nothing.
inline bool left_alone(const Result<Operand>& operand, OobMode mode) {
  return !operand && mode == OobMode::kSkip && operand.error().rule == "DYN1";
}

/// dst = src with its first and last axis exchanged (ranks 2 to 4).
Status execute_dma_transpose(Machine& m, const View& dst, const View& src, OobMode mode);
/// dst = sources[0] + sources[1] + ... in fp32.
Status execute_dma_sum(Machine& m, const View& dst, const std::vector<const View*>& sources, OobMode mode);

}  // namespace sterna
