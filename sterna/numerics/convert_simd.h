// SPDX-License-Identifier: Apache-2.0
// The SIMD twins of decode_row and encode_row for contiguous elements. Internal to numerics: call convert.h's
// functions.
#pragma once

#include <cstddef>

#include "sterna/numerics/dtype.h"

namespace sterna::detail {

/// For a SIMD target only (simd_target() != kScalar), and not for packed types.
void decode_contiguous(DType type, const void* source, float* out, ptrdiff_t count);
void encode_contiguous(DType type, const float* in, void* target, ptrdiff_t count);

}  // namespace sterna::detail
