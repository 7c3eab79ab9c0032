# make setup | demo | test | lint | test-slow | soak | wheel | clean
#
# PYTHON=/path/to/python3.12   which Python makes the virtual environment (3.11 to 3.13)
# TORCH_INDEX=URL              a package index with CPU-only torch, for the tests on Linux
# EXTRAS=aec,effects           what is installed beside the needed: the echo canceller, effects on voices
# ARGS=...                     given to pytest by `make test`

VENV ?= .venv
EXTRAS ?= aec,effects
BIN := $(VENV)/bin
STAMP := $(VENV)/.crosstalk-setup
TEST_STAMP := $(VENV)/.crosstalk-test
PACKAGING := pyproject.toml setup.py constraints.txt scripts/install.sh
export TORCH_INDEX

.PHONY: setup demo test test-setup lint test-slow soak wheel clean

setup: $(STAMP)

$(STAMP): $(PACKAGING)
	@bash scripts/install.sh $(VENV) $(EXTRAS)
	@touch $@
	@echo "== ready: $(BIN)/crosstalk"

$(TEST_STAMP): $(PACKAGING) | $(STAMP)
	@bash scripts/install.sh $(VENV) test,$(EXTRAS)
	@touch $@

test-setup: $(TEST_STAMP)
	@bash scripts/test_system_packages.sh

demo: setup
	@$(BIN)/crosstalk models pull
	@bash scripts/demo.sh $(BIN)/crosstalk

lint: $(TEST_STAMP)
	@echo "== ruff" && $(BIN)/ruff check .
	@echo "== mypy" && $(BIN)/mypy

test: test-setup lint
	@$(BIN)/crosstalk models pull
	@echo "== pytest" && $(BIN)/python -m pytest $(ARGS)

test-slow: test-setup
	@$(BIN)/python -m pytest -m "slow and not gpu" $(ARGS)

soak: test-setup
	@$(BIN)/python -m pytest -m soak -s $(ARGS)

wheel: $(TEST_STAMP)
	@$(BIN)/python -m pip wheel --no-deps --no-build-isolation --wheel-dir dist .

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache demo/out.wav demo/timeline.json demo/timeline.html
