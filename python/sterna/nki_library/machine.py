# SPDX-License-Identifier: Apache-2.0
"""Cases that need much memory run alone: a lock between processes, estimates of what a case needs, and a watch over its growth.

Every case holds the machine together with others. A heavy one gives its part back, and waits until nobody else holds any. When two
become heavy at once, both wait with what they have, and neither gets the rest: the second gives way.
"""

import contextlib
import ctypes
import fcntl
import gc
import os
import signal
import tempfile
import time

import numpy as np


def total_bytes():
    """Memory of this machine, or of its control group where that is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            return min(total, int(file.read()))
    except (OSError, ValueError):
        return total


def available_bytes():
    """What new allocations may take without swapping, as the kernel estimates it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return total_bytes()


def used_bytes():
    """Resident memory of this process; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def give_back():
    """Returns to the system what this process has freed, cycles of objects included."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # not the GNU C library: nothing to ask
        ctypes.CDLL(None).malloc_trim(0)


def array_bytes(value):
    """Bytes of all arrays in a structure of dicts and lists."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(array_bytes(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(array_bytes(item) for item in value)
    return int(getattr(value, "nbytes", 0) or 0)


def array_elements(value):
    """Elements of all arrays in a structure of dicts and lists."""
    if isinstance(value, dict):
        return sum(array_elements(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(array_elements(item) for item in value)
    return int(getattr(value, "size", 0) or 0) if hasattr(value, "nbytes") else 0


def case_bytes(inputs, outputs):
    """What a case will need: its arrays twice (the harness dumps them), and two fp32 copies of each in the reference."""
    return 2 * array_bytes([inputs, outputs]) + 8 * array_elements([inputs, outputs])


class GivesWay(BaseException):
    """Another process waits for the machine with much memory in its hands: this case has to let go of its own."""


class Share:
    """This process's part of the machine; see the module.

    A second file stands before the lock itself. Whoever wants the machine alone keeps it while waiting, so that newcomers
    queue up behind and the wait ends.
    """

    def __init__(self, folder=None):
        stem = os.path.join(folder or tempfile.gettempdir(), f"sterna-nki-library-{os.getuid()}")
        self._gate, self._lock = (os.open(stem + end, os.O_RDWR | os.O_CREAT, 0o600) for end in (".gate", ".lock"))
        self.alone = False
        self.waited = False

    @contextlib.contextmanager
    def held(self, alone=False):
        """The machine together with others, or alone, for the time of a block."""
        self._take(fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self.alone, self.waited = alone, False
        try:
            yield self
        finally:
            self.alone = False
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    PATIENCE = 0.2  # seconds; who only passes the gate is through by then

    def take_alone(self):
        """Waits until nobody else holds a part; for the rest of the `held` block. GivesWay if somebody waits for that already."""
        if self.alone:
            return
        end = time.monotonic() + self.PATIENCE
        while True:
            try:
                fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise GivesWay from None
            time.sleep(0.01)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        self.alone = self.waited = True

    def _take(self, kind):
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, kind)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)


class Watch:
    """Calls `grown` once, in the main thread, between two steps of Python, when this process holds more than `limit` bytes.

    A case's inputs and reference exist before anything can be estimated from them. The timer counts processor time: memory
    does not grow without, and a process that sleeps is not woken.
    """

    SECONDS = 0.1

    def __init__(self, limit, grown):
        self.limit, self.grown = limit, grown

    @contextlib.contextmanager
    def over(self):
        """Watches for the time of a block."""
        before = signal.signal(signal.SIGVTALRM, self._look)
        signal.setitimer(signal.ITIMER_VIRTUAL, self.SECONDS, self.SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)

    def _look(self, number, frame):
        if used_bytes() > self.limit:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self.grown()
