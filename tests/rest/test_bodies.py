"""What is written into a body comes back from it; what is no such body is refused, naming the field."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import rest
from icefloe.commit import CommitCounts, CommitReport
from icefloe.errors import InvalidInputError
from icefloe.metadata import SQLViewRepresentation, ViewMetadata, ViewVersion, requirements as req, updates as up
from icefloe.metadata.view import ViewVersionLogEntry
from icefloe.planning import ScanCounts, ScanReport
from icefloe.rest.config_codec import format_duration, parse_duration
from icefloe.rest.oauth_codec import decode_problem, encode_problem
from icefloe.schema import Schema
from icefloe.versions import ALL_VERSIONS
from tests import strategies

NAMES = st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple)
FULL_NAMES = st.lists(st.text(min_size=1), min_size=2, max_size=3).map(tuple)
TEXTS = strategies.string_maps()
TOKENS = st.none() | st.text(min_size=1)
LABELS = st.builds(rest.Labels, TEXTS, st.dictionaries(st.integers(1, 99), TEXTS, max_size=2))
SURPLUSES = st.builds(
    rest.Surplus,
    TEXTS,
    st.lists(st.builds(rest.StorageCredential, st.text(), TEXTS), max_size=2).map(tuple),
    st.none()
    | st.builds(rest.RemoteSigning, TEXTS, st.dictionaries(st.text(), st.lists(st.text(), max_size=2), max_size=2)),
    st.none() | LABELS,
)


def view(schema: Schema) -> ViewMetadata:
    version = ViewVersion(1, schema.schema_id, 12, (SQLViewRepresentation("SELECT 1", "spark"),), ("a",))
    return ViewMetadata("u", "file:///v", (schema,), 1, (version,), (ViewVersionLogEntry(1, 12),))


@given(TEXTS, TEXTS, TEXTS)
def test_config(defaults: Mapping[str, str], overrides: Mapping[str, str], own: Mapping[str, str]) -> None:
    config = rest.CatalogConfig(defaults, overrides, rest.paths.DEFAULT_ENDPOINTS, timedelta(minutes=30))
    assert rest.decode_config(rest.encode_config(config)) == config
    assert config.merged(own) == {**defaults, **own, **overrides}


def test_config_of_a_modest_server() -> None:
    read = rest.decode_config(b'{"defaults": {"a": null, "b": "1"}, "endpoints": ["nonsense", "GET /v1/config"]}')
    assert read == rest.CatalogConfig({"b": "1"}, {}, frozenset({rest.paths.CONFIG}))


@given(st.integers(0, 10**7))
def test_durations(seconds: int) -> None:
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_durations_of_others() -> None:
    assert parse_duration("P1DT2H") == timedelta(hours=26)
    for text in ("", "P", "PT", "30M", "PT1X"):
        with pytest.raises(InvalidInputError, match="duration"):
            parse_duration(text)


@given(NAMES, TEXTS)
def test_namespaces(namespace: rest.Levels, properties: Mapping[str, str]) -> None:
    value = rest.NamespaceProperties(namespace, properties)
    assert rest.decode_namespace_properties(rest.encode_namespace_properties(value)) == value


@given(st.lists(st.text()).map(tuple), TEXTS)
def test_changes_of_properties(keys: tuple[str, ...], updates: Mapping[str, str]) -> None:
    change = rest.PropertiesChange(keys, updates)
    assert rest.decode_properties_change(rest.encode_properties_change(change)) == change
    changed = rest.PropertiesChanged(keys, keys[:1], keys[1:])
    assert rest.decode_properties_changed(rest.encode_properties_changed(changed)) == changed


@given(st.lists(FULL_NAMES, max_size=3).map(tuple), TOKENS)
def test_pages(names: tuple[rest.Levels, ...], token: str | None) -> None:
    page = rest.Page(names, token)
    assert rest.decode_identifiers(rest.encode_identifiers(page)) == page
    assert rest.decode_namespaces(rest.encode_namespaces(page)) == page


@settings(max_examples=20)
@given(st.data())
def test_new_tables(data: st.DataObject) -> None:
    schema = data.draw(strategies.schemas())
    table = rest.NewTable(
        data.draw(st.text(min_size=1)),
        schema,
        data.draw(st.none() | st.text(min_size=1)),
        data.draw(st.none() | strategies.partition_specs(schema)),
        data.draw(st.none() | strategies.sort_orders(schema)),
        data.draw(TEXTS),
        data.draw(st.booleans()),
    )
    assert rest.decode_new_table(rest.encode_new_table(table)) == table


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=20)
@given(st.data())
def test_loaded_tables(version: int, data: st.DataObject) -> None:
    loaded = rest.LoadedTable(
        data.draw(strategies.table_metadata(version)), data.draw(st.none() | st.text(min_size=1)), data.draw(SURPLUSES)
    )
    assert rest.decode_loaded_table(rest.encode_loaded_table(loaded)) == loaded


@given(st.lists(st.builds(rest.StorageCredential, st.text(), TEXTS), max_size=2).map(tuple))
def test_credentials(credentials: tuple[rest.StorageCredential, ...]) -> None:
    assert rest.decode_credentials(rest.encode_credentials(credentials)) == credentials


@settings(max_examples=20)
@given(strategies.schemas(), FULL_NAMES, TEXTS)
def test_commits(schema: Schema, name: rest.Levels, properties: Mapping[str, str]) -> None:
    commit = rest.TableCommit(
        (up.AddSchemaUpdate(schema), up.SetPropertiesUpdate(properties)),
        (req.AssertTableUUID("u"), req.AssertRefSnapshotId("main", None)),
        name,
    )
    alone = rest.TableCommit(commit.updates)
    assert rest.decode_commit(rest.encode_commit(commit)) == commit
    assert rest.decode_commit(rest.encode_commit(alone)) == alone
    assert rest.decode_transaction(rest.encode_transaction([commit, commit])) == (commit, commit)


@given(st.text(min_size=1), st.text(min_size=1), st.booleans(), FULL_NAMES, FULL_NAMES)
def test_registrations_and_renames(
    name: str, location: str, overwrite: bool, source: rest.Levels, target: rest.Levels
) -> None:
    registration = rest.Registration(name, location, overwrite)
    assert rest.decode_registration(rest.encode_registration(registration)) == registration
    rename = rest.Rename(source, target)
    assert rest.decode_rename(rest.encode_rename(rename)) == rename


@settings(max_examples=20)
@given(strategies.schemas(depth=0), TEXTS, st.none() | LABELS)
def test_views(schema: Schema, texts: Mapping[str, str], labels: rest.Labels | None) -> None:
    metadata = view(schema)
    new = rest.NewView("v", schema, metadata.version(), None, texts)
    assert rest.decode_new_view(rest.encode_new_view(new)) == new
    loaded = rest.LoadedView(metadata, "file:///v/metadata/1.json", rest.Surplus(texts, labels=labels))
    assert rest.decode_loaded_view(rest.encode_loaded_view(loaded)) == loaded
    commit = rest.ViewCommit(
        (up.AddViewVersionUpdate(metadata.version()), up.SetCurrentViewVersionUpdate()), (req.AssertViewUUID("u"),)
    )
    assert rest.decode_view_commit(rest.encode_view_commit(commit)) == commit


@given(st.builds(rest.Token, st.text(), st.text(), st.none() | st.integers(0, 9999), TOKENS, TOKENS, TOKENS))
def test_tokens(token: rest.Token) -> None:
    assert rest.decode_token(rest.encode_token(token)) == token


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_forms(fields: dict[str, str]) -> None:
    assert rest.decode_form(rest.encode_form(fields)) == fields


@pytest.mark.parametrize("body", [b"a=1&a=2", b"a", b"\xff", b"a=%FF"])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError, match="form"):
        rest.decode_form(body)


def test_problems_of_oauth() -> None:
    problem = rest.OAuthProblem("invalid_scope", "no such scope")
    assert decode_problem(encode_problem(problem)) == problem
    assert decode_problem(b"<html>") is None


def test_secrets_are_not_shown() -> None:
    shown = repr(
        (
            rest.StorageCredential("s3://a", {"s3.secret-access-key": "hidden"}),
            rest.Token("hidden", refresh_token="hidden"),
            rest.Surplus({"token": "hidden"}),
            rest.RemoteSigning({"a": "hidden"}, {"b": "hidden"}),
        )
    )
    assert "hidden" not in shown


COUNTS = st.integers(0, 2**40)


@given(COUNTS, COUNTS, st.integers(1, 9))
def test_reports_of_scans(files: int, size: int, schema_id: int) -> None:
    counts = ScanCounts(result_data_files=files, result_bytes=size, data_files_skipped_by_metrics=3)
    report = ScanReport(None, 7, schema_id, "Reference(a)", ("a",), counts, 1.5, None, True, "ns.t")
    received = rest.decode_report(rest.encode_scan_report(report, "ns.t", {"engine-name": "x"}))
    assert received.report == report
    assert received.table == "ns.t"
    assert received.metadata["engine-name"] == "x"


@given(COUNTS, COUNTS)
def test_reports_of_commits(files: int, records: int) -> None:
    counts = CommitCounts(added_data_files=files, added_records=records)
    report = CommitReport("ns.t", None, "committed", 7, 3, "append", 2, 0.25, counts)
    body = rest.encode_commit_report(report)
    assert body is not None
    assert rest.decode_report(body).report == report


def test_reports_that_cannot_be_told_or_are_not_known() -> None:
    report = CommitReport("ns.t", None, "rejected", None, None, None, 1, 0.1, CommitCounts())
    assert rest.encode_commit_report(report) is None
    received = rest.decode_report(b'{"report-type": "new-report", "table-name": "t"}')
    assert received.report == rest.OtherReport("new-report")


@pytest.mark.parametrize(
    ("decode", "document", "problem"),
    [
        (rest.decode_new_table, {"schema": {"type": "struct", "fields": []}}, "`name` is missing"),
        (rest.decode_new_table, {"name": "t", "schema": {"type": "list"}}, "`schema`"),
        (rest.decode_commit, {"requirements": []}, "`updates` is missing"),
        (rest.decode_commit, {"updates": [{"action": "fly"}]}, "'fly' is not"),
        (rest.decode_commit, {"updates": [], "requirements": [{"type": "assert-luck"}]}, "'assert-luck' is not"),
        (rest.decode_transaction, {"table-changes": [{"updates": [{}]}]}, r"table-changes\[0\]"),
        (rest.decode_rename, {"source": {"namespace": ["a"], "name": "b"}}, "`destination` is missing"),
        (rest.decode_namespace_properties, {"namespace": "a"}, "`namespace`"),
        (rest.decode_namespace_properties, [], "expected"),
    ],
)
def test_what_is_no_such_body_is_refused(decode: Any, document: object, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        decode(msgspec.json.encode(document))
