"""Partition fields that became void: what their manifests hold, what metadata tables show, and that their source may go.

In v1 tables a dropped partition field stays as a void one, of its source's type; tables keep it when they are upgraded.
"""

import datetime as dt
import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.errors import IncompatibleChangeError
from icefloe.manifests import read_manifest_list
from icefloe.schema.types import StringType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows

KEEPS_DROPPED_FIELDS = next(each for each in ALL_VERSIONS if not allows(each, Feature.DROPPING_PARTITION_FIELDS))
TRANSFORMS = ("year(ts)", "hour(ts)", "bucket(4, s)", "truncate(2, s)", "identity(ts)")
FUTURE = 32_503_680_000_000


def rows(number: int, *names: str) -> pa.Table:
    columns = {
        "id": pa.array([number], pa.int64()),
        "ts": pa.array([dt.datetime(2020 + number, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        "s": pa.array(["value"]),
    }
    return pa.table({name: column for name, column in columns.items() if not names or name in names})


def voided(transform: str, version: int) -> tuple[Table, str]:
    """A table of one partition field, with a row; the field is void, and there is a row more. Also its source's name."""
    catalog = load_catalog("void", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        "id BIGINT, ts TIMESTAMPTZ, s STRING",
        partition_spec=[transform],
        properties={"format-version": str(KEEPS_DROPPED_FIELDS)},
    )
    table.append(rows(0))
    name = table.spec().fields[0].name
    with table.update_spec() as update:
        update.remove_field(name)
    if version != KEEPS_DROPPED_FIELDS:
        table.upgrade_format_version(version)
    table.append(rows(1))
    assert [str(each.transform) for each in table.spec().fields] == ["void"]
    return table, "s" if "s)" in transform and "ts" not in transform else "ts"


def check_all_is_shown(table: Table, count: int) -> None:
    assert table.inspect.entries()["status"].to_pylist() == [1] * count
    assert table.inspect.partitions()["file_count"].to_pylist() != []
    assert table.inspect.manifests().num_rows == count
    assert table.inspect.files().num_rows == table.scan().count() == count
    assert table.verify(level="data").ok


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_metadata_tables_show_files_of_both_specs_and_the_source_may_go(transform: str, version: int) -> None:
    table, source = voided(transform, version)
    check_all_is_shown(table, 2)
    [*values] = (value for each in table.inspect.files()["partition"].to_pylist() for value in each.values())
    # The values of the spec from before stay what they were, of the type that they had.
    assert sorted(each is not None for each in values) == [False, True]
    with table.update_schema() as update:
        update.delete_column(source)
    table.append(rows(2, *(field.name for field in table.schema().fields)))
    check_all_is_shown(table, 3)
    table.delete("id = 0")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_source_that_no_schema_has_any_more_leaves_a_field_of_no_type(version: int) -> None:
    table, source = voided("year(ts)", version)
    with table.update_schema() as update:
        update.delete_column(source)
    table.append(rows(2, "id", "s"))
    table.delete("id < 2")
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert [len(each.fields) for each in table.schemas().values()] == [2]
    table.append(rows(3, "id", "s"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3]
    assert table.inspect.files().num_rows == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_source_of_a_field_in_use_stays(version: int) -> None:
    catalog = load_catalog("void", type="memory")
    catalog.create_namespace("db")
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", "id BIGINT, s STRING", partition_spec=["bucket(4, s)"], properties=properties)
    with pytest.raises(IncompatibleChangeError, match="partition spec uses s"), table.update_schema() as update:
        update.delete_column("s")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_manifests_hold_void_fields_in_their_sources_type_as_java_writes_them(version: int) -> None:
    table, _ = voided("year(ts)", version)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    place = str(snapshot.manifest_list)
    place = place if ":" in place else f"{table.location()}/{place}"
    [manifest] = [
        each
        for each in read_manifest_list(place, table.storage.read, table_location=table.location())
        if each.added_snapshot_id == snapshot.snapshot_id
    ]
    schema: Any = fastavro.reader(io.BytesIO(table.storage.read(manifest.manifest_path))).writer_schema
    file = next(each for each in schema["fields"] if each["name"] == "data_file")
    partition = next(each for each in file["type"]["fields"] if each["name"] == "partition")
    [field] = partition["type"]["fields"]
    kind = next(each for each in field["type"] if each != "null")
    assert (field["field-id"], kind["type"], kind["logicalType"]) == (1000, "long", "timestamp-micros")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_partition_field_whose_name_is_used_again_is_another_one(version: int) -> None:
    catalog = load_catalog("again", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "id BIGINT, s STRING", partition_spec=["s"], properties={"format-version": str(version)}
    )
    table.append(rows(0, "id", "s"))
    with table.update_spec() as spec:
        spec.remove_field("s")
    with table.update_schema() as schema:
        schema.delete_column("s")
    with table.update_schema() as schema:
        schema.add_column("s", StringType())
    with table.update_spec() as spec:
        spec.add_field("s")
    table.append(rows(1, "id", "s"))
    shown = table.scan(selected_fields=("id", "_partition")).to_arrow().sort_by("id").to_pylist()
    assert shown == [
        {"id": 0, "_partition": {"s_1000": "value", "s": None}},
        {"id": 1, "_partition": {"s_1000": None, "s": "value"}},
    ]
    assert table.verify(level="data").ok
