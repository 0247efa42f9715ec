"""Projections through partition specs are sound, and as sharp as the transforms allow."""

from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidInputError
from icefloe.expressions import inclusive_projection, strict_projection
from icefloe.partitioning import PartitionField, PartitionSpec, parse_partition_spec, partition_type, transforms as tr
from icefloe.schema.types import DateType
from tests.expressions.rows import Row
from tests.expressions.unbinding import unbind
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows, filter_specs


def partition_of(spec: PartitionSpec, row: Row, choose: Any = None) -> tuple[Any, ...]:
    """The partition tuple of a row; `choose` may take the value of old Java writers for units of time before 1970."""
    values = []
    for field in spec.fields:
        source = FILTER_SCHEMA.fields_by_id[field.source_id]
        path = [one.field_id for one in (*reversed(FILTER_SCHEMA.ancestors(field.source_id)), source)]
        value: Any = dict(zip((one.field_id for one in FILTER_SCHEMA.fields), row, strict=True))
        for field_id in path:
            value = None if value is None else dict(value)[field_id]
        if isinstance(field.transform, tr.UnknownTransform):
            values.append("anything")
            continue
        result = field.transform.apply(value, source.field_type)
        is_day_of_date = str(field.transform) == "day" and isinstance(source.field_type, DateType)
        if choose and isinstance(field.transform, tr.TimeTransform) and not is_day_of_date and result is not None:
            result = choose((result, result + 1)) if result < 0 else result
        values.append(result)
    return tuple(values)


def tuple_of(spec: PartitionSpec, row: Row, data: st.DataObject) -> tuple[Any, ...]:
    try:
        return partition_of(spec, row, lambda either: data.draw(st.sampled_from(either)))
    except InvalidInputError:
        assume(False)  # A transform has no value there, so no row can be written.
        raise


@given(expressions(), filter_specs(), filter_rows(), st.data())
def test_the_partition_of_a_matching_row_matches_the_inclusive_projection(
    expression: ex.Expression, spec: PartitionSpec, row: Row, data: st.DataObject
) -> None:
    partition = tuple_of(spec, row, data)
    if ex.evaluate(ex.bind(expression, FILTER_SCHEMA), row):
        assert ex.evaluate(inclusive_projection(expression, spec, FILTER_SCHEMA), partition)


@given(expressions(), filter_specs(), filter_rows(), st.data())
def test_rows_of_a_partition_that_matches_the_strict_projection_match(
    expression: ex.Expression, spec: PartitionSpec, row: Row, data: st.DataObject
) -> None:
    partition = tuple_of(spec, row, data)
    if ex.evaluate(strict_projection(expression, spec, FILTER_SCHEMA), partition):
        assert ex.evaluate(ex.bind(expression, FILTER_SCHEMA), row)


@given(expressions(), filter_specs(), filter_rows(), st.data())
def test_the_residual_means_the_same_for_the_rows_of_its_partition(
    expression: ex.Expression, spec: PartitionSpec, row: Row, data: st.DataObject
) -> None:
    residuals = ex.Residuals(expression, spec, FILTER_SCHEMA)
    partition = tuple_of(spec, row, data)
    left = residuals.of(partition)
    assert ex.evaluate(left, row) == ex.evaluate(ex.bind(expression, FILTER_SCHEMA), row)
    assert residuals.of(partition) == left


@given(expressions(), filter_specs())
def test_projections_are_bound_to_the_partition_type(expression: ex.Expression, spec: PartitionSpec) -> None:
    kind = partition_type(spec, FILTER_SCHEMA)
    for project in (inclusive_projection, strict_projection):
        projected = project(expression, spec, FILTER_SCHEMA)
        assert ex.bind(projected, kind) == ex.bind(unbind(projected), kind)


INCLUSIVE = [
    ("ts > '2024-01-31T12:00:00'", "days(ts)", "ts_day >= DATE '2024-01-31'"),
    ("ts >= '2024-01-31T12:00:00'", "days(ts)", "ts_day >= DATE '2024-01-31'"),
    ("ts < '2024-01-31'", "days(ts)", "ts_day <= DATE '2024-01-30'"),
    ("ts <= '2024-01-31'", "days(ts)", "ts_day <= DATE '2024-01-31'"),
    ("ts = '2024-01-31T12:00:00'", "hours(ts)", "ts_hour = 474084"),
    ("ts = '1969-12-31T12:00:00'", "days(ts)", "ts_day in (DATE '1969-12-31', DATE '1970-01-01')"),
    ("ts < '1969-12-31T12:00:00'", "days(ts)", "ts_day <= DATE '1970-01-01'"),
    ("ts > '1969-12-31T12:00:00'", "days(ts)", "ts_day >= DATE '1969-12-31'"),
    ("day < DATE '1969-12-31'", "days(day)", "day_day < DATE '1969-12-31'"),
    ("day = DATE '1969-12-31'", "months(day)", "day_month in (-1, 0)"),
    ("days(ts) = '2024-01-31'", "days(ts)", "ts_day >= DATE '2024-01-31' and ts_day <= DATE '2024-01-31'"),
    ("days(ts) = '2024-01-31'", "months(ts)", "ts_month >= 648 and ts_month <= 648"),
    ("years(ts) < '2024'", "years(ts)", "ts_year <= 53"),
    ("id = 34", "bucket(16, id)", "id_bucket = 3"),
    ("id in (34, 35)", "bucket(16, id)", "id_bucket in (3, 5)"),
    ("id > 34", "bucket(16, id)", "true"),
    ("id != 34", "bucket(16, id)", "true"),
    ("bucket(16, id) > 3", "bucket(16, id)", "id_bucket > 3"),
    ("bucket(8, id) = 3", "bucket(16, id)", "true"),
    ("bucket(8, id) = 3", "id", "bucket(8, id) = 3"),
    ("small < 20", "truncate(10, small)", "small_trunc <= 10 or small_trunc = 2147483646"),
    ("small < 20", "truncate(16, small)", "small_trunc <= 16"),
    ("small > 19", "truncate(10, small)", "small_trunc >= 20"),
    ("price = 10.65", "truncate(50, price)", "price_trunc = 10.50"),
    ("name like 'ab%'", "truncate(3, name)", "name_trunc like 'ab%'"),
    ("name like 'abc%'", "truncate(3, name)", "name_trunc = 'abc'"),
    ("name like 'abcd%'", "truncate(3, name)", "name_trunc = 'abc'"),
    ("(name like 'ab%') is not true", "truncate(3, name)", "(name_trunc like 'ab%') is not true"),
    ("(name like 'abcd%') is not true", "truncate(3, name)", "true"),
    ("name < 'abcd'", "truncate(3, name)", "name_trunc <= 'abc'"),
    ("name < 'abc'", "truncate(3, name)", "name_trunc < 'abc'"),
    ("name is null", "truncate(3, name)", "name_trunc is null"),
    ("name is not null", "bucket(3, name)", "name_bucket is not null"),
    ("name = 'x'", "void(name)", "true"),
    ("name is null", "void(name)", "true"),
    ("ratio is nan", "ratio", "ratio is nan"),
    ("small = 5 and name = 'x'", "small", "small = 5"),
    ("small = 5 or name = 'x'", "small", "true"),
    ("small < 3000000000", "small", "small is not null"),
    ("not small < 5", "small", "small >= 5"),
]

STRICT = [
    ("ts > '2024-01-31T12:00:00'", "days(ts)", "ts_day > DATE '2024-01-31'"),
    ("ts >= '2024-01-31T00:00:00'", "days(ts)", "ts_day > DATE '2024-01-30'"),
    ("ts < '2024-01-31'", "days(ts)", "ts_day < DATE '2024-01-31'"),
    ("ts <= '2024-01-30T23:59:59.999999'", "days(ts)", "ts_day < DATE '2024-01-31'"),
    ("ts > '1969-12-31T12:00:00'", "days(ts)", "ts_day > DATE '1970-01-01'"),
    ("ts is distinct from '2024-01-31'", "days(ts)", "ts_day is distinct from DATE '2024-01-31'"),
    ("ts = '2024-01-31'", "days(ts)", "false"),
    ("days(ts) = '2024-01-31'", "days(ts)", "ts_day > DATE '2024-01-30' and ts_day < DATE '2024-02-01'"),
    ("day = DATE '2024-01-31'", "days(day)", "day_day = DATE '2024-01-31'"),
    ("id = 34", "bucket(16, id)", "false"),
    ("id != 34", "bucket(16, id)", "id_bucket is distinct from 3"),
    ("bucket(16, id) = 3", "bucket(16, id)", "id_bucket = 3"),
    ("small < 20", "truncate(10, small)", "small_trunc < 20"),
    ("small <= 19", "truncate(10, small)", "small_trunc < 20"),
    ("small >= 10", "truncate(10, small)", "small_trunc > 0 and small_trunc is distinct from 2147483646"),
    ("small >= 16", "truncate(16, small)", "small_trunc > 0"),
    ("name = 'ab'", "truncate(3, name)", "name_trunc = 'ab'"),
    ("name = 'abc'", "truncate(3, name)", "false"),
    ("name in ('ab', 'abc')", "truncate(3, name)", "name_trunc = 'ab'"),
    ("name like 'abc%'", "truncate(3, name)", "name_trunc = 'abc'"),
    ("name like 'abcd%'", "truncate(3, name)", "false"),
    ("(name like 'abcd%') is not true", "truncate(3, name)", "name_trunc is distinct from 'abc'"),
    ("name >= 'abc'", "truncate(3, name)", "name_trunc >= 'abc'"),
    ("name >= 'abcd'", "truncate(3, name)", "name_trunc > 'abc'"),
    ("name <= 'ab'", "truncate(3, name)", "name_trunc <= 'ab'"),
    ("name is null", "void(name)", "false"),
    ("small = 5 or name = 'x'", "small", "small = 5"),
    ("small = 5 and name = 'x'", "small", "false"),
]


@pytest.mark.parametrize(("predicate", "field", "wanted"), INCLUSIVE)
def test_inclusive(predicate: str, field: str, wanted: str) -> None:
    spec = parse_partition_spec([field], FILTER_SCHEMA)
    assert str(inclusive_projection(ex.parse_expression(predicate), spec, FILTER_SCHEMA)) == wanted


@pytest.mark.parametrize(("predicate", "field", "wanted"), STRICT)
def test_strict(predicate: str, field: str, wanted: str) -> None:
    spec = parse_partition_spec([field], FILTER_SCHEMA)
    assert str(strict_projection(ex.parse_expression(predicate), spec, FILTER_SCHEMA)) == wanted


def test_an_unknown_transform_says_nothing() -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, tr.UnknownTransform("zorder"), "z"),
        PartitionField((2, 3), 1001, tr.UnknownTransform("mix"), "m"),
    )
    assert str(inclusive_projection(ex.parse_expression("small = 5"), spec, FILTER_SCHEMA)) == "true"
    assert str(strict_projection(ex.parse_expression("small = 5"), spec, FILTER_SCHEMA)) == "false"


def test_fields_of_one_column_are_all_asked_inclusively_and_one_is_enough_strictly() -> None:
    spec = parse_partition_spec(["bucket(16, id)", "truncate(10, id)"], FILTER_SCHEMA)
    assert (
        str(inclusive_projection(ex.parse_expression("id = 34"), spec, FILTER_SCHEMA))
        == "id_bucket = 3 and id_trunc = 30"
    )
    assert (
        str(strict_projection(ex.parse_expression("id != 34"), spec, FILTER_SCHEMA))
        == "id_bucket is distinct from 3 or id_trunc is distinct from 30"
    )


def test_the_least_values_may_have_a_great_result() -> None:
    spec = parse_partition_spec(["truncate(10, small)"], FILTER_SCHEMA)
    least = -(2**31)
    for predicate, inclusive, strict in (
        (f"small = {least}", "small_trunc = 2147483646", "false"),
        (f"small != {least}", "small_trunc is not null", "small_trunc != 2147483646"),
        (f"small < {least + 3}", "small_trunc = 2147483646", "false"),
        (
            f"small > {least + 3}",
            "small_trunc is not null",
            "small_trunc is not null and small_trunc is distinct from 2147483646",
        ),
        (f"small < {least}", "false", "false"),
        (f"small >= {least}", "small_trunc is not null", "small_trunc is not null"),
    ):
        found = ex.parse_expression(predicate)
        assert str(inclusive_projection(found, spec, FILTER_SCHEMA)) == inclusive, predicate
        assert str(strict_projection(found, spec, FILTER_SCHEMA)) == strict, predicate


def test_a_value_without_a_partition_does_not_prune() -> None:
    spec = parse_partition_spec(["truncate(10, price)"], FILTER_SCHEMA)
    least = "-9999999.99"
    assert str(inclusive_projection(ex.parse_expression(f"price = {least}"), spec, FILTER_SCHEMA)) == "true"
    assert str(strict_projection(ex.parse_expression(f"price != {least}"), spec, FILTER_SCHEMA)) == "false"
    assert str(inclusive_projection(ex.parse_expression(f"price < {least}"), spec, FILTER_SCHEMA)) == "false"
    assert (
        str(strict_projection(ex.parse_expression(f"price >= {least}"), spec, FILTER_SCHEMA))
        == "price_trunc is not null"
    )


RESIDUALS = [
    ((19753,), "ts >= '2024-01-31T12:00:00' and ts < '2024-02-02T12:00:00'", "ts >= TIMESTAMP '2024-01-31T12:00:00'"),
    ((19754,), "ts >= '2024-01-31T12:00:00' and ts < '2024-02-02T12:00:00'", "true"),
    ((19755,), "ts >= '2024-01-31T12:00:00' and ts < '2024-02-02T12:00:00'", "ts < TIMESTAMP '2024-02-02T12:00:00'"),
    ((19756,), "ts >= '2024-01-31T12:00:00' and ts < '2024-02-02T12:00:00'", "false"),
    ((None,), "ts is null or ts > '2024-01-31'", "true"),
    ((19753,), "days(ts) = '2024-01-31' and id = 5", "id = 5"),
]


@pytest.mark.parametrize(("partition", "predicate", "wanted"), RESIDUALS)
def test_residuals(partition: tuple[Any, ...], predicate: str, wanted: str) -> None:
    spec = parse_partition_spec(["days(ts)"], FILTER_SCHEMA)
    assert str(ex.residual(ex.parse_expression(predicate), spec, FILTER_SCHEMA, partition)) == wanted


def test_the_residual_of_an_unpartitioned_file_is_the_predicate() -> None:
    expression = ex.parse_expression("small > 5")
    assert ex.residual(expression, PartitionSpec(), FILTER_SCHEMA, ()) == ex.bind(expression, FILTER_SCHEMA)
