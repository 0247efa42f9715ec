"""How columns that Spark's Parquet reader gives become columns as users see them: their names, uuid as text, geometries; and
a predicate over those as a Spark column: true or false for every row, nulls and NaN included, never null.
"""

import operator
from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, functions as F  # noqa: N812  # its usual name

from icefloe import errors, expressions as ex
from icefloe.schema import types
from icefloe.spark.gateway import Gateway, lit
from icefloe.spark.literals import sql_literal
from icefloe.spark.spatial import as_wkb, intersects_column
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import TypeMapping, user_type

_UUID_PARTS = ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6))
_COMPARISONS: dict[type[ex.Predicate], Callable[[Column, Column], Column]] = {
    ex.EqualTo: operator.eq,
    ex.LessThan: operator.lt,
    ex.LessThanOrEqual: operator.le,
    ex.GreaterThan: operator.gt,
    ex.GreaterThanOrEqual: operator.ge,
}


def quoted_name(name: str) -> str:
    """A name that Spark takes for one part, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def to_user(
    column: Column,
    stored: types.IcebergType,
    shown: types.IcebergType,
    mapping: TypeMapping,
    gateway: Gateway | None = None,
) -> Column:
    """A column of the type as files have it, as users see the type; `shown` may have fewer fields in its structs.

    With a gateway, structs outside of lists and maps are built so that Spark still reads only the fields that are asked for.
    """
    if not _differs(stored, shown, mapping):
        return column
    match stored, shown:
        case _, types.UnknownType():
            return F.lit(None)
        case types.UUIDType(), _:
            return uuid_text(column)
        case ((types.GeometryType() | types.GeographyType()), _):
            return _geo(column, shown, mapping)
        case types.StructType(), types.StructType():
            if gateway is not None and _has_no_twins(stored) and _has_no_twins(shown):
                return _changed(column, stored, shown, mapping, gateway)
            fields = (_field(column, stored, field, mapping, None).alias(field.name) for field in shown)
            return F.when(column.isNotNull(), F.struct(*fields))
        case types.ListType(), types.ListType():
            return F.transform(
                column, lambda element: to_user(element, stored.element_type, shown.element_type, mapping)
            )
        case types.MapType(), types.MapType():
            keys = F.transform(F.map_keys(column), lambda key: to_user(key, stored.key_type, shown.key_type, mapping))
            values = F.transform(
                F.map_values(column), lambda value: to_user(value, stored.value_type, shown.value_type, mapping)
            )
            return F.map_from_arrays(keys, values)
        case _:
            return column


def uuid_text(column: Column) -> Column:
    """The sixteen bytes of a UUID as its text; `predicates` knows this shape."""
    parts = [F.hex(F.substring(column, at, size)) for at, size in _UUID_PARTS]
    # `concat` is null where the column is, unlike `concat_ws`.
    dashes = [piece for part in parts for piece in (F.lit("-"), part)][1:]
    return F.lower(F.concat(*dashes))


def _changed(
    column: Column, stored: types.StructType, shown: types.StructType, mapping: TypeMapping, gateway: Gateway
) -> Column:
    """The struct with all fields from the first that differs replaced, as Spark appends changed fields at the end."""
    same = 0
    for field, shown_field in zip(stored, shown, strict=False):
        if _fields_differ(field, shown_field, mapping):
            break
        same += 1
    added = ((field.name, _field(column, stored, field, mapping, gateway)) for field in shown.fields[same:])
    return gateway.with_fields(column, (field.name for field in stored.fields[same:]), added)


def _field(
    column: Column, stored: types.StructType, shown: types.NestedField, mapping: TypeMapping, gateway: Gateway | None
) -> Column:
    if isinstance(shown.field_type, types.UnknownType):
        return F.lit(None)
    [source] = (field for field in stored if field.field_id == shown.field_id)
    return to_user(column.getField(source.name), source.field_type, shown.field_type, mapping, gateway)


def _has_no_twins(struct: types.StructType) -> bool:
    """Whether no two names differ only by case: Spark would take them for one when it changes a struct."""
    return len({field.name.lower() for field in struct}) == len(struct)


def _geo(column: Column, field_type: types.IcebergType, mapping: TypeMapping) -> Column:
    shown = user_type(field_type, mapping)
    if shown.typeName() == "binary":
        return column
    if isinstance(field_type, types.GeographyType):
        return F.call_function("st_geogfromwkb", column)
    return F.call_function("st_setsrid", F.call_function("st_geomfromwkb", column), F.lit(shown.srid))


def _differs(stored: types.IcebergType, shown: types.IcebergType, mapping: TypeMapping) -> bool:
    """Whether users see a value of the type differently from how files have it."""
    match stored, shown:
        case _, (types.UnknownType() | types.UUIDType()):
            return True
        case _, (types.GeometryType() | types.GeographyType()):
            return mapping.geo
        case types.StructType(), types.StructType():
            return len(stored) != len(shown) or any(
                _fields_differ(field, shown_field, mapping) for field, shown_field in zip(stored, shown, strict=True)
            )
        case types.ListType(), types.ListType():
            return _differs(stored.element_type, shown.element_type, mapping)
        case types.MapType(), types.MapType():
            return _differs(stored.key_type, shown.key_type, mapping) or _differs(
                stored.value_type, shown.value_type, mapping
            )
        case _:
            return False


def _fields_differ(stored: types.NestedField, shown: types.NestedField, mapping: TypeMapping) -> bool:
    return (stored.field_id, stored.name) != (shown.field_id, shown.name) or _differs(
        stored.field_type, shown.field_type, mapping
    )


# -- predicates


def filter_column(
    gateway: Gateway, predicate: ex.Expression, column_of: Callable[[int], Column], mapping: TypeMapping
) -> Column:
    """A bound predicate as a column; `column_of` gives a field's column as users see it, by its id."""

    def column(predicate: ex.Expression) -> Column:
        match predicate:
            case ex.AlwaysTrue() | ex.AlwaysFalse():
                return F.lit(isinstance(predicate, ex.AlwaysTrue))
            case ex.And():
                return reduce(Column.__and__, map(column, predicate.children))
            case ex.Or():
                return reduce(Column.__or__, map(column, predicate.children))
            case ex.Not():
                return ~column(predicate.child)
            case ex.NotNaN() | ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith() | ex.NotIntersects():
                return ~column(~predicate)
            case ex.Predicate():
                return _test(predicate, *_term(gateway, predicate.term, column_of), mapping)
            case _:
                raise AssertionError(f"{predicate} is not a predicate")

    return column(predicate)


def _term(gateway: Gateway, term: ex.Term, column_of: Callable[[int], Column]) -> tuple[Column, types.IcebergType]:
    match term:
        case ex.BoundReference():
            return column_of(term.field_id), term.field.field_type
        case ex.BoundTransform():
            column, field_type = column_of(term.reference.field_id), term.reference.field.field_type
            transformed = transform_column(gateway, term.transform, column, field_type)
            return transformed, term.transform.result_type(field_type)
        case _:
            raise errors.InvalidExpressionError(f"{term} is not bound to a schema")


def _test(predicate: ex.Predicate, column: Column, field_type: types.IcebergType, mapping: TypeMapping) -> Column:
    has_nan = isinstance(field_type, types.FloatType | types.DoubleType)
    match predicate:
        case ex.IsNull():
            return column.isNull()
        case ex.NotNull():
            return column.isNotNull()
        case ex.IsNaN():
            return F.isnan(column) if has_nan else F.lit(False)
        case ex.Intersects() if isinstance(field_type, types.GeometryType | types.GeographyType):
            test = intersects_column(as_wkb(column, user_type(field_type, mapping)), predicate.box, field_type)
        case ex.StartsWith():
            test = column.startswith(F.lit(predicate.literal.value))
        case ex.In():
            test = column.isin(*(_literal(literal, field_type, mapping) for literal in predicate.literals))
        case ex.LiteralPredicate():
            test = _COMPARISONS[type(predicate)](column, _literal(predicate.literal, field_type, mapping))
        case _:
            raise AssertionError(f"{predicate} has no form for Spark columns")
    # These are false for null and NaN.
    return F.coalesce(test & ~F.isnan(column) if has_nan else test, F.lit(False))


def _literal(literal: ex.Literal, field_type: types.IcebergType, mapping: TypeMapping) -> Column:
    if isinstance(field_type, types.IntegerType | types.LongType):
        return lit(literal.value)
    text = sql_literal(literal.value, field_type, user_type(field_type, mapping))
    if text is None:
        raise errors.InvalidExpressionError(f"Spark has no constant for {literal}")
    return F.expr(text)
