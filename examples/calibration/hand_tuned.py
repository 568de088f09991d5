# SPDX-License-Identifier: Apache-2.0
"""lhs @ rhs in bf16 with a plain lhs [M, K]: transposed by DMA, K in two blocks added up in bf16, eight PSUM tiles in turn."""

from ring import Ring

import nki
import nki.isa as nisa
import nki.language as nl

BLOCK = 1024  # rows of lhs at a time, and depth of a block of K


@nki.jit
def lhs_rhs(lhs, rhs):
    """lhs [M, K], rhs [K, N]; M and K multiples of 1024, N of 512."""
    rows, depth = lhs.shape
    cols = rhs.shape[1]
    tiles = BLOCK // 128
    out = nl.ndarray((rows, cols), dtype=lhs.dtype, buffer=nl.shared_hbm)
    lefts = Ring(4 * tiles, (128, BLOCK), lhs.dtype)
    rights = Ring(4 * tiles, (128, 512), rhs.dtype)
    sums = Ring(8, (128, 512), nl.float32, nl.psum)
    copies = Ring(8, (128, 512), lhs.dtype)
    totals = Ring(2 * tiles, (128, 512), lhs.dtype)
    for m0 in range(0, rows, BLOCK):
        for n0 in range(0, cols, 512):
            total = [totals.next() for _ in range(tiles)]
            for tile in total:
                nisa.memset(tile, 0.0, engine=nisa.gpsimd_engine)
            for k0 in range(0, depth, BLOCK):
                left, right = [], []
                for k in range(k0, k0 + BLOCK, 128):
                    left.append(lefts.next())
                    nisa.dma_transpose(dst=left[-1], src=lhs[m0 : m0 + BLOCK, k : k + 128])
                for k in range(k0, k0 + BLOCK, 128):
                    right.append(rights.next())
                    nisa.dma_copy(dst=right[-1], src=rhs[k : k + 128, n0 : n0 + 512])
                for m in range(tiles):
                    product = sums.next()
                    for k in range(tiles):
                        nisa.nc_matmul(product, left[k][:, m * 128 : (m + 1) * 128], right[k], accumulate=k > 0)
                    copy = copies.next()
                    nisa.tensor_copy(copy, product, engine=nisa.vector_engine)
                    nisa.tensor_tensor(total[m], total[m], copy, nl.add, engine=nisa.vector_engine)
            for m in range(tiles):
                nisa.dma_copy(dst=out[m0 + m * 128 : m0 + (m + 1) * 128, n0 : n0 + 512], src=total[m])
    return out
