# SPDX-License-Identifier: Apache-2.0
"""The pytest plug-in for nki-library, on a made-up suite of a few lines with the same imports and the same harness methods."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sterna.nki_library")

from mini_library import CASES  # noqa: E402

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402
from sterna.nki_library import figures, ranks  # noqa: E402

RANKS = """
    def test_ranks(monkeypatch, tmp_path):
        from sterna.nki_library import ranks
        seen = []

        def launch(kernel, lnc, inputs):
            seen.extend(inputs)
            return [double(**one) for one in inputs]

        monkeypatch.setattr(ranks, "launch", launch)
        arrays = [np.full((2, 2), rank, np.float32) for rank in range(2)]
        manager = Orchestrator()
        manager.fs_config.artifacts_output_directory_path = str(tmp_path)
        manager.execute(arguments(PerRank(lambda r: {"x.must_alias_input": arrays[r]}), PerRank(lambda r: {"out": 2 * arrays[r]}), 2))
        assert [list(one) for one in seen] == [["x"], ["x"]]
        for rank in range(2):
            got = np.fromfile(tmp_path / "infer_result" / f"output_worker_{rank}" / "out.bin", np.float32)
            np.testing.assert_array_equal(got, np.full(4, 2 * rank))
"""


def test_a_suite_with_these_imports_runs(suite):
    done = suite(CASES)
    assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "test_wrong_values" in done.stdout
    summary = done.stdout[done.stdout.index(" sterna ") :]
    assert "5 cases, 5 kernel calls, 1 process(es)" in summary
    assert "bound" in summary
    assert "references 0.0" in summary  # never more than the time in which they could have been made


def test_workers_report_to_one_summary(suite):
    pytest.importorskip("xdist")
    done = suite(CASES, "-n", "2")
    assert "5 cases, 5 kernel calls, 2 process(es)" in done.stdout, done.stdout + done.stderr


DRAWN = """
    import os, random
    import pytest

    random.seed(os.environ.get("NEURON_PYTHONHASHSEED"))

    @pytest.mark.parametrize("size", random.sample(range(10**6), 3))
    def test_drawn(size): pass
"""


def test_the_suite_draws_the_same_cases_in_one_process(suite):
    """A sweep is a random sample; the suite seeds it in workers only, and a case found there must be there alone too."""

    def names(**environment):
        return [
            line for line in suite(DRAWN, "--collect-only", **environment).stdout.splitlines() if "test_drawn" in line
        ]

    drawn = names()
    assert len(drawn) == 3 and names() == drawn
    assert names(NEURON_PYTHONHASHSEED="1") != drawn


def test_inputs_of_ranks_are_launched_and_their_results_written(suite):
    done = suite(CASES.split("    @pytest.mark.parametrize")[0] + RANKS)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_the_suite_nothing_is_reported(tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "sterna.pytest_nki_library", "-p", "no:cacheprovider", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert " sterna " not in done.stdout


def test_ranks_get_their_own_inputs():
    @nki.jit
    def double(x):
        tile = nl.load(x)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(tile, 2.0))
        return out

    got = ranks.launch(double, 1, [{"x": np.full((2, 2), rank, np.float32)} for rank in range(3)])
    for rank, array in enumerate(got):
        np.testing.assert_array_equal(array, np.full((2, 2), 2 * rank))


GROWS = """
    import os
    import pytest
    from sterna.nki_library import machine

    attempts = []

    def test_grows(pytestconfig):
        cases = pytestconfig.pluginmanager.get_plugin("sterna-nki-library")
        attempts.append(cases.share.alone)
        if len(attempts) == 1:
            waiting = machine.Share()
            machine.fcntl.flock(waiting._gate, machine.fcntl.LOCK_EX)
            try:
                cases.wait_until_alone()
            finally:
                os.close(waiting._gate)

    def test_saw_it_begin_again_alone():
        assert attempts == [False, True]
"""


def test_a_case_that_gives_way_begins_again_alone_and_is_reported_once(suite):
    done = suite(GROWS)
    assert "2 passed" in done.stdout and "failed" not in done.stdout, done.stdout + done.stderr


# --- figures


def test_the_summary_adds_up():
    totals = figures.Totals()
    sums = figures.empty()
    sums.update(record=1.0, values=5.0, predict=0.5, reference=2.0, compare=0.25, case=10.0, calls=2, predicted=1)
    sums.update(instructions=3000, multiply_adds=4_000_000)
    totals.add_case(sums)
    totals.add_case(sums)
    totals.add_worker("gw0", 30.0, 4.0)
    text = "\n".join(totals.lines({"sgemm": 4e6, "record": 1000.0}))
    assert "kernels               13.0 s  43.3%" in text
    assert "everything else       17.0 s  56.7%" in text
    assert "references 4.0, comparison 0.5, inputs and files 2.5, collection 4.0" in text
    assert "start and pytest 6.0" in text
    assert "2 calls have no predicted time" in text
    # 8e6 / (0.5 * 4e6) + 6000 / 1000 = 4 + 6 seconds; 12 s were spent on recording and values.
    assert "10.0 s" in text and "took 1.20 times" in text


def test_kernel_calls_are_counted():
    counter = figures.Counter()

    @nki.jit
    def product(a, b):
        x, y = nl.load(a), nl.load(b)
        psum = nl.ndarray((16, 32), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(psum, x, y)
        tile = nl.ndarray((16, 32), nl.float32)
        nisa.tensor_copy(tile, psum)
        out = nl.ndarray((16, 32), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    with counter:
        product(np.ones((8, 16), np.float32), np.ones((8, 32), np.float32))
    sums = counter.take()
    assert (sums["calls"], sums["multiply_adds"], sums["predicted"]) == (1, 8 * 16 * 32, 1)
    assert sums["instructions"] >= 5 and sums["record"] > 0 and sums["values"] > 0
    assert counter.take()["calls"] == 0
