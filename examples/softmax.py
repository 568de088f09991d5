# SPDX-License-Identifier: Apache-2.0
"""Softmax of rows, four passes over a tile: maximum; exponential with its sum; reciprocal of the sum; product.

sterna run examples/softmax.py --rows 4096 --cols 2048
"""

import argparse

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax(x):
    """exp(x - max) / sum along each row of x [rows, cols]."""
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in nl.affine_range(0, rows, 128):
        part = slice(start, min(start + 128, rows))
        tile = nl.load(x[part, :])
        height = tile.shape[0]
        minus_max = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=minus_max, op=nl.maximum, data=tile, axis=1, negate=True)
        # The scalar engine adds the bias before the function and sums what comes out, so this is one pass.
        powers = nl.ndarray((height, cols), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=powers,
            op=nl.exp,
            data=tile,
            bias=minus_max,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)
        result = nl.ndarray((height, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=powers, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[part, :], src=result)
    return out


def reference(x):
    """The same in float64."""
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--cols", type=int, default=2048)
    options = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((options.rows, options.cols), dtype=np.float32)
    error = np.abs(softmax(x) / reference(x) - 1).max()
    good = error < 1e-5
    print(f"softmax {list(x.shape)} float32, relative error {error:.1e}:", "right" if good else "WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
