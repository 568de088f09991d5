# SPDX-License-Identifier: Apache-2.0
"""`neuron_dtypes` as far as nki-library uses it: conversions between numpy arrays of every NeuronCore type."""

import ml_dtypes
import numpy as np

from sterna.arrays import numpy_dtype

try:
    from sterna import x4 as _x4
except (ImportError, AttributeError):
    _x4 = None

bfloat16 = ml_dtypes.bfloat16
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu
_PACKED = ("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4")
float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4 = (
    getattr(_x4, name) if _x4 else numpy_dtype(name) for name in _PACKED
)


def _is_packed(dtype):
    return str(dtype).endswith("_x4")


def _dtype(dtype):
    """The numpy dtype of a name, an NKI type, a numpy type or a dtype."""
    if isinstance(dtype, str):
        return numpy_dtype(str(dtype))
    return np.dtype(dtype)


def static_cast(array, dtype):
    """`array` in another type. Four neighbours of the last axis are one element of a packed (x4) type."""
    array = np.asarray(array)
    if _is_packed(dtype) or _is_packed(array.dtype):
        if str(array.dtype) == str(dtype):
            return array
        return _x4.static_cast(array, dtype)
    return array.astype(_dtype(dtype))


def sizeinbytes(dtype):
    """Bytes of one element; of four, for packed types."""
    return _dtype(dtype).itemsize


def is_float_type(dtype):
    """True for every floating-point type, small and packed ones included."""
    return "float" in (dtype if isinstance(dtype, str) else _dtype(dtype).name)


def finfo(dtype):
    """Limits of a floating-point type."""
    return ml_dtypes.finfo(_dtype(dtype))
