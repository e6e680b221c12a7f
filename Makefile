# Every habit of the project as one word. `make` alone lists them.
#
# Stamps inside .venv make a second run fast; they fall due again when the
# declared or pinned dependencies change. `make clean` and then
# `make PYTHON=/path/to/python3.12 setup` choose another interpreter.

PYTHON  ?=
VENV    := .venv
BIN     := $(VENV)/bin
# Not as quiet as with --quiet twice, which leaves out why a network failed, too.
PIP     := $(BIN)/python -W ignore:DEPRECATION -m pip --disable-pip-version-check --quiet
RUNTIME := $(VENV)/.stamp-runtime
SPARK   := $(VENV)/.stamp-spark
DEVELOP := $(VENV)/.stamp-develop
# Rather than what is first on PATH: distributions build theirs with profile-guided optimization,
# with which a call takes a seventh less of the processor. (Elsewhere it may be a stub.)
SYSTEM_PYTHON := $(if $(filter Linux,$(shell uname)),/usr/bin/python3)
# Only folders that exist, so that checks work while the tree grows.
CHECKED := $(wildcard src tests verification benchmarks scripts)
COMPILED := build/compiled
WHEEL_OF_COMPILED = HATCH_BUILD_HOOK_ENABLE_CUSTOM=true PIP_CONSTRAINT=constraints.txt $(PIP) wheel --no-deps .
# Folders, too: they change when one of the sources goes.
SOURCES := $(shell find src -name __pycache__ -prune -o -name '*.py' -print -o -type d -print) pyproject.toml constraints.txt scripts/compiled_wheel.py

# Whoever names an interpreter is told if .venv has another one already.
ifneq ($(and $(PYTHON),$(wildcard $(BIN)/python),$(if $(filter clean,$(MAKECMDGOALS)),,asked)),)
WHICH := -c 'import sys; print(sys.base_prefix, sys.hexversion)' 2>/dev/null
ifneq ($(shell $(PYTHON) $(WHICH)),$(shell $(BIN)/python $(WHICH)))
$(info setup: PYTHON is ignored: $(VENV) is there; `make clean` first)
endif
endif

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-postgres setup-java test check protos demo demo-namespace cluster wheel compiled test-compiled bench bench-peer bench-snapshots snapshot-figures soak fuzz verify clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(DEVELOP) ## create .venv with everything needed to work on the code

setup-postgres: $(DEVELOP) ## make sure a PostgreSQL server is at hand for tests
	@$(BIN)/python scripts/ensure-postgres

# Most of the time is spent waiting for nodes that were killed: three at a time, a file after the
# other, the longest first.
test: setup setup-postgres setup-java ## run all tests; narrow with ARGS="tests/store -k rename"
	@$(BIN)/python -m pytest $(or $(ARGS),--numprocesses 3 --dist loadfile --no-loadscope-reorder)

check: setup ## lint, formatting and types
	@$(BIN)/ruff check --quiet $(CHECKED)
	@$(BIN)/ruff format --quiet --check $(CHECKED) || \
	    { echo "check: formatting differs; run $(BIN)/ruff format $(CHECKED)" >&2; exit 1; }
	@$(BIN)/mypy --strict --explicit-package-bases src benchmarks verification

protos: setup ## generate the code of wire/proto from its .proto files
	@$(BIN)/python scripts/generate-protos

setup-java: $(SPARK) ## make sure Java is at hand for Spark and Hadoop's programs
	@$(BIN)/python scripts/ensure-java

demo: $(SPARK) setup-java ## a cluster in a temporary folder, used by Spark and Hadoop's own shell
	@$(BIN)/python -m cairnfs.demo $(ARGS)

demo-namespace: $(RUNTIME) ## the namespace alone, and a conflict between NameNodes being resolved
	@$(BIN)/python -m cairnfs.demo_namespace $(ARGS)

cluster: $(RUNTIME) ## start a cluster on this machine that stays, and say how to use it
	@$(BIN)/cairn cluster up $(ARGS)

wheel: setup ## a wheel in dist/ with the NameNode compiled: a third quicker, needs a C compiler
	@echo "wheel: compiling; this takes two minutes"
	@rm -f dist/cairnfs-*.whl
	@$(WHEEL_OF_COMPILED) --wheel-dir dist
	@ls dist/cairnfs-*.whl

compiled: setup $(COMPILED)/.stamp ## the same unpacked, for PYTHONPATH=build/compiled

test-compiled: compiled setup-postgres ## run the tests of the NameNode on what is compiled
	@PYTHONPATH=$(COMPILED) $(BIN)/python -m pytest --numprocesses 3 --dist loadfile \
	    $(or $(ARGS),$(addprefix tests/,attributes model namenode namesystem store testing transaction wire))

bench: setup setup-postgres ## run the benchmarks
	@$(BIN)/python benchmarks/run.py $(ARGS)

bench-peer: setup setup-java $(if $(PLAIN),,compiled) ## measure beside a real Apache HDFS, which is installed for it; PLAIN=1 without compiling
	@PYTHONPATH=$(if $(PLAIN),,$(COMPILED)) $(BIN)/python -m benchmarks.against_hdfs $(ARGS)

bench-snapshots: setup setup-postgres ## measure snapshots, roll-back, clones and differences
	@$(BIN)/python -m benchmarks.snapshots $(ARGS)

snapshot-figures: setup ## draw what bench-snapshots has measured, and write docs/snapshot-figures.md
	@$(BIN)/python -m benchmarks.snapshots.plots benchmarks/results/snapshots.json docs/figures docs/snapshot-figures.md

soak: setup setup-postgres ## run 100,000 random operations beside the model
	@$(BIN)/python tests/model/soak.py $(ARGS)

fuzz: setup ## throw 1,000,000 random calls and transfers at the protocols and at running nodes
	@PYTHONPATH=. $(BIN)/python tests/fuzz/fuzz.py $(ARGS)

verify: setup setup-java ## prove the rules of inherited attributes with TLC, and compare 1,000,000 at random
	@$(BIN)/python -m verification.verify $(ARGS)

clean: ## remove .venv, caches and build output
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(COMPILED)/.stamp: $(SOURCES) | $(DEVELOP)
	@echo "compiled: compiling; this takes two minutes"
	@rm -rf $(COMPILED) build/wheel
	@$(WHEEL_OF_COMPILED) --wheel-dir build/wheel
	@$(PIP) install --no-deps --target $(COMPILED) build/wheel/*.whl
	@touch $@

# A cluster needs the runtime alone: neither compiler nor PostgreSQL, Java or git.
$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	@echo "setup: installing the runtime into $(VENV)"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(SPARK): pyproject.toml constraints.txt | $(BIN)/python
	@echo "setup: installing the runtime and Spark into $(VENV) (about 450 MB, once)"
	@$(PIP) install -c constraints.txt -e '.[spark]'
	@touch $(RUNTIME) $@

$(DEVELOP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "setup: installing runtime, Spark, test and development packages into $(VENV)"
	@$(PIP) install -c constraints.txt -e '.[spark,dataframes,test,dev,verify]'
	@touch $(RUNTIME) $(SPARK) $@

# The first interpreter that is new enough and can make environments. A name on PATH may be a
# shim that refuses to run, so each candidate is tried.
$(BIN)/python:
	@new_enough=; chosen=; \
	for candidate in $(or $(PYTHON),$(SYSTEM_PYTHON) python3.11 python3.12 python3.13 python3.14 python3 python); do \
	    $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	    new_enough=$$candidate; \
	    $$candidate -c 'import ensurepip, venv' >/dev/null 2>&1 || continue; \
	    chosen=$$candidate; break; \
	done; \
	if [ -z "$$new_enough" ]; then \
	    echo "setup: needs Python 3.11 or newer; name one with PYTHON=..." >&2; exit 1; \
	elif [ -z "$$chosen" ]; then \
	    echo "setup: $$new_enough lacks the venv module (on Debian: apt-get install python3-venv)" >&2; exit 1; \
	fi; \
	echo "setup: creating $(VENV) with $$($$chosen --version) ($$chosen)"; \
	rm -rf $(VENV); $$chosen -m venv $(VENV)
