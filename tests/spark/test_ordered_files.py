"""Tasks that read one sorted file each: sorts that plans do without, and rows that are those of plain Parquet."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings as examples, strategies as st

from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings
from tests.spark.test_partition_groups import ON, nodes

TELLS = ON | {"spark.sql.iceberg.planning.preserve-data-ordering": "true"}
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "by_id": (["bucket(4, id)"], ["id"]),
    "inserted": (["bucket(4, id)"], ["id"]),
    "same": (["bucket(4, id)"], ["id asc nulls first", "v"]),
    "last": (["bucket(4, id)"], ["id asc nulls last"]),
    "down": (["bucket(4, id)"], ["id desc nulls last"]),
    "twice": (["bucket(4, id)"], ["id"]),
    "mixed": (["bucket(4, id)"], ["id"]),
    "plain": (["bucket(4, id)"], []),
    "cut": (["bucket(4, id)"], ["truncate(10, id)", "id"]),
    "floats": (["bucket(4, id)"], ["v"]),
    "texts": (["bucket(4, name)"], ["name", "id desc"]),
    "more_texts": (["bucket(4, name)"], ["name"]),
}
ROWS = 3_000


def rows_of(seed: int, count: int) -> pa.Table:
    """Rows in no order, with values that come several times, and nulls."""
    numbers = [(row * 7919 + seed) % 1009 for row in range(count)]
    names = ["é", "z", "\U0001f600", "Z", "", "\uffff"]
    return pa.table(
        {
            "id": [None if row % 97 == 0 else row - 300 for row in numbers],
            "name": [None if row % 89 == 0 else names[row % 6] * (row % 4) for row in numbers],
            "v": [float(row % 50) for row in numbers],
        }
    )


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Tables of some rows, of one file for each partition unless written twice, by us or by Spark, and the same rows as Parquet."""
    folder = tmp_path_factory.mktemp("ordered")
    with connect(new_catalog(folder), spark=spark) as session:
        for place, (name, (spec, order)) in enumerate(TABLES.items()):
            table = session.catalog.create_table(
                ("db", name),
                "id long, name string, v double",
                partition_spec=spec,
                sort_order=order,
                properties={
                    "format-version": "3",
                    "write.delete.mode": "merge-on-read",
                    "write.parquet.row-group-size-bytes": "2000",
                },
            )
            if name == "inserted":
                spark.createDataFrame(rows_of(place, ROWS)).repartition(3).createOrReplaceTempView("source")
                session.sql("INSERT INTO db.inserted SELECT * FROM source")
            else:
                table.append(rows_of(place, ROWS))
            if name == "twice":
                table.append(rows_of(100, 20))
            if name == "mixed":
                # Of one file for each partition still, not all of which are sorted in the same way.
                with table.update_sort_order() as update:
                    update.desc("id")
                table.overwrite(rows_of(place, ROWS).slice(0, 500), "id >= 0")
            if name == "same":
                table.delete("v > 40")
            session.table(("db", name)).createOrReplaceTempView(name)
            session.table(("db", name)).write.parquet(str(folder / f"{name}.parquet"))
            spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"plain_{name}")
        yield session
        for name in TABLES:
            spark.catalog.dropTempView(name)
            spark.catalog.dropTempView(f"plain_{name}")


def run(spark: Any, text: str, given: dict[str, str]) -> tuple[list[str], int]:
    """The rows, and how many sorts there are."""
    with settings(spark, given):
        frame = spark.sql(text)
        return sorted(map(str, frame.collect())), sum(
            name == "SortExec" for name in nodes(frame._jdf.queryExecution().executedPlan())
        )


def on_parquet(spark: Any, text: str) -> list[str]:
    for name in TABLES:
        text = text.replace(f" {name} ", f" plain_{name} ")
    return sorted(map(str, spark.sql(text).collect()))


JOIN = "SELECT a.id, a.v, b.v AS w FROM {} a {} JOIN {} b ON a.id = b.id"
NAMED = "SELECT a.name, a.id, b.id AS other FROM {} a JOIN {} b ON a.name = b.name WHERE a.id < -250 AND b.id > 600"
WINDOW = "SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY {}) AS n FROM {} WHERE v < 30"
CASES = [
    (JOIN.format("by_id", "INNER", "same"), 0),
    (JOIN.format("by_id", "FULL OUTER", "same"), 0),
    (JOIN.format("by_id", "LEFT", "same") + " WHERE a.v < 9", 0),
    (JOIN.format("inserted", "FULL OUTER", "same"), 0),
    (JOIN.format("by_id", "INNER", "last"), 1),
    (JOIN.format("down", "INNER", "same"), 1),
    (JOIN.format("twice", "INNER", "same"), 1),
    (JOIN.format("mixed", "INNER", "same"), 1),
    (JOIN.format("plain", "INNER", "same"), 1),
    (JOIN.format("cut", "INNER", "same"), 1),
    (JOIN.format("floats", "INNER", "same"), 1),
    (NAMED.format("texts", "more_texts"), 0),
    ("SELECT id, count(DISTINCT name) AS n FROM by_id GROUP BY id", 0),
    (WINDOW.format("v", "same"), 1),
]
"""Queries, and how many sorts they need; the last window is by a column whose order Spark has in another way."""


@pytest.mark.parametrize(("text", "needed"), CASES)
def test_order_spares_sorts(ice: Session, text: str, needed: int) -> None:
    expected = on_parquet(ice.spark, text)
    assert run(ice.spark, text, TELLS) == (expected, needed)
    # Also where Spark cuts files at their row groups, and gives the largest parts first.
    pieces = TELLS | {"spark.sql.files.maxPartitionBytes": "1500", "spark.sql.files.openCostInBytes": "0"}
    assert run(ice.spark, text, pieces) == (expected, needed)
    rows, without = run(ice.spark, text, ON)
    assert rows == expected
    assert without >= needed


def test_it_must_be_asked_for(ice: Session) -> None:
    text = JOIN.format("by_id", "INNER", "same")
    assert run(ice.spark, text, ON)[1] == 2
    assert run(ice.spark, text, TELLS | {door.ENABLED: "false"})[1] == 2


NAMES = st.sampled_from([name for name in TABLES if "texts" not in name])


@examples(max_examples=25)
@given(
    left=NAMES,
    right=NAMES,
    how=st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL OUTER"]),
    above=st.sampled_from(["a.v > 10", "a.id > 100", "b.id IS NOT NULL", "true"]),
    parts=st.sampled_from(["700", "5000", "128m"]),
)
def test_any_join_has_the_rows_of_plain_files(
    ice: Session, left: str, right: str, how: str, above: str, parts: str
) -> None:
    text = f"{JOIN.format(left, how, right)} WHERE {above}"
    given_too = {"spark.sql.files.maxPartitionBytes": parts, "spark.sql.files.openCostInBytes": "0"}
    assert run(ice.spark, text, TELLS | given_too)[0] == on_parquet(ice.spark, text)
