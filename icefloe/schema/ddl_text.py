"""Decides how a schema is written as the text that `parse_ddl` reads back; field ids and initial defaults have no place in it."""

import re
from typing import Any

from icefloe.schema import types
from icefloe.schema.schema import Schema
from icefloe.schema.values import to_text

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def format_ddl(schema: Schema, separator: str = ", ") -> str:
    """The text that defines these columns, without ids, identifier fields and initial defaults."""
    return separator.join(_field_to_ddl(field, " ") for field in schema.fields)


def _field_to_ddl(field: types.NestedField, separator: str) -> str:
    name = field.name if _PLAIN_NAME.fullmatch(field.name) else "`" + field.name.replace("`", "``") + "`"
    parts = [f"{name}{separator}{_type_to_ddl(field.field_type)}"]
    if field.required:
        parts.append("not null")
    if field.write_default is not None:
        parts.append(f"default {_literal(field.write_default, field)}")
    if field.doc is not None:
        parts.append(f"comment {_quote(field.doc)}")
    return " ".join(parts)


def _type_to_ddl(field_type: types.IcebergType) -> str:
    match field_type:
        case types.StructType():
            return f"struct<{', '.join(_field_to_ddl(field, ': ') for field in field_type)}>"
        case types.ListType():
            return f"list<{_type_to_ddl(field_type.element_type)}{' not null' if field_type.element_required else ''}>"
        case types.MapType():
            value = f"{_type_to_ddl(field_type.value_type)}{' not null' if field_type.value_required else ''}"
            return f"map<{_type_to_ddl(field_type.key_type)}, {value}>"
        case _:
            return str(field_type)


def _literal(value: Any, field: types.NestedField) -> str:
    match field.field_type:
        case types.StructType():
            return "{}"
        case types.BooleanType() | types.IntegerType() | types.LongType() | types.DecimalType() as field_type:
            return to_text(value, field_type)
        case field_type:
            return _quote(to_text(value, field_type))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
