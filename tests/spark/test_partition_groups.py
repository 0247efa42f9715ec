"""Joins, aggregates and windows by partitions: exchanges that plans do without, and rows that are those of plain Parquet."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

ON = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
COARSER = {"spark.sql.requireAllClusterKeysForCoPartition": "false"}
FEWER = {"spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "true"}
SPECS = {
    "wide": ["bucket(16, id)"],
    "same": ["bucket(16, id)"],
    "eighth": ["bucket(8, id)"],
    "twelfth": ["bucket(12, id)"],
    "odd": ["bucket(7, id)"],
    "daily": ["day(moment)", "bucket(4, name)"],
    "days": ["day(moment)"],
    "named": ["name"],
    "mixed": ["name", "bucket(16, id)"],
    "cut": ["truncate(5, name)"],
    "whole": [],
}
ROWS = 160


def rows_of(start: int, count: int) -> pa.Table:
    """Rows with values that come several times, and nulls."""
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": [None if row % 23 == 0 else row % 60 for row in numbers],
            "name": [None if row % 19 == 0 else f"name-{row % 12}" for row in numbers],
            "moment": pa.array(
                [None if row % 29 == 0 else (19000 + row % 9) * 86_400_000_000 + row % 3 for row in numbers],
                pa.timestamp("us"),
            ),
            "v": [float(row) for row in numbers],
        }
    )


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A table of some rows for each way to partition, the same rows as Parquet, and a table that was partitioned anew."""
    folder = tmp_path_factory.mktemp("tables")
    with connect(new_catalog(folder), spark=spark) as session:
        for place, (name, spec) in enumerate(SPECS.items()):
            table = session.catalog.create_table(
                ("db", name),
                "id long, name string, moment timestamp, v double",
                partition_spec=spec,
                properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
            )
            table.append(rows_of(place * 7, ROWS // 2))
            table.append(rows_of(place * 7 + ROWS // 2, ROWS // 2))
            if name in ("wide", "named"):
                table.delete("v >= 90 and v < 96")
            if name == "mixed":
                session.sql("ALTER TABLE db.mixed DROP PARTITION FIELD name")
                table.refresh()
                table.append(rows_of(400, 40))
            session.table(("db", name)).createOrReplaceTempView(name)
            session.table(("db", name)).write.parquet(str(folder / f"{name}.parquet"))
            spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"plain_{name}")
        yield session
        for name in SPECS:
            spark.catalog.dropTempView(name)
            spark.catalog.dropTempView(f"plain_{name}")


def nodes(plan: Any) -> Iterator[str]:
    """Names of the nodes of a physical plan, also of a finished adaptive one."""
    name = plan.getClass().getSimpleName()
    yield name
    inner = plan.finalPhysicalPlan() if name == "AdaptiveSparkPlanExec" else None
    inner = plan.plan() if name.endswith("QueryStageExec") else inner
    for child in [inner] if inner is not None else [plan.children().apply(i) for i in range(plan.children().size())]:
        yield from nodes(child)


def exchanges(frame: Any) -> int:
    return list(nodes(frame._jdf.queryExecution().executedPlan())).count("ShuffleExchangeExec")


def run(spark: Any, text: str, given: dict[str, str]) -> tuple[list[str], int]:
    with settings(spark, ON | given):
        frame = spark.sql(text)
        return sorted(map(str, frame.collect())), exchanges(frame)


def on_parquet(spark: Any, text: str) -> list[str]:
    for name in SPECS:
        text = text.replace(f" {name} ", f" plain_{name} ")
    return sorted(map(str, spark.sql(text).collect()))


TOTAL = 1
"""The exchange of sums over all rows."""
JOIN = "SELECT a.id, a.v, b.v AS w FROM {} a {} JOIN {} b ON {}"
CASES: list[tuple[str, dict[str, str], int]] = [
    (JOIN.format("wide", "INNER", "same", "a.id = b.id"), {}, 0),
    (JOIN.format("wide", "FULL OUTER", "same", "a.id = b.id"), {}, 0),
    (JOIN.format("wide", "LEFT", "same", "a.id = b.id") + " WHERE a.v > 30 AND a.id IN (3, 17, 40)", {}, 0),
    (JOIN.format("wide", "RIGHT", "same", "a.id = b.id AND a.v > 60"), {}, 0),
    (JOIN.format("wide", "INNER", "eighth", "a.id = b.id"), {}, 2),
    (JOIN.format("wide", "INNER", "eighth", "a.id = b.id"), FEWER, 0),
    (JOIN.format("wide", "FULL OUTER", "twelfth", "a.id = b.id"), FEWER, 0),
    (JOIN.format("wide", "INNER", "odd", "a.id = b.id"), FEWER, 2),
    (JOIN.format("wide", "INNER", "whole", "a.id = b.id"), {}, 2),
    (JOIN.format("wide", "INNER", "same", "a.id = b.id AND a.name = b.name"), {}, 2),
    (JOIN.format("wide", "INNER", "same", "a.id = b.id AND a.name = b.name"), COARSER, 0),
    (JOIN.format("daily", "INNER", "days", "a.moment = b.moment"), {}, 0),
    (JOIN.format("daily", "INNER", "days", "a.moment = b.moment AND a.v = b.v"), COARSER, 0),
    (JOIN.format("named", "LEFT", "named", "a.name = b.name") + " WHERE a.name < 'name-4'", {}, 0),
    (JOIN.format("named", "INNER", "cut", "a.name = b.name"), {}, 2),
    (JOIN.format("mixed", "INNER", "wide", "a.id = b.id"), {}, 0),
    (JOIN.format("mixed", "INNER", "named", "a.name = b.name"), {}, 2),
    ("SELECT sum(v) FROM wide WHERE id IN (SELECT id FROM same WHERE v > 90)", {}, TOTAL),
    ("SELECT a.v FROM wide a LEFT ANTI JOIN same b ON a.id = b.id", {}, 0),
    ("SELECT a.id, sum(a.v + b.v + c.v) FROM wide a JOIN same b ON a.id = b.id JOIN mixed c ON a.id = c.id GROUP BY a.id", {}, 0),
    ("SELECT a.id, count(*) FROM wide a JOIN eighth b ON a.id = b.id JOIN twelfth c ON c.id = b.id GROUP BY 1", FEWER, 0),
    ("SELECT id, count(*), sum(v) FROM wide GROUP BY id", {}, 0),
    ("SELECT id, name, max(v) FROM wide GROUP BY id, name", {}, 0),
    ("SELECT DISTINCT name FROM named ", {}, 0),
    ("SELECT name, count(DISTINCT v) FROM cut GROUP BY name", {}, 0),
    ("SELECT v, count(*) FROM wide GROUP BY v", {}, 1),
    ("SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY v) FROM wide ", {}, 0),
    ("SELECT a.id, n, b.v FROM (SELECT id, count(*) AS n FROM wide GROUP BY id) a JOIN same b ON a.id = b.id", {}, 0),
    ("SELECT a.id, n, b.v FROM (SELECT id, name, count(*) AS n FROM mixed GROUP BY id, name) a JOIN same b ON a.id = b.id", {}, 0),
    ("SELECT a.name, n, b.v FROM (SELECT moment, name, count(*) AS n FROM daily GROUP BY 1, 2) a JOIN days b ON a.moment = b.moment", {}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "most"), CASES)
def test_partitions_spare_exchanges(ice: Session, text: str, given: dict[str, str], most: int) -> None:
    rows, count = run(ice.spark, text, given)
    assert rows == on_parquet(ice.spark, text)
    assert count == most


def test_settings_ask_for_it(ice: Session) -> None:
    """Without Java, and without Iceberg's setting, exchanges are where they were."""
    text = "SELECT id, sum(v) FROM wide GROUP BY id"
    for off in ({"spark.sql.iceberg.planning.preserve-data-grouping": "false"}, {door.ENABLED: "false"}):
        rows, count = run(ice.spark, text, off)
        assert (rows, count) == (on_parquet(ice.spark, text), 1)
