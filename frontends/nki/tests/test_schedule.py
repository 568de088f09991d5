# SPDX-License-Identifier: Apache-2.0
"""Edges between instructions: depends_on and with_schedule put them into the program."""

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna import _core

F32 = np.float32


def new(shape):
    return nl.ndarray(shape, nl.float32)


def test_a_call_returns_its_instruction():
    def kernel(x):
        first = nisa.memset(new((2, 2)), 1.0, name="first")
        assert isinstance(first, nisa.NkiInstruction) and first.depends_on() is first

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


def test_depends_on_returns_its_instruction():
    """Stub: "Returns self, so the two forms compose: c.depends_on(b).depends_on(a)"."""
    made = []

    def body():
        a, b, c = (nisa.memset(new((2, 2)), 1.0) for _ in range(3))
        assert c.depends_on(b).depends_on(a) is c
        made.extend([a.index, b.index, c.index])

    edges = record(body)
    a, b, c = made
    assert edges == [(b, c), (a, c)]


def test_edges_into_and_out_of_dynamic_loops():
    """Stub: the producer stands at the same nesting of dynamic loops, or in an enclosing scope; Python loops do not count."""
    tiles = {}

    def loops(body):
        def function():
            tiles["outer"] = nisa.memset(new((2, 2)), 1.0)
            for loop in (0, 1):

                def run(_, loop=loop):
                    body(loop)

                nl.fori_loop(0, 2, run)
            body(2)

        return function

    def inside(loop):
        if loop < 2:
            first = nisa.memset(new((2, 2)), 1.0)
            for _ in range(2):
                nisa.memset(new((2, 2)), 1.0).depends_on(first, tiles["outer"])

    assert len(record(loops(inside))) == 8

    def other_loop(loop, where=1):
        if loop == 0:
            tiles["first"] = nisa.memset(new((2, 2)), 1.0)
        if loop == where:
            nisa.memset(new((2, 2)), 1.0).depends_on(tiles["first"])

    with pytest.raises(sterna.RuleError, match="SCHED3.*test_schedule.py"):
        record(loops(other_loop))
    with pytest.raises(sterna.RuleError, match="SCHED3"):
        record(loops(lambda loop: other_loop(loop, 2)))

    def enclosing():
        outer = nisa.memset(new((2, 2)), 1.0)

        def run(_):
            middle = nisa.memset(new((2, 2)), 1.0)
            deepest = []
            nl.fori_loop(0, 2, lambda _: deepest.append(nisa.memset(new((2, 2)), 1.0).depends_on(outer, middle)))
            with pytest.raises(sterna.RuleError, match="SCHED3"):
                nisa.memset(new((2, 2)), 1.0).depends_on(deepest[0])

        nl.fori_loop(0, 2, run)

    assert len(record(enclosing)) == 2

    def named():
        nl.fori_loop(0, 2, lambda _: nisa.memset(new((2, 2)), 1.0, name="in") and None)
        nisa.memset(new((2, 2)), 1.0, name="after")

    with pytest.raises(sterna.RuleError, match="SCHED3"):
        record(named, [("after", "in")])


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
