# Each target does all its own set-up; `make` alone lists them.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help artefacts demo test test-fast check bench bench-gas bench-invariants docs clean system-deps preflight
MAKEFLAGS += --no-print-directory

# Programs set up by make come first: tools/solc finds `node`, and Python finds `anvil` and `forge`, by name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A stamp carries the hash of what it was made from, so a changed lock file sets up again and an unchanged one costs nothing.
hash = $(shell cat $(1) | cksum | tr ' ' -)
CORE := .setup/core-$(call hash,pyproject.toml constraints.txt)
CONTRACTS := .setup/contracts-$(call hash,contracts/package.json contracts/package-lock.json)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(CORE) $(CONTRACTS) ## run the main job on a development chain
	@proofcast demo

test: $(CORE) $(CONTRACTS) ## run every test
	@tools/test

test-fast: $(CORE) ## run the tests that need no chain, in less than a minute
	@python -m pytest -m 'not chain and not slow'

check: $(CORE) $(CONTRACTS) ## lint, types, formatting and the structure of the house
	@ruff check .
	@ruff format --check .
	@mypy
	@cd contracts && forge fmt --check
	@python -m pytest -q tests/test_house.py

bench: bench-gas bench-invariants ## run every measurement

bench-gas: $(CORE) $(CONTRACTS) ## measure gas against the reference and the paper
	@python -m bench.gas

bench-invariants: $(CORE) $(CONTRACTS) ## a million random calls against the contracts' invariants
	@python -m bench.invariants

artefacts: $(CORE) $(CONTRACTS) ## compile the contracts into the Python package
	@python tools/artefacts.py

docs: $(CORE) $(CONTRACTS) ## regenerate the reference and run every block of the documentation
	@mkdir -p docs/reference && python tools/reference.py > docs/reference/cli.md
	@python -m pytest -q tests/test_docs.py

system-deps: $(CORE) ## install missing optional system packages by apt, as root
	@tools/system-deps

clean: ## remove everything that make made
	rm -rf .venv .setup .pytest_cache .mypy_cache .ruff_cache .hypothesis dist contracts/node_modules contracts/out contracts/cache
	find src tests bench tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

preflight:
	@tools/preflight

.venv/bin/pip: | preflight
	@$$(tools/preflight python) -m venv .venv

# hatchling builds the package; installed here, because an isolated build would take an unpinned one.
$(CORE): | .venv/bin/pip
	@echo 'set-up: Python packages'
	@pip install --quiet --constraint constraints.txt hatchling editables
	@pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@tools/preflight node || tools/node-from-wheel
	@mkdir -p .setup && rm -f .setup/core-* && touch $@

# Not `npm ci`: it refuses a lock without the Foundry binaries of every platform, and not every registry carries them all.
# anvil and forge are linked beside Python: the npm scripts of the same name would put a Node.js process between us and them.
$(CONTRACTS): | $(CORE)
	@echo 'set-up: contract tool chain'
	@cd contracts && npm install --no-save --loglevel=error >/dev/null
	@ln -sf $(CURDIR)/contracts/node_modules/@foundry-rs/*-*/bin/* .venv/bin/
	@rm -f .setup/contracts-* && touch $@
