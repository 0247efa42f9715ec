"""`ice.write(df).to(name)`: what each verb commits, and which options there are."""

from pathlib import Path
from typing import Any

import pytest

from icefloe.errors import (
    InvalidInputError,
    InvalidPropertyError,
    InvalidValueError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from tests.shared_rows import ids_in
from tests.spark.test_write import stored


@pytest.fixture
def ice(spark: Any, tmp_path: Path) -> Session:
    from icefloe.catalog import load_catalog

    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    return connect(catalog, spark=spark)


def test_a_table_is_made_replaced_and_changed(ice: Session) -> None:
    spark = ice.spark
    write = ice.write(spark.range(4).selectExpr("id", "cast(id % 2 as int) p", "timestamp_micros(id) ts")).to("db.t")
    made = (
        write.partitioned_by("p", "days(ts)").sorted_by("id desc").table_property("format-version", 3)
        .table_property("owner", "me").option("snapshot-property.why", "first").create()
    )  # fmt: skip
    assert made is not None
    assert made.summary is not None
    assert made.summary["why"] == "first"
    table = ice.load_table("lake.db.t")
    assert (table.format_version, table.properties["owner"]) == (3, "me")
    assert [str(field.transform) for field in table.spec()] == ["identity", "day"]
    assert all(field.optional for field in table.schema())
    assert ids_in(table) == [0, 1, 2, 3]
    with pytest.raises(TableAlreadyExistsError):
        write.create()
    more = spark.range(10, 12).selectExpr("id", "1 p", "timestamp_micros(id) ts")
    assert ice.write(more).to("db.t").append() is not None
    assert ids_in(table.refresh()) == [0, 1, 2, 3, 10, 11]
    ice.write(more).to("db.t").overwrite_partitions()
    assert ids_in(table.refresh()) == [0, 2, 10, 11]
    ice.write(more.selectExpr("id + 10 as id", "p", "ts")).to("db.t").overwrite("p = 1")
    assert ids_in(table.refresh()) == [0, 2, 20, 21]
    ice.write(spark.range(1)).to("db.t").overwrite()
    assert ids_in(table.refresh()) == [0]
    uuid = table.metadata.table_uuid
    ice.write(spark.range(7, 9).selectExpr("id", "'x' as s")).to("db.t").replace()
    table = ice.load_table("db.t")
    assert (table.metadata.table_uuid, ids_in(table)) == (uuid, [7, 8])
    assert len(table.snapshots()) == 6
    ice.write(spark.range(2)).to("db.new").create_or_replace()
    ice.write(spark.range(3)).to("db.new").create_or_replace()
    assert ids_in(ice.load_table("db.new")) == [0, 1, 2]


def test_options_hold_for_one_write(ice: Session) -> None:
    table = ice.catalog.create_table("db.t", "id bigint")
    ice.write(ice.spark.range(2)).to("db.t").append()
    table.refresh().manage_snapshots().create_branch("audit", table.metadata.current_snapshot_id).commit()
    write = ice.write(ice.spark.range(5, 6)).to("db.t")
    write.options({"branch": "audit", "write-format": "avro", "compression-codec": "zstd"}).append()
    table.refresh()
    assert (ids_in(table), ids_in(table, ref="audit")) == ([0, 1], [0, 1, 5])
    assert sorted(task.file.file_format for task in table.scan(ref="audit").plan_files())[0] == "avro"
    assert table.properties == ice.load_table("db.t").properties
    assert "write.format.default" not in table.properties


def test_wrong_options_fail_before_anything_is_done(ice: Session) -> None:
    write = ice.write(ice.spark.range(1)).to("db.none")
    with pytest.raises(
        InvalidPropertyError, match=r"unknown write option 'fanout-enable'; did you mean 'fanout-enabled'"
    ):
        write.option("fanout-enable", True)
    with pytest.raises(InvalidPropertyError, match="options are write-format"):
        write.option("xyzzy", 1)
    for key, value in (
        ("target-file-size-bytes", "many"),
        ("distribution-mode", "zigzag"),
        ("write-format", "csv"),
        ("mergeSchema", "perhaps"),
    ):
        with pytest.raises(InvalidPropertyError):
            write.option(key, value).create()
    with pytest.raises(InvalidInputError, match="main branch"):
        write.option("branch", "b").create()
    with pytest.raises(InvalidInputError, match=r"days\(ts\)"):
        write.partitioned_by(ice.spark.range(1).id)
    for verb in (write.append, write.replace, write.overwrite, write.overwrite_partitions):
        with pytest.raises(NoSuchTableError):
            verb()
    ice.catalog.create_table("db.t", "id bigint")
    with pytest.raises(InvalidInputError, match="made by create or replace"):
        ice.write(ice.spark.range(1)).to("db.t").partitioned_by("id").append()


def test_a_schema_grows_only_when_asked(ice: Session) -> None:
    table = ice.catalog.create_table("db.t", "id int not null, st struct<a: int>")
    wider = ice.spark.range(2).selectExpr("id", "named_struct('a', 1, 'b', 'x') st", "id * 2 as twice")
    with pytest.raises(InvalidValueError, match="columns that the table lacks: 'twice'"):
        ice.write(wider).to("db.t").append()
    assert (stored(table), table.refresh().current_snapshot()) == (set(), None)
    snapshot = ice.write(wider).to("db.t").option("merge-schema", True).append()
    table.refresh()
    assert snapshot is not None
    assert snapshot.schema_id == table.schema().schema_id
    assert table.scan().to_arrow().sort_by("id").to_pylist()[1] == {"id": 1, "st": {"a": 1, "b": "x"}, "twice": 2}
    assert table.schema().find_field("id").required
    nullable = ice.write(ice.spark.createDataFrame([(1,)], "id bigint")).to("db.t")
    with pytest.raises(InvalidValueError, match="'id' may have null in the data"):
        nullable.option("check-nullability", True).append()


def test_a_failed_make_leaves_no_table(ice: Session, tmp_path: Path) -> None:
    bad = ice.spark.range(3).selectExpr("id", "raise_error('no') as s")
    with pytest.raises(Exception, match="no"):
        ice.write(bad).to("db.t").create()
    assert not ice.catalog.table_exists("db.t")
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
