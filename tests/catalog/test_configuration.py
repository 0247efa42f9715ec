"""Where the properties of a catalog come from, and what is said about wrong ones."""

import gc
import pickle
import sys
from pathlib import Path

import pytest

from icefloe.catalog import HadoopCatalog, MemoryCatalog, SqlCatalog, find_configuration, load_catalog, redacted
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
    with pytest.raises(InvalidPropertyError, match=r"nothing is known of catalog 'lake'.*there is no such file"):
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
    with pytest.raises(InvalidInputError, match="is in the memory of another process or was closed"):
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
        ("nonsense", "is not a database URI"),
        ("mysql://user:hunter22@host/db", "is for 'mysql'; sqlite and postgresql are supported"),
        ("sqlite://", "has no file"),
        ("sqlite:///:memory:", "type='memory'"),
        ("sqlite:////no/such/folder/a.db", "which is not a folder"),
        ("postgresql://user:hunter22@host:port/db", "is not a database URI"),
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
            with pytest.raises(InvalidInputError, match="allows at most"):
                action()
        assert catalog.list_namespaces() == [("n",)]
        assert catalog.list_tables("n") == []
        assert list(catalog.storage.list_prefix(f"{tmp_path}/{'y' * 100}")) == []
        catalog.create_namespace(("a" * 127, "b" * 127))


# -- which file counts


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that is not the home folder."""
    folder = home / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("XDG_CONFIG_HOME", "ICEFLOE_CONFIG", "PYICEBERG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def place(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_first_file_counts_alone(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = "catalog:\n  lake:\n    type: memory\n    from: {}\n"
    table = '[catalog.lake]\ntype = "memory"\nfrom = "{}"\n'
    weakest_first = [
        (project / ".pyiceberg.yaml", yaml.format("yaml here")),
        (home / ".pyiceberg.yaml", yaml.format("yaml home")),
        (home / ".icefloe.toml", table.format("home")),
        (home / ".config" / "icefloe" / "config.toml", table.format("xdg")),
        (project / "icefloe.toml", table.format("project")),
    ]
    for path, text in weakest_first:
        place(path, text)
        assert find_configuration().of("lake")["from"] in text
    assert find_configuration().path == "icefloe.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    named = place(home / "named.toml", table.format("named") + '[catalog.more]\ntype = "memory"\n')
    monkeypatch.setenv("ICEFLOE_CONFIG", str(named))
    assert find_configuration().of("lake")["from"] == "named"
    assert find_configuration().names() == ["lake", "more"]
    assert find_configuration(home / ".icefloe.toml").of("lake")["from"] == "home"
    with pytest.raises(InvalidPropertyError, match="does not exist"):
        find_configuration(home / "none.toml")


def test_variables_of_pyiceberg_are_weaker(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "theirs")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__S3__ENDPOINT", "theirs")
    monkeypatch.setenv("ICEFLOE_CATALOG__LAKE__URI", "ours")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    found = find_configuration()
    assert {key: (each.value, each.source) for key, each in found.settings("lake").items()} == {
        "uri": ("ours", "ICEFLOE_CATALOG__LAKE__URI"),
        "s3.endpoint": ("theirs", "PYICEBERG_CATALOG__LAKE__S3__ENDPOINT"),
    }
    assert (found.default_catalog, found.names()) == ("lake", ["lake"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("py-catalog-impl", "evil.Catalog"),
        ("py-io-impl", "evil.IO"),
        ("metrics-reporter-impl", "evil.report"),
        ("encryption.kms-impl", "evil.Kms"),
        ("rest.client.tls.configurer-impl", "evil.Tls"),
        ("rest.auth.type", "evil.Auth"),
        ("auth.impl", "evil.Auth"),
        ("auth.type", "evil.Auth"),
        ("io.class", "evil.IO"),
        ("METRICS-REPORTER-IMPL", "evil.report"),
    ],
)
@pytest.mark.parametrize("file", ["icefloe.toml", ".pyiceberg.yaml"])
def test_a_file_that_comes_with_a_folder_names_no_code(
    home: Path, project: Path, file: str, key: str, value: str
) -> None:
    text = (
        f'catalog:\n  lake:\n    "{key}": {value}\n'
        if file.endswith("yaml")
        else f'[catalog.lake]\n"{key}" = "{value}"\n'
    )
    place(project / file, text)
    with pytest.raises(
        InvalidPropertyError, match=r"is in the working directory, so it must not name code to run"
    ) as said:
        load_catalog("other", type="memory")
    assert key in str(said.value)
    (project / file).unlink()
    place(home / ".icefloe.toml", f'[catalog.lake]\n"{key}" = "{value}"\n')
    assert find_configuration().of("lake") == {key: value}


def test_values_may_come_from_elsewhere(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = place(home / "secret", "hunter22\n")
    monkeypatch.setenv("BUCKET", "b1")
    lines = (
        '[catalog.lake]\nwarehouse = "s3://${BUCKET}/${PREFIX:-x}"\ntoken = "${file:'
        + str(secret)
        + '}"\nplain = "$${BUCKET} $x"\n'
    )
    place(home / ".icefloe.toml", lines)
    assert find_configuration().of("lake") == {"warehouse": "s3://b1/x", "token": "hunter22", "plain": "${BUCKET} $x"}
    place(home / ".icefloe.toml", '[catalog.lake]\ntoken = "${NOT_SET}"\n')
    with pytest.raises(
        InvalidPropertyError, match=r"catalog.lake.token refers to the variable 'NOT_SET', which is not set"
    ):
        find_configuration()
    place(home / ".icefloe.toml", '[catalog.lake]\ntoken = "${file:/no/such/file}"\n')
    with pytest.raises(InvalidPropertyError, match="refers to a file that cannot be read"):
        find_configuration()
    place(project / "icefloe.toml", lines)
    with pytest.raises(
        InvalidPropertyError, match=r"must not read variables or files.*ICEFLOE_CATALOG__LAKE__WAREHOUSE"
    ):
        find_configuration()


def test_paths_of_a_project_are_beside_its_file(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(project / "icefloe.toml", '[catalog.lake]\nuri = "sqlite:///c.db"\nwarehouse = "house"\n')
    monkeypatch.chdir(home)
    found = find_configuration(project / "icefloe.toml").of("lake")
    assert found == {"uri": f"sqlite:///{project}/c.db", "warehouse": f"{project}/house"}
    place(project / "rest.toml", '[catalog.lake]\nuri = "https://example.org"\nwarehouse = "house"\n')
    assert find_configuration(project / "rest.toml").of("lake")["warehouse"] == "house"


def test_what_is_shown_is_known_to_hold_no_secret() -> None:
    given = {
        "type": "sql",
        "uri": "postgresql://ann:hunter22@db/lake",
        "warehouse": "s3://bucket/path",
        "s3.secret-access-key": "hunter22",
        "token": "hunter22",
        "credential": "ann:hunter22",
        "header.Authorization": "hunter22",
        "a-new-one": "hunter22",
        "table-default.format-version": "3",
    }
    shown = redacted(given)
    assert "hunter22" not in str(shown)
    assert shown["uri"] == "postgresql://***@db/lake"
    assert shown["warehouse"] == "s3://bucket/path"
    assert shown["table-default.format-version"] == "3"
    assert shown["a-new-one"] == "***"
