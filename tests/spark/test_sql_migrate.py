"""`CALL ... snapshot` and `migrate` with tables of Spark's own catalog."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import ValidationError
from icefloe.spark.session import Session
from icefloe.verification import silent
from tests.shared_rows import sorted_rows, sql_rows


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("moving")
    catalog = load_catalog("moving", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))
    spark.sql("CREATE DATABASE IF NOT EXISTS spark_catalog.old")
    catalog.create_namespace("old")
    yield Session(spark, {"moving": catalog})
    spark.sql("USE spark_catalog.default")
    spark.sql("DROP DATABASE IF EXISTS spark_catalog.old CASCADE")


def make(spark: Any, name: str, file_format: str, where: Path | None, tail: str = "") -> None:
    """A table of Spark's with three rows, external if it has a place of its own."""
    place = "" if where is None else f"LOCATION '{where}'"
    spark.sql(f"DROP TABLE IF EXISTS spark_catalog.old.{name}")
    spark.sql(
        f"CREATE TABLE spark_catalog.old.{name} (id bigint, s struct<a: int>, p int) USING {file_format} {tail} {place}"
        " TBLPROPERTIES ('team' = 'me')"
    )
    rows = "(1, named_struct('a', 1), 1), (2, null, 2), (3, named_struct('a', 3), null)"
    spark.sql(f"INSERT INTO spark_catalog.old.{name} VALUES {rows}")


def test_a_snapshot(ice: Session, spark: Any, tmp_path: Path) -> None:
    for file_format, tail, files in (("parquet", "PARTITIONED BY (p)", 3), ("orc", "", None)):
        make(spark, "t", file_format, None, tail)
        name = f"moving.old.{file_format}"
        ((count,),) = sql_rows(
            spark,
            f"CALL moving.system.snapshot('spark_catalog.old.t', '{name}', properties => map('format-version', '3'))",
        )
        assert count == files or files is None
        expected = sorted_rows(spark, "SELECT * FROM spark_catalog.old.t")
        assert sorted_rows(spark, f"SELECT * FROM {name}") == expected
        table = ice.load_table(f"old.{file_format}")
        assert (table.properties["gc.enabled"], table.properties["snapshot"]) == ("false", "true")
        assert (table.properties["team"], table.format_version) == ("me", 3)
        assert table.verify(level="data", progress=silent).ok
        ice.sql(f"DELETE FROM {name} WHERE id = 1")
        assert sorted_rows(spark, "SELECT * FROM spark_catalog.old.t") == expected


def test_a_migration(ice: Session, spark: Any, tmp_path: Path) -> None:
    call = "CALL moving.system.migrate('spark_catalog.old.m', drop_backup => {})"
    make(spark, "m", "parquet", None)
    with pytest.raises(ValidationError, match="managed by Spark"):
        spark.sql(call.format("true"))
    make(spark, "m", "parquet", tmp_path / "m", "PARTITIONED BY (p)")
    expected = sorted_rows(spark, "SELECT * FROM spark_catalog.old.m")
    assert sql_rows(spark, call.format("false")) == [(3,)]
    assert sorted_rows(spark, "SELECT * FROM moving.old.m") == expected
    assert sorted_rows(spark, "SELECT * FROM spark_catalog.old.m_BACKUP_") == expected
    assert not spark.catalog.tableExists("spark_catalog.old.m")
    table = ice.load_table("old.m")
    assert str(table.location()) == f"file://{tmp_path}/m"
    assert table.properties["migrated"] == "true"
    ice.sql("INSERT INTO moving.old.m VALUES (4, null, 1)")
    assert table.refresh().verify(level="data", progress=silent).ok
    make(spark, "n", "orc", tmp_path / "n")
    assert sql_rows(spark, call.format("true").replace(".m'", ".n'"))[0][0] >= 1
    assert sorted_rows(spark, "SELECT * FROM moving.old.n") == expected
    assert not spark.catalog.tableExists("spark_catalog.old.n_BACKUP_")


def make_of_avro(spark: Any, name: str, where: Path) -> list[tuple[int, str | None]]:
    """A table of Avro files, as a session with Spark's package for Avro makes it, which is not one of PySpark: Spark knows
    the table, and cannot read it here. Which rows it has."""
    fields = [{"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]}]
    rows: dict[int, list[tuple[int, str | None]]] = {1: [(1, "a"), (2, None)], 2: [(3, "c")]}
    for part, values in rows.items():
        folder = where / f"p={part}"
        folder.mkdir(parents=True)
        with (folder / "part-0.avro").open("wb") as sink:
            records = [{"id": number, "name": text} for number, text in values]
            fastavro.writer(sink, {"type": "record", "name": "topLevelRecord", "fields": fields}, records)
    table = f"spark_catalog.old.{name}"
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(
        f"CREATE TABLE {table} (id bigint, name string, p int) USING parquet PARTITIONED BY (p) LOCATION '{where}'"
    )
    for part in rows:
        spark.sql(f"ALTER TABLE {table} ADD PARTITION (p = {part}) LOCATION '{where}/p={part}'")
    jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog()
    known = catalog.getTableMetadata(
        jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Option.apply("old"))
    )
    parts = [known.productElement(index) for index in range(known.productArity())]
    [provider] = [index for index in range(len(parts)) if known.productElementName(index) == "provider"]
    parts[provider] = jvm.scala.Option.apply("avro")
    catalog.alterTable(known.copy(*parts))
    return sorted(row for values in rows.values() for row in values)


def test_tables_of_avro_that_spark_cannot_read_itself(ice: Session, spark: Any, tmp_path: Path) -> None:
    rows = make_of_avro(spark, "kept", tmp_path / "kept")
    with pytest.raises(AnalysisException, match=r"(?i)avro"):
        spark.sql("SELECT * FROM spark_catalog.old.kept").collect()
    assert sql_rows(spark, "CALL moving.system.snapshot('spark_catalog.old.kept', 'moving.old.kept')") == [(2,)]
    assert sorted_rows(spark, "SELECT id, name FROM moving.old.kept") == rows
    make_of_avro(spark, "gone", tmp_path / "gone")
    assert sql_rows(spark, "CALL moving.system.migrate('spark_catalog.old.gone')") == [(2,)]
    assert sorted_rows(spark, "SELECT id, name FROM moving.old.gone WHERE p IN (1, 2)") == rows
    ice.sql("INSERT INTO moving.old.gone VALUES (9, 'new', 2)")
    for name in ("kept", "gone"):
        assert ice.load_table(f"old.{name}").verify(level="data", progress=silent).ok


def test_a_copy_by_tasks_of_spark(ice: Session, spark: Any, tmp_path: Path) -> None:
    modes = "TBLPROPERTIES ('format-version' '2', 'write.delete.mode' 'merge-on-read')"
    ice.sql(f"CREATE TABLE moving.old.c USING iceberg {modes} AS SELECT id, id % 2 AS p FROM range(6)")
    ice.sql("DELETE FROM moving.old.c WHERE id = 3")
    table = ice.load_table("old.c")
    source, target = str(table.location()), (tmp_path / "copy").as_uri()
    ((latest, list_location, manifests, deletes),) = sql_rows(
        spark, f"CALL moving.system.rewrite_table_path('moving.old.c', '{source}', '{target}')"
    )
    assert (latest, manifests, deletes) == (str(table.metadata_location).rpartition("/")[2], 2, 1)
    for line in table.storage.read(list_location).decode().splitlines():
        here, there = line.split(",")
        table.storage.write(there, table.storage.read(here))
    ice.sql(f"CALL moving.system.register_table('moving.old.d', '{target}/metadata/{latest}')")
    copy = ice.load_table("old.d")
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 5]
    assert copy.verify(level="data", progress=silent).ok
