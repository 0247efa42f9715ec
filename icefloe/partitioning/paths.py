"""How a partition tuple is written in a path, `name=value/...`, and read back.

The format does not define such paths: the tuple in the manifest is the truth. Paths are for people, and for imports of
Hive-style directories.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote_plus, unquote

from icefloe.errors import InvalidPartitionSpecError, InvalidValueError
from icefloe.partitioning import transforms as tr
from icefloe.partitioning.human import EPOCH_YEAR, NULL_TEXT
from icefloe.partitioning.spec import PartitionField, PartitionSpec, partition_type
from icefloe.schema import Schema, Value, parse_text, temporal, types

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_DIGITS = r"([+-]?[0-9]{1,10})"


def partition_path(spec: PartitionSpec, values: Sequence[Value], schema: Schema) -> str:
    """The tuple as a relative path: `ts_day=2024-01-31/region=eu`; empty for an unpartitioned spec."""
    if len(values) != len(spec.fields):
        raise InvalidPartitionSpecError(
            f"partition tuple {tuple(values)!r} has {len(values)} values; the spec has {len(spec.fields)} fields"
        )
    return "/".join(
        f"{_encode(field.name)}={_encode(field.transform.to_human(value, _source_type(field, schema)))}"
        for field, value in zip(spec.fields, values, strict=True)
    )


def split_hive_path(path: str) -> dict[str, str]:
    """The `name=value` parts of a Hive or Spark directory, decoded; other parts are skipped. A `+` is a plus there."""
    texts: dict[str, str] = {}
    for part in path.split("/"):
        name, equals, value = part.partition("=")
        if not equals or not name:
            continue
        try:
            key, text = unquote(name, errors="strict"), unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise InvalidValueError(f"part {part!r} of path {path!r} is not UTF-8 in URL encoding") from None
        if key in texts:
            raise InvalidValueError(f"path {path!r} has two values for {key!r}")
        texts[key] = text
    return texts


def partition_values(texts: Mapping[str, str], spec: PartitionSpec, schema: Schema) -> tuple[Value, ...]:
    """The tuple from the values as text, by field name."""
    values = []
    for field, typed in zip(spec.fields, partition_type(spec, schema).fields, strict=True):
        if field.name not in texts:
            raise InvalidValueError(f"no value for partition field {field.name!r} among {', '.join(texts) or 'none'}")
        try:
            values.append(_parse(texts[field.name], field, typed.field_type))
        except InvalidValueError as error:
            raise InvalidValueError(f"partition field {field.name!r}: {error}") from None
    return tuple(values)


def _parse(text: str, field: PartitionField, field_type: types.IcebergType) -> Value:
    # The text of a null and of the string `null` are the same; a null is meant far more often.
    if text in (NULL_TEXT, HIVE_NULL):
        return None
    if isinstance(field.transform, tr.VoidTransform) or isinstance(field_type, types.UnknownType):
        raise InvalidValueError(f"{text!r} is not null, the only value of {field.transform}")
    match field.transform:
        case tr.TimeTransform():
            return _parse_time(text, field.transform)
        case tr.BucketTransform(num_buckets=buckets):
            value = parse_text(text, field_type)
            if not 0 <= value < buckets:
                raise InvalidValueError(f"{value} is not one of {buckets} buckets, which are numbered from 0")
            return value
        case _ if isinstance(field_type, types.FixedType | types.BinaryType):
            return _parse_bytes(text, field_type)
        case _:
            return _parse_day(text) if isinstance(field_type, types.DateType) else parse_text(text, field_type)


def _parse_time(text: str, transform: tr.TimeTransform) -> int:
    match transform:
        case tr.YearTransform():
            match = re.fullmatch(_DIGITS, text)
            if match:
                return int(match[1]) - EPOCH_YEAR
        case tr.MonthTransform():
            match = re.fullmatch(rf"{_DIGITS}-(0[1-9]|1[0-2])", text)
            if match:
                return (int(match[1]) - EPOCH_YEAR) * 12 + int(match[2]) - 1
        case tr.DayTransform():
            return _parse_day(text)
        case tr.HourTransform():
            day, dash, hour = text.rpartition("-")
            if dash and re.fullmatch(r"[01][0-9]|2[0-3]", hour):
                return _parse_day(day) * 24 + int(hour)
        case _:
            raise AssertionError(f"{transform!r} is not a unit of time")
    raise InvalidValueError(f"{text!r} is not a {transform}, which is written as {_EXAMPLES[transform.unit]}")


_EXAMPLES = {"year": "2024", "month": "2024-01", "hour": "2024-01-31-07"}


def _parse_day(text: str) -> int:
    # Years are padded to four places with their sign here, which ISO 8601 does not have.
    match = re.fullmatch(rf"{_DIGITS}(-[0-9]{{2}}-[0-9]{{2}})", text)
    if match is None:
        raise InvalidValueError(f"{text!r} is not a day, which is written as 2024-01-31")
    year = int(match[1])
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return temporal.parse_date(f"{sign}{abs(year):04d}{match[2]}")


def _parse_bytes(text: str, field_type: types.IcebergType) -> bytes:
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValueError(f"{text!r} is not base64, in which values of type {field_type} are written") from None
    if isinstance(field_type, types.FixedType) and len(value) != field_type.length:
        raise InvalidValueError(f"{text!r} is {len(value)} bytes; values of type {field_type} have {field_type.length}")
    return value


def _source_type(field: PartitionField, schema: Schema) -> types.IcebergType:
    source = schema.fields_by_id.get(field.source_id)
    return source.field_type if source is not None else types.UnknownType()


def _encode(text: str) -> str:
    # Java's URLEncoder: space becomes `+`, and of the marks only `.-*_` stay as they are.
    return quote_plus(text, safe="*").replace("~", "%7E")
