"""Which tables and columns the names in SQL mean: qualified, under aliases, of metadata, given by expressions."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import (
    AlreadyExistsError,
    InvalidInputError,
    InvalidValueError,
    NoSuchColumnError,
    NoSuchSnapshotError,
    NoSuchTableError,
)
from icefloe.spark.session import Session
from icefloe.versions import ALL_VERSIONS
from tests.shared_rows import sql_modes, sql_rows

MODES = ("copy-on-write", "merge-on-read")
ONE_MODE = (pytest.param(MODES[0], marks=pytest.mark.slow), MODES[1])
"""For names alone, which all modes look up alike."""


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("names")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"lake": catalog})
    spark.sql("USE spark_catalog.default")


def create(
    ice: Session, name: str, columns: str, values: str = "", *, by: str = "", version: int = 2, mode: str = MODES[1]
) -> str:
    table = f"lake.db.{name}"
    modes = sql_modes(mode)
    partitioned = f"PARTITIONED BY ({by})" if by else ""
    ice.spark.sql(
        f"CREATE OR REPLACE TABLE {table} ({columns}) USING iceberg {partitioned}"
        f" TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    if values:
        ice.spark.sql(f"INSERT INTO {table} VALUES {values}")
    return table


# -- columns


@pytest.mark.parametrize("mode", ONE_MODE)
def test_clauses_without_a_source_row_see_the_target_alone(ice: Session, mode: str) -> None:
    t = create(ice, "alone", "id INT, dep STRING", "(1, 'a'), (2, 'b'), (3, 'c')", mode=mode)
    merge = f"MERGE INTO {t} t USING (SELECT 2 id, 'z' dep) s ON t.id = s.id"
    ice.spark.sql(f"{merge} WHEN NOT MATCHED BY SOURCE AND id = 1 THEN UPDATE SET dep = concat(dep, id)")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [(1, "a1"), (2, "b"), (3, "c")]
    ice.spark.sql(
        f"{merge} WHEN MATCHED THEN UPDATE SET dep = s.dep"
        " WHEN NOT MATCHED BY SOURCE AND id = 3 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET dep = upper(dep)"
    )
    before = sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id")
    assert before == [(1, "A1"), (2, "z")]
    for clause in (
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET dep = s.dep",
        "WHEN NOT MATCHED BY SOURCE AND s.id = 1 THEN DELETE",
        "AND s.id > 5 WHEN NOT MATCHED THEN INSERT (id, dep) VALUES (t.id, 'x')",
        "WHEN MATCHED AND dep = 'z' THEN DELETE",
    ):
        with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMN|AMBIGUOUS_REFERENCE"):
            ice.spark.sql(f"{merge} {clause}")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == before


def test_null_is_a_condition_that_is_never_true(ice: Session) -> None:
    t = create(ice, "nulls", "id INT", "(1)")
    merge = f"MERGE INTO {t} t USING (SELECT 1 id UNION SELECT 2) s ON t.id = s.id"
    ice.spark.sql(f"{merge} WHEN MATCHED AND NULL THEN DELETE WHEN NOT MATCHED AND NULL THEN INSERT *")
    ice.spark.sql(f"{merge} AND s.id > 5 WHEN NOT MATCHED BY SOURCE AND NULL THEN DELETE")
    assert sql_rows(ice.spark, f"SELECT * FROM {t}") == [(1,)]
    with pytest.raises(AnalysisException, match="NOT_BOOLEAN"):
        ice.spark.sql(f"{merge} WHEN MATCHED AND t.id THEN DELETE")


@pytest.mark.parametrize("mode", ONE_MODE)
def test_assigned_columns_may_be_qualified(ice: Session, mode: str) -> None:
    t = create(ice, "told", "id INT, s STRUCT<a: INT, b: INT>, x STRUCT<id: INT>", mode=mode)
    ice.spark.sql(f"INSERT INTO {t} SELECT 1, named_struct('a', 1, 'b', 2), named_struct('id', 7)")
    for number, (alias, column) in enumerate(
        (
            ("", f"{t}.s.a"),
            ("", "db.told.s.a"),
            ("", "TOLD.S.A"),
            ("AS t", "t.s.a"),
            ("AS t", "s.a"),
            ("AS s", "s.s.a"),
            ("AS s", "s.a"),
        )
    ):
        ice.spark.sql(f"UPDATE {t} {alias} SET {column} = {number}")
        assert sql_rows(ice.spark, f"SELECT s.a, s.b FROM {t}") == [(number, 2)], column
    # The alias comes before a column of the same name: this is the column `id`, and not a field of `x`.
    ice.spark.sql(f"UPDATE {t} AS x SET x.id = 9 WHERE x.id = 1")
    assert sql_rows(ice.spark, f"SELECT id, x.id FROM {t}") == [(9, 7)]
    ice.spark.sql(
        f"MERGE INTO {t} AS s USING (SELECT 9 id) x ON s.id = x.id WHEN MATCHED AND s.s.b = 2 THEN UPDATE SET s.s.b = x.id"
    )
    ice.spark.sql(
        f"MERGE INTO {t} USING {t} AS o ON lake.db.told.id = o.id WHEN MATCHED THEN UPDATE SET told.x.id = o.s.b"
    )
    assert sql_rows(ice.spark, f"SELECT id, s.b, x.id FROM {t}") == [(9, 9, 9)]
    for alias, column in (("AS t", "told.id"), ("AS t", f"{t}.id"), ("", "other.id"), ("", "told.nosuch")):
        with pytest.raises(NoSuchColumnError, match="no column"):
            ice.spark.sql(f"UPDATE {t} {alias} SET {column} = 0")
    with pytest.raises(InvalidInputError, match="assigned twice"):
        ice.spark.sql(f"UPDATE {t} SET id = 0, told.ID = 1")
    ice.spark.sql(f"DELETE FROM {t} WHERE lake.db.told.id = 9 AND db.told.s.b = 9 AND told.x.id = 9")
    assert sql_rows(ice.spark, f"SELECT * FROM {t}") == []


def test_sources_are_named_as_they_are_written(ice: Session) -> None:
    t, s = (
        create(ice, "into", "id INT, v STRING", "(1, 'a')"),
        create(ice, "from1", "id INT, v STRING", "(1, 'b'), (2, 'c')"),
    )
    ice.spark.sql(
        f"MERGE INTO {t} t USING {s} ON t.id = lake.db.from1.id WHEN MATCHED THEN UPDATE SET v = db.from1.v"
        " WHEN NOT MATCHED THEN INSERT (t.id, v) VALUES (from1.id, lake.db.from1.v)"
    )
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [(1, "b"), (2, "c")]


# -- metadata columns


@pytest.mark.parametrize(("version", "mode"), [(1, MODES[0]), (2, MODES[1]), (3, MODES[0])])
def test_metadata_columns_in_changes_of_rows(ice: Session, version: int, mode: str) -> None:
    t = create(
        ice,
        f"about_{version}",
        "id INT, p STRING",
        "(1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)",
        by="p",
        version=version,
        mode=mode,
    )
    ice.spark.sql(f"UPDATE {t} SET id = 10 + _pos + _spec_id WHERE _partition.p = 'a' AND NOT _deleted")
    ice.spark.sql(f"DELETE FROM {t} AS t WHERE t._partition.p IS NULL")
    ice.spark.sql(f"DELETE FROM {t} WHERE _file IN (SELECT file_path FROM {t}.files WHERE partition.p = 'b')")
    ice.spark.sql(
        f"MERGE INTO {t} t USING (SELECT 'c' k) s ON t._partition.p = s.k"
        " WHEN MATCHED AND t._spec_id = 0 THEN UPDATE SET id = t._pos + 50 WHEN NOT MATCHED BY SOURCE AND _pos < 0 THEN DELETE"
    )
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [(10, "a"), (50, "c")]
    with pytest.raises(NoSuchColumnError, match="_pos"):
        ice.spark.sql(f"UPDATE {t} SET _pos = 5")


def test_metadata_columns_in_python(ice: Session) -> None:
    t = create(ice, "about", "id INT, p STRING", "(1, 'a'), (2, 'b'), (3, 'c')", by="p")
    ice.delete(t, "_partition.p = 'a'")
    ice.update(t, {"id": "CAST(_pos AS INT)"}, "_partition.p = 'b'")
    source = ice.spark.createDataFrame([("c",)], "k STRING")
    ice.merge(t).using(source, "t._partition.p = s.k").when_matched_update({"t.id": "t._spec_id + 7"}).execute()
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [(0, "b"), (7, "c")]


def test_a_column_named_like_what_rows_are_found_by(ice: Session) -> None:
    t = create(ice, "taken", "_pos INT, id INT", "(1, 2), (3, 4)")
    for statement in (f"DELETE FROM {t} WHERE id = 2", f"UPDATE {t} SET id = 5"):
        with pytest.raises(InvalidInputError, match="metadata column"):
            ice.spark.sql(statement)
    ice.spark.sql(f"ALTER TABLE {t} RENAME COLUMN _pos TO _row_id")
    ice.spark.sql(f"UPDATE {t} SET id = _row_id + 1 WHERE _row_id = 3")
    ice.spark.sql(f"DELETE FROM {t} WHERE id = 2")
    assert sql_rows(ice.spark, f"SELECT * FROM {t}") == [(3, 4)]


# -- tables


def test_names_with_dots(ice: Session) -> None:
    t = create(ice, "`a.b`", "id INT, p STRING", "(1, 'x')", by="p")
    for name in ("files", "SNAPSHOTS", "`partitions`", "all_data_files"):
        assert sql_rows(ice.spark, f"SELECT count(*) FROM {t}.{name}") == [(1,)]
    ice.spark.sql(f"ALTER TABLE {t} CREATE BRANCH `x.y`")
    ice.spark.sql(f"INSERT INTO {t}.`branch_x.y` VALUES (3, 'y')")
    assert sql_rows(ice.spark, f"SELECT count(*) FROM {t}.`branch_x.y`") == [(2,)]
    ice.spark.sql(f"UPDATE {t} SET lake.db.`a.b`.p = 'u' WHERE `a.b`.id = 1")
    assert sql_rows(ice.spark, f"SELECT `a.b`.p, lake.db.`a.b`.id FROM {t}") == [("u", 1)]
    with pytest.raises(NoSuchTableError, match="no table or view"):
        ice.spark.sql("SELECT * FROM lake.db.`a.b.files`")
    files = create(ice, "files", "id INT", "(1), (2)")
    assert sql_rows(ice.spark, f"SELECT count(*) FROM {files}") == [(2,)]
    assert sql_rows(ice.spark, f"SELECT sum(record_count) FROM {files}.files") == [(2,)]


def test_identifier_clauses(ice: Session) -> None:
    sql = ice.spark.sql
    sql("CREATE TABLE IDENTIFIER('lake.' || 'db.clause') (id INT) USING iceberg")
    sql("INSERT INTO IDENTIFIER('lake.db.' || 'clause') SELECT 1 UNION ALL SELECT 2")
    sql("UPDATE IDENTIFIER('lake.db.clause') SET id = id + 1")
    sql("DELETE FROM IDENTIFIER(concat('lake', '.db', '.clause')) WHERE id = 2")
    sql(
        "MERGE INTO IDENTIFIER('lake.db' || '.clause') AS t USING IDENTIFIER('lake.db' || '.clause') AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = s.id + 1"
    )
    sql("ALTER TABLE IDENTIFIER('lake.db.' || 'clause') ADD COLUMN b INT")
    query = "WITH c AS (SELECT * FROM IDENTIFIER('lake.db' || '.clause')) SELECT id, b FROM c"
    assert sql_rows(ice.spark, query) == [(4, None)]
    sql(f"CREATE TABLE IDENTIFIER('lake.db' || '.clause2') USING iceberg AS {query}")
    assert sql_rows(ice.spark, "SELECT (SELECT max(id) FROM IDENTIFIER('lake.db.' || 'clause2')) AS m") == [(4,)]
    named = sql("SELECT count(*) FROM IDENTIFIER(:t || '.snapshots')", {"t": "lake.db.clause2"})
    assert named.collect()[0][0] == 1
    sql("DROP TABLE IDENTIFIER('lake.db.' || 'clause2')")
    assert not ice.catalog.table_exists("db.clause2")
    with pytest.raises(InvalidInputError, match="must be a text"):
        sql("SELECT * FROM IDENTIFIER(NULL || 'x')")


@pytest.mark.parametrize("mode", ONE_MODE)
def test_with_before_changes(ice: Session, mode: str) -> None:
    t = create(ice, "cte", "id INT, v STRING", "(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')", mode=mode)
    ice.spark.sql(f"WITH c AS (SELECT 1 id) DELETE FROM {t} AS t WHERE EXISTS (SELECT 1 FROM c WHERE c.id = t.id)")
    ice.spark.sql(
        f"WITH c AS (SELECT max(id) m FROM {t}) UPDATE {t} SET v = (SELECT CAST(m AS STRING) FROM c) WHERE id = (SELECT m FROM c)"
    )
    ice.spark.sql(
        f"WITH c AS (SELECT 2 id), d AS (SELECT id, 'm' v FROM c) MERGE INTO {t} t USING d ON t.id = d.id"
        f" WHEN MATCHED THEN UPDATE SET v = d.v WHEN NOT MATCHED BY SOURCE AND id IN (3) THEN DELETE"
    )
    ice.spark.sql(
        f"WITH c AS (SELECT 5 id) MERGE INTO {t} t USING (SELECT id, 'n' v FROM c) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *"
    )
    # The target is the table, whatever else has its name.
    ice.spark.sql(f"WITH cte AS (SELECT 6 id, 's' v) INSERT INTO {t} SELECT * FROM cte")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [(2, "m"), (4, "4"), (5, "n"), (6, "s")]


# -- inserts


def test_one_query_into_several_tables(ice: Session) -> None:
    a, b = create(ice, "several_a", "id INT, v STRING", "(1, 'x')"), create(ice, "several_b", "id INT, v STRING")
    ice.spark.sql("CREATE OR REPLACE TEMPORARY VIEW numbers AS SELECT id FROM range(3)")
    ice.spark.sql(
        f"FROM numbers INSERT INTO {a} SELECT CAST(id AS INT), 'n' WHERE id = 2 INSERT INTO {b} (id) SELECT CAST(id AS INT)"
    )
    assert sql_rows(ice.spark, f"SELECT * FROM {a} ORDER BY id") == [(1, "x"), (2, "n")]
    assert sql_rows(ice.spark, f"SELECT * FROM {b} ORDER BY id") == [(0, None), (1, None), (2, None)]
    # All read what was there before.
    ice.spark.sql(
        f"WITH c AS (SELECT * FROM {a}) FROM c INSERT INTO {a} SELECT id + 10, v INSERT OVERWRITE {b} SELECT id + 20, v"
    )
    assert [each[0] for each in sql_rows(ice.spark, f"SELECT id FROM {a} ORDER BY id")] == [1, 2, 11, 12]
    assert [each[0] for each in sql_rows(ice.spark, f"SELECT id FROM {b} ORDER BY id")] == [21, 22]
    ice.spark.sql("CREATE TABLE sparks_own (id INT) USING parquet")
    try:
        ice.spark.sql(f"FROM {b} INSERT INTO {b} SELECT id, 'again' INSERT INTO sparks_own SELECT id")
        assert sql_rows(ice.spark, "SELECT count(*) FROM sparks_own") == [(2,)]
        for wrong, error in (
            (f"{a} SELECT nosuch, v", AnalysisException),
            (f"{a} SELECT array(id), v", (InvalidValueError, AnalysisException)),
            ("lake.db.nosuch SELECT *", NoSuchTableError),
            ("sparks_own SELECT id, v", AnalysisException),
        ):
            with pytest.raises(error):
                ice.spark.sql(f"FROM {b} INSERT INTO {b} SELECT * INSERT INTO {wrong}")
    finally:
        ice.spark.sql("DROP TABLE sparks_own")
    assert sql_rows(ice.spark, f"SELECT count(*) FROM {b}") == [(4,)]


def test_partition_clauses(ice: Session) -> None:
    t = create(ice, "clauses", "id INT, p STRING, q INT", by="p, q")
    for clause in (
        "PARTITION (p = NULL, q = 1) VALUES (1)",
        "PARTITION (p = NULL, q) VALUES (2, 5)",
        "PARTITION (q, p = 'x') VALUES (3, 6)",
        "PARTITION (Q = 7, p) VALUES (4, 'y')",
        "PARTITION (q, p) VALUES (5, 'z', 8)",
        "PARTITION (p = 'k') (q, id) VALUES (9, 6)",
        "PARTITION (p = 'n') BY NAME SELECT 2 q, 7 id",
    ):
        ice.spark.sql(f"INSERT INTO {t} {clause}")
    found = [(1, None, 1), (2, None, 5), (3, "x", 6), (4, "y", 7), (5, "z", 8), (6, "k", 9), (7, "n", 2)]
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == found
    ice.spark.sql(f"INSERT OVERWRITE {t} PARTITION (p = NULL) VALUES (10, 1)")
    ice.spark.sql(f"INSERT OVERWRITE {t} PARTITION (p, q = 8) VALUES (11, 'w')")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY id") == [
        *found[2:4],
        *found[5:],
        (10, None, 1),
        (11, "w", 8),
    ]
    for clause, condition in (
        ("PARTITION (id = 5) VALUES ('a', 1)", "NON_PARTITION_COLUMN"),
        ("PARTITION (nosuch = 5) VALUES (1, 'a', 1)", "NON_PARTITION_COLUMN"),
        ("PARTITION (p = 'k', q = 3) (id, q) VALUES (1, 3)", "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST"),
    ):
        for verb in ("INTO", "OVERWRITE"):
            with pytest.raises(InvalidInputError, match=condition):
                ice.spark.sql(f"INSERT {verb} {t} {clause}")
    hidden = create(ice, "hidden", "id INT, d DATE", by="days(d)")
    with pytest.raises(InvalidInputError, match="NON_PARTITION_COLUMN"):
        ice.spark.sql(f"INSERT INTO {hidden} PARTITION (d = '2020-01-01') VALUES (1)")


# -- branches


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_branches_of_empty_tables(ice: Session, version: int) -> None:
    t = create(ice, f"empty_{version}", "id INT", version=version)
    ice.spark.sql(f"ALTER TABLE {t} CREATE BRANCH b RETAIN 5 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS")
    table = ice.load_table(t)
    ref = table.refs()["b"]
    assert (ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms) == (432_000_000, 3, 172_800_000)
    assert table.current_snapshot() is None
    assert [each.operation for each in table.snapshots()] == ["append"]
    assert sql_rows(ice.spark, f"SELECT * FROM {t}.branch_b") == []
    ice.spark.sql(f"INSERT INTO {t}.branch_b VALUES (1), (2)")
    ice.spark.sql(f"UPDATE {t}.branch_b SET id = 3 WHERE branch_b.id = 1")
    ice.spark.sql(f"DELETE FROM {t}.branch_b WHERE id = 2")
    ice.spark.sql(f"MERGE INTO {t}.branch_b t USING (SELECT 4 id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} VERSION AS OF 'b' ORDER BY id") == [(3,), (4,)]
    assert sql_rows(ice.spark, f"SELECT * FROM {t}") == []
    count = len(ice.load_table(t).snapshots())
    ice.spark.sql(f"ALTER TABLE {t} CREATE BRANCH IF NOT EXISTS b")
    for clause, error in (
        ("CREATE BRANCH b", (AlreadyExistsError, NoSuchSnapshotError)),
        ("CREATE TAG t", NoSuchSnapshotError),
        ("REPLACE BRANCH b", NoSuchSnapshotError),
        ("CREATE OR REPLACE BRANCH b", NoSuchSnapshotError),
    ):
        with pytest.raises(error):
            ice.spark.sql(f"ALTER TABLE {t} {clause}")
    assert len(ice.load_table(t).snapshots()) == count
    with pytest.raises(NoSuchSnapshotError, match="has no branch 'x'"):
        ice.spark.sql(f"INSERT INTO {t}.branch_x VALUES (1)")
