# Everything a newcomer needs: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
READY  := $(VENV)/.ready
OLDEST := .venv-oldest
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
JOBS   ?= 2
K      ?=

.PHONY: setup demo test check lint types layers tests docs warmup bench soak fuzz spark-oldest coverage boundscheck clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "installing nearcast and the development tools into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[dev]"
	touch $(STAMP) $(READY)

# What users install: the demo needs no development tools.
$(READY): pyproject.toml constraints.txt
	@echo "installing nearcast into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[fast,pictures,spark]"
	touch $(READY)

demo: $(READY)
	$(BIN)/nearcast demo

test: check tests

check: lint types layers

lint: setup
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

tests: setup docs warmup
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not slow" $(if $(K),-k "$(K)")

docs: setup
	$(BIN)/nearcast methods --markdown docs/reference/methods.md
	$(BIN)/nearcast docs --out docs/reference/command-line.md
	$(BIN)/python -m nearcast.cli.api_reference docs/reference/python-api.md

warmup: setup
	$(BIN)/nearcast warmup

bench: setup
	$(BIN)/nearcast bench run --sweep quick

soak: setup warmup
	$(BIN)/pytest -n $(JOBS) -m slow

# Ten minutes of changed inputs: expressions, regions, GeoJSON, tables, saved indexes, change logs.
fuzz: setup warmup
	$(BIN)/python tests/fuzz $(SECONDS)

# The same suite as plain Python: this run measures coverage, since coverage cannot see compiled code.
coverage: setup
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not slow" --cov --cov-report=term

# The same suite with every array access checked.
boundscheck: setup
	NUMBA_BOUNDSCHECK=1 $(BIN)/nearcast warmup
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not slow"

# The DataFrame tests on the oldest PySpark that we support, in an environment of its own.
spark-oldest:
	$(PYTHON) -m venv $(OLDEST)
	grep --invert-match --ignore-case '^pyspark==' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --disable-pip-version-check --constraint $(OLDEST)/constraints.txt --editable ".[dev]" pyspark==4.0.0
	$(OLDEST)/bin/pytest tests/spark/test_frames.py tests/spark/test_frame_streams.py tests/spark/test_foreign_sessions.py

clean:
	rm -rf $(OLDEST) $(VENV) .cache build dist demo-output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
