# Everything runs in .venv, which the first call makes and later calls leave alone.
#   make test PYTHON=python3.12    another interpreter (for a .venv that does not exist yet)
#   make test ARGS="-k voting"     more arguments for the command behind the target
PYTHON ?= python3
JOBS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo check test browser docs notebooks lint audit bench crash fuzz clean
.NOTPARALLEL:

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-run  ## label a pile of embedded images, compare PrEN with its variants: two minutes
	$(BIN)/pren demo $(ARGS)

# torch would start as many threads in every worker as there are cores. worksteal keeps neighbours together, which share
# fitted models, and lets a worker that is done take tests of the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

check: lint  ## lint and the quick tests (no command line, no backbones): for while you work, about a minute
	$(PYTEST) -m "not slow" --ignore tests/integration --hypothesis-profile quick $(ARGS)

test: $(VENV)/.installed-dev  ## run all tests on $JOBS processes (2 unless told)
	$(PYTEST) $(ARGS)

# Elsewhere than on Debian, install Chromium or Chrome yourself and let CHROMIUM name it.
browser: $(VENV)/.installed-dev  ## install what tests of reports need: Chromium (with apt-get, as root) and playwright
	[ -n "$$CHROMIUM" ] || command -v chromium || command -v google-chrome || { apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends chromium fonts-dejavu-core fonts-liberation; }
	$(PIP_INSTALL) -e '.[browser]'

docs: $(VENV)/.installed-docs  ## build the documentation as a site, in site/, strictly
	$(BIN)/mkdocs build --strict --quiet $(ARGS)

notebooks: $(VENV)/.installed-dev  ## execute the notebooks under docs and keep what they put out
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python docs/execute.py

lint: $(VENV)/.installed-dev  ## ruff (rules and format), mypy and bandit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src

audit: $(VENV)/.installed-dev  ## compare the tested versions with known vulnerabilities (needs a connection)
	$(BIN)/python .ci/audit.py $(ARGS)

bench: $(VENV)/.installed-dev  ## run the benchmarks: ratios of timings in one run
	$(BIN)/python -m benchmarks $(ARGS)

crash: $(VENV)/.installed-dev  ## kill commands at random moments and at those of writing, let them go on, compare (ten minutes)
	$(BIN)/python -m campaigns.crash $(ARGS)

fuzz: $(VENV)/.installed-dev  ## feed mutated data, photographs, run folders and command lines to pren for ten minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m campaigns.fuzz $(ARGS)

clean:  ## remove build artefacts and caches (runs/ and .venv stay)
	rm -rf build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks campaigns -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# .venv.partial stands beside .venv while it is being made, so that an interrupted creation starts over.
# A .venv made by hand is used as it is. A stamp is written only after pip has succeeded.
define make-venv
if [ -e $(VENV).partial ] || [ ! -x $(BIN)/python ]; then \
	touch $(VENV).partial && $(PYTHON) -m venv --clear $(VENV) && rm $(VENV).partial; fi
endef

$(VENV)/.installed-run: pyproject.toml constraints.txt
	$(make-venv)
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	$(make-venv)
	$(PIP_INSTALL) -e '.[dev]'
	touch $(VENV)/.installed-run $@

$(VENV)/.installed-docs: pyproject.toml constraints.txt
	$(make-venv)
	$(PIP_INSTALL) -e '.[docs]'
	touch $(VENV)/.installed-run $@
