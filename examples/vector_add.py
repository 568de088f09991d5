# SPDX-License-Identifier: Apache-2.0
"""The smallest kernel: c = a + b, 128 rows at a time.

sterna run examples/vector_add.py
"""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector_add(a, b):
    """a + b of two arrays [rows, cols]."""
    rows, cols = a.shape
    out = nl.ndarray((rows, cols), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in nl.affine_range(0, rows, 128):
        part = slice(start, min(start + 128, rows))
        tile_a = nl.load(a[part, :])
        tile_b = nl.load(b[part, :])
        total = nl.ndarray(tile_a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=total, data1=tile_a, data2=tile_b, op=nl.add)
        nisa.dma_copy(dst=out[part, :], src=total)
    return out


def main():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((200, 1000), dtype=np.float32) for _ in range(2))
    same = np.array_equal(vector_add(a, b), a + b)
    print("vector_add [200, 1000] float32:", "equal to numpy" if same else "WRONG")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
