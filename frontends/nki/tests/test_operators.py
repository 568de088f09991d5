# SPDX-License-Identifier: Apache-2.0
"""Operators of nki.language on tiles, against NumPy. Arithmetic is fp32, rounded once for each operator (design, semantics)."""

import math

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.language as nl
from sterna import BadInput, RuleError, SternaWarning

F32 = np.float32


def pair(rng, shape=(128, 16)):
    return rng.standard_normal(shape, dtype=F32), rng.standard_normal(shape, dtype=F32)


EXACT = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": lambda x, y: (x == y).astype(F32),
    "not_equal": lambda x, y: (x != y).astype(F32),
    "greater": lambda x, y: (x > y).astype(F32),
    "greater_equal": lambda x, y: (x >= y).astype(F32),
    "less": lambda x, y: (x < y).astype(F32),
    "less_equal": lambda x, y: (x <= y).astype(F32),
    "logical_and": lambda x, y: ((x != 0) & (y != 0)).astype(F32),
    "logical_or": lambda x, y: ((x != 0) | (y != 0)).astype(F32),
    "logical_xor": lambda x, y: ((x != 0) ^ (y != 0)).astype(F32),
    # The signed value of the larger or smaller magnitude, y on ties.
    "abs_max": lambda x, y: np.where(np.abs(x) > np.abs(y), x, y),
    "abs_min": lambda x, y: np.where(np.abs(x) < np.abs(y), x, y),
    "fmod": np.fmod,
    "mod": np.mod,
}


@pytest.mark.parametrize("name", EXACT)
def test_binary_operator_of_two_tiles(name, apply, rng):
    x, y = pair(rng)
    y[:, :4] = x[:, :4]
    x[:, 4:8] = 0
    if name in ("fmod", "mod"):
        x, y = np.round(x * 50), np.round(np.abs(y) * 10) + 1  # exact in every way of computing it
    np.testing.assert_array_equal(apply(getattr(nl, name), x, y), EXACT[name](x, y))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "greater", "less_equal"])
def test_a_number_stands_on_either_side(name, apply, rng):
    x, _ = pair(rng)
    op = getattr(nl, name)
    np.testing.assert_array_equal(apply(lambda t: op(t, 0.25), x), EXACT[name](x, F32(0.25)))
    np.testing.assert_array_equal(apply(lambda t: op(0.25, t), x), EXACT[name](F32(0.25), x))


def test_power(apply, rng):
    x = np.abs(pair(rng)[0]) + F32(0.1)
    want = np.power(x.astype(np.float64), 1.5)
    np.testing.assert_allclose(apply(lambda t: nl.power(t, 1.5), x), want, rtol=2e-7)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint16, np.uint8, np.int8])
def test_bit_operators_are_exact(name, dtype, apply, rng):
    limits = np.iinfo(dtype)
    x, y = (rng.integers(limits.min, limits.max, (128, 8), dtype, endpoint=True) for _ in range(2))
    np.testing.assert_array_equal(apply(getattr(nl, name), x, y), getattr(np, name)(x, y))


def test_shifts_are_exact_on_32_bits(apply, rng):
    x = rng.integers(0, 2**32, (128, 8), np.uint32)
    np.testing.assert_array_equal(apply(lambda t: nl.left_shift(t, 24), x), x << np.uint32(24))
    np.testing.assert_array_equal(apply(lambda t: nl.right_shift(t, 8), x), x >> np.uint32(8))
    np.testing.assert_array_equal(apply(nl.invert, x), ~x)
    np.testing.assert_array_equal(apply(nl.bitwise_not, x), ~x)
    signed = x.view(np.int32)
    np.testing.assert_array_equal(apply(lambda t: nl.arithmetic_right_shift(t, 5), signed), signed >> 5)


def test_integer_tiles_add_exactly(apply):
    # Two int32 tiles run on GpSimd with exact integers (nki.isa.tensor_tensor); fp32 would lose the ones.
    x = np.full((128, 4), 2**24, np.int32)
    y = np.ones((128, 4), np.int32)
    np.testing.assert_array_equal(apply(nl.add, x, y), x + y)


UNARY = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda v: 1 / math.sqrt(v),
    "reciprocal": lambda v: 1 / v,
    "square": lambda v: v * v,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "tanh": math.tanh,
    "relu": lambda v: max(v, 0.0),
    "gelu": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
    "gelu_apprx_tanh": lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
    "gelu_apprx_sigmoid": lambda v: v / (1 + math.exp(-1.702 * v)),
    "silu": lambda v: v / (1 + math.exp(-v)),
    "softplus": lambda v: math.log1p(math.exp(v)),
    "mish": lambda v: v * math.tanh(math.log1p(math.exp(v))),
    "erf": math.erf,
    "erf_dx": lambda v: 2 / math.sqrt(math.pi) * math.exp(-v * v),
    "arctan": math.atan,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "abs": abs,
    "sign": lambda v: math.copysign(1, v),
    "negative": lambda v: -v,
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "silu_dx": lambda v: (1 + v * (1 - 1 / (1 + math.exp(-v)))) / (1 + math.exp(-v)),
    "gelu_dx": lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi),
}
POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal"}


@pytest.mark.parametrize("name", UNARY)
def test_unary_operator(name, apply, rng):
    x = rng.uniform(-3, 3, (128, 8)).astype(F32)
    if name == "arctan":
        x /= 2  # the documented range
    if name in POSITIVE:
        x = np.abs(x) + F32(0.01)
    want = np.vectorize(UNARY[name], otypes=[np.float64])(x.astype(np.float64))
    np.testing.assert_allclose(apply(getattr(nl, name), x), want, rtol=3e-7, atol=1e-7)


def test_gelu_apprx_sigmoid_dx(apply, rng):
    x = rng.uniform(-3, 3, (128, 8)).astype(F32)
    v = x.astype(np.float64)
    s = 1 / (1 + np.exp(-1.702 * v))
    np.testing.assert_allclose(apply(nl.gelu_apprx_sigmoid_dx, x), s + 1.702 * v * s * (1 - s), rtol=1e-6, atol=1e-7)


def test_sin_reduces_its_argument(apply):
    x = np.linspace(-40, 40, 128 * 8, dtype=F32).reshape(128, 8)
    np.testing.assert_allclose(apply(nl.sin, x), np.sin(x.astype(np.float64)), atol=2e-7)


def test_logical_not(apply, rng):
    x = rng.integers(0, 2, (128, 8)).astype(F32)
    np.testing.assert_array_equal(apply(nl.logical_not, x), (x == 0).astype(F32))


def test_result_has_the_type_of_the_first_tile_or_dtype(apply, rng):
    x, y = (a.astype(ml_dtypes.bfloat16) for a in pair(rng))
    got = apply(nl.add, x, y)
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, (x.astype(F32) + y.astype(F32)).astype(ml_dtypes.bfloat16))
    wide = apply(lambda a, b: nl.add(a, b, dtype=nl.float32), x, y)
    assert wide.dtype == F32
    np.testing.assert_array_equal(wide, x.astype(F32) + y.astype(F32))


def test_result_is_rounded_and_saturated_into_an_integer_type(apply):
    x = np.tile(np.array([0.5, 1.5, 2.5, -0.5, 300.0, -300.0], F32), (128, 1))
    got = apply(lambda t: nl.add(t, 0.0, dtype=nl.int8), x)
    np.testing.assert_array_equal(got[0], np.array([0, 2, 2, 0, 127, -128], np.int8))


def test_each_operator_rounds_for_itself(apply):
    # (x * x) - 1 with a fused multiply-add would keep the low bits of the product.
    x = np.full((128, 1), 1 + 2.0**-13, F32)
    got = apply(lambda t: nl.subtract(nl.multiply(t, t), 1.0), x)
    np.testing.assert_array_equal(got, (x * x) - F32(1))


BROADCASTS = [
    ((128, 16), (128, 1)),
    ((128, 1), (128, 16)),
    ((128, 1), (1, 128)),
    ((128, 16), (1, 1)),
    ((1, 1), (19, 1)),
    ((64, 4), (1, 4)),
    ((16, 3, 5), (16, 1, 5)),
    ((16, 3, 5), (16, 3, 1)),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_broadcasting_follows_numpy(shapes, apply, rng):
    x, y = (rng.standard_normal(s, dtype=F32) for s in shapes)
    got = apply(nl.subtract, x, y)
    np.testing.assert_array_equal(got, x - y)


def test_broadcasting_beyond_the_documents_is_remarked_once_a_line_and_refused_when_strict(apply, rng, monkeypatch):
    x, y = rng.standard_normal((8, 4), dtype=F32), rng.standard_normal((1, 4), dtype=F32)

    def twice(a, b):
        for _ in range(2):
            made = nl.add(a, b)
        return made

    with pytest.warns(SternaWarning, match="COMPAT1") as seen:
        apply(twice, x, y)
    assert len([w for w in seen if "COMPAT1" in str(w.message)]) == 1
    assert seen[0].filename == __file__
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="COMPAT1"):
        apply(nl.add, x, y)
    np.testing.assert_array_equal(apply(nl.add, x, x[:, :1].copy()), x + x[:, :1])  # (P, 1) is documented


def test_divide_is_remarked_and_refused_when_strict(apply, rng, monkeypatch):
    x, y = pair(rng)
    with pytest.warns(SternaWarning, match="COMPAT5"):
        apply(nl.divide, x, y)
    monkeypatch.setenv("STERNA_STRICT", "1")
    with pytest.raises(RuleError, match="COMPAT5"):
        apply(nl.divide, x, y)


def test_an_hbm_operand_is_loaded(rng):
    @nki.jit
    def kernel(x, y):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.subtract(nl.load(x), y))
        return out

    x, y = pair(rng)
    np.testing.assert_array_equal(kernel(x, y), x - y)
    np.testing.assert_array_equal(kernel(x, y[:1, :1].copy()), x - y[:1, :1])


def test_two_psum_operands(apply, rng):
    x = rng.standard_normal((8, 8), dtype=F32)
    got = apply(lambda t: nl.add(nl.transpose(t), nl.transpose(t)), x)
    np.testing.assert_array_equal(got, x.T + x.T)


PYTHON_OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}


@pytest.mark.parametrize("symbol", PYTHON_OPERATORS)
def test_operators_of_python(symbol, apply, rng):
    x, y = pair(rng)
    f = PYTHON_OPERATORS[symbol]
    np.testing.assert_array_equal(apply(f, x, y), f(x, y))
    np.testing.assert_array_equal(apply(lambda t: f(t, 2.0), x), f(x, F32(2)))
    np.testing.assert_array_equal(apply(lambda t: f(2.0, t), x), f(F32(2), x))


def test_comparisons_negation_and_bits_of_python(apply, rng):
    x, y = pair(rng)
    np.testing.assert_array_equal(apply(lambda a, b: a < b, x, y), (x < y).astype(F32))
    np.testing.assert_array_equal(apply(lambda a, b: a >= b, x, y), (x >= y).astype(F32))
    np.testing.assert_array_equal(apply(lambda a: -a, x), -x)
    i = rng.integers(0, 2**31, (128, 4), np.int32)
    np.testing.assert_array_equal(apply(lambda a: (a & 255) | 256, i), (i & 255) | 256)
    np.testing.assert_array_equal(apply(lambda a: (a ^ 3) >> 2, i), (i ^ 3) >> 2)


def test_numpy_functions_name_operators(rng):
    import nki.isa as nisa

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        t = nl.load(x)
        nisa.tensor_tensor(t, t, t, np.multiply)
        nisa.activation(t, np.exp, t)
        nl.store(out, t)
        return out

    x = rng.uniform(-1, 1, (128, 4)).astype(F32)
    np.testing.assert_allclose(kernel(x), np.exp(x.astype(np.float64) ** 2), rtol=3e-7)


def test_wrong_calls_are_type_errors(apply, rng):
    x, _ = pair(rng)
    with pytest.raises(TypeError, match="mask"):
        apply(lambda t: nl.add(t, t, mask=None), x)
    with pytest.raises(TypeError, match="at least one tile"):
        apply(lambda t: nl.add(1, 2), x)
    with pytest.raises(TypeError, match="operator"):
        apply(lambda t: nki.isa.tensor_tensor(t, t, t, "add"), x)
    with pytest.raises(TypeError, match="activation function"):
        apply(lambda t: nki.isa.activation(t, nl.bitwise_and, t), x)
    with pytest.raises(ValueError, match="broadcast"):
        apply(lambda t: nl.add(t, t[:, 0:3]), x)
    with pytest.raises(RuntimeError, match="no kernel"):
        nl.ndarray((1, 1), nl.float32)


def test_a_reduction_of_all_free_axes_gives_one_value_a_partition(apply, rng):
    x, _ = pair(rng, (16, 4, 8))
    seen = []

    def normalised(t):
        total = nl.sum(t, (1, 2))
        seen.append((total.shape, nl.sum(t, (1, 2), keepdims=True).shape))
        return nl.subtract(t, nl.max(t, (1, 2)))

    np.testing.assert_array_equal(apply(normalised, x), x - x.max((1, 2), keepdims=True))
    assert seen == [((16, 1), (16, 1, 1))]


@pytest.mark.parametrize("shape", [(8, 2, 8), (8, 8, 2), (8, 1, 1), (8, 3)])
def test_one_value_a_partition_repeats_along_all_free_axes(apply, rng, shape):
    x, column = pair(rng, shape)[0], pair(rng, (8, 1))[0]
    wide = column.reshape((8,) + (1,) * (len(shape) - 1))
    np.testing.assert_array_equal(apply(nl.add, x, column), x + wide)
    np.testing.assert_array_equal(apply(lambda a, b: nl.subtract(b, a), x, column), wide - x)


def test_shapes_that_do_not_broadcast_are_named(apply, rng):
    x, y = pair(rng, (8, 4))[0], pair(rng, (8, 3))[0]
    with pytest.raises(BadInput, match=r"SHAPE5.*\[8, 4\] and \[8, 3\]"):
        apply(nl.add, x, y)


@pytest.mark.parametrize("name", ["softmax", "var", "rms_norm"])
def test_norms_of_the_last_axis_of_three_are_no_broadcast_of_the_users(name, apply, rng, monkeypatch):
    monkeypatch.setenv("STERNA_STRICT", "1")
    x, _ = pair(rng, (16, 4, 8))
    wide = x.astype(np.float64)
    if name == "softmax":
        powers = np.exp(wide - wide.max(2, keepdims=True))
        got, want = apply(lambda t: nl.softmax(t, axis=2), x), powers / powers.sum(2, keepdims=True)
    elif name == "var":
        got, want = apply(lambda t: nl.var(t, 2), x), wide.var(2, keepdims=True)
    else:
        got = apply(lambda t, w: nl.rms_norm(t, w, 2, 8), x, np.ones_like(x))
        want = wide / np.sqrt((wide**2).mean(2, keepdims=True) + 1e-6)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "all", "mean", "var"])
def test_nothing_is_not_reduced(name, apply, rng):
    x, _ = pair(rng, (8, 4))
    with pytest.raises(RuleError, match="RED7"):
        apply(lambda t: getattr(nl, name)(t[:, 2:2], 1), x)


NO_TENSOR = {
    "exp": lambda t: nl.exp(1.0),
    "sin": lambda t: nl.sin(1.0),
    "ceil": lambda t: nl.ceil(1.0),
    "rsqrt": lambda t: nl.rsqrt(1.0),
    "invert": lambda t: nl.invert(1),
    "copy": lambda t: nl.copy(np.ones((2, 2), np.float32)),
    "cast": lambda t: nl.cast(1.0, nl.float32),
    "transpose": lambda t: nl.transpose(np.ones((2, 2), np.float32)),
    "matmul": lambda t: nl.matmul(t, np.ones((2, 2), np.float32)),
    "where": lambda t: nl.where(True, t, t),
    "broadcast_to": lambda t: nl.broadcast_to(1.0, (2, 2)),
    "expand_dims": lambda t: nl.expand_dims(1.0, 1),
    "sum": lambda t: nl.sum(np.ones((2, 2), np.float32), 1),
    "var": lambda t: nl.var(1.0, 1),
    "softmax": lambda t: nl.softmax(1.0),
    "gather_flattened": lambda t: nl.gather_flattened(t, [0, 1]),
    "add": lambda t: nl.add(t, "2"),
    "two numbers": lambda t: nl.add(1, 2),
}


@pytest.mark.parametrize("case", NO_TENSOR)
def test_what_is_no_tensor_is_a_type_error_that_says_so(case, apply):
    with pytest.raises(TypeError, match="tensor, not|needs at least one tile"):
        apply(NO_TENSOR[case], np.ones((2, 2), np.float32))


def test_axes_may_be_numpys_whole_numbers(apply):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for axis in (np.int64(1), np.int32(-1), (np.int64(1),), np.array([1])):
        np.testing.assert_array_equal(apply(lambda t, a=axis: nl.sum(t, a), x), x.sum(1, keepdims=True))
    np.testing.assert_array_equal(apply(lambda t: nl.max(t, np.uint8(1)), x), x.max(1, keepdims=True))
    for wrong in ("1", 1.0, None, ["1"], (1.0,)):
        with pytest.raises(TypeError, match="axis must be a whole number"):
            apply(lambda t, a=wrong: nl.sum(t, a), x)
