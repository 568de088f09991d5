# SPDX-License-Identifier: Apache-2.0
"""Tile operations of `nki.language` that are more than one operator: loads, stores, reductions, products."""

import builtins
import math
import numbers

import numpy as np

import nki
from nki import _memory
from nki import _operators as ops
from nki._dtypes import ALL as _DTYPES
from nki._remarks import compat, fail
from sterna import _core
from sterna.faults import Fault

_FLOAT32 = _DTYPES["float32"]


def _tile_shape(shape):
    """A tile has a partition and a free dimension: a vector becomes one column."""
    return shape if len(shape) > 1 else (*shape, 1)


def load(src, dtype=None):
    """An SBUF tile with the values of `src` in HBM."""
    made = _memory.allocate(_tile_shape(src.shape), dtype or src.dtype)
    nki.isa.dma_copy(made, src)
    return made


def store(dst, value):
    """Stores a tile (or a number) into HBM."""
    if not isinstance(value, _core.Tensor):
        tile = _memory.allocate(_tile_shape(dst.shape), dst.dtype)
        nki.isa.memset(tile, value)
        value = tile
    elif value.buffer is _memory.psum:
        value = copy(value)
    nki.isa.dma_copy(dst, value)


def load_transpose2d(src, dtype=None):
    """An SBUF tile with the transpose of `src` in HBM: rows become columns, the other axes of a row are flattened."""
    if src.ndim < 2:
        fail("LT1", f"load_transpose2d takes a source with rows and columns, not {list(src.shape)}.")
    if src.ndim > 2:
        compat(
            "COMPAT6",
            f"load_transpose2d of {list(src.shape)}: the source is documented as 2-D; its last axes are flattened.",
        )
        src = src.flatten_dims(1, src.ndim - 1)
    rows, cols = src.shape
    made = _memory.allocate((cols, rows), src.dtype)
    nki.isa.dma_transpose(made, src)
    return made if dtype is None or dtype == src.dtype else copy(made, dtype=dtype)


def copy(x, dtype=None):
    """A copy in SBUF, by the vector engine."""
    if _memory.is_hbm(ops.tensor(x).buffer):
        return load(x, dtype=dtype)
    made = _memory.allocate(x.shape, dtype or x.dtype)
    nki.isa.tensor_copy(made, x)
    return made


_core.register_op(copy, None, "copy")  # nisa.activation(op=nl.copy)


def cast(x, dtype):
    """A copy of another type."""
    return copy(x, dtype=dtype)


def broadcast_to(x, shape, dtype=None):
    """A view that repeats dimensions of size 1; a copy where the type differs."""
    made = ops.tensor(x).broadcast_to(shape)
    return made if dtype is None or dtype == x.dtype else copy(made, dtype=dtype)


def expand_dims(x, axis):
    """A view with one more dimension of size 1."""
    return ops.tensor(x).expand_dim(axis)


def transpose(x, dtype=None):
    """The transpose of a 2-D tile, in PSUM."""
    x = _as_sbuf(x)
    made = _memory.allocate((x.shape[1], x.shape[0]), x.dtype, _memory.psum)
    nki.isa.nc_transpose(made, x)
    return made if dtype is None or dtype == x.dtype else copy(made, dtype=dtype)


def matmul(x, y, transpose_x=False):
    """x @ y (x.T @ y if transpose_x) of tiles, in PSUM: float32 [M, N]."""
    y = _as_sbuf(y)
    stationary = _as_sbuf(x) if transpose_x else copy(transpose(x))
    made = _memory.allocate((stationary.shape[1], y.shape[1]), _FLOAT32, _memory.psum)
    nki.isa.nc_matmul(made, stationary, y)
    return made


def _as_sbuf(x):
    return x if ops.tensor(x).buffer is _memory.sbuf else copy(x)


def where(condition, x, y, dtype=None):
    """x where the condition is not zero, else y."""
    condition = ops.in_sbuf(condition)
    tiles = [t for t in (x, y) if isinstance(t, _core.Tensor)]
    shape = np.broadcast_shapes(condition.shape, *(t.shape for t in tiles))
    out = _memory.allocate(shape, dtype or (tiles[0] if tiles else condition).dtype)
    _fill(out, y)
    predicate = _memory.allocate(shape, _DTYPES["uint8"])
    nki.isa.tensor_scalar(predicate, ops.fit(condition, shape), ops.OPERATORS["not_equal"], 0.0)
    if not isinstance(x, _core.Tensor) or x.dtype != out.dtype or x.shape != shape or not _memory.is_sbuf(x.buffer):
        source = _memory.allocate(shape, out.dtype)
        _fill(source, x)
        x = source
    nki.isa.tensor_copy_predicated(out, x, predicate)
    return out


def _fill(dst, value):
    """Copies a tile or a number into dst, broadcasting."""
    if isinstance(value, _core.Tensor):
        nki.isa.tensor_copy(dst, ops.fit(ops.in_sbuf(value), dst.shape))
    else:
        nki.isa.memset(dst, value)


def _assign(target, value):
    """`t[...] = value`."""
    compat(
        "COMPAT2",
        "Assignment to a tile is accepted by the official simulator; the documents copy with nl.store or nisa.tensor_copy.",
    )
    if _memory.is_hbm(target.buffer):
        store(target, value)
    elif isinstance(value, _core.Tensor) and _memory.is_hbm(value.buffer):
        nki.isa.dma_copy(target, value)
    elif isinstance(value, _core.Tensor) and value.shape != target.shape and value.size == target.size:
        nki.isa.tensor_copy(target, value)
    else:
        _fill(target, value)


_core.set_hook("assign", _assign)


# --- reductions


def _axes(x, axis):
    """The axes in order, negative ones counted from the end. They are the last ones, or all."""
    ndim = ops.tensor(x).ndim
    axes = list(axis) if np.ndim(axis) else [axis]
    if not builtins.all(isinstance(a, numbers.Integral) for a in axes):
        raise TypeError(f"axis must be a whole number or a tuple of them, not {axis!r}")
    axes = sorted(int(a) + ndim if a < 0 else int(a) for a in axes)
    if not axes or axes[0] < 0 or axes[-1] >= ndim:
        fail("RED1", f"axis={axis} of a tile of {ndim} dimensions does not exist.", "out of bounds")
    if axes != [0] and axes != builtins.list(builtins.range(axes[0], ndim)):
        fail("RED2", f"axis={axis}: the axes of a reduction are the last ones, without a gap.")
    return axes


def _reduce(op, x, axis, dtype, keepdims):
    x = ops.in_sbuf(x)
    axes = _axes(x, axis)
    if axes[0] == 0:
        return _reduce_partitions(op, x, axes[1:], dtype, keepdims)
    kept = x.shape[: axes[0]]
    out = _memory.allocate(kept + (1,) * len(axes), dtype or x.dtype)
    nki.isa.tensor_reduce(out, op, x, tuple(axes))
    return out if keepdims else out.reshape(kept if len(kept) > 1 else (kept[0], 1))


def _reduce_partitions(op, x, axes, dtype, keepdims):
    """Free axes first, then the partitions: what the official simulator accepts as axis=(0, 1)."""
    compat(
        "COMPAT4",
        "A reduction over axis 0 runs over partitions; the documents have nisa.tensor_partition_reduce and matmuls for that.",
    )
    final = dtype or x.dtype
    if axes:
        x = _reduce(op, x, axes, _FLOAT32, True)
    out = _memory.allocate((1, *x.shape[1:]), final)
    nki.isa.tensor_partition_reduce(out, op, copy(x) if _memory.is_psum(x.buffer) else x)
    return out if keepdims or len(axes) < 2 else out.reshape((1, 1))


def sum(x, axis, dtype=None, keepdims=False):
    """Sum over the last axes."""
    return _reduce(ops.OPERATORS["add"], x, axis, dtype, keepdims)


def prod(x, axis, dtype=None, keepdims=False):
    """Product over the last axes."""
    return _reduce(ops.OPERATORS["multiply"], x, axis, dtype, keepdims)


def max(x, axis, dtype=None, keepdims=False):
    """Maximum over the last axes."""
    return _reduce(ops.OPERATORS["maximum"], x, axis, dtype, keepdims)


def min(x, axis, dtype=None, keepdims=False):
    """Minimum over the last axes."""
    return _reduce(ops.OPERATORS["minimum"], x, axis, dtype, keepdims)


# The stub names them as operators too (tensor_scalar_reduce: nl.add, nl.multiply, nl.max or nl.min).
_core.register_op(max, "maximum", None)
_core.register_op(min, "minimum", None)


def all(x, axis, dtype=None, keepdims=False):
    """1 where every element of the last axes is not zero."""
    return _reduce(ops.OPERATORS["logical_and"], x, axis, dtype, keepdims)


def mean(x, axis, dtype=None, keepdims=False):
    """Mean over the last axes."""
    count = math.prod(x.shape[a] for a in _axes(x, axis))
    total = _reduce(ops.OPERATORS["add"], x, axis, _FLOAT32, keepdims)
    return ops.binary(ops.OPERATORS["multiply"], total, 1.0 / count, dtype or x.dtype)


def _along(reduced, x):
    """A tile reduced with keepdims, repeated along the axes again."""
    return reduced.broadcast_to(x.shape)


def var(x, axis, dtype=None, keepdims=False):
    """Variance over the last axes; dimensions are always kept, as the document says."""
    average = mean(x, axis, dtype=_FLOAT32, keepdims=True)
    centred = ops.binary(ops.OPERATORS["subtract"], x, _along(average, x), _FLOAT32)
    squares = ops.binary(ops.OPERATORS["multiply"], centred, centred, _FLOAT32)
    return mean(squares, axis, dtype=dtype or x.dtype, keepdims=True)


def softmax(x, axis=-1, dtype=None):
    """exp(x - max) / sum over the last axes."""
    largest = max(x, axis, dtype=_FLOAT32, keepdims=True)
    shifted = ops.binary(ops.OPERATORS["subtract"], x, _along(largest, x), _FLOAT32)
    powers = ops.unary(ops.OPERATORS["exp"], shifted)
    total = sum(powers, axis, keepdims=True)
    return ops.binary(ops.OPERATORS["divide"], powers, _along(total, x), dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None):
    """x * w / sqrt(sum(x^2) / n + epsilon) over the last axes; intermediate tiles are of compute_dtype, else float32."""
    between = compute_dtype or _FLOAT32
    squares = ops.unary(ops.OPERATORS["square"], x, between)
    total = sum(squares, axis, keepdims=True)
    scaled = ops.binary(ops.OPERATORS["add"], ops.binary(ops.OPERATORS["multiply"], total, 1.0 / n), epsilon)
    factor = ops.unary(ops.OPERATORS["rsqrt"], scaled)
    normal = ops.binary(ops.OPERATORS["multiply"], x, _along(factor, x), between)
    return ops.binary(ops.OPERATORS["multiply"], normal, w, dtype or x.dtype)


# --- gather


def gather_flattened(data, indices, axis=0, dtype=None):
    """Elements of each partition of `data`, its free axes flattened, by the indices in the same partition."""
    if axis != 0:
        fail("GF1", f"gather_flattened gathers along the flattened free axes, axis=0; axis={axis} is not defined.")
    data, indices = ops.in_sbuf(data), ops.in_sbuf(indices)
    if indices.dtype != _DTYPES["uint32"]:
        indices = copy(indices, dtype=_DTYPES["uint32"])
    made = _memory.allocate(indices.shape, data.dtype)
    nki.isa.nc_n_gather(made, _as_sbuf(data), _as_sbuf(indices))
    return made if dtype is None or dtype == data.dtype else copy(made, dtype=dtype)


# --- methods of tiles


def _move_reshape(tile, shape, why):
    """A reshape over partitions is not a view: the official simulator accepts it, so data is moved by DMA."""
    if not _memory.is_sbuf(tile.buffer):
        fail("VIEW2", why)
    known = math.prod(n for n in shape if n != -1)
    shape = tuple(tile.size // known if n == -1 and known else n for n in shape)
    if math.prod(shape) != tile.size:
        fail("VIEW5", f"reshape: {list(tile.shape)} has {tile.size} elements, {list(shape)} asked for.")
    compat("VIEW2", f"{why} The data is moved by DMA.")
    made = _memory.allocate(shape, tile.dtype)
    nki.isa.dma_copy(made, tile)
    return made


_core.set_hook("move_reshape", _move_reshape)


def _is_live(tensor):
    return _core.is_recording() and not _core.current().done


def _text(self):
    """What print(tensor) shows: the values, after executing what was recorded so far.

    While the ranks of a launch are recorded there are none yet. Kernels write tensors into the messages of checks that hold, so
    this is a description then, and no fault.
    """
    if not _is_live(self):
        return _describe(self)
    try:
        return f"{self.name} = {self._values_text()}"
    except Fault as fault:
        if fault.rule != "CC14":
            raise
        return f"{_describe(self)} (values by nl.device_print)"


def _describe(self):
    place = "hbm" if _memory.is_hbm(self.buffer) else self.buffer.name
    return f"<tensor {self.name} {list(self.shape)} {self.dtype} in {place}>"


def _repr(self):
    """The same for a debugger; it must not fail."""
    try:
        return f"{_describe(self)[:-1]}: {self._values_text()}>" if _is_live(self) else _describe(self)
    except Exception:
        return _describe(self)


_core.Tensor.astype = lambda self, dtype: copy(self, dtype=dtype)
_core.Tensor.__repr__ = _repr
_core.Tensor.__str__ = _text
