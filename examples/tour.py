# SPDX-License-Identifier: Apache-2.0
"""A first look: the same product one tile at a time and blocked, and a softmax. `sterna run` adds when and why.

sterna run --trace build/tour.trace examples/tour.py
"""

import matmul
import ml_dtypes
import numpy as np
import softmax


def compare(name, result, wanted, allowed):
    """Prints how a result compares with NumPy's; True when it is near enough."""
    error = np.abs(result.astype(np.float64) - wanted).max()
    good = bool(error <= allowed)
    print(f"{name}: largest difference from numpy {error:.2g}, {'right' if good else 'WRONG'}")
    return good


def main():
    lhs_t, rhs = matmul.operands(512, 512, 1024, ml_dtypes.bfloat16)
    product = matmul.reference(lhs_t, rhs)
    # A bf16 result has 8 significant bits.
    allowed = 2.0**-8 * np.abs(product).max()
    x = np.random.default_rng(1).standard_normal((256, 1024), dtype=np.float32)
    return not all(
        [
            compare(
                "matmul, a tile at a time, 512 x 512 x 1024 bf16", matmul.matmul_naive(lhs_t, rhs), product, allowed
            ),
            compare("matmul, blocked, 512 x 512 x 1024 bf16", matmul.matmul_blocked(lhs_t, rhs), product, allowed),
            compare("softmax 256 x 1024 fp32", softmax.softmax(x), softmax.reference(x), 1e-6),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
