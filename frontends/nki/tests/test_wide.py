# SPDX-License-Identifier: Apache-2.0
"""Tensors in HBM of more than five dimensions. An instruction walks at most five (NKI language guide: "a strided access
pattern with up to 5 dimensions"); nki-library passes arrays of six and indexes them first. Against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import BadInput, OutOfBounds

F32 = np.float32
SHAPE = (2, 3, 2, 4, 3, 5)


def numbers(*shape):
    return np.arange(np.prod(shape)).reshape(shape).astype(F32)


def copied(view, shape):
    """A kernel that copies view(x) into a tensor of that shape."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray(shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, view(x))
        return out

    return kernel


VIEWS = {
    "whole": (lambda t: t, lambda x: x),
    "int": (lambda t: t[1], lambda x: x[1]),
    "ints": (lambda t: t[1, 2, 0], lambda x: x[1, 2, 0]),
    "negative int": (lambda t: t[-1, ..., 2], lambda x: x[-1, ..., 2]),
    "slices": (lambda t: t[:, 1, :, 1:4:2, 0, ::2], lambda x: x[:, 1, :, 1:4:2, 0, ::2]),
    "slice and select": (lambda t: t.slice(3, 1, 3).select(0, 1), lambda x: x[:, :, :, 1:3][1]),
    "still six": (lambda t: t[1:, :, :, :, :, 1:3], lambda x: x[1:, :, :, :, :, 1:3]),
    "reshape": (lambda t: t.reshape((6, 8, 15)), lambda x: x.reshape(6, 8, 15)),
    "reshape to six": (lambda t: t.reshape((3, 2, 4, 2, 5, 3)), lambda x: x.reshape(3, 2, 4, 2, 5, 3)),
    "reshape to eight": (lambda t: t.reshape((2, 3, 2, 2, 2, 3, 5, 1)), lambda x: x.reshape(2, 3, 2, 2, 2, 3, 5, 1)),
    "flatten_dims": (lambda t: t.flatten_dims(1, 2), lambda x: x.reshape(2, 6, 4, 3, 5)),
    "permute the last": (lambda t: t.permute((0, 1, 2, 3, 5, 4)), lambda x: x.transpose(0, 1, 2, 3, 5, 4)),
    "permute an index": (lambda t: t[0].permute((4, 0, 1, 3, 2)), lambda x: x[0].transpose(4, 0, 1, 3, 2)),
    "reshape_dim of five": (
        lambda t: t.reshape((6, 2, 4, 3, 5)).reshape_dim(0, (2, 3)),
        lambda x: x,
    ),
    "squeeze_dim": (lambda t: t[1:2].squeeze_dim(0), lambda x: x[1]),
    "expand_dim": (lambda t: t.expand_dim(6), lambda x: x[..., None]),
    "rearrange": (
        lambda t: t[0].rearrange(("a", "b", ("c", "d"), "e", "f"), (("a", "b"), "d", "c", "e", "f"), {"d": 2}),
        lambda x: x[0].reshape(3, 2, 2, 2, 3, 5).transpose(0, 1, 3, 2, 4, 5).reshape(6, 2, 2, 3, 5),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    view, wanted = VIEWS[name]
    x = numbers(*SHAPE)
    want = wanted(x)
    got = copied(view, want.shape)(x)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def test_attributes_are_those_of_the_shape_given():
    seen = []

    @nki.jit
    def kernel(x):
        part = x[:, :, :, 1:3]
        for t in (x, part, part.base_tensor):
            seen.append((t.shape, t.ndim, t.size, t.strides, len(t), t.offset, t.is_contiguous()))
        assert x.get_pattern() == [[s, n] for s, n in zip(x.strides, SHAPE)]
        out = nl.ndarray(SHAPE, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    kernel(numbers(*SHAPE))
    strides = (360, 120, 60, 15, 5, 1)
    whole = (SHAPE, 6, 720, strides, 2, 0, True)
    assert seen == [whole, ((2, 3, 2, 2, 3, 5), 6, 360, strides, 2, 15, False), whole]


def test_a_part_is_written_in_place():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(SHAPE, x.dtype, buffer=nl.shared_hbm)
        for core in range(2):
            tile = nl.ndarray((3, 2, 4, 3, 5), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[core])
            nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
            nisa.dma_copy(out[core, :, :, :, :, :], tile)
        return out

    x = numbers(*SHAPE)
    np.testing.assert_array_equal(kernel(x), 2 * x)


def test_an_index_that_the_run_knows():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(SHAPE, x.dtype, buffer=nl.shared_hbm)
        for i in nl.dynamic_range(3):
            tile = nl.ndarray((2, 2, 4, 3, 5), x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, x[:, i])
            nisa.dma_copy(out[:, i], tile)
        return out

    x = numbers(*SHAPE)
    np.testing.assert_array_equal(kernel(x), x)


def test_rows_that_the_run_finds_in_a_dimension_of_the_shape_given():
    @nki.jit
    def kernel(x, rows):
        place = nl.load(rows)
        out = nl.ndarray((2, 60), x.dtype, buffer=nl.shared_hbm)
        # Dimension 2 of six: one step of the index is 60 elements.
        nisa.dma_copy(out, x.ap([[60, 2], [1, 60]], scalar_offset=place, indirect_dim=2))
        return out

    x = numbers(*SHAPE)
    got = kernel(x, np.array([[1]], np.int32))
    np.testing.assert_array_equal(got, x.reshape(12, 60)[1:3])


def test_the_same_bits_as_another_type():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((*SHAPE[:-1], 2 * SHAPE[-1]), nl.int16, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x.view(nl.int16))
        return out

    x = numbers(*SHAPE)
    np.testing.assert_array_equal(kernel(x), x.view(np.int16))


def test_an_empty_one():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    assert kernel(np.zeros((2, 3, 0, 4, 3, 5), F32)).shape == (2, 3, 0, 4, 3, 5)


def test_a_call_from_the_cache_gives_the_shape_again():
    kernel = copied(lambda t: t, SHAPE)
    for factor in (1, 3):
        x = factor * numbers(*SHAPE)
        np.testing.assert_array_equal(kernel(x), x)


IN_A_FILE = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl
from sterna import cache_disk

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out[1], x[1])
    nisa.dma_copy(out[0], x[0])
    return out

x = np.arange(720, dtype=np.float32).reshape(2, 3, 2, 4, 3, 5)
assert (kernel(x) == x).all() and kernel(x + 1).shape == x.shape
print(cache_disk.counts.hits, cache_disk.counts.written)
"""


def test_the_cache_on_disk_gives_the_shape_again(tmp_path):
    (tmp_path / "kernel.py").write_text(IN_A_FILE)
    environment = {**os.environ, "STERNA_CACHE_DIR": str(tmp_path / "cache")}
    printed = [
        subprocess.run(
            [sys.executable, str(tmp_path / "kernel.py")], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    # The first call of the first process writes the file, the second finds it.
    assert printed == [["1", "1"], ["1", "0"]]


def test_cores_share_it():
    @nki.jit
    def kernel(x):
        core = nl.program_id(0)
        out = nl.ndarray(SHAPE, x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((3, 2, 4, 3, 5), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(tile, x[core])
        nisa.dma_copy(out[core], tile)
        return out

    x = numbers(*SHAPE)
    np.testing.assert_array_equal(kernel[2](x), x)


def test_refusals():
    x = numbers(*SHAPE)
    with pytest.raises(BadInput, match=r"\[VIEW3\] An instruction walks at most 5 dimensions.*\[5, 3, 4, 2, 3, 2\]"):
        copied(lambda t: t.permute((5, 4, 3, 2, 1, 0)), SHAPE[::-1])(x)
    with pytest.raises(BadInput, match=r"\[TEN1\] A tensor has at most 8 dimensions"):
        copied(lambda t: t, SHAPE)(numbers(1, 1, 1, *SHAPE))
    with pytest.raises(OutOfBounds, match=r"\[IDX1\] Index 3 is outside dimension 1 of size 3"):
        copied(lambda t: t[0, 3], SHAPE)(x)
    with pytest.raises(IndexError, match="IDX2"):
        copied(lambda t: t[0, 0, 0, 0, 0, 0, 0], SHAPE)(x)

    @nki.jit
    def on_chip(x):
        nl.ndarray((2, 2, 2, 2, 2, 2), x.dtype, buffer=nl.sbuf)

    with pytest.raises(BadInput, match=r"\[TEN1\] A tensor in sbuf has at most 5 dimensions"):
        on_chip(x)
