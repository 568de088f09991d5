# SPDX-License-Identifier: Apache-2.0
"""Torch tensors in and out of a kernel. Skipped where torch is not installed."""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import SternaWarning

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nl.store(out, t)
    return out


@nki.jit
def double_in_place(x):
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    nl.store(x, t)
    return x


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "int32", "int16", "int8", "uint8", "float8_e5m2"])
def test_types(name):
    x = torch.arange(8).reshape(2, 4).to(getattr(torch, name))
    got = double(x)
    assert isinstance(got, torch.Tensor) and got.dtype == x.dtype
    assert torch.equal(got.float(), x.float() * 2)
    same = double_in_place(x)
    assert same is x and torch.equal(x.float(), got.float())


def test_scales(monkeypatch):
    """float8_e8m0fnu, the type of MX scales, which numpy's own types lack."""
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")

    @nki.jit
    def kernel(x):
        assert x.dtype == nl.float8_e8m0fnu
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        nisa.dma_copy(x[0:1], out[1:2])
        return out

    x = torch.tensor([[1.0, 2.0], [0.5, 4.0]]).to(torch.float8_e8m0fnu)
    want = x.float()
    got = kernel(x)
    assert got.dtype == torch.float8_e8m0fnu and torch.equal(got.float(), want)
    assert torch.equal(x.float(), want[[1, 1]])


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e3m4"])
def test_types_that_torch_lacks_come_back_as_words(name):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, getattr(nl, name), buffer=nl.shared_hbm)
        nl.store(out, nl.load(x, dtype=getattr(nl, name)))
        return out

    x = torch.tensor([[1.0, -2.0, 0.5]])
    got = kernel(x)
    assert got.dtype == torch.uint8
    want = x.numpy().astype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(got.numpy(), want.view(np.uint8))


def test_bool():
    x = torch.tensor([[True, False]])

    @nki.jit
    def kernel(x):
        assert x.dtype == nl.bool_
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    assert torch.equal(kernel(x), x)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_not_contiguous(name):
    x = torch.arange(8).reshape(4, 2).to(getattr(torch, name)).T
    want = x * 2
    assert torch.equal(double(x), want)
    assert double_in_place(x) is x and torch.equal(x, want)


def test_a_tensor_with_a_gradient():
    x = torch.ones((2, 2), requires_grad=True)
    assert torch.equal(double(x), torch.full((2, 2), 2.0))
    assert double_in_place(x) is x and torch.equal(x.detach(), torch.full((2, 2), 2.0)) and x.requires_grad


def test_zero_dimensions_are_numbers():
    @nki.jit
    def kernel(x, n):
        assert n == 3 and type(n) is int
        return x

    x = torch.ones((2, 2))
    assert kernel(x, torch.tensor(3)) is x


def test_torch_and_numpy_together():
    @nki.jit
    def kernel(x, y):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x), nl.load(y)))
        nl.store(y, nl.load(x))
        return out, y

    x, y = torch.ones((2, 2)), np.full((2, 2), 3, np.float32)
    out, same = kernel(x, y)
    assert torch.equal(out, torch.full((2, 2), 4.0)) and same is y and (y == 1).all()


def test_overlap_and_identity():
    @nki.jit
    def kernel(x, y):
        return x, y

    x = torch.zeros((4, 4))
    with pytest.warns(SternaWarning, match="ARG4"):
        kernel(x[0:3], x[1:4])
    y = np.asarray(x)
    got = kernel(x, y)
    assert got[0] is x
