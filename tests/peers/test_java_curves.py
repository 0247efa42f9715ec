"""Java's own rewrites along curves: its rows come in the order of our keys by bytes."""

import random
from typing import Any

import pyarrow as pa
import pytest

from icefloe.maintenance import ByteKeys, Curve, CurveColumn
from icefloe.schema import schema_to_arrow
from icefloe.table import Table
from tests.peers.lake import Lake

NAMES = ("whole", "long", "ratio", "name", "day", "zoned")
DDL = "whole INT, `long` BIGINT, ratio DOUBLE, name STRING, day DATE, zoned TIMESTAMPTZ"


def rows(count: int = 200) -> list[dict[str, Any]]:
    """Values of all sizes and signs, nulls among them."""
    draw = random.Random(1)

    def some(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    return [
        {
            "whole": some(draw.randint(-(2**31), 2**31 - 1) >> draw.randint(0, 31)),
            "long": some(draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 63)),
            "ratio": some(draw.choice((0.0, -1.5, 1e-300, draw.gauss(0, 1e6), float("inf"), float("nan")))),
            "name": some("".join(draw.choice("aäz0€") for _ in range(draw.randint(0, 9)))),
            "day": some(draw.randint(-40_000, 40_000)),
            "zoned": some(draw.randint(-(10**15), 10**15)),
        }
        for _ in range(count)
    ]


def written(table: Table) -> None:
    """Rows in several files."""
    schema = schema_to_arrow(table.schema())
    plain = {"day": pa.int32(), "zoned": pa.int64()}
    data = rows()
    columns = [
        pa.array([row[name] for row in data], plain.get(name, schema.field(name).type)).cast(schema.field(name).type)
        for name in NAMES
    ]
    whole = pa.table(columns, schema=schema)
    for first in range(0, len(whole), 50):
        table.append(whole.slice(first, 50))


@pytest.mark.parametrize("curve", Curve)
def test_its_rows_are_in_the_order_of_our_keys(lake: Lake, curve: Curve) -> None:
    table = lake.create(2, DDL)
    for names in (("whole", "long"), ("ratio", "name", "zoned"), ("day", "name")):
        table.overwrite(schema_to_arrow(table.schema()).empty_table())
        written(table)
        lake.java.sql(
            f"CALL {lake.their_name(table).split('.')[0]}.system.rewrite_data_files(table => '{lake.their_name(table)}',"
            f" sort_order => '{curve}({', '.join(names)})', options => map('rewrite-all', 'true'))"
        )
        [task] = table.refresh().scan().plan_files()
        data = table.scan().to_arrow()
        columns = tuple(CurveColumn((name,), table.schema().find_field(name).field_type) for name in names)
        keys = ByteKeys(curve, columns).of(data).to_pylist()
        assert task.file.record_count == len(keys) == 200
        assert keys == sorted(keys)
        assert len(set(keys)) > 100
