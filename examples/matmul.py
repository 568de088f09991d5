# SPDX-License-Identifier: Apache-2.0
"""Matrix product, twice: one tile at a time, and blocked so that the tensor engine never waits for a load.

The tensor engine contracts over partitions, so the left matrix comes transposed, as [K, M].

    sterna run examples/matmul.py --size 1024 --dtype bfloat16
"""

import argparse

import ml_dtypes
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

K_TILE = 128  # contraction: rows of the array
M_TILE = 128  # columns of the array
N_TILE = 512  # float32 results of one PSUM bank


@nki.jit
def matmul_naive(lhs_t, rhs):
    """lhs_t.T @ rhs with one buffer for each operand: every matmul waits for its own loads."""
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray((K_TILE, M_TILE), dtype=lhs_t.dtype, buffer=nl.sbuf)
    right = nl.ndarray((K_TILE, N_TILE), dtype=rhs.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((M_TILE, N_TILE), dtype=nl.float32, buffer=nl.psum)
    result = nl.ndarray((M_TILE, N_TILE), dtype=out.dtype, buffer=nl.sbuf)
    for m in nl.affine_range(0, rows, M_TILE):
        for n in nl.affine_range(0, cols, N_TILE):
            for k in nl.affine_range(0, depth, K_TILE):
                nisa.dma_copy(dst=left, src=lhs_t[k : k + K_TILE, m : m + M_TILE])
                nisa.dma_copy(dst=right, src=rhs[k : k + K_TILE, n : n + N_TILE])
                nisa.nc_matmul(dst=sums, stationary=left, moving=right, accumulate=k > 0)
            nisa.tensor_copy(dst=result, src=sums)
            nisa.dma_copy(dst=out[m : m + M_TILE, n : n + N_TILE], src=result)
    return out


def load_rows(matrix, start, width):
    """Columns start .. start + width of a matrix in HBM: one SBUF tile [128, width] for each 128 rows."""
    tiles = []
    for k in nl.affine_range(0, matrix.shape[0], K_TILE):
        tile = nl.ndarray((K_TILE, width), dtype=matrix.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=matrix[k : k + K_TILE, start : start + width])
        tiles.append(tile)
    return tiles


@nki.jit
def matmul_blocked(lhs_t, rhs, m_block=1024, n_block=1024):
    """lhs_t.T @ rhs: a block of each operand is loaded once, with long rows, and used for many tiles of the result."""
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    m_block, n_block = min(m_block, rows), min(n_block, cols)
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for n0 in nl.affine_range(0, cols, n_block):
        right = load_rows(rhs, n0, n_block)
        for m0 in nl.affine_range(0, rows, m_block):
            left = load_rows(lhs_t, m0, m_block)
            for m in nl.affine_range(0, m_block, M_TILE):
                result = nl.ndarray((M_TILE, n_block), dtype=out.dtype, buffer=nl.sbuf)
                for n in nl.affine_range(0, n_block, N_TILE):
                    sums = nl.ndarray((M_TILE, N_TILE), dtype=nl.float32, buffer=nl.psum)
                    for k in nl.affine_range(depth // K_TILE):
                        nisa.nc_matmul(
                            dst=sums,
                            stationary=left[k][:, m : m + M_TILE],
                            moving=right[k][:, n : n + N_TILE],
                            accumulate=k > 0,
                        )
                    nisa.tensor_copy(dst=result[:, n : n + N_TILE], src=sums)
                nisa.dma_copy(dst=out[m0 + m : m0 + m + M_TILE, n0 : n0 + n_block], src=result)
    return out


def reference(lhs_t, rhs):
    """The product in float64."""
    return lhs_t.astype(np.float64).T @ rhs.astype(np.float64)


def operands(m, k, n, dtype):
    """Random matrices [k, m] and [k, n]."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((k, width), dtype=np.float32).astype(dtype) for width in (m, n))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="M = K = N, a multiple of 512")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--kernel", choices=("naive", "blocked", "both"), default="both")
    options = parser.parse_args()
    dtype = ml_dtypes.bfloat16 if options.dtype == "bfloat16" else np.float32
    lhs_t, rhs = operands(options.size, options.size, options.size, dtype)
    wanted = reference(lhs_t, rhs)
    # An element's error is at most a few roundings of its own size, plus those of a sum as long as K.
    allowed = 2.0**-7 * np.abs(wanted) + 2.0**-24 * options.size * np.abs(wanted).max()
    wrong = 0
    for kernel in (matmul_naive, matmul_blocked):
        if options.kernel in kernel.__name__ or options.kernel == "both":
            good = bool((np.abs(kernel(lhs_t, rhs).astype(np.float64) - wanted) <= allowed).all())
            wrong += not good
            print(f"{kernel.__name__} {options.size}^3 {options.dtype}:", "equal to numpy" if good else "WRONG")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
