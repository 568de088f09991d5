# SPDX-License-Identifier: Apache-2.0
"""Names that exist elsewhere but not here, each with the reason."""

from nki._remarks import fail
from nki._version import missing
from sterna import _core
from sterna.faults import NotImplementedFault

_REMOVED = {
    "baremetal": "nki.baremetal was removed in NKI 0.2; use nki.simulate, or sterna.profile for a predicted time.",
    "benchmark": "nki.benchmark was removed in NKI 0.2; use `sterna run`, or sterna.profile for a predicted time.",
    "profile": "nki.profile was removed in NKI 0.2; use `sterna run --trace FILE`.",
    "simulate_kernel": "nki.simulate_kernel was removed in NKI 0.2; use nki.simulate.",
}


def removed(module, name):
    """The error for an attribute that `module` does not have."""
    if name in _REMOVED and module == "nki":
        raise not_implemented(f"nki.{name}", _REMOVED[name])
    raise missing(module, name)


def not_implemented(what, why):
    """The fault for a name that comes later."""
    return NotImplementedFault("not implemented", "NYI1", f"{what} is not implemented: {why}")


def later(what, why):
    """A function that raises when called."""

    def unavailable(*args, **kwargs):
        if _core.is_recording():
            fail("NYI1", f"{what} is not implemented: {why}", "not implemented")
        raise not_implemented(what, why)

    unavailable.__name__ = what.rsplit(".", 1)[-1]
    unavailable.__doc__ = f"Not implemented: {why}"
    return unavailable
