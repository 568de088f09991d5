# SPDX-License-Identifier: Apache-2.0
"""Two rates of this machine, measured in a process of their own: `python -m sterna.nki_library.rates` prints them as JSON.

* multiply-adds per second of numpy's fp32 matrix product, 1024 x 1024 x 1024, on one thread;
* instructions per second that a kernel of small instructions is recorded with.
"""

import json
import os
import subprocess
import sys
import time

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def measure():
    """{"sgemm": multiply-adds per second, "record": instructions per second}, or None when it cannot be measured."""
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [sys.executable, "-m", "sterna.nki_library.rates"], env=environment, capture_output=True, text=True, timeout=120
    )
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return None


def sgemm_rate(seconds=0.5, size=1024):
    import numpy as np

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    a @ b
    return size**3 / _fastest(lambda: a @ b, seconds)


def record_rate(seconds=0.5, count=4000):
    import numpy as np

    import nki
    import nki.isa as nisa
    import nki.language as nl
    import sterna

    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
        row = nl.ndarray((128, 64), tile.dtype, buffer=nl.sbuf)
        for i in range(count // 2):
            start = i % 8 * 64
            nisa.tensor_copy(row, tile[:, start : start + 64])
            nisa.tensor_tensor(tile[:, start : start + 64], row, row, nl.add)
        nl.store(out, tile)
        return out

    x = np.zeros((128, 512), np.float32)
    with sterna.profile(values=False):
        kernel(x)
        return count / _fastest(lambda: kernel(x), seconds)


def _fastest(function, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        function()
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best


if __name__ == "__main__":
    print(json.dumps({"sgemm": sgemm_rate(), "record": record_rate()}))
