# SPDX-License-Identifier: Apache-2.0
"""One line on a terminal for a kernel call that takes more than two seconds.

A thread looks at the newest call a few times a second; calls themselves do nothing for it. Runs in the core release the GIL, and
recording is Python, so the thread gets its turn in both.
"""

import sys
import threading
import time

from sterna import profiler

DELAY_S = 2.0
PERIOD_S = 0.25
WIDTH = 30


def text(name, phase, size, executed, seconds):
    """What the line says. Recording has no end that is known; running has."""
    if phase == "recording":
        return f"{name}: recording, {size:,} records, {seconds:.0f} s"
    if phase == "running" and size:
        share = min(executed / size, 1)
        done = int(share * WIDTH)
        return f"{name}: running [{'#' * done}{'.' * (WIDTH - done)}] {100 * share:3.0f} % of {size:,} records, {seconds:.0f} s"
    return f"{name}: {phase}, {seconds:.0f} s"


class Progress:
    """`with Progress(): ...` draws on stderr, if that is a terminal."""

    def __init__(self, stream=None, delay=DELAY_S, period=PERIOD_S):
        self._stream = stream if stream is not None else sys.stderr
        self._delay, self._period = delay, period
        self._stop = threading.Event()
        self._thread = None
        self._drawn = False

    def __enter__(self):
        if self._stream is not None and self._stream.isatty():
            self._thread = threading.Thread(target=self._watch, name="sterna progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._draw("")

    def _watch(self):
        while not self._stop.wait(self._period):
            clock = profiler.newest() if profiler.newest is not None else None
            seconds = time.perf_counter() - clock.start if clock is not None else 0
            if clock is None or clock.phase == "done" or clock.recording is None or seconds < self._delay:
                self._draw("")
                continue
            recording = clock.recording
            self._draw("sterna: " + text(recording.name, clock.phase, recording.size, recording.executed, seconds))

    def _draw(self, line):
        if not line and not self._drawn:
            return
        try:
            self._stream.write("\r\x1b[K" + line)
            self._stream.flush()
        except (OSError, ValueError):
            self._stop.set()
        self._drawn = bool(line)
