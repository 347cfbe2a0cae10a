# Everything a person does with this repository. Needs CPython 3.11 or newer, make and git; the rest it installs
# into .venv. `make help` lists the targets.
# The first that is new enough; `make PYTHON=…` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
CHECKS := .venv-checks
CHECKS_READY := $(CHECKS)/.ready
UV := $(BIN)/uv pip
PIN := $(UV) compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header
# A file's tests stay together, since what they share (a stack of the laptop, AWS's stand-in) takes seconds to start; and
# in their order, so that those of the last files are quick and no worker ends long after the others. Three on two cores,
# since tests wait for stacks to start and end.
SPREAD := -n 3 --dist loadfile --no-loadscope-reorder
DATABASE_TESTS = $(wildcard tests/database tests/properties layers/*/tests/database layers/*/tests/properties)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup fix demo up down test test-16 test-at test-upgrade simulate check fuzz format lint types template imports security calls docs bench build requirements clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(READY): requirements-uv.txt requirements.txt pyproject.toml
	@echo "setting up $(VENV) (once; under a minute)"
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found on the PATH; name one: make PYTHON=/path/to/python3.13 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq --require-hashes -r requirements-uv.txt
	@$(UV) sync -q --require-hashes --python $(BIN)/python requirements.txt
	@$(UV) install -q --no-deps --no-build-isolation --python $(BIN)/python -e .
	@touch $@

setup: $(READY) ## create .venv (the other targets do it by themselves)

demo: $(READY) ## start the laptop stack, fire every rule once, print what happened, stop
	@$(BIN)/signalbox demo

up: $(READY) ## start the laptop stack and keep it up (Ctrl-C or `make down` stops it)
	@$(BIN)/signalbox up

down: $(READY) ## stop the laptop stack
	@$(BIN)/signalbox down

test: $(READY) ## run every test
	@$(BIN)/python -m pytest $(SPREAD)

# The oldest that a wheel brings; SIGNALBOX_TEST_DATABASE names any other server, 14 or later.
test-16: $(READY) ## run the tests that need only a database on PostgreSQL 16
	@SIGNALBOX_TEST_POSTGRES=16 $(BIN)/python -m pytest $(SPREAD) $(DATABASE_TESTS) tests/flow/test_slot_races.py

# Needs a C compiler, for a clock that is shifted for Python and PostgreSQL alike.
test-at: $(READY) ## run the tests as if it were another instant: make test-at AT=2028-02-29T12:00Z
	@$(BIN)/python -m tests.clock $(or $(AT),next) $(SPREAD) tests/unit layers/*/tests/unit $(DATABASE_TESTS)

test-upgrade: $(READY) ## run the last release's database tests on the schema of this tree
	@$(BIN)/python -m tests.upgrade

# One that fails is printed with its last steps, and fails again by its number: make simulate SEED=17
simulate: $(READY) ## simulate workers, sweeps and operators with faults, by the seed: make simulate SEED=1 SEEDS=1000
	@$(BIN)/python -m tests.simulation $(or $(SEED),1) $(or $(SEEDS),1)

check: format lint types template imports ## what CI checks beside the tests

format: $(READY) ## is the code formatted? (`make fix` formats it)
	@$(BIN)/ruff format --check .

fix: $(READY) ## format the code and mend what the linter can mend
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(READY) ## lint the code
	@$(BIN)/ruff check .

types: $(READY) ## check the types, strictly
	@$(BIN)/mypy
	@for tests in layers/*/tests; do $(BIN)/mypy $$tests || exit 1; done

template: $(READY) ## lint the template
	@SAM_CLI_TELEMETRY=0 $(BIN)/sam validate --lint --region us-east-1
	@$(BIN)/cfn-lint

imports: $(READY) ## functions → packs → engine, and nothing the other way
	@$(BIN)/lint-imports --no-logo

# Nothing is fetched or sent but the question about requirements: the policies that checkov could download are not.
security: $(READY) $(CHECKS_READY) ## hold the template against checkov, and the requirements against known faults
	@$(BIN)/python -m checks.scan $(CHECKS)/bin/checkov
	@$(BIN)/python -m checks.audit

fuzz: $(READY) $(CHECKS_READY) ## send the HTTP API of a stack on this machine what its description allows, and what it forbids
	@$(BIN)/python -m checks.fuzz $(CHECKS)/bin/schemathesis

# It brings a hundred packages of its own, in versions that need not agree with the project's.
$(CHECKS_READY): $(READY) checks/requirements.txt
	@echo "setting up $(CHECKS) (once)"
	@$(PYTHON) -m venv $(CHECKS)
	@$(UV) sync -q --require-hashes --python $(CHECKS)/bin/python checks/requirements.txt
	@touch $@

calls: $(READY) ## write the list of AWS calls that the code makes, from the tests
	@SIGNALBOX_RECORD_CALLS=1 $(BIN)/python -m pytest -q $(SPREAD) tests/database layers/*/tests/database

docs: $(READY) ## write the generated parts of the documents
	@$(BIN)/python -m docs.generate

bench: $(READY) $(PEERS_READY) ## print the benchmarks, as ratios in one run
	@$(BIN)/python -m bench

# The job queues that ours is measured beside, in a place of their own: they are no part of the project.
$(PEERS_READY): $(READY) bench/peers/peers.txt
	@echo "setting up $(PEERS) (once)"
	@$(PYTHON) -m venv $(PEERS)
	@$(UV) sync -q --require-hashes --python $(PEERS)/bin/python bench/peers/peers.txt
	@touch $@

build: $(READY) ## build functions and layers for Lambda, without Docker
	@MAKELEVEL=0 SAM_CLI_TELEMETRY=0 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/sam build

requirements: $(READY) ## pin all requirements, with hashes
	@$(PIN) --no-emit-package playwright --no-emit-package pyee requirements.in layers/*/requirements.in -o requirements.txt
	@$(PIN) -c requirements.txt $(filter-out layers/jwt/%,$(wildcard layers/*/requirements.in)) -o layers/dependencies/requirements.txt
	@$(PIN) -c requirements.txt layers/jwt/requirements.in -o layers/jwt/requirements.txt
	@$(PIN) tests/support/lambda_runtime/requirements.in -o tests/support/lambda_runtime/requirements.txt
	@$(PIN) bench/peers/peers.in -o bench/peers/peers.txt
	@$(PIN) checks/requirements.in -o checks/requirements.txt
	@echo uv | $(PIN) -c requirements.txt - -o requirements-uv.txt

clean: ## remove what was built and installed
	rm -rf $(VENV) $(PEERS) $(CHECKS) .aws-sam .signalbox
