# SPDX-License-Identifier: Apache-2.0
"""How an instruction gets its Python name: a declaration whose signature is NKI's, turned into a callable of the core."""

from sterna import _core


def instruction(function):
    """Decorator. The body is never run: names and defaults are read off, the core validates and records."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    return _core.instruction(function.__name__.lstrip("_"), names, function.__defaults__ or (), function)
