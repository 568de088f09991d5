# SPDX-License-Identifier: Apache-2.0
"""`sterna.profile()` and the progress line."""

import io
import json
import time

import numpy as np
import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import sterna
from sterna import profiler, progress, session


@nki.jit
def double(a, times=1):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(a.shape[0] // 128):
        tile = nl.load(a[i * 128 : (i + 1) * 128])
        for _ in range(times):
            tile = nl.add(tile, tile)
        nl.store(out[i * 128 : (i + 1) * 128], tile)
    return out


@nki.jit
def too_large(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    first, second, third = nl.load(a), nl.load(a), nl.load(a)
    nl.store(out, nl.add(nl.add(first, second), third))
    return out


def ones(rows=128, columns=64, dtype=np.float32):
    return np.ones((rows, columns), dtype)


def test_a_call_has_a_time_a_bound_and_its_place():
    with sterna.profile() as p:
        result = double(ones())
    assert (result == 2).all()
    (kernel,) = p.kernels
    assert (kernel.name, kernel.arguments, kernel.calls) == ("double", "float32[128, 64]", 1)
    assert kernel.file == __file__ and kernel.line == double.func.__code__.co_firstlineno
    assert kernel.time_us > 0 and kernel.bound in (
        "tensor",
        "vector",
        "scalar",
        "gpsimd",
        "sync",
        "dma",
        "exchange",
        "hbm",
        "latency",
    )
    assert kernel.engines["vector"] > 0 and kernel.engines["tensor"] == 0
    assert kernel.refused is None


@nki.jit
def halves(a):
    """Each core takes half of the rows; then both read what the other wrote."""
    me, rows = nl.program_id(0), a.shape[0] // 2
    shared = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows, a.shape[1]), dtype=a.dtype)
    nisa.dma_copy(tile, a[nl.ds(me * rows, rows), :])
    for _ in range(1 + 3 * me):
        nisa.tensor_tensor(tile, tile, tile, op=nl.add)
    nisa.dma_copy(shared[nl.ds(me * rows, rows), :], tile)
    nisa.core_barrier(shared, (0, 1))
    theirs = nl.ndarray(tile.shape, dtype=a.dtype)
    nisa.dma_copy(theirs, shared[nl.ds((1 - me) * rows, rows), :])
    nisa.dma_copy(out[nl.ds(me * rows, rows), :], theirs)
    return out


def test_two_cores_have_one_prediction(tmp_path):
    with sterna.profile() as p:
        result = halves[2](ones(256, 512))
    assert (result[:128] == 16).all() and (result[128:] == 2).all()
    (kernel,) = p.kernels
    timing = kernel.timing
    core, cause = np.frombuffer(timing.core(), "uint8"), np.frombuffer(timing.cause(), "uint8")
    start, by = np.frombuffer(timing.start(), "int64"), np.frombuffer(timing.cause_instruction(), "uint32")
    assert sorted(set(core)) == [0, 1]
    # The core with less to do waits in its barrier for the other, which has three additions more.
    (waiting,) = np.flatnonzero(cause == timing.cause_names.index("partner"))
    assert core[waiting] == 0 and core[by[waiting]] == 1 and start[waiting] == start[by[waiting]]
    assert len(timing.cores) == 2
    assert timing.cores[1]["engines"]["vector"]["instructions"] == 4
    assert timing.engines["vector"]["instructions"] == 5
    assert timing.kernel_ns == pytest.approx(max(c["end_us"] for c in timing.cores) * 1e3)
    assert timing.total_ns == pytest.approx(timing.kernel_ns + 13e3 + 14e3)  # launch, and the second core's
    assert any(note.startswith("The cores start together") for note in timing.notes)
    kernel.trace.save(str(tmp_path / "two.trace"))
    trace = sterna.load_trace(str(tmp_path / "two.trace"))
    assert "core 1 vector" in trace.queues and len(trace) == timing.instructions
    kernel.trace.save(str(tmp_path / "two.json"))
    events = json.loads((tmp_path / "two.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {pid: name[-18:] for pid, name in names.items()} == {1: "core 0 (predicted)", 2: "core 1 (predicted)"}
    assert {e["pid"] for e in events if e["ph"] == "X"} == {1, 2}


@nki.jit
def summed(x, group):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_reduce(srcs=[x], dsts=[out], replica_group=group, op=nl.add)
    return out


def test_a_collective_takes_the_links_time():
    x = ones(128, 512)
    with sterna.profile("trn2") as p:
        sterna.launch(summed, [{"x": x, "group": ncc.ReplicaGroup([[0, 1, 2, 3]])} for _ in range(4)])
    timing = p.kernels[0].timing
    # Ranks of one chip: twice 3/4 of the bytes at 77 GB/s and three steps of 1.05 us (hardware/chips/trn2.toml).
    assert timing.kernel_ns == pytest.approx(2 * (3 / 4 * x.nbytes / 77 + 3 * 1050), abs=1e-3)
    assert timing.bound == "exchange" and timing.engines["exchange"]["instructions"] == 1
    assert any(note.startswith("Every rank") for note in timing.notes)
    assert "link.core_rate" in [key for key, *_ in timing.uncertain]


def test_the_ranks_of_a_launch_share_its_time(monkeypatch):
    """What the caller does between ranks, such as making their inputs, is not Sterna's time."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    recording = session._core.Recording

    class TakingEightSeconds:
        def __new__(cls, *args, **kwargs):
            return recording(*args, **kwargs)

        @staticmethod
        def launch(ranks):
            recording.launch(ranks)
            now[0] += 8.0

    monkeypatch.setattr(session._core, "Recording", TakingEightSeconds)

    def arguments():
        for _ in range(4):
            now[0] += 100.0
            yield {"x": ones(128, 4), "group": ncc.ReplicaGroup([[0, 1, 2, 3]])}

    with sterna.profile() as p:
        sterna.launch(summed, arguments())
    assert (p.kernels[0].calls, p.kernels[0].record_s, p.kernels[0].execute_s) == (4, 0.0, 8.0)


def test_bytes_are_those_of_the_arguments():
    with sterna.profile() as p:
        double(ones(256, 512))
    timing = p.kernels[0].timing
    size = 256 * 512 * 4
    assert (timing.hbm_read, timing.hbm_written) == (size, size)
    # Two tiles of 512 floats in a partition are live at once at the least.
    assert 2 * 2048 <= timing.sbuf_peak <= timing.sbuf_capacity
    assert timing.psum_peak == 0


def test_the_slowest_lines_are_the_kernels_own():
    with sterna.profile() as p:
        double(ones(512, 512))
    lines = p.kernels[0].lines
    first = double.func.__code__.co_firstlineno
    assert lines and all(file == __file__ and first < line < first + 9 for file, line, *_ in lines)
    shares = [share for *_, share in lines]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1 + 1e-9


def test_one_entry_for_each_specialisation():
    with sterna.profile() as p:
        double(ones())
        double(2 * ones())
        double(ones(256))
        double(ones(dtype=np.float16))
        double(ones(), times=3)
    assert [(k.arguments, k.calls) for k in p.kernels] == [
        ("float32[128, 64]", 2),
        ("float32[256, 64]", 1),
        ("float16[128, 64]", 1),
        ("float32[128, 64], times=3", 1),
    ]
    assert p.kernels[3].timing.instructions == p.kernels[0].timing.instructions + 2


def test_two_kernels_of_one_name_are_two():
    def make(count):
        @nki.jit
        def same(a):
            out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
            tile = nl.load(a)
            for _ in range(count):
                tile = nl.add(tile, tile)
            nl.store(out, tile)
            return out

        return same

    with sterna.profile() as p:
        make(1)(ones())
        make(2)(ones())
    assert len(p.kernels) == 2


def test_profiles_nest_and_both_see_the_call():
    with sterna.profile() as outer:
        double(ones())
        with sterna.profile() as inner:
            double(ones())
    assert (outer.kernels[0].calls, inner.kernels[0].calls) == (2, 1)
    assert outer.kernels[0].time_us == inner.kernels[0].time_us


def test_nothing_is_kept_outside():
    with sterna.profile() as p:
        pass
    double(ones())
    assert p.kernels == []
    assert profiler.active() is None


def test_the_target_of_a_profile_holds_inside_only():
    with sterna.profile("trn1") as p:
        double(ones())
    with sterna.profile() as q:
        double(ones())
    assert (p.kernels[0].target, q.kernels[0].target) == ("trn1", "trn2")


def test_a_kernel_that_does_not_fit_is_refused_when_asked_for_its_time():
    # Three tensors of 100,000 bytes a partition; trn2 has 229,376, which the message has to say.
    array = ones(128, 25000)
    with sterna.profile() as p:
        assert (too_large(array) == 3).all()
    (kernel,) = p.kernels
    with pytest.raises(sterna.RuleError) as fault:
        _ = kernel.time_us
    assert fault.value.rule == "CAP1" and "100000" in fault.value.message
    assert kernel.refused is fault.value
    assert kernel.as_dict()["predicted"] is None and kernel.as_dict()["refused"]["rule"] == "CAP1"


def test_instructions_are_columns():
    with sterna.profile() as p:
        double(ones(256, 512))
    timing = p.kernels[0].timing
    start, end = np.frombuffer(timing.start(), np.int64), np.frombuffer(timing.end(), np.int64)
    queue, cause = np.frombuffer(timing.queue(), np.uint8), np.frombuffer(timing.cause(), np.uint8)
    waited = np.frombuffer(timing.cause_instruction(), np.uint32)
    assert len(start) == len(end) == len(queue) == len(cause) == timing.instructions
    assert (start >= 0).all() and (end >= start).all() and end.max() <= timing.kernel_ns * 1000
    names = [timing.queue_names[q] for q in queue]
    assert names.count("dma_load") == 2 and names.count("dma_store") == 2 and "vector" in names
    # Each waits for an earlier instruction, or for none.
    none = np.uint32(0xFFFFFFFF)
    assert all(w == none or w < i for i, w in enumerate(waited))
    assert sum(timing.waits.values()) == pytest.approx(1)
    assert sum(timing.critical.values()) == pytest.approx(1)


def test_what_is_uncertain_has_a_source():
    with sterna.profile() as p:
        double(ones())
    numbers = p.kernels[0].timing.uncertain
    assert numbers and all(
        key and text and trust in ("claimed", "estimated", "assumed") for key, text, trust, _ in numbers
    )


def test_the_program_has_its_text():
    with sterna.profile() as p:
        double(ones())
    text = p.kernels[0].recording.text()
    assert text.startswith("sterna program 1\n") and "target trn2" in text


def test_release_keeps_what_a_prediction_needs():
    with sterna.profile() as p:
        double(ones())
        double(ones(256))
    expected = p.kernels[0].recording.timing().total_ns
    recording = p.kernels[0].recording
    recording.release()
    assert recording.timing().total_ns == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "3"),
        ("x", "'x'"),
        (nl.add, "add"),
        ([np.zeros((2, 3), np.int32), 1], "[int32[2, 3], 1]"),
        (np.float32, "float32"),
        ("y" * 200, "'" + "y" * 56 + "..."),
    ],
)
def test_arguments_are_short(value, said):
    assert profiler._text(value) == said


# --- progress


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


class Call:
    name, size, executed = "slow", 200, 50


def draw(is_terminal, delay, phase="running"):
    stream = Terminal(is_terminal)
    clock = profiler.Clock(Call())
    clock.phase = phase
    with progress.Progress(stream, delay=delay, period=0.005):
        deadline = time.monotonic() + 1
        while not stream.getvalue() and time.monotonic() < deadline and is_terminal and delay == 0 and phase != "done":
            time.sleep(0.005)
        time.sleep(0.03)
    return stream.getvalue()


def test_progress_is_drawn_and_cleared_on_a_terminal():
    drawn = draw(True, 0)
    assert "sterna: slow: running [#######" in drawn and "25 % of 200 records" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_progress_is_silent_elsewhere():
    assert draw(False, 0) == ""
    assert draw(True, 60) == ""
    assert draw(True, 0, "done") == ""


def test_recording_has_no_end_that_is_known():
    assert progress.text("k", "recording", 1234, 0, 3.2) == "k: recording, 1,234 records, 3 s"
