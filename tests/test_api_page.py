# SPDX-License-Identifier: Apache-2.0
"""docs/nki-api.md is what the source says, and every name in it is explained."""

import pathlib
import runpy

import pytest

from sterna import _core

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "api_page.py"


@pytest.fixture(scope="module")
def text():
    return runpy.run_path(str(TOOL))["page"]()


def names(page):
    """(name, since, what it does) of each row: signatures are spelled by the Python version, and tests come and go."""
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return [(row[0].split("(")[0], row[1], row[2]) for row in rows]


def test_what_the_page_says_is_true(text):
    """A new name may be missing until `make docs` is run; what is there must hold."""
    known = set(names(text))
    said = names((ROOT / "docs" / "nki-api.md").read_text(encoding="utf-8"))
    assert len(said) > 200
    assert [row for row in said if row not in known] == [], "run 'make docs'"


def test_every_name_says_what_it_does(text):
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [row[0] for row in rows if len(row[2].strip()) < 4] == []


def test_names_that_came_later_exist():
    tools = runpy.run_path(str(TOOL))
    missing = []
    for name in tools["since"]():
        prefix = max((m for m in tools["MODULES"] if name.startswith(m + ".")), key=len, default=None)
        if prefix is None:
            continue
        value = tools["MODULES"][prefix]
        parts = name[len(prefix) + 1 :].split(".")
        if parts[0] == "NkiTensor" and len(parts) > 1:
            value, parts = _core.Tensor, parts[1:]
        for part in parts:
            value = getattr(value, part, None)
        if value is None:
            missing.append(name)
    assert missing == []
