# SPDX-License-Identifier: Apache-2.0
"""Small instructions on slices of two tiles: where each takes so little work that recording, dispatch and timing are what counts."""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

OPERATIONS = 4  # instructions of a round


@nki.jit
def small_ops(x, rounds):
    """b = exp(-(a + b)) / 2 on 16 of 64 columns in turn; x [128, 64]. The values go to a fixed point, they neither grow nor vanish."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=x)
    for i in nl.affine_range(rounds):
        s = (i % 4) * 16
        nisa.tensor_tensor(dst=b[:, s : s + 16], data1=a[:, s : s + 16], data2=b[:, s : s + 16], op=nl.add)
        nisa.activation(dst=b[:, s : s + 16], op=nl.exp, data=b[:, s : s + 16], scale=-1.0)
        nisa.tensor_scalar(dst=b[:, s : s + 16], data=b[:, s : s + 16], op0=nl.multiply, operand0=0.5)
        nisa.tensor_copy(dst=b[:, s : s + 16], src=b[:, s : s + 16])
    nisa.dma_copy(dst=out, src=b)
    return out


def reference(x, rounds):
    """The same with NumPy, for a few rounds."""
    a, b = x.copy(), x.copy()
    for i in range(rounds):
        s = slice((i % 4) * 16, (i % 4) * 16 + 16)
        b[:, s] = np.exp(-(a[:, s] + b[:, s])) * np.float32(0.5)
    return b
