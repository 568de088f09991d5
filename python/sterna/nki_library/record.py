# SPDX-License-Identifier: Apache-2.0
"""A run of the suite that goes on where it was stopped: a file with a line of JSON for each case that began or ended."""

import json
import os

import pytest

from sterna.nki_library import figures

_OUTCOMES = ("failed", "passed", "skipped", "xfailed", "xpassed")


class Record:
    """The file: what earlier runs left in it, and where this run writes. Cases are named by their pytest id.

    A case that began twice and never ended took the process with it both times; it counts as failed and is not begun
    a third time. ``facts`` is what all runs of a file must have in common (target, mode).
    """

    def __init__(self, path, facts):
        self.path = path
        self.runs = 0
        self.outcomes = {}  # of earlier runs
        self.sums, self.measured = figures.empty(), 0  # of the cases whose body was run
        self.seconds = []  # (wall, collecting) of each process of the earlier runs
        begun = {}
        for line in self._earlier(facts):
            if "begin" in line:
                begun[line["begin"]] = begun.get(line["begin"], 0) + 1
            elif "case" in line:
                self.outcomes[line["case"]] = line["outcome"]
                figures.add(self.sums, line.get("figures") or {})
                self.measured += bool(line.get("figures"))
            elif "wall" in line:
                self.seconds.append((line["wall"], line["collecting"]))
        self.lost = sorted(case for case, times in begun.items() if times > 1 and case not in self.outcomes)
        self.outcomes.update(dict.fromkeys(self.lost, "failed"))
        self.new = {}
        self._write({"run": facts})

    def _earlier(self, facts):
        if not os.path.exists(self.path):
            return
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        for number, line in enumerate(text.splitlines(), 1):
            try:
                entry = json.loads(line)
            except ValueError:
                if text.startswith('{"run"'):
                    continue  # cut off by the end of its process
                raise pytest.UsageError(
                    f"--sterna-record: {self.path}:{number} is no record of a run; give a new file."
                ) from None
            if "run" in entry:
                self.runs += 1
                self._same(entry["run"], facts)
            yield entry

    def _same(self, earlier, facts):
        for name, value in facts.items():
            if earlier.get(name) != value:
                raise pytest.UsageError(
                    f"--sterna-record: {self.path} has a run with {name} {earlier.get(name)}, this one has {value}; "
                    "give another file."
                )

    def _write(self, entry):
        """One line, whole, after whatever an ended process left of its last."""
        with open(self.path, "ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            torn = end > 0 and file.read(1) != b"\n"
            file.write((b"\n" if torn else b"") + json.dumps(entry).encode() + b"\n")

    def begin(self, case):
        self._write({"begin": case})

    def end(self, case, outcome, sums):
        self.new[case] = outcome
        self._write({"case": case, "outcome": outcome, "figures": sums})

    def worker(self, wall, collecting):
        """What one process of this run took, in seconds."""
        self._write({"wall": wall, "collecting": collecting})

    @property
    def failed_before(self):
        return sum(outcome == "failed" for outcome in self.outcomes.values())

    def lines(self):
        every = {**self.outcomes, **self.new}
        counts = {outcome: sum(o == outcome for o in every.values()) for outcome in _OUTCOMES}
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count) or "no case"
        yield f"record           {said}; {len(self.outcomes)} of them in {self.runs} earlier run(s) of {self.path}"
        for case in self.lost:
            yield f"not run again    {case}: began twice and ended its process both times"


class Recorder:
    """The hooks: cases that have ended are left out, and each one that begins or ends is written down.

    With workers, the reporting process alone reads and writes the file; all workers leave out the same cases, also
    one that takes the place of another.
    """

    def __init__(self, record):
        self.record = record
        self._outcome = {}
        self._figures = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["sterna_done"] = list(self.record.outcomes)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        leave_out(config, items, self.record.outcomes)

    def pytest_runtest_logstart(self, nodeid):
        self.record.begin(nodeid)

    def pytest_runtest_logreport(self, report):
        case = report.nodeid
        if report.when == "call":
            self._figures[case] = getattr(report, "sterna_figures", None)
        outcome = _outcome_of(report)
        if report.when == "setup" or outcome != "passed":
            before = self._outcome.get(case)
            self._outcome[case] = "failed" if before == "failed" else outcome
        if report.when == "teardown":
            self.record.end(case, self._outcome.pop(case), self._figures.pop(case, None))
        elif report.when not in ("setup", "call"):  # its worker was lost: it may begin once more in the next run
            self.record.new[case] = outcome

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        if not self.record.outcomes or session.exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            return
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if self.record.failed_before else pytest.ExitCode.OK


class LeftOut:
    """In a worker: the cases that the reporting process has named."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        leave_out(config, items, set(config.workerinput.get("sterna_done", ())))


def leave_out(config, items, done):
    left = [item for item in items if item.nodeid in done]
    if left:
        items[:] = [item for item in items if item.nodeid not in done]
        config.hook.pytest_deselected(items=left)


def _outcome_of(report):
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome
