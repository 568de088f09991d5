# SPDX-License-Identifier: Apache-2.0
"""The kernel that the tests of the kernel cache call, and its data: other values each time."""

import numpy as np

import nki.isa as nisa
import nki.language as nl
from sterna.cache import cache


def x(shape=(4, 8), dtype=np.float32):
    return np.random.default_rng(len(cache)).standard_normal(shape).astype(dtype)


def scaled(a, factor):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype)
    nisa.dma_copy(tile, a)
    nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=factor)
    nisa.dma_copy(out, tile)
    return out
