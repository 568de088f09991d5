# SPDX-License-Identifier: Apache-2.0
"""What a kernel's recording can depend on besides its arrays: constants among the arguments, and all that its code can see.

`constant` gives a value a stand-in that can be compared; `Dependencies` finds the code of every function that a kernel can enter
by name, and the globals, closures and defaults that these name. What cannot be compared is `Uncacheable`.
"""

import builtins
import dataclasses
import dis
import enum
import sys
import types

import numpy as np

# A kernel that names one of these does more than record.
_EFFECTS = frozenset(
    "print input open breakpoint exec eval compile globals locals vars getattr hasattr setattr delattr __import__".split()
)
_PLAIN = (int, str, bytes, bool, type(None), type(Ellipsis), np.dtype, np.ufunc)


# Of numpy: what does not give the same for the same arguments.
_IMPURE_NUMPY = frozenset("random load loadtxt genfromtxt fromfile memmap save savez savetxt".split())


class Uncacheable(Exception):
    """Why a kernel is recorded at every call."""


class Identity(int):
    """The id of a function, class or kernel: equal for the very same object. The cache on disk puts its content there."""


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
    if isinstance(value, enum.Enum):
        return (kind, value)  # members of two enumerations are equal where both are numbers or texts
    if kind is types.BuiltinFunctionType and is_pure(value):
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
    if isinstance(value, (types.FunctionType, type)) or is_kernel(value):
        return (kind, Identity(id(value)))  # kept alive by Dependencies
    if is_record(value):
        return (kind, *((name, constant(item, depth + 1)) for name, item in sorted(fields_of(value).items())))
    raise Uncacheable(f"a value of type {kind.__name__}")


def is_kernel(value):
    return isinstance(getattr(value, "func", None), types.FunctionType) and hasattr(value, "with_schedule")


def is_record(value):
    """An object that is no more than its fields: of a dataclass, or an NKIObject."""
    if isinstance(value, type):
        return False
    return dataclasses.is_dataclass(value) or any(base.__name__ == "NKIObject" for base in type(value).__mro__)


def fields_of(record):
    """What a record holds, by name; a dataclass may have slots instead of a dict."""
    held = dict(getattr(record, "__dict__", ()))
    for name in getattr(record, "__dataclass_fields__", ()):
        if name not in held and hasattr(record, name):
            held[name] = getattr(record, name)
    return held


def objects_in(value, depth=0):
    """Functions, kernels and classes inside a value."""
    if isinstance(value, (types.FunctionType, type)) or is_kernel(value):
        yield value
    elif isinstance(value, enum.Enum):
        if not is_pure(type(value)):
            yield type(value)
    elif depth < 8:
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                yield from objects_in(item, depth + 1)
        elif isinstance(value, dict):
            for item in value.values():
                yield from objects_in(item, depth + 1)
        elif is_record(value):
            yield type(value)
            for item in fields_of(value).values():
                yield from objects_in(item, depth + 1)


# --- what the code can see


class Dependencies:
    """What a function's recording can depend on besides its arguments, as checks that are quick to repeat."""

    def __init__(self, *roots):
        self._same = []  # (dict, name, object): the dict still has that very object
        self._equal = []  # (dict, name, stand-in): a container or constant that still compares equal
        self._functions = []  # (function, code, defaults, keyword defaults)
        self._defaults = []  # (a default's value, stand-in): containers may change in place
        #: id -> number of each function, class and kernel, in the order in which they were found
        self.numbers = {}
        #: (object,) and what it names after it: (owner, name, value or stand-in). The same order in every process.
        self.events = []
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
        if id(value) in self.numbers:
            return
        self.numbers[id(value)] = len(self.numbers)
        self._keep.append(value)
        self.events.append((value,))
        if isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, (staticmethod, classmethod)):
            self._todo.append(value.__func__)
        elif isinstance(value, property):
            self._todo.extend(f for f in (value.fget, value.fset) if f is not None)
        elif isinstance(value, type):
            self._add_class(value)
        elif is_kernel(value):
            self._todo.append(value.func)
        else:
            raise Uncacheable(f"a callable of type {type(value).__name__}")

    def _add_class(self, cls):
        if is_pure(cls):
            return
        if type(cls) not in (type, enum.EnumMeta):
            raise Uncacheable(f"the class {cls.__name__}, made by {type(cls).__name__}")
        self._todo.extend(base for base in cls.__mro__[1:] if base is not object)
        members = cls.__members__ if isinstance(cls, enum.EnumMeta) else {}
        for name, member in members.items():
            self._sees(members, name, member)
            self._value(vars(member), "_value_", member.value)
        for name, item in list(vars(cls).items()):
            if name in members or (
                members and name.startswith("_") and name.endswith("_") and not name.startswith("__")
            ):
                continue  # what the enum module keeps of the members
            if isinstance(cls, enum.EnumMeta) and getattr(item, "__func__", item) is getattr(enum.Enum, name, cls):
                continue  # the enum module's own, to which PyTorch adds an attribute
            if isinstance(item, (types.FunctionType, staticmethod, classmethod, property)):
                self._todo.append(item)
                self._sees(vars(cls), name, item)
            elif not name.startswith("__") and not isinstance(item, types.MemberDescriptorType):
                self._value(vars(cls), name, item)

    def _add_function(self, function):
        if is_ours(function):
            return
        if any(name != "__wrapped__" for name in vars(function)):
            raise Uncacheable(f"attributes of the function {function.__name__}")
        wrapped = vars(function).get("__wrapped__")
        if isinstance(wrapped, types.FunctionType):
            self._todo.append(wrapped)  # the names of the arguments are its own
        self._functions.append((function, function.__code__, function.__defaults__, function.__kwdefaults__))
        for item in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._todo.extend(objects_in(item))
            self._defaults.append((item, constant(item)))
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells):
            self._cell(name, cell)
        if scope_of(function) not in _PURE_SCOPES:
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
            self._sees(scope, name, value)
            self._module(value, code, set())
        else:
            self._value(scope, name, value)

    def _module(self, module, code, seen):
        """What the code may take from a module: any of its names that the code mentions."""
        root = module.__name__.partition(".")[0]
        if root == "numpy" and not _IMPURE_NUMPY.isdisjoint(code.co_names):
            raise Uncacheable(f"{code.co_name} names numpy's {min(_IMPURE_NUMPY.intersection(code.co_names))}")
        if root in PURE_MODULES or module.__name__ in seen:
            return
        if root in sys.stdlib_module_names:
            raise Uncacheable(f"{code.co_name} names the module {module.__name__}")
        seen.add(module.__name__)
        for name in code.co_names:
            value = vars(module).get(name, _MISSING)
            if value is _MISSING:
                continue
            if isinstance(value, types.ModuleType):
                self._sees(vars(module), name, value)
                self._module(value, code, seen)
            else:
                self._value(vars(module), name, value)

    def _value(self, owner, name, value):
        if isinstance(value, (types.FunctionType, type)) or is_kernel(value):
            self._sees(owner, name, value)
            self._todo.append(value)
        elif isinstance(value, types.BuiltinFunctionType):
            if not is_pure(value):
                raise Uncacheable(f"the function {name} of {value.__module__}")
            self._sees(owner, name, value)
        elif isinstance(value, (*_PLAIN, float, complex, np.generic, enum.Enum)) or is_front_end(type(value)):
            self._sees(owner, name, value)
            self._todo.extend(objects_in(value))
        else:
            stand_in = constant(value)
            self._equal.append((owner, name, stand_in))
            self.events.append((owner, name, stand_in))
            self._todo.extend(objects_in(value))

    def _sees(self, owner, name, value):
        self._same.append((owner, name, value))
        self.events.append((owner, name, value))


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
PURE_MODULES = frozenset(
    "nki neuronxcc sterna math numpy ml_dtypes typing enum dataclasses functools itertools operator".split()
)


# Of these a function's own code is known; what it closes over need not be.
_PURE_SCOPES = frozenset("enum dataclasses functools reprlib".split())


def _root(value):
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def scope_of(function):
    """The package whose file a function stands in; its __module__ may be that of a function that it wraps."""
    return str(function.__globals__.get("__name__", "")).partition(".")[0]


def is_front_end(value):
    return _root(value) in ("nki", "sterna")


def is_ours(function):
    return scope_of(function) in ("nki", "sterna", "numpy", "ml_dtypes")


def is_pure(value):
    """Of a module whose functions and classes have no state."""
    return _root(value) in PURE_MODULES or _root(value) == "builtins"


def _check_operations(code):
    """Refuses code that writes what others see, or finds what it uses while it runs."""
    for op in dis.get_instructions(code):
        if op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            op.opname == "STORE_DEREF" and op.argval in code.co_freevars
        ):
            raise Uncacheable(f"{code.co_name} writes a global or a variable of an outer function")
        if op.opname == "IMPORT_NAME" and op.argval.partition(".")[0] not in PURE_MODULES:
            raise Uncacheable(f"{code.co_name} imports {op.argval}")
