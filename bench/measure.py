# SPDX-License-Identifier: Apache-2.0
"""Turns, so that a change of the machine's mood meets all alike; minima and medians."""

import statistics
import time


def seconds(function):
    """How long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turn(functions, repeat, limit_s=20.0):
    """Times of each function (or callable that returns its own seconds), `repeat` rounds; fewer, but three, after limit_s seconds."""
    times = {name: [] for name in functions}
    start = time.perf_counter()
    for done in range(repeat):
        for name, function in functions.items():
            times[name].append(function())
        if done >= 2 and time.perf_counter() - start > limit_s:
            break
    return times


def timed(function):
    """A callable that gives the seconds of one call."""
    return lambda: seconds(function)


def row(name, ours, peer_name, peer, threads, wanted=None, note=""):
    """A row of the table from lists of seconds; peer may be None."""
    ours_s = min(ours)
    peer_s = min(peer) if peer else None
    return {
        "name": name,
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ratio": peer_s / ours_s if peer_s is not None else None,
        "peer": peer_name,
        "threads": threads,
        "ours_median_s": statistics.median(ours),
        "peer_median_s": statistics.median(peer) if peer else None,
        "wanted_ratio": wanted,
        "note": note if peer else "not measured",
    }
