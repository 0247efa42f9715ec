"""A whole server, asked over HTTP by principals that may do different things."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from icefloe.server.access import STAGED_TABLE
from icefloe.server.auth import Kind, Privilege, Target
from tests.server.auth.whole_server import ABSENT, OPEN, SECRET, Reply, WholeServer, whole_server

NS = "/v1/lake/namespaces"
MANAGED = "/management/v1/lake/namespaces"
WIRE_SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [OPEN],
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeServer]:
    """A server whose tables no test changes."""
    with whole_server(tmp_path_factory.mktemp("whole")) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WholeServer]:
    with whole_server(tmp_path) as server:
        yield server


def new_table(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "schema": WIRE_SCHEMA, "stage-create": False, **more}


def new_view(name: str) -> dict[str, Any]:
    return {"name": name, "schema": WIRE_SCHEMA, "view-version": VERSION, "properties": {}}


def names(*levels: str) -> dict[str, Any]:
    return {"namespace": list(levels[:-1]), "name": levels[-1]}


def commit(*levels: str, requirements: Any = (), updates: Any = ()) -> dict[str, Any]:
    change = {"action": "set-properties", "updates": {"a": "b"}}
    body = {"requirements": list(requirements), "updates": list(updates) or [change]}
    return body | ({"identifier": names(*levels)} if levels else {})


SETS = commit()
REQUESTS: dict[str, Callable[[str], tuple[str, str, Any]]] = {
    "load namespace": lambda ns: ("GET", f"{NS}/{ns}", None),
    "load inner namespace": lambda ns: ("GET", f"{NS}/{ns}%1Fdeep", None),
    "namespace exists": lambda ns: ("HEAD", f"{NS}/{ns}", None),
    "drop namespace": lambda ns: ("DELETE", f"{NS}/{ns}", None),
    "set properties": lambda ns: ("POST", f"{NS}/{ns}/properties", {"updates": {"a": "b"}, "removals": []}),
    "list namespaces": lambda ns: ("GET", f"{NS}?parent={ns}", None),
    "create inner namespace": lambda ns: ("POST", NS, {"namespace": [ns, "new"], "properties": {}}),
    "list tables": lambda ns: ("GET", f"{NS}/{ns}/tables", None),
    "create table": lambda ns: ("POST", f"{NS}/{ns}/tables", new_table("x")),
    "create table of that name": lambda ns: ("POST", f"{NS}/{ns}/tables", new_table("t")),
    "stage table": lambda ns: ("POST", f"{NS}/{ns}/tables", new_table("t") | {"stage-create": True}),
    "load table": lambda ns: ("GET", f"{NS}/{ns}/tables/t", None),
    "load table of refs": lambda ns: ("GET", f"{NS}/{ns}/tables/t?snapshots=refs", None),
    "table exists": lambda ns: ("HEAD", f"{NS}/{ns}/tables/t", None),
    "commit": lambda ns: ("POST", f"{NS}/{ns}/tables/t", SETS),
    "commit with a name": lambda ns: ("POST", f"{NS}/{ns}/tables/t", commit(ns, "t")),
    "commit that creates": lambda ns: ("POST", f"{NS}/{ns}/tables/t", commit(requirements=[{"type": "assert-create"}])),
    "drop table": lambda ns: ("DELETE", f"{NS}/{ns}/tables/t", None),
    "purge table": lambda ns: ("DELETE", f"{NS}/{ns}/tables/t?purgeRequested=true", None),
    "register": lambda ns: (
        "POST",
        f"{NS}/{ns}/register",
        {"name": "x", "metadata-location": "file:///nowhere/x.json"},
    ),
    "unregister": lambda ns: ("POST", f"{NS}/{ns}/tables/t/unregister", {}),
    "metrics": lambda ns: ("POST", f"{NS}/{ns}/tables/t/metrics", {"report-type": "scan-report"}),
    "credentials": lambda ns: ("GET", f"{NS}/{ns}/tables/t/credentials", None),
    "sign": lambda ns: (
        "POST",
        f"{NS}/{ns}/tables/t/sign",
        {"region": "x", "uri": "https://x/y", "method": "GET", "headers": {}},
    ),
    "sign staged": lambda ns: (
        "POST",
        f"{NS}/{ns}/tables/t/sign",
        {
            "region": "x",
            "uri": "https://x/y",
            "method": "GET",
            "headers": {},
            "properties": {STAGED_TABLE: "token"},
        },
    ),
    "is protected": lambda ns: ("GET", f"{MANAGED}/{ns}/tables/t/protection", None),
    "protect namespace": lambda ns: ("POST", f"{MANAGED}/{ns}/protection", None),
    "unprotect view": lambda ns: ("DELETE", f"{MANAGED}/{ns}/views/v/protection", None),
    "plan": lambda ns: ("POST", f"{NS}/{ns}/tables/t/plan", {}),
    "plan result": lambda ns: ("GET", f"{NS}/{ns}/tables/t/plan/p", None),
    "tasks": lambda ns: ("POST", f"{NS}/{ns}/tables/t/tasks", {"plan-task": "p"}),
    "rename away": lambda ns: (
        "POST",
        "/v1/lake/tables/rename",
        {"source": names(ns, "t"), "destination": names(OPEN, "x")},
    ),
    "rename into": lambda ns: (
        "POST",
        "/v1/lake/tables/rename",
        {"source": names(OPEN, "t"), "destination": names(ns, "t")},
    ),
    "transaction": lambda ns: (
        "POST",
        "/v1/lake/transactions/commit",
        {"table-changes": [commit(OPEN, "t"), commit(ns, "t")]},
    ),
    "list views": lambda ns: ("GET", f"{NS}/{ns}/views", None),
    "create view": lambda ns: ("POST", f"{NS}/{ns}/views", new_view("x")),
    "load view": lambda ns: ("GET", f"{NS}/{ns}/views/v", None),
    "view exists": lambda ns: ("HEAD", f"{NS}/{ns}/views/v", None),
    "replace view": lambda ns: ("POST", f"{NS}/{ns}/views/v", {"requirements": [], "updates": []}),
    "drop view": lambda ns: ("DELETE", f"{NS}/{ns}/views/v", None),
    "register view": lambda ns: (
        "POST",
        f"{NS}/{ns}/register-view",
        {"name": "x", "metadata-location": "file:///nowhere/x.json"},
    ),
    "rename view away": lambda ns: (
        "POST",
        "/v1/lake/views/rename",
        {"source": names(ns, "v"), "destination": names(OPEN, "x")},
    ),
    "rename view into": lambda ns: (
        "POST",
        "/v1/lake/views/rename",
        {"source": names(OPEN, "v"), "destination": names(ns, "v")},
    ),
}
"""Everything that can be asked about a namespace, and what is in it."""


def told(reply: Reply, name: str) -> tuple[int, bytes, frozenset[str]]:
    """What can be told from an answer: all but the name, and the names of its headers."""
    return (*reply.about(name), frozenset(reply.headers))


@pytest.mark.parametrize("who", ["reader", "editor", "owner", "nobody"])
@pytest.mark.parametrize("request_name", REQUESTS)
def test_what_is_hidden_is_answered_like_what_does_not_exist(shared: WholeServer, who: str, request_name: str) -> None:
    replies = []
    for namespace in (SECRET, ABSENT):
        method, path, body = REQUESTS[request_name](namespace)
        replies.append(told(shared.ask(who, method, path, body), namespace))
    assert replies[0] == replies[1]
    assert replies[0][0] in (404, 403)


@pytest.mark.parametrize("who", ["reader", "editor", "owner", "nobody"])
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_hidden_warehouse_is_answered_like_one_that_does_not_exist(
    shared: WholeServer, who: str, request_name: str
) -> None:
    replies = []
    for warehouse in ("other", "absen"):
        method, path, body = REQUESTS[request_name](OPEN)
        replies.append(told(shared.ask(who, method, path.replace("/lake/", f"/{warehouse}/"), body), warehouse))
    assert replies[0] == replies[1]
    assert replies[0][0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/v1/config?warehouse={}",
        "/management/v1/{}/dropped",
        "/v1/{}/namespaces",
        "/v1/{}/namespaces/%1F",
        "/v1/{}/namespaces/a/tables/%FF",
    ],
)
def test_warehouses_of_others(shared: WholeServer, path: str) -> None:
    hidden, absent = (told(shared.ask("reader", "GET", path.format(name)), name) for name in ("other", "absen"))
    assert hidden == absent
    assert hidden[0] == 404


@pytest.mark.parametrize("request_name", REQUESTS)
def test_nothing_is_answered_without_a_credential(shared: WholeServer, request_name: str) -> None:
    for namespace in (OPEN, ABSENT):
        reply = shared.ask(None, *REQUESTS[request_name](namespace))
        assert reply.status == 401
        assert "WWW-Authenticate" in reply.headers or "www-authenticate" in reply.headers
    assert shared.ask(None, "GET", "/v1/config").status == 401
    assert shared.ask(None, "GET", "/nowhere").status == 401


READS = {
    "load namespace",
    "load inner namespace",
    "namespace exists",
    "list namespaces",
    "list tables",
    "load table",
    "load table of refs",
    "table exists",
    "list views",
    "load view",
    "view exists",
}
OPTIONAL = {
    "metrics",
    "credentials",
    "sign",
    "sign staged",
    "is protected",
    "plan",
    "plan result",
    "tasks",
    "unregister",
    "register view",
}
"""What a reader may ask for too, or what is refused for other reasons."""


@pytest.mark.parametrize("request_name", sorted(REQUESTS.keys() - OPTIONAL))
def test_a_reader_reads_and_does_nothing_else(shared: WholeServer, request_name: str) -> None:
    reply = shared.ask("reader", *REQUESTS[request_name](OPEN))
    assert (reply.status in (200, 204)) == (request_name in READS), reply
    assert reply.status in (200, 204, 403)


def test_listings_show_what_may_be_seen(shared: WholeServer) -> None:
    def listed(who: str, path: str) -> set[str]:
        reply = shared.ask(who, "GET", path)
        assert reply.status == 200, reply
        found = reply.json.get("namespaces") or [
            (*one["namespace"], one["name"]) for one in reply.json.get("identifiers", [])
        ]
        return {".".join(one) for one in found}

    assert listed("admin", NS) == {OPEN, SECRET}
    assert listed("reader", NS) == {OPEN}
    assert listed("reader", f"{NS}?parent={OPEN}") == {f"{OPEN}.deep"}
    assert listed("reader", f"{NS}/{OPEN}/tables") == {f"{OPEN}.t"}
    assert listed("reader", f"{NS}/{OPEN}/views") == {f"{OPEN}.v"}
    assert listed("reader", f"{NS}?pageToken=&pageSize=1") == {OPEN}


def test_one_table_is_seen_with_what_leads_to_it_and_nothing_else(server: WholeServer) -> None:
    server.principal("guest", (Privilege.READ, Target("lake", (SECRET, "deep"), "t", Kind.TABLE)))
    server.catalog.create_table((SECRET, "deep", "u"), "id long")
    ask = server.ask
    assert ask("guest", "GET", NS).json["namespaces"] == [[SECRET]]
    assert ask("guest", "GET", f"{NS}?parent={SECRET}").json["namespaces"] == [[SECRET, "deep"]]
    assert ask("guest", "GET", f"{NS}/{SECRET}/tables").json["identifiers"] == []
    assert ask("guest", "GET", f"{NS}/{SECRET}/views").json["identifiers"] == []
    assert ask("guest", "GET", f"{NS}/{SECRET}%1Fdeep/tables").json["identifiers"] == [names(SECRET, "deep", "t")]
    assert ask("guest", "GET", f"{NS}/{SECRET}%1Fdeep/tables/t").status == 200
    assert ask("guest", "GET", f"{NS}/{SECRET}%1Fdeep/tables/u").status == 404
    assert ask("guest", "HEAD", f"{NS}/{SECRET}/tables/t").status == 404
    assert ask("guest", "GET", f"{NS}/{SECRET}").status == 403
    assert ask("guest", "GET", "/v1/config?warehouse=lake").status == 200


TRICKS = [
    f"{NS}/{OPEN}/../{SECRET}/tables/t",
    f"{NS}/{OPEN}%2F..%2F{SECRET}/tables/t",
    f"{NS}/{OPEN}%2f%2e%2e%2f{SECRET}/tables/t",
    f"{NS}/{OPEN}%1F..%1F{SECRET}/tables/t",
    f"{NS}/{OPEN}%1F%2E%2E%1F{SECRET}/tables/t",
    f"{NS}/{OPEN}%1F{SECRET}/tables/t",
    f"{NS}/{OPEN}/tables/..%2F..%2F{SECRET}%2Ftables%2Ft",
    f"{NS}/{OPEN}/tables/t/../../../{SECRET}/tables/t",
    f"{NS}/{OPEN}/tables/t%1F{SECRET}",
    f"{NS}/{OPEN}/tables/%2E%2E",
    f"{NS}/..%1F{SECRET}/tables/t",
    f"{NS}/%1F{SECRET}/tables/t",
    f"{NS}/{SECRET}%1F/tables/t",
    f"{NS}/{SECRET}%00/tables/t",
    f"{NS}/{SECRET}%20/tables/t",
    f"{NS}/%20{SECRET}/tables/t",
    f"{NS}/{SECRET.upper()}/tables/t",
    f"{NS}/%73ecret/tables/t",
    f"{NS}/%2573ecret/tables/t",
    f"{NS}/{SECRET}./tables/t",
    f"{NS}/.{SECRET}/tables/t",
    f"{NS}/{SECRET};a=b/tables/t",
    f"{NS}/{SECRET}/tables/t?namespace={OPEN}",
    f"/v1/lake%2F../namespaces/{SECRET}/tables/t",
    f"/v1/other%2F..%2Flake/namespaces/{SECRET}/tables/t",
    f"//v1/lake/namespaces/{SECRET}/tables/t",
    f"/./v1/lake/namespaces/{SECRET}/tables/t",
    f"/v1/oauth/tokens/../../v1/lake/namespaces/{SECRET}/tables/t",
    f"/health/live/../../v1/lake/namespaces/{SECRET}/tables/t",
    f"/v1/lake/namespaces/{SECRET}/tables/t/",
    f"/v1/lake/namespaces/{SECRET}/tables/t/%2e",
]


@pytest.mark.parametrize("path", TRICKS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_spelling_of_a_path_leads_to_what_is_hidden(shared: WholeServer, path: str, method: str) -> None:
    uuid = str(shared.catalog.load_table((SECRET, "t")).metadata.table_uuid)
    reply = shared.ask("owner", method, path)
    assert reply.status in (400, 403, 404, 405), reply
    assert uuid.encode() not in reply.body
    if method == "GET":
        assert b"metadata-location" not in reply.body


@pytest.mark.parametrize("level", ["..", ".", "a/b", "a\\b", "%2F", "a b", "é", "a.b", "-", "'; DROP TABLE x; --"])
def test_odd_namespaces_are_names_and_nothing_else(server: WholeServer, level: str) -> None:
    server.principal("maker", (Privilege.CREATE, Target("lake")), (Privilege.DROP, Target("lake")))
    made = server.ask("maker", "POST", NS, {"namespace": [level], "properties": {}})
    if made.status != 200:
        assert made.status == 400
        return
    segment = quote(level, safe="")
    server.principal("friend", (Privilege.READ, Target("lake", (level,))))
    assert server.ask("friend", "GET", NS).json["namespaces"] == [[level]]
    assert server.ask("friend", "GET", f"{NS}/{segment}").json["namespace"] == [level]
    assert server.ask("reader", "GET", f"{NS}/{segment}").status == 404
    table = server.ask("maker", "POST", f"{NS}/{segment}/tables", new_table("t"))
    assert table.status == 200
    assert table.json["metadata"]["location"].startswith(server.catalog.properties["warehouse"] + "/")
    assert ".." not in table.json["metadata"]["location"].split("/")


def test_a_transaction_is_refused_whole(server: WholeServer) -> None:
    changes = {"table-changes": [commit(OPEN, "t"), commit(SECRET, "t")]}
    assert server.ask("owner", "POST", "/v1/lake/transactions/commit", changes).status == 404
    for namespace in (OPEN, SECRET):
        assert "a" not in server.catalog.load_table((namespace, "t")).properties
    assert server.ask("admin", "POST", "/v1/lake/transactions/commit", changes).status == 204
    for namespace in (OPEN, SECRET):
        assert server.catalog.load_table((namespace, "t")).properties["a"] == "b"


def test_a_foreign_metadata_file_cannot_be_registered(server: WholeServer) -> None:
    foreign = server.catalog.load_table((SECRET, "t"))
    body = {"name": "stolen", "metadata-location": foreign.metadata_location}
    for who in ("reader", "editor", "owner"):
        reply = server.ask(who, "POST", f"{NS}/{OPEN}/register", body)
        assert reply.status == 403, (who, reply)
        assert str(foreign.metadata.table_uuid).encode() not in reply.body
    assert server.ask("admin", "POST", f"{NS}/{OPEN}/register", body).status == 200


def test_a_metadata_file_of_ones_own_may_not_claim_a_foreign_location(server: WholeServer, tmp_path: Path) -> None:
    own, foreign = (server.catalog.load_table((namespace, "t")) for namespace in (OPEN, SECRET))
    file = Path(str(own.metadata_location).removeprefix("file://"))
    text, forged = file.read_text(), file.with_name("00009-forged.metadata.json")
    forged.write_text(text.replace(str(own.location()), str(foreign.location())))
    body = {"name": "stolen", "metadata-location": f"file://{forged}"}
    assert server.ask("owner", "POST", f"{NS}/{OPEN}/register", body).status == 403
    forged.write_text(text)
    assert server.ask("owner", "POST", f"{NS}/{OPEN}/register", body).status == 200


@pytest.mark.parametrize(
    "place",
    [
        "{secret}",
        "{secret}/data",
        "{open}",
        "{open}/../../secret/t",
        "{open}x",
        "{root}",
        "file:///etc",
        "s3://elsewhere/x",
        "{open}/data",
    ],
)
def test_locations_are_chosen_by_those_who_manage_them(server: WholeServer, place: str) -> None:
    own, foreign = (server.catalog.load_table((namespace, "t")).location() for namespace in (OPEN, SECRET))
    root = str(server.catalog.properties["warehouse"])
    location = place.format(secret=foreign, open=own, root=root)
    is_inside = location.startswith(f"{root}/{OPEN}/") and ".." not in location
    sets_location = {"action": "set-location", "location": location}
    sets_path = {"action": "set-properties", "updates": {"write.data.path": location}}
    for who, update in (
        ("editor", sets_location),
        ("editor", sets_path),
        ("owner", sets_location),
        ("owner", sets_path),
    ):
        reply = server.ask(who, "POST", f"{NS}/{OPEN}/tables/t", commit(updates=[update]))
        is_own = location == own or (update is sets_path and location.startswith(f"{own}/"))
        assert (reply.status == 200) == ((is_own and ".." not in location) or (who == "owner" and is_inside)), (
            who,
            update,
            reply,
        )
        assert reply.status in (200, 403)
    reply = server.ask("editor", "POST", f"{NS}/{OPEN}/tables", new_table("n", location=location))
    assert reply.status == 403
    reply = server.ask(
        "editor", "POST", f"{NS}/{OPEN}/tables", new_table("n", properties={"write.metadata.path": location})
    )
    assert reply.status == 403
    reply = server.ask("owner", "POST", f"{NS}/{OPEN}/properties", {"updates": {"location": location}, "removals": []})
    assert reply.status == 403
    reply = server.ask("owner", "POST", NS, {"namespace": [OPEN, "x"], "properties": {"location": location}})
    assert (reply.status == 200) == is_inside


def test_a_new_table_is_not_put_where_files_of_others_are(server: WholeServer) -> None:
    server.principal("maker", (Privilege.CREATE, Target("lake", (OPEN,))))
    old = server.catalog.load_table((OPEN, "t")).location()
    assert server.ask("admin", "DELETE", f"{NS}/{OPEN}/tables/t").status == 204
    for is_staged in (True, False):
        body = new_table("t", location=old) | {"stage-create": is_staged}
        assert server.ask("maker", "POST", f"{NS}/{OPEN}/tables", body).status == 403
    made = server.ask("maker", "POST", f"{NS}/{OPEN}/tables", new_table("t"))
    assert made.status == 200
    assert made.json["metadata"]["location"] != old
    fresh = new_table("u", location=str(old)[:-1] + "u")
    assert server.ask("maker", "POST", f"{NS}/{OPEN}/tables", fresh).status == 200


def test_secrets_are_in_no_log(server: WholeServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "icefloe")
    headers = {"Cookie": "session=mystery", "X-Own-Secret": "mystery", "User-Agent": "somebody/1.0"}
    for path in (f"{NS}/{OPEN}/tables/t", f"{NS}/{SECRET}/tables/t", "/nowhere?token=mystery"):
        server.ask("reader", "GET", path, **headers)
    told = " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "somebody/1.0" in told
    assert "mystery" not in told
    assert server.tokens["reader"] not in told


def test_foreign_files_are_deleted_for_administrators_alone(server: WholeServer) -> None:
    update = {"action": "set-properties", "updates": {"gc.foreign-files.enabled": "true"}}
    assert server.ask("owner", "POST", f"{NS}/{OPEN}/tables/t", commit(updates=[update])).status == 403
    assert server.ask("admin", "POST", f"{NS}/{OPEN}/tables/t", commit(updates=[update])).status == 200


def test_a_rename_gains_nothing(server: WholeServer) -> None:
    server.principal(
        "cleaner", (Privilege.DROP, Target("lake", (SECRET,))), (Privilege.MANAGE, Target("lake", (OPEN,)))
    )
    rename = {"source": names(SECRET, "t"), "destination": names(OPEN, "mine")}
    assert server.ask("cleaner", "POST", "/v1/lake/tables/rename", rename).status == 403
    assert server.ask("cleaner", "GET", f"{NS}/{OPEN}/tables/mine").status == 404


def test_grants_follow_a_rename_and_end_with_a_drop(server: WholeServer) -> None:
    server.principal("guest", (Privilege.READ, Target("lake", (SECRET,), "t", Kind.TABLE)))
    rename = {"source": names(SECRET, "t"), "destination": names(SECRET, "moved")}
    assert server.ask("admin", "POST", "/v1/lake/tables/rename", rename).status == 204
    assert server.ask("guest", "GET", f"{NS}/{SECRET}/tables/moved").status == 200
    assert server.ask("admin", "POST", f"{NS}/{SECRET}/tables", new_table("t")).status == 200
    assert server.ask("guest", "GET", f"{NS}/{SECRET}/tables/t").status == 404
    assert server.ask("admin", "DELETE", f"{NS}/{SECRET}/tables/moved").status == 204
    assert server.ask("admin", "POST", f"{NS}/{SECRET}/tables", new_table("moved")).status == 200
    assert server.ask("guest", "GET", f"{NS}/{SECRET}/tables/moved").status == 404


def test_an_idempotency_key_of_another_principal_tells_nothing(server: WholeServer) -> None:
    key = {"Idempotency-Key": "01926b54-7d6a-7c1e-9a52-3f6f4c1d2e3f"}
    assert server.ask("admin", "POST", f"{NS}/{SECRET}/tables", new_table("k"), **key).status == 200
    reply = server.ask("owner", "POST", f"{NS}/{SECRET}/tables", new_table("k"), **key)
    assert reply.status == 404
    assert b"metadata" not in reply.body


def test_every_denied_request_is_recorded(shared: WholeServer) -> None:
    for request_name, make in REQUESTS.items():
        before = len(shared.records)
        reply = shared.ask("reader", *make(SECRET))
        outcomes = {record["outcome"] for record in shared.records[before:]}
        if reply.status in (403, 404) and b"there is nothing at" not in reply.body and reply.body:
            assert outcomes & {"hidden", "denied"}, request_name
        assert all(record["principal"] == "reader" for record in shared.records[before:])
    text = json.dumps(shared.records)
    assert not any(token in text or token.split("_", 2)[2] in text for token in shared.tokens.values())


def test_operators_see_what_they_need(shared: WholeServer) -> None:
    assert shared.ask(None, "GET", "/health/live").status == 200
    assert shared.ask(None, "GET", "/health/ready").status == 200
    reply = shared.ask(None, "GET", "/metrics")
    assert reply.status == 401
    assert shared.ask("reader", "GET", "/metrics").status == 403
    assert re.search(rb"icefloe_requests", shared.ask("admin", "GET", "/metrics").body)
