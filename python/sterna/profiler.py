# SPDX-License-Identifier: Apache-2.0
"""Predicted times of kernel calls: ``with sterna.profile() as p: ...``, and what ``sterna run`` prints."""

import threading
import time

from sterna import settings

_local = threading.local()


def active():
    """The innermost profile of this thread, or None."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else _everywhere


_everywhere = None


class Clock:
    """Seconds that Sterna itself took for one call."""

    def __init__(self):
        self._mark = time.perf_counter()
        self.record_s = self.execute_s = self.predict_s = 0.0

    def _lap(self):
        now = time.perf_counter()
        lap, self._mark = now - self._mark, now
        return lap

    def recorded(self):
        self.record_s = self._lap()

    def executed(self):
        self.execute_s = self._lap()

    def predicted(self):
        self.predict_s = self._lap()


class KernelProfile:
    """One kernel specialisation: name, argument shapes, calls, and the predicted run of its last call.

    time_us: predicted time of one call in microseconds; bound: what limits it; trace: the run (``trace.save(path)``).
    """

    def __init__(self, key, recording, clock):
        self.name, self.signature, self.target = key
        self.calls = 0
        self.clock = clock
        self._recording = recording
        self._timing = None

    @property
    def timing(self):
        if self._timing is None:
            self._timing = self._recording.timing()
        return self._timing

    trace = timing

    @property
    def time_us(self):
        return self.timing.total_ns / 1e3

    @property
    def bound(self):
        return self.timing.bound

    def __repr__(self):
        return f"<{self.name}{self.signature} on {self.target}: {self.time_us:.2f} us, bound by {self.bound}, {self.calls} calls>"


class Profile:
    """Collects kernel calls while it is entered. `kernels` has one entry for each specialisation, in order of first call."""

    def __init__(self, target=None):
        self.kernels = []
        self._by_key = {}
        self._target = target
        self._saved = None

    def __enter__(self):
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        if self._target:
            self._saved, settings.forced_target = settings.forced_target, self._target
        return self

    def __exit__(self, *exception):
        _local.stack.remove(self)
        if self._target:
            settings.forced_target = self._saved

    def everywhere(self):
        """Collects the calls of every thread until the process ends."""
        global _everywhere
        _everywhere = self
        return self

    def add(self, recording, function, arguments, clock):
        signature = ", ".join(f"{a.memory.dtype.name}{list(a.memory.shape)}" for a in arguments)
        key = (getattr(function, "__name__", "kernel"), f"({signature})", recording.target)
        entry = self._by_key.get((*key, recording.size))
        if entry is None:
            entry = KernelProfile(key, recording, clock)
            self._by_key[(*key, recording.size)] = entry
            self.kernels.append(entry)
        entry.calls += 1
