// SPDX-License-Identifier: Apache-2.0
// Packing of tensors whose lives are all known: for programs that a placement in program order does not fit.
#pragma once

#include <cstdint>
#include <vector>

namespace sterna {

/// A tensor of one memory: alive in records `from` to `until`, `bytes` in each partition.
struct LiveBytes {
  uint32_t from, until;
  int64_t bytes;
  int64_t at = -1;     ///< its first byte; given for a tensor with an address, found by pack_lives otherwise
  int64_t inside = 0;  ///< the place does not cross a multiple of it (a PSUM bank); 0 = may
};

/// Finds `at` of all tensors so that none that live at the same time share a byte; those with a place may share among
/// themselves. Greedy, the largest first, then by bytes times life, then in order of life: false when none of these
/// fits into `capacity`, and the tensors are as before.
bool pack_lives(std::vector<LiveBytes>& tensors, int64_t capacity, int64_t align);

}  // namespace sterna
