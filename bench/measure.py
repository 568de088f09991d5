# SPDX-License-Identifier: Apache-2.0
"""Turns, so that a change of the machine's mood meets all alike; minima and medians.

A time is a pair: seconds on the clock, and seconds of processors (of this process and the ones that it waited for). On a busy machine the
second is the one to trust.
"""

import resource
import statistics
import time


def processor_s():
    return sum(
        u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def seconds(function):
    """How long one call takes: (clock, processors)."""
    used, start = processor_s(), time.perf_counter()
    function()
    return time.perf_counter() - start, processor_s() - used


def timed(function):
    """A callable that gives the seconds of one call."""
    return lambda: seconds(function)


_REST_S = 0.15


def in_turn(functions, repeat, least_s=2.0, most_s=20.0):
    """Times of each function (one that returns its own seconds).

    `repeat` rounds; more until least_s have passed; fewer, but three, when most_s are over. Between two functions there is a rest: the
    idle threads of a BLAS spin for some milliseconds after a product, on the processor that the next function wants.
    """
    times = {name: [] for name in functions}
    start = time.perf_counter()
    spent, rounds = 0.0, 0
    while rounds < 3 or (spent < most_s and (rounds < repeat or spent < least_s)):
        for name, function in functions.items():
            if len(functions) > 1:
                time.sleep(_REST_S)
            times[name].append(function())
        spent, rounds = time.perf_counter() - start, rounds + 1
    return times


def least(times):
    """(clock, processors), the least of each; (None, None) of nothing."""
    return tuple(min(column) for column in zip(*times)) if times else (None, None)


def plus(times, more):
    """Every time and `more` seconds."""
    return [tuple(t + more for t in pair) for pair in times]


def row(name, ours, peer_name, peer, threads, wanted=None, note=""):
    """A row of the table from lists of times; peer may be None."""
    (ours_s, ours_cpu), (peer_s, peer_cpu) = least(ours), least(peer)
    return {
        "name": name,
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ratio": peer_s / ours_s if peer else None,
        "peer": peer_name,
        "threads": threads,
        "processor_ratio": peer_cpu / ours_cpu if peer and ours_cpu else None,
        "ours_median_s": statistics.median(t[0] for t in ours),
        "peer_median_s": statistics.median(t[0] for t in peer) if peer else None,
        "wanted_ratio": wanted,
        "note": note if peer else "not measured",
    }
