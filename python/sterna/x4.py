# SPDX-License-Identifier: Apache-2.0
"""Packed x4 types in NumPy: their dtypes, and conversion to and from other types.

An x4 element holds four numbers of eight bits (fp8) or four bits (fp4), the first in its low bits. Its dtype has that name, can be used
wherever a dtype can, and is moved and viewed as other types of its size; NumPy itself does not convert it (`astype` raises TypeError).
"""

import numpy as np

from sterna import _core

float8_e4m3fn_x4 = _core.packed_dtype("float8_e4m3fn_x4")
float8_e5m2_x4 = _core.packed_dtype("float8_e5m2_x4")
float4_e2m1fn_x4 = _core.packed_dtype("float4_e2m1fn_x4")

#: by name
DTYPES = {dtype.name: dtype for dtype in (float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4)}

#: elements of an x4 element
PACKED = 4


def dtype_of(dtype):
    """The numpy dtype of a name, of one of nki.language's types, of a numpy or ml_dtypes type."""
    from sterna.arrays import numpy_dtype

    return numpy_dtype(str(dtype)) if isinstance(dtype, str) else np.dtype(dtype)


def is_packed(dtype):
    return dtype_of(dtype).name in DTYPES


def pack(values, dtype):
    """fp32 numbers to x4 elements: the last axis is four times shorter. Conversion to nearest even."""
    dtype = dtype_of(dtype)
    values = np.ascontiguousarray(values, dtype=np.float32)
    if values.ndim == 0 or values.shape[-1] % PACKED:
        raise ValueError(f"{dtype} packs 4 numbers: the last axis of {list(values.shape)} is not a multiple of 4.")
    shape = (*values.shape[:-1], values.shape[-1] // PACKED)
    if dtype.itemsize == 4:
        return np.frombuffer(_core.encode(dtype.name.removesuffix("_x4"), values), dtype=dtype).reshape(shape).copy()
    nibbles = np.frombuffer(_core.encode("float4_e2m1fn", values), dtype=np.uint8).reshape(-1, PACKED)
    return (
        (nibbles.astype(np.uint16) << np.arange(0, 16, 4, dtype=np.uint16))
        .sum(1, dtype=np.uint16)
        .view(dtype)
        .reshape(shape)
    )


def unpack(packed):
    """x4 elements to fp32 numbers: the last axis is four times longer."""
    packed = np.ascontiguousarray(packed)
    shape = (*packed.shape[:-1], packed.shape[-1] * PACKED)
    if packed.dtype.itemsize == 4:
        small = packed.view(np.uint8)
        name = packed.dtype.name.removesuffix("_x4")
    else:
        words = packed.view(np.uint16)[..., np.newaxis] >> np.arange(0, 16, 4, dtype=np.uint16)
        small, name = (words & 15).astype(np.uint8), "float4_e2m1fn"
    return np.frombuffer(_core.decode(name, np.ascontiguousarray(small)), dtype=np.float32).reshape(shape).copy()


def static_cast(array, dtype):
    """`array` as `dtype`: `astype`, and packing (unpacking) of the last axis by 4 to (from) x4 types, through fp32."""
    array, dtype = np.asarray(array), dtype_of(dtype)
    if array.dtype == dtype:
        return array
    if array.dtype.name in DTYPES:
        array = unpack(array)
    if dtype.name in DTYPES:
        return pack(array, dtype)
    return array.astype(dtype)
