PYTHON ?= python3
BIN := .venv/bin
# Python compiles what is imported; compiling every module of every package takes as long as the download
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint golden bench study figures docs mutants fuzz clean snapshots check campaign style

help:  ## list what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: .venv/demo  ## show one result of each kind, on people who do not exist
	$(BIN)/unface demo --force

check: .venv/stamp  ## what changed, in a minute: lint, types, recorded numbers, nearest tests: make check [BASE=main] [BUDGET=60]
	$(BIN)/python -m tests.check $(if $(BASE),--base "$(BASE)") $(if $(BUDGET),--budget "$(BUDGET)")

# Types are one of the tests: mypy runs beside the others
test: style  ## lint, then types and every test
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadscope --no-loadscope-reorder --max-worker-restart 0

lint: style  ## style, layers and types
	$(BIN)/mypy

style: .venv/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

golden: .venv/stamp  ## show every number that differs from the recorded ones
	$(BIN)/python -m tests.golden

snapshots: .venv/stamp  ## write the texts of pages, tables and messages that tests compare, after rewording one
	$(BIN)/python -m tests.kit.snapshots

bench: .venv/stamp  ## measure speed and coverage
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
	$(BIN)/python -m tests.mutants run $(addprefix --room ,$(ROOM))

fuzz: .venv/stamp  ## read damaged files in bounded processes: make fuzz [MUTANTS=1000] [SEED=2026]
	$(BIN)/python -m tests.fuzz --mutants $(or $(MUTANTS),1000) --seed $(or $(SEED),2026)

campaign: .venv/stamp  ## kill and pair runs many times over, for hours: make campaign [KILLS=100] [SEED=1]
	for how in client terminate backend; do \
		$(BIN)/python -m tests.fire kills --store postgres --how $$how --kills $(or $(KILLS),100) --seed $(or $(SEED),1) || exit 1; \
	done
	$(BIN)/python -m tests.fire kills --store postgres --kills $(or $(KILLS),100) --seed $(or $(SEED),1) --shorter
	$(BIN)/python -m tests.fire kills --store lance --kills $(or $(KILLS),100) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.fire pairs --seed $(or $(SEED),1)
	$(BIN)/python -m tests.fire commands --seed $(or $(SEED),1)
	UNFACE_CAMPAIGN=1 $(BIN)/python -m pytest tests/stores/test_lance.py -k killed_twice

clean:  ## remove what was made here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
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
