# SPDX-License-Identifier: Apache-2.0
"""Vector addition in tiles [128, width], fp32, with descriptors made when the kernel is loaded (static DMA)."""

import nki
import nki.isa as nisa
import nki.language as nl

DGE = nisa.dge_mode.none


@nki.jit
def vector_add(a, b):
    """a + b of arrays [tiles * 128, width]."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, a.shape[0], 128):
        left, right, total = (nl.ndarray((128, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf) for _ in range(3))
        nisa.dma_copy(dst=left, src=a[start : start + 128, :], dge_mode=DGE)
        nisa.dma_copy(dst=right, src=b[start : start + 128, :], dge_mode=DGE)
        nisa.tensor_tensor(total, left, right, nl.add, engine=nisa.vector_engine)
        nisa.dma_copy(dst=out[start : start + 128, :], src=total, dge_mode=DGE)
    return out
