# SPDX-License-Identifier: Apache-2.0
"""The arrays of one kernel call: arguments as tensors on the way in, results as the caller's kind of array on the way out."""

import copy

import numpy as np

from sterna import arrays
from sterna.cache_content import fields_of, is_record
from sterna.faults import BadInput, WrongType, warn_caller


class _Argument:
    """An array of the caller that became a parameter.

    original: the caller's object; array: its memory as numpy sees it; memory: what the core works on, `array` itself or a copy.
    """

    __slots__ = ("array", "memory", "original", "tensor")

    def __init__(self, original, array, memory, tensor):
        self.original, self.array, self.memory, self.tensor = original, array, memory, tensor


class Call:
    """Turns the caller's arrays into parameters, and tensors into results of the same kind."""

    def __init__(self, recording):
        self.recording = recording
        self.arguments = []
        self._by_place = {}
        self._objects = {}
        self._overlaps = []
        self._results = {}
        self._kind = arrays.NUMPY

    def argument(self, name, value):
        """`value` with every array in it replaced by a tensor."""
        if isinstance(value, np.ndarray):
            return value.item() if value.ndim == 0 else self._add(name, value, value)
        if isinstance(value, (list, tuple)):
            items = [self.argument(f"{name}_{i}", v) for i, v in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {k: self.argument(f"{name}_{k}", v) for k, v in value.items()}
        kind = arrays.kind_of(value)
        if kind is None:
            return self._object(name, value) if is_record(value) and _holds_arrays(value, set()) else value
        if kind is not arrays.NUMPY:
            self._kind = kind
        array = kind.to_numpy(value)
        return array.item() if array.ndim == 0 else self._add(name, value, array)

    def _object(self, name, value):
        """A copy of a dataclass or NKIObject, its arrays replaced by tensors; the caller's stays as it is."""
        made = self._objects.get(id(value))
        if made is None:
            made = self._objects[id(value)] = copy.copy(value)
            for field, item in fields_of(value).items():
                object.__setattr__(made, field, self.argument(f"{name}_{field}", item))  # dataclasses may be frozen
        return made

    def _add(self, name, original, array):
        interface = array.__array_interface__
        place = (interface["data"][0], array.shape, array.strides, array.dtype)
        known = self._by_place.get(place)
        if known is not None:
            return known
        memory = array
        if not array.flags.c_contiguous or not array.dtype.isnative:
            # Strides and byte orders that the core does not take are copied, and copied back if written.
            memory = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        address = memory.__array_interface__["data"][0]
        try:
            tensor = self.recording.parameter(
                memory.shape, arrays.name_of(memory.dtype), name, address, array.flags.writeable, memory
            )
        except TypeError:
            raise WrongType(
                "wrong type",
                "ARG3",
                f"The argument '{name}' has the type {array.dtype}, which no NeuronCore has; convert it first.",
            ) from None
        self._by_place[place] = tensor
        made = _Argument(original, array, memory, tensor)
        self._find_overlaps(made)
        self.arguments.append(made)
        return tensor

    def add_known(self, original, array, tensor):
        """An argument of a program that is run again, as parameter `tensor`."""
        kind = arrays.kind_of(original)
        if kind is not None and kind is not arrays.NUMPY:
            self._kind = kind
        self.arguments.append(_Argument(original, array, array, tensor))

    def _find_overlaps(self, argument):
        for other in self.arguments:
            if not (argument.array.size and other.array.size and np.may_share_memory(argument.array, other.array)):
                continue
            names = f"the arguments '{argument.tensor.name}' and '{other.tensor.name}' share memory without being the same array"
            warn_caller(f"[ARG4] {names}")
            if argument.memory is not argument.array or other.memory is not other.array:
                self._overlaps.append((argument, other, names))

    def check_overlaps(self):
        """Copies of overlapping arguments do not see what is written into each other."""
        for one, other, names in self._overlaps:
            if self.recording.written(one.tensor) or self.recording.written(other.tensor):
                raise BadInput(
                    "bad input", "ARG5", f"{names}, one is not contiguous, and one is written. Pass contiguous arrays."
                )

    def copy_back(self):
        """Gives the caller's own arrays the values of copied parameters that were written."""
        for argument in self.arguments:
            if argument.memory is not argument.original and self.recording.written(argument.tensor):
                if argument.memory is not argument.array:
                    argument.array[...] = argument.memory
                arrays.give_back(argument.original, argument.array)

    def result(self, tensor, values=True):
        """The caller's own object for a parameter, a fresh array for anything else."""
        for argument in self.arguments:
            if argument.tensor.tensor_id == tensor.tensor_id:
                same = argument.tensor.shape == tensor.shape
                return argument.original if same else argument.original.reshape(tensor.shape)
        made = self._results.get(tensor.tensor_id)
        if made is None:
            made = self._results[tensor.tensor_id] = self._fresh(tensor, values)
        return made if tuple(made.shape) == tensor.shape else made.reshape(tensor.shape)

    def _fresh(self, tensor, values):
        dtype = arrays.numpy_dtype(str(tensor.dtype))
        if values:
            array = np.frombuffer(self.recording.result(tensor), dtype=dtype).reshape(tensor.shape)
        else:
            array = _unknown(dtype, tensor.shape)
        return self._kind.from_numpy(array)


def _holds_arrays(value, seen):
    """True if an array is somewhere inside a value."""
    if isinstance(value, np.ndarray) or arrays.kind_of(value) is not None:
        return True
    if id(value) in seen:
        return False
    if isinstance(value, (list, tuple)):
        items = value
    elif isinstance(value, dict):
        items = value.values()
    elif is_record(value):
        items = fields_of(value).values()
    else:
        return False
    seen.add(id(value))
    return any(_holds_arrays(item, seen) for item in items)


def _unknown(dtype, shape):
    """A read-only array without memory of its own, of NaN, or of zeros where the type has none."""
    has_nan = dtype.kind not in "biu" and not dtype.name.endswith("_x4")
    one = np.full((), np.nan).astype(dtype) if has_nan else np.zeros((), dtype)
    return np.broadcast_to(one, shape)
