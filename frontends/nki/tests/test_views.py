# SPDX-License-Identifier: Apache-2.0
"""Views of tensors: no data moves, storage is shared. Against NumPy's views."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import BadInput, RuleError, SternaWarning

F32 = np.float32


def numbers(*shape):
    return np.arange(np.prod(shape)).reshape(shape).astype(F32)


def read(f):
    """A kernel that loads f(x) and returns it."""

    @nki.jit
    def kernel(x):
        t = nl.load(f(x))
        out = nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm)
        nl.store(out, t)
        return out

    return kernel


VIEWS = {
    "reshape": (lambda t: t.reshape((16, 24)), lambda x: x.reshape(16, 24)),
    "reshape -1": (lambda t: t.reshape(16, -1), lambda x: x.reshape(16, -1)),
    "slice": (lambda t: t.slice(2, 1, 7, step=2), lambda x: x[:, :, 1:7:2]),
    "select": (lambda t: t.select(1, 2), lambda x: x[:, 2]),
    "permute": (lambda t: t.permute((0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "expand_dim": (lambda t: t.expand_dim(1), lambda x: x[:, None]),
    "squeeze_dim": (lambda t: t[:, 0:1].squeeze_dim(1), lambda x: x[:, 0]),
    "flatten_dims": (lambda t: t.flatten_dims(1, 2), lambda x: x.reshape(16, 24)),
    "reshape_dim": (lambda t: t.reshape_dim(2, (2, 4)), lambda x: x.reshape(16, 3, 2, 4)),
    "broadcast": (lambda t: t[:, 0:1].broadcast(1, 5), lambda x: np.broadcast_to(x[:, 0:1], (16, 5, 8))),
    "broadcast_to": (lambda t: t[:, 0:1].broadcast_to((16, 5, 8)), lambda x: np.broadcast_to(x[:, 0:1], (16, 5, 8))),
    "ap": (lambda t: t.ap([[24, 16], [8, 2], [2, 3]], offset=1), lambda x: x[:, 0:2, 1:7:2]),
}


@pytest.mark.parametrize("form", VIEWS)
def test_view_of_a_tile(form, apply):
    ours, numpys = VIEWS[form]
    x = numbers(16, 3, 8)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(ours(t)), x), numpys(x))


@pytest.mark.parametrize("form", [f for f in VIEWS if f != "broadcast_to"])
def test_view_of_an_argument(form):
    ours, numpys = VIEWS[form]
    x = numbers(16, 3, 8)
    np.testing.assert_array_equal(read(ours)(x), numpys(x))


def test_view_of_other_bits(apply):
    x = numbers(16, 8)
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t.view(nl.uint32)), x), x.view(np.uint32))
    np.testing.assert_array_equal(apply(lambda t: nl.copy(t.reinterpret_cast(nl.uint16)), x), x.view(np.uint16))
    np.testing.assert_array_equal(
        apply(lambda t: nl.copy(t.ap([[8, 16], [1, 8]], dtype=nl.int32)), x), x.view(np.int32)
    )


def test_views_share_their_storage(apply):
    def change(t):
        t.reshape((16, 24))[:, 5:6] = 1.0
        return t

    want = numbers(16, 3, 8)
    want.reshape(16, 24)[:, 5] = 1
    np.testing.assert_array_equal(apply(change, numbers(16, 3, 8)), want)


def test_reshape_over_partitions_moves_data(apply, monkeypatch):
    x = numbers(19, 2)
    with pytest.warns(SternaWarning, match="VIEW2"):
        np.testing.assert_array_equal(apply(lambda t: t.reshape((1, 38)), x), x.reshape(1, 38))
    np.testing.assert_array_equal(apply(lambda t: t.reshape((2, -1)), x), x.reshape(2, 19))
    with pytest.raises(BadInput, match="VIEW5"):
        apply(lambda t: t.reshape((5, 5)), x)
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="VIEW2"):
        apply(lambda t: t.reshape((1, 38)), x)


def test_offset_of_ap_is_added_with_a_remark(apply):
    x = numbers(16, 8)
    with pytest.warns(SternaWarning, match="AP3") as seen:
        got = apply(lambda t: nl.copy(t[:, 2:].ap([[8, 16], [1, 3]], offset=1)), x)
    np.testing.assert_array_equal(got, x[:, 3:6])
    assert seen[0].filename == __file__


KEYWORDS = {
    "select": (lambda t: t.select(dim=1, index=2), lambda x: x[:, 2]),
    "permute": (lambda t: t.permute(dims=(0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "broadcast": (lambda t: t[:, 0:1].broadcast(dim=1, size=5), lambda x: np.repeat(x[:, 0:1], 5, 1)),
    "expand_dim": (lambda t: t.expand_dim(dim=1), lambda x: x[:, None]),
    "squeeze_dim": (lambda t: t[:, 0:1].squeeze_dim(dim=1), lambda x: x[:, 0]),
    "reshape_dim": (lambda t: t.reshape_dim(dim=2, shape=(2, 4)), lambda x: x.reshape(16, 3, 2, 4)),
    "flatten_dims": (lambda t: t.flatten_dims(start_dim=1, end_dim=2), lambda x: x.reshape(16, 24)),
    "reshape": (lambda t: t.reshape(shape=(16, 24)), lambda x: x.reshape(16, 24)),
    "view": (lambda t: t.view(dtype=nl.int32), lambda x: x.view(np.int32)),
    "reinterpret_cast": (lambda t: t.reinterpret_cast(dtype=nl.int32), lambda x: x.view(np.int32)),
    "slice": (lambda t: t.slice(dim=1, start=0, end=2), lambda x: x[:, :2]),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_parameters_have_the_names_of_the_stub(name):
    view, wanted = KEYWORDS[name]
    x = numbers(16, 3, 8)
    np.testing.assert_array_equal(read(view)(x), wanted(x))


def test_a_parameter_that_the_stub_does_not_have_is_refused():
    for wrong in (lambda t: t.reshape(shape=(16, 24), order=1), lambda t: t.permute(axes=(0, 2, 1))):
        with pytest.raises(TypeError):
            read(wrong)(numbers(16, 3, 8))


def test_what_a_register_or_a_tensor_places_is_indirect():
    """ "Indirect addressing is produced by dynamic select, vector_select, or ap with scalar_offset / vector_offset"."""

    @nki.jit
    def kernel(x, rows):
        one, register = nl.load(rows[0:1, 0:1]), nisa.register_alloc(2)
        indirect = [
            x.select(0, one),
            x[register],
            x[nl.ds(register, 2)],
            x.ap([[24, 1], [1, 8]], scalar_offset=register),
            x.vector_select(dim=0, vector_offset=nl.load(rows)),
        ]
        assert all(t.is_indirect() for t in indirect)
        assert not any(t.is_indirect() for t in (x, x[1], x.reshape((16, 24))))

    kernel(numbers(16, 3, 8), np.array([[1], [2]], np.int32))


def test_engines_take_partitions_that_follow_one_another(monkeypatch):
    """Guide on access patterns: "the access on the partition dimension must be contiguous"."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray((8, 4), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(nl.load(x)[::2]))
        return out

    x = numbers(16, 4)
    with pytest.warns(SternaWarning, match="P3"):
        np.testing.assert_array_equal(kernel(x), x[::2])
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="P3"):
        kernel(x)
