"""PyIceberg's metadata tables of the same tables say the same, where it has the columns."""

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from icefloe.formats.position_deletes import write_position_deletes
from icefloe.inspect import Inspect
from icefloe.manifests import DataFile, FileContent
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import Schema, schema_to_arrow, types
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import HandmadeTable, data_file

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), required=True),
    types.NestedField(2, "name", types.StringType()),
    types.NestedField(3, "score", types.DoubleType()),
    types.NestedField(4, "day", types.DateType()),
    types.NestedField(5, "price", types.DecimalType(9, 2)),
    types.NestedField(6, "at", types.TimestampType()),
    types.NestedField(7, "raw", types.BinaryType()),
    types.NestedField(8, "flag", types.BooleanType()),
)
PEER_VERSIONS = [version for version in ALL_VERSIONS if version < 4]
SPECS = [["day"], ["bucket(4, id)", "truncate(1, name)"], []]


def _rows(day: int, start: int) -> Any:
    rows = [
        {
            "id": number,
            "name": None if number % 7 == 0 else f"n{number % 5}",
            "score": number / 8,
            "day": dt.date(2024, 1, day),
            "price": number,
            "at": dt.datetime(2024, 1, day, 1, number),
            "raw": bytes([number]),
            "flag": number % 2 == 0,
        }
        for number in range(start, start + 8)
    ]
    return pa.Table.from_pylist(rows, schema_to_arrow(SCHEMA))


def _made(folder: Path, version: int, spec: list[str]) -> tuple[Inspect, Any]:
    table = HandmadeTable(folder, SCHEMA, version, parse_partition_spec(spec, SCHEMA))
    for place in range(3):
        day = (dt.date(2024, 1, 1 + place) - dt.date(1970, 1, 1)).days
        partition = {1: (day,), 2: (place, "n"), 0: ()}[len(spec)]
        table.commit([table.write_data(_rows(1 + place, 8 * place), partition)])
    if allows(version, Feature.NEW_POSITION_DELETE_FILES):
        table.commit([_position_deletes(table, partition)], "delete")
    location = table.save()
    return Inspect(table.metadata, table.storage, location), StaticTable.from_metadata(location).inspect


def _position_deletes(table: HandmadeTable, partition: tuple[Any, ...]) -> DataFile:
    path = f"{table.location}/data/{uuid.uuid4()}-deletes.parquet"
    with table.storage.open_output(path) as sink:
        done = write_position_deletes(sink, {f"{table.location}/data/a.parquet": [1, 2]}, table.metadata.format_version)
    return data_file(path, "parquet", done.file, partition=partition, content=FileContent.POSITION_DELETES)


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() if value and isinstance(value[0], tuple):
            return {key: _plain(each) for key, each in value}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value


def _same(ours: Any, theirs: Any, *, by: str | None = None) -> None:
    names = theirs.schema.names
    assert set(names) - set(ours.schema.names) <= {"partition"}
    found, expected = (_plain(table.to_pylist()) for table in (ours, theirs))
    if by is not None:
        found, expected = (sorted(rows, key=lambda row: row[by]) for rows in (found, expected))
    for our_row, their_row in zip(found, expected, strict=True):
        for name in names:
            _compare(our_row.get(name), their_row[name], name)


def _compare(ours: Any, theirs: Any, name: str) -> None:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        # Theirs have no newer columns, and say nothing of a map by an empty one.
        for key in theirs:
            _compare(ours.get(key), theirs[key], f"{name}.{key}")
    else:
        assert (ours or None) == (theirs or None), name


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("version", PEER_VERSIONS)
def test_the_peer_says_the_same(tmp_path: Path, version: int, spec: list[str]) -> None:
    ours, theirs = _made(tmp_path, version, spec)
    for name in ("files", "data_files", "delete_files", "entries"):
        _same(getattr(ours, name)(), getattr(theirs, name)())
    for name in ("snapshots", "history", "refs", "manifests", "all_manifests", "metadata_log_entries"):
        _same(getattr(ours, name)(), getattr(theirs, name)())
    for name in ("all_files", "all_data_files", "all_delete_files"):
        _same(getattr(ours, name)(), getattr(theirs, name)(), by="file_path")
    _same(ours.partitions(selected_fields=_shared(ours, theirs)), theirs.partitions().select(_shared(ours, theirs)))
    past = ours.snapshots().column("snapshot_id")[1].as_py()
    _same(ours.files(past), theirs.files(past))
    assert ours.files(past).num_rows == 2


def _shared(ours: Inspect, theirs: Any) -> list[str]:
    known = theirs.partitions().schema.names
    return [name for name in ours.partitions().schema.names if name in known]
