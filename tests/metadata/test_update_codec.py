"""Updates and requirements as JSON: the exact form of each, both ways, and refusals that name what is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.metadata import (
    Operation,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    requirements as req,
    updates as up,
)
from icefloe.metadata.refs import tag
from icefloe.metadata.snapshot import Summary
from icefloe.metadata.table import BlobMetadata, EncryptedKey
from icefloe.metadata.update_codec import (
    requirement_to_json,
    table_requirement_from_json,
    table_update_from_json,
    update_to_json,
    view_requirement_from_json,
    view_update_from_json,
)
from icefloe.partitioning import UNSORTED, order_to_json, parse_sort_order, spec_to_json
from icefloe.schema import schema_to_json
from icefloe.versions import ALL_VERSIONS
from tests.metadata.tables import BY_DAY, SCHEMA
from tests.metadata.views import VERSION
from tests.strategies import (
    encrypted_keys,
    partition_statistics_files,
    schemas,
    snapshot_chains,
    snapshot_refs,
    statistics_files,
)

JSON = dict[str, Any]
ORDER = parse_sort_order(["id desc"], SCHEMA)
SNAPSHOT = Snapshot(5, 7, "s3://a/l.avro", Summary(Operation.DELETE, {"k": "v"}), 4, 3, 0, 10, 20, "key")
BRANCH = SnapshotRef(5, SnapshotRefType.BRANCH, 1, 2, 3)
STATISTICS = StatisticsFile(5, "s3://a/s.puffin", 9, 8, (BlobMetadata("t", 5, 3, (1, 2), {"ndv": "4"}),), b"\x01\x02")
KEY = EncryptedKey("k", b"\x00\xff", "m", {"KEY_TIMESTAMP": "1"})

UPDATES: list[tuple[up.Update, JSON]] = [
    (up.AssignUUIDUpdate("u"), {"action": "assign-uuid", "uuid": "u"}),
    (up.UpgradeFormatVersionUpdate(3), {"action": "upgrade-format-version", "format-version": 3}),
    (up.AddSchemaUpdate(SCHEMA), {"action": "add-schema", "schema": schema_to_json(SCHEMA), "last-column-id": 3}),
    (up.SetCurrentSchemaUpdate(), {"action": "set-current-schema", "schema-id": -1}),
    (up.AddPartitionSpecUpdate(BY_DAY), {"action": "add-spec", "spec": spec_to_json(BY_DAY, 2)}),
    (up.SetDefaultSpecUpdate(4), {"action": "set-default-spec", "spec-id": 4}),
    (up.AddSortOrderUpdate(ORDER), {"action": "add-sort-order", "sort-order": order_to_json(ORDER, 2)}),
    (up.SetDefaultSortOrderUpdate(), {"action": "set-default-sort-order", "sort-order-id": -1}),
    (
        up.AddSnapshotUpdate(SNAPSHOT),
        {
            "action": "add-snapshot",
            "snapshot": {
                "sequence-number": 3,
                "snapshot-id": 5,
                "parent-snapshot-id": 4,
                "timestamp-ms": 7,
                "summary": {"operation": "delete", "k": "v"},
                "manifest-list": "s3://a/l.avro",
                "schema-id": 0,
                "first-row-id": 10,
                "added-rows": 20,
                "key-id": "key",
            },
        },
    ),
    (
        up.SetSnapshotRefUpdate("b", BRANCH),
        {
            "action": "set-snapshot-ref",
            "ref-name": "b",
            "snapshot-id": 5,
            "type": "branch",
            "min-snapshots-to-keep": 1,
            "max-snapshot-age-ms": 2,
            "max-ref-age-ms": 3,
        },
    ),
    (
        up.SetSnapshotRefUpdate("t", tag(5)),
        {"action": "set-snapshot-ref", "ref-name": "t", "snapshot-id": 5, "type": "tag"},
    ),
    (up.RemoveSnapshotsUpdate((1, 2)), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}),
    (up.RemoveSnapshotRefUpdate("b"), {"action": "remove-snapshot-ref", "ref-name": "b"}),
    (up.SetLocationUpdate("s3://x"), {"action": "set-location", "location": "s3://x"}),
    (up.SetPropertiesUpdate({"a": "b"}), {"action": "set-properties", "updates": {"a": "b"}}),
    (up.RemovePropertiesUpdate(("a",)), {"action": "remove-properties", "removals": ["a"]}),
    (
        up.SetStatisticsUpdate(STATISTICS),
        {
            "action": "set-statistics",
            "snapshot-id": 5,
            "statistics": {
                "snapshot-id": 5,
                "statistics-path": "s3://a/s.puffin",
                "file-size-in-bytes": 9,
                "file-footer-size-in-bytes": 8,
                "key-metadata": "AQI=",
                "blob-metadata": [
                    {
                        "type": "t",
                        "snapshot-id": 5,
                        "sequence-number": 3,
                        "fields": [1, 2],
                        "properties": {"ndv": "4"},
                    }
                ],
            },
        },
    ),
    (up.RemoveStatisticsUpdate(5), {"action": "remove-statistics", "snapshot-id": 5}),
    (
        up.SetPartitionStatisticsUpdate(PartitionStatisticsFile(5, "s3://a/p", 9)),
        {
            "action": "set-partition-statistics",
            "partition-statistics": {"snapshot-id": 5, "statistics-path": "s3://a/p", "file-size-in-bytes": 9},
        },
    ),
    (up.RemovePartitionStatisticsUpdate(5), {"action": "remove-partition-statistics", "snapshot-id": 5}),
    (up.RemovePartitionSpecsUpdate((1, 2)), {"action": "remove-partition-specs", "spec-ids": [1, 2]}),
    (up.RemoveSchemasUpdate((1, 2)), {"action": "remove-schemas", "schema-ids": [1, 2]}),
    (
        up.AddEncryptionKeyUpdate(KEY),
        {
            "action": "add-encryption-key",
            "encryption-key": {
                "key-id": "k",
                "encrypted-key-metadata": "AP8=",
                "encrypted-by-id": "m",
                "properties": {"KEY_TIMESTAMP": "1"},
            },
        },
    ),
    (up.RemoveEncryptionKeyUpdate("k"), {"action": "remove-encryption-key", "key-id": "k"}),
    (
        up.AddViewVersionUpdate(VERSION),
        {
            "action": "add-view-version",
            "view-version": {
                "version-id": 1,
                "timestamp-ms": VERSION.timestamp_ms,
                "schema-id": 0,
                "summary": {"engine-name": "Spark"},
                "default-catalog": "prod",
                "default-namespace": ["db", "inner"],
                "representations": [{"type": "sql", "sql": "SELECT * FROM t", "dialect": "spark"}],
            },
        },
    ),
    (up.SetCurrentViewVersionUpdate(), {"action": "set-current-view-version", "view-version-id": -1}),
]
VIEW_ONLY = (up.AddViewVersionUpdate, up.SetCurrentViewVersionUpdate)
COMMON = (
    up.AssignUUIDUpdate,
    up.UpgradeFormatVersionUpdate,
    up.AddSchemaUpdate,
    up.SetLocationUpdate,
    up.SetPropertiesUpdate,
    up.RemovePropertiesUpdate,
)

REQUIREMENTS: list[tuple[req.Requirement, JSON]] = [
    (req.AssertCreate(), {"type": "assert-create"}),
    (req.AssertTableUUID("u"), {"type": "assert-table-uuid", "uuid": "u"}),
    (req.AssertViewUUID("u"), {"type": "assert-view-uuid", "uuid": "u"}),
    (req.AssertRefSnapshotId("b", 5), {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": 5}),
    (req.AssertRefSnapshotId("b", None), {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": None}),
    (req.AssertLastAssignedFieldId(3), {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3}),
    (req.AssertCurrentSchemaId(3), {"type": "assert-current-schema-id", "current-schema-id": 3}),
    (
        req.AssertLastAssignedPartitionId(3),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 3},
    ),
    (req.AssertDefaultSpecId(3), {"type": "assert-default-spec-id", "default-spec-id": 3}),
    (req.AssertDefaultSortOrderId(3), {"type": "assert-default-sort-order-id", "default-sort-order-id": 3}),
]


@pytest.mark.parametrize(("update", "document"), UPDATES, ids=lambda each: type(each).__name__)
def test_updates(update: up.Update, document: JSON) -> None:
    assert update_to_json(update) == document
    assert json.loads(json.dumps(document)) == document
    if isinstance(update, VIEW_ONLY):
        assert view_update_from_json(document) == update
        with pytest.raises(InvalidInputError, match=document["action"]):
            table_update_from_json(document)
    else:
        assert table_update_from_json(document | {"unknown": 1}) == update
        assert table_update_from_json(document | {"action": document["action"].upper()}) == update
    if isinstance(update, COMMON):
        assert view_update_from_json(document) == update
    elif not isinstance(update, VIEW_ONLY):
        with pytest.raises(InvalidInputError, match=document["action"]):
            view_update_from_json(document)


@pytest.mark.parametrize(("requirement", "document"), REQUIREMENTS, ids=str)
def test_requirements(requirement: req.Requirement, document: JSON) -> None:
    assert requirement_to_json(requirement) == document
    if isinstance(requirement, req.AssertViewUUID):
        assert view_requirement_from_json(document) == requirement
        with pytest.raises(InvalidInputError, match="assert-view-uuid"):
            table_requirement_from_json(document)
    else:
        assert table_requirement_from_json(document) == requirement
    if not isinstance(requirement, req.AssertViewUUID | req.AssertCreate):
        with pytest.raises(InvalidInputError, match=document["type"]):
            view_requirement_from_json(document)


def test_every_update_and_requirement_is_covered() -> None:
    assert {type(update).__name__ for update, _ in UPDATES} == {
        name
        for name in vars(up)
        if name.endswith("Update") and name not in ("Update", "CommonUpdate", "TableUpdate", "ViewUpdate")
    }
    assert {type(requirement).__name__ for requirement, _ in REQUIREMENTS} == {
        name for name in vars(req) if name.startswith("Assert")
    }


@pytest.mark.parametrize(
    ("update", "document", "field"),
    [(update, document, field) for update, document in UPDATES for field in document if field != "action"],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_fields_that_are_missing_or_of_the_wrong_type(update: up.Update, document: JSON, field: str) -> None:
    if field in ("last-column-id", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"):
        assert table_update_from_json({key: value for key, value in document.items() if key != field}) is not None
        return
    if isinstance(update, up.SetStatisticsUpdate) and field == "snapshot-id":
        assert table_update_from_json({key: value for key, value in document.items() if key != field}) == update
        return
    read = view_update_from_json if isinstance(update, VIEW_ONLY) else table_update_from_json
    without = {key: value for key, value in document.items() if key != field}
    for broken in (without, document | {field: None}, document | {field: 1.5}, document | {field: [[1]]}):
        with pytest.raises(InvalidInputError, match=field):
            read(broken)


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (1, "JSON object"),
        (None, "JSON object"),
        ("assign-uuid", "JSON object"),
        ({}, "action"),
        ({"action": 1}, "action"),
        ({"action": "dance"}, "dance.*assign-uuid"),
        ({"action": "add-snapshot", "snapshot": {"snapshot-id": 1}}, "add-snapshot: `snapshot`.*timestamp-ms"),
        ({"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "timestamp-ms": 1}}, "manifest list"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "snapshot-id": 1, "type": "x"}, "type.*branch, tag"),
        ({"action": "add-schema", "schema": {"type": "struct"}}, "add-schema: `schema`.*fields"),
        ({"action": "add-spec", "spec": {}}, "add-spec: `spec`.*fields"),
        ({"action": "set-properties", "updates": {"a": 1}}, "updates"),
        ({"action": "add-encryption-key", "encryption-key": {"key-id": "k"}}, "encrypted-key-metadata"),
        ({"action": "set-current-schema", "schema-id": 2**31}, "schema-id"),
    ],
)
def test_updates_that_are_refused(document: object, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        table_update_from_json(document)


@pytest.mark.parametrize("document", [1, {}, {"type": None}, {"type": "assert-nothing"}, {"type": "assert-table-uuid"}])
def test_requirements_that_are_refused(document: object) -> None:
    with pytest.raises(InvalidInputError, match=r"requirement|uuid"):
        table_requirement_from_json(document)


def test_what_other_clients_send() -> None:
    assert table_update_from_json({"action": "set-properties", "updated": {"a": "b"}}) == up.SetPropertiesUpdate(
        {"a": "b"}
    )
    assert table_update_from_json({"action": "remove-properties", "removed": ["a"]}) == up.RemovePropertiesUpdate(
        ("a",)
    )
    both = {"action": "set-properties", "updated": {"a": "old"}, "updates": {"a": "new"}}
    assert table_update_from_json(both) == up.SetPropertiesUpdate({"a": "new"})
    bare = {"action": "add-spec", "spec": {"fields": [{"source-id": 2, "transform": "identity", "name": "day"}]}}
    assert table_update_from_json(bare) == up.AddPartitionSpecUpdate(BY_DAY)
    unsorted = {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}
    assert table_update_from_json(unsorted) == up.AddSortOrderUpdate(UNSORTED)
    missing = {"type": "assert-ref-snapshot-id", "ref": "b"}
    assert table_requirement_from_json(missing) == req.AssertRefSnapshotId("b", None)


@given(st.data())
def test_round_trips(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(ALL_VERSIONS))
    updates: list[up.Update] = [
        up.AddSchemaUpdate(data.draw(schemas(version))),
        *(up.AddSnapshotUpdate(each) for each in data.draw(snapshot_chains(version))),
        up.SetSnapshotRefUpdate(data.draw(st.text()), data.draw(snapshot_refs([1, 2]))),
        up.SetStatisticsUpdate(data.draw(statistics_files())),
        up.SetPartitionStatisticsUpdate(data.draw(partition_statistics_files())),
        up.AddEncryptionKeyUpdate(data.draw(encrypted_keys())),
    ]
    for update in updates:
        assert table_update_from_json(json.loads(json.dumps(update_to_json(update)))) == update


@given(
    st.sampled_from([document for _, document in UPDATES]),
    st.data(),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none()) | st.just({}),
)
def test_any_value_gives_an_update_or_our_error(document: JSON, data: st.DataObject, value: object) -> None:
    field = data.draw(st.sampled_from(sorted(document)))
    for read in (table_update_from_json, view_update_from_json):
        try:
            assert read(document | {field: value}) is not None
        except IcefloeError:
            continue
