# SPDX-License-Identifier: Apache-2.0
"""Kernels with one instruction whose duration is known."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector(a, b):
    """tensor_tensor of two tiles."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    left, right = nl.load(a), nl.load(b)
    nisa.tensor_tensor(left, left, right, nl.add, engine=nisa.vector_engine)
    nl.store(out, left)
    return out


@nki.jit
def scalar(a):
    """activation of a tile."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    nisa.activation(tile, nl.exp, tile)
    nl.store(out, tile)
    return out


@nki.jit
def matmul(stationary, moving, times=1):
    """nc_matmul, `times` in a row into the same PSUM bank."""
    shape = (stationary.shape[1], moving.shape[1])
    out = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = nl.load(stationary), nl.load(moving)
    product = nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)
    for i in range(times):
        nisa.nc_matmul(product, left, right, accumulate=i > 0)
    nl.store(out, product)
    return out


@nki.jit
def load(a):
    """One load."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
