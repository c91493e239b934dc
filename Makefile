PYTHON ?= python3
UV     := uv==0.13.9
VENV   := .venv
BIN    := $(VENV)/bin
SAMPLE := sample_traces/nextn_before.node.sqlite.xz
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start hundreds of processes, and each would compile every module for itself.
unexport PYTHONDONTWRITEBYTECODE

# uv.lock is the one list of versions and hashes. pip installs from it, so that whatever index and certificates a
# user's pip is configured for are used.
LOCKED  = $(BIN)/uv export --quiet --frozen --no-emit-project --no-default-groups --output-file
INSTALL = $(BIN)/pip install -qq --require-hashes --requirement

# A file's tests share what they make, so each file stays on one worker. For two processors there are three: tests of
# servers and commands wait as long as they work. Pages have one process beside them, for starting Chromium takes seconds.
# In the order of their names the files that take longest come early, and small ones fill the end.
PARALLEL = --numprocesses 3 --max-worker-restart 0 --dist loadfile --no-loadscope-reorder
COVER    = $(if $(CI),--cov)
ABREAST  = $(MAKE) --no-print-directory --jobs 2 --output-sync=target

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test quick lint types layers tests tests-without-pages tests-of-pages coverage nightly format system-deps nsys smoke lock clean

help: ## Say what each target does
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
	  printf '%-12s %s\n' "$$target" "$$text"; done

demo: $(VENV)/core.stamp ## Analyse a sample capture and write its reports to demo/
	@mkdir -p demo
	$(BIN)/bubblefinder analyze $(SAMPLE) -o demo/report.html -o demo/report.md -o demo/report.json

test: lint layers system-deps ## Everything a change must pass: style, layers, types and tests
	@$(ABREAST) tests-without-pages types tests-of-pages

lint: $(VENV)/dev.stamp ## Style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp ## Static types
	$(BIN)/mypy

layers: $(VENV)/dev.stamp ## Who may import whom
	$(BIN)/lint-imports

tests: $(VENV)/dev.stamp system-deps ## Every test, on two cores
	@$(ABREAST) tests-without-pages tests-of-pages

tests-without-pages:
	$(BIN)/pytest -q $(PARALLEL) -m "not browser" $(COVER)

tests-of-pages:
	$(BIN)/pytest -q -m browser tests/e2e

quick: $(VENV)/dev.stamp ## While working: style, layers, and the tests of what changed, in less than a minute
	$(BIN)/ruff check -q .
	$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports
	$(BIN)/pytest -q $(PARALLEL) -m "not browser" $$($(BIN)/python -m tests.changed)

coverage: $(VENV)/dev.stamp ## How much of the code the tests of its modules run; fails below the floor
	$(BIN)/pytest -q $(PARALLEL) tests/unit --cov

nightly: $(VENV)/dev.stamp ## Every law with many examples
	$(BIN)/pytest -q $(PARALLEL) --hypothesis-profile nightly -m "hypothesis and not browser"

format: $(VENV)/dev.stamp ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

system-deps: ## Install Chromium for the browser tests (as root or in CI; elsewhere says how)
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] || [ -n "$(CI)" ]; then \
	  $(SUDO) apt-get update -qq && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; \
	else \
	  echo "Chromium is missing, so the browser tests are not run. To run them: sudo apt-get install chromium"; \
	fi

nsys: ## Fetch the real Nsight Systems 2023.4 for its tests, to build/ (190 MB, from Debian's non-free component)
	@$(PYTHON) tests/real_nsys.py

smoke: $(VENV)/dev.stamp ## Install the built wheel alone, away from the sources, and use it
	rm -rf build/smoke && mkdir -p build/smoke
	$(BIN)/pip wheel -qq --no-deps --no-build-isolation --wheel-dir build/smoke .
	$(LOCKED) build/smoke/requirements.txt >/dev/null
	$(PYTHON) -m venv build/smoke/venv
	build/smoke/venv/bin/pip install -qq --require-hashes --requirement build/smoke/requirements.txt
	build/smoke/venv/bin/pip install -qq --no-deps build/smoke/*.whl
	cd build/smoke && venv/bin/bubblefinder --help >/dev/null
	cd build/smoke && venv/bin/bubblefinder analyze $(abspath $(SAMPLE)) -o report.json
	@echo "The wheel works on its own."

lock: $(BIN)/uv ## Refresh uv.lock from pyproject.toml
	$(BIN)/uv lock

clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) build demo dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("bubblefinder needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq $(UV)

$(VENV)/core.stamp: $(BIN)/uv uv.lock pyproject.toml
	@echo "Installing bubblefinder and its locked dependencies"
	@$(LOCKED) $(VENV)/core.txt --extra web --group build >/dev/null
	@$(INSTALL) $(VENV)/core.txt
	@$(BIN)/pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	@echo "Installing what the tests and checks need"
	@$(LOCKED) $(VENV)/dev.txt --all-extras --group dev >/dev/null
	@$(INSTALL) $(VENV)/dev.txt
	@touch $@
