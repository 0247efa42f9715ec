"""Encrypted tables: what is written comes back by every way of reading, and nothing of it is in clear in any file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe import manifests as mf
from icefloe.catalog import Catalog
from icefloe.data import NewFile, data_file_of
from icefloe.errors import CorruptFileError, EncryptionError, IncompatibleChangeError, InvalidPropertyError
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.encryption.keys import key_file

VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.ENCRYPTION_KEYS)]
SECRET = "the quick brown fox"
DDL = "id bigint, name string, region string"


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"{SECRET} {i}" for i in ids],
            "region": ["eu" if i % 2 else "us" for i in ids],
        }
    )


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Catalog]:
    settings = {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(folder))}
    if kind == "sql":
        settings["uri"] = f"sqlite:///{folder}/catalog.db"
    with icefloe.load_catalog("lake", type=kind, warehouse=str(folder / "files"), **settings) as catalog:
        catalog.create_namespace("n")
        yield catalog


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Catalog]:
    with opened("sql", tmp_path) as catalog:
        yield catalog


@pytest.fixture(params=["sql", "memory"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """Each catalog that keeps seals itself."""
    with opened(request.param, tmp_path) as catalog:
        yield catalog


def created(catalog: Catalog, version: int, name: str = "n.t", **properties: str) -> Table:
    spelled = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    return catalog.create_table(
        name,
        DDL,
        properties={"format-version": str(version), "encryption.key-id": "k1", **spelled},
        partition_spec=["region"],
    )


def found(table: Table) -> list[int]:
    read = table.scan().to_arrow().sort_by("id")
    assert read["name"].to_pylist() == [f"{SECRET} {i}" for i in read["id"].to_pylist()]
    ids: list[int] = read["id"].to_pylist()
    return ids


def check_sealed(table: Table, least: int = 1) -> None:
    """Every file but metadata is encrypted, and none of them shows a value."""
    files = [info for info in table.storage.list_prefix(str(table.location())) if not info.location.endswith(".json")]
    assert len(files) >= least
    for info in files:
        data = table.storage.read(info.location)
        assert data[:4] in (b"AGS1", b"PARE"), info.location
        assert SECRET.encode() not in data


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("form", "length"), [("parquet", 16), ("avro", 24), ("parquet", 32), ("avro", 16)])
def test_all_changes_of_rows(lake: Catalog, version: int, form: str, length: int) -> None:
    mode = {"write__delete__mode": "merge-on-read", "write__update__mode": "merge-on-read"}
    table = created(lake, version, write__format__default=form, encryption__data_key_length=str(length), **mode)
    table.append(rows(*range(10)))
    assert found(table) == list(range(10))
    table.delete("id in (1, 2)")
    assert found(table) == [0, *range(3, 10)]
    table.delete("id = 4")
    table.upsert(rows(3, 11), join_cols=["id"])
    table.overwrite(rows(20, 21), "region = 'us'")
    again = lake.load_table("n.t")
    assert found(again) == [3, 5, 7, 9, 11, 20, 21]
    assert again.scan("id > 6 and id < 12").to_arrow().num_rows == 3
    check_sealed(again, 10)
    report = again.verify(level="data")
    assert report.clean, str(report)
    snapshot = again.current_snapshot()
    assert snapshot is not None
    keys = {key.key_id: key for key in again.metadata.encryption_keys}
    assert len(keys) == 1 + len(again.metadata.snapshots), "one key-encryption key, and one for each list"
    assert keys[str(snapshot.key_id)].encrypted_by_id in keys


@pytest.mark.parametrize("version", VERSIONS)
def test_copies_on_write(lake: Catalog, version: int) -> None:
    table = created(lake, version)
    table.append(rows(*range(6)))
    table.delete("id = 1")
    assert found(table) == [0, 2, 3, 4, 5]
    check_sealed(table)


def test_keys_of_tables_stay(either: Catalog) -> None:
    lake = either
    table = created(lake, 3)
    for change in ({"encryption.key-id": "k2"}, {"encryption.data-key-length": "32"}):
        with pytest.raises(IncompatibleChangeError, match="is permanent"):
            table.set_properties(change)
    with pytest.raises(IncompatibleChangeError, match="cannot be removed"):
        table.remove_properties("encryption.key-id")
    with pytest.raises(InvalidPropertyError, match="orc"):
        table.set_properties({"write.format.default": "orc"})
    plain = lake.create_table("n.plain", DDL, properties={"format-version": "3"})
    plain.append(rows(1))
    with pytest.raises(IncompatibleChangeError, match="when a table is created"):
        plain.set_properties({"encryption.key-id": "k1"})
    with pytest.raises(InvalidPropertyError, match="16, 24 or 32"):
        created(lake, 3, "n.other", encryption__data_key_length="17")


def test_without_a_kms_nothing_is_created_read_or_written(lake: Catalog, tmp_path: Path) -> None:
    table = created(lake, 3)
    table.append(rows(1))
    with icefloe.load_catalog(
        "lake", type="sql", uri=lake.properties["uri"], warehouse=str(tmp_path / "files")
    ) as keyless:
        with pytest.raises(EncryptionError, match="no KMS"):
            created(keyless, 3, "n.other")
        other = keyless.load_table("n.t")
        with pytest.raises(EncryptionError, match="is encrypted, but the catalog has no KMS"):
            other.scan().to_arrow()
        with pytest.raises(EncryptionError, match="no KMS"):
            other.append(rows(2))


def add_equality_deletes(table: Table, *ids: int) -> None:
    """Delete rows by their ids with a new equality delete file, in the format of the table's data files."""
    form = table.properties.get("write.format.default", "parquet")
    location = f"{table.location()}/data/keys.{form}"
    with table.storage.open_output(location) as output:
        new = NewFile(output, form, table.metadata)
        writer = equality_delete_writer(new.sink, table.schema(), [1], table.metadata.format_version, form)
        writer.write(pa.table({"id": pa.array(ids, pa.int64())}))
        done, key_metadata = new.finish(writer.close())
    deletes = data_file_of(
        done,
        location,
        form,
        content=mf.FileContent.EQUALITY_DELETES,
        equality_ids=(1,),
        key_metadata=key_metadata,
    )
    table.update_snapshot().row_delta(None, deletes=[deletes])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_equality_deletes(lake: Catalog, version: int, form: str) -> None:
    table = lake.create_table(
        "n.t", DDL, properties={"format-version": str(version), "encryption.key-id": "k1", "write.format.default": form}
    )
    table.append(rows(*range(6)))
    add_equality_deletes(table, 2, 3)
    assert found(table) == [0, 1, 4, 5]
    table.maintenance.convert_equality_deletes()
    assert found(lake.load_table("n.t")) == [0, 1, 4, 5]
    check_sealed(table)


def test_parquet_manifests(lake: Catalog) -> None:
    table = lake.create_table(
        "n.t",
        DDL,
        properties={
            "format-version": "4",
            "encryption.key-id": "k1",
            "encryption.data-key-length": "32",
            "icefloe.v4.compat": "java-1.12",
            "icefloe.v4.manifest-format": "parquet",
            "write.delete.mode": "merge-on-read",
        },
    )
    table.append(rows(*range(6)))
    table.delete("id = 2")
    again = lake.load_table("n.t")
    assert found(again) == [0, 1, 3, 4, 5]
    check_sealed(again)
    manifests = [Path(path.removeprefix("file://")) for path in again.inspect.manifests()["path"].to_pylist()]
    for path in manifests:
        data = path.read_bytes()
        assert data[:4] == b"PARE"
        for changed in (data[:-1], data + b"\x00", data[:100] + bytes([data[100] ^ 1]) + data[101:]):
            path.write_bytes(changed)
            with pytest.raises(CorruptFileError, match=path.name):
                lake.load_table("n.t").scan().to_arrow()
        path.write_bytes(data)
    assert again.verify(level="data").ok
