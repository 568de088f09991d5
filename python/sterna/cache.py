# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: a program that was recorded twice for the same key is kept and run again without Python for new data.

The key holds what the caller chose (the function, constants, shapes, dtypes, which arguments are one array, target, cores, NKI
version, modes); `Dependencies` holds what the Python code could see besides: the code of every function that it can enter by
name, and the globals, closures and defaults that these name. What cannot be compared is not cached: a kernel that writes
globals, prints, or names an object that may change unseen is recorded at every call.
"""

import builtins
import dataclasses
import dis
import enum
import os
import sys
import threading
import types
from collections import OrderedDict

import numpy as np

#: programs kept, and the bytes of their records together
MOST_PROGRAMS = 64
MOST_BYTES = 256 << 20

# A kernel that names one of these does more than record.
_EFFECTS = frozenset(
    "print input open breakpoint exec eval compile globals locals vars getattr hasattr setattr delattr __import__".split()
)
_PLAIN = (int, str, bytes, bool, type(None), type(Ellipsis), np.dtype, np.ufunc)


# Of numpy: what does not give the same for the same arguments.
_IMPURE_NUMPY = frozenset("random load loadtxt genfromtxt fromfile memmap save savez savetxt".split())


class Uncacheable(Exception):
    """Why a kernel is recorded at every call."""


def enabled():
    """STERNA_CACHE=off turns the cache off."""
    return os.environ.get("STERNA_CACHE", "on").lower() not in ("off", "0", "false", "no")


# --- constants among the arguments


def constant(value, depth=0):
    """A hashable stand-in for a value that a kernel gets or sees; equal stand-ins mean equal recordings."""
    kind = type(value)
    if kind is float:
        return (float, value.hex())  # -0.0 and 0.0 record differently
    if kind is complex:
        return (complex, value.real.hex(), value.imag.hex())
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, enum.Enum) or (kind is types.BuiltinFunctionType and _is_pure(value)):
        return value
    if isinstance(value, _PLAIN):
        return (kind, value)
    if depth > 8:
        raise Uncacheable("deeply nested values")
    if isinstance(value, (list, tuple)):
        return (kind, *(constant(item, depth + 1) for item in value))
    if isinstance(value, dict):
        return (kind, *((constant(k, depth + 1), constant(v, depth + 1)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return (kind, frozenset(constant(item, depth + 1) for item in value))
    if isinstance(value, (types.FunctionType, type)) or _is_kernel(value):
        return (kind, id(value))  # kept alive by Dependencies
    if _is_record(value):
        return (kind, *((name, constant(item, depth + 1)) for name, item in sorted(vars(value).items())))
    raise Uncacheable(f"a value of type {kind.__name__}")


def _is_kernel(value):
    return isinstance(getattr(value, "func", None), types.FunctionType) and hasattr(value, "with_schedule")


def _is_record(value):
    """An object that is no more than its fields."""
    if not hasattr(value, "__dict__") or isinstance(value, types.ModuleType):
        return False
    return dataclasses.is_dataclass(value) or any(base.__name__ == "NKIObject" for base in type(value).__mro__)


def _objects_in(value, depth=0):
    """Functions, kernels and classes inside a value."""
    if isinstance(value, (types.FunctionType, type)) or _is_kernel(value):
        yield value
    elif depth < 8:
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                yield from _objects_in(item, depth + 1)
        elif isinstance(value, dict):
            for item in value.values():
                yield from _objects_in(item, depth + 1)
        elif _is_record(value):
            yield type(value)
            for item in vars(value).values():
                yield from _objects_in(item, depth + 1)


# --- what the code can see


class Dependencies:
    """What a function's recording can depend on besides its arguments, as checks that are quick to repeat."""

    def __init__(self, *roots):
        self._same = []  # (dict, name, object): the dict still has that very object
        self._equal = []  # (dict, name, stand-in): a container or constant that still compares equal
        self._functions = []  # (function, code, defaults, keyword defaults)
        self._defaults = []  # (a default's value, stand-in): containers may change in place
        self._seen = set()
        self._classes = []
        self._names = set()
        self._keep = []
        self._todo = list(roots)
        while self._todo:
            self._add(self._todo.pop())

    def hold(self):
        """True if nothing has changed."""
        try:
            return self._hold()
        except Exception:  # a value whose comparison fails cannot be said to be the same
            return False

    def _hold(self):
        for owner, name, value in self._same:
            if owner.get(name, _MISSING) is not value:
                return False
        for function, code, defaults, kwdefaults in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not kwdefaults:
                return False
        if any(constant(value) != before for value, before in self._defaults):
            return False
        return all(constant(owner[name]) == value for owner, name, value in self._equal)

    def _add(self, value):
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._keep.append(value)
        if isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, (staticmethod, classmethod)):
            self._todo.append(value.__func__)
        elif isinstance(value, property):
            self._todo.extend(f for f in (value.fget, value.fset) if f is not None)
        elif isinstance(value, type):
            self._add_class(value)
        elif _is_kernel(value):
            self._todo.append(value.func)
        else:
            raise Uncacheable(f"a callable of type {type(value).__name__}")

    def _add_class(self, cls):
        if _is_pure(cls):
            return
        if type(cls) not in (type, enum.EnumMeta):
            raise Uncacheable(f"the class {cls.__name__}, made by {type(cls).__name__}")
        self._todo.extend(base for base in cls.__mro__[1:] if base is not object)
        for name, item in list(vars(cls).items()):
            if isinstance(item, (types.FunctionType, staticmethod, classmethod, property)):
                self._todo.append(item)
                self._same.append((vars(cls), name, item))
            elif not name.startswith("__") and not isinstance(item, types.MemberDescriptorType):
                self._value(vars(cls), name, item)

    def _add_function(self, function):
        if _is_ours(function):
            return
        if any(name != "__wrapped__" for name in vars(function)):
            raise Uncacheable(f"attributes of the function {function.__name__}")
        self._functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._todo.extend(_objects_in(item))
            self._defaults.append((item, constant(item)))
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells):
            self._cell(name, cell)
        self._code(function.__code__, function.__globals__)

    def _cell(self, name, cell):
        try:
            value = cell.cell_contents
        except ValueError:
            raise Uncacheable(f"the variable '{name}' has no value yet") from None
        self._value(_Cell(cell), name, value)

    def _code(self, code, scope):
        _check_operations(code)
        for item in code.co_consts:
            if isinstance(item, types.CodeType):
                self._code(item, scope)
        for name in code.co_names:
            if name in scope:
                self._name(scope, name, code)
            elif name in _EFFECTS and hasattr(builtins, name):
                raise Uncacheable(f"{code.co_name} names {name}()")

    def _name(self, scope, name, code):
        value = scope[name]
        if isinstance(value, types.ModuleType):
            self._same.append((scope, name, value))
            self._module(value, code, set())
        else:
            self._value(scope, name, value)

    def _module(self, module, code, seen):
        """What the code may take from a module: any of its names that the code mentions."""
        root = module.__name__.partition(".")[0]
        if root == "numpy" and not _IMPURE_NUMPY.isdisjoint(code.co_names):
            raise Uncacheable(f"{code.co_name} names numpy's {min(_IMPURE_NUMPY.intersection(code.co_names))}")
        if root in _PURE_MODULES or module.__name__ in seen:
            return
        if root in sys.stdlib_module_names:
            raise Uncacheable(f"{code.co_name} names the module {module.__name__}")
        seen.add(module.__name__)
        for name in code.co_names:
            value = vars(module).get(name, _MISSING)
            if value is _MISSING:
                continue
            if isinstance(value, types.ModuleType):
                self._same.append((vars(module), name, value))
                self._module(value, code, seen)
            else:
                self._value(vars(module), name, value)

    def _value(self, owner, name, value):
        if isinstance(value, (types.FunctionType, type)) or _is_kernel(value):
            self._same.append((owner, name, value))
            self._todo.append(value)
        elif isinstance(value, types.BuiltinFunctionType):
            if not _is_pure(value):
                raise Uncacheable(f"the function {name} of {value.__module__}")
            self._same.append((owner, name, value))
        elif isinstance(value, (*_PLAIN, float, complex, np.generic, enum.Enum)) or _is_front_end(type(value)):
            self._same.append((owner, name, value))
        else:
            self._equal.append((owner, name, constant(value)))
            self._todo.extend(_objects_in(value))


class _Cell(dict):
    """A closure's variable, seen as a dict of one name."""

    def __init__(self, cell):
        super().__init__()
        self._cell = cell

    def get(self, name, default=None):
        try:
            return self._cell.cell_contents
        except ValueError:
            return default

    __getitem__ = get


_MISSING = object()
# Modules whose functions give the same for the same arguments, as far as kernels use them.
_PURE_MODULES = frozenset(
    "nki neuronxcc sterna math numpy ml_dtypes typing enum dataclasses functools itertools operator".split()
)


def _root(value):
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def _is_front_end(value):
    return _root(value) in ("nki", "sterna")


def _is_ours(value):
    return _root(value) in ("nki", "sterna", "numpy", "ml_dtypes")


def _is_pure(value):
    """Of a module whose functions and classes have no state."""
    return _root(value) in _PURE_MODULES or _root(value) == "builtins"


def _check_operations(code):
    """Refuses code that writes what others see, or finds what it uses while it runs."""
    for op in dis.get_instructions(code):
        if op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            op.opname == "STORE_DEREF" and op.argval in code.co_freevars
        ):
            raise Uncacheable(f"{code.co_name} writes a global or a variable of an outer function")
        if op.opname == "IMPORT_NAME" and op.argval.partition(".")[0] not in _PURE_MODULES:
            raise Uncacheable(f"{code.co_name} imports {op.argval}")


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
        self.objects.extend(_objects_in(value))
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
