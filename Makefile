# Needs Python 3.11 to 3.14 and make, nothing else. `make` lists the targets.
#   make test PYTHON=python3.13 VENV=.venv-3.13     another interpreter, beside the first
#   make test TESTS="tests/test_docs.py -x"         some tests only
#   make test WORKERS=0                             one after the other; many of them wait, so four fit on two cores

PYTHON ?= python3
VENV ?= .venv
TESTS ?=
WORKERS ?= 4
LOCK ?=

BIN := $(VENV)/bin
CREATED := $(VENV)/.created
INSTALLED := $(VENV)/.installed
PACKAGES := flows store models filmroom
PIP := $(BIN)/python -m pip --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile --quiet --system-certs --universal --generate-hashes --no-emit-index-url \
	--python-version 3.11 --annotation-style line --custom-compile-command "make lock" $(LOCK) pyproject.toml

export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.DEFAULT_GOAL := help
.PHONY: help demo test check format install lock screenshots clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s  %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## a whole season of an agent that gets better, without network or account
	@$(BIN)/filmroom demo

test: $(INSTALLED) ## run the tests; those of the docs are part of `check`
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(or $(TESTS),--ignore=tests/test_docs.py)

check: $(INSTALLED) ## lint, format, types, examples in docstrings and in the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q --doctest-modules --ignore-glob='*/migrations/*' $(PACKAGES)
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/test_docs.py

format: $(INSTALLED) ## put the code in its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

install: $(INSTALLED) ## create .venv with exactly what is locked

lock: $(CREATED) ## write requirements/ anew; LOCK=--upgrade takes newer releases
	$(PIP) install --quiet uv
	$(COMPILE) --output-file requirements/run.txt
	$(COMPILE) --group dev --constraint requirements/run.txt --output-file requirements/dev.txt

screenshots: $(INSTALLED) ## take the pictures in docs/screenshots anew; needs Chromium
	@$(BIN)/python docs/screenshots.py

clean: ## remove .venv and everything that was generated
	rm -rf "$(VENV)" build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# Removes and creates the environment anew where this did not end well before.
$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	  echo "filmroom needs Python 3.11 to 3.14 and '$(PYTHON)' is not: name one, as in make test PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot create environments: install its venv package (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(INSTALLED): $(CREATED) requirements/dev.txt pyproject.toml
	$(PIP) install --quiet --require-hashes --only-binary=:all: -r requirements/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
