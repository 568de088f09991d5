# SPDX-License-Identifier: Apache-2.0
"""The benchmark: Sterna and its peers in turn, then predicted against published times. Prints tables, writes build/bench.json.

python bench/run.py [--repeat N] [--only CASE ...]
"""

import argparse
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)

from start_up import start_up  # noqa: E402

# (case, numbers of threads)
CASES = {"matmul": (1, 2), "attention": (1, 2), "small": (1,), "softmax": (1,)}
OTHERS = ("start", "predicted")
# They would make OpenBLAS choose other kernels than those for this processor. It reads them when it is loaded.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment(threads):
    made = {name: value for name, value in os.environ.items() if name not in UNSET}
    for name in ("STERNA_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        made[name] = str(threads)
    return made


def in_process(threads, repeat, case):
    """The rows of one process; what it prints to stderr goes through."""
    command = [sys.executable, os.path.join(HERE, "cases.py"), str(threads), str(repeat), case]
    done = subprocess.run(command, env=environment(threads), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"bench: {case} with {threads} thread(s) failed", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.returncode


def predicted():
    """The table of predicted against published times."""
    script = os.path.join(ROOT, "examples", "calibration", "published.py")
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True)
    # Its status is the number of rows outside their bounds; a traceback goes to stderr.
    return done.stdout or "predicted times: not available"


def time_text(value):
    return "not measured" if value is None else f"{value * 1e3:.2f} ms"


def table(rows):
    lines = [f"{'what':40} {'thr':>3} {'ours':>12} {'peer':>13} {'ratio':>7} {'(cpu)':>7} {'wanted':>7}  peer"]
    for r in rows:
        ratio, processors, wanted = (
            "" if r[k] is None else f"{r[k]:.2f}" for k in ("ratio", "processor_ratio", "wanted_ratio")
        )
        short = r["ratio"] is not None and r["wanted_ratio"] is not None and r["ratio"] < r["wanted_ratio"]
        remarks = "; ".join([r["peer"] + ("  SHORT" if short else ""), *([r["note"]] if r["note"] else [])])
        times = f"{time_text(r['ours_s']):>12} {time_text(r['peer_s']):>13}"
        lines.append(f"{r['name']:40} {r['threads']:3} {times} {ratio:>7} {processors:>7} {wanted:>7}  {remarks}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=[*CASES, *OTHERS], default=[*CASES, *OTHERS])
    options = parser.parse_args()
    rows, failed = [], 0
    for case, counts in CASES.items():
        for threads in counts if case in options.only else ():
            found, status = in_process(threads, options.repeat, case)
            rows += found
            failed += status != 0
    if "start" in options.only:
        rows += start_up(options.repeat)
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print("ratio = peer's time / ours, (cpu) of processor time;", end=" ")
    print(
        f"best of {options.repeat} or more, in turn; {platform.machine()}, {os.cpu_count()} processors, load {load}\n"
    )
    print("\n".join(table(rows)))
    if "predicted" in options.only:
        print("\n" + predicted())
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    path = os.path.join(ROOT, "build", "bench.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    print(f"written: {os.path.relpath(path)}")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
