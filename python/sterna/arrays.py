# SPDX-License-Identifier: Apache-2.0
"""Kinds of array that a caller may hold: numpy, torch, jax, and whatever speaks DLPack. Nothing is imported before it is met."""

import functools
import sys

import numpy as np

_NUMPY_DTYPES = {"bool": np.dtype(np.bool_), "tfloat32": np.dtype(np.float32)}


@functools.cache
def name_of(dtype):
    """`dtype.name`, which numpy puts together anew each time; in a small kernel's call that shows."""
    return dtype.name


def numpy_dtype(name):
    """The numpy dtype of a type name; the small floats come from ml_dtypes."""
    found = _NUMPY_DTYPES.get(name)
    if found is None:
        try:
            found = np.dtype(name)
        except TypeError:
            found = _registered_dtype(name)
        _NUMPY_DTYPES[name] = found
    return found


def _registered_dtype(name):
    """Types that others add to numpy: small floats by ml_dtypes, packed ones by sterna.x4."""
    if name.endswith("_x4"):
        from sterna import x4

        return x4.DTYPES[name]
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


class NUMPY:
    """Also the kind of results when no argument was of another one."""

    @staticmethod
    def to_numpy(value):
        return np.from_dlpack(value)

    @staticmethod
    def from_numpy(array):
        return array


# Types that torch has and numpy's own types have not: seen through an integer of the same size.
_TORCH_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e8m0fnu": "uint8"}
# Types that neither torch nor jax has: they get the integers of the same size, as torch does for those that only jax has.
_WORDS = {"float8_e4m3fn_x4": "int32", "float8_e5m2_x4": "int32", "float4_e2m1fn_x4": "int16"}


def _as_words(array):
    words = _WORDS.get(array.dtype.name)
    return array.view(words) if words else array


class TORCH:
    @staticmethod
    def to_numpy(value):
        plain = value.detach()
        if plain.device.type != "cpu":
            plain = plain.cpu()
        name = str(plain.dtype).rsplit(".", 1)[-1]
        bits = _TORCH_BITS.get(name)
        if bits is None:
            return plain.numpy()
        return plain.view(getattr(sys.modules["torch"], bits)).numpy().view(numpy_dtype(name))

    @staticmethod
    def from_numpy(array):
        torch, array = sys.modules["torch"], _as_words(array)
        name = array.dtype.name
        dtype = getattr(torch, name, None)
        if dtype is None:  # float8_e4m3, float8_e3m4, and float8_e8m0fnu where torch is older than it
            return torch.from_numpy(array.view(f"uint{8 * array.itemsize}"))
        bits = _TORCH_BITS.get(name)
        return torch.from_numpy(array) if bits is None else torch.from_numpy(array.view(bits)).view(dtype)


class JAX:
    @staticmethod
    def to_numpy(value):
        return np.asarray(value)  # read-only: jax arrays never change

    @staticmethod
    def from_numpy(array):
        return sys.modules["jax"].numpy.asarray(_as_words(array))


def kind_of(value):
    """The kind of an array that is not numpy's, None for anything else."""
    if not hasattr(value, "__dlpack__"):
        return None
    package = type(value).__module__.partition(".")[0]
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        return TORCH
    return JAX if package in ("jax", "jaxlib") else NUMPY


def give_back(original, array):
    """`array` was written; where `original` lives elsewhere (another device), it gets the values."""
    if isinstance(original, np.ndarray) or not hasattr(original, "device"):
        return
    if getattr(original.device, "type", "cpu") != "cpu" and hasattr(original, "copy_"):
        original.detach().copy_(TORCH.from_numpy(array))
