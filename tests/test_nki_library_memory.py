# SPDX-License-Identifier: Apache-2.0
"""How the plug-in for nki-library shares the memory of a machine between processes."""

import threading
import time

import numpy as np
import pytest

machine = pytest.importorskip("sterna.nki_library.machine")


def test_the_second_of_two_that_want_the_machine_alone_gives_way(tmp_path):
    first, second, other = (machine.Share(tmp_path) for _ in range(3))
    waits = threading.Event()

    def run_first():
        with first.held():
            waits.set()
            first.take_alone()

    with other.held(), second.held():
        thread = threading.Thread(target=run_first)
        thread.start()
        waits.wait(10)
        time.sleep(0.1)
        with pytest.raises(machine.GivesWay):
            second.take_alone()
        assert not first.alone and not second.alone
    thread.join(10)
    assert first.waited
    with second.held():
        second.take_alone()
        assert second.alone


def test_a_process_that_grows_past_its_part_is_told_once():
    told = []
    watch = machine.Watch(machine.used_bytes() + (64 << 20), lambda: told.append(machine.used_bytes()))

    def work(megabytes):
        kept = [bytearray(b"x") * (1 << 20) for _ in range(megabytes)]
        end = time.process_time() + 3 * machine.Watch.SECONDS
        while time.process_time() < end:
            pass
        return kept

    with watch.over():
        work(1)
        assert not told
        work(96)
        work(96)
    assert len(told) == 1 and told[0] > watch.limit
    work(96)
    assert len(told) == 1


def test_whoever_wants_the_machine_alone_waits_and_newcomers_wait_behind(tmp_path):
    events = []
    first, heavy, late = (machine.Share(tmp_path) for _ in range(3))
    waiting = threading.Event()

    def run_heavy():
        with heavy.held():
            waiting.set()
            heavy.take_alone()
            events.append("heavy")
            time.sleep(0.05)
            events.append("heavy done")

    def run_late():
        with late.held():
            events.append("late")

    with first.held():
        one = threading.Thread(target=run_heavy)
        one.start()
        waiting.wait(10)
        time.sleep(0.1)
        two = threading.Thread(target=run_late)
        two.start()
        time.sleep(0.1)
        events.append("first done")
    one.join(10)
    two.join(10)
    assert events == ["first done", "heavy", "heavy done", "late"]
    assert heavy.waited and not late.waited


def test_two_cases_share_the_machine(tmp_path):
    one, other = machine.Share(tmp_path), machine.Share(tmp_path)
    with one.held(), other.held():
        assert not one.alone and not other.alone


def test_the_estimate_counts_arrays_in_structures():
    inputs = {"x": np.zeros((4, 8), np.float16), "list": [np.zeros(2, np.float32)], "n": 5, "none": None}
    assert machine.array_bytes(inputs) == 64 + 8
    assert machine.case_bytes(inputs, {}) == 2 * 72 + 8 * 34
    assert 0 < machine.available_bytes() <= machine.total_bytes() * 2
