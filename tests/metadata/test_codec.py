"""Table metadata as JSON: round trips of everything, and refusals that name the field."""

import gzip
import json
import pickle
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidInputError, InvalidMetadataError, UnsupportedVersionError
from icefloe.metadata import (
    MAIN_BRANCH,
    Limits,
    MetadataCompression,
    Operation,
    SnapshotRef,
    SnapshotRefType,
    TableMetadata,
    branch,
    decode_metadata_file,
    decode_view_file,
    encode_metadata_file,
)
from icefloe.metadata.codec import metadata_from_json, metadata_to_json, metadata_to_object
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.golden import golden
from tests.strategies import table_metadata

versions = pytest.mark.parametrize("version", ALL_VERSIONS)

JSON = dict[str, Any]
SNAPSHOT_ID = 3051729675574597004


def document(version: int) -> JSON:
    """A whole document of the version, with one snapshot."""
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}],
    }
    field = {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}
    order = {
        "order-id": 1,
        "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}],
    }
    snapshot: JSON = {
        "snapshot-id": SNAPSHOT_ID,
        "timestamp-ms": 1515100955770,
        "summary": {"operation": "append", "added-records": "1"},
        "manifest-list": "s3://a/b/1.avro",
        "schema-id": 0,
    }
    found: JSON = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/test/location",
        "last-updated-ms": 1602638573590,
        "last-column-id": 1,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [field]}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [order],
        "default-sort-order-id": 1,
        "properties": {"a": "b"},
        "current-snapshot-id": SNAPSHOT_ID,
        "snapshots": [snapshot],
        "snapshot-log": [{"snapshot-id": SNAPSHOT_ID, "timestamp-ms": 1515100955770}],
        "metadata-log": [{"metadata-file": "s3://bucket/00000.metadata.json", "timestamp-ms": 1515100955760}],
        "statistics": [],
        "partition-statistics": [],
    }
    if allows(version, Feature.SINGLE_SCHEMA_AND_SPEC):
        found |= {"schema": schema, "partition-spec": [field]}
    if allows(version, Feature.SEQUENCE_NUMBERS):
        found["last-sequence-number"] = 1
        snapshot["sequence-number"] = 1
    if allows(version, Feature.REFS):
        found["refs"] = {"main": {"snapshot-id": SNAPSHOT_ID, "type": "branch"}}
    if allows(version, Feature.ROW_LINEAGE):
        found["next-row-id"] = 5
        snapshot |= {"first-row-id": 0, "added-rows": 5}
    return found


@pytest.mark.parametrize("name", ["V1Valid", "V2Valid", "V2ValidMinimal", "V3ValidMinimal"])
def test_golden_documents_keep_their_meaning(name: str) -> None:
    text = golden(f"table-metadata/TableMetadata{name}.json").read_bytes()
    metadata = metadata_from_json(text)
    assert metadata_from_json(metadata_to_json(metadata)) == metadata
    assert metadata_from_json(json.loads(text)) == metadata
    written = json.loads(metadata_to_json(metadata))
    for key, value in json.loads(text).items():
        if key not in ("schema", "partition-spec"):
            assert written[key] == value
    assert written["format-version"] == metadata.format_version == int(name[1])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("UnsupportedVersion", "format-version"),
        ("V2CurrentSchemaNotFound", "current-schema-id"),
        ("V2MissingSchemas", "schemas"),
    ],
)
def test_golden_documents_that_are_refused(name: str, field: str) -> None:
    text = golden(f"table-metadata/TableMetadata{name}.json").read_bytes()
    with pytest.raises(InvalidInputError, match=field):
        metadata_from_json(text)


@versions
@given(data=st.data())
def test_round_trip(version: int, data: st.DataObject) -> None:
    metadata = data.draw(table_metadata(version))
    text = metadata_to_json(metadata)
    assert metadata_from_json(text) == metadata
    assert metadata_from_json(text.decode()) == metadata
    assert metadata_from_json(json.loads(text)) == metadata
    assert metadata_from_json(metadata_to_object(metadata)) == metadata
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    for compression in MetadataCompression:
        assert decode_metadata_file(encode_metadata_file(metadata, compression)) == metadata


@versions
def test_what_is_written_is_what_was_read(version: int) -> None:
    assert json.loads(metadata_to_json(metadata_from_json(document(version)))) == document(version)


@versions
def test_a_version_writes_no_field_that_it_lacks(version: int) -> None:
    snapshots = document(version)["snapshots"]
    written = metadata_to_object(metadata_from_json(document(version)))
    for key, feature in (
        ("schema", Feature.SINGLE_SCHEMA_AND_SPEC),
        ("partition-spec", Feature.SINGLE_SCHEMA_AND_SPEC),
        ("last-sequence-number", Feature.SEQUENCE_NUMBERS),
        ("refs", Feature.REFS),
        ("next-row-id", Feature.ROW_LINEAGE),
    ):
        assert (key in written) is allows(version, feature)
    assert ("sequence-number" in written["snapshots"][0]) is allows(version, Feature.SEQUENCE_NUMBERS)
    assert ("first-row-id" in written["snapshots"][0]) is allows(version, Feature.ROW_LINEAGE)
    assert written["snapshots"] == snapshots


@versions
@pytest.mark.parametrize("absent", [-1, None, ...])
def test_no_current_snapshot(version: int, absent: object) -> None:
    found = document(version) | {"current-snapshot-id": absent, "refs": {}}
    if absent is ...:
        del found["current-snapshot-id"]
    metadata = metadata_from_json(found)
    assert metadata.current_snapshot_id is None
    assert metadata.current_snapshot() is None
    expected = -1 if allows(version, Feature.MINUS_ONE_FOR_NO_SNAPSHOT) else None
    assert metadata_to_object(metadata)["current-snapshot-id"] == expected


@versions
def test_main_exists_without_a_refs_map(version: int) -> None:
    found = document(version)
    found.pop("refs", None)
    assert metadata_from_json(found).refs == {MAIN_BRANCH: branch(SNAPSHOT_ID)}


@versions
def test_main_exists_beside_other_refs(version: int) -> None:
    found = document(version) | {"refs": {"t": {"snapshot-id": SNAPSHOT_ID, "type": "tag"}}}
    assert metadata_from_json(found).refs == {
        "t": SnapshotRef(SNAPSHOT_ID, SnapshotRefType.TAG),
        MAIN_BRANCH: branch(SNAPSHOT_ID),
    }


def test_refs_that_v1_cannot_imply_are_not_lost() -> None:
    metadata = metadata_from_json(document(1) | {"refs": {"t": {"snapshot-id": SNAPSHOT_ID, "type": "tag"}}})
    assert metadata_from_json(metadata_to_json(metadata)).refs == metadata.refs


@versions
def test_unknown_fields_are_kept(version: int) -> None:
    found = document(version)
    found["new-thing"] = {"a": [1]}
    found["snapshots"][0]["new-thing"] = 1
    metadata = metadata_from_json(found)
    assert metadata.evolve(unknown_fields={}, unknown_snapshot_fields={}) == metadata_from_json(document(version))
    again = metadata_to_object(metadata)
    assert again["new-thing"] == {"a": [1]}
    # Snapshots of adopted versions have no new fields.
    assert again["snapshots"][0].get("new-thing") == (1 if version == 4 else None)
    assert metadata_from_json(again) == metadata


def test_v1_of_the_oldest_writers() -> None:
    found = document(1)
    for key in [
        "table-uuid",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
        "properties",
        "snapshot-log",
        "metadata-log",
        "statistics",
        "partition-statistics",
    ]:
        del found[key]
    [snapshot] = found["snapshots"]
    del snapshot["manifest-list"], snapshot["summary"], snapshot["schema-id"], found["schema"]["schema-id"]
    snapshot["manifests"] = ["s3://a/m0.avro", "s3://a/m1.avro"]
    metadata = metadata_from_json(found)
    assert metadata.table_uuid is None
    assert [each.schema_id for each in metadata.schemas] == [metadata.current_schema_id] == [0]
    assert metadata.spec().fields[0].field_id == 1000
    assert metadata.last_partition_id == 1000
    assert metadata.sort_order().is_unsorted
    assert metadata.snapshots[0].manifests == ("s3://a/m0.avro", "s3://a/m1.avro")
    assert metadata.snapshots[0].summary is None
    assert metadata_from_json(metadata_to_json(metadata)) == metadata


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.SEQUENCE_NUMBERS)])
def test_snapshots_from_before_an_upgrade(version: int) -> None:
    found = document(version)
    [snapshot] = found["snapshots"]
    for key in ("sequence-number", "manifest-list", "summary", "first-row-id", "added-rows"):
        snapshot.pop(key, None)
    snapshot["manifests"] = ["s3://a/m0.avro"]
    metadata = metadata_from_json(found)
    assert metadata.snapshots[0].sequence_number == 0
    assert metadata.snapshots[0].first_row_id is None
    assert metadata_from_json(metadata_to_json(metadata)) == metadata


def test_a_summary_without_operation_is_an_overwrite() -> None:
    found = document(2)
    found["snapshots"][0]["summary"] = {"added-records": "1"}
    assert metadata_from_json(found).snapshots[0].operation == Operation.OVERWRITE


def test_an_operation_of_another_writer_is_kept() -> None:
    found = document(2)
    found["snapshots"][0]["summary"] = {"operation": "merge"}
    assert metadata_to_object(metadata_from_json(found))["snapshots"] == found["snapshots"]


def test_unsorted_need_not_be_listed() -> None:
    metadata = metadata_from_json(document(2) | {"sort-orders": [], "default-sort-order-id": 0})
    assert metadata.sort_order().is_unsorted


def test_reading_does_not_change_the_input() -> None:
    found = document(3)
    before = deepcopy(found)
    metadata_from_json(found)
    assert found == before


def test_location_is_optional_where_the_version_says_so() -> None:
    for version in ALL_VERSIONS:
        found = document(version)
        del found["location"]
        if allows(version, Feature.OPTIONAL_LOCATION):
            assert metadata_from_json(found).location is None
            assert "location" not in metadata_to_object(metadata_from_json(found))
        else:
            with pytest.raises(InvalidMetadataError, match="`location`"):
                metadata_from_json(found)


REQUIRED = {
    "format-version": None,
    "last-updated-ms": None,
    "last-column-id": None,
    "table-uuid": Feature.TABLE_UUID_REQUIRED,
    "last-sequence-number": Feature.SEQUENCE_NUMBERS,
    "schemas": Feature.SCHEMA_LISTS_REQUIRED,
    "current-schema-id": Feature.SCHEMA_LISTS_REQUIRED,
    "partition-specs": Feature.SCHEMA_LISTS_REQUIRED,
    "default-spec-id": Feature.SCHEMA_LISTS_REQUIRED,
    "last-partition-id": Feature.SCHEMA_LISTS_REQUIRED,
    "sort-orders": Feature.SCHEMA_LISTS_REQUIRED,
    "default-sort-order-id": Feature.SCHEMA_LISTS_REQUIRED,
    "next-row-id": Feature.ROW_LINEAGE,
}


@pytest.mark.parametrize(
    ("version", "field"),
    [
        (version, field)
        for field, feature in REQUIRED.items()
        for version in ALL_VERSIONS
        if feature is None or allows(version, feature)
    ],
)
def test_a_required_field_is_missing(version: int, field: str) -> None:
    found = document(version)
    without = {key: value for key, value in found.items() if key != field}
    for broken in (without, found | {field: None}):
        with pytest.raises(InvalidInputError, match=field):
            metadata_from_json(json.dumps(broken))
        with pytest.raises(InvalidInputError, match=field):
            metadata_from_json(broken)


@pytest.mark.parametrize(
    ("version", "field"), [(version, field) for version in ALL_VERSIONS for field in document(version)]
)
def test_a_field_of_the_wrong_json_type(version: int, field: str) -> None:
    list_of = {"schema": "schemas", "partition-spec": "partition-specs"}.get(field)
    for wrong in (True, "text", 1.5, [1], {"a": 1}, 10**30):
        if isinstance(wrong, str) and field in ("table-uuid", "location"):
            continue
        found = document(version) | {field: wrong}
        if list_of is not None:
            del found[list_of]
        with pytest.raises(InvalidInputError, match=field):
            metadata_from_json(json.dumps(found))
        with pytest.raises(InvalidInputError, match=field):
            metadata_from_json(found)


def changed(version: int, *path: str | int, to: object) -> JSON:
    """The document with another value at a path."""
    found = document(version)
    target: Any = found
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = to
    return found


@versions
@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("current-schema-id",), 7, "current-schema-id"),
        (("default-spec-id",), 7, "default-spec-id"),
        (("default-sort-order-id",), 7, "default-sort-order-id"),
        (("current-snapshot-id",), 7, "current-snapshot-id"),
        (("refs",), {"b": {"snapshot-id": 7, "type": "branch"}}, "refs.b"),
        (("refs",), {"main": {"snapshot-id": SNAPSHOT_ID, "type": "tag"}}, "refs.main"),
        (("refs",), {"b": {"snapshot-id": SNAPSHOT_ID, "type": "x"}}, "refs.b.*type"),
        (("refs",), {"b": {"snapshot-id": SNAPSHOT_ID}}, "refs.*type"),
        (("refs",), {"b": {"snapshot-id": SNAPSHOT_ID, "type": "branch", "max-ref-age-ms": 0}}, "refs.b.*positive"),
        (("refs",), {"t": {"snapshot-id": SNAPSHOT_ID, "type": "tag", "min-snapshots-to-keep": 1}}, "refs.t.*branches"),
        (("snapshots", 0, "snapshot-id"), "x", r"snapshots\[0\].snapshot-id"),
        (("snapshots", 0, "summary", "operation"), 1, r"snapshots\[0\].summary"),
        (("snapshots", 0, "manifest-list"), None, r"snapshots`?\[0\].*manifest list"),
        (("snapshots", 0, "timestamp-ms"), None, r"snapshots\[0\].timestamp-ms"),
        (("snapshots",), [1], "snapshots"),
        (("snapshot-log", 0, "timestamp-ms"), "x", r"snapshot-log\[0\].timestamp-ms"),
        (("metadata-log", 0, "metadata-file"), 1, r"metadata-log\[0\].metadata-file"),
        (("statistics",), [{"snapshot-id": 1}], r"statistics\[0\].statistics-path"),
        (("partition-statistics",), [{"snapshot-id": 1}], r"partition-statistics\[0\].statistics-path"),
        (("schemas", 0, "fields", 0, "type"), "nothing", r"schemas\[0\].*nothing"),
        (("schemas", 0, "fields", 0), {"id": 1}, r"schemas\[0\].*name"),
        (("partition-specs", 0, "fields", 0, "transform"), 1, r"partition-specs\[0\].*transform"),
        (("partition-specs", 0, "fields", 0, "source-id"), 9, "default-spec-id.*column 9"),
        (("sort-orders", 0, "fields", 0, "direction"), "up", r"sort-orders\[0\].*direction"),
        (("sort-orders", 0, "fields", 0, "source-id"), 9, "default-sort-order-id.*column 9"),
        (("properties", "a"), 1, "properties"),
        (("format-version",), 0, "format-version"),
        (("format-version",), 5, "format-version"),
        (("format-version",), -1, "format-version"),
    ],
)
def test_refusals_name_the_field(version: int, path: tuple[str | int, ...], value: object, named: str) -> None:
    found = changed(version, *path, to=value)
    with pytest.raises(InvalidInputError, match=named):
        metadata_from_json(found)
    with pytest.raises(InvalidInputError, match=named):
        metadata_from_json(json.dumps(found))


@versions
@pytest.mark.parametrize("field", ["snapshots", "schemas", "partition-specs", "sort-orders"])
def test_ids_are_unique(version: int, field: str) -> None:
    found = document(version)
    found[field] = found[field] * 2
    with pytest.raises(InvalidMetadataError, match=f"`{field}`.*unique"):
        metadata_from_json(found)


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.SEQUENCE_NUMBERS)])
def test_no_snapshot_is_ahead_of_the_table(version: int) -> None:
    with pytest.raises(InvalidMetadataError, match="last-sequence-number"):
        metadata_from_json(changed(version, "snapshots", 0, "sequence-number", to=2))


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.REFS)])
def test_main_and_the_current_snapshot_agree(version: int) -> None:
    with pytest.raises(InvalidMetadataError, match="current-snapshot-id"):
        metadata_from_json(document(version) | {"current-snapshot-id": -1})


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.ROW_LINEAGE)])
def test_row_lineage_is_checked(version: int) -> None:
    for path, value, named in (
        (("next-row-id",), -1, "next-row-id"),
        (("snapshots", 0, "first-row-id"), -1, "first row id"),
        (("snapshots", 0, "added-rows"), None, "added rows"),
    ):
        with pytest.raises(InvalidMetadataError, match=named):
            metadata_from_json(changed(version, *path, to=value))


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.ENCRYPTION_KEYS)])
def test_encryption_keys(version: int) -> None:
    key = {"key-id": "a", "encrypted-key-metadata": "AAEC", "encrypted-by-id": "b", "properties": {"c": "d"}}
    metadata = metadata_from_json(document(version) | {"encryption-keys": [key]})
    assert metadata.encryption_keys[0].encrypted_key_metadata == b"\x00\x01\x02"
    assert metadata_to_object(metadata)["encryption-keys"] == [key]
    with pytest.raises(InvalidMetadataError, match=r"encryption-keys\[0\].*encrypted-key-metadata.*Base64"):
        metadata_from_json(document(version) | {"encryption-keys": [key | {"encrypted-key-metadata": "*"}]})


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.OPTIONAL_LOCATION)])
def test_the_location_of_a_table_with_relative_paths_is_absolute(version: int) -> None:
    with pytest.raises(InvalidMetadataError, match="location"):
        metadata_from_json(document(version) | {"location": "/no/scheme"})


def test_the_version_matters_more_than_what_else_differs() -> None:
    with pytest.raises(UnsupportedVersionError, match="format-version 9"):
        metadata_from_json(b'{"format-version": 9, "last-column-id": "moved"}')


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"text"',
        b"\xff\xfe",
        b"{} {}",
        b'{"format-version": NaN}',
        b"\x1f\x8b\x00",
        b"\x1f\x8b",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b"{}", mtime=0)[:-9],
        b"[" * 100_000,
        b'{"format-version": 2, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_no_metadata_at_all(text: bytes) -> None:
    with pytest.raises(InvalidInputError, match="table metadata"):
        decode_metadata_file(text)


def test_text_with_half_a_character() -> None:
    with pytest.raises(InvalidMetadataError, match="JSON"):
        metadata_from_json('{"format-version": 2, "location": "\ud800"}')


@given(
    version=st.sampled_from(ALL_VERSIONS),
    data=st.data(),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    ),
)
def test_any_value_anywhere_gives_metadata_or_our_error(version: int, data: st.DataObject, value: object) -> None:
    found: Any = document(version)
    target = found
    while True:
        key = data.draw(
            st.sampled_from(sorted(target)) if isinstance(target, dict) else st.integers(0, len(target) - 1)
        )
        if not target[key] or not isinstance(target[key], dict | list) or data.draw(st.booleans()):
            break
        target = target[key]
    target[key] = value
    try:
        metadata = metadata_from_json(found)
    except IcefloeError:
        return
    assert isinstance(metadata, TableMetadata)


def test_gzip_is_told_by_the_bytes() -> None:
    text = json.dumps(document(3)).encode()
    assert decode_metadata_file(gzip.compress(text)) == decode_metadata_file(text)
    packed = encode_metadata_file(decode_metadata_file(text), MetadataCompression.GZIP)
    assert packed == encode_metadata_file(decode_metadata_file(text), MetadataCompression.GZIP)
    assert json.loads(gzip.decompress(packed)) == document(3)


def test_what_gzip_may_become_is_bounded() -> None:
    text = json.dumps(document(3)).encode()
    packed = gzip.compress(text)
    assert decode_metadata_file(packed, Limits(metadata_bytes=len(text))) == decode_metadata_file(text)
    for data in (packed, text):
        with pytest.raises(InvalidMetadataError, match=r"too large: .*read\.limits\.metadata-bytes"):
            decode_metadata_file(data, Limits(metadata_bytes=len(text) - 1))
    # Several members count together, and a file may not grow without bound however much memory there is.
    bomb = gzip.compress(b" " * (1 << 20), 9) * 80
    with pytest.raises(InvalidMetadataError, match="too large"):
        decode_metadata_file(bomb, Limits(expansion=100))
    with pytest.raises(InvalidMetadataError, match="too large"):
        decode_view_file(bomb, Limits(expansion=100))


@versions
@pytest.mark.parametrize("depth", [50, 3000, 200_000])
def test_nesting_is_read_or_refused(version: int, depth: int) -> None:
    text = json.dumps(document(version)).encode()
    opening = b'{"type":"list","element-id":%d,"element-required":false,"element":'
    kind = b"".join(opening % (10 + each) for each in range(depth)) + b'"long"' + b"}" * depth
    column = b'"fields": [{"id": 2, "name": "deep", "required": false, "type": ' + kind + b"}, "
    deep = text.replace(b'"fields": [', column, 1).replace(b'"last-column-id": 1', b'"last-column-id": 999999')
    assert len(deep) > len(text)
    with suppress(IcefloeError):
        assert isinstance(decode_metadata_file(deep), TableMetadata)
