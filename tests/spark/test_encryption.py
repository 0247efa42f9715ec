"""Encrypted tables on Spark: read and written by our engine on the executors, which get keys of files and never those of the KMS."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefloe
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.encryption.keys import key_file
from tests.encryption.test_tables import SECRET, check_sealed

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
    for file in (tmp_path / "checkpoint").rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()
