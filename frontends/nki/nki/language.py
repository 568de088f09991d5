# SPDX-License-Identifier: Apache-2.0
"""`nki.language`: types, memories, loops, and tile operations built from instructions.

Each operator is two things, as in NKI: a function on tiles, and the constant that instructions take as `op=`.
"""

from nki import _views as _views
from nki._dtypes import ALL as _DTYPES
from nki._dtypes import DType
from nki._loops import (
    affine_range,
    device_print,
    dynamic_range,
    fori_loop,
    no_reorder,
    num_programs,
    program_id,
    program_ndim,
    range,
    sequential_range,
    static_range,
    while_loop,
)
from nki._memory import (
    MemoryRegion,
    ds,
    empty_like,
    full,
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    ndarray,
    ones,
    private_hbm,
    psum,
    sbuf,
    shared_constant,
    shared_hbm,
    shared_identity_matrix,
    tile_size,
    zeros,
    zeros_like,
)
from nki._objects import NKIObject
from nki._operators import *  # noqa: F403
from nki._operators import OPERATORS as _OPERATORS
from nki._random import dropout, rand, random_seed
from nki._tiles import (
    all,
    broadcast_to,
    cast,
    copy,
    expand_dims,
    gather_flattened,
    load,
    load_transpose2d,
    matmul,
    max,
    mean,
    min,
    prod,
    rms_norm,
    softmax,
    store,
    sum,
    transpose,
    var,
    where,
)
from nki._version import missing as _missing

NkiTensor = ndarray

float32, tfloat32, bfloat16, float16 = (_DTYPES[n] for n in ("float32", "tfloat32", "bfloat16", "float16"))
float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e3m4 = (
    _DTYPES[n] for n in ("float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e3m4")
)
float8_e8m0fnu = _DTYPES["float8_e8m0fnu"]
float4_e2m1fn = _DTYPES["float4_e2m1fn"]
float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4 = (
    _DTYPES[n] for n in ("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4")
)
bool_ = _DTYPES["bool"]
globals()["bool"] = bool_
int8, int16, int32 = (_DTYPES[n] for n in ("int8", "int16", "int32"))
uint8, uint16, uint32 = (_DTYPES[n] for n in ("uint8", "uint16", "uint32"))


class fp32:
    """Limits of float32."""

    min = -3.4028234663852886e38
    max = 3.4028234663852886e38


def __getattr__(name):
    raise _missing("nki.language", name)
