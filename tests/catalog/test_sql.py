"""What is particular to databases: layouts that others made, locks, lost connections, and sharing one with PyIceberg."""

import multiprocessing
import os
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PeerCatalog

from icefloe.catalog import Catalog, ServedCatalog, load_catalog
from icefloe.catalog.sql import SqlPointers
from icefloe.errors import CommitFailed, InvalidInputError, InvalidPropertyError, StateError, StorageError
from icefloe.versions import ALL_VERSIONS
from tests.catalog.databases import PostgresServer
from tests.catalog.tables import SCHEMA, append, is_linear, live_files

V0_TABLES = [
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
    "property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key))",
]
"""As the Java library creates them."""


@pytest.fixture(params=["sqlite", "postgres"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that is empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


def run(uri: str, *statements: str) -> list[Any]:
    """Run statements past the catalog; the rows of the last one."""
    if uri.startswith("sqlite"):
        connection: Any = sqlite3.connect(uri.removeprefix("sqlite:///"))
    else:
        connection = psycopg.connect(uri)
    try:
        for statement in statements:
            cursor = connection.execute(statement)
        rows = list(cursor.fetchall()) if cursor.description else []
        connection.commit()
        return rows
    finally:
        connection.close()


@pytest.fixture
def opened() -> Iterator[list[Catalog]]:
    """Catalogs to close at the end."""
    made: list[Catalog] = []
    yield made
    for catalog in made:
        catalog.close()


def open_catalog(uri: str, tmp_path: Path, opened: list[Catalog], **more: str) -> Catalog:
    catalog = load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "w"), **more)
    opened.append(catalog)
    return catalog


def test_tables_of_version_0_are_used_as_they_are(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    run(uri, *V0_TABLES)
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("n")
    append(catalog.create_table("n.t", SCHEMA), 1)
    catalog.rename_table("n.t", "n.u")
    assert catalog.list_tables("n") == [("n", "u")]
    assert catalog.list_views("n") == []
    assert not catalog.view_exists("n.v")
    files = set((tmp_path / "w").rglob("*"))
    with pytest.raises(InvalidInputError, match=r"does not support views: .* schema_version='v1' to upgrade"):
        catalog.create_view("n.v", "a int", "SELECT 1")
    assert set((tmp_path / "w").rglob("*")) == files
    for key in ("schema_version", "jdbc.schema-version"):
        newer = open_catalog(uri, tmp_path, opened, **{key: "V1"})
        assert newer.list_tables("n") == [("n", "u")]
        newer.views.create_or_replace("n.v", "a int", "SELECT 1")
        append(newer.load_table("n.u"), 2)
    assert len(live_files(newer.load_table("n.u"))) == 3
    assert run(uri, "SELECT iceberg_type FROM iceberg_tables ORDER BY table_name") == [(None,), ("VIEW",)]


def test_an_unknown_layout_is_refused(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    run(uri, *V0_TABLES)
    with pytest.raises(InvalidPropertyError, match="'schema_version' is 'v9'; it must be one of v0, v1"):
        open_catalog(uri, tmp_path, opened, schema_version="v9")


def test_rows_are_as_the_others_write_them(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("a.b", {"k": "v"})
    table = catalog.create_table("a.b.t", SCHEMA)
    first = table.metadata_location
    append(table, 1)
    catalog.create_view("a.b.v", "a int", "SELECT 1")
    rows = run(uri, "SELECT * FROM iceberg_tables ORDER BY table_name")
    assert rows[0] == ("lake", "a.b", "t", table.metadata_location, first, "TABLE")
    assert rows[1][:3] == ("lake", "a.b", "v")
    assert rows[1][5] == "VIEW"
    assert run(uri, "SELECT * FROM iceberg_namespace_properties ORDER BY property_key") == [
        ("lake", "a.b", "exists", "true"),
        ("lake", "a.b", "k", "v"),
    ]


def test_namespaces_are_there_when_something_is_in_them(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("a")
    location = catalog.create_table("a.t", SCHEMA).metadata_location
    run(uri, f"INSERT INTO iceberg_tables VALUES ('lake', 'x.y', 't', '{location}', NULL, NULL)")
    assert catalog.namespace_exists("x")
    assert catalog.list_namespaces() == [("a",), ("x",)]
    assert catalog.list_namespaces("x") == [("x", "y")]
    assert catalog.load_namespace_properties("x.y") == {}
    assert catalog.list_tables("x.y") == [("x", "y", "t")]
    assert len(catalog.load_table("x.y.t").snapshots()) == 0


def test_catalogs_of_other_names_are_apart(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    with load_catalog("pond", type="sql", uri=uri, warehouse=str(tmp_path / "p")) as other:
        assert other.list_namespaces() == []
        other.create_namespace("a")
        assert other.list_tables("a") == []


def test_many_open_an_empty_database_at_once(uri: str, tmp_path: Path) -> None:
    start = threading.Barrier(6)
    errors: list[BaseException] = []

    def one(number: int) -> None:
        start.wait()
        try:
            with load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "w")) as catalog:
                catalog.create_namespace(f"n{number}")
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with load_catalog("lake", type="sql", uri=uri) as catalog:
        assert len(catalog.list_namespaces()) == 6


def test_tables_are_not_created_against_the_users_will(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    with pytest.raises(StateError, match="has no catalog tables"):
        open_catalog(uri, tmp_path, opened, init_catalog_tables="false")


def test_a_row_without_a_location_is_said(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    run(uri, "INSERT INTO iceberg_tables VALUES ('lake', 'n', 't', NULL, NULL, 'TABLE')")
    with pytest.raises(StateError, match=r"n\.t has no metadata location"):
        catalog.load_table("n.t")


def test_pointers_of_some_tables_are_found_by_the_index(
    postgres: PostgresServer, tmp_path: Path, opened: list[Catalog]
) -> None:
    """However many tables the catalog has, and whatever PostgreSQL knows of them."""
    uri = postgres.new_database()
    catalog: Any = open_catalog(uri, tmp_path, opened)
    pointers: SqlPointers = catalog._table_pointers
    given = {"namespaces": ["n"] * 8, "names": [f"t{number}" for number in range(8)]}
    for statement, count in ((pointers._finding_listed, 1), (pointers._locating_listed, 2)):
        assert pointers._database.read_by_driver(statement, given) == []
        text, constants = pointers._database._texts[statement]
        with psycopg.connect(uri.replace("+psycopg", "")) as connection:
            explained = connection.execute(f"EXPLAIN {text}", {**constants, **given}).fetchall()
        plan = "\n".join(line for [line] in explained)
        scans = re.findall(
            r"Index Cond: .*catalog_name.*table_namespace.*listed.namespace.*table_name.*listed.name", plan
        )
        assert (len(scans), "Seq Scan" in plan) == (count, False), plan


def test_lost_connections_are_replaced(postgres: PostgresServer, tmp_path: Path, opened: list[Catalog]) -> None:
    uri = postgres.new_database()
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA)
    located = {("n", "t"): table.metadata_location}
    assert ServedCatalog(catalog).table_locations([("n", "t"), ("n", "absent")]) == located
    run(
        postgres.uri(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{uri.rpartition('/')[2].partition('?')[0]}'",
    )
    assert ServedCatalog(catalog).table_locations([("n", "t")]) == located
    append(table, 1)
    assert len(catalog.load_table("n.t").snapshots()) == 1


def test_a_locked_database_fails_for_certain(
    tmp_path: Path, opened: list[Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefloe.catalog.sql_database.BUSY_TIMEOUT_SECONDS", 0.1)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA, properties={"commit.retry.num-retries": "1"})
    files = {info.location for info in catalog.storage.list_prefix(table.location() or "")}
    blocker = sqlite3.connect(f"{tmp_path}/catalog.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(CommitFailed, match=r"database is locked"):
        table.set_properties({"a": "b"})
    with pytest.raises(StorageError, match="database is locked"):
        catalog.create_table("n.other", SCHEMA)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert {info.location for info in catalog.storage.list_prefix(f"{catalog.warehouse}")} == files
    table.set_properties({"a": "b"})
    assert catalog.load_table("n.t").properties["a"] == "b"


def _child(catalog: Catalog, results: Any) -> None:
    append(catalog.load_table("n.t"), os.getpid())
    results.put(len(catalog.load_table("n.t").snapshots()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_child, args=(catalog, results))
    child.start()
    assert results.get(timeout=60) == 1
    child.join(60)
    append(table.refresh(), 2)
    assert len(catalog.load_table("n.t").snapshots()) == 2


# PyIceberg


def open_peer(uri: str, tmp_path: Path) -> PeerCatalog:
    peer_uri = uri.replace("postgresql://", "postgresql+psycopg://")
    return PeerCatalog("lake", uri=peer_uri, warehouse=f"file://{tmp_path}/w")


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version < 3])
def test_pyiceberg_and_icefloe_write_one_table_in_turns(
    uri: str, tmp_path: Path, opened: list[Catalog], version: int
) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    peer = open_peer(uri, tmp_path)
    catalog.create_namespace("n")
    ours = catalog.create_table("n.ours", SCHEMA, properties={"format-version": version})
    peer.create_table(
        "n.theirs", pa.schema([("id", pa.int64()), ("name", pa.string())]), properties={"format-version": str(version)}
    )
    for name in ("n.ours", "n.theirs"):
        expected: set[int] = set()
        for turn in range(3):
            append(catalog.load_table(name), turn)
            expected.add(turn)
            assert set(peer.load_table(name).scan().to_arrow()["id"].to_pylist()) == expected
            peer.load_table(name).append(pa.table({"id": [100 + turn], "name": ["theirs"]}))
            expected.add(100 + turn)
            table = catalog.load_table(name)
            assert len(live_files(table)) == len(expected)
            assert len(table.snapshots()) == 2 * (turn + 1)
        assert set(peer.load_table(name).scan().to_arrow()["id"].to_pylist()) == expected
    assert {each[-1] for each in peer.list_tables("n")} == {"ours", "theirs"}
    assert catalog.list_tables("n") == [("n", "ours"), ("n", "theirs")]
    append(ours, 7)
    peer.close()


def test_pyiceberg_and_icefloe_share_names(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    peer = open_peer(uri, tmp_path)
    peer.create_namespace("theirs", {"a": "b"})
    peer.create_namespace(("theirs", "deep"))
    catalog = open_catalog(uri, tmp_path, opened)
    assert catalog.list_namespaces() == [("theirs",)]
    assert catalog.list_namespaces("theirs") == [("theirs", "deep")]
    assert catalog.load_namespace_properties("theirs") == {"a": "b"}
    catalog.create_namespace("ours", {"c": "d"})
    assert peer.namespace_exists("ours")
    assert peer.load_namespace_properties("ours")["c"] == "d"
    table = catalog.create_table("ours.t", SCHEMA)
    peer.rename_table("ours.t", "theirs.deep.t")
    assert catalog.load_table("theirs.deep.t").metadata.table_uuid == table.metadata.table_uuid
    catalog.create_view("ours.v", "a int", "SELECT 1")
    assert peer.list_tables("ours") == []
    peer.drop_table("theirs.deep.t")
    assert not catalog.table_exists("theirs.deep.t")
    peer.close()


def test_pyiceberg_with_a_stale_table_loses_nothing_of_ours(uri: str, tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(uri, tmp_path, opened)
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA)
    peer = open_peer(uri, tmp_path)
    stale, late = peer.load_table("n.t"), catalog.load_table("n.t")
    append(catalog.load_table("n.t"), 1)
    stale.append(pa.table({"id": [2], "name": ["late"]}))
    append(late, 3)
    table = catalog.load_table("n.t")
    assert len(table.snapshots()) == 3
    assert is_linear(table)
    assert sorted(peer.load_table("n.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    peer.close()


def test_a_metadata_file_is_decoded_again_only_if_its_bytes_are_others(tmp_path: Path, opened: list[Catalog]) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path}/catalog.db", tmp_path, opened)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA, properties={"color": "red"})
    file = Path(str(table.metadata_location).removeprefix("file://"))
    first = catalog.load_table("n.t").metadata
    assert catalog.load_table("n.t").metadata is first
    file.write_bytes(file.read_bytes().replace(b'"red"', b'"tan"'))
    assert catalog.load_table("n.t").metadata.properties["color"] == "tan"
    assert first.properties["color"] == "red"
    file.unlink()
    with pytest.raises(StorageError, match=file.name):
        catalog.load_table("n.t")
