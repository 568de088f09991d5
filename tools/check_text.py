# SPDX-License-Identifier: Apache-2.0
"""Looks over every text file of the project.

licence      the SPDX line within the first three lines of each source file
machine      no path of somebody's machine, no host of a package registry
size         no file above one million bytes
links        a relative link of a Markdown file leads to a file, and its #anchor to a heading
ending       the last line ends, no line ends in a space, no tabs outside Makefile
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BYTES = 1_000_000
NEEDS_LICENCE = {".h", ".cc", ".py", ".pyi", ".sh", ".cmake", ".toml", ".ts", ".sterna"}
NEEDS_LICENCE_NAMES = {"CMakeLists.txt", "Makefile", "run"}

# Written with brackets so that this file does not find itself.
MACHINE = re.compile(
    r"(?<![\w./-])/(wor[k]|roo[t]|hom[e]/\w+|tm[p]/[a-z]+/|op[t]/(wheels|py[p]i))(/|\b)"
    r"|\b([\w-]+\.)*(py[p]i\.org|python[h]osted\.org|npm[j]s\.(org|com)|deb\.debi[a]n\.org|security\.debi[a]n\.org)\b"
)


def files():
    """Paths that git knows or would take; without git, everything but what a build makes."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
        listed = [path for path in listed if not re.match(r"(build|\.venv|\.git)/|.*__pycache__", path)]
    return sorted({path for path in listed if path and (ROOT / path).is_file()})


def anchors(text):
    """The anchors of a Markdown file's headings, spelt as GitHub spells them."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", text, re.MULTILINE):
        plain = re.sub(r"[`*]|\[|\]\([^)]*\)|\]", "", heading).lower()
        found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain)))
    return found


def check_links(path, text):
    prose = re.sub(r"```.*?```", lambda match: re.sub(r"[^\n]", " ", match.group(0)), text, flags=re.DOTALL)
    for match in re.finditer(r"\[[^\]\[]*\]\(([^)\s]+)\)", prose):
        target, _, anchor = match.group(1).partition("#")
        number = prose.count("\n", 0, match.start()) + 1
        if re.match(r"[a-z]+:", target):
            continue
        file = (ROOT / path).parent / target if target else ROOT / path
        if not file.exists():
            yield number, "links", f"{match.group(1)} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield number, "links", f"{target or 'this file'} has no heading for #{anchor}"


def check_lines(path, text):
    name = pathlib.PurePosixPath(path).name
    suffix = pathlib.PurePosixPath(path).suffix
    lines = text.split("\n")
    if text and not text.endswith("\n"):
        yield len(lines), "ending", "the last line does not end"
    for number, line in enumerate(lines, 1):
        if found := MACHINE.search(line):
            yield number, "machine", f"'{found.group(0)}' belongs to a machine, not to the project"
        if line != line.rstrip() and suffix not in (".md", ".csv"):
            yield number, "ending", "the line ends in a space"
        if "\t" in line and name != "Makefile" and suffix in NEEDS_LICENCE:
            yield number, "ending", "a tab"
    needs_licence = (suffix in NEEDS_LICENCE or name in NEEDS_LICENCE_NAMES) and text.strip()
    if needs_licence and "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:3]):
        yield 1, "licence", "no SPDX-License-Identifier: Apache-2.0 in the first three lines"


def check_file(path):
    data = (ROOT / path).read_bytes()
    if len(data) > MAX_BYTES:
        yield 1, "size", f"{len(data)} bytes; the limit is {MAX_BYTES}"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    if path == "LICENSE":
        return
    yield from check_lines(path, text)
    if path.endswith(".md"):
        yield from check_links(path, text)


def main():
    names = files()
    findings = [f"{path}:{number}: [{rule}] {text}" for path in names for number, rule, text in check_file(path)]
    for finding in findings:
        print(finding)
    if findings:
        print(f"check: {len(findings)} findings in the text of the files", file=sys.stderr)
        return 1
    print(f"check: {len(names)} files carry licence lines, no machine's paths, and links that lead somewhere")
    return 0


if __name__ == "__main__":
    sys.exit(main())
