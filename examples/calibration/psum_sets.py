# SPDX-License-Identifier: Apache-2.0
"""lhs_t.T @ rhs in bf16, both operands loaded once; a row of results takes four PSUM banks, and there are `sets` such sets in turn.

With one set the tensor engine waits for each copy out of PSUM; with two it does not.
"""

from ring import Ring

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def matmul(lhs_t, rhs, sets):
    """lhs_t [K, M], rhs [K, N]; N at most 2048."""
    depth, rows = lhs_t.shape
    cols = rhs.shape[1]
    out = nl.ndarray((rows, cols), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left = [nl.load(lhs_t[k : k + 128, :]) for k in range(0, depth, 128)]
    right = [nl.load(rhs[k : k + 128, :]) for k in range(0, depth, 128)]
    sums = Ring(sets, (128, cols), nl.float32, nl.psum)
    results = []
    for m in range(0, rows, 128):
        product = sums.next()
        for n in range(0, cols, 512):
            for k in range(depth // 128):
                nisa.nc_matmul(
                    product[:, n : n + 512], left[k][:, m : m + 128], right[k][:, n : n + 512], accumulate=k > 0
                )
        results.append(nl.ndarray((128, cols), dtype=out.dtype, buffer=nl.sbuf))
        nisa.tensor_copy(results[-1], product, engine=nisa.vector_engine)
    for m, result in zip(range(0, rows, 128), results):
        nisa.dma_copy(dst=out[m : m + 128, :], src=result)
    return out
