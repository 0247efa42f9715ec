"""Scripts written for Iceberg's jar: with one added line, Spark's own calls find tables of our catalogs, until it is undone."""

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 - its usual name
)
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

import icefloe
from icefloe import load_catalog
from icefloe.errors import (
    IcefloeError,
    InvalidInputError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icefloe.spark.session import Session
from tests.spark.conftest import missing_java
from tests.spark.processes import bare_environment


def calls_of_frames() -> list[Any]:
    return [ClassicFrame.__dict__[name] for name in ("write", "writeTo", "mergeInto")]


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("drop-in")
    catalog = load_catalog("prod", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    plain = type(spark), *calls_of_frames()
    with icefloe.connect(catalog, spark=spark, drop_in=True) as session:
        yield session
        spark.catalog.setCurrentCatalog("spark_catalog")
    assert (type(spark), *calls_of_frames()) == plain


@pytest.fixture
def frame(spark: Any, ice: Session) -> Any:
    assert ice.spark is spark
    return spark.createDataFrame([(1, "a"), (2, "b")], "id long, p string").coalesce(1)


def ids(found: Any) -> list[Any]:
    return sorted(row[0] for row in found.collect())


def test_write_to(ice: Session, spark: Any, frame: Any) -> None:
    name = "prod.db.v2"
    frame.writeTo(name).using("iceberg").tableProperty("format-version", "3").partitionedBy(F.col("p")).create()
    table = ice.load_table(name)
    assert (str(table.spec().fields[0].transform), table.format_version) == ("identity", 3)
    with pytest.raises(TableAlreadyExistsError):
        frame.writeTo(name).create()
    frame.writeTo(name).option("snapshot-property.by", "me").append()
    made = table.refresh().current_snapshot()
    assert made is not None
    assert made.summary is not None
    assert made.summary["by"] == "me"
    assert table.scan().count() == 4
    frame.where("id = 1").writeTo(name).overwritePartitions()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 2]
    frame.where("id = 1").writeTo(name).overwrite((F.col("p") == "b") & (F.col("id") > 1))
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 1]
    ice.sql("ALTER TABLE prod.db.v2 CREATE BRANCH audit")
    frame.writeTo(f"{name}.branch_audit").append()
    assert (table.refresh().scan().count(), table.scan(ref="audit").count()) == (2, 4)
    terms = (F.partitioning.bucket(4, "id"), F.partitioning.days("ts"), "p")
    frame.withColumn("ts", F.current_timestamp()).writeTo(name).partitionedBy(*terms).createOrReplace()
    assert [str(field.transform) for field in table.refresh().spec().fields] == ["bucket[4]", "day", "identity"]
    frame.writeTo(name).replace()
    assert table.refresh().schema().column_names == ("id", "p")
    with pytest.raises(NoSuchTableError, match="nowhere"):
        frame.writeTo("prod.db.nowhere").append()
    with pytest.raises(InvalidInputError, match="clusterBy"):
        frame.writeTo(name).clusterBy("id")


def test_merge_into(ice: Session, spark: Any, frame: Any) -> None:
    rows = "id long, p string, n int"
    spark.createDataFrame([(1, "a", 1), (2, "b", 1), (3, "c", 1), (4, "d", 1)], rows).writeTo("prod.db.m").create()
    source = spark.createDataFrame([(1, "x", 5), (2, "y", 6), (9, "z", 7)], rows).alias("s")
    source.mergeInto("prod.db.m", F.expr("m.id = s.id")).whenMatched(F.col("s.n") > 5).delete().whenMatched().update(
        {"m.n": F.col("m.n") + F.col("s.n"), "p": F.lit("new")}
    ).whenNotMatched().insertAll().whenNotMatchedBySource(F.col("m.id") == 3).update(
        {"n": F.lit(0)}
    ).whenNotMatchedBySource().delete().merge()
    table = ice.load_table("prod.db.m")
    assert sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()) == [
        (1, "new", 6),
        (3, "c", 0),
        (9, "z", 7),
    ]
    # Columns of the frame itself, without an alias; a branch; columns that the table lacks.
    ice.sql("ALTER TABLE prod.db.m CREATE BRANCH audit")
    more = spark.createDataFrame([(9, 10, "extra"), (10, 11, "extra")], "id long, n int, more string")
    merge = more.mergeInto("prod.db.m.branch_audit", F.col("m.id") == more.id).whenMatched().update({"n": more.n})
    merge.whenNotMatched(more.n > 10).insert({"id": more.id, "n": more.n}).merge()
    assert sorted(table.refresh().scan(ref="audit").to_arrow()["n"].to_pylist()) == [0, 6, 10, 11]
    more.mergeInto("prod.db.m", F.col("m.id") == more.id).withSchemaEvolution().whenMatched().updateAll().merge()
    assert table.refresh().scan("id = 9").to_arrow()["more"].to_pylist() == ["extra"]
    with pytest.raises(InvalidInputError, match="update"):
        more.mergeInto("prod.db.m", F.col("m.id") == more.id).whenNotMatchedBySource().updateAll()
    with pytest.raises(NoSuchTableError, match="nowhere"):
        more.mergeInto("prod.db.nowhere", F.lit(True))


def test_write(ice: Session, spark: Any, frame: Any, tmp_path: Path) -> None:
    name = "prod.db.v1"
    frame.write.format("iceberg").partitionBy("p").saveAsTable(name)
    table = ice.load_table(name)
    assert table.spec().fields[0].name == "p"
    with pytest.raises(TableAlreadyExistsError, match="mode append"):
        frame.write.saveAsTable(name)
    frame.write.mode("ignore").saveAsTable(name)
    frame.select("p", "id").write.mode("append").saveAsTable(name)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 2]
    frame.write.insertInto(name, overwrite=True)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
    frame.write.format("iceberg").mode("append").save(name)
    frame.where("id = 2").write.format("iceberg").mode("overwrite").option("overwrite-mode", "dynamic").save(name)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 1, 2]
    frame.write.save("db.v1", format="iceberg", mode="overwrite")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
    frame.write.saveAsTable(name, mode="overwrite")
    assert table.refresh().spec().is_unpartitioned
    # What is Spark's stays Spark's.
    frame.write.parquet(str(tmp_path / "files"))
    frame.write.mode("overwrite").format("parquet").save(str(tmp_path / "files"))
    assert ids(spark.read.parquet(str(tmp_path / "files"))) == [1, 2]
    frame.write.mode("overwrite").saveAsTable("default.theirs")
    assert ids(spark.table("default.theirs")) == [1, 2]
    spark.sql("DROP TABLE default.theirs")


def test_read(ice: Session, spark: Any, frame: Any) -> None:
    table = ice.catalog.create_table("db.r", "id BIGINT, p STRING")
    first = table.append(frame.where("id = 1"))
    assert first is not None
    table.append(frame.where("id = 2"))
    table.manage_snapshots().create_tag("v1", first.snapshot_id).commit()
    assert ids(spark.table("prod.db.r")) == [1, 2]
    assert ids(spark.read.table("`prod`.db.r").where("id > 1")) == [2]
    assert ids(spark.read.format("iceberg").load("prod.db.r")) == [1, 2]
    assert ids(spark.read.option("tag", "v1").format("iceberg").load("db.r")) == [1]
    assert ids(spark.read.load("prod.db.r", format="iceberg", **{"snapshot-id": first.snapshot_id})) == [1]
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC).isoformat()
    for option, value in (
        ("as-of-timestamp", first.timestamp_ms),
        ("versionAsOf", "v1"),
        ("versionAsOf", first.snapshot_id),
        ("timestampAsOf", moment),
    ):
        assert spark.read.option(option, value).table("prod.db.r").columns == ["id", "p"]
        assert ids(spark.read.option(option, value).table("prod.db.r")) == [1]
    assert spark.table("prod.db.r.snapshots").count() == 2
    assert ids(spark.table("prod.db.r.tag_v1")) == [1]
    spark.sql("CREATE OR REPLACE VIEW prod.db.seen AS SELECT id FROM prod.db.r WHERE id = 2")
    assert ids(spark.table("prod.db.seen")) == [2]
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: spark.table("prod.db.nowhere"), "nowhere"),
        (lambda: spark.read.format("iceberg").load("/tmp/place"), "register_table"),
        (lambda: spark.read.option("snapshot-id", "x").table("prod.db.r"), "whole number"),
        (lambda: spark.read.options(branch="b", tag="t").table("prod.db.r"), "only one"),
        (lambda: spark.read.option("end-snapshot-id", 1).table("prod.db.r"), "needs 'start-snapshot-id'"),
        (lambda: spark.read.option("start-timestamp", 1).table("prod.db.r"), "db.r.changes"),
    ]
    for wrong, problem in mistakes:
        with pytest.raises(IcefloeError, match=problem):
            wrong()
    with pytest.raises(AnalysisException, match="nowhere"):
        spark.table("nowhere")


def test_catalog_functions(ice: Session, spark: Any, frame: Any) -> None:
    found = spark.catalog
    ice.catalog.create_namespace_if_not_exists("listed")
    ice.catalog.create_table("listed.t", "id BIGINT NOT NULL COMMENT 'key', p STRING", partition_spec=["p"])
    spark.sql("CREATE OR REPLACE VIEW prod.listed.v AS SELECT id FROM prod.listed.t")
    frame.createOrReplaceTempView("passing")
    try:
        assert {each.name for each in found.listCatalogs()} >= {"spark_catalog", "prod"}
        assert found.currentCatalog() == "spark_catalog"
        assert found.databaseExists("prod.listed")
        assert not found.databaseExists("prod.nothing")
        assert found.databaseExists("default")
        listed = {each.name: each for each in found.listTables("prod.listed")}
        assert {name for name, each in listed.items() if not each.isTemporary} == {"t", "v"}
        assert listed["passing"].isTemporary
        assert (listed["t"].catalog, listed["t"].namespace, listed["v"].tableType) == ("prod", ["listed"], "VIEW")
        assert [each.name for each in found.listTables("prod.listed", "t*")] == ["t"]
        assert found.tableExists("prod.listed.t")
        assert found.tableExists("t", "prod.listed")
        assert not found.tableExists("prod.listed.x")
        assert found.tableExists("passing")
        assert found.getTable("prod.listed.v").tableType == "VIEW"
        key, part = found.listColumns("prod.listed.t")
        assert (key.name, key.dataType, key.nullable, key.isPartition) == ("id", "bigint", False, False)
        assert part.isPartition
        assert found.getDatabase("prod.listed").catalog == "prod"
        found.refreshTable("prod.listed.t")
        found.setCurrentCatalog("prod")
        found.setCurrentDatabase("listed")
        assert (found.currentCatalog(), found.currentDatabase()) == ("prod", "listed")
        assert {"db", "listed"} <= {each.name for each in found.listDatabases()}
        assert ids(spark.table("t")) == []
        assert ids(spark.table("passing")) == [1, 2]
        frame.writeTo("t").append()
        assert ids(spark.sql("SELECT id FROM t")) == [1, 2]
        with pytest.raises(NoSuchNamespaceError, match="nothing"):
            found.setCurrentDatabase("nothing")
        with pytest.raises((AnalysisException, Py4JJavaError), match="nothing"):
            found.setCurrentCatalog("nothing")
    finally:
        found.setCurrentCatalog("spark_catalog")
        found.dropTempView("passing")
    assert found.currentDatabase() == "default"


def test_cached_tables_and_views_of_frames(ice: Session, spark: Any, frame: Any) -> None:
    name = "prod.db.held"
    frame.writeTo(name).tableProperty("write.wap.enabled", "true").create()
    spark.table(name).filter("id > 1").createOrReplaceTempView("held_view")
    spark.catalog.cacheTable(name)
    assert spark.catalog.isCached(name)
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    assert (spark.catalog.isCached(name), ids(spark.table(name))) == (True, [1, 2, 3])
    frame.writeTo(name).append()
    assert (spark.catalog.isCached(name), ids(spark.table(name))) == (False, [1, 1, 2, 2, 3])
    assert ids(spark.table("held_view")) == [2, 2, 3]
    spark.catalog.refreshTable(name)
    assert spark.catalog.isCached(name)
    spark.catalog.uncacheTable(name)
    assert not spark.catalog.isCached(name)
    spark.conf.set("spark.wap.branch", "audit")
    frame.writeTo(name).overwrite(F.lit(True))
    assert ids(spark.table(name)) == [1, 2]
    spark.conf.unset("spark.wap.branch")
    assert len(ids(spark.table(name))) == 5
    spark.catalog.dropTempView("held_view")


def test_all_is_undone(spark: Any, tmp_path: Path) -> None:
    before = type(spark), ClassicFrame.__dict__["write"], ClassicFrame.__dict__["writeTo"]
    catalog = load_catalog("short", type="memory", warehouse=str(tmp_path))
    session = icefloe.connect(catalog, spark=spark, drop_in=True)
    assert isinstance(spark, SparkSession)
    assert "icefloe" in type(spark.read).__module__
    other = spark.newSession()
    assert "icefloe" not in type(other.range(1).write).__module__
    session.stop()
    session.stop()
    assert (type(spark), ClassicFrame.__dict__["write"], ClassicFrame.__dict__["writeTo"]) == before
    assert spark.range(3).count() == 3


@pytest.mark.slow
def test_a_job_with_the_settings_of_the_jar(tmp_path: Path) -> None:
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    program = Path(__file__).with_name("use_drop_in.py")
    command = [sys.executable, str(program), str(tmp_path / "warehouse")]
    environment = bare_environment(PYSPARK_PYTHON=sys.executable)
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
