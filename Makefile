# Each target does all its own set-up; `make` alone lists them.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help artefacts demo demo-groups test test-fast test-kubo check bench bench-bindings bench-broker bench-reorgs bench-exchanges bench-fuzz bench-follow bench-gas bench-groups bench-invariants bench-kill bench-kill-broker bench-kill-groups bench-lies bench-matching bench-pipeline bench-verify docs clean system-deps preflight bench-overlay bench-overlay-faults bench-idle bench-soak
MAKEFLAGS += --no-print-directory

# Programs set up by make come first: tools/solc finds `node`, and Python finds `anvil` and `forge`, by name.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# A stamp carries the hash of what it was made from, so a changed lock file sets up again and an unchanged one costs nothing.
hash = $(shell cat $(1) | cksum | tr ' ' -)
CORE := .setup/core-$(call hash,pyproject.toml constraints.txt)
NATIVE := .setup/native-$(call hash,pyproject.toml $(wildcard native/Cargo.* native/pyproject.toml native/src/*.rs native/src/*/*.rs))
SPARK := .setup/spark-$(call hash,pyproject.toml constraints.txt src/proofcast/pipeline/pom.xml tools/spark-archive)
OVERLAY := .setup/overlay-$(call hash,pyproject.toml constraints.txt)
BROWSER := .setup/browser-$(call hash,pyproject.toml constraints.txt)
CONTRACTS := .setup/contracts-$(call hash,contracts/package.json contracts/package-lock.json)
KAFKA := .setup/kafka-$(call hash,src/proofcast/testing/broker/pom.xml)
KUBO_VERSION := 0.43.0
KUBO := .setup/kubo-$(KUBO_VERSION)
EVERYTHING = $(CORE) $(NATIVE) $(CONTRACTS) $(SPARK) $(OVERLAY) $(BROWSER) $(KAFKA)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(CORE) $(CONTRACTS) $(SPARK) ## the whole story, checked line by line; STAY=1 leaves the dashboard open
	@proofcast demo $(if $(STAY),--stay)

demo-groups: $(CORE) ## three people, one server, one lie, and how it is caught
	@proofcast group demo

test: $(EVERYTHING) ## run every test
	@tools/test

test-fast: $(CORE) ## run the tests that need no chain, in less than a minute
	@python -m pytest --numprocesses 2 --dist loadgroup -m 'not chain and not slow'

test-kubo: $(CORE) $(OVERLAY) $(KUBO) ## our peers with a real node of IPFS, built here; minutes the first time
	@PROOFCAST_KUBO=$(CURDIR)/$(KUBO) python -m pytest -q tests/overlay/test_kubo.py

check: $(EVERYTHING) ## lint, types, formatting and the structure of the house
	@ruff check .
	@ruff format --check .
	@mypy
	@cd contracts && forge fmt --check
	@python -m pytest -q tests/test_house.py

bench: bench-bindings bench-broker bench-reorgs bench-exchanges bench-fuzz bench-follow bench-gas bench-groups bench-invariants bench-kill bench-kill-broker bench-kill-groups bench-lies bench-matching bench-pipeline bench-verify bench-overlay bench-overlay-faults bench-idle bench-soak ## run every measurement

bench-bindings: $(CORE) ## routing keys with wildcards among a million bindings
	@python -m bench.bindings

bench-broker: $(CORE) $(NATIVE) $(SPARK) ## the broker: delay, rates, fan-out, replay raw and verified, very many topics
	@python -m bench.broker

bench-reorgs: $(CORE) $(NATIVE) ## a thousand random reorg histories while delivering, ten through processes
	@python -m bench.reorgs

bench-exchanges: $(CORE) $(CONTRACTS) ## gas of exchanges and queues, beside the reference
	@python -m bench.exchanges

bench-fuzz: $(CORE) $(NATIVE) ## a million damaged inputs to everything that parses
	@python -m bench.fuzz

bench-follow: $(CORE) $(NATIVE) $(SPARK) ## from a block at the node to its logs in the outbox, in milliseconds
	@python -m bench.follow

bench-gas: $(CORE) $(CONTRACTS) ## measure gas against the reference and the paper
	@python -m bench.gas

bench-groups: $(CORE) $(NATIVE) ## the group server under load, the devices that seal, recovery
	@python -m bench.groups

bench-kill-broker: $(CORE) $(NATIVE) ## the broker killed 160 times while it delivers, with both stores; random histories
	@python -m bench.kill_broker

bench-kill-groups: $(CORE) $(NATIVE) ## the group server killed 200 times: nothing promised is lost
	@python -m bench.kill_groups

bench-kill: $(CORE) $(NATIVE) $(SPARK) ## the pipeline killed fifty times: nothing lost, nothing twice
	@python -m bench.kill

bench-lies: $(CORE) ## every lie of a group server and of clients, many times; 20 minutes at most
	@python -m bench.lies

bench-invariants: $(CORE) $(CONTRACTS) ## a million random calls against the contracts' invariants
	@python -m bench.invariants

bench-matching: $(CORE) $(NATIVE) ## events matched per second with a million subscriptions, beside other ways
	@python -m bench.matching

bench-pipeline: $(CORE) $(NATIVE) $(SPARK) ## verified tables on Spark, beside go-ethereum in one thread
	@python -m bench.pipeline

bench-idle: $(CORE) $(NATIVE) ## ten thousand connections that wait: memory, and how soon they hear
	@python -m bench.broker_idle

bench-soak: $(CORE) $(NATIVE) $(CONTRACTS) $(SPARK) ## ten minutes of a thousand events a second, to every kind of subscriber
	@python -m bench.soak

bench-verify: $(CORE) $(NATIVE) ## receipts verified per second, beside go-ethereum and the paper
	@python -m bench.verify

bench-overlay: $(CORE) $(OVERLAY) ## measure the overlay against the reference's published figures
	@python -m bench.overlay

bench-overlay-faults: $(CORE) ## a thousand seeds of crashes, partitions and take-overs
	@python -m bench.overlay_faults

artefacts: $(CORE) $(CONTRACTS) ## compile the contracts into the Python package
	@python tools/artefacts.py

docs: $(EVERYTHING) ## regenerate the reference and run every block of the documentation
	@mkdir -p docs/reference && python tools/reference.py > docs/reference/cli.md
	@python -m tools.figures > docs/reference/figures.md
	@python -m pytest -q tests/test_docs.py

system-deps: $(CORE) ## install missing optional system packages by apt, as root
	@tools/system-deps

clean: ## remove everything that make made
	rm -rf .venv .setup native/target .pytest_cache .mypy_cache .ruff_cache .hypothesis dist contracts/node_modules contracts/out contracts/cache
	find src tests bench tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

preflight:
	@tools/preflight

.venv/bin/pip: | preflight
	@$$(tools/preflight python) -m venv .venv

# hatchling builds the package; installed here, because an isolated build would take an unpinned one.
$(CORE): | .venv/bin/pip
	@echo 'set-up: Python packages'
	@pip install --quiet --constraint constraints.txt hatchling editables
	@pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev,broker,groups]'
	@tools/preflight node || tools/node-from-wheel
	@mkdir -p .setup && rm -f .setup/core-* && touch $@

# Not `npm ci`: it refuses a lock without the Foundry binaries of every platform, and not every registry carries them all.
# anvil and forge are linked beside Python: the npm scripts of the same name would put a Node.js process between us and them.
$(CONTRACTS): | $(CORE)
	@echo 'set-up: contract tool chain'
	@cd contracts && npm install --no-save --loglevel=error >/dev/null
	@ln -sf $(CURDIR)/contracts/node_modules/@foundry-rs/*-*/bin/* .venv/bin/
	@rm -f .setup/contracts-* && touch $@

# Without Rust the Python definitions serve; `proofcast doctor` says which.
$(NATIVE): | $(CORE)
	@tools/native
	@rm -f .setup/native-* && touch $@

$(KUBO): | $(CORE)
	@echo 'set-up: kubo, four CPU minutes'
	@tools/kubo $(KUBO_VERSION) $@

$(SPARK): | $(CORE)
	@echo 'set-up: Spark'
	@pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[spark]'
	@tools/spark-jars
	@tools/spark-archive >/dev/null 2>.setup/spark-archive.log || { cat .setup/spark-archive.log; false; }
	@rm -f .setup/spark-* && touch $@

$(OVERLAY): | $(CORE)
	@echo 'set-up: libp2p'
	@pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[overlay]'
	@rm -f .setup/overlay-* && touch $@

$(KAFKA): | $(CORE)
	@echo 'set-up: Kafka'
	@tools/kafka-jars
	@rm -f .setup/kafka-* && touch $@

# The browser itself is the machine's Chromium; this is what drives it in tests.
$(BROWSER): | $(CORE)
	@echo 'set-up: browser driver'
	@pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[browser]'
	@rm -f .setup/browser-* && touch $@
