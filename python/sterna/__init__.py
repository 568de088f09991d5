# SPDX-License-Identifier: Apache-2.0
"""Sterna: an open, executable Trainium.

Front ends (such as ``nki``) record kernels; the C++ core runs them for their values and predicts their time::

    import sterna
    with sterna.profile() as p:
        result = kernel(x, y)
    print(p.kernels[0].time_us, p.kernels[0].bound)
"""

import os as _os

from sterna import _core
from sterna.faults import BadInput, Fault, NotImplementedFault, OutOfBounds, RuleError, SternaWarning, WrongType

__version__ = "0.1.0"
__all__ = [
    "BadInput",
    "Fault",
    "NotImplementedFault",
    "OutOfBounds",
    "RuleError",
    "SternaWarning",
    "WrongType",
    "chip",
    "launch",
    "load_trace",
    "profile",
]

_core.set_hardware(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "hardware"))
_core.internal_prefix(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)


def profile(target=None, values=True):
    """A context in which every kernel call is timed: ``with sterna.profile() as p: ...``; see :mod:`sterna.profiler`.

    values=False only records: kernels are timed, but not executed, and results and written arguments hold no values. For times of
    kernels too large to wait for.
    """
    from sterna.profiler import Profile

    return Profile(target, values)


def launch(kernel, arguments):
    """Runs `kernel` on several ranks at once, which meet in collectives: one rank for each mapping of keyword arguments.

    Returns a list of what each rank's call returns::

        parts = sterna.launch(kernel[2], [{"x": x[0], "group": group}, {"x": x[1], "group": group}])
    """
    return kernel.launch(arguments)


def chip(name="trn2"):
    """What front ends need to know of a chip, as a dict; ``sterna chip NAME`` prints all of it."""
    return _core.chip(name)


def load_trace(path):
    """A trace that `sterna run --trace` or `trace.save` wrote, as an object: len(), columns, tensors, metrics, save()."""
    return _core.load_trace(_os.fspath(path))
