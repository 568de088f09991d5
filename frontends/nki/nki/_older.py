# SPDX-License-Identifier: Apache-2.0
"""Turns the modules, which are written as the newest NKI, into an older one: names, parameters, defaults, behaviour.

Names that came later are taken away, functions whose parameters or behaviour changed are put in place of the newer ones.
Loaded when another release than the newest is chosen, or a name is not found.
"""

import inspect
import sys

import nki
from nki import _history, _loops, _memory
from nki import _operators as ops
from nki._remarks import compat, fail
from nki.isa import constants
from sterna import _core
from sterna.settings import NKI_VERSIONS

SINCE = {
    f"{place}.{name}": release
    for release, places in _history.SINCE.items()
    for place, names in places.items()
    for name in names.split()
}

_undo = []  # (place, name, what it was or _NOTHING) of each change, to be taken back in reverse
_NOTHING = object()


def show(release):
    """Makes every module what it is in `release`."""
    while _undo:
        place, name, value = _undo.pop()
        if value is _NOTHING:
            delattr(place, name)
        else:
            setattr(place, name, value)
    for wanted, alternatives in _ALTERNATIVES.items():
        for until, make in alternatives:
            if _is_before(release, until):
                _put(wanted, make(_found(wanted)))
    for function in _history.PARAMETERS.keys() | _history.DEFAULTS.keys():
        _put(function, _with_older_parameters(function, _found(function), release))
    for name, since in SINCE.items():
        if _is_before(release, since) and not (since == "0.3" and _is_operator(name)):
            _hide(name, release)


def _is_operator(name):
    place, _, last = name.rpartition(".")
    return place == "nki.language" and last in _history.OPERATORS_OF_0_2


def _is_before(release, other):
    return NKI_VERSIONS.index(release) < NKI_VERSIONS.index(other)


def where_it_is(name, shown):
    """How a message about `name`, which release `shown` lacks, goes on; empty for a name that never was."""
    if name in SINCE:
        return f" in NKI {shown}: {_later(SINCE[name], shown)}"
    if name in _history.REMOVED:
        release, instead = _history.REMOVED[name]
        return (
            f" in NKI {shown}: it was removed in NKI {release}. Use {instead}, or choose an older release with "
            "STERNA_NKI_VERSION."
        )
    return ""


def _later(release, shown):
    return f"it is new in NKI {release}. Choose that release or a later one with STERNA_NKI_VERSION, which is {shown}."


# --- places


def owner(name):
    """What holds `name` as an attribute, and the attribute's name."""
    path, _, last = name.rpartition(".")
    classes = {
        "nki.language.NkiTensor": _core.Tensor,
        "nki.language.tile_size": type(_memory.tile_size),
        "nki.isa.NkiInstruction": _core.NkiInstruction,
    }
    return classes.get(path) or sys.modules[path], last


def _found(name):
    place, last = owner(name)
    return vars(place).get(last)


def _put(name, value):
    place, last = owner(name)
    _undo.append((place, last, vars(place).get(last, _NOTHING)))
    setattr(place, last, value)


def _hide(name, release):
    place, last = owner(name)
    if inspect.isclass(place):
        _put(name, _Hidden(name, vars(place)[last], release))
    else:  # the module's __getattr__ explains
        _undo.append((place, last, vars(place)[last]))
        delattr(place, last)


class _Hidden:
    """In a class, in place of an attribute that came later. The front end itself still finds it."""

    def __init__(self, name, value, release):
        self._name, self._value, self._release = name, value, release

    def __get__(self, instance, kind=None):
        if _core.is_internal(sys._getframe(1).f_code.co_filename):
            return self._value.__get__(instance, kind)
        title, _, last = self._name.removeprefix("nki.language.").removeprefix("nki.isa.").rpartition(".")
        raise AttributeError(f"{title!r} has no attribute {last!r}{where_it_is(self._name, self._release)}")


# --- parameters


def _with_older_parameters(name, function, release):
    """`function` with the parameters and defaults that it has in `release`; itself where they are the same."""
    newer = {p: since for p, since in _history.PARAMETERS.get(name, {}).items() if _is_before(release, since)}
    old = {p: text for p, (since, text) in _history.DEFAULTS.get(name, {}).items() if _is_before(release, since)}
    if not newer and not old:
        return function
    old = {p: None if text is None else getattr(constants.engine, text) for p, text in old.items()}
    parameters = [
        p.replace(default=inspect.Parameter.empty if old[p.name] is None else old[p.name]) if p.name in old else p
        for p in inspect.signature(function).parameters.values()
        if p.name not in newer
    ]
    return _called_with(function, name.rpartition(".")[2], parameters, newer, old, release)


def _called_with(function, title, parameters, newer, old, release):
    names = [p.name for p in parameters]
    everything = list(inspect.signature(function).parameters)
    # Up to here arguments by position mean the same in both.
    plain = next((at for at, name in enumerate(everything) if name in newer), len(everything))

    later = frozenset(newer)

    def call(*args, **kwargs):
        if len(args) <= plain and later.isdisjoint(kwargs) and not old:
            return function(*args, **kwargs)
        return function(*args[:plain], **translated(args, kwargs))

    def translated(args, kwargs):
        if len(args) > len(names):
            raise TypeError(f"{title}() takes at most {len(names)} arguments in NKI {release}, {len(args)} given")
        given = dict(zip(names[plain:], args[plain:]))
        if twice := given.keys() & kwargs.keys():
            raise TypeError(f"{title}() got multiple values for argument {min(twice)!r}")
        for name in later & kwargs.keys():
            raise TypeError(
                f"{title}() got an unexpected keyword argument {name!r} in NKI {release}: {_later(newer[name], release)}"
            )
        given.update(kwargs)
        for name, default in old.items():
            if name not in given and names.index(name) >= min(len(args), plain):
                if default is None:
                    raise TypeError(f"{title}() is missing the argument {name!r}, which NKI {release} asks for")
                given[name] = default
        return given

    call.__name__ = call.__qualname__ = title
    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature(parameters)
    return call


# --- behaviour: makers of what stands in place of a newer function


def _like(function, body):
    """`body` under the name, the signature and the text of `function`."""
    body.__name__ = body.__qualname__ = function.__name__
    body.__doc__ = function.__doc__
    body.__signature__ = inspect.signature(function)
    return body


def _argument(args, kwargs, at, name):
    return args[at] if len(args) > at else kwargs.get(name)


def _padded_transpose(function):
    """The migration guide to 0.4: before, a dst of lower rank was padded to match a source of higher rank."""

    def dma_transpose(dst, src, *args, **kwargs):
        if dst.ndim < src.ndim <= 4:
            order = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[src.ndim]
            wanted = tuple(src.shape[axis] for axis in order)
            if dst.shape[0] == wanted[0] and dst.size == src.size:
                dst = dst.reshape(wanted)
        return function(dst, src, *args, **kwargs)

    return _like(function, dma_transpose)


def _narrow_transpose(function):
    """The page of dma_transpose before 0.6: what descriptors made by hardware transpose."""

    def dma_transpose(dst, src, *args, **kwargs):
        how = _argument(args, kwargs, 2, "dge_mode")  # after axes and priority
        if how is constants.dge_mode.hwdge and (src.shape[0] != 16 or src.shape[-1] % 128):
            fail(
                "NKI1",
                "Hardware descriptor generation transposes 16 rows and a last axis of a multiple of 128 before NKI 0.6; src is "
                f"{list(src.shape)}.",
                "rule broken",
            )
        return function(dst, src, *args, **kwargs)

    return _like(function, dma_transpose)


def _sixteen_partitions(function):
    """The page of sendrecv in 0.3; the notes of 0.4 lift it."""

    def sendrecv(*args, **kwargs):
        src, how = _argument(args, kwargs, 0, "src"), _argument(args, kwargs, 5, "dma_engine")
        if how is constants.dma_engine.gpsimd_dma and src.shape[0] % 16:
            fail(
                "NKI2",
                f"GpSimd's DMA sends a multiple of 16 partitions before NKI 0.4; src is {list(src.shape)}.",
                "rule broken",
            )
        return function(*args, **kwargs)

    return _like(function, sendrecv)


def _fewer_operators(function):
    """The notes of 0.4: square and relu are new as op0 of tensor_scalar and tensor_scalar_reduce."""
    later = (ops.OPERATORS["square"], ops.OPERATORS["relu"])

    def tensor_scalar(*args, **kwargs):
        op = _argument(args, kwargs, 2, "op0")
        if op in later:
            fail("NKI3", f"{function.__name__} takes op0=nl.{op.__name__} since NKI 0.4.", "rule broken")
        return function(*args, **kwargs)

    return _like(function, tensor_scalar)


def _reshape(function):
    """The page of NkiTensor in 0.4: reshape(new_shape=None, shape=None)."""

    def reshape(self, *args, new_shape=None, **kwargs):
        return function(self, *args, **kwargs) if new_shape is None else function(self, new_shape)

    reshape.__doc__ = function.__doc__
    return reshape


def _copy_to_offset(_):
    """The migration guide to 0.4: tensor_copy does the same on views with an offset."""

    def body(dst, src, engine=constants.engine.unknown, name=None):
        """dst = src, one of them at an offset known at run time."""
        return nki.isa.tensor_copy(dst, src, engine=engine, name=name)

    return body


def _copy_by_scalar(function):
    """Known issues of 0.3 and 0.4, and the notes of 0.6: before, by the scalar engine through float32, and not from PSUM."""

    def copy(x, dtype=None):
        if _memory.is_hbm(x.buffer):
            return function(x, dtype)
        if _memory.is_psum(x.buffer):
            compat("NKI4", "nl.copy of a tile in PSUM is documented since NKI 0.6; before, use nisa.tensor_copy.")
        made = _memory.allocate(x.shape, dtype or x.dtype)
        # An activation with copy would keep the bits from trn2 on; arithmetic goes through float32 on every chip.
        nki.isa.tensor_scalar(made, x, ops.OPERATORS["multiply"], 1.0, engine=constants.engine.scalar)
        return made

    _core.register_op(copy, None, "copy")
    return _like(function, copy)


def _rsqrt_by_scalar(function):
    """The notes of 0.5: before, one activation."""

    def rsqrt(x, dtype=None):
        return ops.unary(rsqrt, x, dtype)

    _core.register_op(rsqrt, "rsqrt", "rsqrt")
    return _like(function, rsqrt)


def _loop_without_remark(_):
    return _loops.device_range


# What a function is until a release, the oldest last: {name: [(release, maker)]}.
_ALTERNATIVES = {
    "nki.isa.dma_transpose": [("0.6", _narrow_transpose), ("0.4", _padded_transpose)],
    "nki.isa.sendrecv": [("0.4", _sixteen_partitions)],
    "nki.isa.tensor_scalar": [("0.4", _fewer_operators)],
    "nki.isa.tensor_scalar_reduce": [("0.4", _fewer_operators)],
    "nki.language.copy": [("0.6", _copy_by_scalar)],
    "nki.language.dynamic_range": [("0.6", _loop_without_remark)],
    "nki.language.rsqrt": [("0.5", _rsqrt_by_scalar)],
    "nki.language.NkiTensor.reshape": [("0.5", _reshape)],
    "nki.isa.tensor_copy_dynamic_src": [("0.4", _copy_to_offset)],
    "nki.isa.tensor_copy_dynamic_dst": [("0.4", _copy_to_offset)],
}
