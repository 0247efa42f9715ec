"""Scans on Spark that a server plans: the rows that plain Python reads, by both engines, and no manifest is read here."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog.rest.planner import RestPlanner
from icefloe.errors import StateError
from icefloe.planning import TableScan
from icefloe.rest import paths
from icefloe.server.planning import PlanningService, PlanningSettings
from icefloe.spark.engine import native_scan, read_scan
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.server.planning.serving import ServedTable, served
from tests.spark.reading import delete_equal, new_catalog

WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]


@pytest.fixture(scope="module")
def service() -> Iterator[PlanningService]:
    made = PlanningService(PlanningSettings(page_files=2))
    yield made
    made.close()


def new_table(folder: Path, version: int) -> Table:
    settings = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = new_catalog(folder).create_table(("db", "t"), schema="id long, region string", properties=settings)
    for start in (0, 10, 20):
        table.append(pa.table({"id": list(range(start, start + 10)), "region": ["eu", "us"] * 5}))
    return table


def planned_elsewhere(scan: TableScan, service: PlanningService) -> tuple[TableScan, ServedTable]:
    server = served(scan, service)
    return replace(scan, planner=RestPlanner(server)), server


def numbers(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.collect())


@pytest.mark.parametrize("version", WITH_DELETES)
def test_both_engines_read_what_a_server_planned(
    spark: Any, tmp_path: Path, version: int, service: PlanningService
) -> None:
    table = new_table(tmp_path, version)
    table.delete("id in (3, 14)")
    expected = [number for number in range(30) if number not in (3, 14) and number > 1]
    for engine in ("native", "arrow"):
        scan, server = planned_elsewhere(table.scan("id > 1", options={"read.engine": engine}), service)
        frame = read_scan(spark, scan)
        assert numbers(frame) == expected
        assert numbers(frame.filter("region = 'us' and id < 9")) == [5, 7]
        assert paths.PLAN_SCAN in [endpoint for endpoint, _ in server.asked]
        if engine == "native":
            # The filters of a query reach the server, too.
            assert any(b'"us"' in (body or b"") for _, body in server.asked)


def test_deletes_by_equality_are_left_to_arrow(spark: Any, tmp_path: Path, service: PlanningService) -> None:
    table = new_table(tmp_path, 2)
    delete_equal(table, {"id": [4, 25]})
    table.append(pa.table({"id": [4], "region": ["eu"]}))
    scan, _ = planned_elsewhere(table.scan(), service)
    assert native_scan(spark, scan) is None
    assert numbers(read_scan(spark, scan)) == sorted([*(number for number in range(30) if number not in (4, 25)), 4])
    with pytest.raises(StateError, match="a service plans the scan, and rows may be deleted by equality"):
        native_scan(spark, scan.with_option("read.engine", "native"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    # A writer that counts wrongly must not bring deleted rows back.
    wrong = replace(
        snapshot,
        summary=replace(snapshot.summary, properties={**snapshot.summary.properties, "total-equality-deletes": "0"}),
    )
    others = [each for each in table.metadata.snapshots if each.snapshot_id != snapshot.snapshot_id]
    misled = replace(scan, metadata=table.metadata.evolve(snapshots=(*others, wrong)))
    with pytest.raises(Exception, match="deletes that the summary of its snapshot does not speak of"):
        read_scan(spark, misled).collect()
