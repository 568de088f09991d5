// SPDX-License-Identifier: Apache-2.0
// Which number formats the tensor engine multiplies.
#pragma once

#include "sterna/isa/instruction.h"

namespace sterna {

/// The pair of input types is one that a matmul takes, else a fault of this rule. float32 and tfloat32 go with each
/// other only; the legacy float8_e4m3 and OCP's do not go together; scales and packed or fp4 elements are for
/// nc_matmul_mx.
Status check_matmul_types(DType stationary, DType moving, const char* rule);

/// The two-fold rows of double_row: float8_e4m3, float8_e4m3fn and float8_e5m2.
bool is_double_row_type(DType t);

/// Results in PSUM: float32, and bfloat16 where the chip has it.
bool is_matmul_result(const Chip& chip, DType t);

}  // namespace sterna
