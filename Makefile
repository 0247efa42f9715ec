# One command each; `make help` lists them. Only Python 3.11+ and PyPI are needed (Java 17+ for the Spark parts).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Tests start hundreds of Python processes: compiling the package in each of them takes longer than what most of them do.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow coverage test-deep test-peers test-sql-deep test-spark-versions test-executors java-peer java-rest nessie sedona check format bench bench-java bench-page docs docs-serve dbt clean lock wheel

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(f"icefloe needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Try: make PYTHON=python3.12") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.product: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[spark]'
	@touch $@

$(VENV)/.dev: $(VENV)/.product
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.product ## set up and run the main job on the embedded default
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev ## set up and pass all tests
	$(BIN)/python -m pytest -q -n $(WORKERS)

# It takes as long to make as it saves in one run of `make test`; the slow tests start dozens of JVMs.
$(VENV)/.classes: $(VENV)/.dev
	$(BIN)/python -m tests.java_options
	@touch $@

test-slow: $(VENV)/.dev $(VENV)/.classes ## the heavy tests, and a thousand examples for each property
	$(BIN)/python -m pytest -q -n $(WORKERS) -m "not deep" --hypothesis-profile=thorough

coverage: $(VENV)/.dev ## the tests without Spark, and which lines and branches they reach; fails below the floor in pyproject.toml
	$(BIN)/python -m pytest -q -n $(WORKERS) --cov --cov-report=term --ignore=tests/spark --ignore=tests/peers --ignore=tests/test_bench.py

test-deep: $(VENV)/.dev ## tens of thousands of random tables and predicates
	$(BIN)/python -m pytest -q -n $(WORKERS) -m deep

JAVA_VENV := .venv-java
JAVA_JARS := $(JAVA_VENV)/jars
# By name and version, wherever Maven is set up to look.
JAVA_ARTIFACTS := org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 org.xerial:sqlite-jdbc:3.49.1.0

$(JAVA_VENV)/.ready: Makefile
	rm -rf $(JAVA_VENV)
	$(PYTHON) -m venv $(JAVA_VENV)
	$(JAVA_VENV)/bin/python -m pip install -q --disable-pip-version-check 'pyspark[sql]==4.1.4'
	mkdir -p $(JAVA_JARS)
	for artifact in $(JAVA_ARTIFACTS); do \
		mvn -q -B dependency:get -Dtransitive=false -Dartifact=$$artifact && \
		mvn -q -B dependency:copy -Dartifact=$$artifact -DoutputDirectory=$(CURDIR)/$(JAVA_JARS) || exit 1; \
	done
	@touch $@

java-peer: $(JAVA_VENV)/.ready ## fetch Java Iceberg, which some tests compare with

JAVA_REST := .venv-java-rest
JAVA_REST_SOURCES := tests/peers/java_rest

$(JAVA_REST)/.ready: $(JAVA_REST_SOURCES)/pom.xml $(JAVA_REST_SOURCES)/LoopbackServer.java
	rm -rf $(JAVA_REST)
	mkdir -p $(JAVA_REST)/classes
	mvn -q -B -f $(JAVA_REST_SOURCES)/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(JAVA_REST)/jars
	javac -nowarn -proc:none -cp '$(JAVA_REST)/jars/*' -d $(JAVA_REST)/classes $(JAVA_REST_SOURCES)/LoopbackServer.java
	@touch $@

java-rest: $(JAVA_REST)/.ready ## fetch Java Iceberg's REST server, and the kit that judges REST servers

NESSIE := .venv-nessie
NESSIE_ARTIFACT := org.projectnessie.nessie:nessie-quarkus:0.99.0:jar:runner
# A quarter of a gigabyte; it needs Java 21.
$(NESSIE)/.ready: Makefile
	rm -rf $(NESSIE)
	mkdir -p $(NESSIE)
	mvn -q -B dependency:copy -Dartifact=$(NESSIE_ARTIFACT) -DoutputDirectory=$(CURDIR)/$(NESSIE)
	@touch $@

nessie: $(NESSIE)/.ready ## fetch Nessie, a REST catalog server of another make

SEDONA := .venv-sedona
SEDONA_ARTIFACTS := org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0 org.datasyslab:geotools-wrapper:1.8.0-33.1

$(SEDONA)/.ready: Makefile
	rm -rf $(SEDONA)
	mkdir -p $(SEDONA)
	for artifact in $(SEDONA_ARTIFACTS); do \
		mvn -q -B dependency:get -Dtransitive=false -Dartifact=$$artifact && \
		mvn -q -B dependency:copy -Dartifact=$$artifact -DoutputDirectory=$(CURDIR)/$(SEDONA) || exit 1; \
	done
	@touch $@

sedona: $(SEDONA)/.ready ## fetch Apache Sedona and the Spark that it is made for, which tests/spark/test_sedona.py asks
	$(MAKE) .venv-spark-4.0.1/.ready SPARK_VERSION=4.0.1

DBT_VENV := .venv-dbt
# dbt has many packages of its own, so it is not one of those for development; dbt-core 2 is another program.
$(DBT_VENV)/.ready: Makefile pyproject.toml
	rm -rf $(DBT_VENV)
	$(PYTHON) -m venv $(DBT_VENV)
	$(DBT_VENV)/bin/python -m pip install -q --disable-pip-version-check -e '.[spark]' 'dbt-core>=1.11,<1.12' 'dbt-spark>=1.11,<1.12'
	@touch $@

dbt: $(DBT_VENV)/.ready ## set up dbt-spark, for examples/dbt and its test

CLICKHOUSE_VENV := .venv-clickhouse
# Half a gigabyte, so not one of the packages for development.
$(CLICKHOUSE_VENV)/.ready: Makefile
	rm -rf $(CLICKHOUSE_VENV)
	$(PYTHON) -m venv $(CLICKHOUSE_VENV)
	$(CLICKHOUSE_VENV)/bin/python -m pip install -q --disable-pip-version-check 'chdb-core==26.9.0'
	@touch $@

test-peers: $(VENV)/.dev java-peer java-rest nessie $(CLICKHOUSE_VENV)/.ready ## set up all peers, compare with them, and write docs/interoperability.md and docs/interoperability-sql.md
	ICEFLOE_PEERS_PAGE=docs/interoperability.md ICEFLOE_SQL_PAGE=docs/interoperability-sql.md $(BIN)/python -m pytest -q tests/peers -m "not deep"

test-sql-deep: $(VENV)/.dev java-peer ## random SQL histories on Java Iceberg and on us: START and COUNT, or SEEDS=1,5-9; goes on where it was stopped
	$(BIN)/python -m tests.peers.sql.histories

SPARK_VERSION ?= 4.0.1
SPARK_VENV := .venv-spark-$(SPARK_VERSION)

$(SPARK_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	grep -v -e '^pyspark==' -e '^py4j==' constraints.txt > $(SPARK_VENV)/constraints.txt
	$(SPARK_VENV)/bin/python -m pip install -q --disable-pip-version-check -c $(SPARK_VENV)/constraints.txt -e '.[dev]' 'pyspark[connect]==$(SPARK_VERSION)'
	@touch $@

test-spark-versions: $(SPARK_VENV)/.ready ## the tests of Spark on its oldest version, or on SPARK_VERSION
	@# PySpark 4.1 leaves sockets to the collector of garbage, which says so.
	$(SPARK_VENV)/bin/python -m pytest -q -W ignore::pytest.PytestUnraisableExceptionWarning tests/spark

test-executors: $(VENV)/.dev ## rows with deletes, read by executors in JVMs of their own
	ICEFLOE_TEST_MASTER='local-cluster[2,1,1024]' $(BIN)/python -m pytest -q -m "not deep" tests/spark/test_live_rows.py

WHEEL_VENV := build/wheel

wheel: $(BIN)/python ## build the wheel, install it into an empty environment, and try it there
	rm -rf dist $(WHEEL_VENV)
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w dist .
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt dist/*.whl
	cd $(WHEEL_VENV) && bin/python -I $(CURDIR)/examples/plain_python.py

check: $(VENV)/.dev ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev ## rewrite the code in its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

SIZE ?= medium

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

bench: $(VENV)/.bench ## measure against the peers, and print ratios
	$(BIN)/python -m bench all --size $(SIZE)

bench-java: $(VENV)/.bench java-peer ## the same against Java Iceberg, each on the Spark that it has a runtime for
	$(MAKE) .venv-spark-4.1.4/.ready SPARK_VERSION=4.1.4
	$(BIN)/python -m bench java --size $(SIZE)

bench-page: $(VENV)/.bench ## put the results that were kept into docs/benchmarks.md
	$(BIN)/python -m bench.page

docs: $(VENV)/.dev ## write the pages that the code knows, run the code in all pages, and build the site in build/site
	$(BIN)/python -m docs.api_page
	$(BIN)/python -m docs.reference_pages
	$(BIN)/python -m pytest -q tests/docs tests/test_docs.py tests/test_api_page.py tests/spark/test_pages.py
	$(BIN)/python -m docs.site

docs-serve: $(VENV)/.dev ## show the docs as a site on this machine
	$(BIN)/python -m docs.site serve

lock: $(VENV)/.dev ## pin every dependency again, in constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check uv
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --all-extras --upgrade --no-header --no-annotate -o constraints.txt pyproject.toml

clean: ## remove all that was made here
	rm -rf $(VENV) $(JAVA_VENV) $(JAVA_REST) $(SEDONA) $(CLICKHOUSE_VENV) .venv-spark-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .histories icefloe-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
