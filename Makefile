PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench study docs clean

help:  ## list what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: .venv/stamp  ## run the whole loop on people who do not exist
	$(BIN)/unface demo --force

test: lint  ## lint, types, then every test
	$(BIN)/python -m pytest

lint: .venv/stamp  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/stamp  ## measure speed
	$(BIN)/python benchmarks/run.py

study: .venv/stamp  ## repeat the tables on real faces: make study EMBEDDINGS=folder [OUT=study]
	$(BIN)/python -m studies.erasure "$(EMBEDDINGS)" "$(or $(OUT),study)"
	$(BIN)/python -m studies.tables "$(or $(OUT),study)"

docs: .venv/stamp  ## redraw pictures and tables of the demo and of the rooms (needs chromium)
	$(BIN)/unface demo --force --quiet
	$(BIN)/python docs/picture.py unface-demo
	$(BIN)/python docs/tables.py unface-demo
	$(BIN)/python -m docs.architecture_picture

clean:  ## remove what was made here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test,dev]"
	touch $@
