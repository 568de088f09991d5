// SPDX-License-Identifier: Apache-2.0
// Where the scales of an MX tile lie. A block is 8 partitions x 4 packed elements, so each 32 partitions of data (a
// quadrant of SBUF) have 4 rows of scales, which stay in that quadrant:
//
//   data partitions    0..31   32..63   64..95   96..127
//   scale partitions   0..3    32..35   64..67   96..99     and 4, 8 or 12 further on, for up to four tensors in one
//   tile
//
// Source: nki.isa.quantize_mx (SDK 2.32), the Trainium3 architecture guide and the MXFP guide of the same release.
#pragma once

#include <string_view>

#include "sterna/isa/instruction.h"
#include "sterna/numerics/mx.h"

namespace sterna {

inline constexpr int64_t kQuadrant = 32;
inline constexpr int64_t kScaleRows = kQuadrant / kMxRows;  ///< of one tensor in a quadrant

/// MX1: in SBUF. MX2: x4 elements, a multiple of 32 adjoining partitions from a multiple of 32, at most the chip's.
Status check_mx_data(const Rules& rules, const View& data, std::string_view what);
/// MX3: float8_e8m0fnu or uint8, in SBUF. MX4: adjoining partitions from 0, 4, 8 or 12 of a quadrant that reach the
/// last quadrant's scales. MX5: one scale for each x4 element of a data row. MX6: in the data's own quadrants, as far
/// as that is known.
Status check_mx_scales(const Rules& rules, const View& scales, const View& data, std::string_view what);

/// The four rows of scales of one quadrant.
View quadrant_scales(const View& scales, int64_t quadrant);

}  // namespace sterna
