#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building, testing or checking needs, and skips what is there. Usage: tools/setup.sh [GROUP...]
#   build    (default) compiler, CMake, C++ libraries, Python, and the virtual environment .venv
#   check    clang-format
#   tidy     clang-tidy
#   cross    compiler and emulator for the aarch64 tests
#   torch    PyTorch in .venv, for the tests of torch arguments (large)
# Debian 12 and 13, as root or with sudo. Elsewhere it names what is missing and goes on if nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."

TORCH="torch==2.13.0"
# The same names hold on Debian 12 (g++ 12, Highway 1.0, Python 3.11) and Debian 13 (g++ 14, Highway 1.2, Python 3.13).
BUILD_PACKAGES="g++ make cmake ninja-build ccache libhwy-dev libtomlplusplus-dev libcli11-dev libgtest-dev"
CHECK_PACKAGES="clang-format-19 git"
TIDY_PACKAGES="clang-tidy-19"
CROSS_PACKAGES="g++-aarch64-linux-gnu qemu-user googletest"

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

debian_packages() {
  local missing=() package
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "this is not Debian: please see that these exist, under whatever name: $*"
    return
  fi
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "needs root once, and there is no sudo. As root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o APT::Color=0)
  "${apt[@]}" update >/dev/null || say "apt-get update failed; trying with the lists that are there"
  "${apt[@]}" install --no-install-recommends "${missing[@]}" >build/apt.log 2>&1 </dev/null ||
    { tail -n 20 build/apt.log >&2; fail "apt-get install failed (whole output: build/apt.log)"; }
}

# A Python that can build an extension: 3.10 to 3.14, with venv and its C header.
usable_python() {
  "$1" - 2>/dev/null <<'P'
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not ((3, 10) <= sys.version_info[:2] <= (3, 14) and os.path.exists(header)))
P
}

choose_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    if usable_python "$candidate"; then PYTHON=$candidate; return; fi
    [ "$candidate" != "${PYTHON:-}" ] || fail "PYTHON=$PYTHON is not 3.10 to 3.14 with venv and Python.h"
  done
  debian_packages python3 python3-dev python3-venv
  usable_python /usr/bin/python3 || fail "no Python 3.10 to 3.14 with venv and Python.h was found; name one with PYTHON=..."
  PYTHON=/usr/bin/python3
}

virtual_environment() {
  if [ -e .venv ] && ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    fail ".venv is there but does not work (moved, or its Python is gone). Remove it and try again"
  fi
  if [ ! -e .venv ]; then
    choose_python
    say "making .venv with $("$PYTHON" --version)"
    "$PYTHON" -m venv .venv
  fi
  say "Python packages into .venv: $(grep -v '^#' tools/requirements.txt | tr '\n' ' ')"
  .venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt </dev/null
}

mkdir -p build
[ $# -gt 0 ] || set -- build
for group in "$@"; do
  case $group in
    build)
      # shellcheck disable=SC2086
      debian_packages $BUILD_PACKAGES
      virtual_environment
      touch .venv/.ready ;;
    # shellcheck disable=SC2086
    check) debian_packages $CHECK_PACKAGES ;;
    # shellcheck disable=SC2086
    tidy) debian_packages $TIDY_PACKAGES ;;
    # shellcheck disable=SC2086
    cross) debian_packages $CROSS_PACKAGES ;;
    torch)
      if .venv/bin/python -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
        say "torch $(.venv/bin/python -c 'import importlib.metadata as m; print(m.version("torch"))') is there"
      else
        say "installing $TORCH into .venv"
        .venv/bin/python -m pip install -q --disable-pip-version-check "$TORCH" </dev/null
      fi ;;
    *) fail "unknown group '$group': build, check, tidy, cross, torch" ;;
  esac
done
