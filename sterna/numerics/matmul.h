// SPDX-License-Identifier: Apache-2.0
// The product of one tensor-engine instruction.
//
// Order (design, section 3): each sum starts at zero, ascends the contraction index with fused multiply-adds in fp32,
// and is then (when accumulating) added once to what dst holds. Products of inputs of 16 bits and less are exact in
// fp32. NaN results are 7fc00000.
//
// Two ways to call it. matmul_block and matmul_rows do everything. The packed form lets a caller copy an operand into
// the kernel's layout once and use it in many products, and split a product over threads: the bits depend on neither.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sterna/numerics/alu.h"
#include "sterna/numerics/dtype.h"

namespace sterna {

enum class Accumulate : uint8_t { kOverwrite, kAdd };

/// `depth` rows of an operand in any unpacked format: row k starts at base + k * pitch_bytes, its elements are
/// stride_bytes apart.
struct OperandRows {
  DType type;
  const void* base;
  ptrdiff_t pitch_bytes, stride_bytes;
};
constexpr OperandRows operand_rows(ConstBlock block) {
  return {DType::kFloat32, block.data, block.pitch * ptrdiff_t{sizeof(float)}, sizeof(float)};
}

/// d[m][n] = (kAdd: d[m][n] +) sum over k < depth of stationary[k][m] * moving[k][n], all fp32 with unit element
/// stride. m < rows, n < cols. Any depth. `scratch` is used for packing: matmul_scratch_floats(depth, rows, cols)
/// floats. d overlaps neither operand. The SIMD form is register-blocked over m and n; the scalar form is the
/// definition.
void matmul_block(ConstBlock stationary, ConstBlock moving, Block d, ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols,
                  Accumulate accumulate, float* scratch);
/// The same for operands of any unpacked format (see OperandRows), converted as by decode_row.
void matmul_rows(const OperandRows& stationary, const OperandRows& moving, Block d, ptrdiff_t depth, ptrdiff_t rows,
                 ptrdiff_t cols, Accumulate accumulate, float* scratch);
ptrdiff_t matmul_scratch_floats(ptrdiff_t depth, ptrdiff_t rows, ptrdiff_t cols);

// The packed layouts, the same on every target:
//   stationary [block][k][kStationaryBlock], moving [panel][k][kMovingPanel]; places beyond rows or cols hold zero.
inline constexpr ptrdiff_t kStationaryBlock = 12;
inline constexpr ptrdiff_t kMovingPanel = 32;

constexpr ptrdiff_t stationary_blocks(ptrdiff_t rows) { return (rows + kStationaryBlock - 1) / kStationaryBlock; }
constexpr ptrdiff_t moving_panels(ptrdiff_t cols) { return (cols + kMovingPanel - 1) / kMovingPanel; }
constexpr ptrdiff_t packed_stationary_floats(ptrdiff_t depth, ptrdiff_t rows) {
  return stationary_blocks(rows) * depth * kStationaryBlock;
}
constexpr ptrdiff_t packed_moving_floats(ptrdiff_t depth, ptrdiff_t cols) {
  return moving_panels(cols) * depth * kMovingPanel;
}

/// A half-open range of blocks or panels.
struct BlockRange {
  ptrdiff_t begin, end;
};

/// Which places of the contraction index the rows of a pack call take: row k goes to first + k * step, of `total`. A
/// caller with one source for the whole depth writes whole_depth(depth); double-row instructions pack two sources.
struct DepthSlots {
  ptrdiff_t total, first, step;
};
constexpr DepthSlots whole_depth(ptrdiff_t depth) { return {depth, 0, 1}; }

/// Pack rows k < depth, blocks or panels in `range` only (threads may share the work). `out` is the start of the whole
/// packed operand; it need not be aligned, but is faster on a 64-byte boundary. Values are converted as by decode_row.
void pack_stationary(const OperandRows& source, ptrdiff_t depth, ptrdiff_t rows, DepthSlots slots, BlockRange range,
                     float* out);
void pack_moving(const OperandRows& source, ptrdiff_t depth, ptrdiff_t cols, DepthSlots slots, BlockRange range,
                 float* out);

/// A product of packed operands; d is its whole result. `depth` is the total of both.
struct PackedProduct {
  const float* stationary;
  const float* moving;
  Block d;
  ptrdiff_t depth, rows, cols;
  Accumulate accumulate;
};
/// Computes the part of the product in these blocks of rows and panels of columns. Disjoint parts may run on different
/// threads.
void matmul_packed(const PackedProduct& product, BlockRange blocks, BlockRange panels);

// A product of few columns fills no vector with them, and the stationary operand would be packed for hardly any use.
// Its transpose has long rows: the operands change places, each sum stays what it is, and the result is turned.
constexpr bool is_narrow(ptrdiff_t rows, ptrdiff_t cols) { return cols <= kStationaryBlock && rows >= kMovingPanel; }
/// d[m][n] = (kAdd: d[m][n] +) sums[n * rows + m].
void put_turned(const float* sums, Block d, ptrdiff_t rows, ptrdiff_t cols, Accumulate accumulate);
/// The moving operand can be read where it lies, which pays when there is one block of rows.
bool reads_unpacked(const OperandRows& rows);
/// All of a product whose moving operand reads_unpacked(); product.moving is not used. `scratch`: space for one packed
/// panel.
void matmul_unpacked(const PackedProduct& product, const OperandRows& moving, float* scratch);

}  // namespace sterna
