# SPDX-License-Identifier: Apache-2.0
"""Edges between instructions: depends_on and with_schedule put them into the program."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from sterna import _core

F32 = np.float32


def new(shape):
    return nl.ndarray(shape, nl.float32)


def test_a_call_returns_its_instruction():
    def kernel(x):
        first = nisa.memset(new((2, 2)), 1.0, name="first")
        assert isinstance(first, nisa.NkiInstruction) and first.depends_on() is None

    nki.jit(kernel)(np.ones((1, 1), F32))


def record(body, schedule=None):
    """The edges that the program of `body` has after a call."""
    recordings = []

    def function(x):
        recordings.append(_core.current())
        body()

    kernel = nki.jit(function) if schedule is None else nki.jit(function).with_schedule(schedule)
    kernel(np.ones((1, 1), F32))
    return recordings[0].edges()


def test_depends_on_adds_edges():
    made = []

    def body():
        a = nisa.memset(new((2, 2)), 1.0)
        b = nisa.memset(new((2, 2)), 1.0)
        c = nisa.memset(new((2, 2)), 1.0)
        c.depends_on(a, b)
        made.extend([a.index, b.index, c.index])

    edges = record(body)
    a, b, c = made
    assert edges == [(a, c), (b, c)]


def test_with_schedule_adds_edges_by_name():
    made = {}

    def body():
        for _ in range(2):
            for name in ("load", "work", "other"):
                made.setdefault(name, []).append(nisa.memset(new((2, 2)), 1.0, name=name).index)
        made["last"] = [nisa.memset(new((2, 2)), 1.0, name="last").index]

    edges = record(body, [("work", "load"), ("last", ["other", "work"])])
    load, work, other, (last,) = made["load"], made["work"], made["other"], made["last"]
    assert edges == [(load[0], work[0]), (load[1], work[1]), (other[1], last), (work[1], last)]


def test_a_schedule_that_cannot_be():
    def body():
        nisa.memset(new((2, 2)), 1.0, name="first")
        nisa.memset(new((2, 2)), 1.0, name="second")

    with pytest.raises(ValueError, match="SCHED1.*nobody"):
        record(body, [("second", "nobody")])
    with pytest.raises(ValueError, match="SCHED2"):
        record(body, [("first", "second")])

    def backwards():
        a = nisa.memset(new((2, 2)), 1.0)
        b = nisa.memset(new((2, 2)), 1.0)
        a.depends_on(b)

    with pytest.raises(ValueError, match="SCHED2"):
        record(backwards)
    with pytest.raises(TypeError, match="instructions"):
        record(lambda: nisa.memset(new((2, 2)), 1.0).depends_on("a"))
