"""How columns that Spark's Parquet reader gives become columns as users see them: their names, uuid as text, geometries."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column, functions as F  # noqa: N812  # its usual name

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError
from icefloe.schema import types
from icefloe.spark.gateway import Gateway, lit
from icefloe.spark.literals import sql_literal
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import TypeMapping, user_type

_UUID_PARTS = ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6))


def quoted_name(name: str) -> str:
    """A name that Spark takes for one part, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def to_user(
    column: Column,
    given: types.IcebergType,
    wanted: types.IcebergType,
    mapping: TypeMapping,
    gateway: Gateway | None = None,
) -> Column:
    """A column of the type as files have it, as users see the type; `wanted` may have fewer fields in its structs.

    With a gateway, structs outside of lists and maps are made so that Spark still reads only the fields that are asked for.
    """
    if not _differs(given, wanted, mapping):
        return column
    match given, wanted:
        case _, types.UnknownType():
            return F.lit(None)
        case types.UUIDType(), _:
            return uuid_text(column)
        case ((types.GeometryType() | types.GeographyType()), _):
            return _geo(column, wanted, mapping)
        case types.StructType(), types.StructType():
            if gateway is not None and _has_no_twins(given) and _has_no_twins(wanted):
                return _changed(column, given, wanted, mapping, gateway)
            fields = (_field(column, given, field, mapping, None).alias(field.name) for field in wanted)
            return F.when(column.isNotNull(), F.struct(*fields))
        case types.ListType(), types.ListType():
            return F.transform(
                column, lambda element: to_user(element, given.element_type, wanted.element_type, mapping)
            )
        case types.MapType(), types.MapType():
            keys = F.transform(F.map_keys(column), lambda key: to_user(key, given.key_type, wanted.key_type, mapping))
            values = F.transform(
                F.map_values(column), lambda value: to_user(value, given.value_type, wanted.value_type, mapping)
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
    column: Column, given: types.StructType, wanted: types.StructType, mapping: TypeMapping, gateway: Gateway
) -> Column:
    """The struct with what differs in it replaced; fields go to its end, so all from the first that differs do."""
    same = 0
    for one, other in zip(given, wanted, strict=False):
        if (one.field_id, one.name) != (other.field_id, other.name) or _differs(
            one.field_type, other.field_type, mapping
        ):
            break
        same += 1
    added = ((field.name, _field(column, given, field, mapping, gateway)) for field in wanted.fields[same:])
    return gateway.with_fields(column, (field.name for field in given.fields[same:]), added)


def _field(
    column: Column, given: types.StructType, wanted: types.NestedField, mapping: TypeMapping, gateway: Gateway | None
) -> Column:
    if isinstance(wanted.field_type, types.UnknownType):
        return F.lit(None)
    [source] = (field for field in given if field.field_id == wanted.field_id)
    return to_user(column.getField(source.name), source.field_type, wanted.field_type, mapping, gateway)


def _has_no_twins(struct: types.StructType) -> bool:
    """Whether no two names are the same but for case, which Spark would take for one where it changes a struct."""
    return len({field.name.lower() for field in struct}) == len(struct)


def _geo(column: Column, field_type: Any, mapping: TypeMapping) -> Column:
    shown = user_type(field_type, mapping)
    if shown.typeName() == "binary":
        return column
    if isinstance(field_type, types.GeographyType):
        return F.call_function("st_geogfromwkb", column)
    return F.call_function("st_setsrid", F.call_function("st_geomfromwkb", column), F.lit(shown.srid))


def _differs(given: types.IcebergType, wanted: types.IcebergType, mapping: TypeMapping) -> bool:
    """Whether users see a value of the type otherwise than files have it."""
    match given, wanted:
        case _, (types.UnknownType() | types.UUIDType()):
            return True
        case _, (types.GeometryType() | types.GeographyType()):
            return mapping.geo
        case types.StructType(), types.StructType():
            if [(field.field_id, field.name) for field in given] != [(field.field_id, field.name) for field in wanted]:
                return True
            pairs = zip(given, wanted, strict=True)
            return any(_differs(one.field_type, other.field_type, mapping) for one, other in pairs)
        case types.ListType(), types.ListType():
            return _differs(given.element_type, wanted.element_type, mapping)
        case types.MapType(), types.MapType():
            return _differs(given.key_type, wanted.key_type, mapping) or _differs(
                given.value_type, wanted.value_type, mapping
            )
        case _:
            return False


ColumnOf = Callable[[int], Column]
"""From a field's id to the column as users see it."""


def filter_column(gateway: Gateway, predicate: ex.Expression, column_of: ColumnOf, mapping: TypeMapping) -> Column:
    """A bound predicate as a column."""
    return _Translation(gateway, column_of, mapping).column(predicate)


class _Translation:
    def __init__(self, gateway: Gateway, column_of: ColumnOf, mapping: TypeMapping) -> None:
        self._gateway = gateway
        self._column_of = column_of
        self._mapping = mapping

    def column(self, predicate: ex.Expression) -> Column:
        match predicate:
            case ex.AlwaysTrue() | ex.AlwaysFalse():
                return F.lit(isinstance(predicate, ex.AlwaysTrue))
            case ex.And():
                return reduce(Column.__and__, map(self.column, predicate.children))
            case ex.Or():
                return reduce(Column.__or__, map(self.column, predicate.children))
            case ex.Not():
                return ~self.column(predicate.child)
            case ex.IsNull():
                return self._term(predicate.term)[0].isNull()
            case ex.NotNull():
                return self._term(predicate.term)[0].isNotNull()
            case ex.IsNaN() | ex.NotNaN():
                column, field_type = self._term(predicate.term)
                is_nan = F.isnan(column) if _has_nan(field_type) else F.lit(False)
                return is_nan if isinstance(predicate, ex.IsNaN) else ~is_nan
            case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith():
                return ~self.column(~predicate)
            case _:
                return self._known(predicate)

    def _known(self, predicate: Any) -> Column:
        """Tests that are false for null and NaN."""
        column, field_type = self._term(predicate.term)
        match predicate:
            case ex.StartsWith():
                test = column.startswith(F.lit(predicate.literal.value))
            case ex.In():
                test = column.isin(*(self._literal(literal, field_type) for literal in predicate.literals))
            case ex.EqualTo():
                test = column == self._literal(predicate.literal, field_type)
            case ex.LessThan():
                test = column < self._literal(predicate.literal, field_type)
            case ex.LessThanOrEqual():
                test = column <= self._literal(predicate.literal, field_type)
            case ex.GreaterThan():
                test = column > self._literal(predicate.literal, field_type)
            case ex.GreaterThanOrEqual():
                test = column >= self._literal(predicate.literal, field_type)
            case _:
                raise AssertionError(f"{predicate} is not a predicate")
        if _has_nan(field_type):
            test = test & ~F.isnan(column)
        return F.coalesce(test, F.lit(False))

    def _term(self, term: ex.Term) -> tuple[Column, types.IcebergType]:
        match term:
            case ex.BoundReference():
                return self._column_of(term.field_id), term.field.field_type
            case ex.BoundTransform():
                source = term.reference
                column = self._column_of(source.field_id)
                field_type = source.field.field_type
                return transform_column(self._gateway, term.transform, column, field_type), term.transform.result_type(
                    field_type
                )
            case _:
                raise InvalidExpressionError(f"{term} is not bound to a schema")

    def _literal(self, literal: ex.Literal, field_type: types.IcebergType) -> Column:
        if isinstance(field_type, types.IntegerType | types.LongType):
            return lit(literal.value)
        text = sql_literal(literal.value, field_type, user_type(field_type, self._mapping))
        if text is None:
            raise InvalidExpressionError(f"Spark has no constant for {literal}")
        return F.expr(text)


def _has_nan(field_type: types.IcebergType) -> bool:
    return isinstance(field_type, types.FloatType | types.DoubleType)
