PYTHON ?= python3
BIN := .venv/bin
# Python compiles what is imported; compiling every module of every package takes as long as the download
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench study figures docs mutants fuzz clean

help:  ## list what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: .venv/demo  ## show one result of each kind, on people who do not exist
	$(BIN)/unface demo --force

test: lint  ## lint, types, then every test
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadscope --no-loadscope-reorder --max-worker-restart 0

lint: .venv/stamp  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/stamp  ## measure speed
	$(BIN)/python benchmarks/run.py

study: .venv/stamp  ## repeat the tables on real faces: make study EMBEDDINGS=folder [OUT=study]
	$(BIN)/python -m studies.erasure "$(EMBEDDINGS)" "$(or $(OUT),study)"
	$(BIN)/python -m studies.tables "$(or $(OUT),study)"

figures: .venv/stamp  ## render every page that shows figures, and draw its pictures (needs chromium)
	$(BIN)/unface demo --force --quiet
	$(BIN)/python -m docs.pictures unface-demo
	$(BIN)/python -m docs.figures unface-demo

docs: .venv/stamp  ## build the documentation site into site/
	$(BIN)/mkdocs build --strict

mutants: .venv/stamp  ## break the code on purpose, see what no test notices: make mutants [ROOM=pairs]
	$(INSTALL) -e ".[mutation]"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/mutmut run $(if $(ROOM),"unface.$(ROOM).*")
	$(BIN)/mutmut results | grep -v ": not checked" || echo "none survived"

fuzz: .venv/stamp  ## read damaged files in bounded processes: make fuzz [MUTANTS=1000] [SEED=2026]
	$(BIN)/python -m tests.fuzz --mutants $(or $(MUTANTS),1000) --seed $(or $(SEED),2026)

clean:  ## remove what was made here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Core dependencies only. Neither stamp clears the environment, so `make demo` and `make test` share one.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $@

# Tests start hundreds of processes: what most of them import is compiled once, the giants are left to whoever imports them.
.venv/stamp: .venv/demo
	$(INSTALL) -e ".[test,dev]"
	# An S3 server for tests, in an environment of its own: it needs an older python-dateutil
	-$(PYTHON) -m venv .venv/moto && .venv/moto/bin/pip install --quiet --disable-pip-version-check --no-compile "moto[server]==5.2.5"
	-$(BIN)/python -m compileall -q -j 0 -x '/(torch|transformers|sympy|ray|networkx|openvino|tests?)/' .venv/lib src > /dev/null
	touch $@
