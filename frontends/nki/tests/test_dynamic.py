# SPDX-License-Identifier: Apache-2.0
"""Views whose place only the run knows: registers, offset tensors, and views of such views, against NumPy."""

import warnings

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna

F32 = np.float32
X = np.arange(64, dtype=F32).reshape(8, 8)
ROWS = np.array([7, 0, 5, 2], np.int32)


def copied(view, *arrays):
    """A kernel's copy of view(*arguments)."""

    @nki.jit
    def kernel(*inputs):
        v = view(*inputs)
        out = nl.ndarray(v.shape, v.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, v)
        return out

    return kernel(*arrays)


def index_tile(index):
    tile = nl.ndarray((index.size, 1), index.dtype)
    nisa.dma_copy(tile, index)
    return tile


def select(x, index):
    return x.vector_select(0, index_tile(index))


# --- registers

STATIC_VIEWS_OF_A_DYNAMIC = {
    "slice": (lambda v: v[:, 2:5], lambda x: x[:, 2:5]),
    "ap": (lambda v: v.ap([[8, 1], [1, 8]]), lambda x: x),
    "reshape": (lambda v: v.reshape((2, 4)), lambda x: x.reshape(2, 4)),
    "a wider type": (lambda v: v.view(nl.bfloat16).view(nl.float32), lambda x: x),
    "ap of another type": (
        lambda v: v.ap([[16, 1], [1, 16]], dtype=nl.uint16).view(nl.float32),
        lambda x: x,
    ),
}


@pytest.mark.parametrize("form", STATIC_VIEWS_OF_A_DYNAMIC)
def test_a_view_of_a_dynamic_view_keeps_its_register(form):
    view, expect = STATIC_VIEWS_OF_A_DYNAMIC[form]
    got = copied(lambda x: view(x[nl.ds(nisa.register_alloc(3), 1)]), X)
    np.testing.assert_array_equal(got, expect(X[3:4]))


def test_a_dynamic_view_of_other_bits_moves_by_the_same_bytes():
    got = copied(lambda x: x[nl.ds(nisa.register_alloc(3), 1)].view(nl.uint16), X)
    np.testing.assert_array_equal(got, X[3:4].view(np.uint16))
    # Rows of three 2-byte elements are no whole number of 4-byte ones.
    odd = np.arange(24, dtype=np.uint16).reshape(4, 6)
    with pytest.raises(ValueError, match="VIEW7"):
        copied(lambda x: x.reshape((8, 3))[nl.ds(nisa.register_alloc(1), 1), 0:2].view(nl.float32), odd)


SECOND_OFFSETS = {
    "index": lambda v, r: v[0, r],
    "ds": lambda v, r: v[:, nl.ds(r, 2)],
    "select": lambda v, r: v.select(1, r),
    "ap": lambda v, r: v.ap([[8, 1], [1, 4]], scalar_offset=r, indirect_dim=1),
    "vector_select": lambda v, r: v.vector_select(0, index_of_zero()),
    "ap with rows": lambda v, r: v.ap([[8, 1], [1, 4]], vector_offset=index_of_zero()),
}


def index_of_zero():
    return nl.zeros((1, 1), nl.int32)


@pytest.mark.parametrize("form", SECOND_OFFSETS)
def test_a_second_offset_is_refused(form):
    with pytest.raises(sterna.NotImplementedFault, match="DYN5"):
        copied(lambda x: SECOND_OFFSETS[form](x[nl.ds(nisa.register_alloc(3), 1)], nisa.register_alloc(2)), X)
    with pytest.raises(sterna.NotImplementedFault, match="DYN5"):
        copied(lambda x, i: SECOND_OFFSETS[form](select(x, i), nisa.register_alloc(0)), X, ROWS)


def test_a_window_larger_than_its_dimension_is_refused():
    for size in (9, 0, -1):
        with pytest.raises(IndexError, match="IDX6"):
            copied(lambda x, size=size: x[:, nl.ds(nisa.register_alloc(0), size)], X)
    np.testing.assert_array_equal(copied(lambda x: x[:, nl.ds(nisa.register_alloc(0), 8)], X), X)
    with pytest.raises(IndexError, match="DYN1"):
        copied(lambda x: x[:, nl.ds(nisa.register_alloc(1), 8)], X)


def test_a_window_may_start_before_the_end():
    np.testing.assert_array_equal(copied(lambda x: x[nl.ds(-2, 2)], X), X[-2:])
    with pytest.raises(IndexError, match="IDX6"):
        copied(lambda x: x[nl.ds(2, -1)], X)


def test_arguments_of_a_dynamic_ap_are_checked():
    def ap(**options):
        return copied(lambda x: x.ap([[8, 1], [1, 8]], **options), X)

    for dim in (-2, 2, 1 << 40):
        with pytest.raises(ValueError, match="indirect_dim"):
            copied(lambda x, dim=dim: x.ap([[8, 1], [1, 8]], scalar_offset=nisa.register_alloc(0), indirect_dim=dim), X)
    with pytest.raises(ValueError, match="one of"):
        copied(lambda x: x.ap([[8, 1], [1, 8]], scalar_offset=nisa.register_alloc(0), vector_offset=index_of_zero()), X)
    with pytest.raises(ValueError, match="one number"):
        copied(lambda x, i: x.ap([[8, 1], [1, 8]], scalar_offset=index_tile(i)), X, ROWS)
    with pytest.raises(TypeError, match="register or a tensor"):
        ap(scalar_offset=3)


def test_an_offset_tensor_of_floats_is_remarked(monkeypatch):
    rows = ROWS.astype(F32)
    with pytest.warns(sterna.SternaWarning, match="DYN7"):
        np.testing.assert_array_equal(copied(select, X, rows), X[ROWS])
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(sterna.RuleError, match="DYN7"):
        copied(select, X, rows)
    np.testing.assert_array_equal(copied(select, X, ROWS), X[ROWS])


# --- rows found by an offset tensor

VIEWS_OF_ROWS = {
    "part": (lambda v: v[1:3], lambda x: x[1:3]),
    "from": (lambda v: v[2:], lambda x: x[2:]),
    "step": (lambda v: v[::2], lambda x: x[::2]),
    "part of a part": (lambda v: v[1:][1:3], lambda x: x[1:][1:3]),
    "one row": (lambda v: v[2], lambda x: x[2]),
    "last row": (lambda v: v[-1], lambda x: x[-1]),
    "part of a row": (lambda v: v[1, 2:5], lambda x: x[1, 2:5]),
    "columns": (lambda v: v[:, 3:6], lambda x: x[:, 3:6]),
    "one column": (lambda v: v[:, 3], lambda x: x[:, 3]),
    "both": (lambda v: v[1:4:2, 1:7:3], lambda x: x[1:4:2, 1:7:3]),
    "slice": (lambda v: v.slice(0, 1, 3), lambda x: x[1:3]),
    "select": (lambda v: v.select(0, 3), lambda x: x[3]),
    "split a row": (lambda v: v.reshape((4, 2, 4)), lambda x: x.reshape(4, 2, 4)),
    "reshape_dim": (lambda v: v.reshape_dim(1, (2, -1)), lambda x: x.reshape(4, 2, 4)),
    "flatten": (lambda v: v.reshape((4, 2, 4)).flatten_dims(1, 2), lambda x: x),
    "turn the row": (lambda v: v.reshape((4, 2, 4)).permute(0, 2, 1), lambda x: x.reshape(4, 2, 4).swapaxes(1, 2)),
    "expand": (lambda v: v.expand_dim(1), lambda x: x[:, None]),
    "squeeze": (lambda v: v.expand_dim(1).squeeze_dim(1), lambda x: x),
    "broadcast": (lambda v: v.expand_dim(1).broadcast(1, 3), lambda x: np.repeat(x[:, None], 3, 1)),
    "broadcast_to": (lambda v: v[:, 0:1].broadcast_to((4, 3)), lambda x: np.repeat(x[:, 0:1], 3, 1)),
    "other bits": (lambda v: v.view(nl.uint16), lambda x: x.view(np.uint16)),
}


@pytest.mark.parametrize("listed", ["column", "row", "in HBM", "ap"])
@pytest.mark.parametrize("form", VIEWS_OF_ROWS)
def test_views_of_selected_rows(form, listed):
    view, expect = VIEWS_OF_ROWS[form]

    def rows(x, index):
        if listed == "row":  # vector_select takes one row for each partition of the list; ap says how many
            tile = nl.ndarray((1, 4), nl.int32)
            nisa.dma_copy(tile, index)
            return view(x.ap([[8, 4], [1, 8]], vector_offset=tile))
        if listed == "in HBM":
            return view(x.vector_select(0, index))
        if listed == "ap":
            return view(x.ap([[8, 4], [1, 8]], vector_offset=index_tile(index)))
        return view(select(x, index))

    want = expect(X[ROWS])
    np.testing.assert_array_equal(copied(rows, X, ROWS).reshape(want.shape), want)


def test_views_of_selected_rows_as_a_destination():
    @nki.jit
    def kernel(x, index, value):
        nisa.dma_copy(select(x, index)[1:3, 2:4], value)
        return x

    want = X.copy()
    want[ROWS[1:3], 2:4] = -1
    np.testing.assert_array_equal(kernel(X.copy(), ROWS, np.full((2, 2), -1, F32)), want)


REFUSED = {
    "permute": lambda v: v.permute(1, 0),
    "merge rows": lambda v: v.reshape((8, 4)),
    "flatten rows": lambda v: v.flatten_dims(0, 1),
    "split rows": lambda v: v.reshape_dim(0, (2, 2)),
    "dimension before": lambda v: v.expand_dim(0),
    "drop the row": lambda v: v[0:1].squeeze_dim(0),
    "repeat a row": lambda v: v[0:1].broadcast(0, 3),
    "repeat a row by shape": lambda v: v[0:1].broadcast_to((3, 8)),
    "more dimensions": lambda v: v.broadcast_to((2, 4, 8)),
    "pattern": lambda v: v.ap([[8, 2], [1, 4]]),
}


@pytest.mark.parametrize("form", REFUSED)
def test_views_that_move_selected_rows_are_refused(form):
    with pytest.raises(sterna.NotImplementedFault, match="DYN6"):
        copied(lambda x, index: REFUSED[form](select(x, index)), X, ROWS)


def test_rows_of_a_list_in_two_dimensions():
    index = ROWS.reshape(2, 2)

    def rows(view):
        def f(x, index):
            tile = nl.ndarray((2, 2), nl.int32)
            nisa.dma_copy(tile, index)
            return view(x.ap([[8, 4], [1, 8]], vector_offset=tile))

        return copied(f, X, index)

    np.testing.assert_array_equal(rows(lambda v: v[:, 1:3]), X[ROWS][:, 1:3])
    with pytest.raises(sterna.NotImplementedFault, match="DYN6"):
        rows(lambda v: v[1:3])


def test_an_index_outside_the_list_of_rows():
    with pytest.raises(IndexError, match="IDX1"):
        copied(lambda x, i: select(x, i)[4], X, ROWS)
    with pytest.raises(IndexError, match="DYN3"):
        copied(lambda x, i: x.ap([[8, 6], [1, 8]], vector_offset=index_tile(i))[3:6], X, ROWS)


# --- what belongs to another call


def test_objects_of_another_call_are_refused():
    kept = {}

    @nki.jit
    def first(x):
        out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
        kept.update(tensor=out, register=nisa.register_alloc(1), index=nl.zeros((4, 1), nl.int32))
        nisa.dma_copy(out, x)
        return out

    first(X)
    foreign = {
        "result": lambda x: kept["tensor"],
        "operand": lambda x: nisa.dma_copy(x, kept["tensor"]),
        "scalar": lambda x: nisa.tensor_scalar(nl.load(x), nl.load(x), nl.add, kept["tensor"]),
        "index": lambda x: x[kept["register"]],
        "ds": lambda x: x[nl.ds(kept["register"], 1)],
        "scalar_offset": lambda x: x.ap([[8, 1], [1, 8]], scalar_offset=kept["register"]),
        "vector_offset": lambda x: x.ap([[8, 4], [1, 8]], vector_offset=kept["index"]),
        "vector_select": lambda x: x.vector_select(0, kept["index"]),
        "register_move": lambda x: nisa.register_move(kept["register"], 3),
        "register_load": lambda x: nisa.register_load(nisa.register_alloc(), kept["index"][0:1]),
        "register_alloc": lambda x: nisa.register_move(nisa.register_alloc(1), kept["register"]),
        "device_print": lambda x: nl.device_print("t", kept["tensor"]),
    }
    for what, use in foreign.items():
        with pytest.raises(sterna.BadInput, match="ARG6"):
            print(what, nki.jit(use)(X.copy()))


def test_values_are_gone_after_the_call():
    kept = []

    @nki.jit
    def kernel(x):
        kept.extend([nisa.register_alloc(5), x])
        assert int(kept[0]) == 5
        return x

    kernel(X.copy())
    with pytest.raises(RuntimeError, match="has ended"):
        int(kept[0])
    with pytest.raises(RuntimeError, match="has ended"):
        bool(kept[0])
    assert str(kept[1]) == "<tensor x [8, 8] float32 in hbm>"


# --- what reaches past an end


def test_slices_past_the_end(monkeypatch):
    past = [lambda x: x[0:20], lambda x: x[9:], lambda x: x[-9:], lambda x: x.slice(0, 0, 20), lambda x: x[nl.ds(4, 8)]]
    for view in past:
        with pytest.warns(sterna.SternaWarning, match="IDX5"):
            nki.jit(lambda x, view=view: (view(x), None)[1])(X.copy())
    monkeypatch.setenv("STERNA_STRICT", "1")
    for view in past:
        with pytest.raises(IndexError, match="IDX5"):
            nki.jit(lambda x, view=view: (view(x), None)[1])(X.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nki.jit(lambda x: (x[0:8], x[-8:], x.slice(0, 0, 8), x[nl.ds(4, 4)], None)[-1])(X.copy())


# --- what `ap` counts its index in


def test_the_index_of_ap_counts_in_the_shape_that_it_is_called_on():
    # As one row of 64 numbers, dimension 1 is a number; in x itself it would be out of range for a vector of 64.
    flat = X.reshape(-1)
    got = copied(
        lambda x: x.reshape((1, 64)).ap(
            [[64, 1], [1, 4]], offset=2, scalar_offset=nisa.register_alloc(5), indirect_dim=1
        ),
        flat,
    )
    np.testing.assert_array_equal(got, flat[np.newaxis, 7:11])


def test_the_index_of_ap_counts_rows_of_a_reshaped_tensor():
    got = copied(
        lambda x: x.reshape((16, 4)).ap([[4, 2], [1, 4]], scalar_offset=nisa.register_alloc(3), indirect_dim=0), X
    )
    np.testing.assert_array_equal(got, X.reshape(16, 4)[3:5])


def test_the_index_of_ap_counts_rows_of_the_whole_tensor_below_a_part():
    got = copied(lambda x: x[0:2, 0:4].ap([[8, 1], [1, 4]], scalar_offset=nisa.register_alloc(3), indirect_dim=0), X)
    np.testing.assert_array_equal(got, X[3:4, 0:4])


def test_the_index_of_ap_along_a_dimension_of_one_row_walks_over_the_dimension_before_it():
    # (4, 4, 1, 4): dimension 2 has one row and the step of dimension 1, whose four rows an index of either can reach.
    def third(x):
        whole = x.reshape((4, 4, 1, 4))
        return whole.ap([[16, 4], [1, 4]], scalar_offset=nisa.register_alloc(3), indirect_dim=2)

    np.testing.assert_array_equal(copied(third, X), X.reshape(4, 4, 4)[:, 3])


# --- starts outside, which oob_mode.skip leaves alone


@pytest.mark.parametrize("start", [-1, 7, 8])
def test_a_dma_from_or_to_a_start_outside_is_skipped(start):
    """nki.isa.dma_copy: skip makes it skip "the DMA transfer for a given dynamic address or index when it is out of bound";
    from row 7 a window of two leaves the tensor."""

    @nki.jit
    def kernel(x, y, mode):
        def window(t):
            return t.ap([[8, 2], [1, 8]], scalar_offset=nisa.register_alloc(start), indirect_dim=0)

        tile = nl.full((2, 8), -1.0, nl.float32)
        nisa.dma_copy(tile, window(x), oob_mode=mode)
        nisa.dma_copy(window(y), tile, oob_mode=mode)
        turned = nl.full((8, 2), -2.0, nl.float32)
        nisa.dma_transpose(turned, window(x), oob_mode=mode)
        outs = [nl.ndarray(t.shape, nl.float32, buffer=nl.shared_hbm) for t in (tile, turned)]
        nl.store(outs[0], tile)
        nl.store(outs[1], turned)
        return *outs, y

    tile, turned, y = kernel(X, X.copy(), nisa.oob_mode.skip)
    np.testing.assert_array_equal(tile, np.full((2, 8), -1, F32))
    np.testing.assert_array_equal(turned, np.full((8, 2), -2, F32))
    np.testing.assert_array_equal(y, X)
    with pytest.raises(sterna.OutOfBounds, match="DYN2" if start == 7 else "DYN1"):
        kernel(X, X.copy(), nisa.oob_mode.error)


def test_dma_compute_starts_where_the_compiler_knows():
    """nki.isa.dma_compute: "compile-time known addresses (unless using vector_offset)"."""

    def body(x):
        at = x[nl.ds(nisa.register_alloc(3), 1)]
        nisa.dma_compute(nl.ndarray((1, 8), nl.float32), [at, at], nl.add)

    with pytest.raises(sterna.RuleError, match="DC5.*scalar_offset"):
        nki.jit(body)(X)


def test_an_offset_tensor_outside_sbuf_is_remarked(monkeypatch):
    """nki.isa.dma_copy: "idx_tensor is an SBUF tensor of shape (P, 1)"."""
    with pytest.warns(match="DMA9.*SBUF"):
        copied(lambda x, index: x.vector_select(0, index), X, ROWS)
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(sterna.RuleError, match="DMA9"):
        copied(lambda x, index: x.vector_select(0, index), X, ROWS)
