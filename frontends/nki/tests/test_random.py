# SPDX-License-Identifier: Apache-2.0
"""Random numbers, stochastic rounding, and the other instructions of NKI 0.6 that came last, against NumPy.

The generators are written here from their published definitions (docs/decisions/0016-random.md), bit by bit.
"""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna import RuleError
from sterna.faults import NotOnThisChip

F32, U32, BF16 = np.float32, np.uint32, ml_dtypes.bfloat16
MASK = 0xFFFFFFFF
VECTOR, GPSIMD, ROUNDING = 0, 1, 2


@pytest.fixture
def trn3(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")


def new(shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype, **options)


# --- the oracle


def splitmix64(seed):
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        yield z ^ (z >> 31)


def xorwow(words):
    x, y, z, w, v, d = (int(n) for n in words)
    while True:
        t = x ^ (x >> 2)
        x, y, z, w, v = y, z, w, v, (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
        d = (d + 362437) & MASK
        yield (d + v) & MASK


def seeded_xorwow(seed, who, state):
    source = splitmix64(seed << 32 | who << 30 | state)
    words = []
    for _ in range(3):
        two = next(source)
        words += [two & MASK, two >> 32]
    return xorwow(words)


def lfsr(seed, lane):
    two = next(splitmix64(seed << 32 | 4 * lane))
    state = two & MASK or two >> 32
    while True:
        for _ in range(32):
            state = (state << 1 & MASK) ^ (0x400007 if state >> 31 else 0)
        yield state


class Vector:
    """The vector engine's generator: draw(n) is what one instruction takes."""

    def __init__(self, lanes, seed, gen4):
        self.lanes = [
            [seeded_xorwow(seed, VECTOR, 4 * i + k) for k in range(4)] if gen4 else [lfsr(seed, i)]
            for i in range(lanes)
        ]

    def draw(self, n):
        return np.array([[next(lane[i % len(lane)]) for i in range(n)] for lane in self.lanes], U32)


def fraction(words):
    return (words >> U32(8)).astype(F32) * F32(2.0**-24)


# --- random numbers


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_rng_on_the_vector_engine(target, apply, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)

    def body(seed):
        nisa.set_rng_seed(seed)
        made = new((128, 10), nl.uint32)
        nisa.rng(made[:, 0:6])
        nisa.rng(dst=made[:, 6:10], engine=nisa.engine.vector)
        return made

    got = apply(body, np.array([[2024]], np.int32))
    vector = Vector(128, 2024, target == "trn3")
    np.testing.assert_array_equal(got, np.hstack([vector.draw(6), vector.draw(4)]))


def test_rng_without_a_seed_is_the_same_each_time(apply, rng):
    def body(t):
        made = new((4, 8), nl.uint16)
        nisa.rng(made)
        return made

    one, two = apply(body, np.zeros((1, 1), F32)), apply(body, np.zeros((1, 1), F32))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, Vector(4, 0, False).draw(8).astype(np.uint16))


def test_states_of_the_gpsimd_engine(apply, rng):
    states = rng.integers(1, 2**32, (128, 6), dtype=U32)

    def body(t):
        made = new((128, 11), nl.uint32)
        nisa.rand_set_state(t)
        nisa.rng(made[:, 0:5], engine=nisa.engine.gpsimd)
        nisa.rand_get_state(made[:, 5:11])
        return made

    got = apply(body, states)
    want = []
    for row in states:
        x, y, z, w, v, d = (int(n) for n in row)
        lane = []
        for _ in range(5):
            t = x ^ (x >> 2)
            x, y, z, w, v = y, z, w, v, (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
            d = (d + 362437) & MASK
            lane.append((d + v) & MASK)
        want.append([*lane, x, y, z, w, v, d])
    np.testing.assert_array_equal(got, np.array(want, U32))


def test_rand2_and_the_vector_state(apply, trn3):
    def body(seed):
        nisa.set_rng_seed(seed)
        state, again, made = new((8, 24), nl.uint32), new((8, 5)), new((8, 5))
        nisa.rand_get_state(state, engine=nisa.engine.vector)
        nisa.rand2(again, -2.0, 3.0)
        nisa.rand_set_state(state, engine=nisa.engine.vector)
        nisa.rand2(dst=made, min=-2.0, max=3.0)
        nisa.tensor_tensor(again, again, made, nl.not_equal)
        both = new((8, 10))
        nisa.tensor_copy(both[:, 0:5], made)
        nisa.tensor_copy(both[:, 5:10], again)
        return both

    got = apply(body, np.array([[5]], U32))
    u = fraction(Vector(8, 5, True).draw(5))
    np.testing.assert_array_equal(got[:, :5], F32(-2) + u * F32(5))
    assert not got[:, 5:].any()


@pytest.mark.parametrize("target", ["trn2", "trn3"])
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum, nl.shared_hbm], ids=repr)
def test_nl_rand_and_random_seed(target, buffer, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)

    @nki.jit
    def kernel(seed_in):
        seed = nl.load(seed_in)
        nl.random_seed(seed)
        a = nl.rand((128, 16), dtype=nl.float32, buffer=buffer)
        if buffer is nl.shared_hbm:
            return a
        out = new((128, 16), buffer=nl.shared_hbm)
        nl.store(out, a)
        return out

    got = kernel(np.array([[42]], np.int32))
    np.testing.assert_array_equal(got, fraction(Vector(128, 42, target == "trn3").draw(16)))


def test_dropout(apply, rng):
    x, p = rng.standard_normal((64, 40)).astype(BF16), rng.random((64, 1), dtype=F32)

    def body(t, prob):
        made = new((64, 80), nl.bfloat16)
        nisa.dropout(made[:, 0:40], t, prob)
        nisa.tensor_copy(made[:, 40:80], nl.dropout(t, rate=0.25))
        return made

    got = apply(body, x, p)
    vector = Vector(64, 0, False)
    want = [np.where(fraction(vector.draw(40)) < bound, BF16(0), x) for bound in (p, F32(0.25))]
    np.testing.assert_array_equal(got, np.hstack(want))
    assert apply(lambda t: nl.dropout(t, 1.0, dtype=nl.float32), x).dtype == F32


def test_instructions_that_a_chip_lacks(apply):
    for call in (
        lambda t: nisa.rand2(t, 0.0, 1.0),
        lambda t: nisa.exponential(t, t),
        lambda t: nisa.activate2(t, nl.exp, t, 1.0, 0.0, nl.multiply, nl.add),
    ):
        with pytest.raises(NotOnThisChip, match="trn2"):
            apply(lambda t, call=call: (call(t), t)[1], np.ones((2, 2), F32))
    with pytest.raises(RuleError, match="RND3"):
        apply(lambda t: (nisa.rand_get_state(t, engine=nisa.engine.vector), t)[1], np.ones((2, 24), U32))


# --- stochastic rounding


def _rounding_words(lanes, n, seed):
    out = []
    for lane in range(lanes):
        state = seeded_xorwow(seed, ROUNDING, lane)
        out.append([next(state) for _ in range(n)])
    return np.array(out, np.uint64)


def _to_bf16(x, words):
    bits = x.view(U32).astype(np.uint64)
    return ((bits >> 16) + (words < (bits & 0xFFFF) << 16)).astype(np.uint16).view(BF16)


ROUNDING_SETTINGS = [
    ({"STERNA_STOCHASTIC_ROUNDING": "12"}, 12),
    ({"NEURON_RT_STOCHASTIC_ROUNDING_EN": "1"}, 0),
    ({"NEURON_RT_STOCHASTIC_ROUNDING_EN": "1", "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "99"}, 99),
    ({"NEURON_RT_STOCHASTIC_ROUNDING_EN": "0", "NEURON_RT_STOCHASTIC_ROUNDING_SEED": "99"}, None),
    ({"STERNA_STOCHASTIC_ROUNDING": "off", "NEURON_RT_STOCHASTIC_ROUNDING_EN": "1"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("setting", "seed"), ROUNDING_SETTINGS, ids=lambda p: str(p))
@pytest.mark.parametrize("threads", ["1", "2"])
def test_stochastic_rounding(setting, seed, threads, apply, rng, monkeypatch):
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STERNA_THREADS", threads)
    x = np.abs(rng.standard_normal((128, 600), dtype=F32)) + F32(0.5)

    def body(t):
        made = new((128, 1200), nl.bfloat16)
        nisa.tensor_copy(made[:, 0:600], t)
        nisa.activation(made[:, 600:1200], nl.copy, t, scale=3.0)
        return made

    got = apply(body, x)
    if seed is None:
        want = np.hstack([x.astype(BF16), (x * F32(3)).astype(BF16)])
    else:
        words = _rounding_words(128, 1200, seed)
        want = np.hstack([_to_bf16(x, words[:, :600]), _to_bf16(x * F32(3), words[:, 600:])])
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("simd", sterna._core.simd_targets())
def test_stochastic_rounding_of_a_matmul_and_a_sum(simd, apply, rng, monkeypatch):
    """The document's example: small steps accumulate. The same bits with every SIMD target."""
    monkeypatch.setenv("STERNA_STOCHASTIC_ROUNDING", "1")

    def body(t):
        for _ in range(200):
            nisa.tensor_scalar(t, t, nl.add, 0.5)
        return t

    before = sterna._core.simd_target()
    try:
        sterna._core.set_simd(simd)
        got = apply(body, np.full((64, 4), 1024, BF16)).astype(F32)
    finally:
        sterna._core.set_simd(before)
    x, words = np.full((64, 4), 1024, F32), _rounding_words(64, 800, 1)
    for step in range(200):
        x = _to_bf16(x + F32(0.5), words[:, 4 * step : 4 * step + 4]).astype(F32)
    np.testing.assert_array_equal(got, x)
    assert abs(got.mean() - 1124) < 5, "1024 + 200 / 2; to nearest it would stay 1024"


def test_a_seed_is_a_number(apply, monkeypatch):
    monkeypatch.setenv("STERNA_STOCHASTIC_ROUNDING", "yes")
    with pytest.raises(sterna.BadInput, match="STERNA_STOCHASTIC_ROUNDING"):
        apply(lambda t: t, np.ones((2, 2), F32))


# --- gen4 functions, topk


def test_exponential(apply, rng, trn3):
    x, top = rng.standard_normal((32, 50), dtype=F32), rng.standard_normal((32, 1), dtype=F32)

    def body(t, m):
        made, total = new((32, 50)), new((32, 1))
        nisa.exponential(made, t, max_value=m, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.exponential(made, t, m, total, nisa.reduce_cmd.load_reduce, reduce_init=100.0)
        both = new((32, 51))
        nisa.tensor_copy(both[:, 0:50], made)
        nisa.tensor_copy(both[:, 50:51], total)
        return both

    got = apply(body, x, top)
    want = np.exp((x - top).astype(np.float64))
    np.testing.assert_allclose(got[:, :50], want, rtol=3e-7)
    np.testing.assert_allclose(got[:, 50], want.sum(1) + 100, rtol=1e-6)


def test_activate2(apply, rng, trn3):
    x, s = rng.standard_normal((32, 50), dtype=F32), rng.standard_normal((32, 1), dtype=F32)

    def body(t, scale):
        made, largest = new((32, 51)), new((32, 1))
        nisa.activate2(
            dst=made[:, 0:50],
            op=nl.relu,
            data=t,
            imm0=scale,
            imm1=0.5,
            op0=nl.multiply,
            op1=nl.subtract,
            reverse1=True,
            reduce_op=nl.maximum,
            reduce_res=largest,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.tensor_copy(made[:, 50:51], largest)
        return made

    want = np.maximum(F32(0.5) - x * s, F32(0))
    np.testing.assert_array_equal(apply(body, x, s), np.hstack([want, want.max(1, keepdims=True)]))
    slopes = apply(lambda t, s: (nisa.activate2(t, nl.prelu, t, 0.0, 0.0, nl.bypass, nl.bypass, s), t)[1], x, s)
    np.testing.assert_array_equal(slopes, np.where(x > 0, x, x * s))


def test_topk(apply, rng):
    n, k = 70, 12
    x = rng.permutation(48 * 5).reshape(48, 5).astype(BF16)

    def body(t):
        values, places = new((48, k), nl.bfloat16), new((48, k), nl.uint32)
        nisa.topk(values, places, t, n=n)
        both = new((48, 2 * k))
        nisa.tensor_copy(both[:, 0:k], values)
        nisa.tensor_copy(both[:, k : 2 * k], places)
        return both

    got = apply(body, x)
    for group in range(3):
        flat = x[16 * group : 16 * group + 16].T.ravel()[:n].astype(F32)
        order = np.argsort(flat)[-k:]
        np.testing.assert_array_equal(
            got[16 * group : 16 * group + 16], np.tile(np.hstack([flat[order], order]), (16, 1))
        )


def test_gather_flattened(apply, rng):
    data, indices = rng.standard_normal((128, 2, 32), dtype=F32), rng.integers(0, 64, (128, 20)).astype(np.int32)
    want = np.take_along_axis(data.reshape(128, 64), indices, 1)
    np.testing.assert_array_equal(apply(nl.gather_flattened, data, indices), want)
    got = apply(lambda d, i: nl.gather_flattened(d, i, 0, nl.bfloat16), data, indices.astype(U32))
    np.testing.assert_array_equal(got, want.astype(BF16))
    with pytest.raises(sterna.BadInput, match="GF1"):
        apply(lambda d, i: nl.gather_flattened(d, i, axis=1), data, indices)


# --- names and views


def test_rearrange(apply, rng):
    x = rng.standard_normal((16, 24), dtype=F32)
    got = apply(lambda t: nl.copy(t.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})), x)
    np.testing.assert_array_equal(got, x.reshape(16, 4, 6).transpose(0, 2, 1))
    got = apply(lambda t: t.reshape((16, 4, 6)).rearrange(("p", "a", "b"), ("p", ("a", "b"))), x)
    np.testing.assert_array_equal(got, x)
    for src, dst, sizes in (
        (("b", ("h", "w")), ("b", "w", "h"), None),
        (("b", ("h", "w")), ("b", "w", "h"), {"h": 5}),
        (("b", "h"), ("b", "h", "w"), None),
    ):
        with pytest.raises(sterna.BadInput, match="VIEW8"):
            apply(lambda t, src=src, dst=dst, sizes=sizes: t.rearrange(src, dst, sizes), x)


def test_constants_from_a_path(tmp_path):
    values = np.arange(12, dtype=F32).reshape(3, 4)
    np.save(tmp_path / "c.npy", values)

    @nki.jit
    def kernel(x):
        out = new((2, 3, 4), buffer=nl.shared_hbm)
        nl.store(out[0], nl.load(nl.shared_constant(constant=values)))
        nl.store(out[1], nl.load(nl.shared_constant(tmp_path / "c.npy")))
        return out

    np.testing.assert_array_equal(kernel(values), np.stack([values, values]))


def test_options_by_position(apply, rng):
    x = rng.standard_normal((8, 6), dtype=F32)
    assert apply(lambda t: nl.copy(t, nl.bfloat16), x).dtype == BF16
    np.testing.assert_array_equal(apply(lambda t: nl.max(t, 1, nl.float32, True), x), x.max(1, keepdims=True))
    assert apply(lambda t: nl.broadcast_to(t[:, 0:1], (8, 4), nl.float16), x).shape == (8, 4)
    assert nl.MemoryRegion.private_hbm is nl.hbm
