"""Tables put together from our files are read by PyIceberg and DuckDB, with the rows that we wrote."""

import datetime as dt
import decimal
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pytest
from pyiceberg.table import StaticTable

from icefloe.errors import IcefloeError
from icefloe.manifests import FileContent
from icefloe.partitioning import parse_partition_spec
from icefloe.schema.ddl import parse_ddl
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table, plain
from tests.peers.tables import HandmadeTable

SCHEMA = parse_ddl(
    "id long not null, flag boolean, n int, ratio float, score double, price decimal(12,2), big decimal(30,4), day date,"
    " ts timestamp, tz timestamptz, name string, raw binary, tags list<string>, props map<string, long>,"
    " place struct<zip: string, at: struct<x: double, y: double>>"
)


def row(i: int) -> dict[str, Any]:
    """A row that shows the extremes now and then."""
    if i % 5 == 4:
        return {field.name: i if field.name == "id" else None for field in SCHEMA.fields}
    moment = dt.datetime(2024, 1, 1) + dt.timedelta(days=i, microseconds=i)
    return {
        "id": i,
        "flag": i % 2 == 0,
        "n": (-1) ** i * 2**31 // 2 + i,
        "ratio": [0.5, math.nan, -0.0, math.inf][i % 4],
        "score": i / 3,
        "price": decimal.Decimal(i).scaleb(-2),
        "big": decimal.Decimal("-99999999999999999999.1234"),
        "day": moment.date(),
        "ts": moment,
        "tz": moment.replace(tzinfo=dt.UTC),
        "name": ["", "é😀", "x" * 40, "plain"][i % 4],
        "raw": bytes([i % 256, 255, 0]),
        "tags": ["a", None, "ü"][: i % 4],
        "props": [("k", i), ("v", None)][: i % 3],
        "place": {"zip": str(i), "at": None if i % 3 else {"x": 1.5, "y": None}},
    }


ROWS = [row(i) for i in range(20)]


def pyiceberg_rows(location: str, filter_text: str | None = None) -> list[dict[str, Any]]:
    """What PyIceberg reads."""
    table = StaticTable.from_metadata(location)
    scan = table.scan(row_filter=filter_text) if filter_text else table.scan()
    return list(scan.to_arrow().to_pylist())


def duckdb_rows(location: str, filter_text: str | None = None) -> list[dict[str, Any]]:
    """What DuckDB's iceberg extension reads."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        [extension] = Path(str(package.__file__)).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    where = f" WHERE {filter_text}" if filter_text else ""
    cursor = connection.execute(f"SELECT * FROM iceberg_scan('{location.removeprefix('file://')}'){where}")
    return list(cursor.to_arrow_table().to_pylist())


Peer = Callable[..., list[dict[str, Any]]]
PEERS = [pytest.param(pyiceberg_rows, id="pyiceberg"), pytest.param(duckdb_rows, id="duckdb")]
PEER_VERSIONS = [version for version in ALL_VERSIONS if version <= 3]
"""Neither peer reads v4 yet."""


def comparable(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted((plain(_maps_as_pairs(each)) for each in rows), key=lambda each: each["id"])


def _maps_as_pairs(each: dict[str, Any]) -> dict[str, Any]:
    props = each["props"]
    return each | {"props": list(props.items()) if isinstance(props, dict) else props}


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("version", PEER_VERSIONS)
def test_every_type_is_read(peer: Peer, version: int, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, version)
    table.commit([table.write_data(arrow_table(table.schema, ROWS[:9]))])
    table.commit([table.write_data(arrow_table(table.schema, ROWS[9:]))])
    assert comparable(peer(table.save())) == comparable(ROWS)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("version", PEER_VERSIONS)
def test_partitions_and_bounds_serve_the_filters_of_peers(peer: Peer, version: int, tmp_path: Path) -> None:
    spec = parse_partition_spec(["bucket(4, id)", "name"], SCHEMA)
    table = HandmadeTable(tmp_path / "t", SCHEMA, version, spec)
    files = []
    for each in ROWS:
        fields = table.metadata.spec().fields
        bucket = fields[0].transform.apply(each["id"], SCHEMA.find_type("id"))
        files.append(table.write_data(arrow_table(table.schema, [each]), (bucket, each["name"])))
    table.commit(files)
    place = table.save()
    assert [found["id"] for found in comparable(peer(place, "id = 7"))] == [7]
    expected = [each["id"] for each in ROWS if each["name"] == "plain"]
    assert [found["id"] for found in comparable(peer(place, "name = 'plain'"))] == expected
    expected = [each["id"] for each in ROWS if each["score"] is not None and each["score"] > 3]
    assert [found["id"] for found in comparable(peer(place, "score > 3.0"))] == expected


def test_versions_without_delete_files_refuse_them(tmp_path: Path) -> None:
    for version in ALL_VERSIONS:
        table = HandmadeTable(tmp_path / f"t{version}", SCHEMA, version)
        data = table.write_data(arrow_table(table.schema, ROWS))
        delete = data.__class__(
            data.file_path + ".d", "parquet", 1, 10, FileContent.EQUALITY_DELETES, equality_ids=(1,)
        )
        if allows(version, Feature.DELETE_FILES):
            table.commit([data, delete], "overwrite")
        else:
            with pytest.raises(IcefloeError, match="delete"):
                table.commit([data, delete], "overwrite")
