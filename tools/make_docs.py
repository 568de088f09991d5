# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that the program itself can tell: one for each chip, and the command's help. Into build/docs."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "docs"
STERNA = ROOT / ".venv" / "bin" / "sterna"


def told(*arguments):
    return subprocess.run([STERNA, *arguments], check=True, capture_output=True, text=True).stdout


def main():
    pages = {"command": told("--help")}
    for file in sorted((ROOT / "hardware" / "chips").glob("*.toml")):
        pages[f"chip-{file.stem}"] = told("chip", file.stem, "--sources")
    OUT.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (OUT / f"{name}.md").write_text(f"# {name.replace('-', ' ')}\n\n```\n{text.rstrip()}\n```\n", encoding="utf-8")
    api = ROOT / "tools" / "api_page.py"
    subprocess.run([sys.executable, api, "--write"], check=True)
    print(f"docs: {len(pages)} pages in build/docs, and docs/nki-api.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
