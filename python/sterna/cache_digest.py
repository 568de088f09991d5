# SPDX-License-Identifier: Apache-2.0
"""The key of the kernel cache on disk: a SHA-256 over content, which is the same in every process.

What `cache_content` compares by identity is written here as what it is: a function of the user as its code, places and source
text, what belongs to a module without state as the name under which it is found there. Objects that meet each other are told
apart by numbers, in the order in which `Dependencies` found them. What has no such description is `Uncacheable`.
"""

import enum
import functools
import hashlib
import linecache
import os
import platform
import sys
import time
import types

import numpy as np

from sterna import _core
from sterna.cache_content import PURE_MODULES, Identity, Uncacheable, constant, is_front_end, is_ours, is_pure, scope_of

#: a change of what is written below, or of the form of the files, is another number
VERSION = 1
_BEGAN = time.time()  # Sterna's own files, as this process runs them, are older


def key_of(function, settings, passed, dependencies):
    """The digest of a call: the function, the settings (the target first), what is passed, and what the code can see."""
    writer = _Writer(dependencies.numbers)
    parts = [VERSION, *_surroundings(settings[0]), settings, function, passed]
    for event in dependencies.events:
        parts.append(writer.found(*event) if len(event) == 1 else writer.named(*event))
    return hashlib.sha256(b"".join(writer.bytes(part) for part in parts)).hexdigest()


class _Writer:
    """Values as bytes. Each says its kind and length, so that no two values run together."""

    def __init__(self, numbers):
        self._numbers = numbers
        self._owners = {}

    # --- events of Dependencies, as tuples of plain values

    def found(self, value):
        """What a function, class or kernel is."""
        if isinstance(value, types.FunctionType):
            return ("ours", _name_of(value)) if is_ours(value) else self._function(value)
        if isinstance(value, (staticmethod, classmethod)):
            return (type(value).__name__, self._number(value.__func__))
        if isinstance(value, property):
            return ("property", *(f and self._number(f) for f in (value.fget, value.fset)))
        if isinstance(value, type):
            if is_pure(value):
                return ("ours", _name_of(value))
            return ("class", value.__module__, value.__qualname__, self._bases(value), _plain_dunders(value))
        if getattr(value, "_schedule", None):
            raise Uncacheable("a kernel with a schedule")
        return ("kernel", self._number(value.func), constant(value.lnc), constant(value.options))

    def named(self, owner, name, value):
        """What a name in a scope stands for; a scope is known by its number."""
        scope = self._owners.setdefault(id(owner), len(self._owners))
        return ("name", scope, name, self._seen(value))

    def _seen(self, value):
        if id(value) in self._numbers:
            return self._number(value)
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__)
        if type(value) is tuple:
            return value  # a stand-in already
        try:
            return constant(value)
        except Uncacheable:
            return ("ours", _name_of(value))

    def _function(self, function):
        # Code of a module without state is known by that module's version; Dependencies looks at its closure alone.
        known = scope_of(function) in sys.stdlib_module_names
        return (
            "function",
            function.__name__,
            function.__qualname__,
            self._code(function.__code__),
            "" if known else _source_of(function.__code__),
            constant(function.__defaults__),
            constant(function.__kwdefaults__),
            getattr(function, "__wrapped__", None) is not None,
        )

    def _code(self, code):
        """Also the lines, since the places in a program are part of it."""
        return (
            code.co_name,
            code.co_filename,
            code.co_firstlineno,
            code.co_flags,
            (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            code.co_code,
            getattr(code, "co_linetable", b""),
            getattr(code, "co_exceptiontable", b""),
            (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            tuple(self._code(item) if isinstance(item, types.CodeType) else constant(item) for item in code.co_consts),
        )

    # --- plain values

    def bytes(self, value):
        kind = type(value)
        if kind is Identity:
            return self.bytes(self._of_identity(value))
        if kind is tuple:
            return _framed(b"(", b"".join(self.bytes(item) for item in value))
        if kind is frozenset:
            return _framed(b"{", b"".join(sorted(self.bytes(item) for item in value)))
        if kind is str:
            return _framed(b"s", value.encode("utf-8", "surrogatepass"))
        if kind is bytes:
            return _framed(b"b", value)
        if kind is int:
            return _framed(b"i", hex(value).encode())
        if value is None or kind is bool or value is Ellipsis:
            return _framed(b"c", repr(value).encode())
        return _framed(b"o", self.bytes(self._object(value)))

    def _object(self, value):
        """A tuple for what may stand in a stand-in besides plain values."""
        if isinstance(value, type):
            return self._type(value)
        if isinstance(value, enum.Enum):
            # Of a member its class, which is known or was found, says the value; flags may be sums of members.
            return ("enum", self._type(type(value)), value.name, isinstance(value, enum.Flag) and constant(value.value))
        if isinstance(value, types.FunctionType):
            return self._number(value)
        if isinstance(value, np.dtype):
            return ("dtype", value.name, value.str, repr(value))
        if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
            return ("ours", _name_of(value))
        if isinstance(value, str) and is_front_end(type(value)):
            return ("text", _name_of(type(value)), str.__str__(value))
        raise Uncacheable(f"a value of type {type(value).__name__}")

    def _bases(self, cls):
        return tuple(self._type(base) for base in cls.__bases__)

    def _type(self, value):
        return self._number(value) if id(value) in self._numbers else ("ours", _name_of(value))

    def _number(self, value):
        return self._of_identity(id(value))

    def _of_identity(self, value):
        number = self._numbers.get(int(value))
        if number is None:
            raise Uncacheable("an object inside a value")
        return ("object", number)


def _plain_dunders(cls):
    """`__len__ = 4` and the like, which Dependencies passes over."""
    passed = ("__doc__", "__module__", "__qualname__", "__firstlineno__")
    return tuple(
        (name, constant(item))
        for name, item in sorted(vars(cls).items())
        if name.startswith("__") and name not in passed and isinstance(item, (str, int, float, type(None)))
    )


def _framed(kind, data):
    return kind + len(data).to_bytes(8, "little") + data


def _source_of(code):
    """The text of a function, empty where there is none."""
    lines = linecache.getlines(code.co_filename)
    return "".join(lines[code.co_firstlineno - 1 : _last_line(code)])


def _last_line(code):
    inner = [_last_line(item) for item in code.co_consts if isinstance(item, types.CodeType)]
    return max([code.co_firstlineno, *inner, *(line for _, _, line in code.co_lines() if line)])


# --- names of what belongs to modules without state

_found = {}  # id -> (module, name) of what does not know its own name


def _name_of(value):
    """Where a function, class or constant of a module without state is found: "numpy:add"."""
    if isinstance(value, type) and (issubclass(value, np.dtype) or value.__module__ == "builtins"):
        return f"{value.__module__}:{value.__qualname__}"  # not always found there: NoneType, classes of dtypes
    module = "numpy" if isinstance(value, np.ufunc) else getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if module in sys.modules and isinstance(path, str) and _is_there(value, module, path):
        return f"{module}:{path}"
    known = _found.get(id(value))
    if known is None or not _is_there(value, *known):
        known = _found[id(value)] = _search(value)
    return ":".join(known)


def _is_there(value, module, path):
    found = sys.modules.get(module)
    if module.partition(".")[0] not in PURE_MODULES | {"builtins"}:
        return False
    for part in path.split("."):
        found = getattr(found, part, None)
    return found is value


def _search(value):
    names = [
        (module, name)
        for module, loaded in list(sys.modules.items())
        if module.partition(".")[0] in PURE_MODULES and loaded is not None
        for name, item in list(vars(loaded).items())
        if item is value
    ]
    if not names:
        raise Uncacheable(f"a value of type {type(value).__name__} that no module names")
    return min(names)


# --- what runs the kernel


def _surroundings(target):
    return (
        platform.machine(),
        sys.version,
        np.__version__,
        str(getattr(sys.modules.get("ml_dtypes"), "__version__", "")),
        _own_files(),
        _hardware_files(target),
    )


@functools.cache
def _own_files():
    """A digest of Sterna's own code: the native core, the Python layers, the front ends that are in use."""
    folders = {os.path.dirname(os.path.abspath(__file__))}
    for name in ("nki", "neuronxcc"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            folders.add(os.path.dirname(os.path.abspath(file)))
    found, seen = {"_core": _core.__file__}, set()  # of an editable installation the core is elsewhere
    for folder in sorted(folders):
        for place, _, files in os.walk(folder, followlinks=True):
            for path in (os.path.join(place, file) for file in files if file.endswith(".py")):
                real = os.path.realpath(path)
                if real not in seen:  # the front end is mostly a folder of the package
                    seen.add(real)
                    found[f"{os.path.basename(folder)}/{os.path.relpath(path, folder)}"] = path
    return _digest_of_files(found)


@functools.cache
def _hardware_files(target):
    """A digest of the chip descriptions in force. Chips inherit from each other, so it is over all of them."""
    folders = [folder for folder in os.environ.get("STERNA_HARDWARE", "").split(":") if folder]
    folders.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hardware"))
    folders = [os.path.join(folder, "chips") for folder in folders]
    if "/" in target or target.endswith(".toml"):
        folders.insert(0, os.path.dirname(os.path.abspath(target)))
    found = {}
    for number, folder in enumerate(folders):
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if file.endswith(".toml"):
                found[f"{number}/{file}"] = os.path.join(folder, file)
    return _digest_of_files(found)


def _digest_of_files(found):
    total = hashlib.sha256()
    for name, path in sorted(found.items()):
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mtime > _BEGAN:
                raise Uncacheable(f"{path} has changed since this process began")
            content = hashlib.sha256(file.read()).hexdigest()
        total.update(f"{name}\0{content}\0".encode())
    return total.hexdigest()
