"""Namespaces, tables and views over HTTP: what is asked for is done, and what cannot be is told with the right status."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalog import load_catalog
from icefloe.rest.paths_codec import parse_endpoint
from icefloe.server.settings import ServerSettings
from icefloe.versions import ALL_VERSIONS
from tests.server.running import SCHEMA, Client, commit, serving

T = "namespaces/ns/tables/t"
QUERY = {"type": "sql", "sql": "SELECT 1", "dialect": "spark"}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [QUERY],
    "default-namespace": ["ns"],
}


def test_the_configuration(lake: Client) -> None:
    config = lake.http.get(f"{lake.url}/v1/config", params={"warehouse": "lake"}).json()
    assert config["overrides"] == {"prefix": "lake"}
    assert config["idempotency-key-lifetime"] == "PT1H"
    for text in config["endpoints"]:
        endpoint = parse_endpoint(text)
        path = endpoint.address("lake", ("absent",), table="t", view="v", plan_id="p")
        answer = lake.http.request(endpoint.method, f"{lake.url}/{path}", content=b"{}")
        # None of what is announced is a path that does not exist.
        assert answer.status_code not in (405, 500, 501), text
    assert lake.http.get(f"{lake.url}/v1/config", params={"warehouse": "other"}).status_code == 404


def test_namespaces(client: Client) -> None:
    client.done("POST", "namespaces", {"namespace": ["ns", "in.ner"], "properties": {"a": "1"}})
    assert client.done("GET", "namespaces")["namespaces"] == [["ns"]]
    assert client.done("GET", "namespaces?parent=ns")["namespaces"] == [["ns", "in.ner"]]
    assert client.done("GET", "namespaces/ns%1Fin.ner") == {"namespace": ["ns", "in.ner"], "properties": {"a": "1"}}
    assert client.ask("HEAD", "namespaces/ns%1fin.ner").status_code == 204
    changed = client.done("POST", "namespaces/ns/properties", {"removals": ["x"], "updates": {"b": "2"}})
    assert changed == {"updated": ["b"], "removed": [], "missing": ["x"]}
    client.refused(409, "NamespaceNotEmptyException", "DELETE", "namespaces/ns")
    client.done("DELETE", "namespaces/ns%1Fin.ner")
    client.done("DELETE", "namespaces/ns")
    assert client.ask("HEAD", "namespaces/ns").status_code == 404
    for properties in ({"a": "\x00"}, {"a\x00": "1"}, {"exists": "1"}, {"a": "x" * 2000}):
        wrong = {"namespace": ["other"], "properties": properties}
        client.refused(400, "IllegalArgumentException", "POST", "namespaces", wrong)
    body = {"removals": ["a"], "updates": {"a": "1"}}
    client.refused(422, "UnprocessableEntityException", "POST", "namespaces/ns/properties", body)
    message = client.refused(404, "NoSuchNamespaceException", "GET", "namespaces?parent=gone%1Fdeep")
    assert message == "Namespace does not exist: gone.deep"


def test_pages(client: Client) -> None:
    for number in range(5):
        client.create(f"t{number}")
    tables = "namespaces/ns/tables"
    assert len(client.done("GET", tables)["identifiers"]) == 5
    assert client.done("GET", f"{tables}?pageToken=")["next-page-token"] is None
    names: list[str] = []
    token: str | None = ""
    while token is not None:
        page = client.done("GET", f"{tables}?pageSize=2&pageToken={token}")
        names += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"]
        if names == ["t0", "t1"]:
            # What comes and goes between pages moves no other name.
            client.done("DELETE", f"{tables}/t0")
            client.create("t00")
    assert names == ["t0", "t1", "t2", "t3", "t4"]
    for bad in ("pageSize=0", "pageSize=x&pageToken=", "pageToken=!!&pageSize=1", "pageToken=eA&pageSize=1"):
        client.refused(400, "IllegalArgumentException", "GET", f"{tables}?{bad}")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_table_gets_fresh_ids_and_changes(lake: Client, version: int) -> None:
    created = lake.create(properties={"format-version": str(version)})
    metadata = created["metadata"]
    assert metadata["format-version"] == version
    assert [field["id"] for field in metadata["schemas"][0]["fields"]] == [1, 2]
    uuid = {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}
    done = lake.done("POST", T, commit({"p": "1"}, uuid))
    assert done["metadata"]["properties"]["p"] == "1"
    loaded = lake.done("GET", T)
    assert (loaded["metadata-location"], loaded["metadata"]) == (done["metadata-location"], done["metadata"])


def test_a_staged_table_is_created_by_its_commit(lake: Client) -> None:
    staged = lake.done("POST", "namespaces/ns/tables", {"name": "t", "schema": SCHEMA, "stage-create": True})
    assert "metadata-location" not in staged
    assert lake.ask("HEAD", T).status_code == 404
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    lake.done("POST", T, body)
    assert lake.done("GET", T)["metadata"]["table-uuid"] == metadata["table-uuid"]
    message = lake.refused(409, "CommitFailedException", "POST", T, body)
    assert message.startswith("Requirement failed: table already exists")
    both = {**body, "requirements": [{"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": "x"}]}
    lake.refused(400, "IllegalArgumentException", "POST", T, both)


def test_requirements_and_updates_that_cannot_be(lake: Client) -> None:
    lake.create()
    for requirement, text in (
        ({"type": "assert-table-uuid", "uuid": "9"}, "UUID does not match"),
        ({"type": "assert-current-schema-id", "current-schema-id": 7}, "current schema changed"),
        ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}, "main is missing"),
    ):
        message = lake.refused(409, "CommitFailedException", "POST", T, commit({"p": "1"}, requirement))
        assert text in message
    bodies: tuple[object, ...] = (
        commit({"p": "1"}, {"type": "assert-luck"}),
        {"requirements": [], "updates": [{"action": "fly"}]},
        {"requirements": []},
        b"[",
        b"\xff",
        b"",
    )
    for body in bodies:
        assert lake.ask("POST", T, body).status_code == 400
    snapshot = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 9}
    lake.refused(400, "ValidationException", "POST", T, {"requirements": [], "updates": [snapshot]})
    lake.refused(404, "NoSuchTableException", "POST", "namespaces/ns/tables/absent", commit({"p": "1"}))
    named = {**commit({"p": "1"}), "identifier": {"namespace": ["ns"], "name": "other"}}
    lake.refused(400, "IllegalArgumentException", "POST", T, named)
    assert "p" not in lake.done("GET", T)["metadata"]["properties"]


def test_a_client_that_has_the_newest_state_gets_no_body(lake: Client) -> None:
    lake.create()
    answer = lake.ask("GET", T)
    tag = answer.headers["etag"]
    for header in (tag, tag.strip('"'), f'"x", {tag}'):
        unchanged = lake.ask("GET", T, headers={"If-None-Match": header})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert lake.ask("GET", f"{T}?snapshots=refs", headers={"If-None-Match": tag}).status_code == 200
    committed = lake.set_property("t", "p", "1")
    assert lake.ask("GET", T, headers={"If-None-Match": tag}).status_code == 200
    assert lake.ask("GET", T, headers={"If-None-Match": committed.headers["etag"]}).status_code == 304
    lake.refused(400, "IllegalArgumentException", "GET", f"{T}?snapshots=some")


def test_only_snapshots_that_refs_lead_to(lake: Client, tmp_path: Path) -> None:
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path)) as catalog:
        table = catalog.create_table("ns.t", "id bigint")
        for number in range(3):
            table.append(pa.table({"id": pa.array([number], pa.int64())}))
    all_snapshots = lake.done("GET", T)["metadata"]["snapshots"]
    refs = lake.done("GET", f"{T}?snapshots=refs")["metadata"]
    assert len(all_snapshots) == 3
    assert [each["snapshot-id"] for each in refs["snapshots"]] == [refs["current-snapshot-id"]]


def test_drop_rename_register(client: Client) -> None:
    location = client.create()["metadata-location"]
    client.create("other")
    identifiers = ({"namespace": ["ns"], "name": name} for name in ("t", "other"))
    source, taken = identifiers
    rename = {"source": source, "destination": taken}
    message = client.refused(409, "AlreadyExistsException", "POST", "tables/rename", rename)
    assert message == "Cannot rename ns.t to ns.other. Table already exists"
    nowhere = {"source": source, "destination": {"namespace": ["gone"], "name": "x"}}
    client.refused(404, "NoSuchNamespaceException", "POST", "tables/rename", nowhere)
    client.done("POST", "tables/rename", {"source": source, "destination": {"namespace": ["ns"], "name": "new"}})
    client.refused(404, "NoSuchTableException", "POST", "tables/rename", rename)
    client.done("DELETE", "namespaces/ns/tables/new")
    client.refused(404, "NoSuchTableException", "DELETE", "namespaces/ns/tables/new")
    registered = client.done("POST", "namespaces/ns/register", {"name": "t", "metadata-location": location})
    assert registered["metadata-location"] == location
    again = {"name": "other", "metadata-location": location}
    client.refused(409, "AlreadyExistsException", "POST", "namespaces/ns/register", again)
    client.done("POST", "namespaces/ns/register", {**again, "overwrite": True})
    gone = {"name": "x", "metadata-location": f"{location}.gone"}
    client.refused(404, "NotFoundException", "POST", "namespaces/ns/register", gone)
    unregistered = client.done("POST", f"{T}/unregister")
    assert unregistered["metadata-location"] == location
    client.refused(404, "NoSuchTableException", "POST", f"{T}/unregister")


def test_purge(lake: Client, tmp_path: Path) -> None:
    location = Path(lake.create()["metadata"]["location"].removeprefix("file://"))
    lake.done("DELETE", T)
    assert list(location.rglob("*.metadata.json"))
    kept = Path(lake.create()["metadata"]["location"].removeprefix("file://"))
    assert kept != location
    lake.done("DELETE", f"{T}?purgeRequested=true")
    assert not list(kept.rglob("*.json"))
    assert list(location.rglob("*.metadata.json"))


def test_views(client: Client) -> None:
    new = {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {"p": "1"}}
    created = client.done("POST", "namespaces/ns/views", new)
    assert client.done("GET", "namespaces/ns/views")["identifiers"] == [{"namespace": ["ns"], "name": "v"}]
    uuid = {"type": "assert-view-uuid", "uuid": created["metadata"]["view-uuid"]}
    for number in (2, 3):
        # Two clients that both took theirs for the second version.
        version = {**VERSION, "version-id": 2, "representations": [{**QUERY, "sql": f"SELECT {number}"}]}
        updates = [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        done = client.done("POST", "namespaces/ns/views/v", {"requirements": [uuid], "updates": updates})
        assert done["metadata"]["current-version-id"] == number
    wrong = {"requirements": [{**uuid, "uuid": "9"}], "updates": []}
    client.refused(409, "CommitFailedException", "POST", "namespaces/ns/views/v", wrong)
    message = client.refused(
        409, "AlreadyExistsException", "POST", "namespaces/ns/tables", {"name": "v", "schema": SCHEMA}
    )
    assert message == "View with same name already exists: ns.v"
    client.done(
        "POST",
        "views/rename",
        {"source": {"namespace": ["ns"], "name": "v"}, "destination": {"namespace": ["ns"], "name": "w"}},
    )
    location = client.done("GET", "namespaces/ns/views/w")["metadata-location"]
    client.done("POST", "namespaces/ns/register-view", {"name": "v", "metadata-location": location})
    for name in ("v", "w"):
        client.done("DELETE", f"namespaces/ns/views/{name}")
        assert client.ask("HEAD", f"namespaces/ns/views/{name}").status_code == 404
        client.refused(404, "NoSuchViewException", "GET", f"namespaces/ns/views/{name}")


def test_metrics_reports_are_taken(lake: Client) -> None:
    lake.create()
    for report in ({"report-type": "scan-report", "table-name": "t", "metrics": {}}, {"report-type": "new"}):
        assert lake.ask("POST", f"{T}/metrics", report).status_code == 204


def test_several_warehouses_and_a_server_that_only_reads(tmp_path: Path) -> None:
    catalogs = {
        name: load_catalog(name, type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path / name))
        for name in ("lake", "sea/side")
    }
    with serving(catalogs) as client:
        other = Client(client.http, client.url, "sea%2Fside")
        assert client.http.get(f"{client.url}/v1/config", params={"warehouse": "sea/side"}).json()["overrides"] == {
            "prefix": "sea%2Fside"
        }
        assert client.http.get(f"{client.url}/v1/config").status_code == 404
        other.done("POST", "namespaces", {"namespace": ["ns"]})
        assert client.done("GET", "namespaces")["namespaces"] == []
    with serving(catalogs, ServerSettings(read_only=True, default_warehouse="lake")) as client:
        assert client.http.get(f"{client.url}/v1/config").status_code == 200
        client.refused(403, "ForbiddenException", "POST", "namespaces", {"namespace": ["ns"]})
        assert client.done("GET", "namespaces")["namespaces"] == []
