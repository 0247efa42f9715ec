"""Plans whose manifests tasks read: they are those of the driver, with the same counts, and so are their errors."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog import load_catalog
from icefloe.errors import InvalidPropertyError
from icefloe.manifests import ManifestContent, ManifestFile, SnapshotManifests
from icefloe.planning import PrunedFiles
from icefloe.spark import spread_plans
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.spark.spread_plans import _ByTasks, spread_of
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.spark.reading import delete_equal, new_catalog

MODE = "read.data-planning-mode"
DISTRIBUTED = {MODE: "distributed"}
FILTERS = ("id >= 0", "id between 13 and 32", "p = 'b'", "p = 'a' and id > 20", "v = 'v7' or id = 33", "id < 0")


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("spread")), spark=spark) as session:
        yield session


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many manifests tasks have read, plan by plan."""
    counts: list[int] = []
    plan = _ByTasks.__call__

    def noted(self: _ByTasks, *arguments: Any) -> Iterator[PrunedFiles] | None:
        pruned = plan(self, *arguments)
        if pruned is None:
            return None
        results = list(pruned)
        counts.append(sum(each.data_manifests_read for _, each in results))
        return iter(results)

    monkeypatch.setattr(_ByTasks, "__call__", noted)
    return counts


def made_table(ice: Session, name: str, version: int) -> Table:
    """A manifest for each of some appends, under two specs, with rows deleted by position and by equality."""
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    properties["read.split.metadata-target-size"] = "20000"
    table = ice.catalog.create_table(f"db.{name}", "id long, p string, v string", properties=properties)
    for number in range(6):
        if number == 3:
            with table.update_spec() as update:
                update.add_field("p")
        ids = range(10 * number, 10 * number + 10)
        table.append(pa.table({"id": ids, "p": ["ab"[each % 2] for each in ids], "v": [f"v{each}" for each in ids]}))
    if version > 1:
        table.delete("id in (3, 14, 41, 55)")
        delete_equal(table, {"v": ["v7", "v33"]}, next(iter(table.scan("id = 33 and p = 'b'").plan_files())).file)
    return table


def manifests_of(table: Table) -> list[ManifestFile]:
    """The data manifests of the newest snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    known = SnapshotManifests(table.metadata, table.storage.read).of(snapshot)
    return [manifest for manifest in known if manifest.content is ManifestContent.DATA]


@pytest.mark.parametrize("engine", ["native", "arrow"])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_tasks_plan_what_the_driver_plans(ice: Session, by_tasks: list[int], version: int, engine: str) -> None:
    name = f"t_{version}_{engine}"
    made_table(ice, name, version)
    for text in FILTERS:
        answers = []
        for options in ({}, DISTRIBUTED):
            frame = ice.table(f"db.{name}", row_filter=text, options={"read.engine": engine, **options})
            rows = sorted(map(tuple, frame.collect()))
            answers.append((rows, ice.reports[-1].counts))
        assert answers[0] == answers[1], text
    # The manifests of one spec at least are many enough in most cases.
    assert len(by_tasks) > len(FILTERS) // 2
    assert max(by_tasks) == 6


def test_the_property_of_a_table_says_it_too(ice: Session, by_tasks: list[int]) -> None:
    table = made_table(ice, "said", 3)
    with table.transaction() as transaction:
        transaction.set_properties(DISTRIBUTED)
    assert ice.sql("SELECT count(v) FROM db.said WHERE id > 20").first()[0] == 36
    assert by_tasks == [6]


def test_other_modes_plan_here(ice: Session, by_tasks: list[int]) -> None:
    table = made_table(ice, "here", 2)
    for mode in ("local", "auto"):
        assert table.scan(options={MODE: mode}).to_spark(ice.spark).count() == 55
    # A limit needs few of the manifests.
    few = replace(
        table.scan(options=DISTRIBUTED, limit=1), spread=spread_of(ice.spark, table.scan(options=DISTRIBUTED))
    )
    assert few.spread is not None
    assert list(few.plan_files())
    assert by_tasks == []
    with pytest.raises(InvalidPropertyError, match=r"'remote'.*auto, local"):
        table.scan(options={MODE: "remote"}).to_spark(ice.spark)


def test_auto_asks_tasks_for_many_bytes_on_a_large_cluster(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made_table(ice, "large", 2)
    assert spread_of(ice.spark, table.scan()) is None
    monkeypatch.setattr(spread_plans, "is_local", lambda _: False)
    spread = spread_of(ice.spark, table.scan())
    assert isinstance(spread, _ByTasks)
    manifests = manifests_of(table)
    monkeypatch.setattr(spread_plans.os, "cpu_count", lambda: 1)
    assert not spread._is_worth_it(manifests)
    monkeypatch.setattr(spread_plans, "MOST_BYTES_HERE", 1_000)
    assert spread._is_worth_it(manifests)
    monkeypatch.setattr(spread_plans.os, "cpu_count", lambda: 64)
    assert not spread._is_worth_it(manifests)


def test_tables_that_tasks_cannot_read_are_planned_here(ice: Session) -> None:
    memory = load_catalog("memory", type="memory")
    memory.create_namespace("db")
    table = memory.create_table("db.t", "id long", properties=DISTRIBUTED)
    assert spread_of(ice.spark, table.scan()) is None


def test_what_fails_in_tasks_is_found_and_said_here(
    ice: Session, by_tasks: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    table = made_table(ice, "damaged", 2)
    manifest = manifests_of(table)[0].manifest_path
    Path(manifest.removeprefix("file://")).write_bytes(b"nothing of an Avro file")
    frame = ice.catalog.load_table("db.damaged").scan(options=DISTRIBUTED | {"read.engine": "native"})
    with caplog.at_level(logging.WARNING, "icefloe.spark"), pytest.raises(Exception, match="damaged") as error:
        frame.to_spark(ice.spark).collect()
    assert Path(manifest).name in str(error.value)
    assert by_tasks == []
