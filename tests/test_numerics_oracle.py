# SPDX-License-Identifier: Apache-2.0
"""Conversions against ml_dtypes and NumPy, which share no code with Sterna.

Every pattern of each 8- and 16-bit format is decoded; every fp32 that is a widened 16-bit pattern, every value of the
format, every half-way point and their fp32 neighbours are encoded. NaN converts to one canonical NaN in Sterna and keeps
its sign and payload in ml_dtypes, so of a NaN only that it is one is compared.
"""

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")
core = pytest.importorskip("sterna._core")

FLOATS = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
INTEGERS = {n: np.dtype(n).type for n in ("int8", "uint8", "int16", "uint16", "int32", "uint32")}
CANONICAL_NAN = 0x7FC00000


def release_of(module):
    return [int(part) for part in module.__version__.split(".")[:2]]


def decode(name, bits):
    return np.frombuffer(core.decode(name, bits.tobytes()), np.float32)


def encode(name, floats, unsigned):
    return np.frombuffer(core.encode(name, np.asarray(floats, np.float32).tobytes()), unsigned)


def unsigned_of(dtype):
    return np.dtype(f"u{np.dtype(dtype).itemsize}")


def all_patterns(dtype):
    unsigned = unsigned_of(dtype)
    return np.arange(2 ** (8 * unsigned.itemsize), dtype=np.uint64).astype(unsigned)


def widened_16_bit():
    """All bfloat16 patterns as fp32."""
    return (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)


def with_neighbours(values):
    values = np.asarray(values, np.float32)
    with np.errstate(all="ignore"):
        return np.concatenate(
            [values, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))]
        )


def interesting(dtype):
    """The values of a format and the points half-way between neighbours, the one beyond the largest included."""
    with np.errstate(all="ignore"):
        values = all_patterns(dtype).view(dtype).astype(np.float32).astype(np.float64)
        values = np.unique(values[np.isfinite(values)])
        ends = [values[0] - (values[1] - values[0]), values[-1] + (values[-1] - values[-2])]
        values = np.concatenate([ends[:1], values, ends[1:]])
        middles = (values[1:] + values[:-1]) / 2
        return np.concatenate([with_neighbours(values), with_neighbours(middles)])


def test_inputs(dtype):
    random = np.random.default_rng(7).integers(0, 1 << 32, 1 << 18, dtype=np.uint64).astype(np.uint32).view(np.float32)
    subnormal = np.arange(0, 1 << 24, 1013, dtype=np.uint32).view(np.float32)
    return np.concatenate([widened_16_bit(), interesting(dtype), random, subnormal])


test_inputs.__test__ = False


def assert_same_bits(got, want, inputs):
    wrong = np.nonzero(got != want)[0]
    sample = [(inputs[i], hex(got[i]), hex(want[i])) for i in wrong[:8]]
    assert wrong.size == 0, f"{wrong.size} of {got.size} differ; (input, got, wanted): {sample}"


@pytest.mark.parametrize("name", FLOATS)
def test_decode_every_pattern(name):
    bits = all_patterns(FLOATS[name])
    if name == "float4_e2m1fn":
        bits = bits[:16]
    got = decode(name, bits)
    want = bits.view(FLOATS[name]).astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert (got[np.isnan(got)].view(np.uint32) == CANONICAL_NAN).all()
    numbers = ~np.isnan(want)
    assert_same_bits(got[numbers].view(np.uint32), want[numbers].view(np.uint32), bits[numbers])


@pytest.mark.parametrize("name", FLOATS)
def test_encode(name):
    dtype, unsigned = FLOATS[name], unsigned_of(FLOATS[name])
    inputs = test_inputs(dtype)
    if name == "float8_e8m0fnu" and release_of(ml_dtypes) < [0, 7]:  # it took all above 2^-127 to 2^-126
        bits = inputs.view(np.uint32)
        inputs = inputs[(bits <= 0x00400000) | (bits >= 0x00600000)]
    got = encode(name, inputs, unsigned)
    with np.errstate(all="ignore"):
        wanted = inputs.astype(dtype)
        is_nan = np.isnan(wanted.astype(np.float32))
    if name == "float4_e2m1fn":
        # No NaN in the format, and no meaning in what ml_dtypes makes of one: Sterna gives the largest value, sign kept.
        is_nan = np.isnan(inputs)
        assert_same_bits(got[is_nan], np.where(np.signbit(inputs[is_nan]), 15, 7).astype(np.uint8), inputs[is_nan])
    else:
        assert is_nan.any()
        assert np.array_equal(is_nan, np.isnan(got.view(dtype).astype(np.float32)))
        assert np.unique(got[is_nan]).size == 1  # canonical
    assert_same_bits(got[~is_nan], wanted.view(unsigned)[~is_nan], inputs[~is_nan])


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    dtype = INTEGERS[name]
    limits = np.iinfo(dtype)
    edges = np.arange(-4.0, 4.25, 0.25)
    edges = np.concatenate(
        [edges + b for b in (0.0, 127.0, 255.0, -128.0, 32767.0, 65535.0, -32768.0, 2.0**31, 2.0**32, -(2.0**31))]
    )
    inputs = np.concatenate([with_neighbours(edges), test_inputs(np.float16)])
    with np.errstate(all="ignore"):
        rounded = np.rint(inputs.astype(np.float64))  # every step exact in double
        wanted = np.where(np.isnan(rounded), 0, np.clip(rounded, limits.min, limits.max)).astype(np.int64)
    got = encode(name, inputs, unsigned_of(dtype)).view(dtype)
    assert np.array_equal(got.astype(np.int64), wanted)

    if np.dtype(dtype).itemsize < 4:
        bits = all_patterns(dtype)
    else:
        bits = np.random.default_rng(3).integers(0, 1 << 32, 1 << 18, dtype=np.uint64).astype(np.uint32)
        bits = np.concatenate(
            [bits, np.arange((1 << 24) - 100, (1 << 24) + 1000, dtype=np.uint32), ~np.arange(1000, dtype=np.uint32)]
        )
    values = bits.view(dtype)
    assert_same_bits(decode(name, bits).view(np.uint32), values.astype(np.float32).view(np.uint32), values)


def test_bool():
    inputs = test_inputs(np.float16)
    with np.errstate(all="ignore"):
        wanted = inputs.astype(bool).view(np.uint8)  # NumPy: NaN is true
    assert np.array_equal(encode("bool", inputs, np.uint8), wanted)
    assert np.array_equal(
        decode("bool", np.arange(256, dtype=np.uint8)), np.minimum(np.arange(256), 1).astype(np.float32)
    )


def test_tfloat32():
    """ml_dtypes has no tfloat32: in double, the nearest multiple of the last place, by np.rint's ties to even."""
    base = np.concatenate([widened_16_bit(), (np.arange(1 << 20, dtype=np.uint32) << 12).view(np.float32)])
    inputs = np.concatenate([with_neighbours(base), test_inputs(np.float16)])
    got = encode("tfloat32", inputs, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        exact = inputs.astype(np.float64)
        _, exponent = np.frexp(
            exact
        )  # |x| = m * 2^exponent, m in [1/2, 1): the 11th significant bit is 2^(exponent - 11)
        last_place = np.ldexp(1.0, np.maximum(exponent - 11, -136))
        wanted = (np.rint(exact / last_place) * last_place).astype(np.float32)  # beyond fp32's range: infinity
        wanted = np.where(np.isinf(inputs), inputs, wanted)
    is_nan = np.isnan(inputs)
    assert (got[is_nan].view(np.uint32) == CANONICAL_NAN).all()
    assert_same_bits(got[~is_nan].view(np.uint32), wanted[~is_nan].view(np.uint32), inputs[~is_nan])
    assert np.array_equal(decode("tfloat32", got.view(np.uint32)).view(np.uint32), got.view(np.uint32))


def test_float32_is_the_identity():
    bits = np.concatenate([widened_16_bit(), with_neighbours([1.0, np.nan])]).view(np.uint32)
    assert np.array_equal(decode("float32", bits).view(np.uint32), bits)
    assert np.array_equal(encode("float32", bits.view(np.float32), np.uint32), bits)
