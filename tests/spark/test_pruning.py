"""Later filters of a DataFrame choose files: for each kind of predicate, through each transform and by bounds.

The measure is the plan of the same text by plain Python: Spark's filter must leave no more files than that.
"""

import datetime as dt
import re
from collections.abc import Iterator
from functools import reduce
from itertools import cycle
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812  # its usual name
)

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import Expression, parse_expression
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.reading import new_catalog, planned

FIRST = dt.datetime(2020, 1, 1, 3, 30)
SPECS = {
    "unpartitioned": [],
    "identity": ["name", "day"],
    "bucket": ["bucket(8, id)", "bucket(8, name)"],
    "truncate": ["truncate(10, id)", "truncate(2, name)"],
    "year": ["years(ts)"],
    "month": ["months(ts)", "months(day)"],
    "day": ["days(ts)"],
    "hour": ["hours(ts)", "hours(zoned)"],
    "void": ["void(id)"],
}
PREDICATES = {
    "id = 57": True,
    "57 = id": True,
    "id <=> 57": True,
    "id in (3, 57)": True,
    "id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)": True,
    "id < 12": True,
    "id <= 12": True,
    "id > 100": True,
    "id >= 100": True,
    "12 > id": True,
    "id between 30 and 40": True,
    "not (id < 100)": True,
    "id = 57 or id = 3": True,
    "not (id > 10 and id < 200)": True,
    "id = 57 and length(name) = 6": True,
    "name = 'n057-x'": True,
    "name like 'n05%'": True,
    "name in ('n001-x', 'n002-x')": True,
    "name is null": True,
    "name is not null": True,
    "flag": True,
    "not flag": True,
    "day = date'2021-02-20'": True,
    "day >= '2023-01-01'": True,
    "ts = timestamp_ntz'2020-01-30 03:30:00'": True,
    "ts < timestamp_ntz'2020-06-01 00:00:00'": True,
    "zoned >= timestamp'2023-06-01 00:00:00+00:00'": True,
    "price = 5.25": True,
    "price > 20": True,
    "score > 1000.5": True,
    "isnan(score)": True,
    "score <= 3.5": True,
    "code = X'0007'": True,
    f"key = '{UUID(bytes=bytes([7]) * 16)}'": True,
    "part.n = 57": True,
    "part.n > 100 and part.n is not null": True,
    "year(ts) = 2021": True,
    "year(zoned) in (2020, 2022)": True,
    "2021 >= year(day)": True,
    "year(ts) > 9999999": True,
    "year(ts) = 2021 and month(ts) = 2": True,
    "year(zoned) = 2021 and month(zoned) = 2 and day(zoned) = 6": True,
    "to_date(ts) = date'2020-01-30'": True,
    "cast(zoned as date) < date'2020-06-01'": True,
    "date_trunc('day', zoned) = timestamp'2020-01-25 00:00:00'": True,
    "date_trunc('month', ts) >= timestamp'2023-01-01 00:00:00'": True,
    "date_trunc('hour', zoned) <= timestamp'2020-03-01 03:10:00'": True,
    "trunc(day, 'quarter') = date'2021-01-01'": True,
    "trunc(day, 'week') in (date'2020-01-06', date'2020-01-07')": True,
    "not (year(ts) < 2023)": True,
    "year(ts) <> 2021": False,
    "month(ts) = 2": False,
    "hour(ts) = 3": False,
    "id + 1 = 57": False,
    "id = 57 or length(name) = 3": False,
    "name like '%7%'": True,
}
"""What Spark is asked, and whether bounds of files can rule some out."""

COUNT = 120


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        yield session


def rows(ids: range) -> Any:
    days = [each * 12 for each in ids]
    moments = [FIRST + dt.timedelta(days=each) for each in days]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if each >= 110 else f"n{each:03}-x" for each in ids],
            "flag": [each < 20 for each in ids],
            "day": pa.array([each.date() for each in moments]),
            "ts": pa.array(moments, pa.timestamp("us")),
            "zoned": pa.array([each.replace(tzinfo=dt.UTC) for each in moments], pa.timestamp("us", "UTC")),
            "price": pa.array([f"{each / 4:.2f}" for each in ids]).cast(pa.decimal128(9, 2)),
            "score": [float("nan") if each == 60 else each / 2 for each in ids],
            "code": [each.to_bytes(2) for each in ids],
            "key": pa.array([bytes([each]) * 16 for each in ids], pa.uuid()),
            "part": [{"n": each} for each in ids],
        }
    )


def make(ice: Session, name: str) -> Table:
    """A table by one of the specs, with rows in twelve files or more; made once."""
    if ice.catalog.table_exists(("db", name)):
        return ice.load_table(f"db.{name}")
    made = ice.catalog.create_table(
        ("db", name),
        schema="id long, name string, flag boolean, day date, ts timestamp, zoned timestamptz, price decimal(9, 2), "
        "score double, code binary, key uuid, part struct<n: long>",
        partition_spec=SPECS[name],
        properties={"format-version": "2"},
    )
    with made.transaction() as tx:
        for start in range(0, COUNT, 10):
            tx.append(rows(range(start, start + 10)))
    return made


@pytest.fixture(
    params=[pytest.param(each, marks=pytest.mark.slow if each in ("year", "month", "void") else ()) for each in SPECS]
)
def table(ice: Session, request: pytest.FixtureRequest) -> Table:
    return make(ice, request.param)


def test_each_predicate_chooses_files(ice: Session, table: Table) -> None:
    everything = len(list(table.scan().plan_files()))
    wrong = {}
    sources = {table.schema().names_by_id[field.source_id] for field in table.spec().fields}
    for text, rules_out in PREDICATES.items():
        if sources and not sources & set(re.findall(r"\w+", text)):
            continue  # partitions say nothing of it, and bounds are asked where there are no partitions
        counts = planned(ice, ice.table(table.name()).filter(text))
        skipped = counts.data_files_skipped_by_partition + counts.data_files_skipped_by_metrics
        own = _own(text)
        most = everything if own is None else len(list(table.scan(own).plan_files()))
        is_right = counts.result_data_files + skipped == counts.data_files and counts.result_data_files <= most
        if not is_right or (counts.result_data_files < everything) is not rules_out:
            wrong[text] = (counts.result_data_files, most, everything)
    assert wrong == {}


def test_what_is_left_is_right(ice: Session) -> None:
    """Rows are the same with and without files ruled out; NaN is above all numbers for Spark."""
    frame = ice.table(make(ice, "unpartitioned").name())
    kept = ice.spark.createDataFrame(frame.collect(), frame.schema)
    texts = [*PREDICATES, "score > 1e300", "score = double('NaN')", "score >= double('NaN')", "score < double('NaN')"]
    assert _kept(frame, texts) == _shown(kept, texts)


ZONED = {
    "UTC": "2020-01-01",
    "America/New_York": "2020-11-01",
    "America/St_Johns": "2009-11-01",  # 00:01 becomes 23:01 of the day before
    "Australia/Lord_Howe": "2020-04-05",  # by half an hour
    "Pacific/Apia": "2011-12-30",  # a day that never was: the 31st came after the 29th
}
"""A day of each zone on which something is strange."""


@pytest.mark.parametrize(
    "zone",
    [
        "America/New_York",
        "Pacific/Apia",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("UTC", "America/St_Johns", "Australia/Lord_Howe")),
    ],
)
def test_functions_of_time_follow_the_zone(ice: Session, zone: str) -> None:
    """A file for every moment around the day, so that one too few would be seen; filters must keep what they do as columns."""
    day = ZONED[zone]
    start = dt.datetime.fromisoformat(day) - dt.timedelta(hours=26)
    moments = [start + dt.timedelta(minutes=100 * each) for each in range(40)]
    local = [each.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC) for each in moments]
    local += [each + dt.timedelta(minutes=each.minute + 3) for each in local[10:25]]
    name = ("db", re.sub(r"\W", "_", zone))
    table = ice.catalog.create_table(
        name, "id long, zoned timestamptz, ts timestamp", properties={"format-version": "2"}
    )
    with table.transaction() as tx:
        for number, (one, other) in enumerate(zip(local, cycle(moments))):
            tx.append(
                pa.table(
                    {
                        "id": [number],
                        "zoned": pa.array([one], pa.timestamp("us", "UTC")),
                        "ts": pa.array([other], pa.timestamp("us")),
                    }
                )
            )
    following = (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()
    texts = [
        text.format(column=column, day=day, following=following)
        for column in ("zoned", "ts")
        for text in (
            "cast({column} as date) = date'{day}'",
            "cast({column} as date) >= date'{following}'",
            "date_trunc('day', {column}) = timestamp'{day} 00:00:00'",
            "date_trunc('hour', {column}) = timestamp'{day} 01:00:00'",
            "date_trunc('hour', {column}) < timestamp'{day} 02:00:00'",
            "date_trunc('week', {column}) <= timestamp'{day} 00:00:00'",
            "date_trunc('month', {column}) >= timestamp'{day} 00:00:00'",
            "year({column}) = year(date'{day}') and month({column}) = month(date'{following}')",
            "trunc({column}, 'MM') = trunc(date'{following}', 'MM')",
            "cast({column} as timestamp) >= timestamp'{day} 01:30:00'",
            "cast({column} as timestamp_ntz) < timestamp_ntz'{day} 01:30:00'",
        )
    ]
    counted = texts.index(f"date_trunc('hour', zoned) < timestamp'{day} 02:00:00'")
    before = ice.spark.conf.get("spark.sql.session.timeZone")
    ice.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = ice.table(name)
        expected, kept = _shown(frame, texts), _kept(frame, texts)
        files = planned(ice, ice.table(name).filter(texts[counted])).result_data_files
    finally:
        ice.spark.conf.set("spark.sql.session.timeZone", before)
    assert kept == expected
    right = sum(place == counted for place, _ in expected)
    assert files == right if zone == "UTC" else files >= right


def test_joins_and_views_choose_files(ice: Session) -> None:
    frame = ice.table(make(ice, "unpartitioned").name())
    frame.createOrReplaceTempView("pruned")
    other = ice.spark.range(57, 58).withColumnRenamed("id", "other")
    for query in (
        ice.spark.sql("SELECT count(*) FROM pruned WHERE id = 57"),
        frame.filter("id < 10").join(other, frame.id == other.other),
        frame.select("name", "id").filter("id > 5").select("id").filter("id < 9"),
    ):
        query.collect()
        assert ice.reports[-1].counts.result_data_files == 1


def _own(text: str) -> Expression | None:
    """The same in the words of tables, where they have words for it; NaN is above all numbers only for Spark."""
    if "score >" in text:
        return None
    words = text.replace("not flag", "flag = false") if "not flag" in text else text.replace("flag", "flag = true")
    try:
        return parse_expression(words.replace("date'", "'"))
    except InvalidExpressionError:
        return None


def _kept(frame: DataFrame, texts: list[str]) -> list[tuple[int, int]]:
    """The ids that each condition leaves as a filter, all asked for by one job without a shuffle."""
    left = [frame.filter(text).select(F.lit(place), "id") for place, text in enumerate(texts)]
    return sorted(tuple(row) for row in reduce(DataFrame.union, left).collect())


def _shown(frame: DataFrame, texts: list[str]) -> list[tuple[int, int]]:
    """The ids for which each condition is true as a column."""
    rows = frame.select("id", *(F.expr(text).alias(str(place)) for place, text in enumerate(texts))).collect()
    return sorted((place, row["id"]) for row in rows for place in range(len(texts)) if row[str(place)])


def test_the_text_null_is_a_value_beside_null_in_a_long_list(ice: Session) -> None:
    ice.sql("CREATE OR REPLACE TABLE lake.db.texts (s STRING)")
    for text in ("null", "other"):
        ice.load_table("db.texts").append(pa.table({"s": [text]}))
    listed = ", ".join(f"'x{number}'" for number in range(20))
    condition = f"s IN ({listed}, 'null', NULL)"
    assert [row["s"] for row in ice.sql(f"SELECT s FROM lake.db.texts WHERE {condition}").collect()] == ["null"]
    ice.sql(f"DELETE FROM lake.db.texts WHERE {condition}")
    assert [row["s"] for row in ice.sql("SELECT s FROM lake.db.texts").collect()] == ["other"]
