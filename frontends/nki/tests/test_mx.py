# SPDX-License-Identifier: Apache-2.0
"""Block-scaled (MX) formats: quantize_mx, nc_matmul_mx, x4 types; against NumPy.

The oracle: scales from the exponent of the largest magnitude, elements by ml_dtypes; a product is one chain of fp32 sums over partitions
and, within each, over the four packed elements. Products and sums of such numbers are exact in fp64: each step rounds once.
"""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import _core, x4
from sterna.faults import RuleError

F32, BF16, U8 = np.float32, ml_dtypes.bfloat16, np.uint8
ELEMENT = {
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8, 448),
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 15, 57344),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 2, 6),
}
FP8 = ["float8_e4m3fn_x4", "float8_e5m2_x4"]


@pytest.fixture(autouse=True)
def trn3(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")


def quantize(x, name, older=False):
    """Elements [P, F] and scale bits [P / 8, F / 4] of bfloat16 or float16 numbers."""
    element, e_max, largest = ELEMENT[name]
    x = x.astype(F32)
    p, f = x.shape
    blocks = np.abs(x).reshape(p // 8, 8, f // 4, 4).max((1, 3))
    exponent = np.where(blocks == 0, -1000, np.frexp(blocks)[1] - 1)
    scale = np.maximum(exponent - (e_max if older else e_max - 1) + 127, 0)
    divided = np.ldexp(x.astype(np.float64), 127 - scale.repeat(8, 0).repeat(4, 1))
    return np.clip(divided, -largest, largest).astype(F32).astype(element), scale.astype(U8)


def words(elements, name):
    """Elements as the integers that hold four of them."""
    bits = elements.view(U8)
    if name in FP8:
        return np.ascontiguousarray(bits).view(np.uint32)
    grouped = bits.reshape(*bits.shape[:-1], -1, 4).astype(np.uint16)
    return (grouped << np.arange(0, 16, 4, dtype=np.uint16)).sum(-1, dtype=np.uint16)


def dequantize(elements, scale):
    """[4 P, F / 4] in the order of the contraction."""
    p, f = elements.shape
    values = elements.astype(np.float64) * np.exp2(scale.astype(np.float64) - 127).repeat(8, 0).repeat(4, 1)
    return values.astype(F32).reshape(p, f // 4, 4).transpose(0, 2, 1).reshape(4 * p, f // 4)


def chain(stationary, moving):
    """stationary^T @ moving, contraction index ascending, each step rounded once."""
    total = np.zeros((stationary.shape[1], moving.shape[1]), F32)
    for s, m in zip(stationary.astype(np.float64), moving.astype(np.float64)):
        total = (total.astype(np.float64) + np.outer(s, m)).astype(F32)
    return total


def spread(scale, partitions):
    """Scales in the quadrants of their data."""
    if partitions == 32:
        return scale
    out = np.zeros((partitions, scale.shape[1]), U8)
    for i, row in enumerate(scale):
        out[i // 4 * 32 + i % 4] = row
    return out


def numbers(rng, shape, dtype=BF16):
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(dtype)


@nki.jit
def quantize_kernel(x, dtype, scale_dtype=nl.uint8):
    p, f = x.shape
    data = nl.ndarray((p, f // 4), dtype, buffer=nl.sbuf)
    scale = nl.ndarray((p // 8 if p == 32 else p, f // 4), scale_dtype, buffer=nl.sbuf)
    nisa.memset(scale, 0)
    nisa.quantize_mx(dst=data, src=nl.load(x), dst_scale=scale)
    out, out_scale = (nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm) for t in (data, scale))
    nisa.dma_copy(dst=out, src=data)
    nisa.dma_copy(dst=out_scale, src=scale)
    return out, out_scale


@nki.jit
def matmul_kernel(s, m, s_scale, m_scale, dtype=nl.float32, times=1, **options):
    tiles = [nl.ndarray(t.shape, t.dtype, buffer=nl.sbuf) for t in (s, m, s_scale, m_scale)]
    for tile, t in zip(tiles, (s, m, s_scale, m_scale)):
        nisa.dma_copy(dst=tile, src=t)
    s, m, s_scale, m_scale = tiles
    psum = nl.ndarray((s.shape[1], m.shape[1]), dtype, buffer=nl.psum)
    for _ in range(times):
        nisa.nc_matmul_mx(dst=psum, stationary=s, moving=m, stationary_scale=s_scale, moving_scale=m_scale, **options)
    out = nl.ndarray(psum.shape, dtype, buffer=nl.shared_hbm)
    nl.store(out, psum)
    return out


# --- quantize_mx


@pytest.mark.parametrize("dtype", FP8)
@pytest.mark.parametrize("partitions", [32, 64, 128])
@pytest.mark.parametrize("source", [BF16, np.float16])
def test_quantize(rng, dtype, partitions, source):
    x = numbers(rng, (partitions, 520), source)
    data, scale = quantize_kernel(x, getattr(nl, dtype))
    want, want_scale = quantize(x, dtype)
    assert data.dtype == x4.DTYPES[dtype] and str(data.dtype) == dtype
    np.testing.assert_array_equal(data.view(np.uint32), words(want, dtype))
    np.testing.assert_array_equal(scale, spread(want_scale, partitions))


def test_quantize_scales_as_their_own_type(rng):
    x = numbers(rng, (32, 16))
    scale = quantize_kernel(x, nl.float8_e4m3fn_x4, nl.float8_e8m0fnu)[1]
    assert scale.dtype == ml_dtypes.float8_e8m0fnu
    np.testing.assert_array_equal(scale.view(U8), quantize(x, "float8_e4m3fn_x4")[1])


@pytest.mark.parametrize(("version", "older"), [("0.3", True), ("0.4.1", True), ("0.5", False), ("0.6", False)])
def test_the_scale_doubled_in_nki_0_5(rng, monkeypatch, version, older):
    monkeypatch.setenv("STERNA_NKI_VERSION", version)
    x = numbers(rng, (32, 64))
    data, scale = quantize_kernel(x, nl.float8_e4m3fn_x4)
    want, want_scale = quantize(x, "float8_e4m3fn_x4", older)
    np.testing.assert_array_equal(scale, want_scale)
    np.testing.assert_array_equal(data.view(np.uint32), words(want, "float8_e4m3fn_x4"))


def test_rows_between_scales(monkeypatch):
    """Never written since NKI 0.6, zero before."""

    @nki.jit
    def kernel(x):
        scale = nl.ndarray((32, 1), nl.uint8, buffer=nl.sbuf)
        nisa.quantize_mx(nl.ndarray((32, 1), nl.float8_e5m2_x4, buffer=nl.sbuf), nl.load(x), scale)
        out = nl.ndarray((32, 1), nl.uint8, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=scale)
        return out

    x = np.ones((32, 4), BF16)
    with pytest.raises(RuleError, match="OUT2|UNINIT1"):
        kernel(x)
    monkeypatch.setenv("STERNA_NKI_VERSION", "0.5")
    assert kernel(x).ravel().tolist() == [127 - 14] * 4 + [0] * 28


def test_quantize_special_values():
    x = np.zeros((32, 16), F32)
    x[0, :4] = np.inf, -np.inf, np.nan, 1
    x[8, 4:8] = np.exp2(-130), 0, -0.0, 0
    data, scale = quantize_kernel(x.astype(BF16), nl.float8_e5m2_x4)
    values = x4.static_cast(data, F32)
    assert (scale[0, 0], scale[1, 1], scale[2, 2]) == (255 - 14, 0, 0)
    assert values[0, 0] == 57344 and values[0, 1] == -57344 and np.isnan(values[0, 2]) and values[0, 3] == 0
    assert values[8, 4] == 0.125 and np.signbit(values[8, 6])


def test_quantize_views_of_scales(rng):
    """Four rows of each quadrant are written, from partition 4 of it; a view of more dimensions is a row of blocks."""
    x = numbers(rng, (64, 32))

    @nki.jit
    def kernel(x):
        src = nl.load(x).reshape((64, 2, 16))
        data = nl.ndarray((64, 2, 6), nl.float8_e5m2_x4, buffer=nl.sbuf)
        scale = nl.ndarray((64, 20), nl.uint8, buffer=nl.sbuf)
        nisa.memset(data, 0)
        nisa.memset(scale, 7)
        nisa.quantize_mx(dst=data[:, :, 1:5], src=src, dst_scale=scale[4:, 6:14])
        out, out_scale = (nl.ndarray(t.shape, t.dtype, buffer=nl.shared_hbm) for t in (data, scale))
        nisa.dma_copy(dst=out, src=data)
        nisa.dma_copy(dst=out_scale, src=scale)
        return out, out_scale

    data, scale = kernel(x)
    want, want_scale = quantize(x, "float8_e5m2_x4")
    np.testing.assert_array_equal(data.view(np.uint32)[:, :, 1:5], words(want, "float8_e5m2_x4").reshape(64, 2, 4))
    assert not data.view(np.uint32)[:, :, [0, 5]].any()
    whole = np.full((64, 20), 7, U8)
    whole[4:8, 6:14], whole[36:40, 6:14] = want_scale[:4], want_scale[4:]
    np.testing.assert_array_equal(scale, whole)


# --- nc_matmul_mx


def operands(rng, s_type, m_type, partitions, rows, cols):
    """(array, elements, scale bits) of both operands; fp4 is quantised by the oracle, as the chip cannot."""
    out = []
    for name, n in ((s_type, rows), (m_type, cols)):
        elements, scale = quantize(numbers(rng, (partitions, 4 * n)), name)
        out.append((words(elements, name).view(x4.DTYPES[name]), elements, scale))
    return out


@pytest.mark.parametrize("s_type", ELEMENT)
@pytest.mark.parametrize("m_type", ELEMENT)
@pytest.mark.parametrize(("partitions", "rows", "cols"), [(32, 2, 1), (64, 14, 45), (128, 128, 512)])
def test_matmul(rng, s_type, m_type, partitions, rows, cols):
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, s_type, m_type, partitions, rows, cols)
    got = matmul_kernel(s, m, spread(s_x, partitions), spread(m_x, partitions))
    np.testing.assert_array_equal(got, chain(dequantize(s_e, s_x), dequantize(m_e, m_x)))


def test_matmul_is_the_same_on_every_target_and_thread_count(rng, monkeypatch):
    (s, _, s_x), (m, _, m_x) = operands(rng, "float8_e4m3fn_x4", "float4_e2m1fn_x4", 128, 100, 333)
    before, results = _core.simd_target(), []
    try:
        for target in _core.simd_targets():
            _core.set_simd(target)
            for threads in ("1", "2"):
                monkeypatch.setenv("STERNA_THREADS", threads)
                results.append(matmul_kernel(s, m, spread(s_x, 128), spread(m_x, 128)).tobytes())
    finally:
        _core.set_simd(before)
    assert len(results) >= 2 and len(set(results)) == 1


@pytest.mark.parametrize("accumulate", [None, False, True])
def test_matmul_accumulates(rng, accumulate):
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, *FP8, 32, 4, 6)
    once = chain(dequantize(s_e, s_x), dequantize(m_e, m_x))
    if accumulate:
        with pytest.raises(RuleError, match="UNINIT1"):
            matmul_kernel(s, m, s_x, m_x, accumulate=True)
        return
    got = matmul_kernel(s, m, s_x, m_x, times=2, accumulate=accumulate)
    np.testing.assert_array_equal(got, once + once if accumulate is None else once)


def test_matmul_into_bfloat16(rng):
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, *FP8, 64, 4, 6)
    value = chain(dequantize(s_e, s_x), dequantize(m_e, m_x))
    got = matmul_kernel(s, m, spread(s_x, 64), spread(m_x, 64), nl.bfloat16, 2)
    want = (value.astype(BF16).astype(F32) + value).astype(BF16)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_wide_moving(rng):
    """4096 columns of float32: eight banks of PSUM."""
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, *FP8, 32, 2, 4096)
    np.testing.assert_array_equal(matmul_kernel(s, m, s_x, m_x), chain(dequantize(s_e, s_x), dequantize(m_e, m_x)))


def test_row_tiles(rng):
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, *FP8, 64, 4, 6)
    scales = spread(s_x, 64), spread(m_x, 64)
    got = matmul_kernel(s, m, *scales, tile_position=(64, 0), tile_size=(64, 128))
    np.testing.assert_array_equal(got, chain(dequantize(s_e, s_x), dequantize(m_e, m_x)))
    for position, size, rule in (
        ((0, 0), (32, 128), "TILE4"),
        ((64, 64), (64, 64), "TILE2"),
        ((32, 0), (64, 128), "TILE3"),
    ):
        with pytest.raises(RuleError, match=rule):
            matmul_kernel(s, m, *scales, tile_position=position, tile_size=size)


def test_changed_scales_are_seen(rng):
    """Operands are kept in packed form: not longer than their data and their scales stay."""
    (s, s_e, s_x), (m, m_e, m_x) = operands(rng, *FP8, 32, 2, 3)

    @nki.jit
    def kernel(s, m, s_scale, m_scale):
        tiles = [nl.ndarray(t.shape, t.dtype, buffer=nl.sbuf) for t in (s, m, s_scale, m_scale)]
        for tile, t in zip(tiles, (s, m, s_scale, m_scale)):
            nisa.dma_copy(dst=tile, src=t)
        results = []
        for _ in range(2):
            psum = nl.ndarray((2, 3), nl.float32, buffer=nl.psum)
            nisa.nc_matmul_mx(psum, tiles[0], tiles[1], tiles[2], tiles[3])
            out = nl.ndarray((2, 3), nl.float32, buffer=nl.shared_hbm)
            nl.store(out, psum)
            results.append(out)
            nisa.memset(tiles[3], 127)
        return results

    first, second = kernel(s, m, s_x, m_x)
    np.testing.assert_array_equal(first, chain(dequantize(s_e, s_x), dequantize(m_e, m_x)))
    np.testing.assert_array_equal(second, chain(dequantize(s_e, s_x), dequantize(m_e, np.full_like(m_x, 127))))


def test_quantised_on_the_chip_and_multiplied_with_packed_scales(rng):
    """Scales of both operands in one tile, 4 partitions apart in each quadrant."""
    a, b = numbers(rng, (128, 4 * 8)), numbers(rng, (128, 4 * 24))

    @nki.jit
    def kernel(a, b):
        scale = nl.ndarray((128, 24), nl.uint8, buffer=nl.sbuf)
        tiles = []
        for x, view in ((a, scale[0:, :8]), (b, scale[4:, :])):
            data = nl.ndarray((128, x.shape[1] // 4), nl.float8_e4m3fn_x4, buffer=nl.sbuf)
            nisa.quantize_mx(dst=data, src=nl.load(x), dst_scale=view)
            tiles.append((data, view))
        (s, s_scale), (m, m_scale) = tiles
        psum = nl.ndarray((8, 24), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(psum, s, m, s_scale, m_scale)
        out = nl.ndarray((8, 24), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, psum)
        return out

    want = chain(*(dequantize(*quantize(x, "float8_e4m3fn_x4")) for x in (a, b)))
    np.testing.assert_array_equal(kernel(a, b), want)


# --- x4 types


def test_packed_views_and_moves(rng):
    """Bytes, words and x4 elements are views of one another, in HBM and in SBUF."""
    raw = rng.integers(0, 256, (32, 64), dtype=U8)

    @nki.jit
    def kernel(raw, dtype):
        n = 64 // (2 if dtype == nl.float4_e2m1fn_x4 else 4)
        seen = raw.ap(pattern=[[n, 32], [1, n]], dtype=dtype)
        tile = nl.ndarray((32, n), dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=seen)
        copied = nl.ndarray((32, n), dtype, buffer=nl.sbuf)
        nisa.memset(copied, 0)
        nisa.tensor_copy(dst=copied, src=tile)
        as_bytes = nl.ndarray((32, 64), nl.uint8, buffer=nl.sbuf)
        nisa.tensor_copy(dst=as_bytes, src=copied.view(nl.uint8))
        wide = nl.uint16 if dtype == nl.float4_e2m1fn_x4 else nl.uint32
        out, out_words = (
            nl.ndarray((32, 64), nl.uint8, buffer=nl.shared_hbm),
            nl.ndarray((32, n), wide, buffer=nl.shared_hbm),
        )
        nisa.dma_copy(dst=out, src=as_bytes)
        nisa.dma_copy(dst=out_words, src=copied.view(wide))
        back = nl.ndarray((32, n), dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=back, src=copied.view(wide).view(dtype))
        return out, out_words, back

    for name in ELEMENT:
        out, out_words, back = kernel(raw, getattr(nl, name))
        np.testing.assert_array_equal(out, raw)
        np.testing.assert_array_equal(out_words.view(U8), raw)
        assert back.dtype == x4.DTYPES[name]
        np.testing.assert_array_equal(back.view(U8), raw)


def test_fp8_view_of_packed_elements(rng):
    elements, _ = quantize(numbers(rng, (32, 16)), "float8_e4m3fn_x4")

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        wide = nl.ndarray((32, 16), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=wide, src=tile.view(nl.float8_e4m3fn))
        out = nl.ndarray((32, 16), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, wide)
        return out

    got = kernel(words(elements, "float8_e4m3fn_x4").view(x4.float8_e4m3fn_x4))
    np.testing.assert_array_equal(got, elements.astype(F32))


def test_packed_elements_are_not_computed_with(rng):
    x = np.zeros((32, 4), x4.float8_e4m3fn_x4)

    def tile_of(x):
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        return tile

    def to_float(x):
        nisa.tensor_copy(dst=nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf), src=tile_of(x))

    def add(x):
        nisa.tensor_tensor(nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf), tile_of(x), tile_of(x), nl.add)

    def memset(x):
        nisa.memset(tile_of(x), 1)

    for kernel, rule in ((to_float, "PACK1"), (add, "PACK1"), (memset, "MEMSET1")):
        with pytest.raises(RuleError, match=rule):
            nki.jit(kernel)(x)


@pytest.mark.parametrize("name", ELEMENT)
def test_numpy_dtype(name):
    dtype = x4.DTYPES[name]
    assert (str(dtype), dtype.name, dtype.itemsize) == (name, name, 2 if "float4" in name else 4)
    assert {dtype: 1}[np.dtype(dtype)] == 1 and len({*x4.DTYPES.values()}) == 3
    assert getattr(nl, name) == dtype and dtype != np.uint32
    zeros = np.zeros((2, 3), dtype=getattr(nl, name))
    assert zeros.dtype == dtype and not zeros.view(U8).any() and (zeros == zeros.copy()).all()
    with pytest.raises(TypeError):
        zeros.astype(np.float32)
    with pytest.raises(TypeError):
        np.ones((2, 4), F32).astype(dtype)


@pytest.mark.parametrize("name", ELEMENT)
def test_static_cast(rng, name):
    values = numbers(rng, (3, 5, 8), F32)
    packed = x4.static_cast(values, x4.DTYPES[name])
    assert packed.dtype == x4.DTYPES[name] and packed.shape == (3, 5, 2)
    want = values.astype(ELEMENT[name][0])
    np.testing.assert_array_equal(packed.view(np.uint16 if "float4" in name else np.uint32), words(want, name))
    np.testing.assert_array_equal(x4.static_cast(packed, F32), want.astype(F32))
    np.testing.assert_array_equal(x4.static_cast(packed, nl.bfloat16), want.astype(F32).astype(BF16))
    assert x4.static_cast(packed, packed.dtype) is packed
    np.testing.assert_array_equal(x4.static_cast(values, "float16"), values.astype(np.float16))
    with pytest.raises(ValueError, match="multiple of 4"):
        x4.static_cast(values[..., :6], packed.dtype)
