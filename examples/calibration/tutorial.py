# SPDX-License-Identifier: Apache-2.0
"""Two steps of a matmul tutorial, fp32: a tile at a time, and with loads hoisted out of the inner loops. Buffers fill most of SBUF.

Who makes the descriptors is left open, as in the tutorial. (The cost of software descriptors on trn2 is an estimate from the published
time of the first of these two; to use it here would be to predict a number from itself.)
"""

from ring import Ring

import nki
import nki.isa as nisa
import nki.language as nl


def finish(out, m, n, product, results):
    """Copies a tile of the result out of PSUM, and stores it."""
    result = results.next()
    nisa.tensor_copy(result, product, engine=nisa.vector_engine)
    nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=result)


@nki.jit
def tiled(lhs_t, rhs):
    """lhs_t [K, M], rhs [K, N]: every matmul has two loads of its own."""
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    lefts, rights = Ring(64, (128, 128), lhs_t.dtype), Ring(64, (128, 512), rhs.dtype)
    sums, results = Ring(8, (128, 512), nl.float32, nl.psum), Ring(4, (128, 512), out.dtype)
    for m in range(0, rows, 128):
        for n in range(0, cols, 512):
            product = sums.next()
            for k in range(0, depth, 128):
                left, right = lefts.next(), rights.next()
                nisa.dma_copy(dst=left, src=lhs_t[k : k + 128, m : m + 128])
                nisa.dma_copy(dst=right, src=rhs[k : k + 128, n : n + 512])
                nisa.nc_matmul(product, left, right, accumulate=k > 0)
            finish(out, m, n, product, results)
    return out


@nki.jit
def hoisted(lhs_t, rhs):
    """lhs_t [K, M], rhs [K, N]: a column of lhs tiles serves a row of results, a column of rhs tiles one result."""
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    steps = depth // 128
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    # Of rhs one column and an eighth of the next; the same of lhs, whose tiles are small.
    lefts, rights = Ring(steps + steps // 4, (128, 128), lhs_t.dtype), Ring(steps + steps // 8, (128, 512), rhs.dtype)
    sums, results = Ring(8, (128, 512), nl.float32, nl.psum), Ring(2, (128, 512), out.dtype)
    for m in range(0, rows, 128):
        left = [lefts.next() for _ in range(steps)]
        for k in range(steps):
            nisa.dma_copy(dst=left[k], src=lhs_t[k * 128 : k * 128 + 128, m : m + 128])
        for n in range(0, cols, 512):
            right = [rights.next() for _ in range(steps)]
            for k in range(steps):
                nisa.dma_copy(dst=right[k], src=rhs[k * 128 : k * 128 + 128, n : n + 512])
            product = sums.next()
            for k in range(steps):
                nisa.nc_matmul(product, left[k], right[k], accumulate=k > 0)
            finish(out, m, n, product, results)
    return out
