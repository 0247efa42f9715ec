"""Filters by partition transforms in SQL: the rows are those that Spark finds by itself, and files are ruled out."""

import datetime as dt
import operator
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from tests.spark.reading import new_catalog, planned

ROWS = 24
COLUMNS = "n int, l long, s string, b binary, d date, t timestamp, z timestamptz"
CALLS = (
    *(f"bucket(16, {name})" for name in "nlsbdtz"),
    *(f"truncate(10, {name})" for name in "nl"),
    *(f"truncate(2, {name})" for name in "sb"),
    *(f"{unit}({name})" for unit in ("years", "months", "days") for name in "dtz"),
    *(f"hours({name})" for name in "tz"),
)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    rng = random.Random(7)
    moments = [dt.datetime(1965, 1, 1) + dt.timedelta(seconds=rng.randrange(3_000_000_000)) for _ in range(ROWS)]
    numbers = [rng.randrange(-1000, 1000) for _ in range(ROWS)]
    texts = ["".join(rng.choices("añ😀z", k=3)) for _ in range(ROWS)]
    columns = {
        "n": pa.array(numbers, pa.int32()),
        "l": pa.array([number * 7 for number in numbers], pa.int64()),
        "s": pa.array(texts),
        "b": pa.array([text.encode() for text in texts], pa.binary()),
        "d": pa.array([moment.date() for moment in moments]),
        "t": pa.array(moments, pa.timestamp("us")),
        "z": pa.array(moments, pa.timestamp("us", "UTC")),
    }
    rows = pa.concat_tables(
        [pa.table(columns), pa.table({name: [None] for name in columns}).cast(pa.table(columns).schema)]
    )
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        spec = [f"bucket(16, {name})" for name in columns]
        table = session.catalog.create_table("db.t", COLUMNS, partition_spec=spec, properties={"format-version": "3"})
        table.append(rows)
        yield session


@pytest.mark.parametrize("call", CALLS)
def test_files_are_ruled_out_and_rows_are_not(ice: Session, call: str) -> None:
    shown = ice.sql(f"SELECT l, system.{call} AS value FROM db.t").collect()
    values = sorted({row.value for row in shown if row.value is not None}, key=lambda value: value)
    chosen = values[len(values) // 3]
    text = f"X'{chosen.hex()}'" if isinstance(chosen, bytes) else f"'{chosen}'" if isinstance(chosen, str) else None
    literal = text or (f"date'{chosen}'" if isinstance(chosen, dt.date) else str(chosen))
    for test, holds in {"=": operator.eq, "<": operator.lt}.items():
        frame = ice.sql(f"SELECT l FROM db.t WHERE system.{call} {test} {literal}")
        counts = planned(ice, frame)
        expected = [row.l for row in shown if row.value is not None and holds(row.value, chosen)]
        assert sorted(row.l for row in frame.collect()) == sorted(expected)
        if test == "=":
            assert counts.result_data_files <= len(expected) < ROWS, counts


def test_what_only_looks_like_a_transform_rules_nothing_out(ice: Session) -> None:
    for condition in (
        "system.bucket(16, CAST(l AS STRING)) >= 0",
        "system.bucket(16, l + 1) >= 0",
        "system.truncate(10, n + 1) > -5000",
        "substring(s, 2, 1) >= ''",
        "year(d) - 1969 > -100",
    ):
        frame = ice.sql(f"SELECT l FROM db.t WHERE {condition}")
        assert planned(ice, frame).result_data_files >= ROWS, condition
        assert len(frame.collect()) == ROWS, condition
