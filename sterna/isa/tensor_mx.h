// SPDX-License-Identifier: Apache-2.0
// The tensor engine's product of block-scaled (MX) operands.
#pragma once

#include "sterna/base/text.h"
#include "sterna/isa/mx_scales.h"
#include "sterna/isa/rules.h"
#include "sterna/isa/tensor_tile.h"
#include "sterna/machine/view_ops.h"

namespace sterna::tensor_engine {

/// dst[m, n] (+)= sum over p and j of stationary[p, m][j] * moving[p, n][j], j the four elements packed in one x4
/// element, each times its block's scale.
///
/// Shapes  stationary [P, M], moving [P, N] of x4 elements, dst [M, N]; scales: see mx_scales.h
/// Types   elements are dequantised, exactly but for overflow to infinity (numerics/mx.h); then as nc_matmul: one fp32
///         chain from zero, index 4 p + j ascending, then one addition to PSUM when accumulating. How the hardware sums
///         the four products of a cell is not public: this order is an assumption
/// Rules   MX1 MX2 (data) MX3 MX4 MX5 MX6 (scales) MX7 (x4 types) MX8 (dst) MX9 (M even, at most 128) MX10 (N) TI8
///         (data and scales have one index; whole array) TILE1 TILE2 TILE3 TILE4 (row tiles only)
/// Source  nki.isa.nc_matmul_mx (SDK 2.32); the Trainium3 architecture guide of the same release
struct NcMatmulMx {
  static constexpr Info info{"nc_matmul_mx",
                             0x62,
                             "dst (+)= stationary^T @ moving, block-scaled",
                             "nki.isa.nc_matmul_mx",
                             "dst stationary moving stationary_scale moving_scale",
                             true};
  View dst, stationary, moving, stationary_scale, moving_scale;
  Ints tile_position, tile_size;
  AccumulateFlag accumulate = AccumulateFlag::kAuto;

  static constexpr auto fields() {
    using I = NcMatmulMx;
    return std::tuple{inout("dst", &I::dst, "PSUM tile [M, N], float32 or bfloat16"),
                      in("stationary", &I::stationary, "SBUF tile [P, M] of x4 elements"),
                      in("moving", &I::moving, "SBUF tile [P, N] of x4 elements"),
                      in("stationary_scale", &I::stationary_scale, "scales of stationary"),
                      in("moving_scale", &I::moving_scale, "scales of moving"),
                      option("tile_position", &I::tile_position, "row and column of the array tile"),
                      option("tile_size", &I::tile_size, "rows and columns of the array tile"),
                      option("accumulate", &I::accumulate, "overwrite, add, or by the PSUM location")};
  }
  Status check(const Rules& r);
  Status execute(Machine& m) const;
  Work work(const Rules&) const {
    Work w;
    w.engine = EngineId::kTensor;
    w.partitions = static_cast<double>(moving.rows());
    w.moving = w.elements = static_cast<double>(moving.cols());
    w.stationary = static_cast<double>(stationary.cols());
    w.multiply_adds = static_cast<double>(kX4 * moving.rows() * stationary.cols() * moving.cols());
    w.fp8_matmul = true;
    for (const View* v : {&stationary, &moving, &stationary_scale, &moving_scale})
      w.dynamic = w.dynamic || v->kind != ViewKind::kStrided;
    w.dynamic = w.dynamic || dst.kind == ViewKind::kIndirect;
    return w;
  }
};

using BlockScaled = InstructionList<NcMatmulMx>;

}  // namespace sterna::tensor_engine
