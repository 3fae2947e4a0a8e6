# Needs Python 3.11 or newer, make, and a way to the package registries; no Java. `make help` lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMMAND_STAMP := $(VENV)/.stamp-command
SPARK_STAMP := $(VENV)/.stamp-spark
ENV_STAMP := $(VENV)/.stamp-environment
JAR_STAMP := $(VENV)/.stamp-jars
KERNELS := state_model/compiled_kernels/index.json
TOOLS := $(VENV)/tools
SOURCES := state_model sharelens jobs pyspark_kafka_log
KERNEL_SOURCES := $(shell grep -rlE 'columnar.kernels import|import kernels' --include='*.py' state_model sharelens)
PYTEST := $(BIN)/python -m pytest
AIRFLOW := .venv-airflow
AIRFLOW_STAMP := $(AIRFLOW)/.stamp-environment
FAST := not spark and not compat and not broker and not airflow and not slow and not soak and not components
# They read every module; `make lint` checks them.
HOUSE_RULES := tests/unit/test_tidy.py
PARALLEL ?= 2
# Tests that wait for processes, locks and timeouts rather than for the processor.
WAITING ?= 4
workers = --numprocesses $(1) --dist worksteal
# Workers for components that run beside Airflow, which takes minutes in one process.
BESIDE ?= 3
# Free memory that tests need to write their lakes to it.
MEMORY_KIB := 8388608

# Bytecode is made once, of the tests too: without it every worker would rewrite and compile them all, for seconds.
unexport PYTHONDONTWRITEBYTECODE

##@ Using it

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*##/ {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(ENV_STAMP) $(JAR_STAMP) $(KERNELS) ## Make .venv with the command .venv/bin/sharelens, all it needs, and tools for development
	@$(BIN)/python -m compileall -q $(SOURCES) bench dags tools
	@echo "ready: $(BIN)/sharelens --help"

.PHONY: setup-airflow
setup-airflow: $(AIRFLOW_STAMP) ## Make .venv-airflow with Airflow, which runs dags/ (see docs/how-to/schedule.md)
	@echo "ready: AIRFLOW__CORE__DAGS_FOLDER=$(CURDIR)/dags $(AIRFLOW)/bin/airflow standalone"

.PHONY: demo
demo: ## Show the whole story: broker, clients with faults, pipeline on Spark, answers
	@$(MAKE) --no-print-directory --jobs=2 $(JAR_STAMP) $(KERNELS)
	@$(BIN)/sharelens demo

##@ Checking it

# Lakes of tests lie in memory where there is room: a tenth less processor time, and no waiting for the disk.
IN_MEMORY = if [ -w /dev/shm ] && [ "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt $(MEMORY_KIB) ]; then \
	  export TMPDIR=$$(mktemp -d /dev/shm/tests.XXXXXX); trap 'rm -rf "$$TMPDIR"' EXIT; \
	fi

# Tests with Spark share one session, so they are one process. Those that wait for brokers and for the commands of pages
# are many at once; all of these run beside the others, which compute, and are printed after them. They share lakes in
# the folder of the run.
define run_tests
@$(IN_MEMORY); \
	logs=$$(mktemp -d); failed=0; export SHARELENS_TEST_RUN_FOLDER=$$(mktemp -d); \
	$(PYTEST) tests/spark -m "spark and $(1)" >"$$logs/spark" 2>&1 & spark=$$!; \
	$(PYTEST) tests/broker tests/docs -m "$(1)" $(call workers,$(WAITING)) >"$$logs/waiting" 2>&1 & waiting=$$!; \
	trap 'kill $$spark $$waiting' INT TERM; \
	$(PYTEST) -m "not spark and not broker and $(1)" --ignore $(HOUSE_RULES) --ignore tests/docs $(call workers,$(PARALLEL)) || failed=$$?; \
	wait $$waiting || failed=$$?; wait $$spark || failed=$$?; \
	cat "$$logs"/*; rm -rf "$$logs" "$$SHARELENS_TEST_RUN_FOLDER"; exit $$failed
endef

.PHONY: test
test: setup promtool ## Run all tests but the components and the soak
	$(call run_tests,not soak and not components)

.PHONY: test-components
test-components: setup setup-airflow browser azurite node-clients kcat ## Run the tests with programs of other projects, such as S3 servers, Kafka in Java, clients of Kafka, Airflow (at most a quarter of an hour)
	@$(IN_MEMORY); log=$$(mktemp); failed=0; marked="components and not soak"; \
	export SHARELENS_TEST_RUN_FOLDER=$$(mktemp -d); \
	$(PYTEST) tests/dags -m "$$marked" >"$$log" 2>&1 & airflow=$$!; trap 'kill $$airflow' INT TERM; \
	$(PYTEST) tests/components tests/broker tests/unit/sharelens/report tests/unit/sharelens/pages -m "$$marked" \
	  $(call workers,$(BESIDE)) || failed=$$?; \
	wait $$airflow || failed=$$?; cat "$$log"; rm -rf "$$log" "$$SHARELENS_TEST_RUN_FOLDER"; exit $$failed

.PHONY: test-fast
test-fast: $(ENV_STAMP) ## Run the tests that need no Spark and take less than a twentieth of a second each (at most twenty seconds)
	@$(IN_MEMORY); logs=$$(mktemp -d); failed=0; others=""; export SHARELENS_TEST_RUN_FOLDER=$$(mktemp -d); \
	export SHARELENS_HYPOTHESIS=$${SHARELENS_HYPOTHESIS:-quick}; \
	run_part() { $(PYTEST) -m "$(FAST)" --ignore $(HOUSE_RULES) --part $$1/$(PARALLEL); }; \
	for part in $$(seq 2 $(PARALLEL)); do run_part $$part >"$$logs/$$part" 2>&1 & others+=" $$!"; done; \
	trap 'kill $$others' INT TERM; run_part 1 || failed=$$?; for other in $$others; do wait $$other || failed=$$?; done; \
	find "$$logs" -type f -exec cat {} +; rm -rf "$$logs" "$$SHARELENS_TEST_RUN_FOLDER"; exit $$failed

# All tests are imported here once: the many processes that run them would each compile what no one has compiled yet.
.PHONY: lint
lint: $(ENV_STAMP) ## Check style, types, import contracts, spelling, the house rules, and that all tests can be imported
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell $(SOURCES) bench dags tools tests docs conf *.md Makefile pyproject.toml
	@echo "$(PYTEST) --collect-only"; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(PYTEST) --collect-only -q -m "" >"$$log" 2>&1 || { cat "$$log"; exit 1; }
	$(PYTEST) -q $(HOUSE_RULES)

.PHONY: format
format: $(ENV_STAMP) ## Bring the code into the one format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# Debian's package holds it; unpacking one file of it installs no daemon.
.PHONY: promtool
promtool: | $(VENV)/bin/uv ## Get promtool, which tests the alert rules, unless it is there
	@if command -v promtool >/dev/null || [ -x $(TOOLS)/promtool ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then \
	  echo "make promtool: no promtool and no apt-get here; the tests of the alert rules are skipped" >&2; exit 0; \
	fi; \
	mkdir -p $(TOOLS) && cd $(TOOLS) && rm -f prometheus_*.deb || exit 1; \
	{ apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }; } \
	  && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool && rm -f prometheus_*.deb \
	  || echo "make promtool: it can't be fetched; the tests of the alert rules are skipped" >&2

# Azure's blobs for tests, from Microsoft, as a package of npm.
AZURITE_VERSION := 3.35.0
.PHONY: azurite
azurite: | $(VENV)/bin/uv ## Get Azurite, which stands for Azure's blobs in tests, unless it is there
	@if [ -f $(TOOLS)/azurite/node_modules/azurite/package.json ]; then exit 0; fi; \
	if ! command -v npm >/dev/null; then \
	  echo "make azurite: no npm here; the tests against Azure's blobs are skipped" >&2; exit 0; \
	fi; \
	mkdir -p $(TOOLS)/azurite && npm install --silent --no-audit --no-fund --ignore-scripts \
	  --prefix $(TOOLS)/azurite azurite@$(AZURITE_VERSION) >/dev/null 2>&1 \
	  || echo "make azurite: it can't be fetched; the tests against Azure's blobs are skipped" >&2

# Clients of Kafka in JavaScript, which drive the light broker in tests.
KAFKAJS_VERSION := 2.2.4
PLATFORMATIC_VERSION := 1.35.0
NODE_CLIENTS := $(TOOLS)/node-clients
.PHONY: node-clients
node-clients: | $(VENV)/bin/uv ## Get kafkajs and @platformatic/kafka, whose tests drive the light broker, unless they are there
	@is_installed() { grep -qs "\"version\": \"$$2\"" "$(NODE_CLIENTS)/node_modules/$$1/package.json"; }; \
	if is_installed kafkajs $(KAFKAJS_VERSION) && is_installed @platformatic/kafka $(PLATFORMATIC_VERSION); then exit 0; fi; \
	if ! command -v npm >/dev/null; then \
	  echo "make node-clients: no npm here; the tests with Kafka's clients in JavaScript are skipped" >&2; exit 0; \
	fi; \
	mkdir -p $(NODE_CLIENTS) && npm install --silent --no-audit --no-fund --ignore-scripts \
	  --prefix $(NODE_CLIENTS) kafkajs@$(KAFKAJS_VERSION) @platformatic/kafka@$(PLATFORMATIC_VERSION) >/dev/null 2>&1 \
	  || echo "make node-clients: they can't be fetched; the tests with Kafka's clients in JavaScript are skipped" >&2

# Behind the browser: one apt-get at a time.
.PHONY: kcat
kcat: | browser ## Install kcat, whose test drives the light broker (Debian, as root; nothing to do where one is)
	@command -v kcat && exit; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends kcat >/dev/null && command -v kcat && exit; \
	fi; \
	echo "make kcat: no kcat on this machine, and none could be installed (that takes root and apt-get); its test is skipped" >&2

.PHONY: bench
bench: setup ## Measure speed and memory, and print a table
	$(BIN)/python -m bench

.PHONY: browser
browser: ## Install the Chromium that tests of the report drive (Debian, as root; nothing to do where one is)
	@found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }; \
	found && exit; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null && found && exit; \
	fi; \
	echo "make browser: no Chromium on this machine, and none could be installed (that takes root and apt-get);" \
	  "tests of the report in a browser are skipped until there is one" >&2

# Strict: a dead link or anchor, and a page without a place in the navigation, fail it.
.PHONY: site
site: $(ENV_STAMP) ## Build the documentation as a site, build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "ready: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site"

# For machines without a network: wheels, Delta's jars, a Java runtime, checksums and install.sh in dist/.
.PHONY: bundle
bundle: setup ## Write one archive that installs without a network, for this Python and machine
	@$(BIN)/python -m tools.make_bundle

# The wheel with compiled kernels: for this Python, machine and C library.
.PHONY: wheel
wheel: $(ENV_STAMP) $(KERNELS) ## Write the wheel with compiled kernels, for this Python and machine, to dist/
	@$(BIN)/python -m hatchling build --target wheel --directory dist

# Python packages for spark.archives: docs/how-to/run-on-a-cluster.md.
.PHONY: dist-env
dist-env: setup ## Write an environment for Spark's executors as one archive, for this Python and machine
	@$(BIN)/python -m tools.make_dist_env

.PHONY: soak
soak: setup ## Kill runs hundreds of times and compare with an undisturbed lake
	$(call run_tests,soak)

.PHONY: clean
clean: ## Remove .venv and whatever was built
	rm -rf $(VENV) $(AIRFLOW) state_model/compiled_kernels build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment without pip (a Debian without python3-venv) borrows the pip or uv of the system.
$(VENV)/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "make setup: $(PYTHON) is older than 3.11; name another one: make PYTHON=python3.11 setup" >&2; exit 1; }
	@rm -rf $(VENV)
	@if $(PYTHON) -c 'import pip' 2>/dev/null; then \
	  $(PYTHON) -m venv --without-pip $(VENV) \
	  && $(PYTHON) -m pip --python $(BIN)/python install --quiet --constraint constraints.txt uv; \
	elif $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --constraint constraints.txt uv; \
	elif command -v uv >/dev/null; then \
	  $(PYTHON) -m venv --without-pip $(VENV) && ln -s "$$(command -v uv)" $(BIN)/uv; \
	else \
	  echo "make setup: $(PYTHON) can make no environment: neither ensurepip, pip nor uv is there." \
	    "On Debian: apt-get install python3-venv" >&2; exit 1; \
	fi

INSTALL = VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --python $(BIN)/python \
	  --constraint constraints.txt --build-constraint constraints.txt

# What the demo needs. Python writes bytecode of what it imports.
$(COMMAND_STAMP): pyproject.toml constraints.txt | $(VENV)/bin/uv
	@echo "installing the command into $(VENV) ..."
	@$(INSTALL) --editable '.[broker,explore,quality,report,workload]' --group kernels
	@touch $@

# Apart, because pip and uv build pyspark for a quarter of a minute: kernels are compiled meanwhile.
$(SPARK_STAMP): $(COMMAND_STAMP)
	@$(INSTALL) --requirements pyproject.toml --extra spark
	@touch $@

# The package itself stays as it is: others use it meanwhile.
$(ENV_STAMP): $(SPARK_STAMP)
	@echo "installing tools for development into $(VENV) ..."
	@$(INSTALL) --requirements pyproject.toml --extra all --group dev --group docs
	@touch $@

# Resolved once by Spark's own resolver, then kept; no later start needs the network.
$(JAR_STAMP): sharelens/spark/jars.py $(SPARK_STAMP)
	@$(BIN)/python -m sharelens.spark.jars
	@touch $@

# Compiled kernels lie in the package, here and in each wheel that is built here: no question waits for a compiler.
$(KERNELS): $(KERNEL_SOURCES) state_model/columnar/shipped_kernels.py tools/ship_kernels.py $(COMMAND_STAMP)
	@$(BIN)/python -m tools.ship_kernels
	@touch $@

# Airflow pins much of what it uses: an environment of its own keeps it away from Spark, and Spark away from it.
$(AIRFLOW_STAMP): pyproject.toml constraints.txt $(ENV_STAMP)
	@echo "installing into $(AIRFLOW) ..."
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(AIRFLOW)
	@$(BIN)/uv pip install --quiet --python $(AIRFLOW)/bin/python --constraint constraints.txt \
	  --build-constraint constraints.txt --editable '.[airflow]'
	@touch $@
