# SPDX-License-Identifier: Apache-2.0
"""Faults as Python exceptions. Each kind is a class of its own and also the built-in exception a caller would expect."""

import sys
import warnings

from sterna import _core


class SternaWarning(UserWarning):
    """A remark on a kernel: it runs, but something is undocumented, deprecated or only accepted for compatibility."""


def warn_caller(message):
    """A remark at the line of the user's program that called a kernel."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _core.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, SternaWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry)


class Fault(Exception):
    """What went wrong, which rule, where.

    Attributes: kind, rule (a stable id, may be empty), message, file, line, function (of the user's source; empty and 0
    where not known).
    """

    def __init__(self, kind="", rule="", message="", file="", line=0, function=""):
        self.kind, self.rule, self.message = kind, rule, message
        self.file, self.line, self.function = file, line, function
        super().__init__(str(self))

    def __str__(self):
        head = f"[{self.rule}] " if self.rule else ""
        place = f" ({self.file}:{self.line})" if self.file else ""
        return f"{head}{self.message}{place}"

    def __reduce__(self):
        return (type(self), (self.kind, self.rule, self.message, self.file, self.line, self.function))


class BadInput(Fault, ValueError):
    """A file, option or value that cannot be used as given."""


class WrongType(Fault, TypeError):
    """An argument of the wrong type."""


class OutOfBounds(Fault, IndexError):
    """An index outside its tensor."""


class RuleError(Fault, AssertionError):
    """A documented rule of an instruction or of the chip is broken (``nki.isa.NkiValidationError``)."""


class NotOnThisChip(RuleError):
    """Exists, but not on the target."""


class NotImplementedFault(Fault, NotImplementedError):
    """Sterna cannot do this yet; the message says why."""


class UnknownBehaviour(Fault, RuntimeError):
    """No public source says what the hardware does."""


class InternalFault(Fault, RuntimeError):
    """Sterna's own invariant is broken: please report it."""


_CLASSES = {
    "bad input": BadInput,
    "wrong type": WrongType,
    "out of bounds": OutOfBounds,
    "rule broken": RuleError,
    "not on this chip": NotOnThisChip,
    "not implemented": NotImplementedFault,
    "unknown behaviour": UnknownBehaviour,
    "bug in Sterna": InternalFault,
}


def make(kind, rule, message, file, line, function):
    """The exception of a fault; called by the core."""
    return _CLASSES.get(kind, Fault)(kind, rule, message, file, line, function)


_core.set_hook("fault", make)
