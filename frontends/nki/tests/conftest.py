# SPDX-License-Identifier: Apache-2.0
"""What the tests of the NKI front end share."""

import os
import subprocess
import sys

import numpy as np
import pytest

import nki
import nki.language as nl
from sterna.cache import cache


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::sterna.SternaWarning")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Tests say themselves which setting they want."""
    for name in list(os.environ):
        if name.startswith(("STERNA_UNINIT", "STERNA_STRICT", "STERNA_EAGER", "NEURON_", "NKI_")):
            monkeypatch.delenv(name)


def store_all(tile):
    """A new result with the values of an on-chip tile."""
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


@pytest.fixture
def apply():
    """apply(f, *arrays): f on SBUF tiles of the arrays; the tile that it returns comes back as an array."""

    def run(function, *arrays):
        @nki.jit
        def kernel(*inputs):
            return store_all(function(*(nl.load(x) for x in inputs)))

        return kernel(*arrays)

    return run


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def empty_cache():
    """Kernels that other tests left in memory do not count, and none stay."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def python():
    """python(text, **environment): runs a script in an interpreter of its own; gives the completed process."""

    def run(text, **environment):
        return subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
        )

    return run
