# SPDX-License-Identifier: Apache-2.0
"""The page of NKI's names, made from the source: since when, what it does, its fields, what it costs, its tests.

python tools/api_page.py            prints it
python tools/api_page.py --write    writes docs/nki-api.md
"""

import enum
import inspect
import pathlib
import re
import sys

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

import nki
import nki.collectives
import nki.isa
import nki.isa.constants
import nki.language
from nki import _history, _older, _unavailable
from sterna import _core
from sterna.settings import NKI_VERSIONS

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "nki-api.md"
MODULES = {"nki": nki, "nki.isa": nki.isa, "nki.language": nki.language, "nki.collectives": nki.collectives}
# Helpers that stand beside the names.
INTERNAL = {"instruction", "annotations"}
# Python names whose instruction in the core is another one.
RECORDS = {
    "all_gather_v": "all_to_all_v",
    "collective_permute_implicit_reduce": "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id": "ring_rank_id",
    "core_barrier": "core_barrier",
    "dynamic_range": "loop",
    "fori_loop": "loop",
    "while_loop": "while",
}


def since():
    return _older.SINCE


def releases(name):
    """Since when a name stands, and those of its parameters that came later."""
    first = since().get(name, "0.2")
    later = [f"`{p}` {release}" for p, release in _history.PARAMETERS.get(name, {}).items() if release != first]
    return ", ".join([first, *later])


def costs():
    """By instruction: formula and constants of each chip that says something of its own."""
    out = {}
    for path in sorted((ROOT / "hardware" / "chips").glob("trn[123].toml")):
        with open(path, "rb") as file:
            chip = tomllib.load(file)
        for name, entry in chip.get("instruction", {}).items():
            out.setdefault(name, []).append(f"{path.stem}: {_cost(entry)}")
    return out


def _cost(entry):
    parts = [f"`{entry['formula']}`"] if "formula" in entry else []
    for key, value in entry.items():
        if isinstance(value, dict) and "value" in value:
            parts.append(f"{key} {value['value']} ({value['trust']})")
    return " ".join(parts)


def tests():
    """By name: files of tests that mention it."""
    files = sorted((ROOT / "frontends" / "nki" / "tests").glob("test_*.py")) + sorted(
        (ROOT / "tests").glob("test_*.py")
    )
    return {file.relative_to(ROOT): set(re.findall(r"\b\w+\b", file.read_text(encoding="utf-8"))) for file in files}


def public(module):
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if name.startswith("_") or inspect.ismodule(value):
            continue
        origin = getattr(value, "__module__", None) or ""
        if name not in INTERNAL and (origin.partition(".")[0] in ("nki", "sterna", "") or not callable(value)):
            yield name, value


def signature(value):
    if isinstance(value, str) or inspect.isclass(value) and issubclass(value, enum.Enum):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"<[^>]*>", "...", text)


def summary(value, record):
    if type(value).__name__ == "DType":
        return f"number format {value}"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if not callable(value):  # the doc of a plain value is that of its class
        return record.get("summary", "constant")
    doc = inspect.getdoc(value)
    text = (doc or "").strip().split("\n\n")[0].replace("\n", " ")
    return text or record.get("summary", "")


def cell(text):
    return str(text).replace("|", "\\|")


def rows(prefix, module, priced, mentioned, instructions):
    for name, value in public(module):
        mnemonic = RECORDS.get(name, name)
        record = instructions.get(mnemonic, {}) if prefix in ("nki.isa", "nki.collectives") or name in RECORDS else {}
        golden = ROOT / "tests" / "golden" / "isa" / mnemonic
        cases = len(list(golden.glob("*.sterna"))) if record and golden.is_dir() else 0
        files = [file.name for file, words in mentioned.items() if name in words]
        tested = ([f"{cases} golden"] if cases else []) + files[:3] + (["..."] if len(files) > 3 else [])
        yield (
            f"`{name}{signature(value)}`",
            releases(f"{prefix}.{name}"),
            summary(value, record),
            "; ".join(priced.get(mnemonic, [])) if record else "",
            record.get("source", ""),
            ", ".join(tested),
        )


def page():
    priced, mentioned, instructions = costs(), tests(), _core.instructions()
    out = [
        "# NKI names",
        "",
        "Made by `tools/api_page.py` from the source; `make docs` writes it anew. Every name here runs. *Since*: the release of "
        "NKI in which the name first stands, and those in which parameters came. *Cost*: formula and constants of the chip files, "
        "with their trust; what has no entry of its own takes its engine's default (`sterna chip trn2 --sources`). The rules that "
        "each instruction checks stand with its struct in `sterna/isa`.",
    ]
    for prefix, module in MODULES.items():
        out += [
            "",
            f"## {prefix}",
            "",
            "| name | since | what it does | cost | document | tests |",
            "|---|---|---|---|---|---|",
        ]
        out += [
            "| " + " | ".join(map(cell, row)) + " |" for row in rows(prefix, module, priced, mentioned, instructions)
        ]
    return "\n".join(out + differences()) + "\n"


def differences():
    """What STERNA_NKI_VERSION changes beyond the names above: members, names that are gone, behaviour."""
    out = [
        "",
        "## Releases",
        "",
        "What else differs; `STERNA_NKI_VERSION` chooses ([settings.md](settings.md)). Sources: the API stubs, release notes and "
        "migration guides of the Neuron SDK.",
        "",
        "| member | since | what it is |",
        "|---|---|---|",
    ]
    for name, release in sorted(since().items()):
        if name.rpartition(".")[0] not in MODULES:
            owner, last = _older.owner(name)
            value = vars(owner)[last]
            doc = "a size of the target's tiles" if isinstance(value, property) else inspect.getdoc(value)
            out.append(f"| `{name}` | {release} | {cell(doc.splitlines()[0])} |")
    out += ["", "| name | last in | instead |", "|---|---|---|"]
    for name, (release, instead) in sorted(_history.REMOVED.items()):
        out.append(f"| `{name}` | {before(release)} | removed in {release}: {instead} |")
    for name, text in sorted(_unavailable._REMOVED.items()):
        out.append(f"| `nki.{name}` | 0.1 | {cell(text)} |")
    out += ["", "| name | from | behaviour | before |", "|---|---|---|---|"]
    for name, release, now, then in sorted(_history.BEHAVIOUR):
        out.append(f"| `{name}` | {release} | {cell(now)} | {cell(then)} |")
    for name, defaults in sorted(_history.DEFAULTS.items()):
        for parameter, (release, old) in defaults.items():
            then = f"{parameter} has to be given" if old is None else f"it is {old}"
            out.append(f"| `{name}` | {release} | {parameter} has its default of today | {then} |")
    return out


def before(release):
    return NKI_VERSIONS[NKI_VERSIONS.index(release) - 1]


def main(arguments):
    text = page()
    if "--write" in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
