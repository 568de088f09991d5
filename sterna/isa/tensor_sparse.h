// SPDX-License-Identifier: Apache-2.0
// The tensor engine's product with a stationary operand of structured sparsity.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/tensor_tile.h"
#include "sterna/machine/view_ops.h"

namespace sterna::tensor_engine {

/// dst[m, n] (+)= sum over p of stationary[p, m] * moving[place of p and m, n]: of every B contraction places the
/// stationary operand has at most A that are not zero, and holds only those (pattern A:B, compression C = B / A).
///
/// Shapes  stationary [K, M], moving [K, C, N], tags [K, ceil(M / 4)], dst [M, N]; K a multiple of A
/// Layout  A adjoining partitions of stationary are a group of B places: place t of the group is row t / C, slice t % C
///         of moving's same A partitions. The tag of stationary[p, m], a number of 4 bits, is its place t; four tags
///         stand in one uint16, column m in bits 4 (m % 4) and up. Tags of one column differ within a group
/// Types   as nc_matmul, without float32; one fp32 chain from zero, places ascending, absent places left out
/// Rules   SP1 (memories) SP2 (pattern) SP3 (shapes) SP4 (types) SP5 (tags: below B, different) SP6 (dst type) TILE1..4
/// Source  the Trainium2 architecture guide (SDK 2.32) lists the patterns, the four-bit tags and the shapes; there is
/// no
///         public instruction, and no source says which place a tag means or in which order products are summed: both
///         are Sterna's own, trust assumed
struct NcMatmulSparse {
  static constexpr Info info{"nc_matmul_sparse", 0x63, "dst (+)= stationary^T @ moving, stationary sparse",
                             "NKI architecture guide, NeuronCore-v3"};
  View dst, stationary, moving, tags;
  Ints pattern{2, {4, 16}};
  Ints tile_position, tile_size;
  AccumulateFlag accumulate = AccumulateFlag::kAuto;

  static constexpr auto fields() {
    using I = NcMatmulSparse;
    return std::tuple{inout("dst", &I::dst, "PSUM tile [M, N]"),
                      in("stationary", &I::stationary, "SBUF tile [K, M] of the elements that are kept"),
                      in("moving", &I::moving, "SBUF tile [K, C, N]"),
                      in("tags", &I::tags, "SBUF tile [K, M / 4] of uint16: where they stood"),
                      option("pattern", &I::pattern, "A and B: A of every B are kept"),
                      option("tile_position", &I::tile_position, "row and column of the array tile"),
                      option("tile_size", &I::tile_size, "rows and columns of the array tile"),
                      option("accumulate", &I::accumulate, "overwrite, add, or by the PSUM location")};
  }
  int64_t compression() const { return pattern.value[1] / pattern.value[0]; }
  int64_t columns() const { return moving.cols() / compression(); }
  Status check(const Rules& r);
  Status execute(Machine& m) const;
  /// A pass over N columns does the work of C dense ones; only products that are computed count.
  Work work(const Rules&) const {
    Work w;
    w.engine = EngineId::kTensor;
    w.partitions = static_cast<double>(moving.rows());
    w.moving = w.elements = static_cast<double>(columns());
    w.stationary = static_cast<double>(stationary.cols());
    w.multiply_adds = static_cast<double>(stationary.rows() * stationary.cols() * columns());
    w.fp8_matmul = size_of(moving.dtype) == 1;
    w.dynamic = moving.kind != ViewKind::kStrided || stationary.kind != ViewKind::kStrided;
    return w;
  }
};

using StructuredSparse = InstructionList<NcMatmulSparse>;

}  // namespace sterna::tensor_engine
