"""Metadata tables by SQL: rows that tasks read are those that this process reads, and many of them need little memory."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.inspect import TABLE_NAMES, MetadataPart, MetadataScan
from icefloe.spark import metadata_rows, task_abilities
from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.processes import bare_environment
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

ROOT = Path(__file__).parents[2]
COPIES = 50


def repeat_file(table: Table, count: int) -> None:
    """Commit the one file of a table again under other names, which only metadata knows."""
    [file] = [task.file for task in table.scan().with_metrics().plan_files()]
    copies = [replace(file, file_path=f"{file.file_path}-{number}", first_row_id=None) for number in range(count)]
    table.update_snapshot().fast_append(copies, check_duplicates=False)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A table with deleted rows, two specs and a file that is there many times, each commit in a manifest of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        table = session.catalog.create_table(
            ("db", "t"),
            "id long, day date, at timestamp_ns, zoned timestamptz, key uuid, code fixed[3], name string, tod time, keys list<uuid>",
            partition_spec=["day"],
            properties={
                "format-version": "3",
                "write.delete.mode": "merge-on-read",
                "commit.manifest-merge.enabled": "false",
            },
        )
        rows = pa.table(
            {
                "id": pa.array([1, 2, 3], pa.int64()),
                "day": pa.array([19000] * 3, pa.int32()).cast(pa.date32()),
                "at": pa.array([-1, 0, 1999], pa.int64()).cast(pa.timestamp("ns")),
                "zoned": pa.array([-1, 0, 1999], pa.int64()).cast(pa.timestamp("us", "UTC")),
                "key": pa.array([bytes(range(16))] * 3, pa.binary(16)),
                "code": pa.array([b"abc"] * 3, pa.binary(3)),
                "name": ["a", None, "c"],
                "tod": pa.array([0, None, 5], pa.int64()).cast(pa.time64("us")),
                "keys": pa.array([[bytes(16)], None, []], pa.list_(pa.binary(16))),
            }
        )
        table.append(rows)
        table.delete("id = 2")
        repeat_file(table, COPIES)
        with table.update_spec() as spec:
            spec.add_field("bucket(4, id)")
        table.append(rows)
        yield session


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All rows are too many, and a manifest is a part; how many parts tasks read, query by query."""
    monkeypatch.setattr(metadata_rows, "FEW_BYTES", -1)
    monkeypatch.setattr(metadata_rows, "FEW_FILES", -1)
    monkeypatch.setattr("icefloe.inspect.parts._PART_FILES", 1)
    monkeypatch.setattr("icefloe.inspect.parts._PART_LISTS", 1)
    seen: list[int] = []
    spread = metadata_rows._spread

    def counted(spark: Any, scan: MetadataScan, parts: Sequence[MetadataPart]) -> Any:
        seen.append(len(parts))
        return spread(spark, scan, parts)

    monkeypatch.setattr(metadata_rows, "_spread", counted)
    return seen


def files(ice: Session) -> int:
    """How many files plain Python finds."""
    return int(ice.load_table("db.t").inspect.files().num_rows)


def texts(ice: Session, query: str) -> list[str]:
    return sorted(map(str, ice.sql(query).collect()))


@pytest.mark.parametrize("java", ["true", "false"])
def test_tasks_read_what_this_process_reads(ice: Session, request: pytest.FixtureRequest, java: str) -> None:
    """All tables, all columns, in a zone with times of its own, with our Java classes and without."""
    with settings(ice.spark, {door.ENABLED: java, "spark.sql.session.timeZone": "America/New_York"}):
        here = {name: texts(ice, f"SELECT * FROM db.t.{name}") for name in TABLE_NAMES}
        parts = request.getfixturevalue("tasks")
        there = {name: texts(ice, f"SELECT * FROM db.t.{name}") for name in TABLE_NAMES}
    assert here == there
    assert len(here["files"]) == files(ice) > COPIES
    # Of files, entries and manifest lists; of data files; of delete files and their positions.
    assert sorted(parts, reverse=True) == [4] * 5 + [3] * 2 + [1] * 3


def test_filters_and_columns_reach_tasks(ice: Session, tasks: list[int]) -> None:
    """Manifests that a filter rules out are not read; a query without columns only counts."""
    assert ice.sql("SELECT count(*) FROM db.t.files").first()[0] == files(ice)
    query = "SELECT file_path, record_count FROM db.t.files WHERE partition.id_bucket_4 IS NULL AND content = 0"
    assert ice.sql(query).count() == COPIES + 1
    assert tasks == [4, 2]


def test_rows_that_this_process_may_not_hand_to_tasks(
    ice: Session, tasks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads them itself, however many they are, with columns and without."""
    monkeypatch.setattr(metadata_rows, "tasks_know_us", lambda _: False)
    assert len(texts(ice, "SELECT * FROM db.t.files")) == files(ice)
    assert ice.sql("SELECT count(*) FROM db.t.files").first()[0] == files(ice)
    assert not tasks


def test_that_tasks_know_the_package_is_asked_of_a_task(ice: Session) -> None:
    """As a cluster would answer."""
    assert task_abilities._ask_a_task(ice.spark.sparkContext)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_files_in_a_driver_of_one_gigabyte(tmp_path: Path) -> None:
    """Rows that are counted, summed and filtered; see the program."""
    command = [sys.executable, str(ROOT / "tests" / "spark" / "use_many_files.py"), str(tmp_path)]
    environment = bare_environment(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    sys.stdout.write(done.stdout)
