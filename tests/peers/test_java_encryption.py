"""Encrypted tables both ways: Java Iceberg encrypts in its Hive catalog alone, here on a Derby of its own, with our key service."""

import shutil
import subprocess
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.catalog import Catalog
from icefloe.table import Table
from tests.encryption.keys import MASTER_KEYS, key_file
from tests.peers.java import Installation, JavaPeer, find_java_peer

pytestmark = pytest.mark.java

SOURCE = Path(__file__).parent / "java_kms" / "LocalKms.java"
MERGE = (
    "'write.delete.mode'='merge-on-read'",
    "'write.update.mode'='merge-on-read'",
    "'write.merge.mode'='merge-on-read'",
)


def compiled(installation: Installation, folder: Path) -> Path:
    """The key service for Java, as a jar."""
    classes, jar = folder / "classes", folder / "kms.jar"
    path = ":".join(map(str, installation.jars))
    command = ["javac", "-nowarn", "-proc:none", "-cp", path, "-d", str(classes), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    return jar


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sealed")


@pytest.fixture(scope="module")
def java(folder: Path) -> Iterator[JavaPeer]:
    found = find_java_peer()
    if isinstance(found, str):
        pytest.skip(found)
    if shutil.which("javac") is None:
        pytest.skip("no javac is on the path, which compiles the key service for Java")
    jar = compiled(found, folder)
    keys = ",".join(f"{key_id}={b64encode(key).decode()}" for key_id, key in MASTER_KEYS.items())
    catalog = "spark.sql.catalog.sealed"
    settings = {
        "spark.jars": ",".join(map(str, (*found.jars, jar))),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hive",
        f"{catalog}.warehouse": f"file://{folder}/warehouse",
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.encryption.kms-impl": "icefloe.tests.LocalKms",
        f"{catalog}.tests.keys": keys,
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.datanucleus.connectionPoolingType": "none",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder}/derby.log",
    }
    with JavaPeer(found, folder, settings) as peer:
        peer.sql("CREATE NAMESPACE sealed.db")
        yield peer


@pytest.fixture(scope="module")
def ours(folder: Path) -> Iterator[Catalog]:
    keys = {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(folder))}
    database = f"sqlite:///{folder}/ours.db"
    with icefloe.load_catalog("ours", type="sql", uri=database, warehouse=str(folder / "ours"), **keys) as catalog:
        catalog.create_namespace("db")
        yield catalog


def metadata_of(java: JavaPeer, table: str) -> str:
    """Where Java has the table's metadata."""
    log = java.sql(f"SELECT file FROM sealed.db.{table}.metadata_log_entries ORDER BY timestamp DESC, file DESC")
    return str(log["file"][0])


def theirs(java: JavaPeer, table: str) -> list[tuple[int, str]]:
    found = java.sql(f"SELECT id, name FROM sealed.db.{table} ORDER BY id")
    return list(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def our_rows(table: Table) -> list[tuple[int, str]]:
    found = table.scan().to_arrow().sort_by("id")
    return list(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def some(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


@pytest.mark.parametrize(
    ("form", "length"),
    [
        ("parquet", 16),
        ("avro", 32),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("parquet", 32), ("avro", 16))),
    ],
)
def test_both_ways_in_turn(java: JavaPeer, ours: Catalog, form: str, length: int) -> None:
    name = f"t_{form}_{length}"
    properties = (
        "'format-version'='3'",
        "'encryption.key-id'='k1'",
        f"'encryption.data-key-length'='{length}'",
        f"'write.format.default'='{form}'",
        *MERGE,
    )
    java.sql(
        f"CREATE TABLE sealed.db.{name} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ({', '.join(properties)})"
    )
    java.sql(f"INSERT INTO sealed.db.{name} SELECT id, concat('n', id) FROM range(0, 20)")
    java.sql(f"DELETE FROM sealed.db.{name} WHERE id IN (3, 4)")
    table = ours.register_table(f"db.{name}", metadata_of(java, name))
    expected = [(i, f"n{i}") for i in range(20) if i not in (3, 4)]
    assert our_rows(table) == expected == theirs(java, name)
    report = table.verify(level="data")
    assert report.ok, str(report)
    table.append(some(100, 101))
    table.delete("id in (0, 100)")
    expected = [pair for pair in [*expected, (101, "n101")] if pair[0] != 0]
    assert our_rows(table) == expected
    again = f"{name}_again"
    java.sql(f"CALL sealed.system.register_table('db.{again}', '{table.metadata_location}')")
    assert theirs(java, again) == expected
    java.sql(f"INSERT INTO sealed.db.{again} VALUES (200, 'n200')")
    java.sql(f"DELETE FROM sealed.db.{again} WHERE id = 101")
    expected = [*[pair for pair in expected if pair[0] != 101], (200, "n200")]
    assert theirs(java, again) == expected
    assert our_rows(ours.register_table(f"db.{again}", metadata_of(java, again))) == expected


@pytest.mark.parametrize(("form", "length"), [("parquet", 16), ("avro", 24), ("parquet", 32)])
def test_java_reads_what_we_create(java: JavaPeer, ours: Catalog, form: str, length: int) -> None:
    name = f"o_{form}_{length}"
    table = ours.create_table(
        f"db.{name}",
        "id bigint, name string",
        properties={
            "format-version": "3",
            "encryption.key-id": "k2",
            "encryption.data-key-length": str(length),
            "write.format.default": form,
            "write.delete.mode": "merge-on-read",
        },
    )
    table.append(some(*range(10)))
    table.delete("id = 5")
    table.append(some(20))
    java.sql(f"CALL sealed.system.register_table('db.{name}', '{table.metadata_location}')")
    assert theirs(java, name) == our_rows(table) == [(i, f"n{i}") for i in (*range(5), *range(6, 10), 20)]
    java.sql(f"INSERT INTO sealed.db.{name} VALUES (30, 'n30')")
    after = ours.register_table(f"db.{name}_after", metadata_of(java, name))
    assert our_rows(after) == theirs(java, name) == [*our_rows(table), (30, "n30")]


@pytest.mark.parametrize(("form", "length"), [("parquet", 16), ("avro", 32)])
def test_v4_tables_of_java(java: JavaPeer, ours: Catalog, form: str, length: int) -> None:
    name = f"v4_{form}"
    properties = (
        "'format-version'='4'",
        "'encryption.key-id'='k1'",
        f"'encryption.data-key-length'='{length}'",
        f"'write.format.default'='{form}'",
        *MERGE,
    )
    java.sql(
        f"CREATE TABLE sealed.db.{name} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ({', '.join(properties)})"
    )
    java.sql(f"INSERT INTO sealed.db.{name} SELECT id, concat('n', id) FROM range(0, 9)")
    java.sql(f"DELETE FROM sealed.db.{name} WHERE id = 3")
    table = ours.register_table(f"db.{name}", metadata_of(java, name))
    expected = [(i, f"n{i}") for i in range(9) if i != 3]
    assert our_rows(table) == expected == theirs(java, name)
    table.append(some(50))
    table.delete("id = 50")
    assert our_rows(table) == expected


@pytest.mark.parametrize("manifests", ["avro", "parquet"])
def test_java_reads_v4_tables_in_the_form_that_it_knows(java: JavaPeer, ours: Catalog, manifests: str) -> None:
    name = f"compat_{manifests}"
    table = ours.create_table(
        f"db.{name}",
        "id bigint, name string",
        properties={
            "format-version": "4",
            "encryption.key-id": "k2",
            "icefloe.v4.compat": "java-1.12",
            "icefloe.v4.manifest-format": manifests,
            "write.delete.mode": "merge-on-read",
        },
    )
    table.append(some(*range(6)))
    table.delete("id = 2")
    java.sql(f"CALL sealed.system.register_table('db.{name}', '{table.metadata_location}')")
    assert theirs(java, name) == our_rows(table) == [(i, f"n{i}") for i in (0, 1, 3, 4, 5)]
    java.sql(f"INSERT INTO sealed.db.{name} VALUES (30, 'n30')")
    after = ours.register_table(f"db.{name}_after", metadata_of(java, name))
    assert our_rows(after) == theirs(java, name)
