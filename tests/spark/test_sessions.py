"""Sessions under strain: many threads, two sessions, cancelled queries, a session that starts again; nothing hangs or stays."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import InvalidInputError, NotInstalledError
from icefloe.planning import CallingReporter
from icefloe.spark.asked_files import AskedFiles
from icefloe.spark.connect import check_java, connect
from icefloe.spark.session import Session
from tests.spark.processes import bare_environment
from tests.spark.reading import new_catalog

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with a table of four files."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        table = session.catalog.create_table("db.t", schema="id long, v long", properties={"format-version": "3"})
        for start in range(0, 400, 100):
            table.append(pa.table({"id": range(start, start + 100), "v": range(100)}))
        yield session


@pytest.mark.timeout(240)
def test_threads_query_at_once(ice: Session) -> None:
    def count(number: int) -> int:
        return int(ice.table("db.t").filter(f"id >= {number * 10}").count())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(count, range(12))) == [400 - number * 10 for number in range(12)]


def test_two_sessions(ice: Session) -> None:
    other = connect(ice.catalog, spark=ice.spark.newSession())
    assert other.table("db.t").filter("id < 5").count() == 5
    assert other.reports[-1].table == f"{ice.catalog.name}.db.t"
    assert ice.table("db.t").join(ice.table("db.t").select("id"), "id").count() == 400


def test_reports_reach_the_reporter_of_the_scan(ice: Session) -> None:
    gathered: list[Any] = []
    scan = replace(ice.load_table("db.t").scan(), reporter=CallingReporter(gathered.append))
    assert ice.read(scan).filter("id < 100").count() == 100
    assert gathered[-1] is ice.reports[-1]
    assert gathered[-1].counts.result_data_files == 1


@pytest.mark.timeout(240)
def test_a_cancelled_query_leaves_the_session_usable(ice: Session) -> None:
    context = ice.spark.sparkContext
    failed: list[Exception] = []

    def endless() -> None:
        context.setJobGroup("endless", "to be cancelled", True)
        try:
            ice.table("db.t").selectExpr("java_method('java.lang.Thread', 'sleep', 600000L) s").collect()
        except Exception as problem:  # noqa: BLE001  # whatever Spark calls a cancelled job
            failed.append(problem)

    thread = threading.Thread(target=endless)
    thread.start()
    deadline = time.monotonic() + 60
    while not context.statusTracker().getActiveJobsIds() and time.monotonic() < deadline and thread.is_alive():
        time.sleep(0.05)
    context.cancelJobGroup("endless")
    thread.join(120)
    assert not thread.is_alive()
    assert failed
    assert ice.table("db.t").count() == 400


def test_indexes_are_let_go(ice: Session) -> None:
    """Spark keeps a proxy of each file index, and py4j the index, until Java collects it."""
    gateway = ice.spark.sparkContext._gateway
    pool = gateway.gateway_property.pool

    def held() -> set[str]:
        return {key for key, each in list(pool.dict.items()) if isinstance(each, AskedFiles)}

    # Frames of other tests may be kept by whoever made them.
    before = held()
    for _ in range(10):
        ice.table("db.t").filter("id = 3").count()
    new = held() - before
    # Java may have collected the first ones by now.
    assert len(new) > 2
    deadline = time.monotonic() + 60
    while len(held() & new) > 2 and time.monotonic() < deadline:
        gc.collect()
        gateway.jvm.java.lang.System.gc()
        time.sleep(0.2)
    assert len(held() & new) <= 2


_AGAIN = """
import sys
import pyarrow as pa
import icefloe

for turn in range(2):
    with icefloe.connect(warehouse=sys.argv[1], config={"spark.master": "local[1]", "spark.driver.memory": "1g"}) as ice:
        if not turn:
            ice.catalog.create_namespace("a")
            ice.catalog.create_table("a.t", schema="id long").append(pa.table({"id": [1, 2, 3]}))
        frame = ice.table("a.t")
        assert frame.filter("id > 1").count() == 2
        assert ice.reports[-1].counts.result_data_files == 1
print("both turns read")
"""


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_session_stops_and_starts_again(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AGAIN, str(tmp_path)], capture_output=True, text=True, timeout=270, check=False
    )
    assert "both turns read" in done.stdout, done.stderr


def test_a_missing_or_old_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalledError, match=r"Java 17 or newer, and .* is Java 8"):
        check_java()
    old.unlink()
    with pytest.raises(NotInstalledError, match="there is none in JAVA_HOME"):
        check_java()


def test_what_connect_refuses(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="not a catalog"):
        connect([], spark=spark)
    with pytest.raises(InvalidInputError, match="config is for"):
        connect(new_catalog(tmp_path), spark=spark, config={"spark.master": "local[1]"})


CLONES = """
import sys
from icefloe.spark.connect import connect, local_spark
from icefloe.spark.spark_sessions import clone_with
spark = local_spark({"spark.master": "local[1]", "spark.driver.memory": "512m"})
connect(spark=spark, warehouse=sys.argv[1])
for _ in range(3):
    clone_with(spark, {"spark.sql.caseSensitive": "true"})
"""


def test_spark_looks_for_formats_in_vain_once(tmp_path: Path) -> None:
    """Where its workers are a Python without PySpark, and not for each clone of a session."""
    runs, worker = tmp_path / "runs", tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\necho run >> {runs}\nexit 1\n")
    worker.chmod(0o755)
    environment = bare_environment(PYSPARK_PYTHON=str(worker), PYTHONPATH=str(ROOT))
    command = [sys.executable, "-c", CLONES, str(tmp_path / "warehouse")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert runs.read_text().splitlines() == ["run"]
