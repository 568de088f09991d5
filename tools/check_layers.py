# SPDX-License-Identifier: Apache-2.0
"""Keeps the arrows between the folders of the project pointing one way, and each kind of knowledge in its one home.

Checked, each with the reason in ARCHITECTURE.md:
  layers       an #include in sterna/ names its own layer or a lower one
  libraries    a third-party header is included in the one place that may know it
  time         no cycles, nanoseconds or joules in sterna/isa: an instruction says its work, the chip file says the cost
  chips        no chip's name in sterna/isa, and no comparison with a chip's name anywhere in sterna/
  conversion   no conversion between number formats by hand outside sterna/numerics
  exceptions   nothing in sterna/ throws
  front ends   no front end imports another one

The last word on a line may be `// layers: allow(RULE) because ...` where a heuristic is wrong.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Lowest first; layers on one row do not see each other.
ROWS = [
    ["base"],
    ["numerics", "hardware", "trace"],
    ["machine"],
    ["isa"],
    ["program"],
    ["check", "execute", "timing"],
    ["energy", "runtime"],
    ["cluster"],
    ["serving"],
    ["cli"],
]
ROW = {layer: row for row, layers in enumerate(ROWS) for layer in layers}

# Third-party header -> folders that may include it.
HOMES = [
    (r"hwy/", ["sterna/numerics"]),
    (r"toml\+\+/", ["sterna/hardware"]),
    (r"CLI/", ["sterna/cli"]),
    (r"(nanobind/|Python\.h)", ["python", "frontends/torch", "frontends/jax"]),
    (r"(mlir|llvm)/", ["compiler"]),
    (r"(torch|ATen|c10)/", ["frontends/torch"]),
    (r"xla/", ["frontends/jax"]),
]

TIME_WORDS = re.compile(
    r"(?i)\b(\w*_)?(ns|us|nanoseconds?|microseconds?|picoseconds?|milliseconds?|cycles?|joules?|picojoules?|pj|watts?)(_\w*)?\b"
)
CHIP_NAMES = re.compile(r"(?i)\b(trn\d\w*|inf\d\w*|trainium\d?|inferentia\d?|neuroncore_?v\d)\b|\b(is|on)_trn\d")
CHIP_COMPARISON = re.compile(r'[=!]=\s*"(trn|inf)\d|"(trn|inf)\d\w*"\s*[=!]=', re.IGNORECASE)
CONVERSION = re.compile(
    r"\b(_Float16|__bf16|__fp16|_cvtss_sh|_mm\w*_cvt\w*ps\w*)\b"
    r"|bit_cast<\s*(float|(std::)?uint32_t)\s*>\s*\([^;]*(<<|>>)\s*(16|13)\b",
    re.IGNORECASE,
)
ALLOW = re.compile(r"//\s*layers:\s*allow\((\w+)\)\s*\w+")


def without_comments(text):
    """The text with comments blanked, line numbers kept. String literals stay: they may name what is forbidden."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match):
        piece = match.group(0)
        return piece if piece[0] in "\"'" else re.sub(r"[^\n]", " ", piece)

    return pattern.sub(blank, text)


def is_test(path):
    """Tests and their helpers may name a chip, or write down bits."""
    name = path.rsplit("/", 1)[1]
    return name.endswith("_test.cc") or name.startswith("test_") or "_test_" in name


class Findings:
    def __init__(self):
        self.items = []

    def add(self, path, number, rule, text, line=""):
        allowed = ALLOW.search(line)
        if not (allowed and allowed.group(1) == rule):
            self.items.append(f"{path}:{number}: [{rule}] {text}")


def check_includes(path, number, line, findings):
    match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
    if not match:
        return
    included = match.group(1)
    for header, homes in HOMES:
        if re.match(header, included) and not any(path.startswith(home + "/") for home in homes):
            findings.add(path, number, "libraries", f"only {', '.join(homes)} may include <{included}>", line)
    parts = path.split("/")
    if parts[0] != "sterna":
        return
    layer = parts[1]
    if included.startswith(("python/", "frontends/", "compiler/")):
        findings.add(path, number, "layers", f"sterna/{layer} includes {included}, which is built on sterna/", line)
    target = included.split("/")[1] if included.startswith("sterna/") else None
    if target in (None, layer):
        return
    if target not in ROW:
        findings.add(path, number, "layers", f"{included} is in no known layer", line)
    elif ROW[target] >= ROW[layer]:
        where = "beside" if ROW[target] == ROW[layer] else "above"
        findings.add(
            path, number, "layers", f"sterna/{layer} includes {included}: {target} stands {where} {layer}", line
        )


def check_words(path, number, code, line, findings):
    if path.startswith("sterna/isa/"):
        for rule, words in (("time", TIME_WORDS), ("chips", CHIP_NAMES)):
            if found := words.search(code):
                if rule == "chips" and is_test(path):
                    continue  # a test must name the chip whose rule it tries
                findings.add(path, number, rule, f"'{found.group(0)}' has no place in an instruction", line)
    if CHIP_COMPARISON.search(code) and not is_test(path):
        findings.add(path, number, "chips", "ask the chip's description instead of comparing its name", line)
    if not path.startswith("sterna/numerics/") and not is_test(path) and (found := CONVERSION.search(code)):
        findings.add(
            path, number, "conversion", f"'{found.group(0)}': number formats are converted in sterna/numerics", line
        )
    if re.search(r"\bthrow\b", code):
        findings.add(path, number, "exceptions", "return a Fault instead of throwing", line)


def check_cpp(findings):
    count = 0
    for folder in ("sterna", "python", "frontends", "compiler"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            count += 1
            path = file.relative_to(ROOT).as_posix()
            text = file.read_text(encoding="utf-8")
            if folder == "sterna" and path.split("/")[1] not in ROW:
                findings.add(path, 1, "layers", f"sterna/{path.split('/')[1]} is not in the list of layers")
                continue
            for number, (line, code) in enumerate(zip(text.split("\n"), without_comments(text).split("\n")), 1):
                check_includes(path, number, line, findings)
                if folder == "sterna":
                    check_words(path, number, code, line, findings)
    return count


def check_frontends(findings):
    folders = [path for path in sorted((ROOT / "frontends").glob("*")) if path.is_dir()]
    # The import names each front end serves: its package folders.
    names = {folder.name: {init.parent.name for init in folder.glob("*/__init__.py")} - {"tests"} for folder in folders}
    for folder in folders:
        others = set().union(*(served for name, served in names.items() if name != folder.name)) - names[folder.name]
        for file in sorted(folder.rglob("*.py")):
            for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
                match = re.match(r"\s*(?:from|import)\s+(\w+)", line)
                if match and match.group(1) in others:
                    path = file.relative_to(ROOT).as_posix()
                    findings.add(
                        path, number, "frontends", f"a front end stands alone, and this imports {match.group(1)}", line
                    )


def main():
    findings = Findings()
    count = check_cpp(findings)
    check_frontends(findings)
    for item in findings.items:
        print(item)
    if findings.items:
        print(f"check: {len(findings.items)} places break a layer rule (ARCHITECTURE.md)", file=sys.stderr)
        return 1
    print(f"check: {count} C++ files keep the layer rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
