"""What a REST catalog asks of its server, and what it makes of the answers."""

import json
import logging
import multiprocessing
import pickle
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import errors
from icefloe.catalog import Catalog, RestCatalog, load_catalog
from icefloe.catalog.rest.history import ReferencedMetadata
from icefloe.catalog.rest.plan_server import TablePlanServer
from icefloe.catalog.rest.session import new_key
from icefloe.commit import Timing
from icefloe.metadata import TableMetadata, new_table_metadata
from icefloe.partitioning import UNPARTITIONED, UNSORTED
from icefloe.rest import LoadedTable, Surplus, encode_loaded_table
from icefloe.schema import parse_ddl
from icefloe.server.app import create_app
from icefloe.storage import StorageCredential
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.catalog.rest.loopback import LoopbackServer
from tests.catalog.rest.proxy import AFTER, Proxy, proxy_to
from tests.catalog.rest.scripted import Answer, ScriptedServer, scripted_server

NO_WAITS = Timing(lambda _: None, lambda: 0, lambda: 0.0)
EMPTY = Answer(200, b'{"defaults": {}, "overrides": {}}')
KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def configured(
    overrides: Mapping[str, str] | None = None, endpoints: Sequence[str] = (), lifetime: str | None = None
) -> Answer:
    """The configuration of a server."""
    more = {} if lifetime is None else {"idempotency-key-lifetime": lifetime}
    document = {"defaults": {}, "overrides": overrides or {}, "endpoints": list(endpoints), **more}
    return Answer(200, json.dumps(document).encode())


def metadata_at(location: str, version: int = 2) -> TableMetadata:
    return new_table_metadata(
        parse_ddl("id bigint"),
        UNPARTITIONED,
        UNSORTED,
        location,
        {},
        version,
        uuid=str(uuid.uuid4()),
        timestamp_ms=1_700_000_000_000,
    )


def loaded(surplus: Surplus | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with a table."""
    metadata = metadata_at("s3://bucket/t")
    table = LoadedTable(metadata, "s3://bucket/t/metadata/00000-a.metadata.json", surplus or Surplus())
    return Answer(200, encode_loaded_table(table), headers or {})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as started:
        started.answer(EMPTY)
        yield started


@pytest.fixture
def catalog(server: ScriptedServer) -> Iterator[RestCatalog]:
    with RestCatalog("lake", {"uri": f"{server.uri}/api"}, NO_WAITS) as made:
        yield made


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Catalog]:
    """What is behind a server of ours."""
    with load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path / "warehouse")
    ) as made:
        yield made


@pytest.fixture
def proxy(lake: Catalog) -> Iterator[Proxy]:
    """The way to that server, on which every request is seen."""
    with LoopbackServer(create_app({"lake": lake}), lifespan="on") as running, proxy_to(running.url) as started:
        yield started


def server_of(catalog: RestCatalog, table: Table) -> TablePlanServer:
    """What a planner holds of a table."""
    return TablePlanServer.of(
        catalog, ("a", "t"), LoadedTable(table.metadata, None, Surplus({"token": "of-the-table"}))
    )


def client_of(proxy: Proxy, **properties: object) -> Catalog:
    quiet = {"rest-metrics-reporting-enabled": "false"}
    return load_catalog("lake", type="rest", uri=proxy.uri, **{**quiet, **properties})


def asked(proxy: ScriptedServer) -> list[str]:
    """The requests that were made, and are forgotten then."""
    seen = [f"{each.method} {each.target}" for each in proxy.received]
    proxy.received.clear()
    return seen


# Configuration


def test_nothing_is_asked_before_it_is_needed(server: ScriptedServer, catalog: RestCatalog) -> None:
    assert repr(catalog) == f"RestCatalog('lake', uri='{server.uri}/api')"
    assert pickle.loads(pickle.dumps(catalog)).properties == catalog.properties
    assert server.received == []


def test_the_server_sets_defaults_and_overrides(server: ScriptedServer) -> None:
    answer = {"defaults": {"a": "server", "b": "server"}, "overrides": {"c": "server", "prefix": "one/two", "n": None}}
    server.answer(Answer(200, json.dumps(answer).encode()), Answer(200, b'{"namespaces": []}'))
    with load_catalog("lake", type="rest", uri=server.uri, warehouse="main house", a="mine", c="mine") as catalog:
        assert isinstance(catalog, RestCatalog)
        assert catalog.list_namespaces() == []
        merged = catalog._merged
    assert (merged["a"], merged["b"], merged["c"]) == ("mine", "server", "server")
    assert asked(server) == ["GET /v1/config?warehouse=main%20house", "GET /v1/one/two/namespaces?pageToken="]


def test_the_server_may_send_the_client_elsewhere(server: ScriptedServer) -> None:
    with scripted_server() as other:
        server.answer(configured({"uri": f"{other.uri}/v9", "header.X-Tenant": "blue"}))
        other.answer(Answer(200, b'{"namespaces": []}'))
        with load_catalog("lake", type="rest", uri=server.uri) as catalog:
            catalog.list_namespaces()
        assert asked(server) == ["GET /v1/config"]
        assert other.received[0].target == "/v9/v1/namespaces?pageToken="
        assert other.received[0].headers["x-tenant"] == "blue"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(401), errors.NotAuthorizedError),
        (Answer(403), errors.ForbiddenError),
        (Answer(404, b"no such page"), errors.ServiceUnavailableError),
        (Answer(503), errors.ServiceUnavailableError),
        (Answer(200, b"<html>"), errors.InvalidInputError),
        (
            Answer(404, b'{"error": {"message": "m", "type": "NoSuchWarehouseException", "code": 404}}'),
            errors.NoSuchObjectError,
        ),
    ],
)
def test_a_server_that_gives_no_configuration_is_an_error(
    server: ScriptedServer, catalog: RestCatalog, answer: Answer, error: type[Exception]
) -> None:
    server.answer(answer)
    with pytest.raises(error):
        catalog.list_namespaces()
    # It is asked again the next time.
    server.answer(EMPTY, Answer(200, b'{"namespaces": [["a"]]}'))
    assert catalog.list_namespaces() == [("a",)]


def test_what_a_server_does_not_offer_is_done_another_way_or_refused(
    server: ScriptedServer, catalog: RestCatalog
) -> None:
    # One that lists nothing has no HEAD and no views.
    server.answer(EMPTY, loaded(), Answer(200, b'{"namespace": ["a"], "properties": {}}'), Answer(404))
    assert catalog.table_exists("a.t")
    assert catalog.namespace_exists("a")
    assert not catalog.view_exists("a.v")
    assert catalog.list_views("a") == []
    with pytest.raises(
        errors.UnsupportedOperationError, match=r"does not offer `POST /v1/\{prefix\}/namespaces/\{namespace\}/views`"
    ):
        catalog.create_view("a.v", "id bigint", "SELECT 1")
    assert asked(server)[1:] == ["GET /api/v1/namespaces/a/tables/t", "GET /api/v1/namespaces/a"]


def test_only_what_a_server_lists_is_asked(server: ScriptedServer, catalog: RestCatalog) -> None:
    server.answer(configured(endpoints=["HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"]), Answer(204))
    assert catalog.table_exists("a.t")
    assert catalog.list_namespaces() == []
    assert catalog.list_tables("a") == []
    with pytest.raises(errors.NoSuchTableError):
        catalog.load_table("a.t")
    with pytest.raises(errors.UnsupportedOperationError):
        catalog.drop_table("a.t")
    assert asked(server)[1:] == ["HEAD /api/v1/namespaces/a/tables/t"]


# Names and pages


def test_levels_are_joined_as_the_server_says(server: ScriptedServer, catalog: RestCatalog) -> None:
    server.answer(
        configured({"namespace-separator": "%2E"}), Answer(200, b'{"namespaces": [["a", "b c", "d"]]}'), Answer(404)
    )
    assert catalog.list_namespaces(("a", "b c")) == [("a", "b c", "d")]
    assert not catalog.table_exists(("a", "b c", "t/1"))
    with pytest.raises(errors.InvalidInputError, match=r"reserves '\.' as the separator"):
        catalog.create_table(("a.b", "t"), "id bigint")
    assert asked(server)[1:] == [
        "GET /api/v1/namespaces?parent=a.b%20c&pageToken=",
        "GET /api/v1/namespaces/a%2Eb%20c/tables/t%2F1",
    ]


def test_lists_come_page_by_page(server: ScriptedServer) -> None:
    def page(name: str, token: str | None) -> Answer:
        names = [{"namespace": ["a"], "name": name}]
        return Answer(200, json.dumps({"identifiers": names, "next-page-token": token}).encode())

    server.answer(EMPTY, page("t2", "x/1"), page("t1", "x 2"), page("t3", None))
    with load_catalog("lake", type="rest", uri=server.uri, **{"rest-page-size": "1"}) as catalog:
        assert catalog.list_tables("a") == [("a", "t1"), ("a", "t2"), ("a", "t3")]
        tokens = [request.partition("?")[2] for request in asked(server)[1:]]
        assert tokens == ["pageToken=&pageSize=1", "pageToken=x%2F1&pageSize=1", "pageToken=x%202&pageSize=1"]
        server.answer(page("t1", "again"))
        with pytest.raises(errors.ServiceUnavailableError, match="repeats pages"):
            catalog.list_tables("a")


def test_a_missing_table_is_missing_even_if_views_are_a_secret(server: ScriptedServer, catalog: RestCatalog) -> None:
    endpoints = [
        "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
    ]
    server.answer(configured(endpoints=endpoints), Answer(404), Answer(403))
    with pytest.raises(errors.NoSuchTableError, match=r"no table a\.t in catalog 'lake'"):
        catalog.load_table("a.t")


# Entity tags and history


def test_a_table_that_has_not_changed_is_not_sent_again(proxy: Proxy) -> None:
    with client_of(proxy) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table("shop.t", "id bigint")
        first = catalog.load_table("shop.t")
        assert "if-none-match" in proxy.received[-1].headers
        assert catalog.load_table("shop.t").metadata is first.metadata
        first.append(pa.table({"id": [1]}))
        # The answer to a commit is as good as one to loading.
        assert catalog.load_table("shop.t").metadata is first.metadata
        with client_of(proxy) as other:
            other.load_table("shop.t").append(pa.table({"id": [2]}))
        assert catalog.load_table("shop.t").scan().count() == 2
        catalog.drop_table("shop.t")
        with pytest.raises(errors.NoSuchTableError):
            catalog.load_table("shop.t")
        assert "if-none-match" not in proxy.received[-2].headers


def test_tags_are_kept_as_long_and_as_many_as_the_properties_say(server: ScriptedServer) -> None:
    for properties in ({"rest-table-cache.max-entries": "0"}, {"rest-table-cache.expire-after-write-ms": "0"}):
        server.answer(EMPTY, loaded(headers={"ETag": '"1"'}))
        with load_catalog("lake", type="rest", uri=server.uri, **properties) as catalog:
            catalog.load_table("a.t")
            catalog.load_table("a.t")
            assert "if-none-match" not in server.received[-1].headers


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_history_is_loaded_when_something_needs_it(proxy: Proxy, version: int) -> None:
    with client_of(proxy, **{"snapshot-loading-mode": "refs"}) as catalog:
        catalog.create_namespace("shop")
        made = catalog.create_table("shop.t", "id bigint", properties={"format-version": version})
        for number in range(3):
            made.append(pa.table({"id": [number]}))
        asked(proxy)
        table = catalog.load_table("shop.t")
        assert isinstance(table.metadata, ReferencedMetadata)
        assert table.scan().count() == 3
        head = table.current_snapshot()
        assert head is not None
        assert table.scan("id = 1").to_arrow().num_rows == 1
        loads = [each for each in asked(proxy) if "/tables/t" in each and "plan" not in each]
        assert loads == ["GET /v1/lake/namespaces/shop/tables/t?snapshots=refs"]
        assert [each.snapshot_id for each in table.snapshots()] == [each.snapshot_id for each in made.snapshots()]
        assert asked(proxy) == ["GET /v1/lake/namespaces/shop/tables/t"]
        assert table.scan(snapshot_id=table.snapshots()[0].snapshot_id).count() == 1
        assert table.metadata.evolve(location="x") == made.metadata.evolve(location="x")
        assert pickle.loads(pickle.dumps(table.metadata)) == made.metadata
        with pytest.raises(errors.NoSuchSnapshotError):
            table.metadata.snapshot(1)
        # Another commit does not come into a state that it was not part of.
        behind = catalog.load_table("shop.t")
        made.append(pa.table({"id": [3]}))
        assert len(behind.snapshots()) == 3
        behind.append(pa.table({"id": [4]}))
        assert catalog.load_table("shop.t").scan().count() == 5


# Keys, credentials and configuration of tables


def test_changes_carry_a_key_where_the_server_takes_them(server: ScriptedServer, catalog: RestCatalog) -> None:
    server.answer(configured(lifetime="PT30M"), Answer(503), Answer(204))
    catalog.drop_table("a.t")
    first, second = (each.headers["idempotency-key"] for each in server.received[1:])
    assert first == second
    assert KEY.fullmatch(first)
    server.received.clear()
    catalog.drop_table("a.t")
    assert server.received[0].headers["idempotency-key"] != first
    server.answer(Answer(200, b'{"namespaces": []}'))
    catalog.list_namespaces()
    assert "idempotency-key" not in server.received[-1].headers


def test_keys_are_uuids_that_begin_with_the_time() -> None:
    keys = [new_key() for _ in range(100)]
    assert all(KEY.fullmatch(key) and uuid.UUID(key).version == 7 for key in keys)
    assert len(set(keys)) == 100
    assert [key[:8] for key in keys] == sorted(key[:8] for key in keys)


def test_without_a_lifetime_there_are_no_keys(server: ScriptedServer, catalog: RestCatalog) -> None:
    server.answer(EMPTY, Answer(204))
    catalog.drop_table("a.t")
    assert "idempotency-key" not in server.received[-1].headers


def test_a_table_has_the_storage_and_the_user_that_the_server_gives_it(server: ScriptedServer) -> None:
    surplus = Surplus(
        {"token": "of-the-table", "s3.region": "mars", "s3.endpoint": "http://localhost:1"},
        (StorageCredential("s3://bucket/t", {"s3.access-key-id": "id", "s3.secret-access-key": "very-secret"}),),
    )
    server.answer(EMPTY, loaded(surplus))
    with load_catalog("lake", type="rest", uri=server.uri, token="of-the-user", **{"s3.region": "here"}) as catalog:
        table = catalog.load_table("a.t")
        assert server.received[-1].headers["authorization"] == "Bearer of-the-user"
        table.refresh()
        assert server.received[-1].headers["authorization"] == "Bearer of-the-table"
        assert table.storage.properties["s3.region"] == "mars"
        assert catalog.storage.properties["s3.region"] == "here"
        for secret in ("of-the-table", "of-the-user", "very-secret"):
            shown = repr(table) + repr(table.storage) + repr(catalog) + repr(table._committer) + repr(table._planner)
            assert isinstance(catalog, RestCatalog)
            assert secret not in shown + repr(catalog._tables.session) + repr(server_of(catalog, table))
        assert not {"token", "uri"} & table.storage.properties.keys()
        again = pickle.loads(pickle.dumps(table))
        assert again.storage == table.storage
        again.refresh()
        assert server.received[-1].headers["authorization"] == "Bearer of-the-table"
        again._committer._catalog.close()


@pytest.mark.parametrize("way", ["named", "offered", "neither"])
def test_credentials_are_asked_for_again_before_they_expire(server: ScriptedServer, way: str) -> None:
    def credential(secret: str, expires_ms: int) -> StorageCredential:
        config = {
            "s3.access-key-id": "id",
            "s3.secret-access-key": secret,
            "s3.session-token": "t",
            "s3.session-token-expires-at-ms": str(expires_ms),
        }
        return StorageCredential("s3://bucket/t", config)

    config = {"client.refresh-credentials-endpoint": "v1/more"} if way == "named" else {}
    endpoints = ["GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
    if way == "offered":
        endpoints.append("GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials")
    old, new = credential("old", 1), credential("new", 32_503_680_000_000)
    body = {"storage-credentials": [{"prefix": new.prefix, "config": dict(new.config)}]}
    refreshed = loaded(Surplus(config, (new,))) if way == "neither" else Answer(200, json.dumps(body).encode())
    server.answer(configured(endpoints=endpoints), loaded(Surplus(config, (old,)), {"ETag": '"1"'}), refreshed)
    with load_catalog("lake", type="rest", uri=server.uri) as catalog:
        storage = pickle.loads(pickle.dumps(catalog.load_table("a.t"))).storage
        server.received.clear()
        server.answer(configured(endpoints=endpoints), refreshed)
        files, _ = storage._resolve("s3://bucket/t/x")
        assert files is not None
    path = {
        "named": "/v1/more",
        "offered": "/v1/namespaces/a/tables/t/credentials",
        "neither": "/v1/namespaces/a/tables/t",
    }
    assert asked(server) == ["GET /v1/config", f"GET {path[way]}"]
    storage._credentials._refresh.catalog.close()


# Reports


def test_reports_go_to_the_server_in_the_background(proxy: Proxy) -> None:
    with client_of(proxy, **{"rest-metrics-reporting-enabled": "true"}) as catalog:
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.t", "id bigint")
        table.append(pa.table({"id": [1]}))
        assert table.scan("id = 1").count() == 1
    sent = [each.json() for each in proxy.received if each.target.endswith("/metrics")]
    assert [each["report-type"] for each in sent if isinstance(each, dict)] == ["commit-report", "scan-report"]


def test_a_report_that_does_not_arrive_disturbs_nothing(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    proxy.is_meant = lambda request: request.target.endswith("/metrics")
    proxy.cuts = [AFTER]
    with caplog.at_level(logging.WARNING, "icefloe.catalog.rest"):
        with client_of(proxy, **{"rest-metrics-reporting-enabled": "true"}) as catalog:
            catalog.create_namespace("shop")
            catalog.create_table("shop.t", "id bigint").append(pa.table({"id": [1]}))
        assert "a report of table shop.t was not sent" in caplog.text


# Other processes


def count_rows(pickled: bytes, answers: "multiprocessing.Queue[int]") -> None:
    """What another process does with a table."""
    answers.put(pickle.loads(pickled).refresh().scan().count())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_table_works_in_other_processes(proxy: Proxy, how: str) -> None:
    with client_of(proxy) as catalog:
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.t", "id bigint")
        table.append(pa.table({"id": [1, 2]}))
        context = multiprocessing.get_context("fork") if how == "fork" else multiprocessing.get_context("spawn")
        answers = context.Queue()
        process = context.Process(target=count_rows, args=(pickle.dumps(table), answers))
        process.start()
        assert answers.get(timeout=60) == 2
        process.join(60)
        # The connections of this process are not disturbed.
        assert catalog.load_table("shop.t").scan().count() == 2
