#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of sterna/ by the C++ and the Python tests. Prints each file's, each folder's and the whole share.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix="$PWD/build/coverage/prefix"
cmake --preset coverage -DSTERNA_PYTHON=ON -DPython_EXECUTABLE="$PWD/.venv/bin/python" >build/configure-coverage.log
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
failed=0
ctest --test-dir build/coverage --output-on-failure -j "$(nproc)" || failed=1
# The package as the wheel would hold it, with the instrumented extension, ahead of the installed one.
cmake --install build/coverage --prefix "$prefix" >/dev/null
cp -r python/sterna/. "$prefix/lib/python/sterna/"
PYTHONPATH="$prefix/lib/python" .venv/bin/python -m pytest -q tests frontends examples || failed=1
.venv/bin/python tools/coverage.py build/coverage
[ "$failed" = 0 ] || echo "coverage: some tests FAILED; the figures are of what ran" >&2
exit "$failed"
