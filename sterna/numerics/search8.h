// SPDX-License-Identifier: Apache-2.0
// Searching a row of fp32 for eight values at a time: what max8, nc_find_index8 and nc_match_replace8 share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sterna {

inline constexpr int kEight = 8;
inline constexpr uint32_t kNotFound = UINT32_MAX;

/// out = the eight largest of row[0, n), descending; n >= 8. NaN counts as larger than every number and becomes the
/// NaN 0x7fc00000; +0 is larger than -0. out may lie in the row.
void eight_largest(const float* row, ptrdiff_t n, float* out);

/// found[k] = the first place of wanted[k] in row[0, n), kNotFound if there is none. A value equal to wanted values
/// before it gets the next place behind theirs. Equality is that of numbers: -0 is +0, NaN is nothing.
void find_eight(const float* row, ptrdiff_t n, const float* wanted, uint32_t* found);

}  // namespace sterna
