// SPDX-License-Identifier: Apache-2.0
// Tiles of the systolic array: a matmul may use some of its rows and columns and leave the others to another matmul.
#pragma once

#include "sterna/isa/instruction.h"

namespace sterna {

/// What of the array a matmul asks for.
struct ArrayTile {
  Ints position, size;
  int64_t rows, columns;  ///< partitions of the operands; columns of stationary
  bool whole_columns;     ///< the instruction tiles rows only: 128 columns from 0
};

/// TILE1: position and size are given together, two numbers each. TILE2: sizes are the array's, halved down to
/// limits.tile_min. TILE3: the position is a multiple of the size, inside the array. TILE4: the operands fit the tile.
/// Source: nki.isa.nc_matmul and nc_matmul_mx (SDK 2.32), tiling mode.
Status check_array_tile(const Rules& rules, const ArrayTile& tile);

/// TI8: columns found by an index (.indirect()) do not go with tiles of the array: tile_position is (0, 0) or not
/// given. Source: nki.isa.nc_matmul and nc_matmul_mx (SDK 2.32), "Tensor indirection".
Status check_indices_of_whole_array(const Ints& position, std::initializer_list<const View*> operands);

}  // namespace sterna
