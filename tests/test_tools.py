# SPDX-License-Identifier: Apache-2.0
"""The checks of `make check` find what they are for, and leave alone what they should."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layers = tool("check_layers")
text = tool("check_text")


def rules_broken(path, line):
    findings = layers.Findings()
    layers.check_includes(path, 1, line, findings)
    layers.check_words(path, 1, layers.without_comments(line), line, findings)
    return [item.split("[")[1].split("]")[0] for item in findings.items]


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("sterna/base/a.h", '#include "sterna/isa/a.h"', "layers"),
        ("sterna/numerics/a.h", '#include "sterna/trace/a.h"', "layers"),
        ("sterna/execute/a.h", '#include "sterna/timing/a.h"', "layers"),
        ("sterna/cli/a.cc", '#include "sterna/nowhere/a.h"', "layers"),
        ("sterna/program/a.cc", "#include <toml++/toml.h>", "libraries"),
        ("sterna/program/a.cc", "#include <nanobind/nanobind.h>", "libraries"),
        ("sterna/isa/a.h", "double latency_ns = 3;", "time"),
        ("sterna/isa/a.h", "int cycles() const;", "time"),
        ("sterna/isa/a.h", 'if (chip.has("trn2_thing"))', "chips"),
        ("sterna/timing/a.cc", 'if (chip.name == "trn2") return 1;', "chips"),
        ("sterna/execute/a.cc", "float f = std::bit_cast<float>(uint32_t(half) << 16);", "conversion"),
        ("sterna/execute/a.cc", "_Float16 half = x;", "conversion"),
        ("sterna/program/a.cc", "throw 1;", "exceptions"),
    ],
)
def test_a_broken_layer_rule_is_found(path, line, rule):
    assert rules_broken(path, line) == [rule]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("sterna/isa/a.h", '#include "sterna/machine/a.h"'),
        ("sterna/isa/a.h", '#include "sterna/isa/b.h"'),
        ("sterna/numerics/a.h", "#include <hwy/highway.h>"),
        ("sterna/isa/a.h", "int columns = 0;  // 64 cycles on trn2, says the guide"),
        ("sterna/isa/a.h", "bool uses_status = false;"),
        ("sterna/timing/a.h", "double latency_ns = 3;"),
        ("sterna/numerics/a.cc", "float f = std::bit_cast<float>(uint32_t(half) << 16);"),
        ("sterna/trace/a.cc", "auto n = std::bit_cast<uint32_t>(f);"),
        ("sterna/timing/a.cc", 'if (chip.name == "trn2")  // layers: allow(chips) because this prints a heading'),
    ],
)
def test_what_keeps_the_layer_rules_passes(path, line):
    assert rules_broken(path, line) == []


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("a.py", "x = 1\n", "licence"),
        ("a.md", "see /wor" + "k/main/x\n", "machine"),
        ("a.md", "see https://py" + "pi.org/simple\n", "machine"),
        ("a.csv", "a,b", "ending"),
    ],
)
def test_a_line_out_of_place_is_found(path, content, rule):
    assert [found[1] for found in text.check_lines(path, content)] == [rule]


def test_links_are_followed():
    page = "[a](README.md) [b](README.md#sterna) [c](nothing.md) [d](README.md#no-such) [e](https://example.org)\n"
    assert [found[2] for found in text.check_links("PAGE.md", page)] == [
        "nothing.md leads nowhere",
        "README.md has no heading for #no-such",
    ]
    assert list(text.check_links("PAGE.md", "```\n[a](nothing.md)\n```\n")) == []
