# SPDX-License-Identifier: Apache-2.0
"""Views with .indirect(): columns of on-chip tensors by an index tensor (trn3 and later), against NumPy.

What the tensor engine makes of them is compared with the same instruction on operands that NumPy gathered.
"""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna import RuleError, x4
from sterna.faults import NotOnThisChip

F32, U8, U16, BF16 = np.float32, np.uint8, np.uint16, ml_dtypes.bfloat16


@pytest.fixture
def trn3(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")


def new(shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype, **options)


def places(index, n, group=16):
    """Number i of a group of partitions is in partition i mod 16 (tensor engine: 32) of the group, column i / 16."""
    rows = index.shape[0]
    return np.array([[index[r - r % group + i % group, i // group] for i in range(n)] for r in range(rows)], np.int64)


# --- vector and scalar engines


def test_columns_by_index(apply, rng, trn3):
    x = rng.standard_normal((64, 4, 10), dtype=F32)
    index = rng.integers(0, 40, (64, 3)).astype(U16)
    picked = np.take_along_axis(x.reshape(64, 40), places(index, 30), 1)

    def body(t, i):
        view = t.indirect(i, num_elem=30)
        assert view.shape == (64, 30) and view.is_indirect() and t.indirect(i).shape == (64, 48)
        made = new((64, 91))
        nisa.tensor_copy(made[:, 0:30], view)
        nisa.activation(made[:, 30:60], nl.square, view, scale=2.0)
        nisa.tensor_tensor(made[:, 60:90], view, made[:, 0:30], nl.add)
        nisa.tensor_reduce(made[:, 90:91], nl.maximum, view, axis=1)
        return made

    twice = picked * F32(2)
    want = np.hstack([picked, twice * twice, picked + picked, picked.max(1, keepdims=True)])
    np.testing.assert_array_equal(apply(body, x, index), want)


def test_scatter_by_index(apply, rng, trn3):
    x = rng.standard_normal((32, 16), dtype=F32)
    index = np.array([rng.permutation(50)[:16] for _ in range(2)]).reshape(32, 1).astype(np.int32)

    def body(t, i):
        made = nl.zeros((32, 50), nl.bfloat16)
        nisa.tensor_scalar(made.indirect(i), t, nl.multiply, 3.0)
        return made

    want = np.zeros((32, 50), BF16)
    np.put_along_axis(want, places(index, 16), (x * F32(3)).astype(BF16), 1)
    np.testing.assert_array_equal(apply(body, x, index), want)


def test_views_by_index_that_are_refused(apply, rng, monkeypatch):
    x, index = rng.standard_normal((32, 8), dtype=F32), np.zeros((32, 1), np.int32)
    with pytest.raises(NotOnThisChip, match="TI1"):
        apply(lambda t, i: nl.copy(t.indirect(i)), x, index)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    for call, rule in (
        (lambda t, i: t.indirect(i)[:, 0:4], "TI4"),
        (lambda t, i: t.indirect(i).reshape((32, 4, 4)), "TI4"),
        (lambda t, i: t.indirect(i, 33), "TI3"),
        (lambda t, i: nl.copy(t.indirect(i, 17)), "TI3"),
        (lambda t, i: t.indirect(i[0:16]), "TI3"),
        (lambda t, i: nl.transpose(t.indirect(i)), "TI2"),
    ):
        with pytest.raises(RuleError, match=rule):
            apply(lambda t, i, call=call: (call(t, i), t)[1], x, index)
    with pytest.raises(sterna.OutOfBounds, match="DYN1"):
        apply(lambda t, i: nl.copy(t.indirect(i)), x, index + 8)


# --- tensor engine: 32 partitions share a list


@nki.jit
def plain_matmul(s, m, **options):
    psum = nl.ndarray((s.shape[1], m.shape[1]), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(psum, nl.load(s), nl.load(m), **options)
    return stored(psum)


def stored(tile):
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("rows, cols", [(20, 50), (128, 200), (100, 3)])
def test_matmul_gathers_its_operands(rng, trn3, rows, cols):
    s, m = (rng.standard_normal((64, n)).astype(BF16) for n in (150, 220))
    s_index, m_index = (rng.integers(0, n, (64, 7)).astype(U16) for n in (150, 220))

    @nki.jit
    def kernel(s, m, s_index, m_index):
        psum = nl.ndarray((rows, cols), nl.float32, buffer=nl.psum)
        gathered = nl.load(s).indirect(nl.load(s_index), num_elem=rows)
        nisa.nc_matmul(psum, gathered, nl.load(m).indirect(nl.load(m_index), num_elem=cols))
        return stored(psum)

    picked = [np.take_along_axis(x, places(i, n, 32), 1) for x, i, n in ((s, s_index, rows), (m, m_index, cols))]
    np.testing.assert_array_equal(kernel(s, m, s_index, m_index), plain_matmul(*picked))


def test_a_new_index_gathers_anew(rng, trn3):
    x = rng.standard_normal((32, 40)).astype(BF16)
    lists = rng.integers(0, 40, (2, 32, 1)).astype(U16)

    @nki.jit
    def kernel(x, lists):
        data, index = nl.load(x), nl.ndarray((32, 1), nl.uint16)
        made = nl.ndarray((2, 30, 40), nl.float32, buffer=nl.shared_hbm)
        for turn in range(2):
            nisa.dma_copy(index, lists[turn])
            psum = nl.ndarray((30, 40), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(psum, data.indirect(index, num_elem=30), data)
            nl.store(made[turn], psum)
        return made

    want = [plain_matmul(np.take_along_axis(x, places(i, 30, 32), 1), x) for i in lists]
    np.testing.assert_array_equal(kernel(x, lists), np.stack(want))


@pytest.mark.parametrize("accumulate", [False, None, True])
def test_matmul_scatters_its_result(rng, trn3, accumulate):
    rows = 52  # the second group has 20 of 32 partitions; by 16, the last has 4, which do not hold 16 numbers
    s, m = rng.standard_normal((32, rows)).astype(BF16), rng.standard_normal((32, 16)).astype(BF16)
    index = np.array([rng.permutation(50)[:32] for _ in range(2)]).reshape(64, 1).astype(np.int32)[:rows]
    index[:4], index[8] = 2 * np.arange(4)[:, None] + 1, 3  # columns 1 and 8 of rows 0 to 31 share a place

    @nki.jit
    def kernel(s, m, index):
        psum = nl.ndarray((rows, 50), nl.float32, buffer=nl.psum)
        nisa.memset(psum, 0)
        s, m = nl.load(s), nl.load(m)
        if accumulate:
            nisa.nc_matmul(psum, s, nl.zeros((32, 50), nl.bfloat16))
        scattered = psum.indirect(nl.load(index), num_elem=16)
        nisa.nc_matmul(scattered, s, m, accumulate=accumulate)
        nisa.nc_matmul(scattered, s, m, accumulate=accumulate)
        return stored(psum)

    product, at = plain_matmul(s, m), places(index, 16, 32)
    want, written = np.zeros((rows, 50), F32), np.zeros((rows, 50), bool)
    for _ in range(2):
        for c in range(16):
            for r in range(rows):
                adds = accumulate or (accumulate is None and written[r, at[r, c]])
                want[r, at[r, c]] = (want[r, at[r, c]] if adds else 0) + product[r, c]
                written[r, at[r, c]] = True
    np.testing.assert_array_equal(kernel(s, m, index), want)


def test_transpose_gathers_its_data(rng, trn3):
    x = rng.standard_normal((32, 70)).astype(BF16)
    index = rng.integers(0, 70, (32, 2)).astype(U16)

    @nki.jit
    def kernel(x, index):
        identity = nl.shared_identity_matrix(32, nl.bfloat16)
        psum = nl.ndarray((60, 32), nl.bfloat16, buffer=nl.psum)
        nisa.nc_matmul(psum, nl.load(x).indirect(nl.load(index), 60), identity, is_transpose=True)
        return stored(psum)

    np.testing.assert_array_equal(kernel(x, index), np.take_along_axis(x, places(index, 60, 32), 1).T)


@pytest.mark.parametrize("accumulate", [False, None, True])
@pytest.mark.parametrize("twice", [False, True])
def test_transpose_scatters_what_it_moves(rng, trn3, accumulate, twice):
    x = rng.standard_normal((16, 48)).astype(BF16)
    x[3, 5], x[4, 47], x[5, 0], x[6, 7] = np.inf, -np.inf, np.nan, -0.0
    index = np.zeros((48, 1), U16)
    index[:16, 0], index[32:, 0] = rng.permutation(20)[:16], rng.permutation(20)[:16]
    if twice:
        index[1] = index[0]

    @nki.jit
    def kernel(x, index):
        psum = nl.ndarray((48, 20), nl.bfloat16, buffer=nl.psum)
        nisa.memset(psum, 0)
        identity = nl.shared_identity_matrix(16, nl.bfloat16)
        nisa.nc_matmul(
            psum.indirect(nl.load(index), num_elem=16), nl.load(x), identity, is_transpose=True, accumulate=accumulate
        )
        return stored(psum)

    at = places(index, 16, 32)
    want, written = np.zeros((48, 20), BF16), np.zeros((48, 20), bool)
    for c in range(16):
        for r in range(48):
            adds = accumulate or (accumulate is None and written[r, at[r, c]])
            want[r, at[r, c]] = want[r, at[r, c]] + x[c, r] if adds else x[c, r]
            written[r, at[r, c]] = True
    np.testing.assert_array_equal(kernel(x, index).view(U16), want.view(U16))


def _scaled(rng, cols):
    """MX data of 64 partitions, its scales in a tile of as many, and an index of both."""
    data = x4.pack(rng.standard_normal((64, 4 * cols)).astype(F32), x4.float8_e4m3fn_x4)
    scale = np.zeros((64, cols), U8)
    for quadrant in (0, 32):
        scale[quadrant : quadrant + 4] = rng.integers(120, 135, (4, cols))
    return data, scale, rng.integers(0, cols, (64, 3)).astype(U16)


def _mx_kernel(rows, cols, by_index):
    @nki.jit
    def kernel(s, m, s_scale, m_scale, s_index, m_index):
        tiles = []
        for t in (s, m, s_scale, m_scale):
            tile = nl.ndarray(t.shape, t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, t)
            tiles.append(tile)
        if by_index:
            indices = [nl.load(s_index), nl.load(m_index)] * 2
            tiles = [t.indirect(i, n) for t, i, n in zip(tiles, indices, (rows, cols) * 2)]
        psum = nl.ndarray((rows, cols), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, *tiles)
        return stored(psum)

    return kernel


def test_mx_matmul_gathers_data_and_scales(rng, trn3):
    (s, s_scale, s_index), (m, m_scale, m_index) = _scaled(rng, 90), _scaled(rng, 100)
    got = _mx_kernel(40, 70, True)(s, m, s_scale, m_scale, s_index, m_index)

    def picked(x, index, n):
        return np.take_along_axis(x.view(f"u{x.dtype.itemsize}"), places(index, n, 32), 1).view(x.dtype)

    operands = (
        picked(s, s_index, 40),
        picked(m, m_index, 70),
        picked(s_scale, s_index, 40),
        picked(m_scale, m_index, 70),
    )
    np.testing.assert_array_equal(got, _mx_kernel(40, 70, False)(*operands, s_index, m_index))


def _matmul_refusals():
    psum = lambda: new((8, 8), buffer=nl.psum)  # noqa: E731
    return {
        "float32": lambda t, b, i: nisa.nc_matmul(psum(), t.indirect(i, 8), t),
        "moving of a transpose": lambda t, b, i: nisa.nc_matmul(psum(), b, b.indirect(i, 8), is_transpose=True),
        "tile": lambda t, b, i: nisa.nc_matmul(psum(), b.indirect(i, 8), b, tile_position=(32, 0), tile_size=(32, 128)),
    }


@pytest.mark.parametrize("what", list(_matmul_refusals()))
def test_matmuls_by_index_that_are_refused(apply, rng, trn3, what):
    x, index = rng.standard_normal((32, 8), dtype=F32), np.zeros((32, 1), np.int32)
    with pytest.raises(RuleError, match=r"\[TI8\].*test_indirect.py") as caught:
        apply(lambda *tiles: (_matmul_refusals()[what](*tiles), tiles[0])[1], x, x.astype(BF16), index)
    assert "nc_matmul" in str(caught.value)


@pytest.mark.parametrize("changed", range(4))
def test_data_and_scales_have_one_index(rng, trn3, changed):
    data, scale, index = _scaled(rng, 40)

    @nki.jit
    def kernel(data, scale, index):
        tiles = [nl.ndarray(t.shape, t.dtype, buffer=nl.sbuf) for t in (data, scale)]
        for tile, t in zip(tiles, (data, scale)):
            nisa.dma_copy(tile, t)
        one, other = nl.load(index), nl.load(index)
        operands = [tiles[n // 2].indirect(other if n == changed else one, 32) for n in range(4)]
        psum = nl.ndarray((32, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, *operands)
        return stored(psum)

    with pytest.raises(RuleError, match="TI8.*same index"):
        kernel(data, scale, index)


# --- where manually placed tensors start


def _placed(at, memory=nl.sbuf, dtype=nl.bfloat16, cols=8):
    tile = new((32, cols), dtype, buffer=memory, address=(at, 0 if memory == nl.psum else 64 * at))
    nisa.memset(tile, 0)
    return tile


def _index(at):
    tile = new((32, 1), nl.uint16, address=(at, 4096))
    nisa.memset(tile, 0)
    return tile


@pytest.mark.parametrize(
    "what, call",
    {
        "index off a quadrant": lambda: nl.copy(_placed(16).indirect(_index(16))),
        "index elsewhere": lambda: nl.copy(_placed(0).indirect(_index(32))),
        "dst's index elsewhere": lambda: nisa.tensor_copy(_placed(32).indirect(_index(32), 8), _placed(0)),
        "dst's and src's index apart": lambda: nisa.tensor_copy(
            _placed(0).indirect(_index(0), 8), _placed(32, nl.psum).indirect(_index(32), 8)
        ),
        "matmul": lambda: nisa.nc_matmul(
            _placed(0, nl.psum, nl.float32), _placed(0).indirect(_index(32), 32), _placed(0)
        ),
        "matmul's dst": lambda: nisa.nc_matmul(
            new((32, 8), buffer=nl.psum).indirect(_index(32), 8), _placed(0, cols=32), _placed(64)
        ),
    }.items(),
)
def test_base_partitions(apply, trn3, what, call):
    with pytest.raises(RuleError, match=r"\[TI7\]"):
        apply(lambda t: (call(), t)[1], np.zeros((1, 1), F32))


def test_base_partitions_that_fit(apply, trn3):
    def body(t):
        nisa.tensor_copy(_placed(0).indirect(_index(32), 8), _placed(32))
        nisa.tensor_copy(_placed(0).indirect(_index(32), 8), _placed(64, nl.psum))
        nisa.nc_matmul(new((32, 8), buffer=nl.psum), _placed(32).indirect(_index(32), 32), _placed(64, cols=8))
        return t

    apply(body, np.zeros((1, 1), F32))
