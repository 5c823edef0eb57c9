# Everything runs from here. A fresh machine needs Python 3.11 or newer, and make; the rest is set up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?=
TESTS ?= tests
export PYTHONWARNINGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint types unit fix generate verify baseline bench robustness clean

help: ## Say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## Make the environment in .venv, and nothing else

$(READY): pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	@# Debian packs venv's pip apart (python3-venv); its own pip can stand in.
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) \
		&& $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } \
		|| { rm -rf $(VENV); echo "Python's venv module needs: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --editable clients/python --group dev
	@touch $@

run: setup ## Serve on 127.0.0.1:50051, allowed to fetch from this machine
	@exec $(BIN)/cardkeeper serve --allow-loopback $(if $(DATA),--data $(DATA))

demo: setup ## Show what a naive client and a Cardkeeper client experience
	@$(BIN)/python examples/demo/demo.py

test: lint types unit ## Pass every check and test

lint: setup verify ## Style, layers, contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code --path protos/cardkeeper
	$(BIN)/buf breaking --against protos/baseline.binpb

types: setup ## Static types, strict
	$(BIN)/mypy

unit: setup ## All tests, in parallel; TESTS=path narrows
	$(BIN)/pytest --quiet --numprocesses 2 --dist loadgroup $(TESTS)

fix: setup ## Repair what can be repaired by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/buf format --write --path protos/cardkeeper

generate: setup ## Make stubs and rules from the protos
	$(BIN)/python tools/generate.py

verify: setup ## Check that the stubs and rules are what the protos say
	$(BIN)/python tools/generate.py --check

baseline: setup ## Let the contract as it is now be what later changes must not break
	$(BIN)/buf build --output protos/baseline.binpb

bench: setup ## Measure against floors; writes build/bench.json
	@command -v h2load >/dev/null || { echo "bench needs h2load: apt-get install nghttp2-client"; exit 1; }
	PYTHONPATH=benchmarks $(BIN)/python benchmarks/run.py

robustness: setup ## Random faults against the stream's promises, two minutes; SEED=n SEEDS=n SECONDS=n
	PYTHONPATH=tests:tests/support:clients/python/src $(BIN)/python -m robustness \
		--seed $(or $(SEED),1) --seeds $(or $(SEEDS),3) --seconds $(or $(SECONDS),30)

clean: ## Remove what was made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
