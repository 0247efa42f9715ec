"""Transforms of several columns, which no spec defines: kept through everything, never computed, refused on write.

The JSON of partition and sort fields with two to five sources and any text survives reading, commits and evolution; plans with
filters on the sources, and equality deletes, are right; what would write rows says which field forbids it.
"""

import json
import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import icefloe
from icefloe import errors
from icefloe.catalog import Catalog
from icefloe.expressions import bind, parse_expression
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.planning import TableScan
from icefloe.schema import Schema, parse_ddl
from icefloe.spark.distribution import distribution_of
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import Row, SyntheticTable, metrics_of

VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.MULTI_ARGUMENT_TRANSFORMS)]
DDL = "a bigint, b string, c int, d double, e date, f string"
COLUMNS = parse_ddl(DDL)
TRANSFORMS = st.sampled_from(
    ("bucket[16]", "Bucket[4]", "zorder", "identity", "void", "truncate[3]", "hilbert[a, b]", "day")
) | st.text("abz[](),09 _é", min_size=1, max_size=12).filter(str.strip)
SOURCES = st.lists(st.integers(1, 6), min_size=2, max_size=5, unique=True)


def with_plain_table(version: int, rows: int = 4) -> Catalog:
    """A catalog with an unpartitioned table of two files."""
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://several/{uuid.uuid4()}")
    catalog.create_namespace("db")
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("db.plain", DDL, properties=properties)
    for first in range(0, 2 * rows, rows):
        table.append(pa.table({"a": range(first, first + rows), "b": ["x"] * rows}))
    return catalog


def with_fields(catalog: Catalog, partition_field: dict[str, Any], sort_field: dict[str, Any]) -> Table:
    """The table as another writer left it: with a spec and an order by these fields, both the default."""
    table = catalog.load_table("db.plain")
    assert table.metadata_location is not None
    document = json.loads(table.storage.read(table.metadata_location))
    document["partition-specs"].append({"spec-id": 1, "fields": [partition_field]})
    document |= {"default-spec-id": 1, "last-partition-id": 1000}
    document["sort-orders"].append({"order-id": 1, "fields": [sort_field]})
    document["default-sort-order-id"] = 1
    location = f"{table.location()}/metadata/00009-{uuid.uuid4()}.metadata.json"
    table.storage.write(location, json.dumps(document).encode())
    return catalog.register_table("db.several", location)


def stored(table: Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The fields of the first spec and order that the metadata file has beyond the plain ones."""
    assert table.metadata_location is not None
    document = json.loads(table.storage.read(table.metadata_location))
    [spec] = [each for each in document["partition-specs"] if each["spec-id"] == 1]
    [order] = [each for each in document["sort-orders"] if each["order-id"] == 1]
    return spec["fields"], order["fields"]


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=3)
@given(SOURCES, TRANSFORMS)
def test_they_are_kept_through_commits_and_evolution(version: int, sources: list[int], transform: str) -> None:
    part = {"name": "mix", "transform": transform, "source-ids": sources, "field-id": 1000}
    key = {"transform": transform, "source-ids": sources, "direction": "asc", "null-order": "nulls-first"}
    catalog = with_plain_table(version)
    table = with_fields(catalog, part, key)
    field = table.spec().fields[0]
    assert field == PartitionField(tuple(sources), 1000, tr.UnknownTransform(transform), "mix")

    table.set_properties({"any": "thing"})
    with table.update_schema() as schema:
        schema.add_column("g", "string")
        schema.rename_column(COLUMNS.fields_by_id[sources[0]].name, "renamed")
    with table.update_spec() as spec:
        spec.add_field("g", "identity", "other")
    with table.update_spec() as spec:
        spec.rename_field("other", "again")
    assert table.spec().fields[0] == field
    with table.update_spec() as spec:
        spec.remove_field("again")
    assert (table.spec().spec_id, table.spec().fields) == (1, (field,))
    table = catalog.load_table("db.several")
    assert stored(table) == ([part], [key])
    assert table.verify().ok

    # Every row is found by filters on the sources, deletes of whole files and of rows work, and nothing is written by the spec.
    first = "renamed" if sources[0] == 1 else "a"
    assert table.scan(f"{first} = 3").count() == 1
    table.delete(f"{first} < 4")
    table.delete(f"{first} = 5")
    assert sorted(table.scan().to_arrow().column(first).to_pylist()) == [4, 6, 7]
    before = table.current_snapshot()
    with pytest.raises(errors.InvalidPartitionSpecError, match=r"'mix'.*several columns.*remove the field"):
        table.append(pa.table({first: [99]}))
    with pytest.raises(errors.InvalidPartitionSpecError, match="'mix'"):
        distribution_of(table.metadata)  # what every write on Spark asks first
    stray = replace(next(iter(table.scan().plan_files())).file, spec_id=1, partition=("any",), file_path="memory://x/f")
    for add in (table.update_snapshot().fast_append, table.update_snapshot().merge_append):
        with pytest.raises(errors.InvalidPartitionSpecError, match="'mix'"):
            add([stray])
    assert table.refresh().current_snapshot() == before
    with table.update_spec() as spec:
        spec.remove_field("mix")
    with table.update_sort_order() as order:
        order.asc("g")
    table.append(pa.table({first: [99]}))
    assert table.scan(f"{first} = 99").count() == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transform", ["identity", "bucket[16]", "zorder"])
def test_a_list_of_one_source_is_that_source(version: int, transform: str) -> None:
    part = {"name": "mix", "transform": transform, "source-ids": [1], "field-id": 1000}
    key = {"transform": transform, "source-ids": [1], "direction": "asc", "null-order": "nulls-first"}
    catalog = with_plain_table(version)
    table = with_fields(catalog, part, key)
    assert table.spec().fields[0].source_ids == (1,)
    table.set_properties({"any": "thing"})
    for fields in stored(table):
        assert [field["source-id"] for field in fields] == [1]
        assert "source-ids" not in fields[0]
    if transform == "zorder":
        with pytest.raises(errors.IcefloeError, match="'mix'"):
            table.append(pa.table({"a": [99]}))
    else:
        table.append(pa.table({"a": [99]}))
        assert table.scan("a = 99").count() == 1


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=6)
@given(st.data())
def test_plans_are_right_whatever_the_partitions_hold(version: int, data: st.DataObject) -> None:
    sources, transform = data.draw(SOURCES), data.draw(TRANSFORMS)
    schema: Schema = parse_ddl("a bigint, b string, c int, d bigint, e bigint, f string")
    fields = [PartitionField(tuple(sources), 1000, tr.UnknownTransform(transform), "mix")]
    if data.draw(st.booleans()):
        fields.append(PartitionField(1, 1001, tr.IdentityTransform(), "a"))
    table = SyntheticTable(schema, version, PartitionSpec(*fields))
    values = st.none() | st.sampled_from(["x", "y", ""])
    for _ in range(data.draw(st.integers(1, 4))):
        rows: list[Row] = [
            {
                1: 1,
                2: data.draw(st.none() | st.sampled_from("pq")),
                3: data.draw(st.integers(0, 3)),
                4: 7,
                5: None,
                6: "z",
            }
            for _ in range(data.draw(st.integers(1, 3)))
        ]
        partition = (data.draw(values), 1)[: len(fields)]
        file = replace(table.data([], metrics=metrics_of(rows, schema)), record_count=len(rows), partition=partition)
        table.model.rows[file.file_path] = rows
        table.add(file)
        if data.draw(st.booleans()):
            keys = data.draw(st.lists(st.tuples(st.none() | st.sampled_from("pq"), st.integers(0, 3)), min_size=1))
            table.add(table.equality((2, 3), keys, 0, (data.draw(values), 1)[: len(fields)]))
    for text in (
        "a = 1",
        "b = 'p'",
        "b is null",
        "c > 1 and b != 'q'",
        "c in (0, 3) or f = 'z'",
        "d < 7",
        "e is not null",
    ):
        predicate = bind(parse_expression(text), schema)
        tasks = TableScan(table.metadata, table.storage, text).plan_files()
        assert table.planned_rows(tasks) == table.naive_rows(predicate), text
