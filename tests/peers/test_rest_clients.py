"""One REST catalog, many clients: DuckDB and Java Iceberg on our server, and our client on Java's, each reading what the others wrote."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.types import LongType

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import NoSuchTableError, TableAlreadyExistsError
from tests.peers.engines import DUCKDB, JAVA, PYICEBERG
from tests.peers.java import JAVA_VERSIONS, JavaPeer
from tests.peers.java_rest.installation import find_java_rest
from tests.peers.java_rest.server import java_rest_server, sqlite_properties
from tests.peers.page import THROUGH_REST
from tests.server.running import Client, serving


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{value}" for value in ids], pa.string())})


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


@pytest.fixture(scope="module")
def java_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Java's own."""
    installation = find_java_rest()
    if isinstance(installation, str):
        pytest.skip(installation)
    with java_rest_server(installation, sqlite_properties(tmp_path_factory.mktemp("java"))) as uri:
        yield uri


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Client]:
    """Ours, over SQLite."""
    uri, warehouse = f"sqlite:///{tmp_path}/lake.db", str(tmp_path / "warehouse")
    with serving({"lake": load_catalog("lake", type="sql", uri=uri, warehouse=warehouse)}) as running:
        yield running


@pytest.fixture
def ours(server: Client) -> Iterator[Catalog]:
    """Our client of it."""
    with load_catalog("ours", type="rest", uri=server.url, warehouse="lake") as catalog:
        catalog.create_namespace("db")
        yield catalog


@pytest.mark.cell(direction=THROUGH_REST, peer=DUCKDB.name, scenario="its client on our server")
@pytest.mark.parametrize("version", [2])
def test_duckdb_on_our_server(server: Client, ours: Catalog, version: int) -> None:
    table = ours.create_table("db.t", "id bigint, name string", properties={"format-version": str(version)})
    table.append(rows(1, 2))
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as peer:
        for package in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
            [extension] = Path(str(package.__file__)).parent.rglob("*.duckdb_extension")
            peer.execute(f"LOAD '{extension}'")
        peer.execute(f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{server.url}', AUTHORIZATION_TYPE 'none')")
        assert peer.execute("SELECT id, name FROM lake.db.t ORDER BY id").fetchall() == [(1, "n1"), (2, "n2")]
        peer.execute("INSERT INTO lake.db.t VALUES (3, 'duck')")
        peer.execute("DELETE FROM lake.db.t WHERE id = 1")
        peer.execute("UPDATE lake.db.t SET name = 'new' WHERE id = 2")
        assert sorted(map(tuple, (row.values() for row in table.refresh().scan().to_arrow().to_pylist()))) == [
            (2, "new"),
            (3, "duck"),
        ]
        # It names the current schema after the spec that is bound to it.
        peer.execute("CREATE TABLE lake.db.made (id BIGINT, name VARCHAR)")
        ours.load_table("db.made").append(rows(7))
        assert peer.execute("SELECT id FROM lake.db.made").fetchall() == [(7,)]
        peer.execute("DROP TABLE lake.db.made")
    assert not ours.table_exists("db.made")
    assert table.verify(level="data").ok


@pytest.mark.cell(direction=THROUGH_REST, peer=PYICEBERG.name, scenario="its client on our server")
@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_on_our_server(server: Client, ours: Catalog, version: int) -> None:
    peer = RestCatalog("peer", uri=server.url, warehouse="lake")
    table = peer.create_table("db.t", rows().schema, properties={"format-version": str(version)})
    table.append(rows(1, 2))
    own = ours.load_table("db.t")
    assert own.format_version == version
    own.append(rows(3))
    table.refresh().delete("id = 1")
    with table.update_schema() as update:
        update.add_column("more", LongType())
    assert ids(ours, "db.t") == [2, 3]
    own.refresh().delete("id = 2")
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [3]
    assert own.verify(level="data").ok


@pytest.mark.cell(direction=THROUGH_REST, peer=JAVA.name, scenario="its client on our server")
@pytest.mark.parametrize("version", JAVA_VERSIONS)
def test_java_on_our_server(server: Client, ours: Catalog, java: JavaPeer, version: int) -> None:
    # Each server has a port of its own, and Spark knows a catalog by its name for ever.
    name = f"served{version}"
    java.sql(f"SET spark.sql.catalog.{name} = org.apache.iceberg.spark.SparkCatalog")
    for key, value in {"type": "rest", "uri": server.url, "warehouse": "lake", "cache-enabled": "false"}.items():
        java.sql(f"SET `spark.sql.catalog.{name}.{key}` = `{value}`")
    table = ours.create_table(
        "db.t",
        "id bigint, name string",
        partition_spec=["bucket(4, id)"],
        properties={
            "format-version": str(version),
            "write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write",
        },
    )
    table.append(rows(1, 2, 3))
    assert column(java.sql(f"SELECT id FROM {name}.db.t ORDER BY id")) == [1, 2, 3]
    java.sql(f"DELETE FROM {name}.db.t WHERE id = 2")
    java.sql(f"ALTER TABLE {name}.db.t ADD COLUMN more INT")
    java.sql(f"INSERT INTO {name}.db.t VALUES (4, 'java', 40)")
    assert ids(ours, "db.t") == [1, 3, 4]
    assert table.refresh().verify(level="data").ok
    table.delete("id = 1")
    java.sql(f"CREATE TABLE {name}.db.made USING iceberg AS SELECT * FROM {name}.db.t")
    assert ids(ours, "db.made") == [3, 4]
    java.sql(f"CREATE VIEW {name}.db.seen AS SELECT id FROM {name}.db.t")
    assert ours.load_view("db.seen").sql_for("spark") == f"SELECT id FROM {name}.db.t"
    assert column(java.sql(f"SELECT id FROM {name}.db.seen ORDER BY id")) == [3, 4]
    java.sql(f"DROP TABLE {name}.db.made PURGE")
    assert not ours.table_exists("db.made")


def column(answer: pa.Table) -> list[object]:
    values: list[object] = answer.column(0).to_pylist()
    return values


@pytest.mark.cell(direction=THROUGH_REST, peer=JAVA.name, scenario="our client on its server")
@pytest.mark.parametrize("version", JAVA_VERSIONS)
def test_our_client_on_javas_server(java_server: str, version: int) -> None:
    with load_catalog("java", type="rest", uri=java_server) as catalog:
        namespace = f"db{version}"
        catalog.create_namespace(namespace, {"owner": "us"})
        assert catalog.load_namespace_properties(namespace)["owner"] == "us"
        one, two = f"{namespace}.one", f"{namespace}.two"
        for name in (one, two):
            table = catalog.create_table(
                name,
                "id bigint, name string",
                partition_spec=["truncate(2, name)"],
                properties={"format-version": str(version)},
            )
            behind = catalog.load_table(name)
            table.append(rows(1, 2, 3))
            behind.append(rows(4))
            table.refresh().delete("id = 2")
            with table.update_schema() as update:
                update.add_column("more", "int")
            assert ids(catalog, name) == [1, 3, 4]
            assert table.verify(level="data").ok
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_table(one, "id bigint")
        with catalog.transaction() as tx:
            tx.table(one).append(rows(8))
            tx.table(two).append(rows(8))
        assert [8 in ids(catalog, name) for name in (one, two)] == [True, True]
        catalog.rename_table(one, f"{namespace}.renamed")
        catalog.create_view(f"{namespace}.seen", "id bigint", f"SELECT id FROM {two}")
        assert catalog.list_views(namespace) == [(namespace, "seen")]
        assert catalog.list_tables(namespace) == [(namespace, "renamed"), (namespace, "two")]
        catalog.purge_table(f"{namespace}.renamed")
        with pytest.raises(NoSuchTableError):
            catalog.load_table(f"{namespace}.renamed")
