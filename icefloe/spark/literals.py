"""A value of a table as a literal of Spark's SQL, and back: the form of defaults in the metadata of Spark's fields."""

import re
import uuid

from pyspark.sql.types import DataType

from icefloe.errors import InvalidValueError
from icefloe.schema import Value, bytes_from_hex, coerce, parse_text, to_text, types

_QUOTED = re.compile(
    r"(?is)(?:cast\s*\(\s*)?(?:[a-z_]+\s*)?(?P<quote>['\"])(?P<text>(?:\\.|(?P=quote){2}|(?!(?P=quote)).)*)(?P=quote)(?:\s*as\s+[\w(), ]+\))?"
)
_HEX = re.compile(r"(?i)x'([0-9a-f]*)'")
_TEXT_BYTES = re.compile(r"(?i)cast\(x'([0-9a-f]*)' as string\)")
_NUMBER = re.compile(r"(?i)([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:l|s|y|d|f|bd)?")


def sql_literal(value: Value, field_type: types.IcebergType, shown: DataType) -> str | None:
    """The literal of a value for a column that Spark has as the type `shown`; None where Spark has none."""
    match field_type:
        case types.BooleanType():
            return "TRUE" if value else "FALSE"
        case types.IntegerType():
            return str(value)
        case types.LongType() | types.TimestampNanoType() | types.TimestamptzNanoType():
            return f"{value}L"
        case types.FloatType() | types.DoubleType():
            return f"CAST('{to_text(value, field_type)}' AS {field_type.name.upper()})"
        case types.DecimalType():
            return f"CAST('{to_text(value, field_type)}' AS DECIMAL({field_type.precision}, {field_type.scale}))"
        case types.DateType():
            return f"DATE '{to_text(value, field_type)}'"
        case types.TimeType():
            return f"{value}L" if shown.typeName() == "long" else f"TIME '{to_text(value, field_type)}'"
        case types.TimestampType():
            return f"TIMESTAMP_NTZ '{to_text(value, field_type)}'"
        case types.TimestamptzType():
            return f"TIMESTAMP_LTZ '{to_text(value, field_type)}'"
        case types.StringType():
            return text_literal(value)
        case types.UUIDType():
            return f"X'{value.hex}'" if shown.typeName() == "binary" else f"'{value}'"
        case types.FixedType() | types.BinaryType():
            return f"X'{value.hex()}'"
        case (
            types.GeometryType()
            | types.GeographyType()
            | types.UnknownType()
            | types.VariantType()
            | types.NestedType()
        ):
            return None
        case _:
            raise AssertionError(f"no literal for {field_type}")


def text_literal(text: str) -> str:
    """A string literal that means the same whatever `spark.sql.parser.escapedStringLiterals` says of backslashes."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)" if "'" in text or "\\" in text else f"'{text}'"


def quoted(text: str) -> str:
    """A string literal as people write it, for statements that are shown."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def value_of_literal(text: str, field_type: types.IcebergType) -> Value | None:
    """The value that a literal means for a column of a type; an error if it is no literal."""
    body = text.strip()
    if body.upper() == "NULL":
        return None
    if body.upper() in ("TRUE", "FALSE"):
        return coerce(body.upper() == "TRUE", field_type)
    if match := _HEX.fullmatch(body):
        raw = bytes_from_hex(match[1], types.BinaryType())
        return coerce(uuid.UUID(bytes=raw) if isinstance(field_type, types.UUIDType) else raw, field_type)
    if match := _TEXT_BYTES.fullmatch(body):
        return parse_text(bytes.fromhex(match[1]).decode(), field_type)
    if match := _NUMBER.fullmatch(body):
        if isinstance(field_type, types.TimeType | types.TimestampNanoType | types.TimestamptzNanoType):
            return coerce(int(match[1]), field_type)
        return parse_text(match[1], field_type)
    if match := _QUOTED.fullmatch(body):
        quote = match["quote"]
        return parse_text(re.sub(rf"(?s)\\(.)|{quote}({quote})", _unescaped, match["text"]), field_type)
    raise InvalidValueError(f"{text!r} is not a literal")


def _unescaped(match: re.Match[str]) -> str:
    return match[2] or {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(match[1], match[1])
