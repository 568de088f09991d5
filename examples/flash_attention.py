# SPDX-License-Identifier: Apache-2.0
"""Flash attention, forward: softmax(q k^T / sqrt(D)) v without ever holding a row of scores for all keys.

128 queries meet a block of keys at a time. Of each query the kernel keeps the maximum score so far, the sum of exponentials and the
weighted sum of values, and rescales the last two when the maximum grows.

    sterna run examples/flash_attention.py --heads 4 --length 2048 --dim 128
"""

import argparse
import math

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128  # queries at a time, and keys of one transpose or matmul of probabilities
BANK = 512  # float32 results of one PSUM bank


def transposed(matrix, scale=1.0):
    """[S, D] in HBM -> SBUF [D, S] times scale, by the tensor engine: 128 rows at a time."""
    length, dim = matrix.shape
    out = nl.ndarray((dim, length), dtype=matrix.dtype, buffer=nl.sbuf)
    for start in nl.affine_range(0, length, ROWS):
        rows = nl.load(matrix[start : start + ROWS, :])
        turned = nl.ndarray((dim, ROWS), dtype=matrix.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=rows)
        nisa.activation(dst=out[:, start : start + ROWS], op=nl.copy, data=turned, scale=scale)
    return out


def value_tiles(v):
    """[S, D] in HBM -> a tile [128, D] for each 128 keys."""
    return [nl.load(v[start : start + ROWS, :]) for start in nl.affine_range(0, v.shape[0], ROWS)]


def scores_of(queries, keys):
    """queries [D, 128], keys [D, n] -> PSUM [128, n], a bank at a time."""
    width = keys.shape[1]
    scores = nl.ndarray((ROWS, width), dtype=nl.float32, buffer=nl.psum)
    for n in nl.affine_range(0, width, BANK):
        part = slice(n, min(n + BANK, width))
        nisa.nc_matmul(dst=scores[:, part], stationary=queries, moving=keys[:, part], accumulate=False)
    return scores


def weighted_values(probabilities, values):
    """probabilities [128 queries, n keys] @ values -> PSUM [128, D]. The keys go to partitions by transposes, a bank at a time."""
    dim = values[0].shape[1]
    total = nl.ndarray((ROWS, dim), dtype=nl.float32, buffer=nl.psum)
    in_bank = min(BANK // ROWS, len(values))
    for first in nl.affine_range(0, len(values), in_bank):
        count = min(in_bank, len(values) - first)
        turned = nl.ndarray((ROWS, count * ROWS), dtype=probabilities.dtype, buffer=nl.psum)
        for i in nl.affine_range(count):
            keys = slice((first + i) * ROWS, (first + i + 1) * ROWS)
            nisa.nc_transpose(dst=turned[:, i * ROWS : (i + 1) * ROWS], data=probabilities[:, keys])
        stationary = nl.ndarray(turned.shape, dtype=turned.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=stationary, src=turned)
        for i in nl.affine_range(count):
            part = stationary[:, i * ROWS : (i + 1) * ROWS]
            nisa.nc_matmul(dst=total, stationary=part, moving=values[first + i], accumulate=first + i > 0)
    return total


class Running:
    """What is kept for 128 queries: minus the maximum score, the sum of exponentials, the weighted sum of values."""

    def __init__(self, dim):
        self.minus_max, self.total, self.rescale, self.part = (
            nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(4)
        )
        self.output = nl.ndarray((ROWS, dim), dtype=nl.float32, buffer=nl.sbuf)
        self.started = False

    def exponentials(self, scores, dtype):
        """exp(scores - new maximum) and its sum in one pass; `rescale` is what earlier sums are to be multiplied with."""
        sums = self.part if self.started else self.total
        if self.started:
            block = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=block, op=nl.maximum, data=scores, axis=1, negate=True)
            nisa.tensor_tensor(dst=block, data1=block, data2=self.minus_max, op=nl.minimum)
            nisa.activation(dst=self.rescale, op=nl.exp, data=self.minus_max, scale=-1.0, bias=block)
            self.minus_max = block
        else:
            nisa.tensor_reduce(dst=self.minus_max, op=nl.maximum, data=scores, axis=1, negate=True)
        probabilities = nl.ndarray(scores.shape, dtype=dtype, buffer=nl.sbuf)
        nisa.activation(
            dst=probabilities,
            op=nl.exp,
            data=scores,
            bias=self.minus_max,
            reduce_op=nl.add,
            reduce_res=sums,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        return probabilities

    def add(self, values):
        """Joins the block's sums to the earlier ones."""
        if not self.started:
            nisa.tensor_copy(dst=self.output, src=values)
        else:
            for old, new in ((self.total, self.part), (self.output, values)):
                nisa.scalar_tensor_tensor(
                    dst=old, data=old, op0=nl.multiply, operand0=self.rescale, op1=nl.add, operand1=new
                )
        self.started = True

    def result(self, dtype):
        """The weighted mean of values."""
        nisa.reciprocal(dst=self.total, data=self.total)
        result = nl.ndarray(self.output.shape, dtype=dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=self.output, op0=nl.multiply, operand0=self.total)
        return result


@nki.jit
def flash_attention(q, k, v, key_block=1024):
    """q, k, v: [heads, length, dim], length a multiple of 128, dim at most 128."""
    heads, length, dim = q.shape
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    for head in nl.affine_range(heads):
        queries = transposed(q[head], scale=1.0 / math.sqrt(dim))
        keys = transposed(k[head])
        values = value_tiles(v[head])
        for start in nl.affine_range(0, length, ROWS):
            running = Running(dim)
            for first in nl.affine_range(0, length, key_block):
                last = min(first + key_block, length)
                scores = scores_of(queries[:, start : start + ROWS], keys[:, first:last])
                probabilities = running.exponentials(scores, q.dtype)
                running.add(weighted_values(probabilities, values[first // ROWS : last // ROWS]))
            nisa.dma_copy(dst=out[head, start : start + ROWS, :], src=running.result(q.dtype))
    return out


def reference(q, k, v):
    """The same in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    return powers @ v / powers.sum(axis=2, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--dim", type=int, default=128)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = (options.heads, options.length, options.dim)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for _ in range(3))
    error = np.abs(flash_attention(q, k, v) - reference(q, k, v)).max()
    good = error < 1e-5
    print(f"flash_attention {list(shape)} float32, error {error:.1e}:", "right" if good else "WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
