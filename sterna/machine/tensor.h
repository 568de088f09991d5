// SPDX-License-Identifier: Apache-2.0
// TensorInfo: what a program says about one tensor. Values are in machine/machine.h.
#pragma once

#include <cstdint>
#include <vector>

#include "sterna/machine/view.h"

namespace sterna {

enum class TensorRole : uint8_t {
  kLocal,      ///< made by the program
  kParameter,  ///< comes from the caller; written in place when the program writes it
};

struct TensorInfo {
  DType dtype = DType::kFloat32;
  Memory memory = Memory::kHbm;
  uint8_t ndim = 0;
  TensorRole role = TensorRole::kLocal;
  bool shared = false;       ///< shared_hbm: one tensor for both cores; only such a tensor can be a result
  bool has_address = false;  ///< placed by the user; see address_*
  bool read_only = false;    ///< a parameter that must not be written
  uint8_t core = 0;          ///< that has it; shared tensors and parameters are every core's
  uint32_t name = 0;         ///< id of its name in the program; 0 = none
  uint32_t site = 0;         ///< where it was made
  uint32_t parameter = 0;    ///< index, for kParameter
  uint32_t address_partition = 0, address_byte = 0;
  uint32_t allocated_at = 0;  ///< index of the record that allocates it (on-chip and local tensors)
  uint32_t first_use = 0;     ///< index of the first record after that which touches it; allocated_at without one
  uint32_t last_use = 0;      ///< index of the last record that touches it
  int64_t shape[kMaxDims] = {};

  /// One tensor for all cores of a kernel.
  bool of_every_core() const { return role == TensorRole::kParameter || (shared && memory == Memory::kHbm); }
  bool on_chip() const { return memory != Memory::kHbm; }
  int64_t elements() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= shape[d];
    return n;
  }
  int64_t bytes() const { return elements() * size_of(dtype); }
  int64_t partitions() const { return on_chip() ? shape[0] : 1; }
  /// Elements in one partition on chip; all of them in HBM.
  int64_t free_elements() const { return on_chip() ? (shape[0] == 0 ? 0 : elements() / shape[0]) : elements(); }
  int64_t free_bytes() const { return free_elements() * size_of(dtype); }
};

/// The view of all of tensor `id`.
View whole_view(uint32_t id, const TensorInfo& info);

}  // namespace sterna
