"""Deletes of files that are no longer there: they do no harm to a scan."""

import pytest

from icefloe.planning import TableScan
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable
from tests.planning.test_scan import BY_REGION, SCHEMA, row

WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]


@pytest.mark.parametrize("row_filter", ["", "id > 0", "region = 'eu'"])
@pytest.mark.parametrize("version", WITH_VECTORS)
def test_vectors_of_files_that_are_gone(version: int, row_filter: str) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    kept, gone = table.data([row(1), row(2)]), table.data([row(3)])
    table.add(kept, table.vector(gone, [0]), table.vector(kept, [1]))
    (task,) = TableScan(table.metadata, table.storage, row_filter).plan_files()
    assert task.file.file_path == kept.file_path
    assert [each.referenced_data_file for each in task.deletes] == [kept.file_path]


@pytest.mark.parametrize("scope", ["partition", "reference", "unbounded"])
@pytest.mark.parametrize(
    "version", [version for version in WITH_DELETES if allows(version, Feature.NEW_POSITION_DELETE_FILES)]
)
def test_position_deletes_of_files_that_are_gone(version: int, scope: str) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    kept, gone = table.data([row(1), row(2)]), table.data([row(3)])
    table.add(kept, gone)
    table.add(table.positions([(gone, 0)], gone, scope))
    table.add(removed=[gone])
    (task,) = TableScan(table.metadata, table.storage).plan_files()
    assert task.file.file_path == kept.file_path
    assert table.planned_rows([task]) == [(kept.file_path, 0), (kept.file_path, 1)]


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_table_of_nothing_but_deletes_has_no_tasks(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    table.add(table.vector(table.data([row(1)]), [0]))
    assert list(TableScan(table.metadata, table.storage).plan_files()) == []
