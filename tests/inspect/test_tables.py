"""The metadata tables hold what the manifests say, entry by entry; rows, columns and snapshots narrow them."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import (
    InvalidPartitionSpecError,
)
from icefloe.expressions import bind, mask, parse_expression
from icefloe.inspect import TABLE_NAMES, Inspect, metadata_table_schema
from icefloe.inspect.schemas import table_partition_type
from icefloe.manifests import DataFile, FileContent, ManifestEntry, ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import Schema, decode_bound, types
from icefloe.storage import Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.histories import FIRST, histories
from tests.planning.tables import SyntheticTable

WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
FEW_THREADS = {"planning.workers": "1"}


def inspect(table: SyntheticTable, storage: Storage | None = None) -> Inspect:
    return Inspect(table.metadata, storage or table.storage, f"{table.location}/metadata/v9.metadata.json")


# -- columns


COLUMNS = {
    "entries": """
        0 status int required
        1 snapshot_id long
        3 sequence_number long
        4 file_sequence_number long
        2 data_file struct required
        . readable_metrics struct""",
    "files": """
        134 content int
        100 file_path string required
        101 file_format string required
        141 spec_id int
        102 partition struct required
        103 record_count long required
        104 file_size_in_bytes long required
        108 column_sizes map<int, long>
        109 value_counts map<int, long>
        110 null_value_counts map<int, long>
        137 nan_value_counts map<int, long>
        125 lower_bounds map<int, binary>
        128 upper_bounds map<int, binary>
        131 key_metadata binary
        132 split_offsets list<long>
        135 equality_ids list<int>
        140 sort_order_id int
        142 first_row_id long
        143 referenced_data_file string
        144 content_offset long
        145 content_size_in_bytes long
        . readable_metrics struct""",
    "history": """
        1 made_current_at timestamptz required
        2 snapshot_id long required
        3 parent_id long
        4 is_current_ancestor boolean required""",
    "metadata_log_entries": """
        1 timestamp timestamptz required
        2 file string required
        3 latest_snapshot_id long
        4 latest_schema_id int
        5 latest_sequence_number long""",
    "snapshots": """
        1 committed_at timestamptz required
        2 snapshot_id long required
        3 parent_id long
        4 operation string
        5 manifest_list string
        6 summary map<string, string>""",
    "refs": """
        1 name string required
        2 type string required
        3 snapshot_id long required
        4 max_reference_age_in_ms long
        5 min_snapshots_to_keep int
        6 max_snapshot_age_in_ms long""",
    "manifests": """
        14 content int required
        1 path string required
        2 length long required
        3 partition_spec_id int required
        4 added_snapshot_id long required
        5 added_data_files_count int required
        6 existing_data_files_count int required
        7 deleted_data_files_count int required
        15 added_delete_files_count int required
        16 existing_delete_files_count int required
        17 deleted_delete_files_count int required
        8 partition_summaries list<struct> required""",
    "all_manifests": """
        14 content int required
        1 path string required
        2 length long required
        3 partition_spec_id int
        4 added_snapshot_id long
        5 added_data_files_count int
        6 existing_data_files_count int
        7 deleted_data_files_count int
        15 added_delete_files_count int required
        16 existing_delete_files_count int required
        17 deleted_delete_files_count int required
        8 partition_summaries list<struct>
        18 reference_snapshot_id long required
        19 key_metadata binary""",
    "partitions": """
        1 partition struct required
        4 spec_id int required
        2 record_count long required
        3 file_count int required
        11 total_data_file_size_in_bytes long required
        5 position_delete_record_count long required
        6 position_delete_file_count int required
        7 equality_delete_record_count long required
        8 equality_delete_file_count int required
        9 last_updated_at timestamptz
        10 last_updated_snapshot_id long""",
    "position_deletes": """
        2147483546 file_path string required
        2147483545 pos long required
        2147483544 row struct
        2147483642 partition struct required
        2147483643 spec_id int required
        2147483646 delete_file_path string required
        2147483641 content_offset long
        2147483640 content_size_in_bytes long""",
}
"""The columns of Java's metadata tables, written down from it; a dot stands for an id that depends on the table."""
COLUMNS |= dict.fromkeys(("data_files", "delete_files", "all_files"), COLUMNS["files"])
COLUMNS |= {"all_data_files": COLUMNS["files"], "all_delete_files": COLUMNS["files"], "all_entries": COLUMNS["entries"]}


def _described(fields: Iterable[types.NestedField]) -> Iterator[str]:
    for field in fields:
        kind = str(field.field_type) if not isinstance(field.field_type, types.StructType) else "struct"
        kind = "list<struct>" if isinstance(field.field_type, types.ListType) and "struct" in kind else kind
        place = "." if field.name == "readable_metrics" else str(field.field_id)
        yield f"{place} {field.name} {kind}{' required' if field.required else ''}"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("name", TABLE_NAMES)
def test_columns_are_those_of_java(version: int, name: str) -> None:
    expected = _lines(COLUMNS[name])
    if name == "position_deletes" and not allows(version, Feature.DELETION_VECTORS):
        expected = expected[:-2]
    table = SyntheticTable(FIRST, version, parse_partition_spec("id", FIRST))
    assert list(_described(metadata_table_schema(name, table.metadata).fields)) == expected
    plain = SyntheticTable(FIRST, version)
    lost = ("partition struct",) if name != "partitions" else ("partition struct", " spec_id")
    found = list(_described(metadata_table_schema(name, plain.metadata).fields))
    assert found == [line for line in expected if not any(each in line for each in lost)]
    for each in (table, plain):
        shown = getattr(inspect(each), name)()
        assert isinstance(shown, pa.Table)
        assert shown.schema.names == [field.name for field in metadata_table_schema(name, each.metadata)]
    assert name in dir(Inspect)


def test_nested_columns_are_those_of_java() -> None:
    table = SyntheticTable(FIRST, 3, parse_partition_spec(["id", "days(ts)"], FIRST))
    entries = metadata_table_schema("entries", table.metadata)
    files = metadata_table_schema("files", table.metadata)
    data_file, own = entries.find_type("data_file"), files.find_type("partition")
    assert isinstance(data_file, types.StructType)
    assert data_file.fields == files.fields[:-1]
    assert str(own) == "struct<1000: id: optional int, 1001: ts_day: optional date>"
    metrics = files.find_type("readable_metrics")
    assert isinstance(metrics, types.StructType)
    assert [field.name for field in metrics.fields] == ["id", "name", "place.zip", "score", "ts"]
    for field in metrics.fields:
        assert isinstance(field.field_type, types.StructType)
        kind = FIRST.find_type(field.name)
        assert [(each.name, each.field_type, each.required) for each in field.field_type.fields] == [
            ("column_size", types.LongType(), False),
            ("value_count", types.LongType(), False),
            ("null_value_count", types.LongType(), False),
            ("nan_value_count", types.LongType(), False),
            ("lower_bound", kind, False),
            ("upper_bound", kind, False),
        ]
    summary = metadata_table_schema("manifests", table.metadata).find_type("partition_summaries.element")
    assert isinstance(summary, types.StructType)
    assert list(_described(summary.fields)) == [
        "10 contains_null boolean required",
        "11 contains_nan boolean",
        "12 lower_bound string",
        "13 upper_bound string",
    ]
    row = metadata_table_schema("position_deletes", table.metadata).find_type("row")
    assert row == FIRST.as_struct


# -- the naive definition


def _plain(value: Any) -> Any:
    """Values in a form that can be compared: floats by their bits, dicts in one order."""
    match value:
        case float():
            return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
        case dict():
            return {key: _plain(value[key]) for key in sorted(value)}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _listed(column: Any) -> list[Any]:
    """The values of a column; times as numbers, since Python has not all of them."""
    if isinstance(column, pa.ChunkedArray):
        return [each for chunk in column.chunks for each in _listed(chunk)]
    if pa.types.is_struct(column.type):
        parts = {field.name: _listed(pc.struct_field(column, [field.name])) for field in column.type}
        return [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    if pa.types.is_map(column.type):
        # A map that is missing says no more than an empty one.
        return [dict(each or ()) for each in column.to_pylist()]
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def _rows(found: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table."""
    columns = [_listed(column) for column in found.columns]
    return [_plain(dict(zip(found.schema.names, row, strict=True))) for row in zip(*columns, strict=True)]


METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
PLAIN = ("key_metadata", "sort_order_id", "first_row_id", "referenced_data_file", "content_offset")


def _file_row(file: DataFile, metadata: TableMetadata) -> dict[str, Any]:
    found: dict[str, Any] = {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": file.file_format.upper(),
        "spec_id": file.spec_id,
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "content_size_in_bytes": file.content_size_in_bytes,
        **{name: dict(getattr(file, name)) for name in METRICS},
        **{name: getattr(file, name) for name in PLAIN},
    }
    for name in ("split_offsets", "equality_ids"):
        found[name] = None if getattr(file, name) is None else list(getattr(file, name))
    if table_partition_type(metadata).fields:
        found["partition"] = _partition_row(file, metadata)
    return _plain(found)  # type: ignore[no-any-return]  # a dict gives a dict


def _partition_row(file: DataFile, metadata: TableMetadata) -> dict[str, Any]:
    values = dict(zip((field.field_id for field in metadata.spec(file.spec_id).fields), file.partition, strict=True))
    return {field.name: values.get(field.field_id) for field in table_partition_type(metadata).fields}


def _metrics_row(file: DataFile, schema: Schema) -> dict[str, Any]:
    found = {}
    for field_id, name in schema.names_by_id.items():
        kind = schema.fields_by_id[field_id].field_type
        if isinstance(kind, types.PrimitiveType):
            low, high = file.lower_bounds.get(field_id), file.upper_bounds.get(field_id)
            found[name] = {
                "column_size": file.column_sizes.get(field_id),
                "value_count": file.value_counts.get(field_id),
                "null_value_count": file.null_value_counts.get(field_id),
                "nan_value_count": file.nan_value_counts.get(field_id),
                "lower_bound": None if low is None else decode_bound(low, kind),
                "upper_bound": None if high is None else decode_bound(high, kind),
            }
    return _plain(found)  # type: ignore[no-any-return]  # a dict gives a dict


def _entries(table: SyntheticTable, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
    return [entry for manifest in manifests for entry in table.entries_of(manifest)]


def _naive_files(table: SyntheticTable, entries: Iterable[ManifestEntry], name: str) -> list[dict[str, Any]]:
    wanted = {"data": [FileContent.DATA], "delete": [FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES]}
    kinds = wanted.get(name.removeprefix("all_").removesuffix("_files"), list(FileContent))
    return [
        {
            **_file_row(entry.data_file, table.metadata),
            "readable_metrics": _metrics_row(entry.data_file, table.metadata.schema()),
        }
        for entry in entries
        if entry.is_live and entry.data_file.content in kinds
    ]


def _naive_entries(table: SyntheticTable, entries: Iterable[ManifestEntry]) -> list[dict[str, Any]]:
    return [
        {
            "status": int(entry.status),
            "snapshot_id": entry.snapshot_id,
            "sequence_number": entry.sequence_number,
            "file_sequence_number": entry.file_sequence_number,
            "data_file": _file_row(entry.data_file, table.metadata),
            "readable_metrics": _metrics_row(entry.data_file, table.metadata.schema()),
        }
        for entry in entries
    ]


def _naive_partitions(table: SyntheticTable, entries: Iterable[ManifestEntry]) -> list[dict[str, Any]]:
    metadata = table.metadata
    known = {field.field_id for field in table_partition_type(metadata).fields}
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if not entry.is_live:
            continue
        file = entry.data_file
        values = _plain(_partition_row(file, metadata))
        width = sum(field.field_id in known for field in metadata.spec(file.spec_id).fields)
        names = ("record_count", "file_count", "total_data_file_size_in_bytes", "position_delete_record_count")
        more = ("position_delete_file_count", "equality_delete_record_count", "equality_delete_file_count")
        row = found.setdefault(repr((width, values)), {"partition": values, **dict.fromkeys((*names, *more), 0)})
        assert entry.snapshot_id is not None
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        assert snapshot is not None
        if snapshot.timestamp_ms * 1000 > row.get("last_updated_at", 0):
            row["last_updated_at"] = snapshot.timestamp_ms * 1000
            row["last_updated_snapshot_id"] = snapshot.snapshot_id
            row["spec_id"] = file.spec_id
        kind = {FileContent.POSITION_DELETES: "position_delete_", FileContent.EQUALITY_DELETES: "equality_delete_"}
        prefix = kind.get(file.content, "")
        row[f"{prefix}record_count"] += file.record_count
        row[f"{prefix}file_count"] += 1
        row["total_data_file_size_in_bytes"] += 0 if prefix else file.file_size_in_bytes
    rows = list(found.values())
    if not known:
        for row in rows:
            del row["partition"], row["spec_id"]
    return rows


def _all_manifests(table: SyntheticTable) -> list[ManifestFile]:
    """The manifests of all snapshots, each once."""
    order = [table.states[snapshot.snapshot_id] for snapshot in table.metadata.snapshots]
    return list({each.manifest_path: each for manifests in reversed(order) for each in reversed(manifests)}.values())[
        ::-1
    ]


def _same(ours: list[dict[str, Any]], expected: list[dict[str, Any]], *, ordered: bool = True) -> None:
    assert sorted(map(_key, ours)) == sorted(map(_key, expected))
    if ordered:
        assert ours == expected


def _key(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=15)
@given(data=st.data())
def test_tables_hold_what_manifests_say(version: int, data: st.DataObject) -> None:
    table = data.draw(histories(version)).table
    shown = inspect(table)
    try:
        table_partition_type(table.metadata)
    except InvalidPartitionSpecError:
        # Fields of v1 specs may share an id, which has no partition type; Java refuses such tables too.
        with pytest.raises(InvalidPartitionSpecError):
            shown.files()
        return
    entries = _entries(table, table.manifests)
    for name in ("files", "data_files", "delete_files"):
        _same(_rows(getattr(shown, name)(options=FEW_THREADS)), _naive_files(table, entries, name))
    _same(_rows(shown.entries(options=FEW_THREADS)), _naive_entries(table, entries))
    _same(_rows(shown.partitions(options=FEW_THREADS)), _naive_partitions(table, entries))
    every = _entries(table, _all_manifests(table))
    for name in ("all_files", "all_data_files", "all_delete_files"):
        _same(_rows(getattr(shown, name)(options=FEW_THREADS)), _naive_files(table, every, name), ordered=False)
    _same(_rows(shown.all_entries(options=FEW_THREADS)), _naive_entries(table, every), ordered=False)
    if table.states:
        past = data.draw(st.sampled_from(sorted(table.states)))
        naive = _naive_files(table, _entries(table, table.states[past]), "files")
        _same(_rows(shown.files(past, options=FEW_THREADS)), naive)


FILTERS = [
    "record_count > 2",
    "content = 0",
    "content != 0",
    "content in (1, 2) and record_count < 3",
    "spec_id = 0",
    "not spec_id = 1 or content = 2",
    "file_path like 's3%'",
    "referenced_data_file is not null",
    "readable_metrics.id.lower_bound > 1",
    "readable_metrics.place.zip.upper_bound = 2",
    "readable_metrics.ts.null_value_count is null",
    "sort_order_id is null and file_size_in_bytes > 1001",
]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=15)
@given(data=st.data())
def test_filters_and_columns_that_are_pushed_down_give_the_same(version: int, data: st.DataObject) -> None:
    table = data.draw(histories(version)).table
    try:
        kind = table_partition_type(table.metadata)
    except InvalidPartitionSpecError:
        return
    shown = inspect(table)
    texts = [*FILTERS, *(f"partition.{field.name} is null" for field in kind.fields)]
    for field in kind.fields:
        if isinstance(field.field_type, types.IntegerType | types.LongType):
            texts += [f"partition.{field.name} >= 2", f"partition.{field.name} = 0 or content = 1"]
        if isinstance(field.field_type, types.DoubleType):
            texts += [f"partition.{field.name} is nan", f"partition.{field.name} > 0.0 or content = 2"]
        if isinstance(field.field_type, types.DateType):
            texts += [f"partition.{field.name} >= '1970-01-02'"]
        if isinstance(field.field_type, types.StringType):
            texts += [f"partition.{field.name} = 'a'", f"not partition.{field.name} in ('b', '')"]
    text = data.draw(st.sampled_from(texts))
    whole = shown.files(options=FEW_THREADS)
    bound = bind(parse_expression(text), metadata_table_schema("files", table.metadata))
    expected = whole.filter(mask(bound, whole))
    assert _rows(shown.files(row_filter=text, options=FEW_THREADS)) == _rows(expected)
    names = tuple(data.draw(st.lists(st.sampled_from(whole.schema.names), min_size=1, unique=True)))
    chosen = shown.files(row_filter=text, selected_fields=names, options=FEW_THREADS)
    assert chosen.schema.names == [name for name in whole.schema.names if name in names]
    assert _rows(chosen) == _rows(expected.select(chosen.schema.names))
    if text.startswith("partition."):
        whole = shown.partitions(options=FEW_THREADS)
        text = text.partition(" or ")[0]
        bound = bind(parse_expression(text), metadata_table_schema("partitions", table.metadata))
        assert _rows(shown.partitions(row_filter=text, options=FEW_THREADS)) == _rows(whole.filter(mask(bound, whole)))
