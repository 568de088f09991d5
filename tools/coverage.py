# SPDX-License-Identifier: Apache-2.0
"""Sums gcov's line counts over one build folder: share of executable lines of sterna/ that ran, by folder."""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def line_counts(build):
    """{source file: {line: times run}}, summed over the object files that contain the line."""
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    data = [str(path) for path in pathlib.Path(build).resolve().rglob("*.gcda")]
    for start in range(0, len(data), 50):
        command = ["gcov", "--json-format", "--stdout", *data[start : start + 50]]
        out = subprocess.run(command, cwd=build, check=True, capture_output=True, text=True).stdout
        for report in map(json.loads, filter(None, out.split("\n"))):
            for source in report["files"]:
                name = (pathlib.Path(report["current_working_directory"]) / source["file"]).resolve()
                if ROOT / "sterna" in name.parents and not name.name.endswith("_test.cc"):
                    for line in source["lines"]:
                        counts[name.relative_to(ROOT).as_posix()][line["line_number"]] += line["count"]
    return counts


def main():
    folders = collections.defaultdict(lambda: [0, 0])
    for name, lines in sorted(line_counts(sys.argv[1]).items()):
        ran = sum(count > 0 for count in lines.values())
        for key in (name.split("/")[1], "sterna"):
            folders[key][0] += ran
            folders[key][1] += len(lines)
        print(f"{ran / len(lines):7.1%} {len(lines):6d}  {name}")
    print()
    for key, (ran, whole) in sorted(folders.items(), key=lambda item: (item[0] == "sterna", item[0])):
        print(f"{ran / whole:7.1%} {whole:6d}  {'all of sterna/' if key == 'sterna' else key}")


if __name__ == "__main__":
    main()
