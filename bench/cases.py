# SPDX-License-Identifier: Apache-2.0
"""One process of the benchmark: a number of threads, and cases by name. Prints a JSON object for each row.

usage: cases.py THREADS REPEAT CASE...   (by run.py, which sets the environment that libraries read when they are imported)
"""

import json
import os
import sys

import ml_dtypes
import numpy as np
from measure import in_turn, least, row, timed
from peer_triton_viz import NAME as TRITON_VIZ
from peer_triton_viz import Peer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "examples"))

import flash_attention  # noqa: E402
import matmul  # noqa: E402
import small_ops  # noqa: E402
import softmax  # noqa: E402

import sterna  # noqa: E402

THREADS, REPEAT = int(sys.argv[1]), int(sys.argv[2])


def emit(*args, **kwargs):
    print(json.dumps(row(*args, **kwargs)), flush=True)


def whole(kernel, *arguments):
    """A call with everything that a user waits for: recording, values, predicted time."""
    with sterna.profile() as profile:
        result = kernel(*arguments)
    profile.kernels[0].time_us  # noqa: B018
    return result, profile.kernels[0]


def parts(kernel):
    """Where the time of a call went."""
    return f"record {kernel.record_s * 1e3:.1f} ms, values {kernel.execute_s * 1e3:.1f} ms"


def check(good, name):
    if not good:
        raise SystemExit(f"bench: {name} gives wrong values, its time means nothing")


def matmuls():
    """The blocked matmul against NumPy's sgemm."""
    for dtype in (np.float32, ml_dtypes.bfloat16):
        for size in (1024, 2048):
            lhs_t, rhs = matmul.operands(size, size, size, dtype)
            wide = [x.astype(np.float32) for x in (lhs_t, rhs)]
            name = f"matmul {size}^3 {np.dtype(dtype).name}"
            result, _ = whole(matmul.matmul_blocked, lhs_t, rhs)
            wanted = wide[0].T @ wide[1]
            check(np.abs(result.astype(np.float32) - wanted).max() <= 2.0**-7 * np.abs(wanted).max(), name)
            times = in_turn(
                {
                    "ours": timed(lambda: whole(matmul.matmul_blocked, lhs_t, rhs)),
                    "numpy": timed(lambda: wide[0].T @ wide[1]),
                },
                REPEAT,
            )
            _, kernel = whole(matmul.matmul_blocked, lhs_t, rhs)
            rate = 2 * size**3 / least(times["ours"])[0] / 1e9
            emit(
                name, times["ours"], "numpy sgemm", times["numpy"], THREADS, 0.7, f"{rate:.0f} GFLOP/s; {parts(kernel)}"
            )


def torch_attention(q, k, v):
    """PyTorch's attention, or None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(THREADS)
    q, k, v = (torch.from_numpy(x)[None] for x in (q, k, v))
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def attention():
    """Flash attention against PyTorch; with one thread against triton-viz too."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((4, 2048, 128), dtype=np.float32) for _ in range(3))
    name = "attention H4 S2048 D128 float32"
    peer = Peer() if THREADS == 1 else None
    run = {"ours": timed(lambda: whole(flash_attention.flash_attention, q, k, v))}
    with_torch = torch_attention(q, k, v)
    result, _ = whole(flash_attention.flash_attention, q, k, v)
    wanted = with_torch()[0].numpy() if with_torch else flash_attention.reference(q, k, v)
    check(np.abs(result - wanted).max() < 1e-5, name)
    if with_torch:
        run["torch"] = timed(with_torch)
    if peer and peer.run("attention") is not None:
        run["viz"] = lambda: peer.run("attention")
    times = in_turn(run, REPEAT)
    _, kernel = whole(flash_attention.flash_attention, q, k, v)
    emit(name, times["ours"], "torch sdpa", times.get("torch"), THREADS, 1 / 3, parts(kernel))
    if peer:
        emit(name, times["ours"], TRITON_VIZ, times.get("viz"), THREADS, 4, "its own tiled attention")
        peer.close()


def softmaxes():
    """Softmax against the NumPy expression."""
    x = np.random.default_rng(0).standard_normal((4096, 2048), dtype=np.float32)

    def expression():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    result, _ = whole(softmax.softmax, x)
    check(np.abs(result - expression()).max() < 1e-6, "softmax")
    times = in_turn({"ours": timed(lambda: whole(softmax.softmax, x)), "numpy": timed(expression)}, REPEAT)
    _, kernel = whole(softmax.softmax, x)
    emit("softmax 4096x2048 float32", times["ours"], "numpy expression", times["numpy"], THREADS, 2, parts(kernel))


EMPTY = 30  # empty Python calls that recording an instruction may cost


def empty():
    """What a Python call costs."""


def empty_calls(count):
    for _ in range(count):
        empty()


def smalls():
    """100,000 small instructions: the whole; recording in units of an empty call; values alone; timing alone."""
    rounds = 25000
    count = rounds * small_ops.OPERATIONS
    x = np.random.default_rng(0).standard_normal((128, 64), dtype=np.float32)
    good = np.abs(small_ops.small_ops(x, 40) - small_ops.reference(x, 40)).max() < 1e-6
    check(good, "small instructions")
    kernel = whole(small_ops.small_ops, x, rounds)[1]
    recording = kernel.recording

    def record():
        with sterna.profile(values=False):
            small_ops.small_ops(x, rounds)

    peer = Peer()
    run = {
        "ours": timed(lambda: whole(small_ops.small_ops, x, rounds)),
        "record": timed(record),
        "empty": timed(lambda: empty_calls(EMPTY * count)),
        "values": timed(recording.replay),
        "timing": timed(recording.timing),
        "again": timed(lambda: small_ops.small_ops(x, rounds)),
    }
    for _ in range(2):  # from its second recording on, the kernel cache has the program
        small_ops.small_ops(x, rounds)
    if peer.run("small_ops") is not None:
        run["viz"] = lambda: peer.run("small_ops")
    times = in_turn(run, REPEAT)
    peer.close()
    rate = {name: f"{count / least(t)[0] / 1e3:.0f} k instructions/s" for name, t in times.items()}
    call = least(times["empty"])[0] / count / EMPTY
    name = "100k small instructions"
    emit(name, times["ours"], TRITON_VIZ, times.get("viz"), 1, 5, rate["ours"])
    calls = f"{least(times['record'])[0] / count / call:.1f} calls of {call * 1e9:.0f} ns"
    emit(
        f"{name}, recording",
        times["record"],
        f"{EMPTY} empty calls each",
        times["empty"],
        1,
        1,
        f"{rate['record']}; {calls}",
    )
    emit(f"{name}, values", times["values"], "recording", times["record"], 1, 3, rate["values"])
    emit(f"{name}, from the cache", times["again"], TRITON_VIZ, times.get("viz"), 1, 20, rate["again"])
    emit(f"{name}, timing", times["timing"], "recording", times["record"], 1, 8, rate["timing"])


def blas():
    """Which kernels NumPy's BLAS runs, where threadpoolctl can tell."""
    try:
        import threadpoolctl
    except ImportError:
        return "numpy's BLAS: unknown (threadpoolctl is not installed)"
    found = [i for i in threadpoolctl.threadpool_info() if i.get("user_api") == "blas"]
    return "numpy's BLAS: " + ", ".join(
        f"{i['internal_api']} {i.get('architecture')} x{i['num_threads']}" for i in found
    )


CASES = {"matmul": matmuls, "attention": attention, "softmax": softmaxes, "small": smalls}

if __name__ == "__main__":
    print(f"bench: {THREADS} thread(s), {blas()}", file=sys.stderr, flush=True)
    for case in sys.argv[3:]:
        CASES[case]()
