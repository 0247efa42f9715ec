"""Joins, aggregates and windows by partitions: exchanges that plans do without, and rows that are those of plain Parquet."""

from collections import Counter
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

ON = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    # As many as there are tasks of groups, so that Spark could join these with rows that an exchange divides, if it took them for alike.
    "spark.sql.shuffle.partitions": "4",
}
COARSER = {"spark.sql.requireAllClusterKeysForCoPartition": "false"}
FEWER = {"spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "true"}
SHUFFLED = {"spark.sql.sources.v2.bucketing.shuffle.enabled": "true"}
AT_ONCE = {"spark.sql.adaptive.enabled": "false"}
HASHED = {"spark.sql.join.preferSortMergeJoin": "false"}
BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "4000", "spark.sql.adaptive.autoBroadcastJoinThreshold": "20000"}
SPECS = {
    "wide": ["bucket(16, id)"],
    "same": ["bucket(16, id)"],
    "eighth": ["bucket(8, id)"],
    "twelfth": ["bucket(12, id)"],
    "odd": ["bucket(7, id)"],
    "daily": ["day(moment)", "bucket(4, name)"],
    "other": ["bucket(4, name)", "day(moment)"],
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
COUNTED = "SELECT a.id, n FROM wide a JOIN (SELECT id, count(*) AS n FROM same GROUP BY id) b ON a.id = b.id"
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
    (JOIN.format("wide", "INNER", "same", "a.id = b.id"), AT_ONCE, 0),
    (JOIN.format("wide", "INNER", "same", "a.id = b.id"), SHUFFLED, 0),
    (JOIN.format("wide", "INNER", "whole", "a.id = b.id"), SHUFFLED, 2),
    (JOIN.format("wide", "LEFT", "same", "a.id = b.id").replace("SELECT", "SELECT /*+ SHUFFLE_HASH(b) */"), {}, 0),
    (JOIN.format("wide", "INNER", "wide", "a.id = b.id"), {}, 0),
    (JOIN.format("wide", "INNER", "same", "a.id <=> b.id"), {}, 2),
    (JOIN.format("wide", "LEFT", "same", "a.id = b.id AND b.id = 10000"), {}, 1),
    (JOIN.format("daily", "INNER", "daily", "a.name = b.name AND a.moment = b.moment"), {}, 0),
    (JOIN.format("daily", "FULL OUTER", "other", "a.name = b.name AND a.moment = b.moment"), {}, 0),
    (JOIN.format("wide", "INNER", "same", "a.id = b.id") + " JOIN whole c ON c.id = b.id", {}, 2),
    (JOIN.format("wide", "INNER", "same", "a.id = b.id") + " JOIN mixed c ON b.id = c.id JOIN wide d ON d.id = c.id", {}, 0),
    ("WITH p AS ({}), q AS ({}) SELECT p.id, q.v FROM p JOIN q ON p.id = q.id".format(
        JOIN.format("wide", "INNER", "same", "a.id = b.id"), JOIN.format("odd", "LEFT", "odd", "a.id = b.id")), {}, 2),
    (f"WITH p AS ({COUNTED}) SELECT x.id, y.id FROM p x JOIN p y ON x.id = y.id", {}, 0),
    (f"WITH p AS ({COUNTED}) SELECT x.id, y.id FROM p x JOIN p y ON x.id = y.n AND x.n = y.id", COARSER, 2),
    ("SELECT a.x, b.y FROM (SELECT id AS x FROM wide) a LEFT JOIN (SELECT id AS y, v FROM same WHERE v > 50) b ON x = y", {}, 0),
    ("SELECT b.id, count(a.v) FROM wide a RIGHT JOIN same b ON a.id = b.id GROUP BY b.id", {}, 0),
    ("SELECT b.id, count(a.v) FROM wide a LEFT JOIN same b ON a.id = b.id GROUP BY b.id", {}, 1),
    ("SELECT a.id, count(b.v) FROM wide a FULL JOIN same b ON a.id = b.id GROUP BY a.id", {}, 1),
    ("SELECT id, count(*) FROM (SELECT id FROM wide UNION ALL SELECT id FROM same ) GROUP BY id", {}, 1),
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


COLUMNS = ("id", "name", "moment", "v")
KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
FILTERS = ("v > 40", "id % 3 = 1", "id IS NULL OR id > 20", "name < 'name-5'", "v < 0")
TABLES_OF = {
    "id": ["wide", "same", "wide", "same", "eighth", "twelfth", "odd", "mixed", "whole"],
    "name": ["named", "named", "cut", "mixed", "other", "daily"],
    "moment": ["daily", "days", "days", "other", "whole"],
}


@st.composite
def relations(draw: st.DrawFn, key: str, joins: int) -> str:
    """Queries over tables `{name}` with all their columns, mostly joined by one of them, perhaps that of the side that has nulls."""
    if joins == 0:
        text = "SELECT * FROM {" + draw(st.sampled_from(TABLES_OF[key])) + "}"
        text += draw(st.sampled_from(["", "", "", *(f" WHERE {one}" for one in FILTERS)]))
    else:
        kind = draw(st.sampled_from(KINDS))
        keys = draw(st.sampled_from([[key], [key], [key], [key, "name"], ["moment", key], ["v"]]))
        on = " AND ".join(f"a.{each} {draw(st.sampled_from(['=', '=', '=', '=', '<=>']))} b.{each}" for each in keys)
        on += draw(st.sampled_from(["", "", " AND a.v < b.v"]))
        sides = ["a", "b"] if kind in KINDS[:4] else ["a"]
        columns = ", ".join(f"{draw(st.sampled_from(sides))}.{column}" for column in COLUMNS)
        at_left = draw(st.integers(0, joins - 1))
        left, right = draw(relations(key, at_left)), draw(relations(key, joins - 1 - at_left))
        text = f"SELECT {columns} FROM ({left}) a {kind} JOIN ({right}) b ON {on}"
    match draw(st.sampled_from(["", "", "", "", "group", "window", "union"])):
        case "group":
            keys = draw(st.sampled_from([[key], [key], [key, "v"], ["name"]]))
            columns = ", ".join(column if column in keys else f"max({column}) AS {column}" for column in COLUMNS)
            return f"SELECT {columns} FROM ({text}) GROUP BY {', '.join(keys)}"
        case "window":
            return f"SELECT id, name, moment, sum(v) OVER (PARTITION BY {key}) AS v FROM ({text})"
        case "union":
            return f"{text} UNION ALL SELECT * FROM ({draw(relations(key, 0))})"
    return text


@examples(max_examples=15)
@given(
    text=st.sampled_from(sorted(TABLES_OF)).flatmap(lambda key: relations(key, 1) | relations(key, 2)),
    given_too=st.lists(st.sampled_from([COARSER, FEWER, AT_ONCE, HASHED, BROADCAST]), max_size=4, unique_by=id),
)
def test_any_query_has_the_rows_of_plain_files(ice: Session, text: str, given_too: list[dict[str, str]]) -> None:
    with settings(ice.spark, ON | {key: value for each in given_too for key, value in each.items()}):
        rows = Counter(map(str, ice.spark.sql(text.format_map({name: name for name in SPECS})).collect()))
    plain = ice.spark.sql(text.format_map({name: f"plain_{name}" for name in SPECS})).collect()
    assert rows == Counter(map(str, plain))
