# Everything a newcomer needs: `make demo` and `make test`. Each sets up what it uses.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-versions test-dependencies lint types unit chaos chaos-outside soak simulate fuzz bench docs format lock clean check-python check-java

help: ## List every target
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: check-java $(STAMP) ## Run the example job: spend per customer in five-minute windows, on embedded Spark
	@$(BIN)/python -m examples.demo

test: check-java $(STAMP) ## Check style, then types beside every test
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python scripts/run_tests.py $(ARGS)

test-versions: check-java ## Run unit and integration tests and a job on Spark with every supported Python; tests in ARGS
	@$(PYTHON) scripts/test_versions.py $(ARGS)

test-dependencies: check-java $(STAMP) ## Run tests with other minor versions of PySpark and uvicorn; ARGS=pyspark-4.1
	@$(BIN)/python scripts/test_dependencies.py $(ARGS)

lint: $(STAMP) ## Check style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## Check types
	@$(BIN)/mypy

unit: $(STAMP) ## Run the tests that start no process and use no network (a minute)
	@$(BIN)/python -m pytest -q -n 2 tests/unit

chaos: check-java $(STAMP) ## Kill, stop, cut and fill what jobs run on; FAULTS=200 SEED=7 EXECUTION=epochs PROGRAMS=5
	@$(BIN)/python -m tests.chaos --faults $(or $(FAULTS),20) $(if $(SEED),--seed $(SEED)) \
	  $(if $(EXECUTION),--execution $(EXECUTION)) $(if $(PROGRAMS),--programs $(PROGRAMS)) $(ARGS)

chaos-outside: check-java $(STAMP) ## The same with Kafka and PostgreSQL in it; FAULTS=60 RECORDS=10000000 SEED=7
	@$(BIN)/python -m tests.chaos.outside --faults $(or $(FAULTS),13) --records $(or $(RECORDS),1000000) \
	  $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: check-java $(STAMP) ## Run three jobs for an hour with restarts and show what grows; MINUTES=60
	@$(BIN)/python -m tests.chaos.soak --minutes $(or $(MINUTES),60) $(ARGS)

simulate: $(STAMP) ## Run whole clusters in virtual time with what breaks drawn from a seed; RUNS=200 SEED=7
	@$(BIN)/python -m firesteel.testing.simulation --runs $(or $(RUNS),50) --seed $(or $(SEED),1) $(ARGS)

fuzz: $(STAMP) ## Run programs drawn at random against an oracle; PROGRAMS=500 SEED=7 ON=spark or ON=cluster, more in ARGS
ifeq ($(ON),cluster)
	@$(MAKE) --no-print-directory chaos PROGRAMS=5 FAULTS=$$(( $(or $(PROGRAMS),50) * 6 )) SEED=$(or $(SEED),7)
else
	@$(BIN)/python -m firesteel.testing.programs --programs $(or $(PROGRAMS),500) --seed $(or $(SEED),7) \
	  $(if $(ON),--on $(ON)) $(ARGS)
endif

bench: check-java $(STAMP) ## Measure Firesteel and its peers; options in ARGS="--cases keyed_sum --json"
	@$(BIN)/python -m benchmarks $(ARGS)

docs: $(STAMP) ## Write the generated pages of docs/ anew
	@$(BIN)/python scripts/generate_docs.py

format: $(STAMP) ## Format the code
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .

lock: $(STAMP) ## Resolve the dependencies anew into requirements.lock
	@$(BIN)/pip install -q uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.10 --generate-hashes --group dev -o requirements.lock pyproject.toml

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock pyproject.toml | check-python
	@echo "Setting up $(VENV) (once)…"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "Firesteel needs Python 3.10 or newer: install it, or say make PYTHON=/path/to/python3." >&2; exit 1; }

check-java: check-python
	@PYTHONPATH=. $(PYTHON) -m firesteel.spark.session.java
