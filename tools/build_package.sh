#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel and installs it into .venv. Shows the compiler's steps as they come, and everything if it fails.
set -uo pipefail
cd "$(dirname "$0")/.."

mkdir -p build
echo "build: the package, with its command, into .venv (whole output: build/pip.log)"
.venv/bin/python -m pip install -v --disable-pip-version-check --no-build-isolation --no-deps . </dev/null 2>&1 |
  tee build/pip.log | grep --line-buffered -E '^ *\[[0-9]+/[0-9]+\]'
status=${PIPESTATUS[0]}
if [ "$status" != 0 ]; then
  grep -vE '^ *\[[0-9]+/[0-9]+\]' build/pip.log >&2
fi
exit "$status"
