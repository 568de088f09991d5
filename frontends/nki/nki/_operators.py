# SPDX-License-Identifier: Apache-2.0
"""Operators: functions on tiles, and constants for `op=`.

A call makes a new SBUF tile of the first tile's type (or `dtype=`). Scalars become immediates, tiles of shape (P, 1) repeat along
the free axes; other numpy-style broadcasting is what the official simulator accepts and real kernels use.
"""

import numpy as np

import nki
from nki import _memory
from nki._remarks import compat, fail
from sterna import _core

OPERATORS = {}

Tensor = _core.Tensor


def tensor(value):
    """`value`, which must be a tensor."""
    if isinstance(value, Tensor):
        return value
    raise TypeError(f"the operand must be a tensor, not {type(value).__name__}")


def in_sbuf(tile):
    """HBM operands are loaded first, which the official simulator accepts and the documents do not mention."""
    if not _memory.is_hbm(tensor(tile).buffer):
        return tile
    compat("COMPAT3", "An operand is in HBM and is loaded into SBUF first; the documents ask for nl.load.")
    return nki._tiles.load(tile)


def fit(tile, shape):
    """`tile` seen with the shape of the result; what numpy would broadcast."""
    have = tile.shape
    if have == shape:
        return tile
    if not (have[0] == shape[0] and _size(have[1:]) == 1):
        compat(
            "COMPAT1",
            f"A tile {list(have)} is broadcast to {list(shape)}; only (P, 1) repeats along the free axes by the documents.",
        )
    while len(tile.shape) < len(shape):
        tile = tile.expand_dim(1)
    return tile.broadcast_to(shape)


def _size(counts):
    total = 1
    for count in counts:
        total *= count
    return total


def _common_shape(x, y):
    """That of the result: one value for each partition repeats along all free axes, other shapes broadcast as in numpy."""
    for one, other in ((x, y), (y, x)):
        if one.shape[0] == other.shape[0] and _size(one.shape[1:]) == 1:
            return (
                other.shape
                if len(other.shape) >= len(one.shape)
                else one.shape[: len(one.shape) - len(other.shape) + 1] + other.shape[1:]
            )
    try:
        return np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        fail("SHAPE5", f"Tiles {list(x.shape)} and {list(y.shape)} do not broadcast to one shape.")


def binary(op, x, y, dtype=None):
    """One instruction for x op y: tensor_scalar when one side is a number, else tensor_tensor."""
    if not isinstance(y, Tensor):
        if not isinstance(x, Tensor):
            raise TypeError(f"nl.{op.__name__}() needs at least one tile")
        x = in_sbuf(x)
        out = _memory.allocate(x.shape, dtype or x.dtype)
        nki.isa.tensor_scalar(out, x, op, y)
        return out
    if not isinstance(x, Tensor):
        y = in_sbuf(y)
        out = _memory.allocate(y.shape, dtype or y.dtype)
        nki.isa.tensor_scalar(out, y, op, x, True)
        return out
    x, y = in_sbuf(x), in_sbuf(y)
    shape = x.shape
    if shape != y.shape:
        shape = _common_shape(x, y)
        x, y = fit(x, shape), fit(y, shape)
    out = _memory.allocate(shape, dtype or x.dtype)
    if x.buffer is _memory.psum and y.buffer is _memory.psum:
        y = _copy(y)
    nki.isa.tensor_tensor(out, x, y, op)
    return out


def _copy(tile):
    made = _memory.allocate(tile.shape, tile.dtype)
    nki.isa.tensor_copy(made, tile)
    return made


def unary(op, x, dtype=None):
    """One activation."""
    x = in_sbuf(x)
    out = _memory.allocate(x.shape, dtype or x.dtype)
    nki.isa.activation(out, op, x)
    return out


def unary_alu(op, x, dtype=None):
    """One unary operator of the vector engine."""
    x = in_sbuf(x)
    out = _memory.allocate(x.shape, dtype or x.dtype)
    nki.isa.tensor_scalar(out, x, op, None)
    return out


def _define(name, alu, function, body, doc):
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    OPERATORS[name] = body
    globals()[name] = body
    _core.register_op(body, alu, function)


def _binary(name, alu=None):
    def operator(x, y, dtype=None):
        return binary(operator, x, y, dtype)

    _define(name, alu or name, None, operator, f"x {name} y, element by element.")


def _unary(name, function, alu=None):
    def operator(x, dtype=None):
        return unary(operator, x, dtype)

    _define(name, alu, function, operator, f"{name} of each element.")


def _rsqrt(x, dtype=None):
    """By GpSimd, since NKI 0.5."""
    x = in_sbuf(x)
    out = _memory.allocate(x.shape, dtype or x.dtype)
    nki.isa.tensor_scalar(out, x, _rsqrt, None, engine=nki.isa.engine.gpsimd)
    return out


def _unary_alu(name, alu):
    def operator(x, dtype=None):
        return unary_alu(operator, x, dtype)

    _define(name, alu, None, operator, f"{name} of each element.")


class Constant:
    """An operator that only instructions take."""

    def __init__(self, name):
        self.__name__ = name

    def __repr__(self):
        return f"nl.{self.__name__}"


def _constant(name, alu, function=None):
    made = Constant(name)
    OPERATORS[name] = made
    globals()[name] = made
    _core.register_op(made, alu, function)


def _binary_undocumented(name):
    def operator(x, y, dtype=None):
        compat("COMPAT5", f"nl.{name} works in the official simulator; the documents say that no engine has it.")
        return binary(operator, x, y, dtype)

    _define(name, name, None, operator, f"x {name} y, element by element.")


for _name in (
    "add subtract multiply maximum minimum power abs_max abs_min equal not_equal greater greater_equal less "
    "less_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"
).split():
    _binary(_name)
_binary("arithmetic_right_shift", "arith_shift_right")
for _name in "divide mod fmod".split():
    _binary_undocumented(_name)

for _name in (
    "sigmoid gelu gelu_dx gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx silu silu_dx tanh softplus mish erf erf_dx exp log "
    "arctan cos tan"
).split():
    _unary(_name, _name)
for _name in "square relu sqrt reciprocal sign abs".split():
    _unary(_name, _name, _name)
_define("rsqrt", "rsqrt", "rsqrt", _rsqrt, "1 / square root of each element, by GpSimd.")
for _name in "ceil floor trunc".split():
    _unary_alu(_name, _name)
_constant("average", "average")
_constant("bypass", "bypass")
_constant("prelu", None, "prelu")


def sin(x, dtype=None):
    """sine of each element, with range reduction (as an `op=` of an instruction there is none: see the instruction)."""
    return unary(_sin_full, x, dtype)


_sin_full = Constant("sin_full")
_core.register_op(_sin_full, None, "sin_full")
_core.register_op(sin, None, "sin")
OPERATORS["sin"] = sin


def negative(x, dtype=None):
    """-x of each element."""
    return binary(OPERATORS["multiply"], x, -1.0, dtype)


_core.register_op(negative, "negative", None)
OPERATORS["negative"] = negative


def invert(x, dtype=None):
    """Every bit of each element flipped."""
    return unary_alu(invert, x, dtype)


_core.register_op(invert, "invert", None)
OPERATORS["invert"] = OPERATORS["bitwise_not"] = bitwise_not = invert


def logical_not(x, dtype=None):
    """1 where an element is zero, else 0."""
    return binary(OPERATORS["equal"], x, 0.0, dtype)


_core.register_op(logical_not, "logical_not", None)
OPERATORS["logical_not"] = logical_not

# numpy's functions name the same operators.
for _ufunc, _alu in (
    (np.add, "add"),
    (np.subtract, "subtract"),
    (np.multiply, "multiply"),
    (np.maximum, "maximum"),
    (np.minimum, "minimum"),
    (np.max, "maximum"),
    (np.min, "minimum"),
    (np.sum, "add"),
):
    _core.register_op(_ufunc, _alu, None)
_core.register_op(np.exp, None, "exp")

__all__ = [*OPERATORS]


# --- operators of Python on tiles


def _method(name, swap=False):
    op = OPERATORS[name]
    if swap:
        return lambda self, other: binary(op, other, self)
    return lambda self, other: binary(op, self, other)


for _dunder, _name in (
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("pow", "power"),
    ("and", "bitwise_and"),
    ("or", "bitwise_or"),
    ("xor", "bitwise_xor"),
    ("lshift", "left_shift"),
    ("rshift", "right_shift"),
):
    setattr(_core.Tensor, f"__{_dunder}__", _method(_name))
    setattr(_core.Tensor, f"__r{_dunder}__", _method(_name, swap=True))
for _dunder, _name in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
    setattr(_core.Tensor, f"__{_dunder}__", _method(_name))
_core.Tensor.__neg__ = lambda self: negative(self)
