# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: a program that was recorded twice for the same key is kept and run again without Python for new data.

The key holds what the caller chose (the function, constants, shapes, dtypes, which arguments are one array, target, cores, NKI
version, modes); `Dependencies` holds what the Python code could see besides: the code of every function that it can enter by
name, and the globals, closures and defaults that these name. What cannot be compared is not cached: a kernel that writes
globals, prints, or names an object that may change unseen is recorded at every call.
"""

import os
import threading
from collections import OrderedDict

import numpy as np

from sterna.cache_content import Dependencies as Dependencies
from sterna.cache_content import Uncacheable, constant, objects_in

#: programs kept, and the bytes of their records together
MOST_PROGRAMS = 64
MOST_BYTES = 256 << 20


def enabled():
    """STERNA_CACHE=off turns the cache off."""
    return os.environ.get("STERNA_CACHE", "on").lower() not in ("off", "0", "false", "no")


# --- the cache


class Entry:
    """A recorded program with what is needed to run it again."""

    __slots__ = ("busy", "bytes", "dependencies", "form", "parameters", "recording", "results")

    def __init__(self, recording, dependencies, parameters, results, form):
        self.recording, self.dependencies = recording, dependencies
        self.parameters, self.results, self.form = parameters, results, form
        self.bytes = recording.program_bytes
        self.busy = False


class Cache:
    """Least recently used entries go first."""

    def __init__(self):
        self._entries = OrderedDict()
        self._met = OrderedDict()  # keys seen once: a program is kept from its second recording on
        self._lock = threading.Lock()
        self._bytes = 0
        self.hits = self.misses = 0

    def take(self, key):
        """The entry of `key`, reserved for the caller; None if there is none that still holds."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.busy:
                self.misses += 1
                return None
            entry.busy = True
        good = entry.dependencies.hold()
        with self._lock:
            kept = self._entries.get(key) is entry  # another thread may have cleared or replaced it meanwhile
            if good:
                self.hits += 1
                if kept:
                    self._entries.move_to_end(key)
                return entry
            self.misses += 1
            if kept:
                self._drop(key)
        return None

    def give_back(self, entry):
        entry.recording.release()
        entry.busy = False

    def wants(self, key):
        """True if a recording under this key should be kept: it is the second."""
        with self._lock:
            mark = hash(key)  # not the key itself, which would keep the function and all that it holds
            if mark in self._met:
                return key not in self._entries
            self._met[mark] = None
            while len(self._met) > 4 * MOST_PROGRAMS:
                self._met.popitem(last=False)
            return False

    def keep(self, key, entry):
        with self._lock:
            if key in self._entries or entry.bytes > MOST_BYTES:
                return
            self._entries[key] = entry
            self._bytes += entry.bytes
            while len(self._entries) > MOST_PROGRAMS or self._bytes > MOST_BYTES:
                self._drop(next(iter(self._entries)))

    def clear(self):
        with self._lock:
            self._entries.clear()
            self._met.clear()
            self._bytes = self.hits = self.misses = 0

    def __len__(self):
        return len(self._entries)

    def _drop(self, key):
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.bytes


cache = Cache()


class Signature:
    """What one call passes: a key, and the arrays in the order in which they become parameters."""

    def __init__(self, function, options, args, kwargs, kind_of):
        self._kind_of = kind_of
        self.arrays = []
        self._places = {}
        self.objects = []
        parts = [self._part(value) for value in args]
        parts += [(name, self._part(value)) for name, value in kwargs.items()]
        self.key = (function, options, *parts)

    def _part(self, value):
        if isinstance(value, np.ndarray):
            return self._array(value, value)
        kind = type(value)
        if kind in _SIMPLE:
            return constant(value)
        if kind in (list, tuple):
            return (kind, *(self._part(item) for item in value))
        if kind is dict:
            return (dict, *((name, self._part(item)) for name, item in value.items()))
        kind = self._kind_of(value)
        if kind is not None:
            return self._array(value, kind.to_numpy(value), kind)
        self.objects.extend(objects_in(value))
        return constant(value)

    def _array(self, original, array, kind=None):
        if array.ndim == 0:
            return (np.ndarray, constant(array.item()))
        interface = array.__array_interface__
        place = (interface["data"][0], array.shape, array.strides, array.dtype)
        known = self._places.get(place)
        if known is not None:
            return ("same", known)
        self._places[place] = len(self.arrays)
        flags = array.flags
        if not flags.c_contiguous or not array.dtype.isnative:
            raise Uncacheable("an argument that is copied")
        for _, other in self.arrays:
            if np.may_share_memory(array, other):
                raise Uncacheable("arguments that share memory")
        self.arrays.append((original, array))
        return (np.ndarray, array.shape, array.dtype, flags.writeable, kind)


_SIMPLE = frozenset((int, float, str, bool, type(None), bytes))
