"""Statistics never rule out a matching row and never promise what a row does not keep, whatever the writer left out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError
from icefloe.expressions.evaluate import value_of
from icefloe.partitioning import PartitionSpec, partition_type, transforms as tr
from icefloe.schema import Schema, truncate_lower, truncate_upper, types
from tests.expressions.rows import Row, arrow_array
from tests.strategies import (
    FILTER_SCHEMA,
    common_values_of,
    expressions,
    filter_rows,
    filter_specs,
)


@dataclass
class Columns:
    """Statistics of files, by field id: lists with one entry per file, None where unknown."""

    records: list[int | None]
    values: dict[int, list[int | None]] = field(default_factory=dict)
    nulls: dict[int, list[int | None]] = field(default_factory=dict)
    nans: dict[int, list[int | None]] = field(default_factory=dict)
    lower: dict[int, list[Any]] = field(default_factory=dict)
    upper: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.records)

    @property
    def record_counts(self) -> Any:
        return pa.array(self.records, pa.int64())

    def value_counts(self, field_id: int) -> Any | None:
        return _array(self.values.get(field_id))

    def null_counts(self, field_id: int) -> Any | None:
        return _array(self.nulls.get(field_id))

    def nan_counts(self, field_id: int) -> Any | None:
        return _array(self.nans.get(field_id))

    def lower_bounds(self, field_id: int, kind: types.IcebergType) -> Any | None:
        return arrow_array(self.lower[field_id], kind) if field_id in self.lower else None

    def upper_bounds(self, field_id: int, kind: types.IcebergType) -> Any | None:
        return arrow_array(self.upper[field_id], kind) if field_id in self.upper else None


def _array(counts: list[int | None] | None) -> Any | None:
    return None if counts is None else pa.array(counts, pa.int64())


def signed(value: UUID) -> tuple[int, int]:
    """The order of Java's UUID: two signed halves."""
    first, second = value.int >> 64, value.int & (2**64 - 1)
    return first - (first >> 63 << 64), second - (second >> 63 << 64)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def bounds_of(values: Sequence[Any], kind: types.IcebergType, draw: st.DrawFn) -> tuple[Any, Any]:
    """Bounds as some writer may give them: exact, cut, in Java's order of uuids, one or both missing."""
    ordinary = [value for value in values if value is not None and not is_nan(value)]
    if (
        isinstance(kind, types.FloatType | types.DoubleType)
        and any(map(is_nan, values))
        and draw(st.integers(0, 5)) == 0
    ):
        return math.nan, math.nan  # As old ORC writers did.
    if not ordinary:
        return None, None
    order: Callable[[Any], Any] | None = signed if isinstance(kind, types.UUIDType) and draw(st.booleans()) else None
    lower, upper = min(ordinary, key=order), max(ordinary, key=order)
    if isinstance(kind, types.StringType | types.BinaryType) and draw(st.booleans()):
        width = draw(st.integers(1, 3))
        lower, upper = truncate_lower(lower, kind, width), truncate_upper(upper, kind, width)
    if isinstance(kind, types.IntegerType) and draw(st.booleans()):
        lower = max(lower - draw(st.integers(0, 3)), -(2**31))
    drop = draw(st.integers(0, 7))
    return None if drop in (0, 1) else lower, None if drop in (1, 2) else upper


@st.composite
def file_statistics(draw: st.DrawFn, columns: Sequence[ex.BoundReference], files: Sequence[Sequence[Row]]) -> Columns:
    """Statistics of the files for some columns, with parts missing at random."""
    found = Columns([draw(st.sampled_from((len(rows),) * 5 + (None, -1))) for rows in files])
    for column in columns:
        value_counts, null_counts, nan_counts, lower, upper = [], [], [], [], []
        for rows in files:
            values = [value_of(column, row) for row in rows]
            if len(column.path) > 1 and draw(st.booleans()):
                # Some writers count only the rows whose struct is there.
                around = [row[column.position] for row in rows]
                values = [value for value, struct in zip(values, around, strict=True) if struct is not None]
            value_counts.append(_maybe(draw, len(values)))
            null_counts.append(_maybe(draw, sum(value is None for value in values)))
            nan_counts.append(_maybe(draw, sum(map(is_nan, values))))
            low, high = bounds_of(values, column.field_type, draw)
            lower.append(low)
            upper.append(high)
        parts: list[tuple[dict[int, list[Any]], list[Any]]] = [
            (found.values, value_counts),
            (found.nulls, null_counts),
            (found.nans, nan_counts),
            (found.lower, lower),
            (found.upper, upper),
        ]
        for target, given_values in parts:
            if isinstance(column.field_type, types.PrimitiveType) and draw(st.integers(0, 7)):
                target[column.field_id] = given_values
    return found


def _maybe(draw: st.DrawFn, count: int) -> int | None:
    return count if draw(st.integers(0, 7)) else None


FILES = st.lists(st.lists(filter_rows(), max_size=3), min_size=1, max_size=3)


@given(expressions(), FILES, st.data())
def test_statistics_are_sound(expression: ex.Expression, files: list[list[Row]], data: st.DataObject) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    statistics = data.draw(file_statistics(sorted(ex.bound_references(bound), key=lambda one: one.field_id), files))
    might, must = ex.might_match(bound, statistics), ex.must_match(bound, statistics)
    assert might.dtype == must.dtype == np.bool_
    assert might.shape == must.shape == (len(files),)
    for position, rows in enumerate(files):
        matches = [ex.evaluate(bound, row) for row in rows]
        assert might[position] or not any(matches)
        assert not must[position] or all(matches)


@given(st.data())
def test_statistics_are_sound_for_one_column_of_many_values(data: st.DataObject) -> None:
    """Few columns and many constants, so that bounds decide more often, and sets are looked up by rank."""
    kind = data.draw(st.sampled_from([one.field_type for one in FILTER_SCHEMA.fields[1:17]]))
    schema = Schema(types.NestedField(1, "a", kind, required=data.draw(st.booleans())))
    value = common_values_of(kind)
    constants = data.draw(st.lists(value.filter(lambda one: not is_nan(one)), min_size=1, max_size=40))
    test = data.draw(st.sampled_from((ex.In, ex.NotIn)))
    bound = ex.bind(test("a", [ex.Literal(one, kind) for one in constants]), schema)
    cells = value if schema.fields[0].required else st.one_of(value, st.none())
    files = [
        [(one,) for one in values]
        for values in data.draw(st.lists(st.lists(cells, max_size=3), min_size=1, max_size=4))
    ]
    statistics = data.draw(file_statistics(sorted(ex.bound_references(bound), key=lambda one: one.field_id), files))
    might, must = ex.might_match(bound, statistics), ex.must_match(bound, statistics)
    for position, rows in enumerate(files):
        matches = [ex.evaluate(bound, row) for row in rows]
        assert might[position] or not any(matches)
        assert not must[position] or all(matches)


@given(
    st.lists(st.integers(-30, 30), min_size=20, max_size=60),
    st.lists(st.tuples(st.integers(-40, 40) | st.none(), st.integers(-40, 40) | st.none()), min_size=1, max_size=8),
)
def test_large_sets_are_looked_up_exactly(numbers: list[int], ranges: list[tuple[int | None, int | None]]) -> None:
    for kind, value in ((types.IntegerType(), int), (types.StringType(), lambda number: f"{number + 50:03}")):
        bound = ex.bind(ex.In("a", [value(number) for number in numbers]), Schema(types.NestedField(1, "a", kind)))
        files = Columns([5] * len(ranges))
        files.lower[1] = [None if low is None else value(low) for low, _ in ranges]
        files.upper[1] = [None if high is None else value(high) for _, high in ranges]
        wanted = [
            any((low is None or low <= one) and (high is None or one <= high) for one in numbers)
            for low, high in ranges
        ]
        assert ex.might_match(bound, files).tolist() == wanted


ONE_COLUMN = {
    "i": Schema(types.NestedField(1, "a", types.IntegerType())),
    "d": Schema(types.NestedField(1, "a", types.DoubleType())),
    "s": Schema(types.NestedField(1, "a", types.StringType())),
    "n": Schema(types.NestedField(2, "s", types.StructType(types.NestedField(1, "a", types.IntegerType())))),
}

# records, values, nulls, nans, lower, upper; predicate; might, must
SHARP: list[tuple[str, tuple[Any, ...], str, bool, bool]] = [
    ("i", (3, 3, 0, None, 5, 9), "a < 5", False, False),
    ("i", (3, 3, 0, None, 5, 9), "a <= 5", True, False),
    ("i", (3, 3, 0, None, 5, 9), "a < 10", True, True),
    ("i", (3, 3, 1, None, 5, 9), "a < 10", True, False),
    ("i", (3, 3, None, None, 5, 9), "a < 10", True, False),
    ("i", (3, 3, 0, None, 5, 9), "a > 9", False, False),
    ("i", (3, 3, 0, None, 5, 9), "a >= 5", True, True),
    ("i", (3, 3, 0, None, 5, 9), "a = 4", False, False),
    ("i", (3, 3, 0, None, 5, 5), "a = 5", True, True),
    ("i", (3, 3, 0, None, 5, 5), "a != 5", False, False),
    ("i", (3, 3, 1, None, 5, 5), "a is distinct from 5", True, False),
    ("i", (3, 3, 1, None, 5, 9), "a is distinct from 4", True, True),
    ("i", (3, 3, 1, None, 5, 9), "a != 4", True, False),
    ("i", (3, 3, 0, None, 5, 9), "a in (1, 2, 10)", False, False),
    ("i", (3, 3, 0, None, 5, 5), "a in (1, 5)", True, True),
    ("i", (3, 3, 0, None, 5, 5), "a not in (1, 5)", False, False),
    ("i", (3, 3, 0, None, 5, 9), "a not in (1, 2)", True, True),
    ("i", (3, 3, 3, None, None, None), "a is null", True, True),
    ("i", (3, 3, 3, None, None, None), "a is not null", False, False),
    ("i", (3, 3, 3, None, None, None), "a = 5", False, False),
    ("i", (3, 3, 3, None, None, None), "a is distinct from 5", True, True),
    ("i", (3, 3, 0, None, None, None), "a is null", False, False),
    ("i", (3, 3, 0, None, None, None), "a is not null", True, True),
    ("i", (3, None, None, None, None, None), "a = 5", True, False),
    ("i", (0, None, None, None, None, None), "a = 5", False, True),
    ("i", (3, 0, 0, None, None, None), "a is not null", True, True),
    ("d", (3, 3, 0, 0, 1.0, 2.0), "a < 3", True, True),
    ("d", (3, 3, 0, 1, 1.0, 2.0), "a < 3", True, False),
    ("d", (3, 3, 0, None, 1.0, 2.0), "a < 3", True, False),
    ("d", (3, 3, 0, 3, None, None), "a < 3", False, False),
    ("d", (3, 3, 0, 3, None, None), "a is nan", True, True),
    ("d", (3, 3, 0, 3, None, None), "a is not nan", False, False),
    ("d", (3, 3, 0, 0, None, None), "a is nan", False, False),
    ("d", (3, 3, 1, 2, None, None), "a > 3", False, False),
    ("d", (3, 3, 1, 2, None, None), "a is distinct from 3", True, True),
    ("d", (3, 3, 0, None, math.nan, math.nan), "a < 3", True, False),
    ("d", (3, 3, 0, 0, -0.0, 0.0), "a = 0", True, True),
    ("d", (3, 3, 0, 0, 0.0, 0.0), "a < 0", False, False),
    ("d", (3, 3, 0, 0, 0.0, 0.0), "a >= -0.0", True, True),
    ("s", (3, 3, 0, None, "ab", "ad"), "a like 'a%'", True, True),
    ("s", (3, 3, 0, None, "ab", "ad"), "a like 'ae%'", False, False),
    ("s", (3, 3, 0, None, "ab", "ad"), "a like 'aa%'", False, False),
    ("s", (3, 3, 0, None, "ab", "ad"), "a like 'abc%'", True, False),
    ("s", (3, 3, 0, None, "ab", "ad"), "(a like 'a%') is not true", False, False),
    ("s", (3, 3, 1, None, "ab", "ad"), "(a like 'b%') is not true", True, True),
    ("s", (3, 3, 0, None, "ab", None), "a like 'aa%'", False, False),
    ("s", (3, 3, 0, None, "ab", None), "a > 'z'", True, False),
    ("n", (3, 3, 0, None, 5, 9), "s.a < 10", True, False),
    ("n", (3, 3, 0, None, 5, 9), "s.a is null", True, False),
    ("n", (3, 3, 3, None, None, None), "s.a is not null", False, False),
    ("n", (3, 3, 0, None, 5, 9), "s.a < 5", False, False),
    ("i", (3, 3, 0, None, 5, 9), "truncate(10, a) = 10", False, False),
    ("i", (3, 3, 0, None, 5, 9), "truncate(10, a) = 0", True, True),
    ("i", (3, 3, 0, None, 5, 9), "bucket(4, a) = 0", True, False),
    ("i", (3, 3, 3, None, None, None), "bucket(4, a) = 0", False, False),
]  # fmt: skip


def one_file(numbers: tuple[Any, ...]) -> Columns:
    records, values, nulls, nans, lower, upper = numbers
    found = Columns([records])
    found.values[1], found.nulls[1], found.nans[1] = [values], [nulls], [nans]
    found.lower[1], found.upper[1] = [lower], [upper]
    return found


@pytest.mark.parametrize(("schema", "numbers", "predicate", "might", "must"), SHARP)
def test_answers(schema: str, numbers: tuple[Any, ...], predicate: str, might: bool, must: bool) -> None:
    bound = ex.bind(ex.parse_expression(predicate), ONE_COLUMN[schema])
    assert ex.might_match(bound, one_file(numbers)).tolist() == [might]
    assert ex.must_match(bound, one_file(numbers)).tolist() == [must]


def test_required_columns_need_no_null_counts() -> None:
    bound = ex.bind(
        ex.parse_expression("a < 10"), Schema(types.NestedField(1, "a", types.IntegerType(), required=True))
    )
    assert ex.must_match(bound, one_file((3, None, None, None, 5, 9))).tolist() == [True]


def test_constants_and_combinations() -> None:
    statistics = one_file((3, 3, 0, None, 5, 9))
    assert ex.might_match(ex.AlwaysTrue(), statistics).tolist() == [True]
    assert ex.might_match(ex.AlwaysFalse(), statistics).tolist() == [False]
    assert ex.must_match(ex.AlwaysTrue(), statistics).tolist() == [True]
    bound = ex.bind(ex.parse_expression("(a < 5 or a > 6) and a < 20"), ONE_COLUMN["i"])
    assert ex.might_match(bound, statistics).tolist() == [True]


def test_a_predicate_must_be_bound() -> None:
    with pytest.raises(InvalidExpressionError, match="is not bound to a schema"):
        ex.might_match(ex.EqualTo("a", 5), one_file((3, 3, 0, None, 5, 9)))


def test_uuid_bounds_hold_in_either_order() -> None:
    schema = Schema(types.NestedField(1, "a", types.UUIDType()))
    low, high = UUID(int=2**127 + 5), UUID(int=5)  # Java's order: the first is negative.
    statistics = one_file((3, 3, 0, None, low, high))
    for value in (low, high, UUID(int=2**128 - 1), UUID(int=0)):
        assert ex.might_match(ex.bind(ex.EqualTo("a", value), schema), statistics).tolist() == [True]
    narrow = one_file((3, 3, 0, None, UUID(int=2**64 * 5), UUID(int=2**64 * 9)))
    assert ex.might_match(ex.bind(ex.EqualTo("a", UUID(int=2**64 * 10)), schema), narrow).tolist() == [False]
    assert ex.might_match(ex.bind(ex.EqualTo("a", UUID(int=2**64 * 5 - 1)), schema), narrow).tolist() == [False]
    assert ex.might_match(ex.bind(ex.EqualTo("a", UUID(int=2**64 * 9 + 2**63)), schema), narrow).tolist() == [True]


# --- manifests ---


@dataclass
class Summaries:
    """Partition summaries of manifests, by position in the spec."""

    size: int
    null: list[list[bool | None]]
    nan: list[list[bool | None]]
    lower: list[list[Any]]
    upper: list[list[Any]]

    def contains_null(self, position: int) -> Any | None:
        return pa.array(self.null[position], pa.bool_())

    def contains_nan(self, position: int) -> Any | None:
        return pa.array(self.nan[position], pa.bool_())

    def lower_bounds(self, position: int, kind: types.IcebergType) -> Any | None:
        return arrow_array(self.lower[position], kind)

    def upper_bounds(self, position: int, kind: types.IcebergType) -> Any | None:
        return arrow_array(self.upper[position], kind)


@st.composite
def manifests(draw: st.DrawFn, kind: types.StructType) -> tuple[list[list[Row]], Summaries]:
    """Manifests, each a list of partition tuples, and their summaries; some have none."""
    cells = [st.one_of(st.none(), common_values_of(one.field_type)) for one in kind.fields]
    groups = draw(st.lists(st.lists(st.tuples(*cells), min_size=1, max_size=3), min_size=1, max_size=3))
    found = Summaries(len(groups), [], [], [], [])
    for position, one in enumerate(kind.fields):
        null, nan, lower, upper = [], [], [], []
        for group in groups:
            values = [row[position] for row in group]
            is_float = isinstance(one.field_type, types.FloatType | types.DoubleType)
            missing = draw(st.integers(0, 7)) == 0
            ordinary = [value for value in values if value is not None and not is_nan(value)]
            order = signed if isinstance(one.field_type, types.UUIDType) and draw(st.booleans()) else None
            null.append(None if missing else None in values)
            nan.append(None if missing or draw(st.integers(0, 3)) == 0 else is_float and any(map(is_nan, values)))
            lower.append(None if missing or not ordinary else min(ordinary, key=order))
            upper.append(None if missing or not ordinary else max(ordinary, key=order))
        found.null.append(null)
        found.nan.append(nan)
        found.lower.append(lower)
        found.upper.append(upper)
    return groups, found


@given(expressions(), filter_specs(), st.data())
def test_partition_summaries_are_sound(expression: ex.Expression, spec: PartitionSpec, data: st.DataObject) -> None:
    projected = ex.inclusive_projection(expression, spec, FILTER_SCHEMA)
    groups, summaries = data.draw(manifests(partition_type(spec, FILTER_SCHEMA)))
    found = ex.partitions_might_match(projected, summaries)
    for position, group in enumerate(groups):
        assert found[position] or not any(ex.evaluate(projected, partition) for partition in group)


SUMMARIES: list[tuple[str, tuple[Any, ...], str, bool]] = [
    ("i", (False, None, 5, 9), "a < 5", False),
    ("i", (False, None, 5, 9), "a is null", False),
    ("i", (True, None, None, None), "a is not null", False),
    ("i", (True, None, None, None), "a = 5", False),
    ("i", (True, None, None, None), "a is distinct from 5", True),
    ("i", (False, None, None, None), "a = 5", True),
    ("i", (None, None, None, None), "a = 5", True),
    ("i", (False, None, 5, 5), "a != 5", False),
    ("d", (True, None, None, None), "a is nan", True),
    ("d", (True, False, None, None), "a is nan", False),
    ("d", (False, True, None, None), "a is not nan", False),
    ("d", (False, True, None, None), "a > 5", False),
    ("d", (False, None, 5.0, 5.0), "a != 5", True),
    ("d", (False, False, 5.0, 5.0), "a != 5", False),
    ("d", (False, None, math.nan, math.nan), "a > 5", True),
]


@pytest.mark.parametrize(("schema", "summary", "predicate", "might"), SUMMARIES)
def test_answers_for_manifests(schema: str, summary: tuple[Any, ...], predicate: str, might: bool) -> None:
    null, nan, lower, upper = summary
    bound = ex.bind(ex.parse_expression(predicate), ONE_COLUMN[schema])
    found = ex.partitions_might_match(bound, Summaries(1, [[null]], [[nan]], [[lower]], [[upper]]))
    assert found.tolist() == [might]


def test_transforms_that_say_nothing_are_in_the_specs_that_are_tried() -> None:
    seen: set[type] = set()

    @given(filter_specs())
    def collect(spec: PartitionSpec) -> None:
        seen.update(type(one.transform) for one in spec.fields)

    collect()
    assert {tr.VoidTransform, tr.UnknownTransform} <= seen
