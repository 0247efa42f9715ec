"""Changes between snapshots on Spark: the rows of plain Python, in all modes, and views of them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.errors import InvalidInputError
from icefloe.spark.session import Session
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes, sql_rows

COLUMNS = "id bigint, name string, d double, m map<string, array<double>>, s struct<a: int, b: binary>"
ROWS = """SELECT * FROM VALUES (1, 'a', 0.0d, map('x', array(1d)), named_struct('a', 1, 'b', X'00')),
  (2, 'b', null, map(), null), (3, null, double('NaN'), null, named_struct('a', null, 'b', null)),
  (3, null, double('NaN'), null, named_struct('a', null, 'b', null)) AS t(id, name, d, m, s)"""


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("changes")
    catalog = load_catalog("changing", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"changing": catalog})
    spark.sql("USE spark_catalog.default")


def counted(found: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in found.to_pylist())


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), ALL_VERSIONS[-1]])
def test_a_frame_has_the_rows_of_plain_python(ice: Session, spark: Any, version: int) -> None:
    mode = "merge-on-read" if allows(version, Feature.DELETE_FILES) else "copy-on-write"
    modes = ", ".join(f"'{key}' '{value}'" for key, value in row_modes(mode).items())
    ice.sql("DROP TABLE IF EXISTS db.t")
    ice.sql(f"CREATE TABLE db.t ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version' '{version}', {modes})")
    ice.sql(f"INSERT INTO db.t {ROWS}")
    ice.sql("DELETE FROM db.t WHERE id = 2")
    ice.sql("UPDATE db.t SET d = -0.0d WHERE id = 1")
    ice.sql(f"INSERT OVERWRITE db.t {ROWS}")
    table = ice.load_table("db.t")
    plain, by_id = table.scan_changes(), table.scan_changes(identifier_columns=["id"], row_filter="id < 3")
    for scan in (plain, plain.with_net_changes(), plain.with_updates(), by_id):
        assert counted(scan.to_spark(spark).toArrow()) == counted(scan.to_arrow())
    assert Counter(row["_change_type"] for row in by_id.to_arrow().to_pylist())["UPDATE_AFTER"] == 2
    changed = table.scan_changes(table.snapshots()[1].snapshot_id, table.snapshots()[2].snapshot_id)
    assert sorted(row["_change_type"] for row in changed.to_spark(spark).collect()) == ["DELETE", "INSERT"]


def test_views(ice: Session, spark: Any) -> None:
    ice.sql("DROP TABLE IF EXISTS db.v")
    ice.sql("CREATE TABLE db.v (id bigint, name string) USING iceberg TBLPROPERTIES ('format-version' '3')")
    for statement in ("INSERT INTO db.v VALUES (1, 'a'), (2, 'b')", "UPDATE db.v SET name = 'c' WHERE id = 1"):
        ice.sql(statement)
    first, second = ice.load_table("db.v").snapshots()
    call = "CALL changing.system.create_changelog_view"
    assert sql_rows(spark, f"{call}('db.v')") == [("`v_changes`",)]
    shown = "SELECT id, name, _change_type, _change_ordinal FROM {} ORDER BY 4, 3, 1"
    moved = [(1, "a", "DELETE", 1), (1, "c", "INSERT", 1)]
    assert sql_rows(spark, shown.format("v_changes")) == [(1, "a", "INSERT", 0), (2, "b", "INSERT", 0), *moved]
    pairs = [(1, "c", "UPDATE_AFTER", 0), (1, "a", "UPDATE_BEFORE", 0)]
    after = f"map('start-snapshot-id', '{first.snapshot_id}')"
    for more in ("compute_updates => true", "identifier_columns => array('id')"):
        spark.sql(f"{call}(table => 'db.v', changelog_view => 'c', options => {after}, {more})")
        assert sql_rows(spark, shown.format("c")) == pairs
    until = f"map('end-timestamp', '{second.timestamp_ms - 1}')"
    for options, count in ((until, 2), (f"map('start-timestamp', '{second.timestamp_ms}')", 0), ("map()", 2)):
        spark.sql(f"{call}('db.v', 'c', {options}, net_changes => true)")
        assert len(sql_rows(spark, shown.format("c"))) == count
    with pytest.raises(InvalidInputError, match="are mutually exclusive"):
        spark.sql(f"{call}(table => 'db.v', compute_updates => true, net_changes => true)")
    with pytest.raises(InvalidInputError, match="start-timestamp"):
        spark.sql(f"{call}('db.v', 'c', map('start-snapshot-id', '1', 'start-timestamp', '1'))")
