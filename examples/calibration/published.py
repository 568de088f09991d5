# SPDX-License-Identifier: Apache-2.0
"""Published times, our kernels for them, and what Sterna predicts.

python examples/calibration/published.py
"""

import dataclasses
from collections.abc import Callable

import hand_tuned
import micro
import ml_dtypes
import numpy as np
import psum_sets
import streams
import tutorial

import sterna

F32, BF16 = np.float32, ml_dtypes.bfloat16


@dataclasses.dataclass
class Row:
    """A published time in microseconds, the relative error allowed, and how to record the kernel."""

    name: str
    target: str
    published_us: float
    allowed: float
    source: str
    record: Callable
    time_us: Callable = lambda kernel: kernel.time_us
    scored: bool = True  # False: a constant of the chip file is derived from this very row


@dataclasses.dataclass
class Prediction:
    """What came out for a row."""

    row: Row
    us: float
    bound: str
    tensor_active: float
    uncertain: list

    @property
    def error(self):
        return self.us / self.row.published_us - 1

    @property
    def good(self):
        return abs(self.error) <= self.row.allowed

    @property
    def remark(self):
        if not self.row.scored:
            return "  (not scored: the latency of trn1's array is estimated from this row)"
        return "" if self.good else "  <- outside"


def arrays(dtype, *shapes):
    """Arrays without values: they are recorded, never read."""
    return [np.empty(shape, dtype) for shape in shapes]


def duration(queue):
    """Microseconds of the first instruction of a queue."""

    def of(kernel):
        start, end = (times[starts_of(kernel, queue)[0]] for times in columns(kernel))
        return float(end - start) / 1e6

    return of


def until(queue, reader):
    """Microseconds from the start of the first instruction of a queue to the start of the one that reads its result."""

    def of(kernel):
        start, _ = columns(kernel)
        return float(start[starts_of(kernel, reader)[0]] - start[starts_of(kernel, queue)[0]]) / 1e6

    return of


def interval(queue):
    """Mean microseconds from the start of an instruction of a queue to the start of the next."""

    def of(kernel):
        starts = columns(kernel)[0][starts_of(kernel, queue)]
        return float(starts[-1] - starts[0]) / (len(starts) - 1) / 1e6

    return of


def columns(kernel):
    """Start and end of every instruction, in picoseconds."""
    return [np.frombuffer(column, np.int64) for column in (kernel.timing.start(), kernel.timing.end())]


def starts_of(kernel, queue):
    """Indices of the instructions of a queue."""
    timing = kernel.timing
    return np.flatnonzero(np.frombuffer(timing.queue(), np.uint8) == timing.queue_names.index(queue))


_SQUARE = (2048, 2048)
_TUTORIAL = ((8192, 4096), (8192, 8192))
_GUIDE = "NKI performance guide, figures"
_DMA = "DMA bandwidth guide, figures"
_AUTOTUNE = "awslabs/nki-autotune"

KERNELS = [
    Row(
        "hand-tuned lhs_rhs 2048^3 bf16",
        "trn2",
        244.2,
        0.08,
        _AUTOTUNE,
        lambda: hand_tuned.lhs_rhs(*arrays(BF16, _SQUARE, _SQUARE)),
    ),
    Row(
        "two PSUM sets 2048^3 bf16",
        "trn2",
        262,
        0.12,
        _AUTOTUNE,
        lambda: psum_sets.matmul(*arrays(BF16, _SQUARE, _SQUARE), 2),
    ),
    Row(
        "one PSUM set 2048^3 bf16",
        "trn2",
        366,
        0.15,
        _AUTOTUNE,
        lambda: psum_sets.matmul(*arrays(BF16, _SQUARE, _SQUARE), 1),
    ),
    Row(
        "tutorial v3, hoisted, fp32",
        "trn2",
        28200,
        0.03,
        "NKI tutorial",
        lambda: tutorial.hoisted(*arrays(F32, *_TUTORIAL)),
    ),
    Row(
        "tutorial v2, tiled, fp32",
        "trn2",
        39890,
        0.20,
        "NKI tutorial",
        lambda: tutorial.tiled(*arrays(F32, *_TUTORIAL)),
    ),
    Row(
        "vector add 2 x [128, 1000] fp32",
        "trn2",
        26.4,
        0.15,
        "CS149 profile",
        lambda: streams.vector_add(*arrays(F32, (256, 1000), (256, 1000))),
    ),
    Row(
        "vector add 1 x [128, 2000] fp32",
        "trn2",
        28.36,
        0.15,
        "CS149 profile",
        lambda: streams.vector_add(*arrays(F32, (128, 2000), (128, 2000))),
    ),
]

MICRO = [
    Row(
        "tensor_tensor [64, 8192] fp32",
        "trn1",
        14.968,
        0.1,
        _GUIDE,
        lambda: micro.vector(*arrays(F32, (64, 8192), (64, 8192))),
        duration("vector"),
    ),
    Row(
        "tensor_tensor [128, 8192] fp32",
        "trn1",
        14.987,
        0.1,
        _GUIDE,
        lambda: micro.vector(*arrays(F32, (128, 8192), (128, 8192))),
        duration("vector"),
    ),
    Row(
        "activation [128, 8192] fp32",
        "trn1",
        6.050,
        0.1,
        _GUIDE,
        lambda: micro.scalar(*arrays(F32, (128, 8192))),
        duration("scalar"),
    ),
    # Published as duration with the latency of the array: until another engine can read the result.
    Row(
        "nc_matmul 128 x 1, N 128 bf16",
        "trn1",
        0.188,
        0.1,
        _GUIDE,
        lambda: micro.matmul(*arrays(BF16, (128, 1), (128, 128))),
        until("tensor", "vector"),
        scored=False,
    ),
    Row(
        "nc_matmul 128 x 96, N 128 bf16",
        "trn1",
        0.219,
        0.1,
        _GUIDE,
        lambda: micro.matmul(*arrays(BF16, (128, 96), (128, 128))),
        until("tensor", "vector"),
        scored=False,
    ),
    Row(
        "nc_matmul N 512 fp32, in a row",
        "trn2",
        0.856,
        0.1,
        "NKI tutorial",
        lambda: micro.matmul(*arrays(F32, (128, 128), (128, 512)), 64),
        interval("tensor"),
    ),
    # Published for 4 rows of 8 KiB that share an engine, and for 8 rows of 256 bytes on each: times of one descriptor of that size.
    Row(
        "load 32 KiB on one DMA engine",
        "trn2",
        1.416,
        0.1,
        _DMA,
        lambda: micro.load(*arrays(BF16, (1, 16384))),
        duration("dma_load"),
    ),
    Row(
        "load 2 KiB on each DMA engine",
        "trn2",
        0.097,
        0.1,
        _DMA,
        lambda: micro.load(*arrays(BF16, (16, 1024))),
        duration("dma_load"),
    ),
]


def predict(row):
    """Records the row's kernel without executing it, and times it."""
    with sterna.profile(row.target, values=False) as profile:
        row.record()
    kernel = profile.kernels[0]
    timing = kernel.timing
    return Prediction(
        row, row.time_us(kernel), timing.bound, timing.engines["tensor"]["active"], list(timing.uncertain)
    )


def table(predictions):
    """The predictions as lines of text, with the uncertain numbers that they used."""
    lines = [
        f"{'kernel':34} {'chip':5} {'published':>11} {'predicted':>11} {'error':>7} {'allowed':>8} {'tensor':>7}  bound"
    ]
    for p in predictions:
        lines.append(
            f"{p.row.name:34} {p.row.target:5} {p.row.published_us:8.3f} us {p.us:8.3f} us {p.error:+7.1%} {p.row.allowed:8.0%}"
            f" {p.tensor_active:7.1%}  {p.bound}{p.remark}"
        )
    used = {}
    for p in predictions:
        for key, text, trust, source in p.uncertain:
            used.setdefault((p.row.target, key, text, trust, source), []).append(p.row.name)
    lines.append(
        "numbers used that are neither documented nor measured:"
        if used
        else "every number used is documented or measured"
    )
    for (target, key, text, trust, source), rows in used.items():
        lines.append(f"  {target} {key} = {text} ({trust}; {source}) in {len(rows)} of {len(predictions)} rows")
    return lines


def main():
    predictions = [predict(row) for row in KERNELS + MICRO]
    print("\n".join(table(predictions)))
    return sum(p.row.scored and not p.good for p in predictions)


if __name__ == "__main__":
    raise SystemExit(main())
