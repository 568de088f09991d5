# SPDX-License-Identifier: Apache-2.0
"""pytest plug-in for the public nki-library test suite: ``pytest -p sterna.pytest_nki_library ...`` in a clone of it.

It registers the modules that the suite imports and that are not public, sets the behaviour of the NKI release that the
suite was written for, and reports where the time went. See docs/nki-library.md.
"""

import contextlib
import os
import time

import pytest
from _pytest.runner import runtestprotocol

import sterna
from sterna.nki_library import figures, harness, machine, modules, rates, record

_START = time.perf_counter()
_GENERATIONS = {"trn1": "gen2", "trn2": "gen3", "trn3": "gen4", "trn3_a0": "gen4"}

# Before anything of the suite is imported: its modules ask for these at their first line. Its kernels read garbage on
# purpose (padded lanes), which is worth a remark and not a fault; some multiply it by zero, and need it to be finite.
# Its sweeps are random samples, which it seeds in the workers of pytest-xdist only; one process gets the same cases so.
for _name, _value in (("STERNA_NKI_VERSION", "0.3"), ("STERNA_UNINIT", "zero"), ("NEURON_PYTHONHASHSEED", "0")):
    os.environ.setdefault(_name, _value)
modules.register()


def pytest_addoption(parser):
    group = parser.getgroup("sterna")
    group.addoption(
        "--sterna-no-timing",
        action="store_true",
        default=False,
        help="do not predict the kernels' times (multiply-adds are not counted then)",
    )
    group.addoption(
        "--sterna-keep-inputs",
        action="store_true",
        default=False,
        help="let simulation write each case's inputs to files as well, as the suite does by itself",
    )
    group.addoption(
        "--sterna-record",
        metavar="FILE",
        help="write down each case as it begins and ends; where FILE exists, leave out the cases that have ended, and "
        "report on all",
    )


def pytest_configure(config):
    # Remarks are counted; one line each would bury pytest's own report.
    config.addinivalue_line("filterwarnings", "ignore::sterna.SternaWarning")
    target = getattr(config.option, "platform_target", None)
    if target in _GENERATIONS:
        os.environ["NKI_NC_VERSION"] = _GENERATIONS[target]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        os.environ.setdefault("STERNA_THREADS", str(max(1, len(os.sched_getaffinity(0)) // workers)))
    kept = _record(config, target)
    config.pluginmanager.register(_Cases(config, workers, kept), "sterna-nki-library")


def _record(config, target):
    """The record that this process keeps, or None."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(record.LeftOut(), "sterna-nki-library-record")
        return None
    if not config.option.sterna_record or config.option.collectonly:
        return None
    facts = {"target": target, "mode": str(getattr(config.option, "test_mode", None)), "sterna": sterna.__version__}
    try:
        kept = record.Record(os.path.abspath(config.option.sterna_record), facts)
    except OSError as error:
        raise pytest.UsageError(f"--sterna-record: {error}") from None
    config.pluginmanager.register(record.Recorder(kept), "sterna-nki-library-record")
    return kept


class _Cases:
    """What happens around the cases of this process, and, in the process that reports, the sums of all."""

    def __init__(self, config, workers, kept=None):
        self.config = config
        self.kept = kept
        self.heavy_bytes = machine.total_bytes() // (2 * max(2, workers))
        self.totals = figures.Totals()
        self.counter = figures.Counter(predict=not config.option.sterna_no_timing)
        self.share = machine.Share()
        self.watch = machine.Watch(self.heavy_bytes, self.wait_until_alone)
        self.collecting = 0.0
        self._extra = figures.empty()
        self._failed = 0.0
        self._start_over = False

    # --- what the harness tells

    def wait_until_alone(self):
        start = time.perf_counter()
        try:
            self.share.take_alone()
        except machine.GivesWay:
            self._start_over = True
            raise
        self._extra["wait"] += time.perf_counter() - start

    @contextlib.contextmanager
    def kernel(self):
        """Around the simulation of a case; the time of a call that raised is what nothing else accounts for."""
        before, waited = self._kernel_seconds(), self._extra["wait"]
        start = time.perf_counter()

        def spent():
            return time.perf_counter() - start - (self._extra["wait"] - waited)

        try:
            yield
        except Exception:
            known = self._kernel_seconds() - before
            self._extra["failed"] += max(0.0, spent() - known)
            raise
        # Ranks run side by side, and each counts the time until all have ended; a wait for memory is nobody's work.
        surplus = self._kernel_seconds() - before - spent()
        self.counter.sums["values"] -= max(0.0, surplus)

    def _kernel_seconds(self):
        sums = self.counter.sums
        return sums["record"] + sums["values"] + sums["predict"]

    def validated(self, seconds, reference):
        self._extra["reference"] += min(reference, seconds)
        self._extra["compare"] += max(0.0, seconds - reference)

    # --- hooks

    def _join(self):
        if harness.is_there():
            harness.join(self, self.config.option.sterna_keep_inputs)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session):
        self.counter.everywhere(predict=False)
        self._join()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session):
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            self.collecting = time.perf_counter() - start
            self._join()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        # Where memory is short already, a case does not start beside others.
        short = machine.available_bytes() < machine.total_bytes() // 4
        self._began = time.perf_counter()
        reports = self._run(item, nextitem, alone=short)
        if self._start_over:  # two grew at once: this one gave way, and begins again when it can be alone
            item._initrequest()
            reports = self._run(item, nextitem, alone=True)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, item, nextitem, alone):
        self._start_over = False
        with self.share.held(alone=alone), self.watch.over():
            self._waited_before = time.perf_counter() - self._began
            try:
                return runtestprotocol(item, nextitem=nextitem, log=False)
            finally:
                if machine.used_bytes() > self.heavy_bytes // 2:
                    machine.give_back()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.counter.take()
        self._extra = figures.empty()
        self._extra["wait"] = self._waited_before
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            figures.add(self._extra, self.counter.take())
            self._extra["case"] = time.perf_counter() - start + self._waited_before
            item._sterna_figures = self._extra

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        sums = getattr(item, "_sterna_figures", None)
        if call.when == "call" and sums is not None:
            report.sterna_figures = sums  # plain numbers: they reach the reporting process from any worker
        return report

    def pytest_runtest_logreport(self, report):
        sums = getattr(report, "sterna_figures", None)
        if sums is not None:
            self.totals.add_case(sums)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        output = getattr(session.config, "workeroutput", None)
        wall = time.perf_counter() - _START
        if output is not None:
            output["sterna_seconds"] = (wall, self.collecting)
        elif not self.totals.workers:
            self.totals.add_worker("main", wall, self.collecting)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        seconds = getattr(node, "workeroutput", {}).get("sterna_seconds")
        if seconds:
            self.totals.add_worker(node.gateway.id, *seconds)

    def pytest_terminal_summary(self, terminalreporter):
        if self.kept is not None:
            self._add_earlier()
        elif not self.totals.sums["calls"] and not self.totals.sums["failed"]:
            return
        terminalreporter.section("sterna")
        for line in self.totals.lines(rates.measure()):
            terminalreporter.line(line)
        if self.kept is not None:
            for line in self.kept.lines():
                terminalreporter.line(line)

    def _add_earlier(self):
        """This run's seconds into the record, and the record's earlier runs into the sums."""
        for wall, collecting in self.totals.workers.values():
            self.kept.worker(wall, collecting)
        figures.add(self.totals.sums, self.kept.sums)
        self.totals.cases += self.kept.measured
        for number, (wall, collecting) in enumerate(self.kept.seconds):
            self.totals.add_worker(("earlier", number), wall, collecting)
