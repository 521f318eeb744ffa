# Loupe. `make run` and `make test` set up what they need themselves; the second time they start at once.

PYTHON ?= python3
PORT ?= 8501
HOST ?= localhost
PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-run setup-test run test check fix bench load

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: setup-test ## prepare everything: packages, the tests' browser, the bundled model
	@$(PY) -m engine.prepare

setup-run:
	@$(PYTHON) tools/setup_env.py run

setup-test:
	@$(PYTHON) tools/setup_env.py test

run: setup-run ## start the app: make run, or make run PORT=8502
	@$(PY) -m explorer.launch --host $(HOST) --port $(PORT)

test: check ## format check, lint, types, then every test: two files at a time, those that drive the app one by one
	@$(PY) -m pytest -n 2 --dist loadfile --ignore=tests/browser
	@$(PY) -m pytest tests/browser

check: setup-test ## format check, lint and types
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy

fix: setup-test ## format, and repair what lint can repair
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

bench: setup-test ## measure this machine against the budgets
	@$(PY) -m benchmarks

load: setup-test ## send classes of 1, 8, 32 and 100 students to a server here
	@$(PY) -m benchmarks.load
