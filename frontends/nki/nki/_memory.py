# SPDX-License-Identifier: Apache-2.0
"""Memories and tensors."""

import enum
import os

from nki import _dtypes
from nki._remarks import fail
from sterna import _core, settings


class MemoryRegion(enum.Enum):
    """Where a tensor lives."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"
    hbm = private_hbm  # another name of the same

    def __repr__(self):
        return f"nl.{self.name}"


hbm = private_hbm = MemoryRegion.hbm
sbuf, psum, shared_hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.shared_hbm
for _number, _region in enumerate((hbm, sbuf, psum)):  # in the order of the core
    _core.register_buffer(_region, _number)
_core.register_buffer(shared_hbm, 0, True)

Tensor = _core.Tensor


def is_hbm(buffer):
    """True for buffers in HBM, private or shared."""
    return buffer is hbm or buffer is shared_hbm


def is_sbuf(buffer):
    """True for SBUF."""
    return buffer is sbuf


def is_psum(buffer):
    """True for PSUM."""
    return buffer is psum


def is_on_chip(buffer):
    """True for SBUF and PSUM."""
    return buffer is sbuf or buffer is psum


class _TensorMeta(type):
    """`nl.ndarray(...)` makes a tensor, `isinstance(t, nl.ndarray)` asks whether something is one."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor)

    def __call__(cls, shape, dtype, buffer=sbuf, name="", address=None, **unknown):
        if unknown:
            raise TypeError(f"ndarray() got an unexpected keyword argument {next(iter(unknown))!r}")
        return allocate(shape, dtype, buffer, name, address)


class ndarray(metaclass=_TensorMeta):
    """ndarray(shape, dtype, buffer=nl.sbuf, name='', address=None): a tensor without values.

    shape: dim 0 is the partition in SBUF and PSUM; address: (partition, byte in the partition).
    """


def allocate(shape, dtype, buffer=sbuf, name="", address=None):
    if buffer is sbuf:
        memory = 1
    elif buffer is psum:
        memory = 2
    elif buffer is shared_hbm or buffer is hbm:
        memory = 0
    else:
        fail("BUF2", f"buffer={buffer!r}: use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm (not a string).", "wrong type")
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    return _core.current().tensor(shape, dtype, memory, name or None, buffer is shared_hbm, address)


def empty_like(x, dtype=None, buffer=None, name=""):
    """A tensor without values, of x's shape."""
    return allocate(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def full(shape, fill_value, dtype, buffer=sbuf, name="", address=None):
    """A tensor of one value."""
    from nki import isa

    made = allocate(shape, dtype, buffer, name, address)
    if not is_hbm(buffer):
        isa.memset(made, fill_value)
        return made
    for block in row_blocks(made):
        tile = allocate(block.shape, dtype, sbuf)
        isa.memset(tile, fill_value)
        isa.dma_copy(dst=block, src=tile)
    return made


def row_blocks(tensor):
    """HBM is written by DMA from a tile, a block of rows at a time: the blocks."""
    rows = tensor.shape[0] if len(tensor.shape) > 1 else 1
    flat = tensor.reshape((rows, tensor.size // rows)) if tensor.size else tensor
    for start in range(0, rows, 128):
        yield flat[start : min(start + 128, rows)]


def zeros(shape, dtype, buffer=sbuf, name="", address=None):
    """A tensor of zeros."""
    return full(shape, 0, dtype, buffer=buffer, name=name, address=address)


def ones(shape, dtype, buffer=sbuf, name="", address=None):
    """A tensor of ones."""
    return full(shape, 1, dtype, buffer=buffer, name=name, address=address)


def zeros_like(x, dtype=None, buffer=None, name=""):
    """A tensor of zeros, of x's shape."""
    return zeros(x.shape, dtype or x.dtype, buffer=buffer or x.buffer, name=name)


class ds(tuple):
    """ds(start, size): the slice start : start + size of one dimension; start may be a register."""

    __slots__ = ()

    def __new__(cls, start, size):
        return tuple.__new__(cls, (start, size))


_core.set_hook("ds", ds)


class _TileSize:
    """Sizes of the target's tiles, in elements unless the name says bytes."""

    def _chip(self):
        return settings.chip(_core.current().target if _core.is_recording() else settings.target())

    pmax = property(lambda self: self._chip()["partitions"])
    psum_fmax = psum_bank_fmax = property(lambda self: self._chip()["psum_bank_bytes"] // 4)
    psum_bank_fmax_bytes = property(lambda self: self._chip()["psum_bank_bytes"])
    # Transposes by DMA that are done on the tensor engine instead keep one bank for themselves.
    psum_num_banks = property(
        lambda self: self._chip()["psum_banks"] - settings.flag("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE")
    )
    gemm_stationary_fmax = property(lambda self: self._chip()["stationary_free"])
    # 512 on every target by the documents (the MX guide for trn3 too): one PSUM bank, though gen4 takes eight.
    gemm_moving_fmax = property(lambda self: min(self._chip()["moving_free"], self.psum_fmax))
    bn_stats_fmax = property(lambda self: self._chip()["bn_stats_free"])
    psum_min_align = sbuf_min_align = property(lambda self: self._chip()["address_align"])
    sbuf_size_bytes = property(lambda self: self._chip()["sbuf_partition_bytes"] * self._chip()["partitions"])
    sbuf_fmax = property(lambda self: self._chip()["sbuf_partition_bytes"] // 4)
    sbuf_fmax_bytes = total_available_sbuf_size = property(lambda self: self._chip()["sbuf_partition_bytes"])


tile_size = _TileSize()


def shared_constant(constant, dtype=None):
    """A constant array in HBM; a numpy array or the path of a .npy file."""
    import numpy as np

    array = np.array(np.load(constant) if isinstance(constant, (str, os.PathLike)) else constant, order="C")
    if dtype is not None:
        array = array.astype(_dtypes.numpy_dtype(str(dtype)))
    address, _ = array.__array_interface__["data"]
    return _core.current().parameter(array.shape, array.dtype.name, "constant", address, False, array, True)


def shared_identity_matrix(n, dtype=_dtypes.ALL["uint8"], dst=None):
    """The n x n identity in SBUF."""
    from nki import isa
    from nki import language as nl

    made = allocate((n, n), dtype) if dst is None else dst
    ones_tile = allocate((n, n), _dtypes.ALL["float32"])
    isa.memset(ones_tile, 1.0)
    isa.affine_select(
        made, pattern=[[-1, n]], channel_multiplier=1, on_true_tile=ones_tile, on_false_value=0.0, cmp_op=nl.equal
    )
    return made
