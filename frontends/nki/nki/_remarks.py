# SPDX-License-Identifier: Apache-2.0
"""Faults and remarks of the language layer: they name the user's line, not ours."""

from sterna import _core


def fail(rule, message, kind="bad input"):
    """Raises a fault of the line that is being recorded."""
    _core.current().fail(kind, rule, message)


def compat(rule, message):
    """What the official simulator accepts beyond the documents: one remark a line, a fault with STERNA_STRICT=1."""
    _core.current().compat(rule, message)
