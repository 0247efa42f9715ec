"""The check that all writes of the suite pass through sees what is wrong with a file, and nothing where all is right."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.data import WriteRequest, write_data_files
from icefloe.manifests import DataFile
from icefloe.table import Table
from tests.written_files import checked_files

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


@pytest.fixture
def table(tmp_path: Any) -> Table:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id long, name string")


def committed(table: Table, **changes: Any) -> list[str]:
    """What the check says of a file that is committed with something else in its entry."""
    [file] = write_data_files(ROWS, WriteRequest(table.metadata, table.storage))
    return _said(table, replace(file, **changes))


def _said(table: Table, file: DataFile) -> list[str]:
    with checked_files() as problems:
        table.update_snapshot().fast_append([file])
    return problems


@pytest.mark.commits_wrong_files
def test_wrong_counts_and_bounds_are_seen(table: Table) -> None:
    assert committed(table) == []
    for changes in ({"record_count": 4}, {"null_value_counts": {2: 0}}, {"upper_bounds": {1: b"\x01" + b"\0" * 7}}):
        assert len(committed(table, **changes)) == 1, changes


@pytest.mark.commits_wrong_files
def test_wrong_field_ids_are_seen(table: Table) -> None:
    [file] = write_data_files(ROWS, WriteRequest(table.metadata, table.storage))
    place = file.file_path.removeprefix("file://")
    whole = pq.read_table(place)
    pq.write_table(whole.cast(pa.schema([whole.schema.field(0), whole.schema.field(1).remove_metadata()])), place)
    size = table.storage.stat(file.file_path).size
    assert any("'name' has no field id" in each for each in _said(table, replace(file, file_size_in_bytes=size)))
