# SPDX-License-Identifier: Apache-2.0
"""Tile operations of `nki.language` that are more than one operator: loads, stores, reductions, products."""

import builtins
import math

from nki import _memory
from nki import _operators as ops
from nki._unavailable import later
from sterna import _core
from sterna.faults import BadInput


def _isa():
    from nki import isa

    return isa


def _tile_shape(shape):
    """A tile has a partition and a free dimension: a vector becomes one column."""
    return tuple(shape) if len(shape) > 1 else (shape[0], 1)


def load(src, *, dtype=None, mask=None):
    """An SBUF tile with the values of `src` in HBM."""
    _no_mask(mask)
    made = _memory.allocate(_tile_shape(src.shape), dtype if dtype is not None else src.dtype)
    _isa().dma_copy(dst=made, src=src)
    return made


def store(dst, value, *, mask=None):
    """Stores a tile (or a number) into HBM."""
    _no_mask(mask)
    if not isinstance(value, _core.Tensor):
        tile = _memory.allocate(_tile_shape(dst.shape), dst.dtype)
        _isa().memset(tile, value)
        value = tile
    elif value.buffer is _memory.psum:
        value = copy(value)
    _isa().dma_copy(dst=dst, src=value)


def load_transpose2d(src, *, dtype=None, mask=None):
    """An SBUF tile with the transpose of a 2-D `src` in HBM."""
    _no_mask(mask)
    rows, cols = src.shape
    made = _memory.allocate((cols, rows), src.dtype)
    _isa().dma_transpose(dst=made, src=src)
    return made if dtype is None or dtype == src.dtype else copy(made, dtype=dtype)


def copy(x, *, dtype=None):
    """A copy in SBUF, by the vector engine."""
    if _memory.is_hbm(x.buffer):
        return load(x, dtype=dtype)
    made = _memory.allocate(x.shape, dtype if dtype is not None else x.dtype)
    _isa().tensor_copy(made, x)
    return made


def cast(x, dtype):
    """A copy of another type."""
    return copy(x, dtype=dtype)


def broadcast_to(x, shape):
    """A view that repeats dimensions of size 1."""
    return x.broadcast_to(shape)


def expand_dims(x, axis):
    """A view with one more dimension of size 1."""
    return x.expand_dim(axis)


def transpose(x, *, dtype=None):
    """The transpose of a 2-D tile, in PSUM."""
    x = _as_sbuf(x)
    made = _memory.allocate((x.shape[1], x.shape[0]), x.dtype, _memory.psum)
    _isa().nc_transpose(made, x)
    return made


def matmul(x, y, *, transpose_x=False):
    """x @ y (x.T @ y if transpose_x) of tiles, in PSUM: float32 [M, N]."""
    y = _as_sbuf(y)
    stationary = _as_sbuf(x) if transpose_x else copy(transpose(x))
    made = _memory.allocate((stationary.shape[1], y.shape[1]), ops_float32(), _memory.psum)
    _isa().nc_matmul(made, stationary, y)
    return made


def ops_float32():
    from nki._dtypes import ALL

    return ALL["float32"]


def _as_sbuf(x):
    return x if x.buffer is _memory.sbuf else copy(x)


def where(condition, x, y, *, dtype=None):
    """x where the condition is not zero, else y."""
    isa = _isa()
    tiles = [t for t in (x, y) if isinstance(t, _core.Tensor)]
    shape = condition.shape
    like = tiles[0] if tiles else condition
    out = _memory.allocate(shape, dtype if dtype is not None else like.dtype)
    _fill(out, y)
    predicate = _memory.allocate(shape, _uint8())
    isa.tensor_scalar(predicate, condition, ops.OPERATORS["not_equal"], 0.0)
    source = x
    if not isinstance(x, _core.Tensor) or x.dtype != out.dtype or x.shape != shape:
        source = _memory.allocate(shape, out.dtype)
        _fill(source, x)
    isa.tensor_copy_predicated(out, source, predicate)
    return out


def _uint8():
    from nki._dtypes import ALL

    return ALL["uint8"]


def _fill(dst, value):
    """Copies a tile or a number into dst, broadcasting."""
    isa = _isa()
    if not isinstance(value, _core.Tensor):
        isa.memset(dst, value)
        return
    value = ops._in_sbuf(value)
    isa.tensor_copy(dst, value if value.shape == dst.shape else ops._fit(value, dst.shape))


def _assign(target, value):
    """`t[...] = value`."""
    if _memory.is_hbm(target.buffer):
        store(target, value)
    elif isinstance(value, _core.Tensor) and _memory.is_hbm(value.buffer):
        _isa().dma_copy(dst=target, src=value)
    else:
        _fill(target, value)


_core.set_hook("assign", _assign)


# --- reductions over free axes


def _axes(x, axis):
    axes = [axis] if isinstance(axis, int) else list(axis)
    axes = sorted(a + x.ndim if a < 0 else a for a in axes)
    if 0 in axes:
        raise BadInput("bad input", "RED1", "A reduction over axis 0 runs over partitions: use nisa.tensor_partition_reduce or a matmul with ones.")
    if axes != builtins.list(builtins.range(axes[0], x.ndim)):
        raise BadInput("bad input", "RED2", f"axis={axis}: the axes of a reduction are the last ones, without a gap.")
    return axes


def _reduce(op, x, axis, dtype, keepdims):
    x = ops._in_sbuf(x)
    axes = _axes(x, axis)
    kept = x.shape[: axes[0]]
    out = _memory.allocate(kept + (1,) * len(axes), dtype if dtype is not None else x.dtype)
    _isa().tensor_reduce(out, op, x, tuple(axes))
    return out if keepdims or len(kept) < 2 else out.reshape(kept)


def sum(x, axis, *, dtype=None, keepdims=False):
    """Sum over the last axes."""
    return _reduce(ops.OPERATORS["add"], x, axis, dtype, keepdims)


def prod(x, axis, *, dtype=None, keepdims=False):
    """Product over the last axes."""
    return _reduce(ops.OPERATORS["multiply"], x, axis, dtype, keepdims)


def max(x, axis, *, dtype=None, keepdims=False):
    """Maximum over the last axes."""
    return _reduce(ops.OPERATORS["maximum"], x, axis, dtype, keepdims)


def min(x, axis, *, dtype=None, keepdims=False):
    """Minimum over the last axes."""
    return _reduce(ops.OPERATORS["minimum"], x, axis, dtype, keepdims)


def all(x, axis, *, dtype=None, keepdims=False):
    """1 where every element of the last axes is not zero."""
    return _reduce(ops.OPERATORS["logical_and"], x, axis, dtype, keepdims)


def mean(x, axis, *, dtype=None, keepdims=False):
    """Mean over the last axes."""
    count = math.prod(x.shape[a] for a in _axes(x, axis))
    total = _reduce(ops.OPERATORS["add"], x, axis, ops_float32(), keepdims)
    return ops.binary(ops.OPERATORS["multiply"], total, 1.0 / count, dtype if dtype is not None else x.dtype)


def var(x, axis, *, dtype=None, keepdims=True):
    """Variance over the last axes; dimensions are kept."""
    average = mean(x, axis, dtype=ops_float32(), keepdims=True)
    centred = ops.binary(ops.OPERATORS["subtract"], x, average, ops_float32())
    squares = ops.binary(ops.OPERATORS["multiply"], centred, centred, ops_float32())
    return mean(squares, axis, dtype=dtype if dtype is not None else x.dtype, keepdims=True)


def softmax(x, axis=-1, *, dtype=None):
    """exp(x - max) / sum over the last axes."""
    largest = max(x, axis, dtype=ops_float32(), keepdims=True)
    shifted = ops.binary(ops.OPERATORS["subtract"], x, largest, ops_float32())
    powers = ops.unary(ops.OPERATORS["exp"], shifted)
    total = sum(powers, axis, keepdims=True)
    return ops.binary(ops.OPERATORS["divide"], powers, total, dtype if dtype is not None else x.dtype)


def rms_norm(x, w, axis, n, *, epsilon=1e-6, dtype=None):
    """x * w / sqrt(sum(x^2) / n + epsilon) over the last axes."""
    squares = ops.unary(ops.OPERATORS["square"], x, ops_float32())
    total = sum(squares, axis, keepdims=True)
    scaled = ops.binary(ops.OPERATORS["add"], ops.binary(ops.OPERATORS["multiply"], total, 1.0 / n), epsilon)
    factor = ops.unary(ops.OPERATORS["rsqrt"], scaled)
    normal = ops.binary(ops.OPERATORS["multiply"], x, factor, ops_float32())
    return ops.binary(ops.OPERATORS["multiply"], normal, w, dtype if dtype is not None else x.dtype)


def _no_mask(mask):
    if mask is not None:
        raise BadInput("bad input", "MASK1", "mask= belongs to the older dialect (neuronxcc.nki); slice the tile instead.")


gather_flattened = later("nl.gather_flattened", "use nisa.nc_n_gather, or wait for the next release.")
dropout = later("nl.dropout", "the random generators come with the next release.")
random_seed = later("nl.random_seed", "the random generators come with the next release.")


# --- methods of tiles


def _text(self):
    if not _core.is_recording():
        return repr(self)
    return f"{self.name} = {self._values_text()}"


_core.Tensor.astype = lambda self, dtype: copy(self, dtype=dtype)
_core.Tensor.__repr__ = lambda self: f"<tensor {self.name} {list(self.shape)} {self.dtype} in {self.buffer.name}>"
_core.Tensor.__str__ = _text
