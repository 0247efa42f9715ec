"""Terms that look into variants: their texts, what they are on rows, and that files are skipped only without matching rows."""

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.formats.metrics import DEFAULT_MODE
from icefloe.formats.parquet.metrics import parquet_metrics, row_group_filter
from icefloe.formats.variant.splitting import shred
from icefloe.schema import Schema, types
from icefloe.schema.types import NestedField
from icefloe.variant import (
    EXTRACTED,
    Variant,
    VariantKind,
    VariantPrimitive,
    encode,
    encode_variant_bounds,
    value_at,
    values_at,
)
from tests.formats.test_variant_splitting import inferred, plain
from tests.formats.variant_strategies import NATURAL, TYPED, variant_values

SCHEMA = Schema(
    NestedField(1, "id", types.LongType(), True),
    NestedField(2, "doc", types.VariantType()),
    NestedField(3, "s", types.StructType(NestedField(4, "doc", types.VariantType()))),
)
TYPES: tuple[types.IcebergType, ...] = tuple(
    types.DecimalType(9, 2) if kind is types.DecimalType else kind() for kind in EXTRACTED
)
NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.decimals(-20, 20, places=1),
    st.decimals(-20, 20, places=3),
    st.floats(-20, 20),
    st.sampled_from(
        [float("nan"), float("inf"), -0.0, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**30, Decimal("1E-30")]
    ),
)
LEAVES = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.text("abz\U0010ffff", max_size=20),
    st.binary(max_size=3),
    st.dates(dt.date(2026, 1, 1), dt.date(2026, 2, 1)),
    st.sampled_from([VariantPrimitive(VariantKind.TIMESTAMP, 5), VariantPrimitive(VariantKind.TIMESTAMPTZ_NANOS, 7)]),
)


def documents() -> st.SearchStrategy[list[Any]]:
    """Rows of one file: mostly of one type at each place, as files are that can be skipped."""
    uniform = st.sampled_from([st.integers(-20, 20), st.decimals(-20, 20, places=2), st.floats(-20, 20), st.text("abz", max_size=18), st.booleans(), st.dates(dt.date(2026, 1, 1), dt.date(2026, 2, 1))])  # fmt: skip
    places = st.tuples(uniform, uniform).flatmap(
        lambda kinds: st.lists(
            st.one_of(
                st.fixed_dictionaries({"a": kinds[0]}, optional={"b": st.fixed_dictionaries({"c": kinds[1]})}),
                st.fixed_dictionaries({}, optional={"a": st.one_of(kinds[0], st.none()), "b": kinds[1]}),
            ),
            min_size=1,
            max_size=6,
        )
    )
    wild = st.lists(
        st.one_of(st.just(...), LEAVES, st.fixed_dictionaries({}, optional={"a": LEAVES, "b": st.fixed_dictionaries({}, optional={"c": LEAVES})})),
        min_size=1,
        max_size=6,
    )  # fmt: skip
    return st.one_of(places, wild)


CONSTANTS: dict[type[types.IcebergType], st.SearchStrategy[Any]] = {
    types.BooleanType: st.booleans(),
    types.IntegerType: st.integers(-22, 22),
    types.LongType: st.one_of(st.integers(-22, 22), st.sampled_from([2**53 + 1, 2**63 - 1])),
    types.DoubleType: st.one_of(st.floats(-22, 22), st.integers(-22, 22)),
    types.DecimalType: st.decimals(-22, 22, places=2),
    types.StringType: st.text("abz", max_size=18),
    types.DateType: st.dates(dt.date(2025, 12, 30), dt.date(2026, 2, 3)),
}
PATHS = st.sampled_from(["$", "$.a", "$.b", "$.b.c", "$.x"])


@st.composite
def predicates(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(list(CONSTANTS)))
    field_type: Any = types.DecimalType(9, 2) if kind is types.DecimalType else kind()
    column: Any = ex.col("doc").extract(draw(PATHS), draw(st.sampled_from([field_type, field_type, None])))
    constants = CONSTANTS[kind]
    test = draw(st.integers(0, 11))
    match test:
        case 0 | 1:
            return column == draw(constants)
        case 2:
            return column != draw(constants)
        case 3:
            return column < draw(constants)
        case 4:
            return column <= draw(constants)
        case 5:
            return column > draw(constants)
        case 6:
            return column >= draw(constants)
        case 7:
            return column.is_in(draw(st.lists(constants, min_size=2, max_size=3)))
        case 8:
            return column.not_in(draw(st.lists(constants, min_size=2, max_size=3)))
        case 9:
            return column.is_null() if draw(st.booleans()) else column.not_null()
        case _:
            if kind is types.StringType:
                prefix = draw(constants)
                return column.starts_with(prefix) if draw(st.booleans()) else column.not_starts_with(prefix)
            return ~(column < draw(constants))


EXPRESSIONS = st.recursive(
    predicates(), lambda inner: st.builds(ex.And, inner, inner) | st.builds(ex.Or, inner, inner) | st.builds(ex.Not, inner), max_leaves=3
)  # fmt: skip


def rows_of(values: list[Any]) -> Any:
    column = plain(values)
    nested = pa.StructArray.from_arrays([column], ["doc"])
    return pa.table({"id": pa.array(range(len(values)), pa.int64()), "doc": column, "s": nested})


def naive(bound: ex.Expression, values: list[Any]) -> list[bool]:
    return [
        ex.evaluate(bound, (index, None if value is ... else encode(value), None)) for index, value in enumerate(values)
    ]


def written(values: list[Any], row_group_size: int = 2) -> Any:
    """The footer of a file with the rows, whose variants are shredded."""
    column = plain(values)
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "doc": shred(column, inferred(column))})
    fields = [
        field.with_metadata({b"PARQUET:field_id": str(index + 1).encode()}) for index, field in enumerate(table.schema)
    ]
    file = io.BytesIO()
    pq.write_table(table.cast(pa.schema(fields)), file, row_group_size=row_group_size)
    return pq.read_metadata(pa.BufferReader(file.getvalue()))


def check_pruning(values: list[Any], expression: ex.Expression) -> None:
    bound = ex.bind(expression, SCHEMA)
    expected = naive(bound, values)
    assert ex.mask(bound, rows_of(values)).to_pylist() == expected
    footer = written(values)
    file_schema = Schema(*SCHEMA.fields[:2])
    metrics = parquet_metrics(footer, SCHEMA, dict.fromkeys((1, 2), DEFAULT_MODE), file_schema=file_schema)
    statistics = _Statistics(metrics)
    assert ex.might_match(bound, statistics)[0] or not any(expected)
    assert not ex.must_match(bound, statistics)[0] or all(expected)
    kept = row_group_filter(bound, SCHEMA)(footer, file_schema)
    for group, is_kept in enumerate(kept):
        assert is_kept or not any(expected[2 * group : 2 * group + 2])


class _Statistics:
    """The metrics of one file, as columns."""

    def __init__(self, metrics: Any) -> None:
        self._metrics = metrics
        self.size = 1
        self.record_counts = pa.array([metrics.record_count])

    def value_counts(self, field_id: int) -> Any:
        return pa.array([self._metrics.value_counts.get(field_id)], pa.int64())

    def null_counts(self, field_id: int) -> Any:
        return pa.array([self._metrics.null_value_counts.get(field_id)], pa.int64())

    def nan_counts(self, field_id: int) -> Any:
        return None

    def lower_bounds(self, field_id: int, _: Any) -> Any:
        return pa.array([self._metrics.lower_bounds.get(field_id)], pa.binary())

    def upper_bounds(self, field_id: int, _: Any) -> Any:
        return pa.array([self._metrics.upper_bounds.get(field_id)], pa.binary())


@settings(max_examples=100)
@given(values=documents(), expression=EXPRESSIONS)
def test_no_matching_row_is_skipped(values: list[Any], expression: ex.Expression) -> None:
    check_pruning(values, expression)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(4))
@settings(max_examples=5_000)
@given(values=documents(), expression=EXPRESSIONS)
def test_no_matching_row_is_skipped_of_many(part: int, values: list[Any], expression: ex.Expression) -> None:
    check_pruning(values, expression)


@settings(max_examples=60)
@given(
    values=st.lists(
        st.one_of(st.just(...), variant_values(st.one_of(NATURAL, TYPED, NUMBERS))), min_size=1, max_size=6
    ),
    path=st.sampled_from([(), ("a",), ("a", "b"), ("id",)]),
)
def test_columns_are_extracted_as_single_values_are(values: list[Any], path: tuple[str, ...]) -> None:
    column = plain(values)
    for field_type in TYPES:
        found = values_at(column, path, field_type)
        found.validate(full=True)
        expected = [None if value is ... else value_at(encode(value), path, field_type) for value in values]
        if isinstance(field_type, types.UUIDType):
            expected = [getattr(value, "bytes", None) for value in expected]
        if pa.types.is_temporal(found.type):
            found = found.cast(pa.int32() if pa.types.is_date32(found.type) else pa.int64())
        np.testing.assert_equal(found.to_pylist(), expected)
        assert (
            values_at(column.slice(1), path, field_type).to_pylist()
            == values_at(column, path, field_type)[1:].to_pylist()
        )


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ("doc:a.b > 5", ("a", "b"), types.DoubleType()),
        ("doc:a::int > 5", ("a",), types.IntegerType()),
        ("doc:a::bigint = 5", ("a",), types.LongType()),
        ("doc:a::decimal(9, 2) = 5", ("a",), types.DecimalType(9, 2)),
        ("doc:['a b'].c = 'x'", ("a b", "c"), types.StringType()),
        ("doc:\"a b\"['c'] like 'x%'", ("a b", "c"), types.StringType()),
        ("variant_get(doc, '$.a', 'int') = 5", ("a",), types.IntegerType()),
        ("5 < try_variant_get(doc, '$[''a'']', 'double')", ("a",), types.DoubleType()),
        ("variant_get(doc, '$.a') = true", ("a",), types.BooleanType()),
        ("doc:a = DATE '2026-01-01'", ("a",), types.DateType()),
        ("doc:a = 9007199254740993", ("a",), types.LongType()),
        ("doc:a in (1, 2.5)", ("a",), types.DoubleType()),
        ("doc:a is not null", ("a",), types.VariantType()),
        ("s.doc:a = 1", ("a",), types.DoubleType()),
        ("doc:a::float = 1", ("a",), types.DoubleType()),
    ],
)
def test_texts(text: str, path: tuple[str, ...], kind: types.IcebergType) -> None:
    expression = ex.parse_expression(text)
    bound = ex.bind(expression, SCHEMA)
    (term,) = {predicate.term for predicate in ex.predicates(bound)}
    assert isinstance(term, ex.BoundExtract)
    assert (term.path, term.field_type) == (path, kind)
    assert ex.parse_expression(str(expression)) == expression
    assert ex.bind(ex.parse_expression(str(bound)), SCHEMA) == bound
    with pytest.raises(InvalidExpressionError, match="JSON"):
        ex.expression_to_json(bound)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id:a = 1", "only a variant has paths"),
        ("doc:a = 1 or doc:a::list = 2", "list"),
        ("doc:a in ('x', 1)", "say of which type"),
        ("doc:a::geometry = 1", "geometry"),
        ("doc:[0] = 1", "elements of arrays"),
        ("variant_get(doc, 'a', 'int') = 1", "path"),
        ("variant_get(doc, '$.a', int) = 1", "type"),
        ("doc: = 1", "name of a field"),
        ("doc:a::int", "comparison"),
        ("doc:a::int = 'x'", "cannot be compared"),
        ("doc = 5", "only be tested for null"),
    ],
)
def test_texts_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        ex.bind(ex.parse_expression(text), SCHEMA)


def test_what_is_extracted() -> None:
    values: list[Any] = [
        {"a": 5},
        {"a": Decimal("5.0")},
        {"a": 5.0},
        {"a": "5"},
        {"a": 5.5},
        {"a": None},
        {},
        ...,
        5,
        {"a": {}},
    ]
    rows = rows_of(values)

    def matching(text: str) -> list[int]:
        found: list[int] = rows.filter(ex.mask(ex.bind(ex.parse_expression(text), SCHEMA), rows))["id"].to_pylist()
        return found

    assert matching("doc:a = 5") == [0, 1, 2]
    assert matching("doc:a::int = 5") == [0, 1]
    assert matching("doc:a::decimal(9,2) = 5") == [0, 1]
    assert matching("doc:a > 4") == [0, 1, 2, 4]
    assert matching("doc:a = '5'") == [3]
    # SQL leaves out what is unknown.
    assert matching("doc:a != 5") == [4]
    assert matching("doc:a is distinct from 5") == [3, 4, 5, 6, 7, 8, 9]
    assert matching("doc:a is null") == [5, 6, 7, 8]
    assert matching("doc:a is not null") == [0, 1, 2, 3, 4, 9]
    assert matching("doc:a::int is null") == [2, 3, 4, 5, 6, 7, 8, 9]
    assert matching("variant_get(doc, '$', 'int') = 5") == [8]
    assert matching("s.doc:a = 5") == [0, 1, 2]


class _Bounds(_Statistics):
    def __init__(self, lower: VariantPrimitive | None, upper: VariantPrimitive | None) -> None:
        self.size = 1
        self.record_counts = pa.array([10])
        self._sides = [None if side is None else encode_variant_bounds({"$['a']": side}) for side in (lower, upper)]

    def value_counts(self, field_id: int) -> Any:
        return pa.array([10])

    def null_counts(self, field_id: int) -> Any:
        return pa.array([0])

    def lower_bounds(self, field_id: int, _: Any) -> Any:
        return pa.array(self._sides[:1], pa.binary())

    def upper_bounds(self, field_id: int, _: Any) -> Any:
        return pa.array(self._sides[1:], pa.binary())


KIND = VariantKind
FIVE, THOUSAND = VariantPrimitive(KIND.INT8, 5), VariantPrimitive(KIND.INT16, 1000)


@pytest.mark.parametrize(
    ("lower", "upper", "text", "is_kept"),
    [
        # Go gives each bound the least width.
        (FIVE, THOUSAND, "doc:a::int = 4", False),
        (FIVE, THOUSAND, "doc:a::int = 1000", True),
        (FIVE, THOUSAND, "doc:a > 1001", False),
        (FIVE, None, "doc:a::int < 5", False),
        (FIVE, None, "doc:a::int > 5", True),
        (None, THOUSAND, "doc:a::long > 1000", False),
        # A row may lack the path: what is negated, and null, says nothing.
        (FIVE, FIVE, "doc:a::int is distinct from 5", True),
        (FIVE, FIVE, "doc:a::int is null", True),
        (FIVE, FIVE, "(doc:a::int = 5) is not true", True),
        (FIVE, FIVE, "doc:a::int is not null", True),
        # Bounds of another class say nothing.
        (FIVE, THOUSAND, "doc:a = 'x'", True),
        (FIVE, VariantPrimitive(KIND.STRING, "x"), "doc:a::int = 1", True),
        (VariantPrimitive(KIND.DATE, 1), VariantPrimitive(KIND.DATE, 2), "doc:a = TIMESTAMP '2026-01-01T00:00:00'", True),
        (VariantPrimitive(KIND.STRING, "b"), VariantPrimitive(KIND.STRING, "c"), "doc:a like 'a%'", False),
        (VariantPrimitive(KIND.DECIMAL4, Decimal("5.5")), VariantPrimitive(KIND.DECIMAL4, Decimal("5.9")), "doc:a::int = 5", True),
        (VariantPrimitive(KIND.DECIMAL4, Decimal("5.5")), VariantPrimitive(KIND.DECIMAL4, Decimal("5.9")), "doc:a::int = 7", False),
        (FIVE, THOUSAND, "doc:b::int = 4", True),
    ],
)  # fmt: skip
def test_bounds_of_others(lower: Any, upper: Any, text: str, is_kept: bool) -> None:
    bound = ex.bind(ex.parse_expression(text), SCHEMA)
    statistics = _Bounds(lower, upper)
    assert ex.might_match(bound, statistics)[0] == is_kept
    assert not ex.must_match(bound, statistics)[0]


def test_rows_are_variants() -> None:
    bound = ex.bind(ex.col("doc").extract("$.a", "int") == 5, SCHEMA)
    assert ex.evaluate(bound, {2: Variant(*vars_of(encode({"a": 5})))})
    assert not ex.evaluate(bound, {2: None})


def vars_of(variant: Variant) -> tuple[bytes, bytes]:
    return variant.metadata, variant.value
