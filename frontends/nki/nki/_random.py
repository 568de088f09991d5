# SPDX-License-Identifier: Apache-2.0
"""Random numbers of `nki.language`, from the vector engine's generator."""

import nki
from nki import _memory, _tiles
from nki import _operators as ops
from nki._dtypes import ALL as _DTYPES
from sterna import _core, settings

_WORD_BITS, _FRACTION_BITS = 32, 24  # what fp32 holds exactly


def random_seed(seed):
    """Seeds the generator with the one 32-bit element of a tile."""
    nki.isa.set_rng_seed(seed)


def rand(shape, dtype, buffer=_memory.sbuf, name=""):
    """A tensor of uniform random numbers, at least 0 and below 1 before they are rounded to dtype."""
    made = _memory.allocate(shape, dtype, buffer, name)
    if not _memory.is_hbm(buffer):
        _fill(made)
        return made
    for block in _memory.row_blocks(made):
        tile = _memory.allocate(block.shape, dtype)
        _fill(tile)
        nki.isa.dma_copy(dst=block, src=tile)
    return made


def _fill(tile):
    """One instruction where the target has it, else the upper bits of random words times a power of two."""
    if settings.chip(_core.current().target)["xorwow"]:
        nki.isa.rand2(tile, 0.0, 1.0)
        return
    words = _memory.allocate(tile.shape, _DTYPES["uint32"])
    nki.isa.rng(words)
    nki.isa.tensor_scalar(words, words, ops.OPERATORS["right_shift"], _WORD_BITS - _FRACTION_BITS)
    nki.isa.tensor_scalar(tile, words, ops.OPERATORS["multiply"], 2.0**-_FRACTION_BITS)


def dropout(x, rate, dtype=None):
    """x with elements replaced by zero, each with probability `rate`: a number or a tile (P, 1)."""
    x = ops.in_sbuf(x)
    made = _memory.allocate(x.shape, x.dtype)
    nki.isa.dropout(made, x, rate)
    return made if dtype is None or dtype == x.dtype else _tiles.copy(made, dtype=dtype)
