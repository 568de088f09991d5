# SPDX-License-Identifier: Apache-2.0
"""Every instruction of nki.isa through Python, against NumPy. The details of each are tested with the instruction itself."""

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.collectives
import nki.isa as nisa
import nki.language as nl
from sterna import RuleError, _core
from sterna.faults import UnknownBehaviour

F32 = np.float32
BF16 = ml_dtypes.bfloat16
LOWEST = np.finfo(F32).min


def new(shape, dtype=nl.float32, **options):
    return nl.ndarray(shape, dtype, **options)


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=F32)


def test_nc_matmul_accumulates_by_default(apply, rng):
    a, b = normal(rng, 64, 32), normal(rng, 64, 48)

    def body(x, y):
        psum = new((32, 48), buffer=nl.psum)
        for _ in range(3):
            nisa.nc_matmul(dst=psum, stationary=x, moving=y)
        made = new((32, 48))
        nisa.tensor_copy(made, psum)
        nisa.nc_matmul(psum, x, y, accumulate=False)
        once = new((32, 48))
        nisa.tensor_copy(once, psum, dtype=nl.float32)
        nisa.tensor_tensor(made, made, once, nl.subtract)
        return made

    want = 2 * (a.T.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(apply(body, a, b), want, rtol=1e-4, atol=1e-4)


def test_a_new_psum_tile_starts_anew(apply, rng):
    a = np.ones((4, 4), F32)

    def body(x):
        total = nl.zeros((4, 4), nl.float32)
        for _ in range(5):
            psum = new((4, 4), buffer=nl.psum)
            nisa.nc_matmul(psum, x, x)
            nisa.tensor_tensor(total, total, psum, nl.add)
        return total

    np.testing.assert_array_equal(apply(body, a), np.full((4, 4), 20, F32))


@pytest.mark.parametrize("engine", [nisa.engine.unknown, nisa.engine.vector])
def test_nc_transpose(engine, apply, rng):
    x = normal(rng, 32, 32)

    def body(t):
        made = new((32, 32), buffer=nl.sbuf if engine == nisa.engine.vector else nl.psum)
        nisa.nc_transpose(made, t, engine=engine)
        return nl.copy(made)

    np.testing.assert_array_equal(apply(body, x), x.T)


def check(apply, f, want, *arrays, shape=None, dtype=nl.float32, exact=True):
    def body(*tiles):
        out = new(shape or tiles[0].shape, dtype)
        f(out, *tiles)
        return out

    got = apply(body, *arrays)
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_elementwise(apply, rng):
    x, y, c = normal(rng, 64, 10), normal(rng, 64, 10), normal(rng, 64, 1)
    check(apply, lambda o, a, b: nisa.tensor_tensor(o, a, b, nl.multiply), x * y, x, y)
    check(
        apply,
        lambda o, a, b: nisa.tensor_tensor(dst=o, data1=a, data2=b, op=nl.add, engine=nisa.engine.gpsimd),
        x + y,
        x,
        y,
    )
    check(apply, lambda o, a, b: nisa.tensor_scalar(o, a, nl.subtract, b, reverse0=True), c - x, x, c)
    check(apply, lambda o, a, b: nisa.tensor_scalar(o, a, nl.multiply, 2.0, False, nl.add, b), x * F32(2) + c, x, c)
    check(
        apply,
        lambda o, a, b, s: nisa.scalar_tensor_tensor(o, a, nl.multiply, s, nl.subtract, b, reverse1=True),
        y - x * c,
        x,
        y,
        c,
    )
    check(apply, lambda o, a: nisa.reciprocal(o, a), F32(1) / x, x)
    check(apply, lambda o, a: nisa.tensor_copy(o, a, engine=nisa.engine.scalar), x, x)
    check(apply, lambda o, a: nisa.memset(o, -3.5), np.full((64, 10), -3.5, F32), x)
    check(
        apply,
        lambda o, a: nisa.memset(o, 7, engine=nisa.engine.gpsimd),
        np.full((64, 10), 7, np.int32),
        x,
        dtype=nl.int32,
    )


def test_predicated(apply, rng):
    x, y, p = normal(rng, 64, 10), normal(rng, 64, 10), rng.integers(0, 2, (64, 10), np.uint8)

    def body(a, b, mask, reverse):
        out = nl.copy(b)
        nisa.tensor_copy_predicated(out, a, mask, reverse_pred=reverse)
        return out

    np.testing.assert_array_equal(apply(lambda a, b, m: body(a, b, m, False), x, y, p), np.where(p, x, y))
    np.testing.assert_array_equal(apply(lambda a, b, m: body(a, b, m, True), x, y, p), np.where(p, y, x))
    column = y[:, :1].copy()
    check(apply, lambda o, a, b, m: nisa.select_reduce(o, m, a, b), np.where(p, x, column), x, column, p)
    largest = np.where(p, x, F32(-9)).max(1, keepdims=True)

    def reduced(o, a, m):
        nisa.select_reduce(
            new(a.shape), m, a, -9.0, reduce_res=o, reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=nl.maximum
        )

    check(apply, reduced, largest, x, p, shape=(64, 1))


def test_reductions(apply, rng):
    x = rng.integers(-20, 20, (64, 3, 12)).astype(F32)  # whole numbers: sums are exact in any order
    check(apply, lambda o, a: nisa.tensor_reduce(o, nl.add, a, axis=2), x.sum(2), x, shape=(64, 3))
    check(
        apply,
        lambda o, a: nisa.tensor_reduce(o, nl.maximum, a, axis=(1, 2), negate=True),
        -x.max((1, 2)).reshape(64, 1),
        x,
        shape=(64, 1),
    )
    check(apply, lambda o, a: nisa.tensor_partition_reduce(o, nl.add, a), x.sum(0, keepdims=True), x, shape=(1, 3, 12))
    flat = x.reshape(64, 36)

    def both(o, a):
        nisa.tensor_scalar_reduce(new(a.shape), data=a, op0=nl.add, operand0=1.0, reduce_op=nl.add, reduce_res=o)

    check(apply, both, (flat + 1).sum(1, keepdims=True), flat, shape=(64, 1))


def test_scans(apply, rng):
    x, y = rng.integers(-5, 5, (64, 12)).astype(F32), rng.integers(-5, 5, (64, 12)).astype(F32)
    check(apply, lambda o, a: nisa.tensor_scalar_cumulative(o, a, nl.multiply, nl.add, 1.0), np.cumsum(x, 1), x)
    small, want, state = np.sign(x), np.empty_like(x), np.full(64, 2, F32)
    for i in range(12):
        state = small[:, i] * state + y[:, i]
        want[:, i] = state
    check(
        apply,
        lambda o, a, b: nisa.tensor_tensor_scan(o, a, b, initial=2.0, op0=nl.multiply, op1=nl.add),
        want,
        small,
        y,
    )


def test_range_select(apply, rng):
    x = normal(rng, 64, 20)
    low, high = rng.integers(0, 10, (64, 1)).astype(F32), rng.integers(8, 20, (64, 1)).astype(F32)
    index = np.arange(20) + 2

    def body(o, a, lo, hi):
        nisa.range_select(
            o, on_true_tile=a, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=lo, bound1=hi, range_start=2
        )

    check(apply, body, np.where((index >= low) & (index < high), x, LOWEST), x, low, high)


def test_statistics(apply, rng):
    x = normal(rng, 64, 40)

    def body(o, a):
        stats = new((64, 6))
        nisa.bn_stats(stats, a)
        nisa.bn_aggr(o, stats)

    v = x.astype(np.float64)
    check(apply, body, np.stack([v.mean(1), v.var(1)], 1), x, shape=(64, 2), exact=False)


def test_search(apply, rng):
    x = np.stack([rng.permutation(40) for _ in range(64)]).astype(F32)
    top = -np.sort(-x, 1)[:, :8]
    where = np.argsort(-x, 1)[:, :8].astype(np.uint32)
    check(apply, lambda o, a: nisa.max8(o, a), top, x, shape=(64, 8))
    check(apply, lambda o, a, v: nisa.nc_find_index8(o, a, v), where, x, top, shape=(64, 8), dtype=nl.uint32)
    check(apply, lambda o, a, v: nisa.nc_match_replace8(o, a, v, imm=-1.0), np.where(x >= 32, F32(-1), x), x, top)


def test_stream_shuffle(apply, rng):
    x = normal(rng, 64, 10)
    mask = list(rng.permutation(32))
    want = np.concatenate([x[:32][mask], x[32:][mask]])
    check(apply, lambda o, a: nisa.nc_stream_shuffle(o, a, [int(m) for m in mask]), want, x)


def test_activation(apply, rng):
    x, b, s = normal(rng, 64, 10), normal(rng, 64, 1), np.abs(normal(rng, 64, 1))
    check(apply, lambda o, a: nisa.activation(o, nl.relu, a, scale=-1.0), np.maximum(-x, 0), x)
    check(apply, lambda o, a, c: nisa.activation(dst=o, op=nl.copy, data=a, bias=c), x + b, x, b)
    check(apply, lambda o, a, c: nisa.activation(dst=o, op=nl.square, data=a, scale=c), (x * s) ** 2, x, s)
    whole = np.round(x * 5)

    def reduced(o, a):
        nisa.activation_reduce(new(a.shape), nl.relu, a, reduce_op=nl.add, reduce_res=o)

    check(apply, reduced, np.maximum(whole, 0).sum(1, keepdims=True), whole, shape=(64, 1))


CONSTANTS = ("copy square sigmoid relu gelu gelu_dx gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx silu silu_dx tanh softplus "
             "mish erf erf_dx exp log sin arctan sqrt rsqrt reciprocal sign abs").split()  # fmt: skip


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_activation_function_is_a_constant(name, apply):
    x = np.full((4, 2), 0.75, F32)
    got = apply(lambda t: t if nisa.activation(t, getattr(nl, name), t) else t, x)
    assert np.isfinite(got).all()


def test_prelu_is_a_constant_without_a_public_slope(apply):
    with pytest.raises(UnknownBehaviour, match="ACT2"):
        apply(lambda t: nisa.activation(t, nl.prelu, t), np.ones((4, 2), F32))


ALU = ("add subtract multiply maximum minimum equal not_equal greater greater_equal less less_equal logical_and logical_or logical_xor "
       "power abs_max abs_min").split()  # fmt: skip


@pytest.mark.parametrize("name", ALU)
def test_every_arithmetic_operator_is_a_constant(name, apply):
    x = np.full((4, 2), 0.75, F32)
    check(
        apply,
        lambda o, a: nisa.tensor_tensor(o, a, a, getattr(nl, name)),
        apply(lambda t: getattr(nl, name)(t, t), x),
        x,
    )


def test_constants_that_are_no_functions(apply, rng):
    x = rng.integers(0, 9, (64, 8)).astype(F32)
    check(
        apply,
        lambda o, a: nisa.tensor_partition_reduce(o, nl.average, a),
        x.sum(0, keepdims=True) / F32(64),
        x,
        shape=(1, 8),
    )
    check(apply, lambda o, a: nisa.tensor_scalar(o, a, nl.bypass, 0.0), x, x)
    assert repr(nl.average) == "nl.average"


def test_sine_as_a_constant_does_not_reduce_its_argument(apply):
    # nki.isa.activation: outside [-pi, pi] the hardware's polynomial leaves the sine; sin(9.0) is about 27.65.
    x = np.full((2, 1), 9.0, F32)
    got = apply(lambda t: t if nisa.activation(t, nl.sin, t) else t, x)
    np.testing.assert_allclose(got, 27.65, rtol=1e-2)


def test_gpsimd(apply, rng):
    p = np.arange(64).reshape(64, 1)
    x = normal(rng, 64, 12)
    i, j = np.arange(3).repeat(4), np.tile(np.arange(4), 3)
    numbers = (5 + 100 * p + 10 * i + j).astype(np.int32)

    def count(o, a):
        nisa.iota(o, [[10, 3], [1, 4]], offset=5, channel_multiplier=100)

    check(apply, count, numbers, x, dtype=nl.int32)
    want = np.where(p - np.arange(12) >= 0, x, F32(-1))
    check(apply, lambda o, a: nisa.affine_select(o, [[-1, 12]], 1, a, -1.0, cmp_op=nl.greater_equal), want, x)
    at = rng.integers(0, 12, (64, 5)).astype(np.uint32)
    check(
        apply, lambda o, a, b: nisa.nc_n_gather(o, a, b), np.take_along_axis(x, at.astype(int), 1), x, at, shape=(64, 5)
    )


def test_local_gather(apply, rng):
    # Within 16 partitions the indices are read partition first, and every partition gathers by all of them.
    x = normal(rng, 16, 12)
    index = rng.integers(0, 12, (16, 2)).astype(np.uint16)
    flat = index.T.reshape(-1).astype(int)
    check(apply, lambda o, a, b: nisa.local_gather(o, a, b), x[:, flat], x, index, shape=(16, 32))


def test_sequence_bounds(apply):
    ids = np.array([[1, 1, 3, 3, 3, 0, 0, 2]], np.int32)
    bounds = [[0, 0, 2, 2, 2, 8, 8, 7], [2, 2, 5, 5, 5, -1, -1, 8]]
    check(
        apply,
        lambda o, a: nisa.sequence_bounds(o, a),
        np.array([bounds], np.int32),
        ids,
        shape=(1, 2, 8),
        dtype=nl.int32,
    )


def test_nonzero_with_count(apply):
    x = np.zeros((17, 6), F32)
    x[0, [1, 4]] = 2.0
    x[16, [0, 3, 5]] = -1.0

    def body(o, a):
        nisa.memset(o, 0)
        nisa.nonzero_with_count(o, a, index_offset=10, padding_val=-7)

    want = np.zeros((17, 7), np.int32)
    want[0] = [11, 14, -7, -7, -7, -7, 2]
    want[16] = [10, 13, 15, -7, -7, -7, 3]
    check(apply, body, want, x, shape=(17, 7), dtype=nl.int32)


def test_every_instruction_has_a_signature_and_a_meaning():
    import inspect

    for name in ("nc_matmul", "tensor_tensor", "dma_copy", "activation", "iota"):
        instruction = getattr(nisa, name)
        assert instruction.__name__ == name and instruction.__doc__
        assert "name" in inspect.signature(instruction).parameters
    assert str(inspect.signature(nisa.max8)) == "(dst, src, name=None)"


def test_nothing_of_the_chip_is_forgotten():
    """Each instruction of the core's table has its Python name."""
    structural = {"alloc", "loop", "while", "if", "end", "device_print"}
    without_a_public_name = {"nc_matmul_sparse", "ring_rank_id"}
    known = structural | without_a_public_name
    missing = [
        name
        for name in _core.instructions()
        if name not in known and not hasattr(nisa, name) and not hasattr(nki.collectives, name)
    ]
    assert missing == []


def test_not_on_this_chip(monkeypatch):
    monkeypatch.setenv("NKI_NC_VERSION", "gen2")

    def kernel(x):
        t = nl.load(x)
        nisa.range_select(new(t.shape), t, nl.greater, nl.less, t[:, 0:1], t[:, 0:1])

    with pytest.raises(RuleError, match="ISA1.*trn1"):
        nki.jit(kernel)(np.ones((4, 4), F32))
    with pytest.raises(RuleError, match="ISA1.*trn1"):
        nki.jit(lambda x: nisa.quantize_mx(x, x, x))(np.ones((4, 4), F32))


def test_a_transpose_within_psum_is_the_vector_engines(apply):
    """ "Vector Engine nc_transpose can read/write from/to either SBUF or PSUM" """
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)

    def turned(t):
        a, b = (nl.ndarray((32, 32), nl.float32, buffer=nl.psum) for _ in range(2))
        nisa.tensor_copy(a, t)
        nisa.nc_transpose(b, a)
        return nl.copy(b)

    np.testing.assert_array_equal(apply(turned, x), x.T)
