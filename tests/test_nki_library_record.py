# SPDX-License-Identifier: Apache-2.0
"""--sterna-record: a run that was stopped goes on, and the last part reports on the whole."""

import json

import pytest
from mini_library import CASES

pytest.importorskip("sterna.nki_library")

ENDS_THE_PROCESS = """
    import os

    def test_ends_the_process():
        if not os.path.exists("mended"):
            os._exit(9)
"""


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_goes_on_where_it_was_stopped(suite, tmp_path):
    file = tmp_path / "run.jsonl"
    first = suite(CASES, "--sterna-record", str(file), "--maxfail", "1")
    assert "1 failed, 2 passed" in first.stdout, first.stdout + first.stderr
    assert "record           1 failed, 2 passed; 0 of them in 0 earlier run(s)" in first.stdout
    assert first.returncode == 1

    second = suite(CASES, "--sterna-record", str(file))
    assert "2 passed, 3 deselected" in second.stdout, second.stdout + second.stderr
    assert "5 cases, 5 kernel calls, 2 process(es)" in second.stdout
    assert "record           1 failed, 4 passed; 3 of them in 1 earlier run(s)" in second.stdout
    assert second.returncode == 1  # one had failed

    third = suite(CASES, "--sterna-record", str(file))
    assert "5 deselected" in third.stdout and "5 cases, 5 kernel calls, 3 process(es)" in third.stdout
    assert third.returncode == 1


def test_nothing_failed_and_nothing_is_left(suite, tmp_path):
    file = tmp_path / "run.jsonl"
    for _ in range(2):
        done = suite(CASES, "--sterna-record", str(file), "--deselect", "test/test_cases.py::test_wrong_values")
        assert done.returncode == 0, done.stdout + done.stderr
    outcomes = {line["case"]: line["outcome"] for line in _lines(file) if "case" in line}
    assert len(outcomes) == 4 and set(outcomes.values()) == {"passed"}


def test_workers_leave_out_the_same_cases(suite, tmp_path):
    pytest.importorskip("xdist")
    file = tmp_path / "run.jsonl"
    suite(CASES, "--sterna-record", str(file), "-k", "values")
    done = suite(CASES, "--sterna-record", str(file), "-n", "2")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "record           1 failed, 4 passed; 3 of them in 1 earlier run(s)" in done.stdout


def test_what_ends_the_process_is_tried_twice(suite, tmp_path):
    file = tmp_path / "run.jsonl"
    cases = CASES + ENDS_THE_PROCESS
    for _ in range(2):
        assert suite(cases, "--sterna-record", str(file)).returncode == 9
        with file.open("ab") as end:
            end.write(b'{"case": "half a li')  # as a process that is killed while it writes
    done = suite(cases, "--sterna-record", str(file))
    assert "6 deselected" in done.stdout, done.stdout + done.stderr
    assert "record           2 failed, 4 passed; 6 of them in 2 earlier run(s)" in done.stdout
    assert "not run again    test/test_cases.py::test_ends_the_process" in done.stdout
    assert done.returncode == 1


def test_a_lost_worker_is_tried_once_more(suite, tmp_path):
    pytest.importorskip("xdist")
    file = tmp_path / "run.jsonl"
    cases = CASES + ENDS_THE_PROCESS
    first = suite(cases, "--sterna-record", str(file), "-n", "2")
    assert "2 failed, 4 passed" in first.stdout, first.stdout + first.stderr
    (tmp_path / "mended").touch()
    second = suite(cases, "--sterna-record", str(file), "-n", "2")
    assert "1 passed" in second.stdout and "1 failed, 5 passed; 5 of them" in second.stdout, second.stdout


def test_outcomes_have_their_names(suite, tmp_path):
    file = tmp_path / "run.jsonl"
    suite(
        """
        import pytest

        @pytest.fixture
        def broken(): raise ValueError

        @pytest.fixture
        def breaks_later():
            yield
            raise ValueError

        def test_setup(broken): pass
        def test_teardown(breaks_later): pass
        @pytest.mark.skip
        def test_skipped(): pass
        @pytest.mark.xfail
        def test_expected(): assert False
        @pytest.mark.xfail
        def test_unexpected(): pass
        """,
        "--sterna-record",
        str(file),
    )
    outcomes = {line["case"].split("_")[-1]: line["outcome"] for line in _lines(file) if "case" in line}
    wanted = {"setup": "failed", "teardown": "failed", "skipped": "skipped", "expected": "xfailed"}
    assert outcomes == wanted | {"unexpected": "xpassed"}


def test_files_that_cannot_be_gone_on_with(suite, tmp_path):
    file = tmp_path / "run.jsonl"
    suite(CASES, "--sterna-record", str(file))
    done = suite(CASES, "--sterna-record", str(file), "--platform-target", "trn3")
    assert "has a run with target trn2, this one has trn3" in done.stderr, done.stdout + done.stderr
    (tmp_path / "other.txt").write_text("a letter\n")
    done = suite(CASES, "--sterna-record", "other.txt")
    assert "other.txt:1 is no record of a run" in done.stderr, done.stdout + done.stderr
    done = suite(CASES, "--sterna-record", "no/such/folder.jsonl")
    assert "--sterna-record: [Errno 2] No such file or directory" in done.stderr, done.stdout + done.stderr
