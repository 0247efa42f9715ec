"""Rows of FILTER_SCHEMA as Arrow tables, and the naive meaning of predicates on them."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icefloe.expressions import Reference, Term, Transformed, values as ex
from icefloe.schema import IcebergType, Schema, StructType, schema_to_arrow, type_to_arrow
from icefloe.schema.types import UUIDType
from tests.strategies import FILTER_SCHEMA

Row = tuple[Any, ...]


def arrow_array(values: Sequence[Any], kind: IcebergType) -> Any:
    """Internal values as an Arrow array of their type."""
    if isinstance(kind, UUIDType):
        storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), storage)
    if isinstance(kind, StructType):
        children = [
            arrow_array([None if row is None else dict(row)[field.field_id] for row in values], field.field_type)
            for field in kind.fields
        ]
        missing = pa.array([row is None for row in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(type_to_arrow(kind)), mask=missing)
    return pa.array(values, type_to_arrow(kind))


def arrow_table(rows: Sequence[Row], schema: Schema = FILTER_SCHEMA) -> Any:
    """The rows as a table of the schema."""
    columns = [arrow_array([row[i] for row in rows], field.field_type) for i, field in enumerate(schema.fields)]
    return pa.Table.from_arrays(columns, schema=schema_to_arrow(schema))


def naive_value(term: Term, row: Row) -> Any:
    """The value of an unbound term, found by names and computed by the transform itself."""
    if isinstance(term, Transformed):
        assert isinstance(term.reference, Reference)
        value = naive_value(term.reference, row)
        return term.transform.apply(value, FILTER_SCHEMA.find_type(term.reference.name))
    assert isinstance(term, Reference)
    names = term.name.split(".")
    fields: Sequence[Any] = FILTER_SCHEMA.fields
    found: Any = dict(zip((field.field_id for field in fields), row, strict=True))
    for name in names:
        field = next(one for one in fields if one.name == name)
        found = None if found is None else dict(found)[field.field_id]
        fields = field.field_type.fields if isinstance(field.field_type, StructType) else ()
    return found


def naive(expression: ex.Expression, row: Row) -> bool:
    """The definition of the expressions spec, word for word, for constants of the very type of their column."""
    match expression:
        case ex.AlwaysTrue() | ex.AlwaysFalse():
            return isinstance(expression, ex.AlwaysTrue)
        case ex.And():
            return all(naive(child, row) for child in expression.children)
        case ex.Or():
            return any(naive(child, row) for child in expression.children)
        case ex.Not():
            return not naive(expression.child, row)
        case ex.Predicate():
            return naive_test(expression, naive_value(expression.term, row))
        case _:
            raise AssertionError(expression)


def naive_test(predicate: ex.Predicate, value: Any) -> bool:
    """One test of a value."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    match predicate:
        case ex.IsNull():
            return value is None
        case ex.NotNull():
            return value is not None
        case ex.IsNaN():
            return missing and value is not None
        case ex.NotNaN():
            return not (missing and value is not None)
        case ex.EqualTo():
            return not missing and bool(value == predicate.literal.value)
        case ex.NotEqualTo():
            return missing or bool(value != predicate.literal.value)
        case ex.LessThan():
            return not missing and bool(value < predicate.literal.value)
        case ex.LessThanOrEqual():
            return not missing and bool(value <= predicate.literal.value)
        case ex.GreaterThan():
            return not missing and bool(value > predicate.literal.value)
        case ex.GreaterThanOrEqual():
            return not missing and bool(value >= predicate.literal.value)
        case ex.In():
            return not missing and value in [one.value for one in predicate.literals]
        case ex.NotIn():
            return missing or value not in [one.value for one in predicate.literals]
        case ex.StartsWith():
            return not missing and bool(value.startswith(predicate.literal.value))
        case ex.NotStartsWith():
            return missing or not value.startswith(predicate.literal.value)
        case _:
            raise AssertionError(predicate)
