# SPDX-License-Identifier: Apache-2.0
"""Enumerations of `nki.isa`, with NKI's numbers."""

import enum


class engine(enum.IntEnum):
    """Engines of a NeuronCore."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown


class reduce_cmd(enum.IntEnum):
    """What an instruction does to its engine's accumulators."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(enum.IntEnum):
    """Who makes the descriptors of a DMA."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(enum.IntEnum):
    """What an index outside its tensor does."""

    error = 0
    skip = 1


class matmul_perf_mode(str, enum.Enum):
    """Performance modes of nc_matmul."""

    none = "none"
    double_row = "double_row"


class nc_version(enum.IntEnum):
    """Generations of the NeuronCore."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(enum.IntEnum):
    """DMA engines of sendrecv."""

    dma = 1
    gpsimd_dma = 2
