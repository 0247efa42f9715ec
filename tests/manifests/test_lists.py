"""Manifest lists of every version, read and written, across versions."""

import io
from contextlib import suppress
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import CorruptFileError, IcefloeError, InvalidInputError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    PartitionFieldSummary,
    SummaryColumns,
    decode_manifest_list,
    encode_manifest_list,
    inline_manifests,
    read_manifest,
    read_manifest_list,
    write_manifest,
)
from icefloe.partitioning import UNPARTITIONED
from icefloe.schema import NestedField, Schema
from icefloe.schema.binary import encode
from icefloe.schema.types import IntegerType, LongType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.strategies import texts

COUNT = st.integers(0, 2**31 - 1)
LONG = st.integers(0, 2**62)
SUMMARY = st.builds(
    PartitionFieldSummary,
    st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.binary(max_size=9),
    st.none() | st.binary(max_size=9),
)


@st.composite
def manifest_files(draw: st.DrawFn, version: int) -> ManifestFile:
    has_numbers = allows(version, Feature.SEQUENCE_NUMBERS)
    count = COUNT if has_numbers else st.none() | COUNT
    rows = LONG if has_numbers else st.none() | LONG
    content = draw(st.sampled_from(ManifestContent)) if has_numbers else ManifestContent.DATA
    is_lineage = allows(version, Feature.ROW_LINEAGE) and content is ManifestContent.DATA
    return ManifestFile(
        manifest_path="s3://b/" + draw(texts(8)),
        manifest_length=draw(LONG),
        partition_spec_id=draw(COUNT),
        added_snapshot_id=draw(LONG),
        content=content,
        sequence_number=draw(LONG) if has_numbers else 0,
        min_sequence_number=draw(LONG) if has_numbers else 0,
        added_files_count=draw(count),
        existing_files_count=draw(count),
        deleted_files_count=draw(count),
        added_rows_count=draw(rows),
        existing_rows_count=draw(rows),
        deleted_rows_count=draw(rows),
        partitions=draw(st.none() | st.lists(SUMMARY, max_size=3).map(tuple)),
        key_metadata=draw(st.none() | st.binary(max_size=4)),
        first_row_id=draw(LONG) if is_lineage else None,
    )


CASES = st.sampled_from(ALL_VERSIONS).flatmap(
    lambda version: st.tuples(st.just(version), st.lists(manifest_files(version), max_size=5))
)


def encoded(manifests: Any, version: int, **changes: Any) -> tuple[bytes, int | None]:
    has_numbers = allows(version, Feature.SEQUENCE_NUMBERS)
    options: dict[str, Any] = {
        "snapshot_id": 77,
        "parent_snapshot_id": None,
        "sequence_number": 9 if has_numbers else 0,
        "first_row_id": 1000 if allows(version, Feature.ROW_LINEAGE) else None,
    }
    listed = encode_manifest_list(manifests, version, **{**options, **changes})
    if "table_location" not in changes:
        assert listed.manifests == decode_manifest_list(listed.data, "l")
    return listed.data, listed.added_rows


@given(CASES)
def test_what_is_written_is_read(case: tuple[int, list[ManifestFile]]) -> None:
    version, manifests = case
    data, added_rows = encoded(manifests, version)
    assert list(decode_manifest_list(data, "l")) == manifests
    assert added_rows == (0 if allows(version, Feature.ROW_LINEAGE) else None)


@given(CASES)
def test_the_reference_library_reads_the_same(case: tuple[int, list[ManifestFile]]) -> None:
    version, manifests = case
    reader = fastavro.reader(io.BytesIO(encoded(manifests, version)[0]))
    for row, manifest in zip(reader, manifests, strict=True):
        assert isinstance(row, dict)
        for name, value in row.items():
            if name != "partitions":
                assert value == getattr(manifest, name)
        if manifest.partitions is None:
            assert row["partitions"] is None
        else:
            summaries = [PartitionFieldSummary(**item) for item in row["partitions"]]
            assert summaries == list(manifest.partitions)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_names_ids_and_header(version: int) -> None:
    reader = fastavro.reader(io.BytesIO(encoded([], version, parent_snapshot_id=5)[0]))
    root: Any = reader.writer_schema
    assert root["name"] == "manifest_file"
    ids = {field["field-id"]: field for field in root["fields"]}
    v1 = {500, 501, 502, 503, 504, 505, 506, 507, 512, 513, 514, 519}
    assert set(ids) == {1: v1, 2: v1 | {515, 516, 517}}.get(version, v1 | {515, 516, 517, 520})
    items = ids[507]["type"][1]
    assert (items["element-id"], items["items"]["name"]) == (508, "r508")
    header = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    assert header.pop("iceberg.schema")
    expected = {"snapshot-id": "77", "parent-snapshot-id": "5", "format-version": str(version)}
    if allows(version, Feature.SEQUENCE_NUMBERS):
        expected["sequence-number"] = "9"
    if allows(version, Feature.ROW_LINEAGE):
        expected["first-row-id"] = "1000"
    assert header == expected
    assert fastavro.reader(io.BytesIO(encoded([], version)[0])).metadata["parent-snapshot-id"] == "null"


def test_numbers_and_row_ids_are_given_when_the_list_is_written() -> None:
    counts: dict[str, Any] = dict.fromkeys(_COUNT_NAMES, 5)
    new = ManifestFile("m", 1, 0, 77, sequence_number=-1, min_sequence_number=-1, **counts)
    data, added_rows = encoded([new], 3)
    (found,) = decode_manifest_list(data, "l")
    assert (found.sequence_number, found.min_sequence_number, found.first_row_id) == (9, 9, 1000)
    assert added_rows == 10


_COUNT_NAMES = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)


def test_relative_paths_in_v4() -> None:
    home = "s3://bucket/table"
    counts: dict[str, Any] = dict.fromkeys(_COUNT_NAMES, 0)
    inside = ManifestFile(f"{home}/metadata/m.avro", 1, 0, 1, first_row_id=0, **counts)
    outside = ManifestFile("s3://other/m.avro", 1, 0, 1, first_row_id=0, **counts)
    data = encoded([inside, outside], 4, table_location=home)[0]
    assert [found.manifest_path for found in decode_manifest_list(data, "l")] == [
        "metadata/m.avro",
        "s3://other/m.avro",
    ]
    assert decode_manifest_list(data, "l", table_location=home) == (inside, outside)
    old = encoded([inside], 3, table_location=home)[0]
    assert decode_manifest_list(old, "l")[0] == inside


def test_lists_that_break_a_rule_are_refused() -> None:
    plain = ManifestFile("m", 1, 0, 77)
    with pytest.raises(InvalidInputError, match="added_files_count"):
        encoded([plain], 2)
    with pytest.raises(InvalidInputError, match="delete"):
        encoded([ManifestFile("m", 1, 0, 77, ManifestContent.DELETES)], 1)
    with pytest.raises(InvalidInputError, match="sequence"):
        encoded([plain], 1, sequence_number=4)
    with pytest.raises(InvalidInputError, match="first row id"):
        encoded([plain], 3, first_row_id=None)
    with pytest.raises(InvalidInputError, match="manifest_length"):
        encoded([ManifestFile("m", 2**80, 0, 77)], 1)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_v1_list_is_read_in_any_table(version: int) -> None:
    """Old lists stay after an upgrade: what they lack is 0 or unknown."""
    data = encoded([ManifestFile("s3://b/m", 3, 0, 5)], 1)[0]
    (found,) = read_manifest_list("l", {"l": data}.__getitem__)
    assert found == ManifestFile("s3://b/m", 3, 0, 5)
    assert (found.content, found.sequence_number, found.min_sequence_number) == (ManifestContent.DATA, 0, 0)
    assert found.has_added_files
    assert found.has_existing_files
    assert encoded([found], version) if version == 1 else found.added_files_count is None


@given(st.data())
@settings(max_examples=40)
def test_any_damage_is_an_error_of_ours(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(ALL_VERSIONS))
    whole = bytearray(encoded(data.draw(st.lists(manifest_files(version), max_size=2)), version, codec="none")[0])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptFileError):
        decode_manifest_list(bytes(whole), "l")


def test_manifests_named_by_a_v1_snapshot_itself() -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    files: dict[str, bytes] = {}
    row = ManifestEntry(EntryStatus.ADDED, DataFile("s3://b/f", "parquet", 4, 5, spec_id=3), 8)
    write_manifest([row], ManifestFormat(1, schema, UNPARTITIONED.with_id(3), 8), "m1", files.__setitem__)
    (found,) = inline_manifests(["m1"], 8, files.__getitem__)
    assert found == ManifestFile("m1", len(files["m1"]), 3, 8)
    (entry,) = read_manifest(found, files.__getitem__).entries()
    assert entry == ManifestEntry(EntryStatus.ADDED, row.data_file, 8, 0, 0)


def test_summaries_in_columns() -> None:
    low, high = encode(1, IntegerType()), encode(5, IntegerType())
    manifests = [
        ManifestFile("a", 1, 0, 1, partitions=(PartitionFieldSummary(True, None, low, high),)),
        ManifestFile("b", 1, 0, 1),
        ManifestFile("c", 1, 0, 1, partitions=(PartitionFieldSummary(False, True),)),
    ]
    found = SummaryColumns(manifests)
    assert found.size == 3
    assert found.contains_null(0).to_pylist() == [True, None, False]
    assert found.contains_nan(0).to_pylist() == [None, None, True]
    lower, upper = found.lower_bounds(0, LongType()), found.upper_bounds(0, LongType())
    assert lower is not None
    assert upper is not None
    assert (lower.to_pylist(), upper.to_pylist()) == ([1, None, None], [5, None, None])
    assert found.contains_null(7).to_pylist() == [None] * 3


def test_an_encrypted_list_is_read_with_its_key_and_not_without_it() -> None:
    listed = encode_manifest_list([], 2, snapshot_id=1, parent_snapshot_id=None, sequence_number=1, key_length=16)
    assert listed.key is not None
    assert read_manifest_list("list", lambda _: listed.data, key=listed.key) == ()
    with pytest.raises(IcefloeError):
        read_manifest_list("list", lambda _: listed.data)
