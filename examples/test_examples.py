# SPDX-License-Identifier: Apache-2.0
"""Values of the examples. What is allowed follows from the number of roundings, not from what was seen.

A value of p significant bits is rounded with a relative error of at most 2^-p: fp32 has 24 bits, bf16 has 8. A sum of n terms, in any
order, is off by at most n * 2^-24 times the sum of the terms' sizes; a function of the core by 1 ulp, which is at most 2 * 2^-24.
"""

import flash_attention
import hand_tuned
import matmul
import ml_dtypes
import numpy as np
import psum_sets
import pytest
import rmsnorm
import softmax
import streams
import tour
import tutorial
import vector_add

F32, BF16 = np.float32, ml_dtypes.bfloat16
FP32 = 2.0**-24
DTYPES = pytest.mark.parametrize("dtype", [F32, BF16], ids=["fp32", "bf16"])
pytestmark = [pytest.mark.usefixtures("mode"), pytest.mark.filterwarnings("error")]


def rounding(dtype):
    """Relative error of one rounding to the type."""
    return FP32 if dtype is F32 else 2.0**-8


def random(*shape, dtype=F32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def near(result, wanted, allowed):
    """Every element within its own allowance; says by how much it is not."""
    assert result.shape == wanted.shape
    excess = np.abs(result.astype(np.float64) - wanted) / allowed
    assert excess.max() <= 1, f"{excess.max():.3g} times what is allowed"


def matmul_allowance(lhs_t, rhs, dtype, wanted, partial=0):
    """A sum of K products, `partial` roundings of partial results to the type, and one of the result."""
    sizes = np.abs(lhs_t.astype(np.float64)).T @ np.abs(rhs.astype(np.float64))
    return (lhs_t.shape[0] * FP32 + partial * rounding(dtype)) * sizes + rounding(dtype) * np.abs(wanted)


@DTYPES
@pytest.mark.parametrize("m, k, n", [(128, 128, 512), (256, 384, 512), (256, 256, 1024)])
@pytest.mark.parametrize("kernel", [matmul.matmul_naive, matmul.matmul_blocked], ids=lambda k: k.__name__)
def test_matmul(kernel, m, k, n, dtype):
    lhs_t, rhs = random(k, m, dtype=dtype), random(k, n, dtype=dtype, seed=1)
    result, wanted = kernel(lhs_t, rhs), matmul.reference(lhs_t, rhs)
    assert result.dtype == dtype
    near(result, wanted, matmul_allowance(lhs_t, rhs, dtype, wanted))


def test_both_matmuls_sum_in_the_same_order():
    lhs_t, rhs = random(512, 128), random(512, 512, seed=1)
    assert matmul.matmul_naive(lhs_t, rhs).tobytes() == matmul.matmul_blocked(lhs_t, rhs).tobytes()


@DTYPES
@pytest.mark.parametrize("rows, cols", [(128, 64), (200, 1000), (1, 7)])
def test_softmax(rows, cols, dtype):
    x = random(rows, cols, dtype=dtype)
    wanted = softmax.reference(x)
    # x - max is at most 16 here and rounded once, which exp turns into a relative error; exp, the sum of positive terms, its reciprocal
    # and the product follow.
    relative = FP32 * (16 + 2 + cols + 2 + 1) + rounding(dtype)
    near(softmax.softmax(x), wanted, relative * wanted)


@DTYPES
@pytest.mark.parametrize("rows, cols", [(128, 64), (200, 1000), (3, 16)])
def test_rmsnorm(rows, cols, dtype):
    x, gain = random(rows, cols, dtype=dtype), random(cols, dtype=dtype, seed=1)
    wanted = rmsnorm.reference(x, gain)
    # A square and a sum of positive terms; scale, shift, rsqrt (half of what is before it), two products.
    relative = FP32 * ((1 + cols + 3) / 2 + 2 + 2) + rounding(dtype)
    near(rmsnorm.rmsnorm(x, gain), wanted, relative * np.abs(wanted) + 1e-30)


@DTYPES
@pytest.mark.parametrize("heads, length, dim, key_block", [(1, 128, 128, 1024), (2, 384, 64, 256), (1, 1280, 32, 512)])
def test_flash_attention(heads, length, dim, key_block, dtype):
    q, k, v = (random(heads, length, dim, dtype=dtype, seed=i) for i in range(3))
    result, wanted = flash_attention.flash_attention(q, k, v, key_block), flash_attention.reference(q, k, v)
    own = rounding(dtype)
    # The error of a score, absolute, is the relative error of its exponential: the rounded query, a sum of dim products.
    sizes = np.abs(q.astype(np.float64)) @ np.abs(k.astype(np.float64)).transpose(0, 2, 1) / np.sqrt(dim)
    score = sizes.max() * (own + (dim + 2) * FP32)
    # Each of the few blocks rescales what was before it; probabilities, and the result, are rounded to the type.
    steps = -(-length // key_block)
    relative = 2 * score + own + (2 * length + 8 * steps) * FP32
    bound = relative * (reference_sizes(q, k, v)) + own * np.abs(wanted)
    near(result, wanted, bound)


def reference_sizes(q, k, v):
    """The weighted mean of |v|: what relative errors of the probabilities are relative to."""
    return flash_attention.reference(q, k, np.abs(v.astype(np.float64)))


def test_flash_attention_with_scores_that_grow():
    """The maximum of a later block is far above that of the first, so that everything earlier is rescaled to nothing."""
    length, dim = 256, 16
    q, k, v = np.ones((1, length, dim), F32), np.zeros((1, length, dim), F32), random(1, length, dim)
    k[:, 128:] = 50.0
    near(flash_attention.flash_attention(q, k, v, 128), flash_attention.reference(q, k, v), np.full(v.shape, 1e-5))


@DTYPES
@pytest.mark.parametrize("rows, cols", [(128, 64), (300, 10)])
def test_vector_add(rows, cols, dtype):
    a, b = random(rows, cols, dtype=dtype), random(rows, cols, dtype=dtype, seed=1)
    assert (vector_add.vector_add(a, b) == (a.astype(F32) + b.astype(F32)).astype(dtype)).all()


@pytest.mark.parametrize("kernel", [vector_add.vector_add, matmul.matmul_blocked], ids=lambda k: k.__name__)
def test_torch(kernel):
    torch = pytest.importorskip("torch")
    a, b = random(128, 512, dtype=BF16), random(128, 512, dtype=BF16, seed=1)
    as_torch = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b)]
    result = kernel(*as_torch)
    assert result.dtype == torch.bfloat16
    assert result.view(torch.int16).numpy().tobytes() == kernel(a, b).tobytes()


def test_tour(capsys):
    assert tour.main() == 0
    assert capsys.readouterr().out.count("right") == 3


# --- calibration kernels at sizes where values are quick; bf16 partial sums are rounded once for each block of K


@pytest.mark.parametrize("sets", [1, 2])
def test_psum_sets(sets):
    lhs_t, rhs = random(256, 384, dtype=BF16), random(256, 1024, dtype=BF16, seed=1)
    wanted = matmul.reference(lhs_t, rhs)
    near(psum_sets.matmul(lhs_t, rhs, sets), wanted, matmul_allowance(lhs_t, rhs, BF16, wanted))


def test_hand_tuned():
    lhs, rhs = random(1024, 2048, dtype=BF16), random(2048, 512, dtype=BF16, seed=1)
    wanted = matmul.reference(lhs.T, rhs)
    # Two blocks of K: each product is rounded to bf16, and so is their sum.
    near(hand_tuned.lhs_rhs(lhs, rhs), wanted, matmul_allowance(lhs.T, rhs, BF16, wanted, partial=3))


@pytest.mark.parametrize("kernel", [tutorial.tiled, tutorial.hoisted], ids=lambda k: k.__name__)
def test_tutorial(kernel):
    lhs_t, rhs = random(512, 256), random(512, 1024, seed=1)
    wanted = matmul.reference(lhs_t, rhs)
    near(kernel(lhs_t, rhs), wanted, matmul_allowance(lhs_t, rhs, F32, wanted))


def test_streams():
    a, b = random(256, 100), random(256, 100, seed=1)
    assert (streams.vector_add(a, b) == a + b).all()
