# SPDX-License-Identifier: Apache-2.0
"""Kernels that run again with the steps that earlier runs noted (sterna/execute/plan.h) give what recording them anew gives."""

import warnings

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna.cache import cache

pytestmark = pytest.mark.usefixtures("empty_cache")

P, N = 16, 48


def random_operations(r):
    """Tuples of numbers: which instruction, which tiles, which part of each."""
    out = []
    for _ in range(12):
        whole = bool(r.integers(2))
        rows, cols = (P, N) if whole else (int(r.integers(1, P + 1)), int(r.integers(1, N + 1)))
        row = int(r.integers(P - rows + 1))
        parts = [(int(r.integers(4)), int(r.integers(N - cols + 1)) if r.integers(3) == 0 else 0) for _ in range(3)]
        out.append((int(r.integers(9)), row, rows, cols, *parts))
    return tuple(out)


def kernel_of(operations):
    @nki.jit
    def kernel(a, b, mask):
        outs = [nl.ndarray((P, N), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(4)]
        tiles = [nl.ndarray((P, N), dtype=nl.float32) for _ in range(3)] + [nl.ndarray((P, N), dtype=nl.bfloat16)]
        where = nl.ndarray((P, N), dtype=nl.uint8)
        nisa.dma_copy(where, mask)
        nisa.dma_copy(tiles[0], a)
        nisa.dma_copy(tiles[1], b)
        nisa.tensor_copy(tiles[2], tiles[0])
        nisa.memset(tiles[3], 0.5)
        for kind, row, rows, cols, (d, dc), (s, sc), (t, tc) in operations:
            dst = tiles[d][row : row + rows, dc : dc + cols]
            src = tiles[s][row : row + rows, sc : sc + cols]
            other = tiles[t][row : row + rows, tc : tc + cols]
            if kind == 0:
                nisa.tensor_tensor(dst, src, other, op=nl.add)
            elif kind == 1:
                nisa.tensor_tensor(dst, src, other, op=nl.maximum)
            elif kind == 2:
                nisa.tensor_scalar(
                    dst, src, op0=nl.multiply, operand0=0.5, op1=nl.subtract, operand1=2.0, reverse1=True
                )
            elif kind == 3:
                nisa.tensor_scalar(dst, src, op0=nl.add, operand0=tiles[t][row : row + rows, tc : tc + 1])
            elif kind == 4:
                nisa.activation(dst, nl.tanh, src, scale=-0.5)
            elif kind == 5:
                nisa.activation(dst, nl.exp, src, scale=-1.0, bias=tiles[t][row : row + rows, tc : tc + 1])
            elif kind == 6:
                nisa.tensor_copy(dst, src)
            elif kind == 7:
                nisa.dma_copy(dst, src)
            else:
                nisa.tensor_copy_predicated(
                    tiles[0][row : row + rows, dc : dc + cols],
                    tiles[1][row : row + rows, sc : sc + cols],
                    where[row : row + rows, :cols],
                )
        for out, tile in zip(outs, tiles):
            nisa.dma_copy(out, tile)
        return tuple(outs)

    return kernel


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_kernels_run_again(start, monkeypatch):
    warnings.simplefilter("ignore")
    for seed in range(start, start + 20):
        r = np.random.default_rng(seed)
        operations = random_operations(r)
        kernel = kernel_of(operations)
        for turn in range(5):
            a, b = r.standard_normal((2, P, N), dtype=np.float32)
            mask = r.integers(0, 2, (P, N), dtype=np.uint8)
            cached = kernel(a, b, mask)
            monkeypatch.setenv("STERNA_CACHE", "off")
            fresh = kernel(a, b, mask)
            monkeypatch.delenv("STERNA_CACHE")
            for one, two in zip(cached, fresh):
                assert one.tobytes() == two.tobytes(), (seed, turn, operations)
    assert cache.hits == 20 * 3


def test_a_parameter_that_is_written_in_place():
    @nki.jit
    def kernel(a):
        tile = nl.ndarray(a.shape, dtype=a.dtype)
        nisa.dma_copy(tile, a)
        nisa.tensor_scalar(tile, tile, op0=nl.add, operand0=1.0)
        nisa.dma_copy(a, tile)
        return a

    for turn in range(6):
        a = np.full((4, 8), turn, np.float32)
        kernel(a)
        np.testing.assert_array_equal(a, turn + 1)
    assert cache.hits > 0
