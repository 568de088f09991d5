# SPDX-License-Identifier: Apache-2.0
# The one entry. `make` alone prints what there is.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

JOBS ?= $(shell nproc)
PY := .venv/bin/python
READY := .venv/.ready
# Tests of one kind, or further options: make test PYTEST="-k names"
PYTEST ?=
RUN ?= examples/tour.py
PYTEST_FOLDERS = $(wildcard tests frontends/*/tests examples)

# The wheel, the unit tests and the other presets compile the same files; the compiler cache makes the second time cheap.
# Paths are made relative, so another checkout finds them too, and the compiler has one name (the cache asks for that).
export CXX
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.PHONY: help setup build run test test-cpp test-python check format tidy bench docs asan tsan coverage aarch64 clean distclean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): tools/setup.sh tools/requirements.txt
	@tools/setup.sh build

setup: ## install Debian and Python packages that are missing, make .venv
	@tools/setup.sh build

build: $(READY) ## build the C++ core and install the package sterna into .venv
	@tools/build_package.sh
	@.venv/bin/sterna --version

run: build ## build, then run the tour: values, predicted time, trace
	.venv/bin/sterna run --trace build/tour.trace $(RUN)

test: test-cpp test-python ## all tests that need no PyTorch

test-cpp: $(READY) ## the C++ unit tests
	@cmake --preset release -DSTERNA_PYTHON=OFF >build/configure-release.log || { cat build/configure-release.log; exit 1; }
	@cmake --build --preset release
	@ctest --test-dir build/release --output-on-failure --no-tests=error -j $(JOBS)

test-python: build ## the tests of the package, the front ends and the examples
	@$(PY) -m pytest $(PYTEST_FOLDERS) $(PYTEST)

check: $(READY) ## format, layers, text, Python lint, links
	@tools/setup.sh check
	@tools/check_format.sh
	@$(PY) tools/check_layers.py
	@$(PY) tools/check_text.py
	@$(PY) -m ruff check -q --no-cache . && $(PY) -m ruff format -q --no-cache --check . && echo "check: ruff finds nothing"

format: $(READY) ## rewrite the C++ and Python files in the project's format
	@tools/setup.sh check
	@tools/check_format.sh --fix
	@$(PY) -m ruff check -q --no-cache --fix-only . && $(PY) -m ruff format -q --no-cache .

tidy: test-cpp ## clang-tidy over the C++ core (slow)
	@tools/setup.sh tidy
	@run-clang-tidy-19 -quiet -p build/release "$(CURDIR)/sterna/.*\.cc$$"

bench: build ## speed against peers and predicted against published times: a table and build/bench.json
	@$(PY) bench/run.py

docs: build ## the pages derived from the program itself, into build/docs
	@$(PY) tools/make_docs.py
	@$(PY) tools/check_text.py

asan: $(READY) ## the C++ unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --preset asan && cmake --build --preset asan && ctest --test-dir build/asan --output-on-failure

tsan: $(READY) ## the C++ unit tests under ThreadSanitizer
	@cmake --preset tsan && cmake --build --preset tsan && ctest --test-dir build/tsan --output-on-failure

coverage: build ## line coverage of sterna/ by the C++ and the Python tests
	@tools/coverage.sh

aarch64: $(READY) ## number formats and matmul on aarch64, emulated
	@tools/setup.sh cross
	@cmake --preset aarch64 && cmake --build --preset aarch64 && ctest --test-dir build/aarch64 --output-on-failure

clean: ## remove what was built; .venv stays
	rm -rf build

distclean: clean ## remove .venv too
	rm -rf .venv
