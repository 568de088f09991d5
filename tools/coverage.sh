#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of sterna/ by the C++ unit tests, in build/coverage. Prints each folder's and the whole share.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset coverage >/dev/null
cmake --build --preset coverage
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage --output-on-failure -j "$(nproc)"
.venv/bin/python tools/coverage.py build/coverage
