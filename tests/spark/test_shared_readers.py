"""Readers that queries share: who gets the same one, how many are kept, and which of Hadoop's settings tasks get with them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefloe.spark.connect import connect
from icefloe.spark.gateway import Gateway
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

MOST = 32
"""How many are kept at most."""


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on a table of a hundred rows."""
    with connect(new_catalog(tmp_path_factory.mktemp("shared")), spark=spark) as session:
        table = session.catalog.create_table("db.t", "id long, v string")
        table.append(pa.table({"id": range(100), "v": [f"v{each % 7}" for each in range(100)]}))
        yield session


@pytest.fixture
def readers(spark: Any) -> Any:
    """What Python calls."""
    entry = door.entry(spark, "shared_readers")
    assert entry is not None
    return entry


def ids(ice: Session, condition: str) -> list[int]:
    return sorted(row[0] for row in ice.table("db.t").filter(condition).select("id").collect())


def entries(conf: Any) -> dict[str, str]:
    """The settings of a Hadoop configuration, unresolved."""
    found, each = {}, conf.iterator()
    while each.hasNext():
        entry = each.next()
        found[entry.getKey()] = entry.getValue()
    return found


def reader(readers: Any, spark: Any, *, conditions: Any = None, conf: Any = None, **options: str) -> Any:
    """The reader of a scan of one column, as Spark asks for it."""
    gateway = Gateway(spark)
    parquet = readers.shared(gateway.jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat())
    schema = gateway.jvm.org.apache.spark.sql.types.StructType.fromDDL("id BIGINT")
    none = gateway.jvm.org.apache.spark.sql.types.StructType()
    session = spark._jsparkSession
    given = {"returning_batch": "true", **options}
    conf = conf or session.sessionState().newHadoopConfWithOptions(gateway.map(given))
    filters = gateway.seq(() if conditions is None else conditions)
    return parquet.buildReaderWithPartitionValues(session, schema, none, schema, filters, gateway.map(given), conf)


def test_equal_scans_share_a_reader_and_others_do_not(spark: Any, readers: Any) -> None:
    first = reader(readers, spark)
    assert first.equals(reader(readers, spark))
    assert not first.equals(reader(readers, spark, mergeSchema="true"))
    greater = Gateway(spark).jvm.org.apache.spark.sql.sources.GreaterThan
    filtered = reader(readers, spark, conditions=[greater("id", 5)])
    assert not first.equals(filtered)
    assert filtered.equals(reader(readers, spark, conditions=[greater("id", 5)]))
    assert not filtered.equals(reader(readers, spark, conditions=[greater("id", 6)]))
    with settings(spark, {"spark.sql.parquet.columnarReaderBatchSize": "17"}):
        assert not first.equals(reader(readers, spark))
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.some.setting", "value")
    try:
        assert not first.equals(reader(readers, spark))
    finally:
        spark.sparkContext._jsc.hadoopConfiguration().unset("fs.some.setting")
    assert first.equals(reader(readers, spark))


def test_tasks_get_all_settings_but_those_of_hadoop_that_no_reader_asks(spark: Any, readers: Any) -> None:
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    before = entries(conf)
    chosen = "mapreduce.job.name", "yarn.mine", "fs.mine", "mapreduce.map.memory.mb"
    for name in chosen:
        conf.set(name, "mine")
    reader(readers, spark, conf=conf)
    after = entries(conf)
    assert {name: after.get(name) for name in chosen} == dict.fromkeys(chosen, "mine")
    gone = set(before) - set(after)
    assert len(gone) > 500
    assert {name.split(".")[0] for name in gone} == {"yarn", "mapreduce"}
    assert all(after[name] == value for name, value in before.items() if name not in gone and name not in chosen)


def test_formats_are_equal_if_what_they_share_is(spark: Any, readers: Any) -> None:
    plain = Gateway(spark).jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
    live = door.entry(spark, "live_rows", in_tasks=True)
    assert live is not None
    assert readers.shared(plain()).equals(readers.shared(plain()))
    assert readers.shared(live.format(False)).equals(readers.shared(live.format(False)))
    for one, other in ((plain(), live.format(False)), (live.format(False), live.format(True))):
        assert not readers.shared(one).equals(readers.shared(other))
        assert not readers.shared(other).equals(readers.shared(one))
    assert not readers.shared(plain()).equals(plain())


def test_a_table_that_grows_is_read_by_the_same_reader(ice: Session, readers: Any) -> None:
    ids(ice, "id < 0")
    table = ice.catalog.create_table("db.grows", "id long")
    counts, kept = [], []
    for number in range(3):
        table.append(pa.table({"id": [number]}))
        counts.append(len(ice.table("db.grows").collect()))
        kept.append(readers.kept())
    assert counts == [1, 2, 3]
    assert kept == [kept[0]] * 3


def test_queries_use_them_and_few_are_kept(ice: Session, readers: Any) -> None:
    assert ids(ice, "v = 'v3'") == [*range(3, 100, 7)]
    before = readers.kept()
    for _ in range(3):
        assert ids(ice, "v = 'v3'") == [*range(3, 100, 7)]
    assert readers.kept() == before
    for number in range(MOST + 8):
        assert ids(ice, f"id < {number}") == [*range(number)]
    assert readers.kept() == MOST
    # Its reader is gone by now, and made again.
    assert ids(ice, "v = 'v3'") == [*range(3, 100, 7)]
