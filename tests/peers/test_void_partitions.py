"""Partition fields that became void in v1 tables: Java Iceberg, PyIceberg and we read what each of the others wrote."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import SQL, Lake

[V1] = [each for each in JAVA_VERSIONS if not allows(each, Feature.DROPPING_PARTITION_FIELDS)]
SHAPES = [
    ("year(ts)", "years(ts)", "ts"),
    ("bucket(4, s)", "bucket(4, s)", "s"),
    ("truncate(2, s)", "truncate(2, s)", "s"),
]
CASES = [
    *((SHAPES[0], version) for version in (V1, JAVA_VERSIONS[-1])),
    *(pytest.param(SHAPES[0], version, marks=pytest.mark.slow) for version in JAVA_VERSIONS[1:-1]),
    *(pytest.param(shape, V1, marks=pytest.mark.slow) for shape in SHAPES[1:]),
]
VALUES = "(%d, TIMESTAMP '202%d-01-01 00:00:00', 'value')"


def rows(number: int, table: Table) -> pa.Table:
    columns: dict[str, Any] = {
        "id": pa.array([number], pa.int64()),
        "ts": pa.array([dt.datetime(2020 + number, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        "s": pa.array(["value"]),
    }
    return pa.table({field.name: columns[field.name] for field in table.schema().fields})


def check_both_read(lake: Lake, table: Table, ids: list[int]) -> None:
    """Rows and the partitions of files, by Java and by us."""
    name = lake.their_name(table)
    assert [each["id"] for each in lake.same(table.refresh())] == ids
    for kind in ("files", "entries", "manifests", "partitions"):
        theirs = lake.java.rows(f"SELECT * FROM {name}.{kind}")
        ours = getattr(table.inspect, kind)()
        assert ours.num_rows == len(theirs), kind
        if kind == "files" and "partition" in ours.column_names:
            shown = sorted(str(list(each["partition"].values())) for each in ours.to_pylist())
            assert shown == sorted(str(list(each["partition"].values())) for each in theirs)
    assert table.verify(level="data").ok


@pytest.mark.parametrize(("shape", "version"), CASES, ids=str)
def test_java_reads_and_goes_on_with_ours(lake: Lake, shape: tuple[str, str, str], version: int) -> None:
    ours, _, source = shape
    table = lake.create(V1, "id BIGINT, ts TIMESTAMPTZ, s STRING", partition_spec=[ours])
    table.append(rows(0, table))
    with table.update_spec() as update:
        update.remove_field(table.spec().fields[0].name)
    if version != V1:
        table.upgrade_format_version(version)
    table.append(rows(1, table))
    check_both_read(lake, table, [0, 1])
    lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES {VALUES % (2, 2)}")
    check_both_read(lake, table, [0, 1, 2])
    with table.update_schema() as update:
        update.delete_column(source)
    table.append(rows(3, table))
    check_both_read(lake, table, [0, 1, 2, 3])
    columns = ", ".join("4" if field.name == "id" else "NULL" for field in table.schema().fields)
    lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES ({columns})")
    check_both_read(lake, table, [0, 1, 2, 3, 4])


@pytest.mark.parametrize(("shape", "version"), CASES, ids=str)
def test_we_read_and_go_on_with_javas(lake: Lake, shape: tuple[str, str, str], version: int) -> None:
    _, theirs, source = shape
    name, full = lake.made_by_java(V1, "id BIGINT, ts TIMESTAMP, s STRING", f"PARTITIONED BY ({theirs})")
    lake.java.sql(f"INSERT INTO {full} VALUES {VALUES % (0, 0)}")
    lake.java.sql(f"ALTER TABLE {full} DROP PARTITION FIELD {theirs}")
    if version != V1:
        lake.java.sql(f"ALTER TABLE {full} SET TBLPROPERTIES ('format-version' = '{version}')")
    lake.java.sql(f"INSERT INTO {full} VALUES {VALUES % (1, 1)}")
    table = lake.sql_catalog.load_table(name)
    check_both_read(lake, table, [0, 1])
    lake.java.sql(f"ALTER TABLE {full} DROP COLUMN {source}")
    columns = ", ".join("2" if field.name == "id" else "NULL" for field in table.refresh().schema().fields)
    lake.java.sql(f"INSERT INTO {full} VALUES ({columns})")
    check_both_read(lake, table, [0, 1, 2])
    table.append(rows(3, table))
    check_both_read(lake, table, [0, 1, 2, 3])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pyiceberg_reads_ours(warehouse: Lake, shape: tuple[str, str, str]) -> None:
    ours, _, source = shape
    table = warehouse.create(V1, "id BIGINT, ts TIMESTAMPTZ, s STRING", partition_spec=[ours])
    table.append(rows(0, table))
    with table.update_spec() as update:
        update.remove_field(table.spec().fields[0].name)
    table.append(rows(1, table))
    catalog = SqlCatalog(SQL, uri=f"sqlite:///{warehouse.folder}/catalog.db")
    assert sorted(catalog.load_table(table.name()).scan().to_arrow()["id"].to_pylist()) == [0, 1]
    with table.update_schema() as update:
        update.delete_column(source)
    table.append(rows(2, table))
    assert sorted(catalog.load_table(table.name()).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
