"""How columns that Spark's Parquet reader gives become columns as users see them: their names, uuid as text, geometries."""

from typing import Any

from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812  # its usual name
)

from icefloe.schema import types
from icefloe.spark.gateway import Gateway
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
