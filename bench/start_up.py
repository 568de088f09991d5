# SPDX-License-Identifier: Apache-2.0
"""How long the command and the import take to start."""

import os
import shutil
import subprocess
import sys

from measure import in_turn, row, seconds

VERSION_S = 0.030  # what `sterna --version` may take
IMPORT_S = 0.060  # what the package may cost on top of NumPy and ml_dtypes


def process(*command):
    """A callable that gives the seconds of a run of the command."""
    return lambda: seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


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
    in_turn(run, 1)  # files come into memory
    times = in_turn(run, 3 * repeat)
    rows = []
    if found:
        rows.append(row("sterna --version", times["version"], "30 ms", [VERSION_S], 1, 1))
    allowed = [t + IMPORT_S for t in times["numpy"]]
    more = min(times["import"]) - min(times["numpy"])
    rows.append(row("import sterna and nki", times["import"], "numpy, ml_dtypes + 60 ms", allowed, 1, 1, f"{more * 1e3:+.0f} ms"))
    return rows
