"""Where the properties of a catalog come from, and what is said about wrong ones."""

import gc
import pickle
import sys
from pathlib import Path

import pytest

from icefloe.catalog import HadoopCatalog, MemoryCatalog, SqlCatalog, load_catalog
from icefloe.catalog.loading import catalog_properties
from icefloe.errors import (
    InvalidInputError,
    InvalidLocationError,
    InvalidPropertyError,
    NotInstalledError,
    StorageError,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_nothing_is_configured(home: Path) -> None:
    assert catalog_properties("lake", {}) == {}
    with pytest.raises(InvalidPropertyError, match=r"nothing is known of catalog 'lake'.*that file has: none"):
        load_catalog("lake")


def test_the_file_names_catalogs(home: Path) -> None:
    (home / ".icefloe.toml").write_text(
        '[catalog.lake]\ntype = "memory"\ns3.endpoint = "http://x"\n"s3.region" = "eu"\ntries = 3\non = true\n'
        '[catalog.other]\ntype = "sql"\n'
    )
    assert catalog_properties("Lake", {}) == {
        "type": "memory",
        "s3.endpoint": "http://x",
        "s3.region": "eu",
        "tries": "3",
        "on": "true",
    }
    assert isinstance(load_catalog("lake"), MemoryCatalog)
    with pytest.raises(InvalidPropertyError, match="that file has: lake, other"):
        load_catalog("missing")


def test_later_places_win(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".icefloe.toml").write_text('[catalog.my-lake]\na = "file"\nb = "file"\nc = "file"\n')
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_LAKE__B", "variable")
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_LAKE__C", "variable")
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_LAKE__S3__ACCESS_KEY_ID", "key")
    monkeypatch.setenv("ICEFLOE_CATALOG__OTHER__B", "no")
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_LAKE", "no")
    found = catalog_properties("my-lake", {"c": "argument", "d": Path("/x"), "e": None})
    assert found == {"a": "file", "b": "variable", "c": "argument", "s3.access-key-id": "key", "d": "/x"}


@pytest.mark.parametrize("content", ["[catalog", 'catalog = "x"', "[catalog]\nlake = 1", "\xff"])
def test_a_bad_file_is_said(home: Path, content: str) -> None:
    (home / ".icefloe.toml").write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidPropertyError, match=r"\.icefloe\.toml"):
        load_catalog("lake", type="memory")


def test_bad_values_are_said() -> None:
    with pytest.raises(InvalidPropertyError, match="'warehouse' has a value of type list"):
        load_catalog("lake", type="memory", warehouse=["a"])
    with pytest.raises(InvalidPropertyError, match="name of a catalog"):
        load_catalog("  ")
    with pytest.raises(InvalidPropertyError, match="type 'hive'; known types are rest, sql, hadoop and memory"):
        load_catalog("lake", type="hive")
    with pytest.raises(InvalidPropertyError, match="REST catalog 'lake' needs a `uri`"):
        load_catalog("lake", type="rest")
    with pytest.raises(InvalidPropertyError, match=r"rest\.client\.max-retries"):
        load_catalog("lake", uri="https://example.org", **{"rest.client.max-retries": "many"})
    with pytest.raises(InvalidPropertyError, match="has no type"):
        load_catalog("lake", warehouse="/tmp/x")
    with pytest.raises(InvalidPropertyError, match="has no `warehouse`"):
        load_catalog("lake", type="hadoop")
    with pytest.raises(InvalidLocationError, match="warehouse of catalog 'lake' is empty"):
        load_catalog("lake", type="hadoop", warehouse=" ")
    with pytest.raises(InvalidLocationError, match="unknown scheme 'ftp'"):
        load_catalog("lake", type="hadoop", warehouse="ftp://x/y")


def test_kinds_are_found(tmp_path: Path) -> None:
    with load_catalog("lake", uri=f"sqlite:///{tmp_path}/a.db", warehouse=tmp_path) as sql:
        assert isinstance(sql, SqlCatalog)
        assert sql.warehouse == f"file://{tmp_path}"
    assert isinstance(load_catalog("lake", type="HADOOP", warehouse=str(tmp_path)), HadoopCatalog)


def test_a_relative_warehouse_is_absolute_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = load_catalog("lake", type="sql", uri="sqlite:///a.db", warehouse="house")
    text = pickle.dumps(catalog)
    monkeypatch.chdir("/")
    catalog.create_namespace("n")
    assert catalog.create_table("n.t", "a int").location() == f"file://{tmp_path}/house/n/t"
    catalog.close()
    with pickle.loads(text) as copy:
        assert copy.warehouse == f"file://{tmp_path}/house"
        assert copy.list_tables("n") == [("n", "t")]


def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(NotInstalledError, match=r"pip install 'icefloe\[postgres\]'"):
        load_catalog("lake", type="sql", uri="postgresql://user:hunter22@host/db")


def test_a_memory_catalog_stays_in_its_process() -> None:
    text = pickle.dumps(load_catalog("lake", type="memory"))
    gc.collect()
    with pytest.raises(InvalidInputError, match="lives in the memory of another process, or has ended"):
        pickle.loads(text)


def test_a_table_needs_a_place(tmp_path: Path) -> None:
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/a.db") as catalog:
        catalog.create_namespace("n")
        with pytest.raises(InvalidLocationError, match=r"n\.t needs a location: catalog 'lake' has no `warehouse`"):
            catalog.create_table("n.t", "a int")
        assert catalog.create_table("n.t", "a int", location=str(tmp_path / "t")).location() == f"file://{tmp_path}/t"


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        (None, "has no `uri`"),
        ("", "has no `uri`"),
        ("nonsense", "is not one of a database"),
        ("mysql://user:hunter22@host/db", "is for 'mysql'; sqlite and postgresql are supported"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "type='memory'"),
        ("sqlite:////no/such/folder/a.db", "which is not a folder"),
        ("postgresql://user:hunter22@host:port/db", "is not one of a database"),
    ],
)
def test_bad_uris_are_said_without_secrets(uri: str | None, problem: str) -> None:
    with pytest.raises(InvalidPropertyError) as caught:
        load_catalog("lake", type="sql", uri=uri)
    assert problem in str(caught.value)
    assert "hunter22" not in str(caught.value)


def test_credentials_are_never_shown(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        load_catalog("lake", type="sql", uri="postgresql://user:hunter22@127.0.0.1:1/db")
    text = f"{caught.value!r} {caught.value} {caught.value.__cause__}"
    assert "127.0.0.1" in text
    assert "hunter22" not in text
    catalog = load_catalog("lake", type="hadoop", warehouse=tmp_path, **{"s3.secret-access-key": "hunter22"})
    assert catalog.properties["s3.secret-access-key"] == "hunter22"
    assert catalog.storage.properties == {"s3.secret-access-key": "hunter22"}
    assert "hunter22" not in f"{catalog!r} {catalog.storage!r}"


def test_names_fit_into_a_database(tmp_path: Path) -> None:
    long = "x" * 256
    with pytest.raises(InvalidInputError, match=r"catalog name .* has 256 characters"):
        load_catalog(long, type="sql", uri=f"sqlite:///{tmp_path}/a.db")
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/a.db", warehouse=tmp_path) as catalog:
        catalog.create_namespace("n")
        for action in (
            lambda: catalog.create_namespace(long),
            lambda: catalog.create_namespace(("a" * 128, "b" * 128)),
            lambda: catalog.create_table(("n", long), "a int"),
            lambda: catalog.create_view(("n", long), "a int", "SELECT 1"),
            lambda: catalog.create_namespace("k", {long: "v"}),
            lambda: catalog.create_namespace("k", {"k": "v" * 1001}),
            lambda: catalog.create_table("n.t", "a int", location=f"{tmp_path}/{'/'.join(['y' * 100] * 10)}"),
        ):
            with pytest.raises(InvalidInputError, match="keeps at most"):
                action()
        assert catalog.list_namespaces() == [("n",)]
        assert catalog.list_tables("n") == []
        assert list(catalog.storage.list_prefix(f"{tmp_path}/{'y' * 100}")) == []
        catalog.create_namespace(("a" * 127, "b" * 127))
