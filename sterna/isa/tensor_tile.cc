// SPDX-License-Identifier: Apache-2.0
#include "sterna/isa/tensor_tile.h"

#include "sterna/base/text.h"

namespace sterna {
namespace {

Fault broken(const char* rule, std::string text) { return Fault(FaultKind::kRuleBroken, rule, std::move(text)); }

std::string pair_text(const Ints& pair) { return cat("(", pair.value[0], ", ", pair.value[1], ")"); }

/// One direction of the array, of `lanes` rows or columns.
Status check_side(const Rules& r, const ArrayTile& tile, int side, int64_t lanes, int64_t needs) {
  const char* what = side == 0 ? "rows" : "columns";
  const int64_t size = tile.size.value[side], start = tile.position.value[side], least = r.chip->limits.tile_min;
  bool known = false;
  for (int64_t n = lanes; n >= least && n % 2 == 0; n /= 2) known = known || size == n;
  if (!known || (side == 1 && tile.whole_columns && size != lanes))
    return broken("TILE2",
                  cat("tile_size ", pair_text(tile.size), " has ", size, " ", what, "; this matmul takes ",
                      side == 1 && tile.whole_columns ? cat(lanes) : cat(lanes, " halved down to ", least), "."));
  if (start < 0 || start % size != 0 || start + size > lanes)
    return broken("TILE3", cat("tile_position ", pair_text(tile.position), " starts at ", start,
                               "; it must be a multiple of the ", size, " ", what, " of a tile, inside the ", lanes,
                               " of the array."));
  if (needs > size)
    return broken("TILE4", cat("The operands need ", needs, " ", what, " of the array; the tile has ", size, "."));
  return {};
}

}  // namespace

Status check_array_tile(const Rules& r, const ArrayTile& tile) {
  if (tile.position.n == 0 && tile.size.n == 0) return {};
  if (tile.position.n != 2 || tile.size.n != 2)
    return broken("TILE1", "tile_position and tile_size are given together, as (row, column) and (rows, columns).");
  STERNA_TRY(check_side(r, tile, 0, r.chip->tensor.rows, tile.rows));
  return check_side(r, tile, 1, r.chip->tensor.columns, tile.columns);
}

Status check_indices_of_whole_array(const Ints& position, std::initializer_list<const View*> operands) {
  if (position.n != 2 || (position.value[0] == 0 && position.value[1] == 0)) return {};
  for (const View* v : operands)
    if (v->kind == ViewKind::kIndirect)
      return broken("TI8", cat("tile_position is ", pair_text(position),
                               "; a matmul with views by .indirect() starts at (0, 0) of the array."));
  return {};
}

}  // namespace sterna
