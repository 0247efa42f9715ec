"""Single values in JSON, as column defaults hold them (spec: Appendix D, JSON single-value serialization).

Reading is strict: a value of another JSON type, scale, length or offset than the spec names is an InvalidValueError.
NaN and infinities have no JSON form, and neither have `unknown` and `variant` but for null.
"""

import math
import re
from decimal import Decimal

from icefloe.errors import InvalidValueError
from icefloe.schema import temporal, types
from icefloe.schema.coercion import NUMBER_TEXT, bytes_from_hex, coerce, misfit
from icefloe.schema.values import shortest_float, to_text

_KEYS, _VALUES = "keys", "values"
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def value_to_json(value: types.Value, field_type: types.IcebergType) -> object:
    """The JSON form of an internal value, as Python objects that any JSON writer takes."""
    return _to_json(coerce(value, field_type), field_type)


def value_from_json(json: object, field_type: types.IcebergType) -> types.Value:
    """The internal value of a JSON form."""
    if json is None:
        return None
    match field_type:
        case types.BooleanType() | types.IntegerType() | types.LongType():
            return coerce(json, field_type)
        case types.FloatType() | types.DoubleType():
            number = coerce(json, field_type)
            if not math.isfinite(number):
                raise misfit(json, field_type, "JSON holds finite numbers only")
            return number
        case types.StructType():
            return _struct_from_json(json, field_type)
        case types.ListType():
            if not isinstance(json, list):
                raise misfit(json, field_type, "its JSON form is an array")
            return tuple(_child_from_json(element, field_type.element_field, field_type) for element in json)
        case types.MapType():
            return _map_from_json(json, field_type)
    if not isinstance(json, str):
        raise misfit(json, field_type, "its JSON form is a string")
    match field_type:
        case types.DecimalType():
            return _decimal_from_json(json, field_type)
        case types.TimestampType() | types.TimestampNanoType() | types.TimestamptzType() | types.TimestamptzNanoType():
            if "T" not in json:
                raise misfit(json, field_type, "it needs a 'T' between date and time, like 2017-11-16T22:31:08")
            is_zoned = isinstance(field_type, types.TimestamptzType | types.TimestamptzNanoType)
            if is_zoned and temporal.parse_timestamp(json)[1] != 0:
                raise misfit(json, field_type, "its offset must be +00:00")
            return coerce(json, field_type)
        case types.UUIDType():
            if _UUID.fullmatch(json) is None:
                raise misfit(json, field_type, "write it like f79c3e09-677c-4bbd-a479-3f349cb785e7")
            return coerce(json, field_type)
        case types.FixedType() | types.BinaryType():
            return coerce(bytes_from_hex(json, field_type), field_type)
        case types.DateType() | types.TimeType() | types.StringType() | types.GeometryType() | types.GeographyType():
            return coerce(json, field_type)
        case _:
            raise InvalidValueError(f"{field_type} has no JSON form but null, found {json!r}")


def _to_json(value: types.Value, field_type: types.IcebergType) -> object:
    if value is None:
        return None
    match field_type:
        case types.BooleanType() | types.IntegerType() | types.LongType() | types.StringType():
            return value
        case types.FloatType() | types.DoubleType():
            if not math.isfinite(value):
                raise misfit(value, field_type, "JSON holds finite numbers only")
            return shortest_float(value) if isinstance(field_type, types.FloatType) else value
        case types.StructType():
            fields = {field.field_id: field.field_type for field in field_type.fields}
            return {str(field_id): _to_json(child, fields[field_id]) for field_id, child in value}
        case types.ListType():
            return [_to_json(element, field_type.element_type) for element in value]
        case types.MapType():
            return {
                _KEYS: [_to_json(key, field_type.key_type) for key, _ in value],
                _VALUES: [_to_json(item, field_type.value_type) for _, item in value],
            }
        case _:
            return to_text(value, field_type)


def _decimal_from_json(json: str, field_type: types.DecimalType) -> Decimal:
    if NUMBER_TEXT.fullmatch(json) is None:
        raise misfit(json, field_type, "write a number like 14.20")
    number = Decimal(json)
    if number.as_tuple().exponent != -field_type.scale:
        raise misfit(json, field_type, f"it must have exactly {field_type.scale} digits after the point")
    return coerce(number, field_type)  # type: ignore[no-any-return]  # a Decimal, by the type


def _struct_from_json(json: object, field_type: types.StructType) -> tuple[tuple[int, types.Value], ...]:
    """Fields that are not given stay out of the value, so that their defaults apply."""
    if not isinstance(json, dict):
        raise misfit(json, field_type, "its JSON form is an object by field id")
    fields = {str(field.field_id): field for field in field_type.fields}
    for key in json:
        if key not in fields:
            raise misfit(
                json, field_type, f"it has no field with id {key!r}; its ids are {', '.join(fields) or 'none'}"
            )
    return tuple(
        (field.field_id, _child_from_json(json[key], field, field_type)) for key, field in fields.items() if key in json
    )


def _map_from_json(json: object, field_type: types.MapType) -> tuple[tuple[types.Value, types.Value], ...]:
    if not isinstance(json, dict) or set(json) != {_KEYS, _VALUES}:
        raise misfit(json, field_type, f"its JSON form is an object of {_KEYS!r} and {_VALUES!r}")
    keys, values = json[_KEYS], json[_VALUES]
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise misfit(json, field_type, f"{_KEYS!r} and {_VALUES!r} must be arrays of one length")
    pairs = tuple(
        (_child_from_json(k, field_type.key_field, field_type), _child_from_json(v, field_type.value_field, field_type))
        for k, v in zip(keys, values, strict=True)
    )
    # By text, because 0.0 and -0.0 are two keys.
    if len({repr(key) for key, _ in pairs}) != len(pairs):
        raise misfit(json, field_type, "a key occurs twice")
    return pairs


def _child_from_json(json: object, field: types.NestedField, field_type: types.IcebergType) -> types.Value:
    if json is None and field.required:
        raise misfit(json, field_type, f"its {field.name} is required")
    return value_from_json(json, field.field_type)
