# SPDX-License-Identifier: Apache-2.0
"""Operators: functions on tiles, and constants for `op=`.

A call makes a new SBUF tile of the first tile's type (or `dtype=`). Scalars become immediates, tiles of shape (P, 1) repeat along
the free axes; other numpy-style broadcasting is what the official simulator accepts and real kernels use.
"""

import numpy as np

from nki import _memory
from sterna import _core

OPERATORS = {}


def _isa():
    from nki import isa

    return isa


def _is_tile(value):
    return isinstance(value, _core.Tensor)


def _in_sbuf(tile):
    """HBM operands are loaded first."""
    if not _memory.is_hbm(tile.buffer):
        return tile
    from nki._tiles import load

    return load(tile)


def _result(shape, dtype, like):
    return _memory.allocate(shape, dtype if dtype is not None else like.dtype)


def _fit(tile, shape):
    return tile if tile.shape == shape else _expand(tile, len(shape)).broadcast_to(shape)


def _expand(tile, ndim):
    while len(tile.shape) < ndim:
        tile = tile.expand_dim(1)
    return tile


def binary(op, x, y, dtype=None):
    """One instruction for x op y: tensor_scalar when one side is a number, else tensor_tensor."""
    isa = _isa()
    if not _is_tile(x) and not _is_tile(y):
        raise TypeError(f"nl.{op.__name__}() needs at least one tile")
    if not _is_tile(y):
        x = _in_sbuf(x)
        out = _result(x.shape, dtype, x)
        isa.tensor_scalar(out, x, op, y)
        return out
    if not _is_tile(x):
        y = _in_sbuf(y)
        out = _result(y.shape, dtype, y)
        isa.tensor_scalar(out, y, op, x, True)
        return out
    x, y = _in_sbuf(x), _in_sbuf(y)
    shape = x.shape if x.shape == y.shape else np.broadcast_shapes(x.shape, y.shape)
    out = _result(shape, dtype, x)
    if x.buffer is _memory.psum and y.buffer is _memory.psum:
        y = _copy(y)
    isa.tensor_tensor(out, _fit(x, shape), _fit(y, shape), op)
    return out


def _copy(tile):
    made = _memory.allocate(tile.shape, tile.dtype)
    _isa().tensor_copy(made, tile)
    return made


def unary(op, x, dtype=None):
    """One activation."""
    x = _in_sbuf(x)
    out = _result(x.shape, dtype, x)
    _isa().activation(out, op, x)
    return out


def unary_alu(op, x, dtype=None):
    """One unary operator of the vector engine."""
    x = _in_sbuf(x)
    out = _result(x.shape, dtype, x)
    _isa().tensor_scalar(out, x, op, None)
    return out


def _define(name, alu, function, body, doc):
    body.__name__ = body.__qualname__ = name
    body.__doc__ = doc
    OPERATORS[name] = body
    globals()[name] = body
    _core.register_op(body, alu, function)


def _binary(name, alu=None):
    def operator(x, y, dtype=None, **options):
        return binary(operator, x, y, dtype)

    _define(name, alu or name, None, operator, f"x {name} y, element by element.")


def _unary(name, function, alu=None):
    def operator(x, dtype=None, **options):
        return unary(operator, x, dtype)

    _define(name, alu, function, operator, f"{name} of each element.")


def _unary_alu(name, alu):
    def operator(x, dtype=None, **options):
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


for _name in (
    "add subtract multiply divide maximum minimum power mod fmod abs_max abs_min equal not_equal greater greater_equal less "
    "less_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"
).split():
    _binary(_name)
_binary("arithmetic_right_shift", "arith_shift_right")

for _name in (
    "sigmoid gelu gelu_dx gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx silu silu_dx tanh softplus mish erf erf_dx exp log "
    "arctan cos tan"
).split():
    _unary(_name, _name)
for _name in "square relu sqrt rsqrt reciprocal sign abs".split():
    _unary(_name, _name, _name)
for _name in "ceil floor trunc".split():
    _unary_alu(_name, _name)
_constant("average", "average")
_constant("bypass", "bypass")
_constant("prelu", None, "prelu")


def sin(x, dtype=None, **options):
    """sine of each element, with range reduction (as an `op=` of an instruction there is none: see the instruction)."""
    return unary(_sin_full, x, dtype)


_sin_full = Constant("sin_full")
_core.register_op(_sin_full, None, "sin_full")
_core.register_op(sin, None, "sin")
OPERATORS["sin"] = sin


def negative(x, dtype=None, **options):
    """-x of each element."""
    return binary(OPERATORS["multiply"], x, -1.0, dtype)


_core.register_op(negative, "negative", None)
OPERATORS["negative"] = negative


def invert(x, dtype=None, **options):
    """Every bit of each element flipped."""
    return unary_alu(invert, x, dtype)


_core.register_op(invert, "invert", None)
OPERATORS["invert"] = OPERATORS["bitwise_not"] = bitwise_not = invert


def logical_not(x, dtype=None, **options):
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
