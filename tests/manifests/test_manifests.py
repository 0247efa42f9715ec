"""Manifests of every version come back as they were written, for us and for the reference library."""

import io
import json
import math
import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import CorruptFileError, InvalidInputError, InvalidPropertyError, UnsupportedVersionError
from icefloe.manifests import (
    EVERYTHING,
    MAP_METRICS,
    UNASSIGNED_SEQUENCE_NUMBER,
    WITHOUT_METRICS,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFormat,
    Metric,
    StatsForm,
    decode_manifest,
    read_manifest,
    wanted,
    write_manifest,
    write_manifests,
)
from icefloe.partitioning import UNPARTITIONED, fields_from_json, parse_partition_spec, partition_type
from icefloe.schema import Schema, decode, reserved, schema_from_json, types
from icefloe.schema.binary import encode
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.avro.kernel_choice import compiled_kernels, plain_kernels
from tests.manifests.entry_strategies import SNAPSHOT, data_files, entries, schema_for, spec_for

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType()), types.NestedField(2, "name", types.StringType()), schema_id=1
)


class Memory:
    """Files by location."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, location: str) -> bytes:
        return self.files[location]

    def write(self, location: str, data: bytes) -> None:
        assert location not in self.files
        self.files[location] = data


def added(path: str = "s3://b/f", **changes: Any) -> ManifestEntry:
    return ManifestEntry(EntryStatus.ADDED, DataFile(path, "parquet", 10, 100, **changes))


def write(rows: Any, form: ManifestFormat) -> tuple[Any, bytes]:
    store = Memory()
    manifest = write_manifest(rows, form, "s3://b/m.avro", store.write)
    return manifest, store.files["s3://b/m.avro"]


def records(data: bytes) -> list[Any]:
    """The rows of an Avro file, by the reference library."""
    return list(fastavro.reader(io.BytesIO(data)))


def listed(column: Any) -> list[Any]:
    """The values of a column that must be there."""
    found: list[Any] = column.to_pylist()
    return found


@st.composite
def manifests(draw: st.DrawFn) -> tuple[ManifestFormat, list[ManifestEntry]]:
    version = draw(st.sampled_from(ALL_VERSIONS))
    schema = schema_for(version)
    partitioned = draw(st.booleans())
    spec = spec_for(schema) if partitioned else UNPARTITIONED
    contents = list(ManifestContent) if allows(version, Feature.DELETE_FILES) else [ManifestContent.DATA]
    content = draw(st.sampled_from(contents))
    stats = draw(st.sampled_from((None, *StatsForm))) if allows(version, Feature.CONTENT_STATS) else None
    codec = draw(st.sampled_from(("gzip", "zstd", "snappy", "uncompressed")))
    form = ManifestFormat(version, schema, spec, SNAPSHOT, content, codec, stats=stats)
    return form, draw(st.lists(entries(version, content, partitioned), min_size=1, max_size=4))


@given(manifests())
@settings(max_examples=60)
def test_both_encoders_write_the_same_bytes(manifest: tuple[ManifestFormat, list[ManifestEntry]]) -> None:
    form, rows = manifest
    with compiled_kernels():
        compiled = write(rows, form)[1]
    with plain_kernels():
        plain = write(rows, form)[1]
    # Each file ends with its own sync marker.
    assert plain.replace(plain[-16:], b"") == compiled.replace(compiled[-16:], b"")


def test_many_blocks_of_both_encoders() -> None:
    rows = [added(f"s3://b/{i}", value_counts={1: i, 2: 2**40 + i}) for i in range(9000)]
    form = ManifestFormat(2, SCHEMA, UNPARTITIONED, SNAPSHOT)
    found = []
    for kernels in (compiled_kernels, plain_kernels):
        with kernels():
            data = write(rows, form)[1]
            assert decode_manifest(data, "m").column("file_path").to_pylist() == [f"s3://b/{i}" for i in range(9000)]
        found.append(data.replace(data[-16:], b""))
    assert found[0] == found[1]


def test_a_process_that_reads_and_writes_little_loads_no_compiler() -> None:
    work = """
import sys
from icefloe.manifests import *
from icefloe.partitioning.spec import UNPARTITIONED
from icefloe.schema.schema import Schema
form = ManifestFormat(2, Schema(), UNPARTITIONED, 7)
files = {}
write_manifest([ManifestEntry(EntryStatus.ADDED, DataFile("s3://b/f", "parquet", 1, 1))], form, "m", files.__setitem__)
assert decode_manifest(files["m"], "m").file_at(0).file_path == "s3://b/f"
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", work], check=True)


def kept(entry: ManifestEntry, form: ManifestFormat) -> ManifestEntry:
    """What of an entry the version and the form of metrics can hold."""
    file = entry.data_file
    for metric in set(Metric) - {Metric.COLUMN_SIZES}:
        if form.stats_form is StatsForm.CONTENT_STATS or metric not in MAP_METRICS:
            ids = set() if form.stats_form is StatsForm.MAPS else stats_ids(form.schema, metric)
            values: Any = {key: value for key, value in getattr(file, metric.value).items() if key in ids}
            changes: dict[str, Any] = {metric.value: values}
            file = replace(file, **changes)
    return replace(entry, data_file=file)


def stats_ids(schema: Schema, metric: Metric) -> set[int]:
    """The columns that content stats have the metric of, by the table of the spec."""
    kinds = {f.field_id: f.field_type for f in (*schema.fields, *reserved.ROW_LINEAGE_COLUMNS)}
    geo, variant = types.GeometryType, types.VariantType
    chosen: Any = {
        Metric.NAN_VALUE_COUNTS: lambda kind: isinstance(kind, types.FloatType | types.DoubleType),
        Metric.TIGHT_BOUNDS: lambda kind: not isinstance(kind, types.ListType | geo | variant),
        Metric.AVG_VALUE_SIZES: lambda kind: isinstance(kind, types.StringType | types.BinaryType | geo | variant),
        Metric.LOWER_BOUNDS: lambda kind: not isinstance(kind, types.ListType),
        Metric.UPPER_BOUNDS: lambda kind: not isinstance(kind, types.ListType),
    }.get(metric, lambda kind: not isinstance(kind, types.ListType))
    return {field_id for field_id, kind in kinds.items() if chosen(kind)}


def normal(value: Any) -> Any:
    """A form in which NaN equals NaN, -0.0 differs from 0.0, and the order of maps does not matter."""
    if is_dataclass(value):
        return [normal(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return repr(sorted(value.items()))
    return repr(value)


@given(manifests())
@settings(max_examples=100)
def test_what_is_written_is_read(case: tuple[ManifestFormat, list[ManifestEntry]]) -> None:
    form, rows = case
    manifest, data = write(rows, form)
    columns = decode_manifest(data, "m", partition_type=form.partition_type, spec_id=form.spec.spec_id)
    assert [normal(entry) for entry in columns.entries()] == [normal(kept(entry, form)) for entry in rows]
    assert manifest.manifest_length == len(data)
    assert manifest.added_files_count == sum(entry.status is EntryStatus.ADDED for entry in rows)
    assert manifest.deleted_rows_count == sum(
        entry.data_file.record_count for entry in rows if entry.status is EntryStatus.DELETED
    )
    numbers = [entry.sequence_number for entry in rows if entry.is_live and entry.sequence_number is not None]
    if allows(form.version, Feature.SEQUENCE_NUMBERS):
        assert manifest.min_sequence_number == min(numbers, default=UNASSIGNED_SEQUENCE_NUMBER)
        assert manifest.sequence_number == UNASSIGNED_SEQUENCE_NUMBER
    else:
        assert (manifest.sequence_number, manifest.min_sequence_number) == (0, 0)
    again = decode_manifest(write(columns, form)[1], "m", partition_type=form.partition_type, spec_id=form.spec.spec_id)
    assert [normal(entry) for entry in again.entries()] == [normal(entry) for entry in columns.entries()]


@given(manifests())
@settings(max_examples=60)
def test_the_reference_library_reads_the_same(case: tuple[ManifestFormat, list[ManifestEntry]]) -> None:
    form, rows = case
    if form.codec in ("zstd", "snappy"):
        form = replace(form, codec="gzip")
    found = records(write(rows, form)[1])
    for entry, row in zip(rows, found, strict=True):
        file = row["data_file"]
        assert (row["status"], row["snapshot_id"]) == (entry.status, entry.snapshot_id)
        assert file["file_path"] == entry.data_file.file_path
        assert file["file_format"] == entry.data_file.file_format.upper()
        assert file["record_count"] == entry.data_file.record_count
        assert (file["split_offsets"] is None) == (entry.data_file.split_offsets is None)
        sizes = {pair["key"]: pair["value"] for pair in file["column_sizes"] or ()}
        assert sizes == entry.data_file.column_sizes
        assert len(file["partition"]) == len(form.partition_type.fields)
        if form.stats_form is StatsForm.MAPS:
            lower = {pair["key"]: pair["value"] for pair in file["lower_bounds"] or ()}
            assert lower == entry.data_file.lower_bounds
        if allows(form.version, Feature.SEQUENCE_NUMBERS):
            assert row["sequence_number"] == entry.sequence_number
            assert row["file_sequence_number"] == entry.file_sequence_number


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_field_ids_names_and_header(version: int) -> None:
    schema = schema_for(version)
    spec = spec_for(schema)
    file = DataFile("s3://b/f", "parquet", 1, 1, spec_id=5, partition=(None,) * len(spec.fields))
    form = ManifestFormat(version, schema, spec, SNAPSHOT)
    data = write([ManifestEntry(EntryStatus.ADDED, file)], form)[1]
    reader = fastavro.reader(io.BytesIO(data))
    header = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    expected = {"schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "iceberg.schema"}
    assert set(header) == expected | ({"content"} if allows(version, Feature.DELETE_FILES) else set())
    assert schema_from_json(json.loads(header["schema"])) == schema
    assert fields_from_json(json.loads(header["partition-spec"]), 5) == spec
    assert (header["schema-id"], header["partition-spec-id"], header["format-version"]) == ("3", "5", str(version))
    root: Any = reader.writer_schema
    assert (root["type"], root["name"]) == ("record", "manifest_entry")
    ids = {field["name"]: field["field-id"] for field in root["fields"]}
    has_numbers = allows(version, Feature.SEQUENCE_NUMBERS)
    numbers = {"sequence_number": 3, "file_sequence_number": 4} if has_numbers else {}
    assert ids == {"status": 0, "snapshot_id": 1, "data_file": 2, **numbers}
    inner = next(field["type"] for field in root["fields"] if field["name"] == "data_file")
    assert inner["name"] == "r2"
    fields = {field["field-id"]: field for field in inner["fields"]}
    v1 = {100, 101, 102, 103, 104, 105, 108, 109, 110, 137, 125, 128, 131, 132, 140}
    v2 = v1 - {105} | {134, 135, 143}
    v3 = v2 | {142, 144, 145}
    assert set(fields) == {1: v1, 2: v2, 3: v3, 4: v3 - {109, 110, 137, 125, 128}}[version]
    assert fields[102]["type"]["name"] == "r102"
    assert [field["field-id"] for field in fields[102]["type"]["fields"]] == [field.field_id for field in spec.fields]
    assert fields[102]["type"]["fields"][-2]["iceberg-field-name"] == "odd name é"
    assert fields[108]["type"][1]["items"]["name"] == "k117_v118"
    assert fields[132]["type"][1]["element-id"] == 133
    own = schema_from_json(json.loads(header["iceberg.schema"]))
    assert own.find_field("data_file.file_path").field_id == 100
    kinds = [field for field in own.fields_by_id.values() if isinstance(field.field_type, types.MapType)]
    assert all(field.field_type.value_required for field in kinds if isinstance(field.field_type, types.MapType))


def test_stats_in_maps_and_in_content_stats_say_the_same() -> None:
    metrics: dict[str, Any] = {
        "value_counts": {1: 10, 2: 10},
        "null_value_counts": {1: 0, 2: 3},
        "lower_bounds": {1: encode(5, types.LongType()), 2: b"a"},
        "upper_bounds": {1: encode(9, types.LongType()), 2: b"zz"},
        "tight_bounds": {1: 1, 2: 0},
        "avg_value_sizes": {2: 7},
    }
    rows = [added("s3://b/1", **metrics), added("s3://b/2")]
    for stats in StatsForm:
        data = write(rows, ManifestFormat(4, SCHEMA, UNPARTITIONED, 1, stats=stats))[1]
        row = records(data)[0]["data_file"]
        assert ("content_stats" in row) == (stats is not StatsForm.MAPS)
        assert ("lower_bounds" in row) == (stats is not StatsForm.CONTENT_STATS)
        if stats is not StatsForm.MAPS:
            assert row["content_stats"] == {
                "id": {
                    "lower_bound": 5,
                    "upper_bound": 9,
                    "tight_bounds": True,
                    "value_count": 10,
                    "null_value_count": 0,
                },
                "name": {
                    "lower_bound": "a",
                    "upper_bound": "zz",
                    "tight_bounds": False,
                    "value_count": 10,
                    "null_value_count": 3,
                    "avg_value_size_in_bytes": 7,
                },
            }
        for choice in (EVERYTHING, wanted("file_path", field_ids=[1, 2])):
            columns = decode_manifest(data, "m", choice)
            assert listed(columns.lower_bounds(1, types.LongType())) == [5, None]
            assert listed(columns.upper_bounds(2, types.StringType())) == ["zz", None]
            assert columns.null_counts(2).to_pylist() == [3, None]
            assert columns.null_counts(99).to_pylist() == [None, None]
            assert columns.file_at(0).lower_bounds == metrics["lower_bounds"]


def test_bounds_written_before_a_promotion_are_read_as_the_new_type() -> None:
    rows = [
        added("s3://b/1", lower_bounds={1: encode(5, types.IntegerType())}),
        added("s3://b/2", lower_bounds={1: encode(6, types.LongType())}),
    ]
    columns = decode_manifest(write(rows, ManifestFormat(2, SCHEMA, UNPARTITIONED, 1))[1], "m")
    assert listed(columns.lower_bounds(1, types.LongType())) == [5, 6]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_only_what_is_wanted_is_decoded(version: int) -> None:
    rows = [added(f"s3://b/{i}", value_counts={1: i, 2: 2 * i}, split_offsets=(4,)) for i in range(50)]
    data = write(rows, ManifestFormat(version, SCHEMA, UNPARTITIONED, 1, stats=StatsForm.MAPS))[1]
    few = decode_manifest(data, "m", wanted("file_path"))
    assert "split_offsets" not in few.columns
    assert not few.metrics.maps
    assert not few.metrics.spread
    one = decode_manifest(data, "m", wanted("file_path", field_ids=[2], metrics=[Metric.VALUE_COUNTS]))
    assert set(one.metrics.spread) == {(Metric.VALUE_COUNTS, 2)}
    assert one.value_counts(2).to_pylist() == [2 * i for i in range(50)]
    most = decode_manifest(data, "m", WITHOUT_METRICS)
    everything = decode_manifest(data, "m")
    assert few.nbytes < one.nbytes < everything.nbytes
    assert few.nbytes < most.nbytes < everything.nbytes
    assert one.file_at(7).value_counts == {2: 14}
    with pytest.raises(InvalidInputError, match="nothing"):
        wanted("nothing")


def test_rows_are_taken_without_the_others() -> None:
    rows = [added(f"s3://b/{i}", value_counts={1: i} if i % 2 else {}) for i in range(20)]
    columns = decode_manifest(write(rows, ManifestFormat(2, SCHEMA, UNPARTITIONED, 1))[1], "m")
    assert [file.file_path for file in columns.files([3, 1])] == ["s3://b/3", "s3://b/1"]
    assert columns.file_at(5) == rows[5].data_file
    part = columns.slice(4, 6)
    assert [entry.data_file for entry in part.entries()] == [entry.data_file for entry in rows[4:10]]
    assert part.value_counts(1).to_pylist() == [None, 5, None, 7, None, 9]
    odd = columns.filter(pa.array([i % 2 == 1 for i in range(20)]))
    assert odd.value_counts(1).to_pylist() == list(range(1, 20, 2))
    assert odd.slice(2).value_counts(1).to_pylist() == list(range(5, 20, 2))


@given(st.data())
@settings(max_examples=60)
def test_any_damage_to_a_manifest_is_an_error_of_ours(data: st.DataObject) -> None:
    rows = [added(f"s3://b/{i}", value_counts={1: i}, lower_bounds={1: b"12345678"}) for i in range(5)]
    codec = data.draw(st.sampled_from(("gzip", "uncompressed")))
    whole = bytearray(
        write(rows, ManifestFormat(data.draw(st.sampled_from(ALL_VERSIONS)), SCHEMA, UNPARTITIONED, 1, codec=codec))[1]
    )
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for _ in range(data.draw(st.integers(1, 3))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    choice = data.draw(st.sampled_from((EVERYTHING, wanted("file_path", field_ids=[1]))))
    with suppress(CorruptFileError):
        decode_manifest(bytes(whole), "damaged", choice)


def test_an_avro_file_that_is_no_manifest_is_refused() -> None:
    out = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": [{"name": "a", "type": "int"}]}
    fastavro.writer(out, schema, [{"a": 1}])
    with pytest.raises(CorruptFileError, match="not a manifest"):
        decode_manifest(out.getvalue(), "m")
    with pytest.raises(CorruptFileError, match="neither"):
        decode_manifest(b"hello", "m")


def test_manifests_roll_at_the_target_size_and_threads_change_nothing() -> None:
    rows = [added(f"s3://b/{i:08}-{i * 7919 % 10007}", value_counts={c: i * c for c in range(10)}) for i in range(8000)]
    form = ManifestFormat(2, SCHEMA, UNPARTITIONED, 1)
    for workers in (1, 3, None):
        store = Memory()
        names = (f"m{i}" for i in range(1000))
        found = write_manifests(rows, form, names, store.write, target_size=40_000, workers=workers)
        assert len(found) > 2
        assert [manifest.manifest_path for manifest in found] == [f"m{i}" for i in range(len(found))]
        assert all(40_000 <= manifest.manifest_length < 90_000 for manifest in found[:-1])
        assert sum(manifest.added_files_count or 0 for manifest in found) == 8000
        paths = []
        for manifest in found:
            columns = read_manifest(manifest, store.read)
            assert len(columns) == manifest.added_files_count
            paths += columns.column("file_path").to_pylist()
        assert paths == [row.data_file.file_path for row in rows]


SUMMARY_CASES: list[tuple[Any, list[Any], tuple[bool, bool, Any, Any]]] = [
    (types.LongType(), [3, 1, 2], (False, False, 1, 3)),
    (types.LongType(), [None, None], (True, False, None, None)),
    (types.StringType(), ["b", None, "é", ""], (True, False, "", "é")),
    (types.DoubleType(), [1.0, math.nan], (False, True, 1.0, 1.0)),
    (types.DoubleType(), [math.nan, None], (True, True, None, None)),
    (types.DoubleType(), [0.0, -0.0], (False, False, -0.0, 0.0)),
    (types.DoubleType(), [-0.0, -1.0], (False, False, -1.0, -0.0)),
    (types.DoubleType(), [0.0, 1.0], (False, False, 0.0, 1.0)),
    (types.DoubleType(), [-math.inf, math.inf], (False, False, -math.inf, math.inf)),
]


@pytest.mark.parametrize(("kind", "values", "expected"), SUMMARY_CASES)
def test_partition_summaries(
    kind: types.PrimitiveType, values: list[Any], expected: tuple[bool, bool, Any, Any]
) -> None:
    schema = Schema(types.NestedField(1, "p", kind))
    spec = parse_partition_spec("p", schema)
    manifest = write(
        [added(f"s3://b/{i}", partition=(v,)) for i, v in enumerate(values)], ManifestFormat(2, schema, spec, 1)
    )[0]
    (summary,) = manifest.partitions
    bounds = [None if value is None else encode(value, kind) for value in expected[2:]]
    assert summary.contains_null is expected[0]
    assert summary.contains_nan is expected[1]
    assert [summary.lower_bound, summary.upper_bound] == bounds


@given(st.data())
@settings(max_examples=60)
def test_summaries_of_every_type_hold_every_value(data: st.DataObject) -> None:
    schema = schema_for(4)
    spec = spec_for(schema)
    files = data.draw(st.lists(data_files(4, ManifestContent.DATA), min_size=1, max_size=5))
    form = ManifestFormat(4, schema, spec, SNAPSHOT)
    manifest = write([ManifestEntry(EntryStatus.ADDED, file) for file in files], form)[0]
    for place, (field, summary) in enumerate(zip(form.partition_type.fields, manifest.partitions, strict=True)):
        values = [file.partition[place] for file in files]
        known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
        assert summary.contains_null == (None in values)
        assert (summary.lower_bound is None) == (not known)
        if known:
            key: Any = (lambda v: v.bytes) if str(field.field_type) == "uuid" else (lambda v: v)
            low = decode(summary.lower_bound, field.field_type)
            high = decode(summary.upper_bound, field.field_type)
            assert key(low) == min(map(key, known))
            assert key(high) == max(map(key, known))


def test_relative_paths_in_v4() -> None:
    home = "s3://bucket/db/table"
    vector = DataFile(
        f"{home}/data/x.puffin",
        "puffin",
        1,
        10,
        FileContent.POSITION_DELETES,
        referenced_data_file=f"{home}/data/f",
        content_offset=4,
        content_size_in_bytes=6,
    )
    outside = replace(vector, file_path="hdfs://other/x.puffin", referenced_data_file=f"{home}2/data/f")
    odd = replace(vector, file_path=f"{home}/a:b", referenced_data_file=f"{home}/")
    rows = [ManifestEntry(EntryStatus.ADDED, file) for file in (vector, outside, odd)]
    store = Memory()
    form = ManifestFormat(4, SCHEMA, UNPARTITIONED, 1, ManifestContent.DELETES, table_location=home)
    manifest = write_manifest(rows, form, "m", store.write)
    raw = decode_manifest(store.files["m"], "m")
    assert raw.column("file_path").to_pylist() == ["data/x.puffin", "hdfs://other/x.puffin", f"{home}/a:b"]
    assert raw.column("referenced_data_file").to_pylist() == ["data/f", f"{home}2/data/f", f"{home}/"]
    moved = read_manifest(manifest, store.read, table_location="s3://new")
    assert moved.column("file_path").to_pylist() == ["s3://new/data/x.puffin", "hdfs://other/x.puffin", f"{home}/a:b"]
    back = read_manifest(manifest, store.read, table_location=home)
    assert list(back.files()) == [vector, outside, odd]
    old = write_manifest(rows, replace(form, version=3), "m3", store.write)
    assert store.files["m3"]
    assert read_manifest(old, store.read).column("file_path")[0].as_py() == f"{home}/data/x.puffin"


def entry(
    status: EntryStatus = EntryStatus.ADDED, numbers: tuple[Any, Any, Any] = (None, None, None), **changes: Any
) -> ManifestEntry:
    return replace(
        added(**changes),
        status=status,
        snapshot_id=numbers[0],
        sequence_number=numbers[1],
        file_sequence_number=numbers[2],
    )


EXISTING, DELETED = EntryStatus.EXISTING, EntryStatus.DELETED
DELETES: dict[str, Any] = {"content": FileContent.POSITION_DELETES}


@pytest.mark.parametrize(
    ("version", "content", "row", "problem"),
    [
        (2, ManifestContent.DATA, entry(EXISTING, (1, None, 1)), "sequence_number"),
        (2, ManifestContent.DATA, entry(EXISTING, (1, 1, None)), "file_sequence_number"),
        (3, ManifestContent.DATA, entry(DELETED, (9, None, 1)), "sequence_number"),
        (2, ManifestContent.DATA, entry(EXISTING, (None, 1, 1)), "snapshot"),
        (2, ManifestContent.DATA, entry(DELETED, (8, 1, 1)), "DELETED by another"),
        (2, ManifestContent.DATA, entry(numbers=(8, None, None)), "ADDED by another"),
        (2, ManifestContent.DATA, entry(numbers=(9, 1, 1)), "left to the commit"),
        (2, ManifestContent.DATA, entry(numbers=(9, -1, None)), "negative"),
        (2, ManifestContent.DATA, entry(**DELETES), "delete manifests"),
        (2, ManifestContent.DELETES, entry(), "data manifests"),
        (2, ManifestContent.DELETES, entry(content=FileContent.EQUALITY_DELETES), "equality_ids"),
        (2, ManifestContent.DELETES, entry(**DELETES, equality_ids=(1,)), "equality_ids"),
        (3, ManifestContent.DELETES, entry(**DELETES), "position delete"),
        (2, ManifestContent.DATA, replace(entry(), data_file=replace(entry().data_file, record_count=-1)), "negative"),
        (2, ManifestContent.DATA, entry(spec_id=4), "spec 4"),
        (2, ManifestContent.DATA, entry(partition=(1,)), "partition values"),
        (2, ManifestContent.DATA, entry(value_counts={"a": 1}), "cannot"),
        (2, ManifestContent.DATA, entry(sort_order_id=2**40), "cannot"),
        (
            3,
            ManifestContent.DELETES,
            entry(content=FileContent.EQUALITY_DELETES, equality_ids=(1,), first_row_id=1),
            "first_row_id",
        ),
    ],
)
def test_entries_that_break_a_rule_are_refused(
    version: int, content: ManifestContent, row: ManifestEntry, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        write([row], ManifestFormat(version, SCHEMA, UNPARTITIONED, 9, content))


def test_deletion_vectors_need_their_place_and_their_version() -> None:
    whole: dict[str, Any] = {"referenced_data_file": "s3://b/d", "content_offset": 1, "content_size_in_bytes": 2}
    row = replace(
        entry(**DELETES, **whole), data_file=replace(entry(**DELETES, **whole).data_file, file_format="puffin")
    )
    write([row], ManifestFormat(3, SCHEMA, UNPARTITIONED, 9, ManifestContent.DELETES))
    with pytest.raises(InvalidInputError, match="deletion vector"):
        write([row], ManifestFormat(2, SCHEMA, UNPARTITIONED, 9, ManifestContent.DELETES))
    for name in whole:
        missing: dict[str, Any] = {name: None}
        lacking = replace(row, data_file=replace(row.data_file, **missing))
        with pytest.raises(InvalidInputError, match=name):
            write([lacking], ManifestFormat(3, SCHEMA, UNPARTITIONED, 9, ManifestContent.DELETES))


def test_existing_position_deletes_stay_valid_in_v3() -> None:
    row = entry(EXISTING, (1, 1, 1), **DELETES)
    manifest, data = write([row], ManifestFormat(3, SCHEMA, UNPARTITIONED, 9, ManifestContent.DELETES))
    assert manifest.existing_files_count == 1
    assert list(decode_manifest(data, "m").entries()) == [row]


def test_formats_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UnsupportedVersionError):
        ManifestFormat(5, SCHEMA, UNPARTITIONED, 1)
    with pytest.raises(UnsupportedVersionError, match="content stats"):
        ManifestFormat(3, SCHEMA, UNPARTITIONED, 1, stats=StatsForm.BOTH)
    with pytest.raises(UnsupportedVersionError, match="delete"):
        write([added()], ManifestFormat(1, SCHEMA, UNPARTITIONED, 1, ManifestContent.DELETES))
    with pytest.raises(InvalidPropertyError, match="lzma"):
        ManifestFormat(2, SCHEMA, UNPARTITIONED, 1, codec="lzma")
    with pytest.raises(InvalidInputError, match="at least one"):
        write([], ManifestFormat(2, SCHEMA, UNPARTITIONED, 1))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_partition_values_take_the_types_of_the_spec_now(version: int) -> None:
    old = Schema(types.NestedField(1, "p", types.IntegerType()))
    new = Schema(types.NestedField(1, "p", types.LongType()))
    spec = parse_partition_spec("p", old)
    data = write([added(partition=(5,))], ManifestFormat(version, old, spec, 1))[1]
    columns = decode_manifest(data, "m", partition_type=partition_type(spec, new))
    assert columns.partition[1000].type == pa.int64()
    assert columns.file_at(0).partition == (5,)
    bare = decode_manifest(data, "m")
    assert bare.partition[1000].type == pa.int32()
    text = types.StructType(types.NestedField(1000, "p", types.StringType()))
    assert decode_manifest(data, "m", partition_type=text).partition[1000].type == pa.int32()
    # A column that was replaced: what the manifest was written with counts, if the type of now cannot hold it.
    money = decode_manifest(
        data, "m", partition_type=types.StructType(types.NestedField(1000, "p", types.DecimalType(4, 2)))
    )
    assert money.partition_type.fields[0].field_type == types.IntegerType()
    assert money.partition[1000].to_pylist() == [5]


def test_values_are_picklable_and_hashable() -> None:
    row = added(value_counts={1: 2})
    assert pickle.loads(pickle.dumps(row)) == row
    assert len({row, added(value_counts={1: 3}), row}) == 2
    columns = decode_manifest(write([row], ManifestFormat(2, SCHEMA, UNPARTITIONED, 1))[1], "m")
    assert list(pickle.loads(pickle.dumps(columns)).files()) == list(columns.files())
