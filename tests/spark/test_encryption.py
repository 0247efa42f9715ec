"""Encrypted tables on Spark: read by its own reader or by ours, written by ours; executors get keys of files and never those of the KMS."""

import io
import pickle
import shutil
import subprocess
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe
from icefloe import manifests as mf
from icefloe.encryption import decode_key_metadata
from icefloe.errors import StateError
from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.encryption.keys import MASTER_KEYS, key_file
from tests.encryption.test_tables import DDL, SECRET, add_equality_deletes, check_sealed, rows
from tests.spark.conftest import missing_java
from tests.spark.processes import bare_environment
from tests.spark.sessions import settings

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-that-nobody-may-see"


@pytest.fixture
def ice(spark: SparkSession, tmp_path: Path) -> Iterator[Session]:
    keys = {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(tmp_path)), "vault.token": TOKEN}
    database = f"sqlite:///{tmp_path}/catalog.db"
    with icefloe.load_catalog("lake", type="sql", uri=database, warehouse=str(tmp_path / "files"), **keys) as catalog:
        yield connect(catalog, spark=spark)


def ids(ice: Session, name: str = "n.t") -> list[int]:
    found = ice.sql(f"SELECT id, name FROM {name} ORDER BY id").collect()
    assert all(row.name == f"{SECRET} {row.id}" for row in found)
    return [row.id for row in found]


def test_statements(ice: Session) -> None:
    ice.sql("CREATE NAMESPACE n")
    properties = "'format-version'='3', 'encryption.key-id'='k1', 'write.delete.mode'='merge-on-read'"
    ice.sql(f"CREATE TABLE n.t (id BIGINT, name STRING) PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ({properties})")
    ice.sql(f"INSERT INTO n.t SELECT id, concat('{SECRET} ', id) FROM range(0, 20)")
    ice.sql("DELETE FROM n.t WHERE id IN (1, 2)")
    ice.sql(f"UPDATE n.t SET name = concat('{SECRET} ', id) WHERE id = 5")
    ice.sql(
        f"MERGE INTO n.t t USING (SELECT id, concat('{SECRET} ', id) AS name FROM range(18, 22)) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [0, *range(3, 18), 20, 21]
    assert ids(ice) == expected
    table = ice.catalog.load_table("n.t")
    check_sealed(table, 8)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    assert table.verify(level="data").clean
    assert [row.id for row in ice.table("n.t").filter("id > 15").select("id").orderBy("id").collect()] == [
        16,
        17,
        20,
        21,
    ]
    check_no_keys(ice, table)


def check_no_keys(ice: Session, table: Table) -> None:
    """Neither plans nor settings show a key, and what goes to executors leads to no KMS."""
    sent = pickle.dumps(table.storage)
    assert TOKEN.encode() not in sent
    assert pickle.loads(sent).keyring is None
    frame = ice.table("n.t")
    settings = str(ice.spark.sparkContext.getConf().getAll()) + str(sorted(ice.spark.conf.getAll.items()))
    plan = frame._jdf.queryExecution().toString()
    for task in table.scan().plan_files():
        assert task.file.key_metadata is not None
        key = task.file.key_metadata[2:18]
        for text in (settings, plan):
            assert key.hex() not in text.lower()
            assert TOKEN not in text


@pytest.fixture
def files(ice: Session) -> Table:
    """A table of two files, with rows deleted by position and by key."""
    ice.catalog.create_namespace("n")
    modes = {"write.delete.mode": "merge-on-read", "encryption.data-key-length": "32"}
    table = ice.catalog.create_table("n.t", DDL, properties={"format-version": "3", "encryption.key-id": "k1", **modes})
    for start in (0, 10):
        table.append(rows(*range(start, start + 10)))
    table.delete("id in (1, 12)")
    add_equality_deletes(table, 2, 13)
    return ice.catalog.load_table("n.t")


def test_sparks_own_reader(ice: Session, files: Table) -> None:
    left = sorted({*range(20)} - {1, 2, 12, 13})
    frame = ice.table("n.t", options={"read.engine": "native"})
    assert "FileScan parquet" in frame._jdf.queryExecution().toString()
    assert ids(ice) == left
    # Keys come with files, not with rows, whichever way these are read.
    with settings(ice.spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        assert ids(ice) == left
    with settings(ice.spark, {door.ENABLED: "false"}):
        assert ids(ice) == left
        with pytest.raises(StateError, match="Java classes of ours"):
            ice.table("n.t", options={"read.engine": "native"})


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_sparks_own_reader_refuses_what_was_changed(ice: Session, files: Table) -> None:
    paths = [Path(task.file.file_path.removeprefix("file://")) for task in files.scan().plan_files()]
    first, second = (path.read_bytes() for path in paths)
    plain = io.BytesIO()
    pq.write_table(files.scan().to_arrow(), plain)
    cut, longer = first[:-1], first + b"more"
    for changed in (flipped(first, 40), flipped(first, len(first) - 20), cut, longer, second, plain.getvalue()):
        paths[0].write_bytes(changed)
        with pytest.raises((Py4JJavaError, PySparkException), match=paths[0].name):
            ice.table("n.t", options={"read.engine": "native"}).collect()


def test_maintenance_and_streams(ice: Session, tmp_path: Path) -> None:
    ice.sql("CREATE NAMESPACE n")
    ice.sql("CREATE TABLE n.t (id BIGINT, name STRING) TBLPROPERTIES ('format-version'='3', 'encryption.key-id'='k1')")
    for start in (0, 5):
        ice.sql(f"INSERT INTO n.t SELECT id, concat('{SECRET} ', id) FROM range({start}, {start + 5})")
    ice.sql("CALL lake.system.rewrite_data_files(table => 'n.t', options => map('rewrite-all', 'true'))").collect()
    assert ids(ice) == list(range(10))
    check_sealed(ice.catalog.load_table("n.t"))
    ice.sql(
        "CREATE TABLE n.copy (id BIGINT, name STRING) TBLPROPERTIES ('format-version'='4', 'encryption.key-id'='k2')"
    )
    write = ice.write_stream(ice.read_stream("n.t")).to("n.copy").trigger(availableNow=True)
    write.start(str(tmp_path / "checkpoint")).awaitTermination()
    assert ids(ice, "n.copy") == list(range(10))
    check_sealed(ice.catalog.load_table("n.copy"))
    source = str(ice.catalog.load_table("n.t").location())
    [done] = ice.sql(f"CALL lake.system.rewrite_table_path('n.t', '{source}', 'file://{tmp_path}/moved')").collect()
    for line in ice.spark.read.csv(done.file_list_location).collect():
        target = Path(line[1].removeprefix("file://"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(line[0].removeprefix("file://"), target)
    ice.sql(f"CALL lake.system.register_table('n.moved', 'file://{tmp_path}/moved/metadata/{done.latest_version}')")
    assert ids(ice, "n.moved") == list(range(10))
    check_sealed(ice.catalog.load_table("n.moved"))
    for file in (tmp_path / "checkpoint").rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


def spelled(key: bytes) -> set[bytes]:
    """All ways in which a program may write bytes down, alone or among others."""
    signed = [byte - 256 if byte > 127 else byte for byte in key]
    texts = {key.hex(), key.hex().upper(), repr(key)[2:-1], *(str(form)[1:-1] for form in (signed, list(key)))}
    texts |= {text.replace(" ", "") for text in texts}
    # In Base64 of something longer a key begins at one of three places of a group; what is around it decides the rims.
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            texts.add(encode(b"?" * before + key)[4 if before else 0 : (before + len(key)) // 3 * 4].decode())
    escaped = {text.replace("\\", "\\\\") for text in texts}
    return {key, *(text.encode() for text in texts | escaped)}


def all_keys(table: Table) -> set[bytes]:
    """The keys of every file that a snapshot names, and those that lead to them."""
    keys, keyring = set(MASTER_KEYS.values()), table.storage.keyring
    assert keyring is not None
    manifests = mf.SnapshotManifests(table.metadata, table.storage.read, keyring=keyring)
    for snapshot in table.snapshots():
        keys.add(keyring.list_key(table.metadata, snapshot).key)
        for manifest in manifests.of(snapshot):
            keys.add(decode_key_metadata(manifest.key_metadata or b"", manifest.manifest_path).key)
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
            for file in (task.file, *task.deletes):
                keys.add(decode_key_metadata(file.key_metadata or b"", file.file_path).key)
    return keys | {key for _, key in keyring._unwrapped.values()}


@pytest.mark.parametrize("alone", [True, False])
def test_keys_that_are_written_down_are_seen(alone: bool) -> None:
    key = bytes(range(120, 136))
    around = (b"", b"") if alone else (b"a", b"bcd")
    for length in range(3):
        text = (b"" if alone else b"x" * length) + key + around[1]
        for spelling in (b64encode(text), text.hex().encode(), repr(text).encode(), str(list(text)).encode(), text):
            assert any(form in spelling for form in spelled(key)), spelling


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_what_spark_writes_down_shows_no_key(tmp_path: Path) -> None:
    """Event log, page, logs, plans and errors of reads, writes and MERGE."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    key_file(tmp_path)
    keys = {"encryption.kms-type": "file", "encryption.kms-file": str(tmp_path / "keys.json")}
    database = f"sqlite:///{tmp_path}/catalog.db"
    with icefloe.load_catalog("lake", type="sql", uri=database, warehouse=str(tmp_path / "files"), **keys) as catalog:
        catalog.create_namespace("n")
        for name, version, key in (("n.three", "3", "k1"), ("n.four", "4", "k2")):
            modes = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
            properties = {"format-version": version, "encryption.key-id": key, **modes}
            catalog.create_table(name, "id bigint, name string", properties=properties)
        with (tmp_path / "log").open("wb") as log:
            done = subprocess.run(
                [sys.executable, "-m", "tests.spark.use_encrypted", str(tmp_path)],
                env=bare_environment(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT)),
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=250,
                check=False,
            )
        assert done.returncode == 0, (tmp_path / "log").read_text(errors="replace")[-3000:]
        secrets = set().union(*(all_keys(catalog.load_table(name)) for name in ("n.three", "n.four")))
    assert len(secrets) > 20
    events = [file for file in (tmp_path / "events").rglob("*") if file.is_file()]
    texts = {file.name: file.read_bytes() for file in (*events, *tmp_path.glob("answer-*"), tmp_path / "log")}
    assert any(b"SparkListenerTaskEnd" in text for text in texts.values())
    assert b"spark.eventLog.dir" in texts["answer-0"]
    for name, text in texts.items():
        for secret in secrets:
            assert not any(form in text for form in spelled(secret)), f"a key is in {name}"
