# SPDX-License-Identifier: Apache-2.0
"""Predicted times of kernel calls: ``with sterna.profile() as p: ...``, and what ``sterna run`` collects."""

import linecache
import re
import threading
import time
import types
import weakref

from sterna import settings
from sterna.faults import Fault

_local = threading.local()
_everywhere = None

#: weak reference to the Clock of the newest call; for the progress line
newest = None


def active():
    """Who collects the calls of this thread: a Profile, several as one, or None."""
    entered = getattr(_local, "stack", None) or []
    if _everywhere is not None and _everywhere not in entered:
        entered = [_everywhere, *entered]
    if len(entered) > 1:
        return _Several(entered)
    return entered[0] if entered else None


class Clock:
    """Seconds that Sterna itself took for one call, and what it is doing now."""

    def __init__(self, recording=None):
        global newest
        self.recording = recording
        self.phase = "recording"
        self.start = self._mark = time.perf_counter()
        self.record_s = self.execute_s = self.predict_s = 0.0
        newest = weakref.ref(self)

    def _lap(self, phase):
        now = time.perf_counter()
        lap, self._mark, self.phase = now - self._mark, now, phase
        return lap

    def recorded(self):
        self.record_s = self._lap("running")

    def executed(self, seconds=None):
        """`seconds`: this call's share, where several calls ran together."""
        lap = self._lap("predicting")
        self.execute_s = lap if seconds is None else seconds

    def predicted(self):
        self.predict_s = self._lap("done")


class _Run:
    """One recorded call and, when somebody asks, its prediction; profiles that nest share it."""

    def __init__(self, recording):
        self.recording = recording
        self._timing = None
        self._refusal = None

    @property
    def timing(self):
        if self._timing is None and self._refusal is None:
            try:
                self._timing = self.recording.timing()
            except Fault as fault:
                self._refusal = fault.with_traceback(None)
        if self._refusal is not None:
            raise self._refusal
        return self._timing

    def shrink(self):
        """Keeps the figures and drops program and instructions."""
        if self._timing is not None:
            self._timing = types.SimpleNamespace(**{name: getattr(self._timing, name) for name in _FIGURES})
        self.recording = None


_FIGURES = (
    "bound cause_names cores critical dma_bytes engines hbm_read hbm_written instructions kernel_ns lines multiply_adds notes "
    "psum_capacity psum_peak queue_names sbuf_capacity sbuf_peak total_ns uncertain waits"
).split()


class KernelProfile:
    """One kernel specialisation: its name, arguments, number of calls, and the prediction for its first call.

    Where the prediction is refused (the kernel does not fit into the chip's memory, for example) `refused` is the fault, and
    asking for a time raises it.
    """

    def __init__(self, function, arguments, run):
        code = getattr(function, "__code__", None)
        self.name = getattr(function, "__name__", "kernel")
        self.qualname = getattr(function, "__qualname__", self.name)
        self.file = code.co_filename if code else ""
        self.line = code.co_firstlineno if code else 0
        self.arguments = arguments
        self.target = run.recording.target
        self.nki_version = run.recording.nki_version
        self.depends_on_data = run.recording.path_length > 0
        self.warnings = len(run.recording.warnings())
        self.calls = 0
        self.record_s = self.execute_s = self.predict_s = 0.0
        self._run = run

    @property
    def timing(self):
        """The whole prediction; see `sterna._core.Timing`."""
        return self._run.timing

    @property
    def recording(self):
        """The first call's recording."""
        return self._run.recording

    @property
    def trace(self):
        """The predicted run of the first call: `trace.save("x.trace")`, or `.json` for Perfetto."""
        return self.timing

    @property
    def refused(self):
        """The fault that says why there is no prediction, or None."""
        try:
            _ = self.timing
        except Fault as fault:
            return fault
        return None

    @property
    def time_us(self):
        """Predicted microseconds of one call, launch included."""
        return self.timing.total_ns / 1e3

    @property
    def bound(self):
        """What the critical path is spent on most: an engine, "dma", "hbm" or "latency"."""
        return self.timing.bound

    @property
    def engines(self):
        """{"tensor": share of the kernel's time in which it is active, ...}, with "dma" and "hbm"; of several cores, their mean."""
        return {name: row["active"] for name, row in self.timing.engines.items()}

    @property
    def lines(self):
        """(file, line, function, microseconds, share) on the critical path, most first."""
        return self.timing.lines

    def without_prediction(self):
        """What was run, as plain data, with nothing predicted."""
        return {
            "name": self.name,
            "qualname": self.qualname,
            "file": self.file,
            "line": self.line,
            "arguments": self.arguments,
            "target": self.target,
            "nki": self.nki_version,
            "calls": self.calls,
            "depends_on_data": self.depends_on_data,
            "warnings": self.warnings,
            "host_s": {"record": self.record_s, "execute": self.execute_s, "predict": self.predict_s},
            "refused": None,
            "predicted": None,
        }

    def as_dict(self, lines=None):
        """Everything as plain data: one entry of "kernels" in what `sterna run --json` writes."""
        out = self.without_prediction()
        try:
            out["predicted"] = _as_dict(self.timing, lines)
        except Fault as fault:
            out["refused"] = {
                "kind": fault.kind,
                "rule": fault.rule,
                "message": fault.message,
                "file": fault.file,
                "line": fault.line,
            }
        return out

    def __repr__(self):
        head = f"<{self.name}({self.arguments}) on {self.target}, {self.calls} call{'s' * (self.calls != 1)}"
        refusal = self.refused
        return f"{head}: {refusal}>" if refusal else f"{head}: {self.time_us:.2f} us, bound by {self.bound}>"


def _as_dict(timing, lines):
    return {
        "time_us": timing.total_ns / 1e3,
        "kernel_us": timing.kernel_ns / 1e3,
        "bound": timing.bound,
        "instructions": timing.instructions,
        "engines": timing.engines,
        "cores": timing.cores,
        "critical_path": timing.critical,
        "waits": timing.waits,
        "lines": [
            {
                "file": file,
                "line": line,
                "function": function,
                "time_us": us,
                "share": share,
                "text": _source(file, line),
            }
            for file, line, function, us, share in timing.lines[:lines]
        ],
        "dma_bytes": timing.dma_bytes,
        "hbm_read_bytes": timing.hbm_read,
        "hbm_written_bytes": timing.hbm_written,
        "multiply_adds": timing.multiply_adds,
        "sbuf_peak_bytes": timing.sbuf_peak,
        "sbuf_capacity_bytes": timing.sbuf_capacity,
        "psum_peak_bytes": timing.psum_peak,
        "psum_capacity_bytes": timing.psum_capacity,
        "uncertain": [
            {"key": key, "value": text, "trust": trust, "source": source}
            for key, text, trust, source in timing.uncertain
        ],
        "notes": timing.notes,
    }


def _source(file, line):
    """The line's text; with the lines after it while a bracket is open, since a call's first line alone says little."""
    text = linecache.getline(file, line).strip() if file else ""
    for extra in range(1, 4):
        if sum(text.count(c) for c in "([{") <= sum(text.count(c) for c in ")]}"):
            break
        following = linecache.getline(file, line + extra).strip()
        text += following if text.endswith(("(", "[", "{")) else " " + following
    return text.strip()


class Profile:
    """Collects kernel calls while it is entered. `kernels` has one entry for each specialisation, in order of first call.

    values: False records without executing; a kernel that asks for a value (a branch on a register, `print(tensor)`) still gets it.
    """

    def __init__(self, target=None, values=True):
        self.kernels = []
        self.values = values
        self._by_key = {}
        self._lock = threading.Lock()
        self._target = target
        self._saved = None
        self._predict = self._keep = False

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

    def everywhere(self, predict=True, keep_programs=False):
        """Collects the calls of every thread until the process ends, and keeps no values.

        predict: each specialisation is predicted as soon as it is there; keep_programs: so that traces can be saved later.
        """
        global _everywhere
        self._predict, self._keep = predict, keep_programs
        _everywhere = self
        return self

    def add(self, recording, function, args, kwargs, clock):
        """One call that ended well."""
        run = _Run(recording)
        self._add(run, function, _described(args, kwargs), clock)
        if self is _everywhere:
            recording.release()
            if not self._keep:
                run.shrink()
        clock.predicted()

    def _add(self, run, function, arguments, clock):
        recording = run.recording
        place = getattr(function, "__code__", function)
        key = (place, getattr(function, "__qualname__", ""), arguments, recording.target, recording.size)
        with self._lock:
            entry = self._by_key.get(key)
            fresh = entry is None
            if fresh:
                entry = self._by_key[key] = KernelProfile(function, arguments, run)
                self.kernels.append(entry)
            entry.calls += 1
            entry.record_s += clock.record_s
            entry.execute_s += clock.execute_s
        if fresh and self._predict:
            start = time.perf_counter()
            _ = entry.refused
            entry.predict_s += time.perf_counter() - start


class _Several:
    """Profiles that are entered at the same time, all of which get every call."""

    def __init__(self, profiles):
        self._profiles = profiles

    @property
    def values(self):
        return all(profile.values for profile in self._profiles)

    def add(self, recording, function, args, kwargs, clock):
        run, arguments = _Run(recording), _described(args, kwargs)
        for profile in self._profiles:
            profile._add(run, function, arguments, clock)
        clock.predicted()


def _described(args, kwargs):
    """What makes a specialisation: shapes and types of arrays, and the text of everything else."""
    return ", ".join([_text(value) for value in args] + [f"{name}={_text(value)}" for name, value in kwargs.items()])


_LONGEST = 60


def _text(value):
    if isinstance(value, type):
        return value.__qualname__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        name = str(getattr(dtype, "name", dtype)).rsplit(".", 1)[-1]
        return f"{name}[{', '.join(str(size) for size in shape)}]"
    if isinstance(value, (list, tuple)):
        open_, close = "[]" if isinstance(value, list) else "()"
        return _short(open_ + ", ".join(_text(item) for item in value) + close)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    try:
        # Addresses differ from call to call and say nothing.
        return _short(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)))
    except Exception:
        return type(value).__name__


def _short(text):
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
