# SPDX-License-Identifier: Apache-2.0
"""`neuron_dtypes` as far as nki-library uses it: conversions between numpy arrays of every NeuronCore type."""

import ml_dtypes
import numpy as np

from sterna import x4
from sterna.arrays import numpy_dtype

bfloat16 = ml_dtypes.bfloat16
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu
float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4 = x4.float8_e4m3fn_x4, x4.float8_e5m2_x4, x4.float4_e2m1fn_x4
static_cast = x4.static_cast


def _dtype(dtype):
    """The numpy dtype of a name, an NKI type, a numpy type or a dtype."""
    if isinstance(dtype, str):
        return numpy_dtype(str(dtype))
    return np.dtype(dtype)


def sizeinbytes(dtype):
    """Bytes of one element; of four, for packed types."""
    return _dtype(dtype).itemsize


def is_float_type(dtype):
    """True for every floating-point type, small and packed ones included."""
    return "float" in (dtype if isinstance(dtype, str) else _dtype(dtype).name)


def finfo(dtype):
    """Limits of a floating-point type."""
    return ml_dtypes.finfo(_dtype(dtype))
