// SPDX-License-Identifier: Apache-2.0
// ReplayStep: what is left of a small instruction of a program that runs again, once its operands were found plain. A
// step holds no address and no choice of SIMD target, and asks again at every run whether everything that it touches is
// defined: indices, predicates and trip counts may differ from run to run, and with them what is defined. Where the
// answer is no, it does nothing, and the instruction runs as always.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sterna {

class Machine;

struct alignas(64) ReplayStep {
  /// A view of rows of adjoining elements: where it begins in its tensor and from row to row, in bytes.
  struct Place {
    uint32_t tensor, offset;
    int32_t pitch;
  };
  static constexpr size_t kMostInputs = 2, kBodyBytes = 12;

  /// False when the instruction must run as always; then nothing has changed.
  bool (*run)(const ReplayStep&, Machine&) = nullptr;
  uint32_t record = 0;          ///< in the stream of its core
  uint16_t rows = 0, cols = 0;  ///< elements
  Place out = {}, in[kMostInputs] = {};
  alignas(4) std::byte body[kBodyBytes] = {};  ///< what run() computes, by value
};
static_assert(sizeof(ReplayStep) == 64, "a step is one cache line");

}  // namespace sterna
