# SPDX-License-Identifier: Apache-2.0
"""DMA through Python: copies, transposes, gathers, sums."""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import RuleError

F32 = np.float32
BF16 = ml_dtypes.bfloat16


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=F32)


def test_dma(rng):
    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((24,), nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)  # HBM to HBM, another shape and type
        t = nl.ndarray((6, 4), nl.float32)
        nisa.dma_copy(t, x, dge_mode=nisa.dge_mode.swdge)
        turned = nl.ndarray((4, 6), nl.float32)
        nisa.dma_transpose(turned, x, axes=(1, 0))
        three = nl.ndarray((5, 3, 2), nl.float32)
        nisa.dma_transpose(three, y, axes=(2, 1, 0))
        outs = [nl.ndarray(t.shape, nl.float32, buffer=nl.shared_hbm) for t in (t, turned, three)]
        for o, tile in zip(outs, (t, turned, three)):
            nisa.dma_copy(o, tile)
        return out, *outs

    x, y = normal(rng, 6, 4), normal(rng, 2, 3, 5)
    flat, same, turned, three = kernel(x, y)
    np.testing.assert_array_equal(flat, x.reshape(24).astype(BF16))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(three, y.transpose(2, 1, 0))


def test_a_gather_out_of_bounds_faults_or_skips():
    @nki.jit
    def kernel(x, where, mode):
        t = nl.full((4, 3), -1.0, nl.float32)
        nisa.dma_copy(t, x.vector_select(0, nl.load(where)), oob_mode=mode)
        out = nl.ndarray((4, 3), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    x, where = np.arange(15, dtype=F32).reshape(5, 3), np.array([[4], [9], [0], [-1]], np.int32)
    with pytest.raises(IndexError):
        kernel(x, where, nisa.oob_mode.error)
    np.testing.assert_array_equal(kernel(x, where, nisa.oob_mode.skip), [x[4], [-1] * 3, x[0], [-1] * 3])


def test_dma_compute(rng):
    @nki.jit
    def kernel(x, y, z):
        out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
        nisa.dma_compute(out, [x, nl.load(y), z], nl.add, scales=[1.0, 1, None])
        nisa.dma_compute(y, (y,) * 16, reduce_op=nl.add)
        return out, y

    x, y, z = (normal(rng, 6, 4) for _ in range(3))
    total = np.zeros_like(y)
    for _ in range(16):
        total += y
    want = (x + y) + z
    got, multiple = kernel(x, y, z)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(multiple, total)


def test_dma_compute_adds_to_rows_by_index(rng):
    @nki.jit
    def kernel(x, rows, value):
        place = x.vector_select(0, nl.load(rows))
        nisa.dma_compute(place, [nl.load(value), place], nl.add)
        return x

    x, value = normal(rng, 8, 4), normal(rng, 3, 4)
    want, rows = x.copy(), np.array([[6], [1], [4]], np.int32)
    want[rows[:, 0]] += value
    np.testing.assert_array_equal(kernel(x, rows, value), want)


def test_dma_compute_refuses_other_scales_and_counts():
    def call(sources, **options):
        return lambda x: nisa.dma_compute(x, [x] * sources, nl.add, **options)

    for sources, options, rule in (
        (2, {"scales": [1.0, 0.5]}, "DC4"),
        (2, {"scales": [1.0]}, "DC4"),
        (2, {"scales": 2.0}, "DC4"),
        (17, {}, "DC2"),
        (0, {}, "DC2"),
    ):
        with pytest.raises(RuleError, match=rule):
            nki.jit(call(sources, **options))(np.ones((4, 4), F32))
    with pytest.raises(RuleError, match="DC1"):
        nki.jit(lambda x: nisa.dma_compute(x, [x, x], nl.multiply))(np.ones((4, 4), F32))


def test_dma_compute_names_what_it_cannot_take():
    def call(sources, **options):
        def body(x):
            nisa.dma_compute(x, sources(x), nl.add, **options)

        nki.jit(body)(np.ones((4, 4), F32))

    for scales in (np.ones(2), [np.float32(1), 1], 1.0):
        call(lambda x: [x, x], scales=scales)
    with pytest.raises(RuleError, match="DC4"):
        call(lambda x: [x, x], scales=np.array([1, 2]))
    with pytest.raises(TypeError, match="ARG2.*srcs\\[0\\].*test_dma.py"):
        call(lambda x: [None, x])
    with pytest.raises(TypeError, match="ARG2.*srcs\\[1\\]"):
        call(lambda x: (x, None))
    for sources in (lambda x: x, lambda x: None):
        with pytest.raises(TypeError, match="'srcs' must be a list of tensors"):
            call(sources)


def test_the_engine_of_a_dma_copy():
    """Stub: sync or scalar, "only valid when dge_mode=hwdge"."""

    def copy(engine, mode):
        def body(x):
            nisa.dma_copy(nl.ndarray((4, 4), nl.float32), x, engine=engine, dge_mode=mode)

        nki.jit(body)(np.ones((4, 4), F32))

    for engine in (nisa.engine.sync, nisa.engine.scalar, nisa.engine.unknown):
        copy(engine, nisa.dge_mode.hwdge)
    for engine, mode in ((nisa.engine.gpsimd, "hwdge"), (nisa.engine.sync, "unknown"), (nisa.engine.scalar, "swdge")):
        with pytest.raises(RuleError, match="DMA7"):
            copy(engine, nisa.dge_mode[mode])
