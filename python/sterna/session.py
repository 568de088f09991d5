# SPDX-License-Identifier: Apache-2.0
"""One kernel call, for any front end: arguments in, recording, results out."""

import sys
import warnings

import numpy as np

from sterna import _core, profiler, settings
from sterna.faults import SternaWarning

_NUMPY_NAMES = {"bool": np.bool_}


def numpy_dtype(name):
    """The numpy dtype of a type name; the small floats come from ml_dtypes."""
    found = _NUMPY_NAMES.get(name)
    if found is None:
        try:
            found = np.dtype(name)
        except TypeError:
            import ml_dtypes

            found = np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(np.float32)
        _NUMPY_NAMES[name] = found
    return found


class _Argument:
    """An array of the caller that became a parameter."""

    __slots__ = ("copied", "memory", "original", "tensor")

    def __init__(self, original, memory, tensor, copied):
        self.original, self.memory, self.tensor, self.copied = original, memory, tensor, copied


class Call:
    """Turns the caller's arrays into parameters, and tensors into results of the same kind."""

    def __init__(self, recording):
        self.recording = recording
        self.arguments = []
        self.by_place = {}
        self.torch = None

    def argument(self, name, value):
        """`value` with every array in it replaced by a tensor."""
        if isinstance(value, np.ndarray):
            return self._numpy(name, value)
        if isinstance(value, (list, tuple)):
            items = [self.argument(f"{name}_{i}", v) for i, v in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {k: self.argument(f"{name}_{k}", v) for k, v in value.items()}
        module = type(value).__module__
        if module.startswith("torch") and hasattr(value, "data_ptr"):
            return self._torch(name, value)
        if module.startswith("jax") and hasattr(value, "__array__"):
            return self._add(name, value, np.asarray(value))
        return value

    def _numpy(self, name, array):
        if array.ndim == 0:
            return array.item()
        return self._add(name, array, array)

    def _torch(self, name, value):
        import torch

        self.torch = torch
        plain = value.detach()
        if plain.device.type != "cpu":
            plain = plain.cpu()
        return self._add(name, value, _torch_as_numpy(torch, plain))

    def _add(self, name, original, array):
        # Lists, strides and byte orders that the core does not take are copied, and copied back if written.
        memory = array
        if not array.flags.c_contiguous or not array.dtype.isnative:
            memory = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
        interface = memory.__array_interface__
        address, read_only = interface["data"]
        place = (address, memory.shape, memory.dtype)
        known = self.by_place.get(place)
        if known is not None and memory.size:
            return known
        tensor = self.recording.parameter(memory.shape, memory.dtype.name, name, address, not read_only, memory)
        self._find_overlaps(name, address, memory.nbytes)
        self.by_place[place] = tensor
        self.arguments.append(_Argument(original, memory, tensor, memory is not array))
        return tensor

    def _find_overlaps(self, name, address, size):
        for other in self.arguments:
            start = other.memory.__array_interface__["data"][0]
            if address < start + other.memory.nbytes and start < address + size:
                warnings.warn(
                    f"[ARG4] the arguments '{name}' and '{other.tensor.name}' share memory without being the same array",
                    SternaWarning,
                    stacklevel=4,
                )

    def copy_back(self):
        """Gives the caller's own arrays the values of copied parameters that were written."""
        for argument in self.arguments:
            if not argument.copied or not self.recording.written(argument.tensor):
                continue
            if isinstance(argument.original, np.ndarray):
                argument.original[...] = argument.memory
            elif self.torch is not None and isinstance(argument.original, self.torch.Tensor):
                argument.original.copy_(_numpy_as_torch(self.torch, argument.memory))

    def result(self, tensor):
        """The caller's own object for a parameter, a fresh array for anything else."""
        for argument in self.arguments:
            if argument.tensor.tensor_id == tensor.tensor_id:
                return argument.original
        array = np.frombuffer(self.recording.result(tensor), dtype=numpy_dtype(str(tensor.dtype))).reshape(tensor.shape)
        return _numpy_as_torch(self.torch, array) if self.torch is not None else array


_TORCH_BITS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


def _torch_as_numpy(torch, tensor):
    name = str(tensor.dtype).rsplit(".", 1)[-1]
    bits = _TORCH_BITS.get(name)
    if bits is None:
        return tensor.numpy()
    return tensor.view(getattr(torch, bits)).numpy().view(numpy_dtype(name))


def _numpy_as_torch(torch, array):
    name = array.dtype.name
    bits = _TORCH_BITS.get(name)
    if bits is None:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(bits)).view(getattr(torch, name))


def run(function, args, kwargs, bind_names, schedule=None):
    """Records `function` on tensors in place of arrays, executes, and returns results of the caller's kind."""
    recording = _core.Recording(
        settings.target(),
        name=getattr(function, "__name__", "kernel"),
        strict=settings.strict(),
        uninit=settings.uninit(),
        eager=settings.eager(),
        threads=settings.threads(),
        nki_version=settings.nki_version(),
    )
    call = Call(recording)
    names = bind_names(args, kwargs)
    profile = profiler.active()
    clock = profiler.Clock() if profile else None
    with recording:
        tensors = [call.argument(name, value) for name, value in zip(names, args)]
        named = {name: call.argument(name, value) for name, value in kwargs.items()}
        returned = enter(function, tensors, named)
        if schedule:
            schedule(recording)
        results = _results_of(returned)
        if clock:
            clock.recorded()
        try:
            recording.finish(results)
        finally:
            call.copy_back()
    if clock:
        clock.executed()
    shaped = _shaped_like(returned, [call.result(tensor) for tensor in results])
    if profile:
        profile.add(recording, function, call.arguments, clock)
    return shaped


def enter(function, args, kwargs):
    """Call trees of sites end at this frame."""
    return function(*args, **kwargs)


_core.set_hook("entry", enter.__code__)


def _results_of(returned):
    if returned is None:
        return []
    if isinstance(returned, (list, tuple)):
        return list(returned)
    return [returned]


def _shaped_like(returned, results):
    if returned is None:
        return None
    if isinstance(returned, (list, tuple)):
        return tuple(results)
    return results[0]


def _show_warning(rule, message, file, line):
    warnings.warn_explicit(f"[{rule}] {message}", SternaWarning, file or "<kernel>", line or 1, registry=_shown)


_shown = {}


def _print(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


_core.set_hook("warn", _show_warning)
_core.set_hook("print", _print)
