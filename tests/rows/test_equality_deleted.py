"""Rows deleted by equality stay deleted when their files are rewritten for the sake of other rows."""

from collections.abc import Callable

import pytest

from icefloe import Table, load_catalog
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import ids_in, row_modes, rows_of
from tests.spark.reading import delete_equal

CHANGES: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 3"),
    "overwrite": lambda table: table.overwrite(rows_of(5, name="new"), "id = 3"),
    "upsert": lambda table: table.upsert(rows_of(3, name="new"), ["id"]),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_rows_deleted_by_equality_are_not_revived(version: int, change: str, mode: str) -> None:
    with load_catalog("lake", type="memory") as catalog:
        catalog.create_namespace("db")
        properties = {"format-version": str(version)} | row_modes(mode)
        table = catalog.create_table("db.t", "id BIGINT, name STRING", properties=properties)
        table.append(rows_of(1, 2, 3, 4, name="old"))
        # The filter of the change rules out every row that this deletes.
        delete_equal(table, {"id": [1]})
        CHANGES[change](table)
        assert ids_in(table) == {"delete": [2, 4], "overwrite": [2, 4, 5], "upsert": [2, 3, 4]}[change]
