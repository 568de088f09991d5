#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# C++ files in the project's format: says which are not, or with --fix rewrites them. One version of the tool, since versions differ.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=clang-format-19
if ! command -v "$tool" >/dev/null; then
  echo "check: $tool is not installed (tools/setup.sh check); the format was NOT checked"
  exit 1
fi
mapfile -t files < <(find sterna python frontends -name '*.h' -o -name '*.cc' | sort)
if [ "${1:-}" = --fix ]; then
  "$tool" -i "${files[@]}"
  exit
fi
found=$("$tool" --dry-run --Werror "${files[@]}" 2>&1 | grep -E '\.(h|cc):[0-9]+' | sort -t: -k1,1 -u) || true
if [ -n "$found" ]; then
  echo "$found"
  echo "check: the first such line of each file is shown; 'make format' rewrites them" >&2
  exit 1
fi
echo "check: ${#files[@]} C++ files are in the project's format"
