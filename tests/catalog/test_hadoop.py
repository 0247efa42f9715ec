"""What is particular to tables in a file system: versions, hints, and what other programs leave there."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from icefloe.catalog import HadoopCatalog, load_catalog
from icefloe.commit import Prepared
from icefloe.errors import (
    CommitFailed,
    CommitStateUnknown,
    CorruptFileError,
    InvalidLocationError,
    NamespaceNotEmptyError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedVersionError,
    ValidationError,
)
from icefloe.metadata import updates as up
from icefloe.storage import Storage
from icefloe.storage.hadoop import ArrowFiles
from icefloe.storage.locations import Location
from icefloe.storage.protocol import Files
from icefloe.table import Table
from tests.catalog.tables import SCHEMA, append, live_files
from tests.storage.servers import S3Server


@pytest.fixture
def catalog(tmp_path: Path) -> HadoopCatalog:
    made = load_catalog("files", type="hadoop", warehouse=str(tmp_path / "w"))
    assert isinstance(made, HadoopCatalog)
    made.create_namespace("n")
    return made


@pytest.fixture
def table(catalog: HadoopCatalog) -> Table:
    made = catalog.create_table("n.t", SCHEMA)
    append(made, 1)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "w" / "n" / "t" / "metadata"


def versions(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("v*"))


def test_versions_count_up(table: Table, folder: Path) -> None:
    append(table, 2)
    assert versions(folder) == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "version-hint.text"]
    assert (folder / "version-hint.text").read_text() == "3"
    assert not list(folder.glob(".icefloe-*"))


@pytest.mark.parametrize("hint", ["1", "99", "nonsense", "", None])
def test_no_hint_is_trusted(catalog: HadoopCatalog, table: Table, folder: Path, hint: str | None) -> None:
    append(table, 2)
    path = folder / "version-hint.text"
    path.unlink()
    if hint is not None:
        path.write_text(hint)
    loaded = catalog.load_table("n.t")
    assert (loaded.metadata_location or "").endswith("/v3.metadata.json")
    append(loaded, 3)
    assert path.read_text() == "4"
    assert len(live_files(catalog.load_table("n.t"))) == 3


def test_a_hint_that_cannot_be_written_stops_nothing(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    (folder / "version-hint.text").unlink()
    (folder / "version-hint.text").mkdir()
    (folder / "version-hint.text" / "x").write_text("in the way")
    append(table, 2)
    assert len(live_files(catalog.load_table("n.t"))) == 2


@pytest.mark.parametrize("form", ["file://{}/w", "file:{}/w", "file://{}//w/", "file://{}/x/../w", "{}/./w"])
def test_a_warehouse_can_be_written_in_many_ways(tmp_path: Path, form: str) -> None:
    catalog = load_catalog("files", type="hadoop", warehouse=form.format(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA)
    append(table, 1)
    assert catalog.list_tables("n") == [("n", "t")]
    plain = load_catalog("files", type="hadoop", warehouse=f"{tmp_path}/w")
    assert plain.load_table("n.t").metadata == table.metadata
    append(plain.load_table("n.t"), 2)
    assert len(live_files(catalog.load_table("n.t"))) == 2


def test_versions_are_numbers_not_texts(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    for number in range(2, 11):
        append(table, number)
    assert (catalog.load_table("n.t").metadata_location or "").endswith("/v11.metadata.json")


def test_other_files_are_no_versions(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    for name in (
        "v99.metadata.json.tmp",
        "00099-abc.metadata.json",
        "v.metadata.json",
        "vx.metadata.json",
        "v99.json",
        ".v99.metadata.json.crc",
    ):
        (folder / name).write_text("{}")
    (folder / "sub").mkdir()
    (folder / "sub" / "v99.metadata.json").write_text("{}")
    assert (catalog.load_table("n.t").metadata_location or "").endswith("/v2.metadata.json")
    append(table, 2)


def test_both_ways_to_name_compressed_files_are_read(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    table.set_properties({"write.metadata.compression-codec": "gzip"})
    append(table, 2)
    assert versions(folder)[-2:] == ["v4.gz.metadata.json", "version-hint.text"]
    (folder / "v4.gz.metadata.json").rename(folder / "v4.metadata.json.gz")
    loaded = catalog.load_table("n.t")
    assert len(live_files(loaded)) == 2
    append(loaded, 3)
    assert len(live_files(catalog.load_table("n.t"))) == 3


def test_all_writers_of_one_version_compete_for_one_name(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    one, other = catalog.load_table("n.t"), catalog.load_table("n.t")
    state = other.state
    one.set_properties({"write.metadata.compression-codec": "gzip"})
    (folder / "v3.metadata.json").rename(folder / "hidden")
    with pytest.MonkeyPatch.context() as patch:
        # The other one listed the folder before the first one's file appeared.
        listed = catalog._versions(("n", "t"))
        (folder / "hidden").rename(folder / "v3.metadata.json")
        patch.setattr(HadoopCatalog, "_versions", lambda self, identifier: listed)
        with pytest.raises(CommitFailed, match=r"v3\.metadata\.json exists"):
            other._committer.commit(state, Prepared((up.SetPropertiesUpdate({"a": "b"}),)), lambda: None)
    assert versions(folder)[-2:] == ["v3.metadata.json", "version-hint.text"]


def test_a_table_is_not_a_namespace(catalog: HadoopCatalog, table: Table) -> None:
    assert not catalog.namespace_exists("n.t")
    assert not catalog.namespace_exists("n.t.metadata")
    assert catalog.list_namespaces("n") == []
    with pytest.raises(TableAlreadyExistsError, match=r"n\.t is a table"):
        catalog.create_namespace("n.t.deeper")


def test_a_folder_with_foreign_files_stays(catalog: HadoopCatalog, tmp_path: Path) -> None:
    (tmp_path / "w" / "n" / "notes.txt").write_text("mine")
    with pytest.raises(NamespaceNotEmptyError, match="still contains files"):
        catalog.drop_namespace("n")
    assert (tmp_path / "w" / "n" / "notes.txt").read_text() == "mine"


def test_a_dropped_table_takes_its_folder_along(catalog: HadoopCatalog, table: Table, tmp_path: Path) -> None:
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(ValidationError, match=r"gc\.enabled=false"):
        catalog.drop_table("n.t")
    assert len(live_files(catalog.load_table("n.t"))) == 1
    table.set_properties({"gc.enabled": "true"})
    catalog.drop_table("n.t")
    assert not (tmp_path / "w" / "n" / "t").exists()
    assert catalog.list_namespaces("n") == []
    fresh = catalog.create_table("n.t", "other string")
    assert fresh.snapshots() == []


def test_a_v4_table_is_refused_with_the_reason(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    newest = folder / "v2.metadata.json"
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "format-version": 4, "next-row-id": 0}))
    with pytest.raises(UnsupportedVersionError, match=r"without a catalog.*v1 to v3 tables support; this table is v4"):
        catalog.load_table("n.t")


def test_a_broken_version_is_said_and_not_skipped(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    (folder / "v3.metadata.json").write_text("{")
    with pytest.raises(CorruptFileError, match=r"v3\.metadata\.json"):
        catalog.load_table("n.t")
    with pytest.raises(CorruptFileError):
        append(table, 2)
    assert versions(folder)[-2:] == ["v3.metadata.json", "version-hint.text"]


class NoExclusive(Storage):
    """A store that cannot create exclusively."""

    def _resolve(self, location: str) -> tuple[Files, Location]:
        return ArrowFiles(fs.LocalFileSystem()), super()._resolve(location)[1]


def test_stores_without_exclusive_create_are_refused(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    catalog._storage = NoExclusive()
    before = versions(folder)
    with pytest.raises(InvalidLocationError, match=r"does not support exclusive creation.*use a catalog of type sql"):
        catalog.create_table("n.u", SCHEMA)
    with pytest.raises(InvalidLocationError, match="does not support exclusive creation"):
        catalog.load_table("n.t").set_properties({"a": "b"})
    assert versions(folder) == before


class Broken(Storage):
    """A store whose exclusive creates fail, before or after they did their work."""

    def __init__(self, happens: bool, readable: bool = True) -> None:
        super().__init__()
        self.happens = happens
        self.readable = readable

    def create_exclusive(self, location: str, data: bytes) -> None:
        if self.happens:
            super().create_exclusive(location, data)
        raise StorageError(location, "the connection broke")

    def read(self, location: str) -> bytes:
        if not self.readable and location.endswith("/v3.metadata.json"):
            raise StorageError(location, "the connection broke")
        return super().read(location)


def test_a_create_that_seemed_to_fail_is_looked_at(catalog: HadoopCatalog, table: Table, folder: Path) -> None:
    catalog._storage = Broken(happens=True)
    stuck = catalog.load_table("n.t")
    stuck._committer.commit(stuck.state, Prepared((up.SetPropertiesUpdate({"a": "b"}),)), lambda: None)
    catalog._storage = Storage()
    assert catalog.load_table("n.t").properties["a"] == "b"


@pytest.mark.parametrize("happens", [True, False])
def test_a_create_that_nobody_saw_is_unknown(catalog: HadoopCatalog, table: Table, folder: Path, happens: bool) -> None:
    catalog._storage = Broken(happens=happens, readable=not happens)
    stuck = catalog.load_table("n.t")
    with pytest.raises(CommitStateUnknown, match=r"unknown whether .* was created: .*the connection broke"):
        stuck._committer.commit(stuck.state, Prepared((up.SetPropertiesUpdate({"a": "b"}),)), lambda: None)
    assert (folder / "v3.metadata.json").exists() is happens


def test_object_stores_hold_tables_too(s3_server: S3Server) -> None:
    storage = s3_server.storage()
    catalog = load_catalog(
        "files", type="hadoop", warehouse=f"s3://{s3_server.new_bucket()}/house", **dict(storage.properties)
    )
    catalog.create_namespace("n.deep")
    table = catalog.create_table("n.deep.t", SCHEMA, properties={"format-version": 3})
    stale = catalog.load_table("n.deep.t")
    append(table, 1)
    append(stale, 2)
    assert len(live_files(catalog.load_table("n.deep.t"))) == 2
    assert catalog.list_namespaces() == [("n",)]
    assert catalog.list_tables("n.deep") == [("n", "deep", "t")]
    catalog.purge_table("n.deep.t")
    assert catalog.list_tables("n.deep") == []
    catalog.drop_namespace("n.deep")
    assert not catalog.namespace_exists("n.deep")


def test_pyiceberg_reads_a_version(table: Table) -> None:
    from pyiceberg.table import StaticTable

    append(table, 2)
    peer = StaticTable.from_metadata(table.metadata_location or "")
    assert peer.scan().to_arrow().select(["id"]).sort_by("id") == pa.table({"id": [1, 2]})
