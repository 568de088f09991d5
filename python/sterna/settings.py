# SPDX-License-Identifier: Apache-2.0
"""What the environment says. Read at each kernel call, so that tests can change it."""

import functools
import os

from sterna import _core
from sterna.faults import BadInput, warn_caller

#: releases of NKI whose rules can be chosen, the newest last
NKI_VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6")

#: set by ``sterna run --target`` and ``sterna.profile(target)``; goes before the environment
forced_target = None


def target(of_kernel=None):
    """--target > NEURON_PLATFORM_TARGET_OVERRIDE > NKI_NC_VERSION > what the kernel itself asks for > trn2."""
    return (
        forced_target
        or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE")
        or os.environ.get("NKI_NC_VERSION")
        or of_kernel
        or "trn2"
    )


def strict():
    """STERNA_STRICT=1: what only the official simulator accepts is a fault."""
    return flag("STERNA_STRICT")


def eager():
    """STERNA_EAGER=1: each instruction is executed at once, so that a fault is raised where it stands."""
    return flag("STERNA_EAGER")


def uninit():
    """STERNA_UNINIT=error|warn|fill|zero: what an arithmetic read of bytes that were never written does."""
    return _choice("STERNA_UNINIT", ("error", "warn", "fill", "zero"))


def rounding_seed():
    """The seed of stochastic rounding, or -1 for rounding to nearest.

    STERNA_STOCHASTIC_ROUNDING=seed turns it on (empty, off, false and no turn it off); without it, the Neuron runtime's
    NEURON_RT_STOCHASTIC_ROUNDING_EN and NEURON_RT_STOCHASTIC_ROUNDING_SEED (0 if not set) decide.
    """
    text = os.environ.get("STERNA_STOCHASTIC_ROUNDING")
    if text is not None:
        return -1 if text.lower() in ("", "off", "false", "no") else _seed("STERNA_STOCHASTIC_ROUNDING", text)
    if not flag("NEURON_RT_STOCHASTIC_ROUNDING_EN"):
        return -1
    return _seed("NEURON_RT_STOCHASTIC_ROUNDING_SEED", os.environ.get("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "0"))


def _seed(name, text):
    """A seed has 32 bits; of a larger number the low ones count."""
    if not (text.isascii() and text.isdigit()):
        raise BadInput("bad input", "ENV1", f"{name}={text!r} is not a whole number.")
    return int(text) & 0xFFFFFFFF


def threads():
    """STERNA_THREADS: 0 or unset takes every processor of this process."""
    text = os.environ.get("STERNA_THREADS", "0")
    if not text.isdigit():
        raise BadInput("bad input", "ENV1", f"STERNA_THREADS={text!r} is not a whole number.")
    return int(text)


def nki_version():
    """STERNA_NKI_VERSION: the release whose names and behaviour are wanted where releases differ, as "0.3"."""
    text = os.environ.get("STERNA_NKI_VERSION")
    return _release(text) if text else NKI_VERSIONS[-1]


@functools.cache
def _release(text):
    """A patch release (0.3.1) has the rules of its release."""
    parts = text.split(".")
    short = ".".join(parts[:2])
    if short not in NKI_VERSIONS or len(parts) > 3 or not parts[-1].isdigit():
        raise BadInput("bad input", "ENV1", f"STERNA_NKI_VERSION={text!r} is not known: use {', '.join(NKI_VERSIONS)}.")
    return short


def nki_before(release):
    """The release whose behaviour is wanted is older than `release`, a tuple of numbers."""
    return tuple(int(part) for part in nki_version().split(".")[:2]) < release


@functools.cache
def chip(name):
    """What front ends need to know of a chip, as a dict."""
    return _core.chip(name)


def check():
    """Looks at settings that other implementations have and Sterna has not."""
    if os.environ.get("NKI_PRECISE_FP") == "0":
        _warn_precise_fp()


@functools.cache
def _warn_precise_fp():
    warn_caller("[ENV2] NKI_PRECISE_FP=0 is ignored: types are stored as they are named.")


def flag(name):
    """True when the variable is set to anything but 0, false or no."""
    return os.environ.get(name, "0") not in ("", "0", "false", "no")


def _choice(name, allowed):
    value = os.environ.get(name, allowed[0])
    if value not in allowed:
        raise BadInput("bad input", "ENV1", f"{name}={value!r} is not known: use {', '.join(allowed)}.")
    return value
