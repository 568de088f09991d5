# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that do not fit where they are given, and objects that do more than give a number."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna

F32 = np.float32
X = np.arange(64, dtype=F32).reshape(8, 8)


def run(f, x=X):
    return nki.jit(lambda x: (f(x), None)[1])(x.copy())


TOO_LARGE = {
    "ap stride": (lambda x: x.ap([[1 << 32, 1], [1, 8]]), "stride"),
    "ap count": (lambda x: x.ap([[8, (1 << 32) + 1], [1, 8]]), "count"),
    "ap negative count": (lambda x: x.ap([[8, 1], [1, -8]]), "count"),
    "ap counts": (lambda x: x.ap([[0, 1 << 30]] * 5), "elements"),
    "ap offset": (lambda x: x.ap([[8, 1], [1, 8]], offset=1 << 62), "offset"),
    "ap offset on chip": (lambda x: nl.load(x).ap([[8, 1], [1, 8]], offset=1 << 40), "offset"),
    "pattern step": (lambda x: nisa.iota(nl.load(x), [[1 << 32, 8]]), "pattern"),
    "pattern count": (lambda x: nisa.iota(nl.load(x), [[1, (1 << 32) + 8]]), "pattern"),
    "list": (lambda x: nisa.tensor_reduce(nl.load(x)[:, 0:1], nl.add, nl.load(x), ((1 << 32) + 1,)), "axis"),
    "number of a list": (lambda x: nisa.tensor_reduce(nl.load(x)[:, 0:1], nl.add, nl.load(x), (1 << 32) + 1), "axis"),
    "number": (lambda x: nisa.iota(nl.load(x), [[1, 8]], channel_multiplier=1 << 40), "channel_multiplier"),
    "huge number": (lambda x: nisa.iota(nl.load(x), [[1, 8]], channel_multiplier=10**30), "channel_multiplier"),
    "mask": (lambda x: nisa.nc_stream_shuffle(nl.load(x), nl.load(x), [256 + 31] * 32), "shuffle_mask.*0 to 31, or 255"),
    "mask 32": (lambda x: nisa.nc_stream_shuffle(nl.load(x), nl.load(x), [32] * 32), "shuffle_mask"),
    "mask -1": (lambda x: nisa.nc_stream_shuffle(nl.load(x), nl.load(x), [-1] * 32), "shuffle_mask"),
    "reshape": (lambda x: x.reshape((1 << 32, 2)), "shape"),
    "reshape negative": (lambda x: x.reshape((-8, -8)), "shape"),
    "reshape product": (lambda x: x.reshape((1 << 30, 1 << 30, 1 << 30)), "elements"),
    "broadcast": (lambda x: x[0:1].broadcast(0, 1 << 32), "size"),
    "broadcast negative": (lambda x: x[0:1].broadcast(0, -3), "size"),
    "broadcast_to": (lambda x: x[0:1].broadcast_to((-3, 8)), "shape"),
    "permute": (lambda x: x.permute((1 << 32) + 1, 1 << 32), "dims"),
    "tensor": (lambda x: nl.ndarray((1 << 40, 2), nl.float32, buffer=nl.hbm), "shape"),
    "tensor product": (lambda x: nl.ndarray((1 << 30,) * 3, nl.float32, buffer=nl.hbm), "elements"),
    "negative tensor": (lambda x: nl.ndarray((-1, 4), nl.float32), "shape"),
}  # fmt: skip


@pytest.mark.parametrize("form", TOO_LARGE)
def test_numbers_out_of_range_name_the_parameter(form):
    use, name = TOO_LARGE[form]
    with pytest.raises(sterna.BadInput, match=f"ARG7.*{name}"):
        run(use)


NOT_WHOLE = {
    "ap stride": lambda x: x.ap([[8.0, 1], [1, 8]]),
    "ap offset": lambda x: x.ap([[8, 1], [1, 8]], offset=1.5),
    "pattern": lambda x: nisa.iota(nl.load(x), [[1.5, 8]]),
    "mask": lambda x: nisa.nc_stream_shuffle(nl.load(x), nl.load(x), [0.5] * 32),
    "reshape": lambda x: x.reshape((4.0, 16)),
    "shape": lambda x: nl.ndarray((4.5, 16), nl.float32),
    "text": lambda x: x.ap("no"),
}


@pytest.mark.parametrize("form", NOT_WHOLE)
def test_numbers_that_are_not_whole_are_type_errors(form):
    with pytest.raises(TypeError):
        run(NOT_WHOLE[form])


def test_the_whole_range_is_accepted():
    @nki.jit
    def kernel(x):
        t = nl.ndarray((1, 2), nl.int32)
        nisa.iota(t, [[-(1 << 31), 2]], offset=(1 << 31) - 1)
        out = nl.ndarray((1, 2), nl.int32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t)
        return out

    np.testing.assert_array_equal(kernel(X), [[(1 << 31) - 1, -1]])

    @nki.jit
    def shuffled(x):
        t, o = nl.load(x), nl.zeros((32, 8), nl.float32)
        nisa.nc_stream_shuffle(o, t, [31, 255] * 16)
        out = nl.ndarray((32, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, o)
        return out

    x = np.arange(256, dtype=F32).reshape(32, 8)
    want = np.zeros_like(x)
    want[::2] = x[31]
    np.testing.assert_array_equal(shuffled(x), want)


def test_indices_far_outside():
    for index in (10**30, -(10**30), 1 << 63):
        with pytest.raises(IndexError, match="IDX1"):
            run(lambda x, index=index: x[index])
    np.testing.assert_array_equal(nki.jit(lambda x: nl_copy(x[:: 10**30]))(X), X[0:1])
    with pytest.raises(IndexError):
        run(lambda x: x[..., ...])


def nl_copy(view):
    out = nl.ndarray(view.shape, view.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, view)
    return out


OUTSIDE = {
    "offset": lambda x: x.ap([[1, 8]], offset=10**10),
    "before": lambda x: x.ap([[1, 8]], offset=-1000),
    "stride": lambda x: x.ap([[1 << 30, 8]]),
    "on chip": lambda x: nl.load(x).ap([[8, 8], [1, 8]], offset=4),
    "partition": lambda x: nl.load(x).ap([[8, 8], [1, 8]], offset=1 << 30),
    "dynamic": lambda x: x[nl.ds(nisa.register_alloc(2), 7)],
}


@pytest.mark.parametrize("form", OUTSIDE)
def test_looking_at_a_view_outside_its_tensor(form):
    seen = []
    with pytest.raises(IndexError, match="IDX4|DYN1"):
        run(lambda x: seen.append(str(OUTSIDE[form](x))))
    # A debugger's look must not fail.
    run(lambda x: seen.append(repr(OUTSIDE[form](x))))
    assert seen[0].startswith("<tensor")


# --- operands that record while they are converted


class Sneaky:
    """A number that records instructions when it is asked for its value."""

    def __init__(self, value, act):
        self.value, self.act = value, act

    def __float__(self):
        self.act()
        return float(self.value)

    def __index__(self):
        self.act()
        return int(self.value)


def test_an_operand_that_records_when_it_is_converted():
    @nki.jit
    def kernel(x):
        t = nl.load(x)

        def act():
            for _ in range(200):
                nisa.tensor_scalar(t, t, nl.add, 1.0)

        nisa.tensor_scalar(t, t, nl.multiply, Sneaky(2, act))
        nisa.iota(nl.ndarray((8, 8), nl.int32), [[Sneaky(1, act), 8]], offset=Sneaky(0, act))
        assert t.ap([[8, 8], [Sneaky(1, act), 8]]).shape == (8, 8)
        assert t[:, Sneaky(1, act)].shape == (8, 1)
        out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t)
        return out

    np.testing.assert_array_equal(kernel(X), (X + 200) * 2 + 800)


def test_an_operand_that_fails_records_nothing():
    def fail():
        raise KeyError("mine")

    @nki.jit
    def kernel(x):
        t = nl.load(x)
        with pytest.raises(KeyError, match="mine"):
            nisa.iota(nl.ndarray((8, 8), nl.int32), [[1, 8]], offset=Sneaky(0, fail))
        out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t)
        return out

    np.testing.assert_array_equal(kernel(X), X)


def test_a_list_that_shrinks_while_it_is_read():
    def run_with(make):
        items = []
        items.extend(make(items))
        return items

    def pattern(x):
        items = run_with(lambda items: [[8, 8], [Sneaky(1, items.clear), 8], [1, 1]])
        assert x.ap(items).shape == (8, 8)  # the pairs that were there
        raise ValueError

    def mask(x):
        items = run_with(lambda items: [Sneaky(0, items.clear)] * 32)
        nisa.nc_stream_shuffle(nl.load(x), nl.load(x), items)

    def shape(x):
        items = run_with(lambda items: [Sneaky(8, items.clear), 8])
        x.reshape(items)

    for use in (pattern, mask, shape):
        with pytest.raises((TypeError, ValueError, sterna.Fault)):
            run(use)
