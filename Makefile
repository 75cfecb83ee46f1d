# Nightkeep: everything a clone needs, from a machine with Python 3.11, Java 17, git and make.
PYTHON ?= python3.11
UV := .uv/bin/uv
VENV := .venv
BIN := $(VENV)/bin
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export NIGHTKEEP_UV := $(CURDIR)/$(UV)

LOCKS := requirements.txt requirements-dev.txt jobs/requirements.txt
COMPILE = $(UV) pip compile -q pyproject.toml --generate-hashes --python-version 3.11 \
	--no-emit-find-links --no-emit-index-url --custom-compile-command "make lock"

.PHONY: lock
lock: $(UV)  ## resolve the three locks again
	$(COMPILE) --extra airflow -o requirements.txt
	$(COMPILE) -c requirements.txt -o jobs/requirements.txt
	$(COMPILE) --group dev -c requirements.txt -o requirements-dev.txt

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-uv.txt

$(VENV)/.synced: $(LOCKS) | $(UV)
	test -x $(BIN)/python || $(UV) venv -q -p $(PYTHON) $(VENV)
	$(UV) pip sync -q -p $(BIN)/python --require-hashes requirements.txt requirements-dev.txt
	touch $@

.PHONY: environment
environment: $(VENV)/.synced  ## the locked environment in .venv
