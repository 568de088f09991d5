# SPDX-License-Identifier: Apache-2.0
"""Predicted against published times: each within its bounds, and kernels in the published order of speed."""

import matmul
import numpy as np
import published
import pytest

import sterna

PREDICTED = {}


def predicted(name):
    """A row's prediction by the start of its name; made once."""
    if name not in PREDICTED:
        (row,) = [r for r in published.KERNELS + published.MICRO if r.name.startswith(name)]
        PREDICTED[name] = published.predict(row)
    return PREDICTED[name]


@pytest.mark.parametrize("row", published.KERNELS + published.MICRO, ids=lambda r: r.name)
def test_within_bounds(row):
    p = predicted(row.name)
    assert p.good, (
        f"{p.us:.3f} us predicted, {row.published_us} us published: {p.error:+.1%}, {row.allowed:.0%} allowed"
    )


def test_order_of_the_matmuls_in_bf16():
    """More buffers are faster, and by amounts that the peak alone does not show."""
    assert predicted("hand-tuned").us < predicted("two PSUM sets").us < predicted("one PSUM set").us


def test_order_of_the_tutorial():
    assert predicted("tutorial v2").us >= 1.15 * predicted("tutorial v3").us
    assert predicted("tutorial v3").tensor_active >= 0.98


def test_predictions_list_their_uncertain_numbers():
    p = predicted("tutorial v2")
    assert {trust for _, _, trust, _ in p.uncertain} <= {"assumed", "estimated", "claimed"}
    assert any(key == "dma.descriptor" for key, *_ in p.uncertain)
    assert any("dma.descriptor" in line for line in published.table([p]))


def test_a_kernel_that_is_only_recorded_has_the_same_time_and_no_values():
    lhs_t, rhs = matmul.operands(128, 256, 512, np.float32)
    with sterna.profile() as run:
        matmul.matmul_naive(lhs_t, rhs)
    with sterna.profile(values=False) as recorded:
        result = matmul.matmul_naive(lhs_t, rhs)
    assert recorded.kernels[0].time_us == run.kernels[0].time_us
    assert (result.shape, result.dtype) == ((128, 512), np.float32)
    assert np.isnan(result).all()
