# SPDX-License-Identifier: Apache-2.0
"""Where the time of a test run goes: kernels (recording, values, predicting), and everything else."""

import contextlib
import time

from sterna import profiler
from sterna.faults import Fault

#: seconds of a case, by what they were spent on, and the work that was done
TIMES = ("record", "values", "predict", "failed", "reference", "compare", "wait", "case")
COUNTS = ("calls", "instructions", "multiply_adds", "remarks", "predicted")


def empty():
    return dict.fromkeys(TIMES, 0.0) | dict.fromkeys(COUNTS, 0)


def add(total, part):
    for name, value in part.items():
        total[name] = total.get(name, 0) + value


class Counter(profiler.Profile):
    """Gets every kernel call of the process and keeps sums only."""

    def __init__(self, predict=True):
        super().__init__()
        self.predicts = predict
        self.sums = empty()

    def take(self):
        """The sums since the last time."""
        sums, self.sums = self.sums, empty()
        return sums

    def add(self, recording, function, args, kwargs, clock):
        self._count(recording, clock)
        recording.release()

    def _add(self, run, function, arguments, clock):
        self._count(run.recording, clock)  # another profile was entered as well, and keeps the recording

    def _count(self, recording, clock):
        sums = self.sums
        sums["calls"] += 1
        sums["record"] += clock.record_s
        sums["values"] += clock.execute_s
        sums["instructions"] += recording.size
        sums["remarks"] += len(recording.warnings())
        if self.predicts:
            self._predict_time(recording, sums)

    @staticmethod
    def _predict_time(recording, sums):
        start = time.perf_counter()
        try:
            timing = recording.timing()
            sums["multiply_adds"] += int(timing.multiply_adds)
            sums["predicted"] += 1
        except Fault:
            # Too large for the chip's memory, for example: the values are there all the same, and so is the work.
            with contextlib.suppress(Fault):
                sums["multiply_adds"] += int(recording.multiply_adds())
        sums["predict"] += time.perf_counter() - start


class Totals:
    """Sums over the cases of all workers."""

    def __init__(self):
        self.sums = empty()
        self.cases = 0
        self.workers = {}

    def add_case(self, sums):
        add(self.sums, sums)
        self.cases += 1

    def add_worker(self, name, wall, collecting):
        self.workers[name] = (wall, collecting)

    def lines(self, rates):
        """The summary, ready to print."""
        s = self.sums
        kernels = s["record"] + s["values"] + s["predict"] + s["failed"]
        wall = sum(wall for wall, _ in self.workers.values())
        collecting = sum(collecting for _, collecting in self.workers.values())
        inputs = max(0.0, s["case"] - kernels - s["reference"] - s["compare"] - s["wait"])
        rest = max(0.0, wall - collecting - s["case"])
        total = max(wall, kernels) or 1.0
        yield f"{self.cases} cases, {s['calls']} kernel calls, {len(self.workers) or 1} process(es), {wall:.1f} s in all"
        yield (
            f"kernels          {kernels:9.1f} s {kernels / total:6.1%}   recording {s['record']:.1f}, values {s['values']:.1f}, "
            f"predicted times {s['predict']:.1f}, calls that raised {s['failed']:.1f}"
        )
        yield (
            f"everything else  {wall - kernels:9.1f} s {1 - kernels / total:6.1%}   references {s['reference']:.1f}, "
            f"comparison {s['compare']:.1f}, inputs and files {inputs:.1f}, collection {collecting:.1f}, "
            f"waiting for memory {s['wait']:.1f}, start and pytest {rest:.1f}"
        )
        unknown = s["calls"] - s["predicted"]
        more = f" ({unknown} calls have no predicted time)" if unknown else ""
        yield f"work             {s['multiply_adds']:.4g} multiply-adds{more}, {s['instructions']:.4g} instructions"
        if s["remarks"]:
            yield f"remarks          {s['remarks']} (shown by -W default::sterna.SternaWarning)"
        if rates:
            yield from self._bound(rates, s["record"] + s["values"] + s["failed"])

    def _bound(self, rates, seconds):
        macs = self.sums["multiply_adds"] / (0.5 * rates["sgemm"])
        instructions = self.sums["instructions"] / rates["record"]
        bound = macs + instructions
        ratio = f"; recording and values took {seconds / bound:.2f} times that" if bound else ""
        yield (
            f"bound            {bound:9.1f} s = multiply-adds / (0.5 x {rates['sgemm'] / 1e9:.1f} G/s of sgemm, one thread) {macs:.1f} "
            f"+ instructions / ({rates['record'] / 1e3:.0f} k/s of recording) {instructions:.1f}{ratio}"
        )
