# SPDX-License-Identifier: Apache-2.0
"""What the instructions mean, in NumPy: written from the documents (nki.isa, SDK 2.32; docs/semantics), not from Sterna's code.

Arithmetic is fp32, each step rounded once; NaN results are 7fc00000; minimum and maximum propagate NaN and order -0 below +0; sums along
a row go to 16 partial sums (element i joins partial i mod 16) that a tree 8, 4, 2, 1 joins; sums over partitions ascend; a matmul is one chain
of fused multiply-adds, contraction index ascending, that starts at zero.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np

F32 = np.float32
BF16 = ml_dtypes.bfloat16
NAN = np.uint32(0x7FC00000).view(F32)
LOWEST = F32(-3.4028234663852886e38)


def f32(values):
    return np.asarray(values, dtype=F32)


def canonical(x):
    return np.where(np.isnan(x), NAN, f32(x)).astype(F32)


def cast(x, dtype):
    """fp32 to `dtype`: nearest even; integers saturate, NaN becomes 0."""
    dtype = np.dtype(dtype)
    x = f32(x)
    if dtype == F32:
        return x
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        exact = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
        return np.clip(np.rint(exact), limits.min, limits.max).astype(np.int64).astype(dtype)
    with np.errstate(all="ignore"):
        out = x.astype(dtype)
    return np.where(np.isnan(x), np.array(np.nan, dtype), out).astype(dtype)


def _extreme(a, b, larger):
    with np.errstate(all="ignore"):
        pick_a = a > b if larger else a < b
        equal = a == b
    sign = np.signbit(a)
    pick_a = np.where(equal, ~sign if larger else sign, pick_a)
    return np.where(np.isnan(a) | np.isnan(b), NAN, np.where(pick_a, a, b))


ALU = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "maximum": lambda a, b: _extreme(a, b, True),
    "minimum": lambda a, b: _extreme(a, b, False),
    "is_greater": lambda a, b: (a > b).astype(F32),
    "greater": lambda a, b: (a > b).astype(F32),
    "greater_equal": lambda a, b: (a >= b).astype(F32),
    "less": lambda a, b: (a < b).astype(F32),
    "less_equal": lambda a, b: (a <= b).astype(F32),
    "equal": lambda a, b: (a == b).astype(F32),
    "not_equal": lambda a, b: (a != b).astype(F32),
    "logical_and": lambda a, b: ((a != 0) & (b != 0)).astype(F32),
    "logical_or": lambda a, b: ((a != 0) | (b != 0)).astype(F32),
    "power": lambda a, b: np.power(a.astype(np.float64), b.astype(np.float64)).astype(F32),
}


def alu(op, a, b):
    a, b = np.broadcast_arrays(f32(a), f32(b))
    with np.errstate(all="ignore"):
        return canonical(ALU[op](a, b))


IDENTITY = {"add": F32(-0.0), "multiply": F32(1), "maximum": F32(-np.inf), "minimum": F32(np.inf)}


def reduce_row(op, row):
    """The reduction of one row, in the documented order."""
    partial = [IDENTITY[op]] * 16
    for i, x in enumerate(f32(row).ravel()):
        partial[i % 16] = F32(alu(op, partial[i % 16], x))
    for step in (8, 4, 2, 1):
        for j in range(step):
            partial[j] = F32(alu(op, partial[j], partial[j + step]))
    return partial[0]


def reduce_rows(op, x):
    x = f32(x)
    return f32([reduce_row(op, row) for row in x.reshape(x.shape[0], -1)]).reshape(-1, 1)


def round_fraction(value):
    """A fraction to the nearest fp32, ties to even. Finite, normal results only."""
    if value == 0:
        return F32(0)
    magnitude, exponent = abs(value), 0
    while magnitude >= 2:
        magnitude /= 2
        exponent += 1
    while magnitude < 1:
        magnitude *= 2
        exponent -= 1
    scaled = magnitude * 2**23
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1):
        whole += 1
    return F32((-1 if value < 0 else 1) * float(Fraction(whole, 2**23) * Fraction(2) ** exponent))


def fma(a, b, c):
    return round_fraction(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def matmul(stationary, moving):
    """stationary^T @ moving, one chain for each element."""
    s, m = f32(stationary.astype(F32)), f32(moving.astype(F32))
    out = np.zeros((s.shape[1], m.shape[1]), F32)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = F32(0)
            for k in range(s.shape[0]):
                total = fma(s[k, i], m[k, j], total)
            out[i, j] = total
    return out


def affine(offset, multiplier, pattern, partitions):
    """iota: offset + p * multiplier + the pattern's sums, outermost index first."""
    row = np.zeros(1, np.int64)
    for step, count in pattern:
        row = (row[:, None] + step * np.arange(count)[None, :]).ravel()
    return (offset + multiplier * np.arange(partitions)[:, None] + row[None, :]).astype(np.int64)
