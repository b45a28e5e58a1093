# Part of Bastile, under the MIT License. See LICENSE.
#
# `make demo` and `make test` are all a user needs; `make help` lists the rest.

BUILD  ?= build
PREFIX ?= /usr/local
# SETUP=true skips the installation of packages.
SETUP  ?= scripts/setup.sh
# LLVM 22; MLIR_DIR, the folder of its MLIRConfig.cmake, takes another than Debian's.
LLVM   ?= $(if $(MLIR_DIR),$(abspath $(MLIR_DIR)/../../..),/usr/lib/llvm-22)
LIT    ?= $(firstword $(wildcard $(LLVM)/bin/lit) $(BUILD)/venv/bin/lit)
# For the benchmarks; the tests keep to Debian's Python.
PYTHON ?= python3
# For the fuzzers, all together.
SECONDS ?= 600
# For the wheels: by default that of the tests, for a release all that are found.
PYTHONS ?=
CMAKEFLAGS ?=

export BASTILE_BUILD := $(abspath $(BUILD))

.DEFAULT_GOAL := all
.PHONY: all setup demo test test-long fuzz bench accuracy static wheel release docs format lint install clean help

all: setup $(BUILD)/build.ninja ## build everything into build/bin
	@ninja -C $(BUILD)

setup: ## install what is missing (Debian 12; says what other systems need)
	@$(SETUP)

$(BUILD)/build.ninja: | setup
	@cmake -S . -B $(BUILD) -G Ninja \
	  -DPython_EXECUTABLE=$(abspath $(BUILD))/venv/bin/python $(CMAKEFLAGS)

demo: all ## compile, run and check example kernels
	@scripts/demo.sh

test: all ## run every test: lit, unit and Python
	@rm -f $(BUILD)/test-results.xml
	@$(LIT) -v --xunit-xml-output $(BUILD)/test-results.xml test

test-long: all ## run the tests that `make test` leaves out
	@BASTILE_TEST_LONG=1 $(LIT) -v test/numerics/long \
	  $$(grep -rl --include='test_*.py' 'pytest\.mark\.long' test)

fuzz: setup ## look for inputs that crash, for SECONDS (600), with sanitizers
	@scripts/fuzz.py --seconds $(SECONDS)

bench: all ## measure on the host and, with a GPU and PyTorch, beside other libraries
	@$(PYTHON) benchmarks/host.py
	@if command -v nvidia-smi >/dev/null; then \
	  PYTHONPATH=$(BUILD)/python $(PYTHON) -m bastile_bench kernels; \
	else echo "no NVIDIA GPU: its benchmark is skipped"; fi

accuracy: all ## measure errors beside PyTorch's (PYTHON) and write docs/accuracy.md
	@targets=host; \
	if command -v nvidia-smi >/dev/null; then targets="host gpu"; fi; \
	$(PYTHON) benchmarks/accuracy.py --targets $$targets

static: setup ## build build-static/bin/tilec, which runs without LLVM installed
	@cmake -S . -B build-static -G Ninja -DBASTILE_LINK_STATIC=ON \
	  -DBASTILE_PYTHON=OFF $(CMAKEFLAGS) >/dev/null
	@ninja -C build-static tilec tile-run call-batch
	@strip -o build-static/tilec.stripped build-static/bin/tilec
	@size=$$(stat -c %s build-static/tilec.stripped); \
	  echo "build-static/tilec.stripped: $$size bytes"; \
	  test $$size -lt 64000000

release: setup ## build and check the sdist and a wheel for each of PYTHONS (3.10 to 3.14)
	@scripts/release.sh $(PYTHONS)

wheel: setup ## build the wheel for each Python of PYTHONS into build-wheel/dist
	@scripts/build-wheels.sh $(PYTHONS)

docs: all ## regenerate docs/ops.md and docs/passes.md
	@scripts/generate-docs.sh docs

format: setup ## clang-format every C++ file, ruff every Python file
	@git ls-files -z --cached --others --exclude-standard '*.cpp' '*.h' \
	  | xargs -0 -r clang-format-22 -i
	@$(BUILD)/venv/bin/ruff format --no-cache --quiet

lint: all ## clang-format, clang-tidy on what changed (LINT_BASE=all: all), ruff, pyright
	@scripts/lint.sh

install: all ## install the tools under PREFIX (/usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove the build folders
	@rm -rf $(BUILD) build-fuzz build-static build-wheel build-release gpu-package

help: ## list these targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
