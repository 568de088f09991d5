# SPDX-License-Identifier: Apache-2.0
"""RMSNorm: x / sqrt(mean(x^2) + epsilon) * gain, row by row.

sterna run examples/rmsnorm.py --rows 512 --cols 4096
"""

import argparse

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rmsnorm(x, gain, epsilon=1e-6):
    """x [rows, cols], gain [cols]."""
    rows, cols = x.shape
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    # Every partition needs the gain: the DMA reads the same row once for each of them.
    height = min(rows, 128)
    gains = nl.ndarray((height, cols), dtype=gain.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=gains, src=gain.reshape((1, cols)).broadcast_to((height, cols)))
    shift = nl.full((height, 1), epsilon, dtype=nl.float32)
    for start in nl.affine_range(0, rows, 128):
        part = slice(start, min(start + 128, rows))
        tile = nl.load(x[part, :])
        height = tile.shape[0]
        squares = nl.ndarray((height, cols), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=squares,
            op=nl.square,
            data=tile,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        factor = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=factor, op=nl.rsqrt, data=total, scale=1.0 / cols, bias=shift[0:height, :])
        result = nl.ndarray((height, cols), dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=result, data=tile, op0=nl.multiply, operand0=factor, op1=nl.multiply, operand1=gains[0:height, :]
        )
        nisa.dma_copy(dst=out[part, :], src=result)
    return out


def reference(x, gain, epsilon=1e-6):
    """The same in float64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + epsilon) * gain.astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--cols", type=int, default=2048)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.rows, options.cols), dtype=np.float32)
    gain = rng.uniform(0.5, 1.5, options.cols).astype(np.float32)
    error = np.abs(rmsnorm(x, gain) / reference(x, gain) - 1).max()
    good = error < 1e-5
    print(f"rmsnorm {list(x.shape)} float32, relative error {error:.1e}:", "right" if good else "WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
