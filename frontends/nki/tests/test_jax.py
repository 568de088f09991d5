# SPDX-License-Identifier: Apache-2.0
"""JAX arrays in and out of a kernel. Skipped where JAX is not installed."""

import pytest

import nki
import nki.language as nl
from sterna import BadInput

jnp = pytest.importorskip("jax.numpy")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int32"])
def test_results_are_jax_arrays(name):
    @nki.jit
    def double(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), 2.0))
        return out

    x = jnp.arange(8).reshape(2, 4).astype(name)
    got = double(x)
    assert type(got) is type(x) and got.dtype == x.dtype and (got == x * 2).all()


def test_a_jax_array_is_never_written():
    @nki.jit
    def write(x):
        nl.store(x, nl.load(x))

    with pytest.raises(BadInput, match="ARG1"):
        write(jnp.ones((2, 2)))
