# SPDX-License-Identifier: Apache-2.0
"""How long the command and the import take to start."""

import os
import shutil
import subprocess
import sys

from measure import in_turn, least, plus, row, timed

VERSION_S = 0.030  # what `sterna --version` may take
IMPORT_S = 0.060  # what the package may cost on top of NumPy and ml_dtypes


def process(*command):
    """A callable that gives the seconds of a run of the command."""
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def command():
    """The command of this Python's environment, else of the PATH; None where it is not installed."""
    beside = os.path.join(os.path.dirname(sys.executable), "sterna")
    return beside if os.path.exists(beside) else shutil.which("sterna")


def start_up(repeat):
    """The rows."""
    run = {
        "import": process(sys.executable, "-c", "import sterna, nki, nki.language, nki.isa, nki.typing"),
        "numpy": process(sys.executable, "-c", "import numpy, ml_dtypes"),
    }
    found = command()
    if found:
        run["version"] = process(found, "--version")
    for once in run.values():
        once()  # files come into memory
    times = in_turn(run, 3 * repeat)
    rows = []
    if found:
        rows.append(row("sterna --version", times["version"], "30 ms", [(VERSION_S, VERSION_S)], 1, 1))
    more = least(times["import"])[0] - least(times["numpy"])[0]
    rows.append(
        row(
            "import sterna and nki",
            times["import"],
            "numpy, ml_dtypes + 60 ms",
            plus(times["numpy"], IMPORT_S),
            1,
            1,
            f"{more * 1e3:+.0f} ms",
        )
    )
    return rows
