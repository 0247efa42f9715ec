"""Which rows a statement changes is decided once: what would decide otherwise when asked again is refused or held."""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)

from icefloe import load_catalog
from icefloe.errors import InvalidInputError, InvalidValueError, NoSuchColumnError
from icefloe.spark.session import Session
from tests.shared_rows import sql_modes
from tests.spark.conftest import SPARK

MODES = ("copy-on-write", "merge-on-read")
RANDOM = (
    "rand() < 0.5",
    "uuid() < 'a'",
    "randn(3) > 0",
    "monotonically_increasing_id() = 1",
    "input_file_name() = ''",
    "toss(id) = 1",
    "id IN (SELECT id FROM range(9) ORDER BY rand() LIMIT 3)",
)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("decisions")
    catalog = load_catalog("fate", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    spark.udf.register("toss", F.udf(lambda each: each % 2, "bigint").asNondeterministic())
    yield Session(spark, {"fate": catalog})
    spark.sql("DROP TEMPORARY FUNCTION toss")


def create(ice: Session, mode: str, rows: int = 40) -> None:
    modes = sql_modes(mode)
    ice.sql(
        "CREATE OR REPLACE TABLE db.t (id BIGINT, v STRING, at TIMESTAMP, p INT) USING iceberg PARTITIONED BY (p)"
        f" TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    ice.sql(
        "INSERT INTO db.t SELECT id, concat('v', id), timestamp_seconds(id), CAST(id % 2 AS INT)"
        f" FROM range(0, {rows}, 1, 2)"
    )


def found(ice: Session) -> dict[int, tuple[Any, ...]]:
    rows = ice.sql("SELECT id, v, _row_id FROM db.t").collect()
    assert len({row["id"] for row in rows}) == len({row["_row_id"] for row in rows}) == len(rows)
    return {row["id"]: tuple(row) for row in rows}


@pytest.mark.parametrize("mode", MODES)
def test_conditions_that_may_change_their_mind_are_refused(ice: Session, mode: str) -> None:
    create(ice, mode, 2)
    before = ice.load_table("db.t").metadata_location
    head = "MERGE INTO db.t t USING (SELECT * FROM range(5)) s ON t.id = s.id"
    for place, each in enumerate(RANDOM):
        for_target = re.sub(r"\bid\b(?= IN|\) = 1)", "t.id", each)
        texts = (
            f"DELETE FROM db.t WHERE id >= 0 AND {each}",
            f"UPDATE db.t SET v = 'x' WHERE NOT ({each})",
            f"{head} AND {for_target} WHEN MATCHED THEN DELETE",
            f"{head} WHEN MATCHED AND {for_target} THEN UPDATE SET v = 'x'",
            f"{head} WHEN NOT MATCHED AND {for_target.replace('t.id', 's.id')} THEN INSERT (id) VALUES (s.id)",
            f"{head} WHEN NOT MATCHED BY SOURCE AND {for_target} THEN DELETE",
        )
        # Each kind in the simplest statement, and in one more; over both modes, every statement meets every kind of trouble.
        for text in (texts[0], texts[1 + (place + MODES.index(mode)) % 5]):
            with pytest.raises(InvalidInputError, match="not deterministic"):
                ice.sql(text)
    toss = F.udf(lambda each: each % 2 == 0, "boolean").asNondeterministic()
    merge = ice.merge("db.t").using(ice.spark.range(5), (F.col("t.id") == F.col("s.id")) & toss("t.id"))
    calls: list[Callable[[], object]] = [
        lambda: ice.delete("db.t", toss("id")),
        lambda: ice.update("db.t", {"v": "'x'"}, F.rand() < 0.5),
        lambda: merge.when_matched_delete().execute(),
    ]
    for work in calls:
        with pytest.raises(InvalidInputError, match="not deterministic"):
            work()
    assert ice.load_table("db.t").metadata_location == before


def test_a_name_that_only_sounds_random_is_taken(ice: Session) -> None:
    create(ice, MODES[0], 4)
    ice.sql("DELETE FROM db.t WHERE v = 'rand()' OR concat(v, 'uuid(') = 'v1uuid('")
    assert set(found(ice)) == {0, 2, 3}


def sources(ice: Session) -> dict[str, DataFrame]:
    """Frames that have other rows each time they are asked."""
    lost = F.udf(lambda each: random.random() < 0.5, "boolean").asNondeterministic()
    return {
        "order": ice.spark.range(80).orderBy(F.rand()).limit(30),
        "udf": ice.spark.range(80).filter(lost("id")),
        "rand": ice.spark.range(80).filter("rand() < 0.4").repartition(3),
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["order", *(pytest.param(each, marks=pytest.mark.slow) for each in ("udf", "rand"))])
def test_a_source_is_asked_once(ice: Session, mode: str, kind: str) -> None:
    """A row that is matched in one answer and not in another would be doubled, or lost."""
    create(ice, mode)
    before = found(ice)
    source = sources(ice)[kind]
    (
        ice.merge("db.t")
        .using(source.withColumn("u", F.expr("uuid()")), "t.id = s.id")
        .when_matched_update({"v": "s.u"})
        .when_not_matched_insert({"id": "s.id", "v": "s.u", "at": "current_timestamp()", "p": "CAST(s.id % 2 AS INT)"})
        .execute()
    )
    after = found(ice)
    assert {key: after[key][2] for key in before} == {key: each[2] for key, each in before.items()}
    assert 0 < len([key for key, each in after.items() if each != before.get(key)]) < 80
    assert ice.load_table("db.t").verify().ok


@pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.slow)])
def test_conditions_over_queries_and_the_clock_are_asked_once(ice: Session, mode: str) -> None:
    create(ice, mode)
    before = found(ice)
    # Which seven these are is nowhere said, and `LIMIT` may choose others each time.
    ice.sql("UPDATE db.t SET v = 'seven' WHERE id IN (SELECT id FROM range(0, 40, 1, 5) LIMIT 7)")
    after = found(ice)
    assert sorted(each[1] for each in after.values()).count("seven") == 7
    assert {key: each[2] for key, each in after.items()} == {key: each[2] for key, each in before.items()}
    ice.sql("DELETE FROM db.t WHERE at < current_timestamp() AND id IN (SELECT id FROM range(0, 40, 1, 5) LIMIT 7)")
    left = found(ice)
    assert len(left) == 33
    ice.sql(
        """MERGE INTO db.t t USING (SELECT * FROM range(20)) s ON t.id = s.id AND t.at < current_timestamp()
           WHEN MATCHED THEN UPDATE SET v = uuid(), at = current_timestamp()
           WHEN NOT MATCHED AND current_timestamp() > timestamp_seconds(0) THEN INSERT (id, v, p) VALUES (s.id, CAST(s.id AS STRING), 1)
           WHEN NOT MATCHED BY SOURCE AND t.at < current_timestamp() AND t.id > 25 THEN DELETE"""
    )
    assert set(found(ice)) == {each for each in left if each <= 25} | set(range(20))
    # Python is asked for the rows that are chosen, and for no others.
    picky = F.udf(lambda each: str(1 // (each - 1)), "string")
    ice.update("db.t", {"v": picky("id")}, "id = 2")
    assert found(ice)[2][1] == "1"
    # A random value is fine: it is made and written once, into the partition that it says.
    ice.sql("UPDATE db.t SET p = CAST(rand() * 5 AS INT), v = uuid()")
    assert len({each[1] for each in found(ice).values()}) == len(found(ice))
    assert ice.load_table("db.t").verify().ok


def test_a_merge_that_evolves_the_schema_is_one_commit(ice: Session) -> None:
    create(ice, MODES[1], 4)
    before = ice.load_table("db.t")
    rows = "SELECT id, 'new' AS v, id * 10 AS more, 1 AS op FROM range(2, 6)"
    head = f"MERGE WITH SCHEMA EVOLUTION INTO db.t t USING ({rows}) s ON t.id = s.id"
    with pytest.raises(InvalidValueError, match="more than one row"):
        ice.sql(f"{head.replace(rows, f'{rows} UNION ALL {rows}')} WHEN MATCHED THEN UPDATE SET *")
    with pytest.raises(NoSuchColumnError, match="nowhere"):
        ice.sql(f"{head} WHEN MATCHED THEN UPDATE SET more = s.more, nowhere = 1")
    assert ice.load_table("db.t").metadata_location == before.metadata_location
    # What is assigned is taken in, and nothing else; what the source lacks stays as it is, or gets its default.
    ice.sql(
        f"{head} WHEN MATCHED THEN UPDATE SET t.more = s.more WHEN NOT MATCHED THEN INSERT (id, more) VALUES (s.id, s.more)"
    )
    after = ice.load_table("db.t")
    assert [each.name for each in after.schema().fields] == ["id", "v", "at", "p", "more"]
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    ice.sql(f"{head} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    found = ice.sql("SELECT id, v, p, more, op FROM db.t ORDER BY id").collect()
    assert [tuple(each) for each in found] == [
        (0, "v0", 0, None, None),
        (1, "v1", 1, None, None),
        (2, "new", 0, 20, 1),
        (3, "new", 1, 30, 1),
        (4, "new", None, 40, 1),
        (5, "new", None, 50, 1),
    ]
    assert len(ice.load_table("db.t").metadata.metadata_log) == len(before.metadata.metadata_log) + 2
    if SPARK <= (4, 1):
        return  # Such a Spark cannot read the next statement.
    ice.sql("INSERT WITH SCHEMA EVOLUTION INTO db.t BY NAME SELECT 9L AS id, 'i' AS latest")
    assert len(ice.load_table("db.t").metadata.metadata_log) == len(before.metadata.metadata_log) + 3


def test_values_are_stored_as_spark_stores_them(ice: Session) -> None:
    create(ice, MODES[1], 2)
    ice.sql("ALTER TABLE db.t ADD COLUMN x DOUBLE")
    ice.sql("UPDATE db.t SET x = 1.5 WHERE id = 0")
    ice.sql(
        "MERGE INTO db.t t USING (SELECT * FROM range(1, 3)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = 2.5"
        " WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, 3.5)"
    )
    assert [tuple(each) for each in ice.sql("SELECT id, x FROM db.t ORDER BY id").collect()] == [
        (0, 1.5),
        (1, 2.5),
        (2, 3.5),
    ]


def test_a_row_that_a_merge_adds_has_defaults(ice: Session) -> None:
    create(ice, MODES[0], 2)
    ice.sql("ALTER TABLE db.t ADD COLUMN level INT DEFAULT 7")
    ice.sql(
        """MERGE INTO db.t t USING (SELECT * FROM range(1, 4)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET level = 1
           WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED THEN INSERT (id, level) VALUES (s.id, NULL)"""
    )
    found = ice.sql("SELECT id, level FROM db.t ORDER BY id").collect()
    assert [tuple(each) for each in found] == [(0, 7), (1, 1), (2, 7), (3, None)]


def test_a_delete_by_null_deletes_nothing_where_files_are_copied(ice: Session) -> None:
    """As Spark has it, which refuses the condition where it filters rows by it."""
    create(ice, MODES[0], 2)
    before = ice.load_table("db.t").metadata_location
    ice.sql("DELETE FROM db.t WHERE NULL")
    assert ice.load_table("db.t").metadata_location == before
    create(ice, MODES[1], 2)
    with pytest.raises(AnalysisException, match="not a boolean"):
        ice.sql("DELETE FROM db.t WHERE NULL")
    assert len(found(ice)) == 2


@pytest.mark.parametrize("mode", MODES)
def test_what_a_condition_says_of_the_source_is_not_asked_of_the_target(ice: Session, mode: str) -> None:
    create(ice, mode, 2)
    ice.sql("MERGE INTO db.t t USING (SELECT 9L AS id) s ON s.id > 5 WHEN MATCHED THEN UPDATE SET id = t.id + 100")
    assert sorted(row["id"] for row in ice.sql("SELECT id FROM db.t").collect()) == [100, 101]
    ice.sql("MERGE INTO db.t t USING (SELECT 9L AS id) s ON s.id > 5 AND t.id = 100 WHEN MATCHED THEN DELETE")
    assert [row["id"] for row in ice.sql("SELECT id FROM db.t").collect()] == [101]
