# Nightkeep, from a clone and a machine with Python 3.11, Java 17, git and make. `make` lists what can be made.
PYTHON ?= python3.11
UV := .uv/bin/uv
BIN := .venv/bin
WORK := $(CURDIR)/.work
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export NIGHTKEEP_UV := $(CURDIR)/$(UV)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export GX_ANALYTICS_ENABLED := false
# Airflow and Spark start many short-lived processes: none of them should compile what another one has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*  \#\# .*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/:.*  ## /\t/' | expand -t 16

# --- environment ---------------------------------------------------------------------------------------------

environment: .venv/.synced  ## the locked environment in .venv

$(UV): requirements-uv.txt
	$(PYTHON) -m venv .uv
	.uv/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-uv.txt
	touch $@

.venv/.synced: requirements.txt requirements-dev.txt pyproject.toml | $(UV)
	test -x $(BIN)/python || $(UV) venv -q -p $(PYTHON) .venv
	$(UV) pip sync -q -p $(BIN)/python --require-hashes requirements.txt requirements-dev.txt
	$(UV) pip install -q -p $(BIN)/python --no-deps -e .
	touch $@

COMPILE = $(UV) pip compile -q pyproject.toml --generate-hashes --python-version 3.11 \
	--no-emit-find-links --no-emit-index-url --custom-compile-command "make lock"

class-archive: .venv/.classes  ## the Java classes of a session as one file in .venv, by which sessions start quicker

.venv/.classes: .venv/.synced
	@echo "archiving Spark's classes, once for this environment (log in .venv/classes.log)"
	@$(BIN)/python -m nightkeep.spark.write_class_archive > .venv/classes.log 2>&1 || echo "none: see .venv/classes.log"
	@touch $@

lock: | $(UV)  ## resolve the three locks again
	$(COMPILE) --extra spark --extra glue --extra hive --extra postgres --group lock -o requirements.txt
	$(COMPILE) --extra spark -c requirements.txt -o jobs/requirements.txt
	$(COMPILE) --group dev -c requirements.txt -o requirements-dev.txt
	$(UV) pip compile -q docker/postgres.in -c requirements.txt --generate-hashes --python-version 3.11 \
		--no-emit-find-links --no-emit-index-url --custom-compile-command "make lock" -o docker/postgres.txt
	for lock in requirements.txt requirements-dev.txt jobs/requirements.txt; do \
		cat lock-header.txt $$lock > $$lock.new && mv $$lock.new $$lock; done

# --- one run over the samples --------------------------------------------------------------------------------

nightly weekly: export AIRFLOW_HOME := $(WORK)/airflow
nightly weekly: export AIRFLOW__CORE__DAGS_FOLDER := $(CURDIR)/dags
nightly weekly: export AIRFLOW__CORE__PLUGINS_FOLDER := $(CURDIR)/plugins
nightly weekly: export AIRFLOW__CORE__LOAD_EXAMPLES := false
nightly weekly: export AIRFLOW_CONN_NIGHTKEEP_SPARK := {"conn_type": "spark", "host": "local[*,3]"}
nightly weekly: export NIGHTKEEP_RETRY_DELAY_SECONDS := 1
nightly weekly: export PYTHONPATH := $(CURDIR)/jobs:$(CURDIR)/plugins
# The samples are small: a JVM that starts quickly does them with less CPU.
QUICK_JVM := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
nightly weekly: export SPARK_LAUNCHER_OPTS := $(QUICK_JVM)
nightly weekly: export SPARK_SUBMIT_OPTS = $(QUICK_JVM) -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=240m \
	$(shell $(BIN)/python -m nightkeep.spark.class_archive)

define run
@echo "preparing Airflow (SQLite in .work/airflow)"
@airflow db migrate > $(WORK)/airflow.log 2>&1 || { cat $(WORK)/airflow.log; exit 1; }
@echo "running the $(1) DAG (log in .work/$(1).log)"
@. $(WORK)/env && $(BIN)/python -m samples.watched_dag $(1) $(WORK)/$(1).log
@. $(WORK)/env && nightkeep history
@echo && echo "report: $$(ls -t .work/reports/pages/$(1)*.html | head -n 1)"
@echo "variables of a shell over these tables: . .work/env"
endef

tables: environment class-archive  ## new copies of the sample tables in .work, and .work/env for a shell over them
	@rm -rf $(WORK)
	@$(BIN)/python -m samples.working_copy $(WORK)

nightly: tables  ## copy the samples, run the nightly DAG over them once, print what it did
	$(call run,nightly)

weekly: environment  ## the weekly DAG over what is there, after planting what killed writers leave
	@test -f $(WORK)/env || $(MAKE) --no-print-directory tables
	@$(BIN)/python -m samples.leftovers $(WORK)/warehouse
	$(call run,orphan_sweep)

# --- proof ---------------------------------------------------------------------------------------------------

SIDE_BY_SIDE = -n 3 --dist loadfile --no-loadscope-reorder

tools:  ## list the tools that the tests need and this machine lacks, with the line that installs them
	@.ci/tools

# What waits with the lock of the interpreter takes no signal: its process ends, with the stack of each thread.
DEADLOCKED = -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true

test test-quick: export NIGHTKEEP_EXAMPLES := 0.2
test: tools environment  ## every engine, every kind of race and fault, three files at a time
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --without-extended $(DEADLOCKED) --durations 20 --durations-min 20

test-extended: tools environment  ## what make test leaves out: other combinations, all examples, longer histories
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --only-extended --timeout 3600

test-quick: environment  ## the tests that start no process (no JVM, no Airflow), for after each change
	$(BIN)/python -m pytest --quick -q -n 2 --dist worksteal

coverage: export COVERAGE_FILE := $(CURDIR)/.coverage/data
coverage: export SPARK_CONF_DIR := $(CURDIR)/.coverage
coverage: environment  ## the suite with the library's lines and branches counted; HTML in .coverage/html (TESTS=tests/... for a part)
	@rm -rf .coverage && mkdir .coverage
	@# A Python worker of Spark that is kept is killed with what it has counted.
	@echo "spark.python.worker.reuse false" > .coverage/spark-defaults.conf
	-$(BIN)/coverage run -m pytest $(SIDE_BY_SIDE) $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage html -q -d .coverage/html
	$(BIN)/coverage report

docs-test: environment  ## every command of README and docs as printed, in a fresh clone of what is committed
	NIGHTKEEP_DOCS=slow $(BIN)/python -m pytest tests/project/test_docs.py --timeout 0

format: environment  ## ruff's format, and what it can mend
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

lint: environment  ## ruff and mypy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

soak: tools environment  ## long random histories against the engines, damaged metadata (NIGHTKEEP_MUTATIONS, _DAMAGES), properties
	NIGHTKEEP_HISTORIES=2000 NIGHTKEEP_MUTATIONS=$${NIGHTKEEP_MUTATIONS:-20000} \
		NIGHTKEEP_DAMAGES=$${NIGHTKEEP_DAMAGES:-10000} $(BIN)/python -m pytest tests/soak -m soak --timeout 0
	NIGHTKEEP_EXAMPLES=$${NIGHTKEEP_EXAMPLES:-10} $(BIN)/python -m pytest --quick -q -n 2 --dist worksteal

test-cluster: tools environment  ## a cluster of processes: nights, a form and a sweep over REST, and each fault of docs/clusters.md
	$(BIN)/python -m pytest -q --cluster tests/cluster --timeout 3600

test-versions: environment  ## the wheels with each release of Spark and Airflow, an environment for each (VERSIONS="spark 3.5" for a part)
	$(BIN)/python -m tests.versions.matrix $(VERSIONS)

sabotage: environment  ## every kind of sabotage, and who catches it: the table of docs/proof.md (SABOTAGE="Delta" for a part)
	@PYTHONPATH=. $(BIN)/python -m tests.sabotage.table $(SABOTAGE)

mutants: environment  ## changed lines of rewrites and commits that fast tests let live (MUTANTS="--count 30 --seed 2 delta")
	@PYTHONPATH=.:jobs $(BIN)/python -m tests.mutations.code_mutants $(MUTANTS)

bench-paimon: environment  ## upgrade and compaction against Paimon Java (BENCH="--engine partial-update", "--no-vectors")
	PYTHONPATH=. $(BIN)/python benches/bench_paimon.py $(BENCH)

bench-memory: environment  ## peak memory of a task, and on ten times the rows, for the three formats (BENCH="'delta z-order' --rows 4")
	PYTHONPATH=. ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python benches/bench_memory.py $(BENCH)

bench-delta: environment  ## the Z-order against delta-spark and delta-rs, side by side (BENCH="--log" for a log of 100,000 commits, "--vacuum" for removed files)
	PYTHONPATH=. $(BIN)/python benches/bench_delta.py $(BENCH)

bench-clustered: environment  ## thirty nights of a clustered Delta table, against delta-spark's OPTIMIZE (BENCH="--cases 2")
	PYTHONPATH=. $(BIN)/python benches/bench_clustered.py $(BENCH)

bench-iceberg: environment  ## conversion of deletes, sorting, packing of ORC and Avro against iceberg-spark; upserts (BENCH="--rows 4 formats")
	PYTHONPATH=. $(BIN)/python benches/bench_iceberg.py $(BENCH)

bench-sweep: environment  ## orphan files against iceberg-spark, side by side; a million files with BENCH=--memory
	PYTHONPATH=. $(BIN)/python benches/bench_sweep.py $(BENCH)

bench-reader: environment  ## rows of Paimon tables against pyarrow, pypaimon and Spark (BENCH="--rows 4")
	PYTHONPATH=. $(BIN)/python benches/bench_reader.py $(BENCH)

bench-planning: environment  ## plans of tables of a million files, and of 10,000 buckets: seconds and peak memory (BENCH="parts iceberg --files 0.1")
	PYTHONPATH=. $(BIN)/python benches/bench_planning.py $(BENCH)

bench-many: environment  ## a night over many tables: with nothing to do, and with a little work each (BENCH="--idle 2000")
	PYTHONPATH=. $(BIN)/python benches/bench_many.py $(BENCH)

bench-discovery: environment  ## finding many tables in a warehouse, a bucket, a catalog and a metastore (BENCH="--tables 200")
	PYTHONPATH=. $(BIN)/python benches/bench_discovery.py $(BENCH)

bench-pages: environment  ## what pages, settling and the history cost after many nights (BENCH="--tables 200 --nights 90")
	PYTHONPATH=. $(BIN)/python benches/bench_pages.py $(BENCH)

bench-predictions: environment  ## what runs are expected to come to, beside what they come to, on two nights (BENCH="400000" rows)
	PYTHONPATH=. $(BIN)/python benches/bench_predictions.py $(BENCH)

bench-check: environment  ## the check of a version against one read of both by Spark (BENCH="--only delta --rows 4")
	PYTHONPATH=. $(BIN)/python benches/bench_check.py $(BENCH)

bench-audit: environment  ## the audit of a compaction against a plain read and EXCEPT ALL by Spark (BENCH="--rows 4")
	PYTHONPATH=. $(BIN)/python benches/bench_audit.py $(BENCH)

bench-kernels: environment  ## rows per second of each kernel
	PYTHONPATH=. $(BIN)/python -m tests.kernels.bench_kernels

samples: environment  ## write samples/ again with Paimon Java, delta-spark and Iceberg Java
	$(BIN)/python -m samples.make_samples
	$(BIN)/python -m samples.make_delta_samples
	$(BIN)/python -m samples.make_iceberg_samples

release-state: environment  ## what this release stores of runs, for tests of later ones; once per release
	PYTHONPATH=.:jobs:plugins $(BIN)/python -m tests.upgrade.make_state

policy-reference: environment  ## docs/policy-reference.md and dags/tables.schema.json, from the policy's model
	@$(BIN)/python -m docs_tools.policy_reference > docs/policy-reference.md
	@$(BIN)/python -c "import json, nightkeep.policy as p; print(json.dumps(p.json_schema(), indent=2))" > dags/tables.schema.json

schemas: environment  ## jobs/nightkeep/schemas, the JSON schemas of documents and answers, from their types
	@$(BIN)/python -m docs_tools.document_schemas

feature-pages: environment  ## docs/paimon-features.md, delta-features.md, iceberg-features.md and the table of docs/audit.md, from what the code handles
	@set -e; for format in paimon delta iceberg; do $(BIN)/python -m docs_tools.$${format}_features > docs/$$format-features.md; done
	@page=$$($(BIN)/python -m docs_tools.audit_features) && printf '%s\n' "$$page" > docs/audit.md

wheel: $(UV)  ## the packages as wheels, in dist/: the library, and what Airflow needs
	$(UV) build -q --wheel --out-dir dist
	$(UV) build -q --wheel --out-dir dist plugins

clean:  ## everything that was made here
	rm -rf .work .coverage .venv .uv
