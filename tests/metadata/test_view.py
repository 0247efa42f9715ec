"""Views: their JSON, and what updates make of them."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    IcefloeError,
    IncompatibleChangeError,
    InvalidInputError,
    InvalidMetadataError,
    InvalidPropertyError,
    NoSuchObjectError,
    UnsupportedVersionError,
)
from icefloe.metadata import (
    MetadataCompression,
    SQLViewRepresentation,
    ViewMetadata,
    ViewVersion,
    apply_view_all,
    decode_view_file,
    encode_view_file,
    updates as up,
)
from icefloe.metadata.view import OtherViewRepresentation, ViewVersionLogEntry
from icefloe.metadata.view_codec import view_from_json, view_to_json, view_to_object
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import StringType
from tests.metadata.tables import CREATED_MS, SCHEMA
from tests.metadata.views import VERSION, VIEW, VIEW_UUID

NOW_MS = CREATED_MS + 1_000_000
HISTORY = "version.history.num-entries"


def query(sql: str, *dialects: str) -> ViewVersion:
    return replace(
        VERSION,
        representations=tuple(SQLViewRepresentation(sql, each) for each in dialects or ("spark",)),
        timestamp_ms=CREATED_MS + len(sql),
    )


def commit(view: ViewMetadata | None, *updates: up.ViewUpdate) -> ViewMetadata:
    return apply_view_all(view, updates, NOW_MS)


def test_json() -> None:
    document = {
        "view-uuid": VIEW_UUID,
        "format-version": 1,
        "location": "s3://bucket/db/view",
        "properties": {"comment": "daily"},
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "id", "required": True, "type": "long"},
                    {"id": 2, "name": "day", "required": False, "type": "date"},
                    {"id": 3, "name": "name", "required": False, "type": "string"},
                ],
            }
        ],
        "current-version-id": 1,
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": CREATED_MS,
                "schema-id": 0,
                "summary": {"engine-name": "Spark"},
                "default-catalog": "prod",
                "default-namespace": ["db", "inner"],
                "representations": [{"type": "sql", "sql": "SELECT * FROM t", "dialect": "spark"}],
            }
        ],
        "version-log": [{"timestamp-ms": CREATED_MS, "version-id": 1}],
    }
    assert json.loads(view_to_json(VIEW)) == document
    assert view_from_json(document) == view_from_json(json.dumps(document)) == VIEW
    for compression in MetadataCompression:
        assert decode_view_file(encode_view_file(VIEW, compression)) == VIEW
    assert pickle.loads(pickle.dumps(VIEW)) == VIEW


def test_other_representations_are_kept() -> None:
    document = view_to_object(VIEW)
    other = {"type": "substrait", "plan": {"a": [1]}}
    document["versions"][0]["representations"].append(other)
    view = view_from_json(document)
    assert view.version().representations[1] == OtherViewRepresentation("substrait", {"plan": {"a": [1]}})
    assert view_to_object(view) == document


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("view-uuid",), None, "view-uuid"),
        (("format-version",), 2, "version 2"),
        (("format-version",), "1", "format-version"),
        (("location",), None, "location"),
        (("schemas",), None, "schemas"),
        (("schemas", 0, "fields"), 1, r"schemas\[0\].*fields"),
        (("current-version-id",), 5, "current-version-id"),
        (("versions",), [], "current-version-id"),
        (("versions", 0, "schema-id"), 5, "schema-id"),
        (("versions", 0, "summary"), None, r"versions\[0\].summary"),
        (("versions", 0, "default-namespace"), "db", r"versions\[0\].default-namespace"),
        (("versions", 0, "representations", 0, "sql"), 1, r"versions\[0\].*representations\[0\].*sql"),
        (("versions", 0, "representations", 0, "type"), None, r"versions\[0\].*representations\[0\].*type"),
        (("version-log", 0, "version-id"), None, r"version-log\[0\].version-id"),
        (("properties",), {"a": 1}, "properties"),
    ],
)
def test_refusals_name_the_field(path: tuple[str | int, ...], value: object, named: str) -> None:
    document: Any = view_to_object(VIEW)
    target = document
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    with pytest.raises(InvalidInputError, match=named):
        view_from_json(document)


def test_ids_are_unique() -> None:
    for field in ("versions", "schemas"):
        document = view_to_object(VIEW)
        document[field] *= 2
        with pytest.raises(InvalidMetadataError, match=field):
            view_from_json(document)


@given(st.sampled_from(sorted(view_to_object(VIEW))), st.none() | st.integers() | st.text() | st.lists(st.integers()))
def test_any_value_gives_a_view_or_our_error(field: str, value: object) -> None:
    try:
        view = view_from_json(view_to_object(VIEW) | {field: value})
    except IcefloeError:
        return
    assert isinstance(view, ViewMetadata)


def test_one_query_a_dialect() -> None:
    with pytest.raises(InvalidMetadataError, match="dialect spark"):
        query("SELECT 1", "spark", "Spark")


def test_the_query_for_a_dialect() -> None:
    version = query("SELECT 1", "trino", "Spark")
    assert version.sql_for("SPARK") == SQLViewRepresentation("SELECT 1", "Spark")
    assert version.sql_for("duckdb") == SQLViewRepresentation("SELECT 1", "trino")
    assert replace(version, representations=()).sql_for("spark") is None


def test_a_view_is_created_by_updates() -> None:
    created = commit(
        None,
        up.AssignUUIDUpdate(VIEW_UUID),
        up.UpgradeFormatVersionUpdate(1),
        up.SetLocationUpdate("s3://bucket/db/view"),
        up.SetPropertiesUpdate({"comment": "daily"}),
        up.AddSchemaUpdate(SCHEMA),
        up.AddViewVersionUpdate(replace(VERSION, schema_id=up.LAST_ADDED)),
        up.SetCurrentViewVersionUpdate(up.LAST_ADDED),
    )
    assert created == VIEW


@pytest.mark.parametrize("dropped", range(4))
def test_a_view_needs_all_its_parts(dropped: int) -> None:
    updates: list[up.ViewUpdate] = [
        up.AssignUUIDUpdate(VIEW_UUID),
        up.SetLocationUpdate("s3://bucket/db/view"),
        up.AddViewVersionUpdate(VERSION),
        up.SetCurrentViewVersionUpdate(1),
    ]
    del updates[dropped]
    with pytest.raises((InvalidMetadataError, NoSuchObjectError), match=r"UUID|location|version"):
        commit(None, up.AddSchemaUpdate(SCHEMA), *updates)


def test_a_view_is_replaced() -> None:
    wider = Schema(*SCHEMA.fields, NestedField(4, "x", StringType()), schema_id=7)
    new = replace(query("SELECT 2"), schema_id=up.LAST_ADDED)
    view = commit(VIEW, up.AddSchemaUpdate(wider), up.AddViewVersionUpdate(new), up.SetCurrentViewVersionUpdate())
    assert view.version() == replace(new, version_id=2, schema_id=1)
    assert view.schema() == wider.with_id(1)
    assert view.version_log == (*VIEW.version_log, ViewVersionLogEntry(2, new.timestamp_ms))
    back = commit(view, up.SetCurrentViewVersionUpdate(1))
    assert back.version_log[-1] == ViewVersionLogEntry(1, NOW_MS)
    assert back.schema() == SCHEMA


def test_a_version_that_is_there_is_used_again() -> None:
    view = commit(VIEW, up.AddViewVersionUpdate(query("SELECT 2")), up.SetCurrentViewVersionUpdate())
    again = replace(VERSION, version_id=9, timestamp_ms=5)
    back = commit(view, up.AddViewVersionUpdate(again), up.SetCurrentViewVersionUpdate())
    assert back.versions == view.versions
    assert back.current_version_id == 1


def test_updates_that_change_nothing() -> None:
    assert (
        commit(
            VIEW,
            up.AssignUUIDUpdate(VIEW_UUID),
            up.UpgradeFormatVersionUpdate(1),
            up.AddSchemaUpdate(SCHEMA),
            up.SetLocationUpdate(VIEW.location),
            up.SetPropertiesUpdate({"comment": "daily"}),
            up.RemovePropertiesUpdate(("absent",)),
            up.SetCurrentViewVersionUpdate(1),
        )
        is VIEW
    )


def test_properties_and_location() -> None:
    view = commit(
        VIEW,
        up.SetPropertiesUpdate({"a": "b"}),
        up.RemovePropertiesUpdate(("comment",)),
        up.SetLocationUpdate("s3://x"),
    )
    assert (view.properties, view.location) == ({"a": "b"}, "s3://x")


def test_dialects_are_not_lost_unless_allowed() -> None:
    view = commit(VIEW, up.AddViewVersionUpdate(query("SELECT 2", "spark", "trino")), up.SetCurrentViewVersionUpdate())
    lossy = (up.AddViewVersionUpdate(query("SELECT 3", "trino")), up.SetCurrentViewVersionUpdate())
    with pytest.raises(IncompatibleChangeError, match="spark"):
        commit(view, *lossy)
    allowed = commit(view, up.SetPropertiesUpdate({"replace.drop-dialect.allowed": "true"}), *lossy)
    assert allowed.version().dialects == ("trino",)


@pytest.mark.parametrize("kept", [1, 2, 3, 10])
def test_old_versions_are_dropped(kept: int) -> None:
    view = commit(VIEW, up.SetPropertiesUpdate({HISTORY: str(kept)}))
    for number in range(2, 7):
        view = commit(view, up.AddViewVersionUpdate(query(f"SELECT {number}")), up.SetCurrentViewVersionUpdate())
    wanted = list(range(1, 7))[-kept:]
    assert [each.version_id for each in view.versions] == wanted
    assert [each.version_id for each in view.version_log] == wanted


def test_the_current_version_is_never_dropped() -> None:
    view = VIEW
    for number in range(2, 5):
        view = commit(view, up.AddViewVersionUpdate(query(f"SELECT {number}")), up.SetCurrentViewVersionUpdate())
    view = commit(view, up.SetCurrentViewVersionUpdate(1), up.SetPropertiesUpdate({HISTORY: "2"}))
    assert [each.version_id for each in view.versions] == [1, 4]
    # The log is cut at 3, which is gone: what stands before it would seem to have been current for longer.
    assert [each.version_id for each in view.version_log] == [4, 1]
    many = [up.AddViewVersionUpdate(query(f"SELECT 1{number}")) for number in range(4)]
    assert len(commit(view, *many).versions) == 5


@pytest.mark.parametrize("size", ["0", "-1", "x"])
def test_the_history_size_makes_sense(size: str) -> None:
    with pytest.raises(InvalidPropertyError, match=HISTORY):
        commit(VIEW, up.SetPropertiesUpdate({HISTORY: size}))


@pytest.mark.parametrize(
    ("update", "error", "named"),
    [
        (up.AssignUUIDUpdate("x"), IncompatibleChangeError, "UUID"),
        (up.UpgradeFormatVersionUpdate(0), UnsupportedVersionError, "v0"),
        (up.UpgradeFormatVersionUpdate(2), UnsupportedVersionError, "version 2"),
        (up.SetCurrentViewVersionUpdate(9), NoSuchObjectError, "9"),
        (up.SetCurrentViewVersionUpdate(), InvalidInputError, "added last"),
        (up.AddViewVersionUpdate(replace(VERSION, schema_id=up.LAST_ADDED)), InvalidInputError, "added last"),
        (up.AddViewVersionUpdate(replace(VERSION, schema_id=5)), NoSuchObjectError, "schema 5"),
        (up.SetCurrentSchemaUpdate(0), InvalidInputError, "SetCurrentSchemaUpdate"),
    ],
    ids=str,
)
def test_updates_that_are_refused(update: Any, error: type[IcefloeError], named: str) -> None:
    with pytest.raises(error, match=named):
        commit(VIEW, update)
