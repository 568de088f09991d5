# SPDX-License-Identifier: Apache-2.0
"""Reductions, selections, products and copies of nki.language, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.language as nl
from sterna import BadInput, OutOfBounds, RuleError, SternaWarning

F32 = np.float32
BF16 = ml_dtypes.bfloat16


def design_sum(row):
    """The order of a sum over free axes: partial i mod 16 ascending, then a tree 8, 4, 2, 1 (design, semantics)."""
    partials = np.zeros(16, F32)
    for i, value in enumerate(row):
        partials[i % 16] = F32(partials[i % 16] + value)
    for half in (8, 4, 2, 1):
        partials = (partials[:half] + partials[half : 2 * half]).astype(F32)
    return partials[0]


def test_sum_has_the_order_of_the_design(apply, rng):
    x = rng.standard_normal((128, 77), dtype=F32)
    want = np.array([[design_sum(row)] for row in x])
    np.testing.assert_array_equal(apply(lambda t: nl.sum(t, axis=1, keepdims=True), x), want)
    np.testing.assert_array_equal(apply(lambda t: nl.sum(t, axis=-1), x), want)
    np.testing.assert_array_equal(apply(lambda t: nl.sum(t, 1), x), want)


@pytest.mark.parametrize("name", ["max", "min"])
def test_largest_and_smallest(name, apply, rng):
    x = rng.standard_normal((64, 3, 20), dtype=F32)
    f = getattr(nl, name)
    np.testing.assert_array_equal(apply(lambda t: f(t, axis=2), x), getattr(np, name)(x, axis=2))
    np.testing.assert_array_equal(
        apply(lambda t: f(t, axis=(1, 2), keepdims=True), x), getattr(np, name)(x, axis=(1, 2), keepdims=True)
    )


def test_prod_mean_var_all(apply, rng):
    x = rng.uniform(0.5, 1.5, (128, 24)).astype(F32)
    v = x.astype(np.float64)
    np.testing.assert_allclose(apply(lambda t: nl.prod(t, axis=1), x), v.prod(1, keepdims=True), rtol=3e-6)
    np.testing.assert_allclose(apply(lambda t: nl.mean(t, axis=1), x), v.mean(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(apply(lambda t: nl.var(t, axis=1), x), v.var(1, keepdims=True), rtol=1e-5)
    flags = (x > 0.6).astype(F32)
    flags[::2] = 1
    np.testing.assert_array_equal(apply(lambda t: nl.all(t, axis=1), flags), flags.all(1, keepdims=True).astype(F32))


def test_dtype_of_a_reduction(apply, rng):
    x = rng.standard_normal((128, 40), dtype=F32).astype(BF16)
    got = apply(lambda t: nl.sum(t, axis=1, dtype=nl.float32), x)
    np.testing.assert_array_equal(got, np.array([[design_sum(row)] for row in x.astype(F32)]))
    assert apply(lambda t: nl.max(t, axis=1), x).dtype == BF16


def test_sum_over_partitions_too_is_remarked(apply, rng, monkeypatch):
    x = rng.integers(-50, 50, (19, 7)).astype(F32)  # whole numbers: exact in any order
    with pytest.warns(SternaWarning, match="COMPAT4"):
        got = apply(lambda t: nl.add(nl.zeros((1, 1), nl.float32), nl.sum(t, axis=(0, 1))), x)
    np.testing.assert_array_equal(got, [[x.sum()]])
    np.testing.assert_array_equal(apply(lambda t: nl.sum(t, axis=0), x), x.sum(0, keepdims=True))
    np.testing.assert_array_equal(apply(lambda t: nl.max(t, axis=(0, 1)), x), [[x.max()]])
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="COMPAT4"):
        apply(lambda t: nl.sum(t, axis=(0, 1)), x)


def test_wrong_axes(apply):
    x = np.zeros((4, 3, 2), F32)
    with pytest.raises(BadInput, match="RED2"):
        apply(lambda t: nl.sum(t, axis=1), x)
    with pytest.raises(OutOfBounds, match="RED1"):
        apply(lambda t: nl.sum(t, axis=3), x)


def test_softmax(apply, rng):
    x = (rng.standard_normal((128, 200)) * 10).astype(F32)
    v = x.astype(np.float64)
    e = np.exp(v - v.max(1, keepdims=True))
    np.testing.assert_allclose(apply(nl.softmax, x), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-12)
    assert apply(lambda t: nl.softmax(t, axis=1, dtype=nl.bfloat16), x).dtype == BF16


@pytest.mark.parametrize("rows", [1, 64])
def test_rms_norm(rows, apply, rng):
    x, w = rng.standard_normal((64, 48), dtype=F32), rng.standard_normal((rows, 48), dtype=F32)
    v = x.astype(np.float64)
    want = v / np.sqrt((v * v).sum(1, keepdims=True) / 48 + 1e-3) * w
    np.testing.assert_allclose(apply(lambda a, b: nl.rms_norm(a, b, axis=1, n=48, epsilon=1e-3), x, w), want, rtol=2e-6)


def test_where(apply, rng):
    c = rng.integers(0, 2, (64, 10)).astype(F32)
    x, y = rng.standard_normal((64, 10), dtype=F32), rng.standard_normal((64, 10), dtype=F32)
    np.testing.assert_array_equal(apply(nl.where, c, x, y), np.where(c != 0, x, y))
    np.testing.assert_array_equal(apply(lambda a, b: nl.where(a, b, -1.0), c, x), np.where(c != 0, x, F32(-1)))
    np.testing.assert_array_equal(apply(lambda a, b: nl.where(a, 2.5, b), c, y), np.where(c != 0, F32(2.5), y))
    column = x[:, :1].copy()
    np.testing.assert_array_equal(apply(nl.where, c, column, y), np.where(c != 0, column, y))
    got = apply(lambda a, b: nl.where(a, b, 0.0, dtype=nl.bfloat16), c, x)
    np.testing.assert_array_equal(got, np.where(c != 0, x, 0).astype(BF16))


def test_where_passes_nan_of_the_side_not_taken(apply):
    c = np.zeros((4, 2), F32)
    x = np.full((4, 2), np.nan, F32)
    np.testing.assert_array_equal(apply(lambda a, b: nl.where(a, b, 1.0), c, x), np.ones((4, 2), F32))


@pytest.mark.parametrize("dtype", [F32, BF16, np.float16])
def test_matmul(dtype, apply, rng):
    x, y = (
        rng.standard_normal((32, 64), dtype=F32).astype(dtype),
        rng.standard_normal((64, 100), dtype=F32).astype(dtype),
    )
    want = x.astype(np.float64) @ y.astype(np.float64)
    got = apply(lambda a, b: nl.copy(nl.matmul(a, b)), x, y)
    assert got.dtype == F32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    turned = apply(lambda a, b: nl.copy(nl.matmul(a, b, transpose_x=True)), np.ascontiguousarray(x.T), y)
    np.testing.assert_array_equal(turned, got)


def test_transpose_keeps_every_bit(apply, rng):
    x = rng.integers(0, 2**32, (128, 50), np.uint32).view(F32)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(nl.transpose(t)), x).view(np.uint32), x.T.view(np.uint32))
    half = rng.standard_normal((16, 8), dtype=F32).astype(BF16)
    np.testing.assert_array_equal(apply(lambda t: nl.transpose(t, dtype=nl.float32), half), half.T.astype(F32))


def test_copy_and_cast(apply, rng):
    x = rng.standard_normal((32, 8), dtype=F32) * 100
    np.testing.assert_array_equal(apply(nl.copy, x), x)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t, dtype=nl.int32), x), np.rint(x).astype(np.int32))
    np.testing.assert_array_equal(apply(lambda t: nl.cast(t, dtype=nl.bfloat16), x), x.astype(BF16))
    np.testing.assert_array_equal(apply(lambda t: t.astype(nl.float16), x), x.astype(np.float16))


def test_a_copy_is_a_tile_of_its_own(apply, rng):
    x = rng.standard_normal((32, 8), dtype=F32)

    def change_copy(t):
        other = nl.copy(t, dtype=t.dtype)
        other[...] = 0.0
        return nl.add(t, other)

    np.testing.assert_array_equal(apply(change_copy, x), x)


def test_broadcast_to_and_expand_dims(apply, rng):
    row, column = rng.standard_normal((1, 16), dtype=F32), rng.standard_normal((32, 1), dtype=F32)
    zero = lambda shape: nl.zeros(shape, nl.float32)  # noqa: E731
    np.testing.assert_array_equal(
        apply(lambda t: nl.add(zero((32, 16)), nl.broadcast_to(t, (32, 16))), row), np.broadcast_to(row, (32, 16))
    )
    np.testing.assert_array_equal(
        apply(lambda t: nl.copy(nl.broadcast_to(t, (32, 9))), column), np.broadcast_to(column, (32, 9))
    )
    assert apply(lambda t: nl.copy(nl.expand_dims(t, 1)), column).shape == (32, 1, 1)


def test_load_transpose2d(rng):
    @nki.jit
    def turn(x):
        t = nl.load_transpose2d(x)
        out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    for shape, dtype in (((19, 72), F32), ((300, 8), F32), ((64, 1), F32), ((1, 64), F32), ((128, 128), BF16)):
        x = rng.standard_normal(shape, dtype=F32).astype(dtype)
        np.testing.assert_array_equal(turn(x), x.T)
    x = rng.standard_normal((128, 6, 5), dtype=F32)
    with pytest.warns(SternaWarning, match="COMPAT6"):
        np.testing.assert_array_equal(turn(x), x.reshape(128, 30).T)
    with pytest.raises(BadInput, match="LT1"):
        turn(np.zeros(4, F32))
