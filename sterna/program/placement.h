// SPDX-License-Identifier: Apache-2.0
// Placement: where the on-chip tensors of a complete Program lie. Each core has an SBUF and a PSUM of its own. A tensor
// with address= lies there; the others are placed by lifetime, in the bytes that were given back longest ago, so that
// the tiles of a loop use as many buffers as there is room for. Tensors in PSUM take whole banks in turn while there
// are enough. Values never depend on it: timing and capacity checks do.
#pragma once

#include <cstdint>
#include <vector>

#include "sterna/base/result.h"
#include "sterna/hardware/chip.h"
#include "sterna/program/program.h"

namespace sterna {

struct Placement {
  /// By tensor id: first byte inside each of the tensor's partitions. 0 for tensors in HBM.
  std::vector<uint32_t> byte;
  /// By tensor id: first partition. 0 unless the user said otherwise.
  std::vector<uint32_t> partition;
  /// By tensor id: the last record that needs its place. Later than TensorInfo::last_use when a loop comes back to it.
  std::vector<uint32_t> until;
  /// Most bytes of one partition in use at once, of the fullest core.
  int64_t sbuf_peak = 0, psum_peak = 0;
};

/// Places the tensors of a program. Faults: CAP1 (SBUF), CAP2 (PSUM): it does not fit; the message names what is live.
Result<Placement> place_tensors(const Program& program, const Chip& chip);

}  // namespace sterna
