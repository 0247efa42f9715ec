"""Whoever can write to the files of an encrypted table gets errors that name the file, and never a wrong row."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings, strategies as st

import icefloe
from icefloe import manifests as mf
from icefloe.catalog import Catalog
from icefloe.encryption import decode_key_metadata, encode_key_metadata
from icefloe.errors import CorruptFileError, EncryptionError, IcefloeError
from icefloe.table import Table
from tests.encryption.keys import key_file
from tests.encryption.test_tables import VERSIONS, add_equality_deletes

KINDS = ("metadata", "list", "manifest", "data", "vector", "equality")
"""Every kind of file of an encrypted table: manifests are in Avro in v3 and in Parquet in v4 here; statistics files are in test_maintenance.py."""
IDS = list(range(40))
LEFT = [i for i in IDS if i % 7 and i not in (38, 39)]


@dataclass(frozen=True)
class Place:
    """A table, the catalog that it is loaded from anew each time, and its files by kind."""

    settings: dict[str, str]
    files: dict[str, list[str]]

    def load(self) -> Table:
        with icefloe.load_catalog("lake", type="sql", **self.settings) as catalog:
            return catalog.load_table("n.t")

    def read(self) -> list[int]:
        ids: list[int] = self.load().scan().to_arrow().sort_by("id")["id"].to_pylist()
        return ids


def make(folder: Path, version: int, form: str) -> Place:
    given = {
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": str(folder / "files"),
        "encryption.kms-type": "file",
        "encryption.kms-file": str(key_file(folder)),
    }
    with icefloe.load_catalog("lake", type="sql", **given) as catalog:
        catalog.create_namespace("n")
        properties = {
            "format-version": str(version),
            "encryption.key-id": "k1",
            "write.format.default": form,
            "write.delete.mode": "merge-on-read",
            **({"icefloe.v4.compat": "java-1.12", "icefloe.v4.manifest-format": "parquet"} if version > 3 else {}),
        }
        table = catalog.create_table("n.t", "id bigint, name string", properties=properties)
        half = len(IDS) // 2
        for part in (IDS[:half], IDS[half:]):
            table.append(pa.table({"id": pa.array(part, pa.int64()), "name": [f"n{i}" for i in part]}))
        table.delete("id in (" + ", ".join(str(i) for i in IDS if i % 7 == 0) + ")")
        add_equality_deletes(table, 38, 39)
        return Place(given, files_of(table))


def files_of(table: Table) -> dict[str, list[str]]:
    """The files that a scan of the table reads, by kind."""
    tasks = list(table.scan().plan_files())
    manifests = table.inspect.manifests()["path"].to_pylist()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert table.metadata_location is not None
    return {
        "metadata": [local(table.metadata_location)],
        "list": [local(table.metadata.resolve(str(snapshot.manifest_list)))],
        "manifest": [local(path) for path in manifests],
        "data": [local(task.file.file_path) for task in tasks],
        "vector": sorted({local(file.file_path) for task in tasks for file in task.deletes if not file.equality_ids}),
        "equality": sorted({local(file.file_path) for task in tasks for file in task.deletes if file.equality_ids}),
    }


def local(location: str) -> str:
    return location.removeprefix("file://")


@pytest.fixture(scope="module", params=list(zip(VERSIONS, ("parquet", "avro"), strict=True)))
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = make(tmp_path_factory.mktemp("tampered"), *request.param)
    assert made.read() == LEFT
    return made


def refused(place: Place, path: str, change: Callable[[bytes], bytes]) -> None:
    """Reading fails with an error that names the file, or its rows are the right ones."""
    before = Path(path).read_bytes()
    Path(path).write_bytes(change(before))
    try:
        with pytest.raises(IcefloeError) as caught:
            place.read()
        assert isinstance(caught.value, CorruptFileError), repr(caught.value)
        assert os.path.basename(path) in str(caught.value)
    finally:
        Path(path).write_bytes(before)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_flipped_byte(place: Place, kind: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(place.files[kind]))
    at = data.draw(st.integers(0, os.path.getsize(path) - 1))
    mask = data.draw(st.integers(1, 255))
    # Parts of Parquet, such as its page index and the magic at the start, are not needed to read all rows; what is read is right.
    before = Path(path).read_bytes()
    changed = bytearray(before)
    changed[at] ^= mask
    Path(path).write_bytes(changed)
    found, problem = None, ""
    try:
        found = place.read()
    except CorruptFileError as error:
        problem = str(error)
    finally:
        Path(path).write_bytes(before)
    is_parquet = before[:4] == b"PARE"
    assert os.path.basename(path) in problem or (is_parquet and found == LEFT)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_off_or_longer(place: Place, kind: str) -> None:
    for path in place.files[kind]:
        size = os.path.getsize(path)
        for keep in (0, 7, size // 2, size - 1):
            refused(place, path, lambda data, keep=keep: data[:keep])  # type: ignore[misc]  # of this round
        refused(place, path, lambda data: data + b"\x00")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_file_in_the_place_of_another(place: Place, kind: str) -> None:
    everything = [path for paths in place.files.values() for path in paths]
    for path in place.files[kind]:
        other = random.Random(path).choice([each for each in everything if each != path])
        refused(place, path, lambda _, other=other: Path(other).read_bytes())  # type: ignore[misc]  # of this round


def test_another_key_of_the_kms(place: Place, tmp_path: Path) -> None:
    settings = {**place.settings, "encryption.kms-file": str(key_file(tmp_path, {"k1": b"another key of 1"}))}
    with pytest.raises(EncryptionError, match="does not unwrap"):
        replace(place, settings=settings).read()


@pytest.fixture
def fresh(tmp_path: Path) -> Place:
    return make(tmp_path, 3, "parquet")


def test_an_old_metadata_file_is_noticed(fresh: Place) -> None:
    table = fresh.load()
    old = table.metadata.resolve(table.metadata.metadata_log[-1].metadata_file)
    refused(fresh, fresh.files["metadata"][0], lambda _: Path(local(old)).read_bytes())


def test_metadata_without_its_key_is_noticed(fresh: Place) -> None:
    refused(fresh, fresh.files["metadata"][0], lambda data: data.replace(b'"encryption.key-id":"k1",', b""))


def test_a_program_that_knows_no_encryption_cannot_change_the_table_unseen(fresh: Place, tmp_path: Path) -> None:
    table = fresh.load()
    old = table.metadata.resolve(table.metadata.metadata_log[-1].metadata_file)
    engine = sa.create_engine(fresh.settings["uri"])
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE iceberg_tables SET metadata_location = :old"), {"old": old})
    with pytest.raises(CorruptFileError, match="not the metadata file that was committed"):
        fresh.load()
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM icefloe_table_seals"))
    engine.dispose()
    with pytest.raises(EncryptionError, match="keeps no hash"):
        fresh.load()


def test_files_in_clear_do_not_get_into_the_table(fresh: Place) -> None:
    with icefloe.load_catalog("lake", type="sql", **fresh.settings) as catalog:
        plain = catalog.create_table("n.plain", "id bigint, name string", properties={"format-version": "3"})
        plain.append(pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}))
        [of_plain] = [task.file for task in plain.scan().plan_files()]
        table = catalog.load_table("n.t")
        with pytest.raises(EncryptionError, match="is not encrypted, but the table is"), table.transaction() as tx:
            tx.update_snapshot().fast_append([of_plain])
        of_table = next(iter(table.scan().plan_files())).file
        with pytest.raises(EncryptionError, match="its key would be stored in plain text"), plain.transaction() as tx:
            tx.update_snapshot().fast_append([replace(of_table, first_row_id=None)])
        assert fresh.read() == LEFT


def test_a_key_of_another_file_does_not_open_one(fresh: Place) -> None:
    table = fresh.load()
    one, two = (task.file for task in table.scan().plan_files())
    assert one.key_metadata is not None
    assert two.key_metadata is not None
    wrong = decode_key_metadata(two.key_metadata, "").of_length(one.file_size_in_bytes)
    with pytest.raises(CorruptFileError, match=os.path.basename(one.file_path)):
        _rows(replace(one, key_metadata=encode_key_metadata(wrong)), table)
    assert _rows(one, table)


def _rows(file: mf.DataFile, table: Table) -> int:
    from icefloe.formats.file_formats import reader_of

    with mf.open_file(file, table.storage) as source:
        return sum(batch.num_rows for batch in reader_of("parquet")(source, file.file_path, table.schema()).batches())


def test_keys_are_in_no_text(fresh: Place, caplog: pytest.LogCaptureFixture) -> None:
    table = fresh.load()
    task = next(iter(table.scan().plan_files()))
    assert task.file.key_metadata is not None
    key = decode_key_metadata(task.file.key_metadata, "")
    texts = [repr(each) for each in (task, task.file, table, table.storage, table.metadata, table.scan())]
    texts += [str(table.inspect.files().to_pylist()), str(table.inspect.manifests().to_pylist()), caplog.text]
    for text in texts:
        for form in (repr(key.key)[2:-1], key.key.hex(), repr(task.file.key_metadata)[2:-1]):
            assert form not in text


def test_catalogs_that_vouch_for_nothing_refuse(tmp_path: Path) -> None:
    keys = {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(tmp_path))}
    with icefloe.load_catalog("files", type="hadoop", warehouse=str(tmp_path / "files"), **keys) as catalog:
        _check_refused(catalog)


def _check_refused(catalog: Catalog) -> None:
    catalog.create_namespace("n")
    with pytest.raises(EncryptionError, match="type hadoop"):
        catalog.create_table("n.t", "id bigint", properties={"format-version": "3", "encryption.key-id": "k1"})
    table = catalog.create_table("n.t", "id bigint", properties={"format-version": "3"})
    with pytest.raises(EncryptionError, match="type hadoop"):
        table.set_properties({"encryption.key-id": "k1"})
