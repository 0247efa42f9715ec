"""Maintenance by a handle that is behind: others have compacted and expired what it knows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from icefloe import Table
from icefloe.catalog import Catalog
from icefloe.errors import LocationNotFoundError
from icefloe.maintenance import Maintenance
from tests.catalog.tables import maker
from tests.maintenance.worn import FUTURE, NAME, check_whole, rows_in, worn_table

CALLS: dict[str, Callable[[Maintenance], object]] = {
    "health": lambda maintenance: maintenance.health(),
    "compact": lambda maintenance: maintenance.rewrite_data_files(rewrite_all="true"),
    "manifests": lambda maintenance: maintenance.rewrite_manifests(),
    "dangling": lambda maintenance: maintenance.remove_dangling_deletes(),
    "dangling, planned": lambda maintenance: maintenance.remove_dangling_deletes(dry_run=True),
    "position deletes": lambda maintenance: maintenance.rewrite_position_delete_files(rewrite_all="true"),
    "equality deletes": lambda maintenance: maintenance.convert_equality_deletes(),
    "statistics": lambda maintenance: maintenance.compute_table_stats(),
    "partitions": lambda maintenance: maintenance.compute_partition_stats(),
    "expire": lambda maintenance: maintenance.expire_snapshots(older_than=FUTURE),
    "orphans": lambda maintenance: maintenance.remove_orphan_files(),
    "maintain": lambda maintenance: maintenance.maintain(),
}


@pytest.fixture
def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> Catalog:
    return maker("memory", tmp_path, request)()


@pytest.mark.parametrize("version", [2, 3])
def test_each_call_begins_with_the_newest_state(catalog: Catalog, version: int) -> None:
    table = worn_table(catalog, version)
    behind: dict[str, Table] = {name: catalog.load_table(NAME) for name in CALLS}
    table.maintenance.rewrite_data_files(rewrite_all="true")
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    with pytest.raises(LocationNotFoundError):
        behind["health"].scan().to_arrow()
    before = rows_in(table)
    for name, handle in behind.items():
        CALLS[name](handle.maintenance)
        assert rows_in(table.refresh()) == before, name
    check_whole(table)
