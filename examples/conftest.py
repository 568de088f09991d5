# SPDX-License-Identifier: Apache-2.0
"""The examples import each other by name, as scripts do."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(HERE, "calibration")):
    if folder not in sys.path:
        sys.path.insert(0, folder)


@pytest.fixture(params=["default", "strict"])
def mode(request, monkeypatch):
    """Every example runs in both modes: it uses nothing that only the official simulator accepts."""
    monkeypatch.setenv("STERNA_STRICT", "1" if request.param == "strict" else "0")
    return request.param
