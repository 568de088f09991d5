# SPDX-License-Identifier: Apache-2.0
"""Number formats as NKI spells them: strings that numpy and ml_dtypes understand too."""

import ml_dtypes
import numpy as np

from sterna import (
    _core,
    x4,  # noqa: F401 - from here on numpy knows the packed types by their names
)
from sterna.arrays import numpy_dtype


class DType(str):
    """The name of a type. Equal to numpy's dtype of that name, usable as `dtype=` of numpy functions."""

    __slots__ = ()

    @property
    def itemsize(self):
        return numpy_dtype(str(self)).itemsize

    @property
    def name(self):
        return str(self)

    def __eq__(self, other):
        if isinstance(other, str):
            return str.__eq__(self, other)
        try:
            return np.dtype(other) == numpy_dtype(str(self)) if other is not None else False
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return f"nl.{str.__str__(self)}"

    def __call__(self, value=0):
        return numpy_dtype(str(self)).type(value)


_NAMES = (
    "float32 tfloat32 bfloat16 float16 float8_e4m3 float8_e4m3fn float8_e5m2 float8_e3m4 float8_e8m0fnu float4_e2m1fn "
    "float8_e4m3fn_x4 float8_e5m2_x4 float4_e2m1fn_x4 bool int8 int16 int32 uint8 uint16 uint32"
).split()

ALL = {name: DType(name) for name in _NAMES}
for _name, _dtype in ALL.items():
    _core.register_dtype(_dtype, _name)
# What numpy calls the same types.
for _name in "float32 float16 int8 int16 int32 uint8 uint16 uint32".split():
    _core.register_dtype(getattr(np, _name), _name, False)
    _core.register_dtype(np.dtype(_name), _name, False)
_core.register_dtype(np.bool_, "bool", False)
_core.register_dtype(bool, "bool", False)
_core.register_dtype(ml_dtypes.bfloat16, "bfloat16", False)


def of(value):
    """The DType of a name, a DType or a numpy dtype."""
    text = value if isinstance(value, str) else np.dtype(value).name
    return ALL[text]
