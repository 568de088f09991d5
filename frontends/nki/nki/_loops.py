# SPDX-License-Identifier: Apache-2.0
"""Loops, programs and printing."""

import builtins
import contextlib
import numbers
import threading

from nki._declare import instruction
from nki._remarks import fail
from sterna import _core
from sterna.faults import warn_caller

range = builtins.range


def affine_range(start, stop=None, step=1):
    """Python's range, unrolled while the kernel is recorded; keywords too, which range does not take."""
    return builtins.range(0, start, step) if stop is None else builtins.range(start, stop, step)


sequential_range = static_range = affine_range


@instruction
def _loop(reg, low=None, high=None, step=1, low_reg=None, high_reg=None):
    """Opens a region that runs for reg = low .. high."""


@instruction
def _while(reg):
    """Opens a region that runs while reg is not zero."""


@instruction
def _end():
    """Closes the innermost region."""


@instruction
def _register_move(dst, src=None, value=None):
    """dst = src or value."""


def _bound(value):
    """A bound of a loop: a register, or a whole number of Python or NumPy."""
    if isinstance(value, (int, _core.Register)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    raise TypeError(f"a bound of a loop is a whole number or a register, not {type(value).__name__}")


def _open_loop(start, stop, step, frozen):
    register = _core.current().register(frozen)
    low, low_reg = (None, start) if isinstance(start, _core.Register) else (start, None)
    high, high_reg = (None, stop) if isinstance(stop, _core.Register) else (stop, None)
    _loop(register, low, high, step, low_reg, high_reg)
    return register


def _step_by_step(start, stop, step, frozen):
    """The same loop with STERNA_EAGER=1, one turn after the other, so that every value can be looked at."""
    if step <= 0:
        fail("LOOP1", f"The step of a loop is a positive number, not {step}.", "rule broken")
    for index in builtins.range(int(start), int(stop), step):
        register = _core.current().register(frozen)
        _register_move(register, None, index)
        yield register


def dynamic_range(start, stop=None, step=1):
    """A loop that runs on the device: its body is recorded once. Bounds are whole numbers or registers."""
    warn_caller("[OLD1] nl.dynamic_range is deprecated since NKI 0.6 and will be removed; use nl.fori_loop.")
    yield from device_range(start, stop, step)


def device_range(start, stop=None, step=1):
    """The loop of dynamic_range, without its remark."""
    yield from _turns("dynamic_range", start, stop, step, frozen=True)


def _turns(what, start, stop, step, frozen):
    """The register of a loop, once; of each turn with STERNA_EAGER=1. frozen: the body may not write it."""
    _check_order(what)
    if stop is None:
        start, stop = 0, start
    start, stop = _bound(start), _bound(stop)
    if isinstance(step, numbers.Integral):
        step = int(step)
    if _core.current().eager:
        yield from _step_by_step(start, stop, step, frozen)
        return
    yield _open_loop(start, stop, step, frozen)
    _end()


def fori_loop(lower, upper, body_fun, step=1):
    """Runs body_fun(index register) for lower <= index < upper, on the device."""
    # The body may write the register, which has no effect on the loop: what counts is not the register, which is set
    # anew at the beginning of each turn.
    for index in _turns("fori_loop", lower, upper, step, frozen=False):
        body_fun(index)


def while_loop(init, body_fun):
    """Runs body_fun(condition) as long as the condition register is not zero; the body returns the next condition."""
    _check_order("while_loop")
    condition = _core.current().register()
    if isinstance(init, _core.Register):
        _register_move(condition, init)
    else:
        _register_move(condition, None, init)
    if _core.current().eager:
        while condition:
            _turn(condition, body_fun)
        return
    _while(condition)
    _turn(condition, body_fun)
    _end()


def _turn(condition, body_fun):
    after = body_fun(condition)
    if isinstance(after, _core.Register) and after is not condition:
        _register_move(condition, after)
    elif isinstance(after, int):
        _register_move(condition, None, after)


def _check_axis(what, axis):
    """kernel[cores] is a grid of one dimension."""
    if not isinstance(axis, numbers.Integral) or axis != 0:
        fail("LNC9", f"{what} {axis!r} does not exist: a grid kernel[cores] has axis 0 only.", "out of bounds")


def program_id(axis=0):
    """Rank of this core among those that run the kernel together."""
    _check_axis("axis", axis)
    return _core.current().core


def num_programs(axes=0):
    """Number of cores that run the kernel together."""
    for axis in axes if isinstance(axes, (list, tuple)) else () if axes is None else (axes,):
        _check_axis("axes", axis)
    return _core.current().cores


def program_ndim():
    """Dimensions of the grid in kernel[grid]: 1, or 0 without one."""
    return _core.current().grid


_ordered = threading.local()  # blocks of no_reorder that are open; a core whose turn it is has a thread of its own


@contextlib.contextmanager
def no_reorder():
    """Program order inside; Sterna never reorders, so this has no effect."""
    _ordered.blocks = getattr(_ordered, "blocks", 0) + 1
    try:
        yield
    finally:
        _ordered.blocks -= 1


def _check_order(what):
    """LOOP2: inside no_reorder there are static loops only."""
    if getattr(_ordered, "blocks", 0):
        fail(
            "LOOP2",
            f"nl.{what} inside nl.no_reorder: loops on registers are not supported there. Use range, or put no_reorder "
            "inside the loop's body.",
            "rule broken",
        )


@instruction
def _device_print(src, prefix=""):
    """Prints a tensor when the program runs."""


def device_print(print_prefix, tensor):
    """Prints `print_prefix` and the values of `tensor` when the program runs."""
    _device_print(tensor, f"{print_prefix}")
