"""Which transform of a column an expression of a filter is: `system.bucket(16, id)` and the like, as `transforms.py` makes them.

Files are planned by their partitions and bounds then, as by a filter on the transform itself. What only resembles one of these
expressions, a hash of something that is computed, say, is none.
"""

from collections.abc import Callable
from typing import NoReturn

from icefloe import expressions as ex
from icefloe.partitioning import transforms as tr
from icefloe.schema import types
from icefloe.spark.catalyst import Node, NotUnderstood

_MOMENTS = (types.TimestampType, types.TimestamptzType)
_EPOCH_YEAR, _MONTHS = 1970, 12

_FieldOf = Callable[[Node], types.NestedField]
_Call = tuple[tr.Transform, types.NestedField]


def transform_of(node: Node, field_of: _FieldOf) -> tuple[ex.Term, types.IcebergType] | None:
    """The transform of a column that a node computes, as a term, and the type of its results; None if it is none."""
    try:
        call = _call(node, field_of)
    except (NotUnderstood, LookupError, ValueError):
        return None
    if call is None:
        return None
    transform, field = call
    return ex.Transformed(transform, ex.IdReference(field.field_id)), transform.result_type(field.field_type)


def _call(node: Node, field_of: _FieldOf) -> _Call | None:
    match node.name:
        case "Remainder":
            return _bucket(node, field_of)
        case "Substring" if _number(node.children[1]) == 1:
            width = _number(node.children[2])
            return tr.TruncateTransform(width), _of_type(node.children[0], field_of, types.StringType, types.BinaryType)
        case "Subtract":
            return _year_or_month(node, field_of)
        case "DateFromUnixDate":
            return tr.DayTransform(), _field_of_days(node, field_of)
    match _static(node):
        case "toIntExact":
            return tr.HourTransform(), _counted_in(node.children[0], tr.MICROS_PER_HOUR, field_of)
        case "sum":
            return _rounded_down(node, field_of)
    return None


def _bucket(node: Node, field_of: _FieldOf) -> _Call:
    masked, number = node.children
    hashed, mask = masked.children if masked.name == "BitwiseAnd" else _refuse()
    value, *rest = hashed.children
    if _number(mask) != tr.MAX_INT or _number(rest[-1]) != 0:
        raise NotUnderstood
    match _static(hashed):
        case "hashLong" if value.name == "PreciseTimestampConversion":
            field = _of_type(value.children[0], field_of, *_MOMENTS)
        case "hashLong" if value.name == "Cast" and value.children[0].name == "UnixDate":
            field = _of_type(value.children[0].children[0], field_of, types.DateType)
        case "hashLong" if value.name == "Cast":
            field = _of_type(value.children[0], field_of, types.IntegerType)
        case "hashLong":
            field = _of_type(value, field_of, types.LongType)
        case "hashUnsafeBytes2" if value.name == "Cast":
            field = _of_type(value.children[0], field_of, types.StringType)
        case "hashUnsafeBytes2":
            field = _of_type(value, field_of, types.BinaryType)
        case _:
            raise NotUnderstood
    return tr.BucketTransform(_number(number)), field


def _rounded_down(node: Node, field_of: _FieldOf) -> _Call:
    """`x - floorMod(x, width)`."""
    value, less = node.children
    [rest] = less.children if _static(less) == "negateExact" else _refuse()
    again, width = rest.children if _static(rest) == "floorMod" else _refuse()
    field = _of_type(value, field_of, types.IntegerType, types.LongType)
    if field_of(again) != field:
        raise NotUnderstood
    return tr.TruncateTransform(_number(width)), field


def _year_or_month(node: Node, field_of: _FieldOf) -> _Call:
    if node.children[0].name == "Year":
        return tr.YearTransform(), _field_of_years(node, field_of)
    total, one = node.children
    of_years, month = total.children if total.name == "Add" else _refuse()
    years, months = of_years.children if of_years.name == "Multiply" else _refuse()
    field = _field_of_years(years, field_of)
    is_month = month.name == "Month" and _field_of_days(month.children[0], field_of) == field
    if not is_month or (_number(months), _number(one)) != (_MONTHS, 1):
        raise NotUnderstood
    return tr.MonthTransform(), field


def _field_of_years(node: Node, field_of: _FieldOf) -> types.NestedField:
    """The column of `year(...) - 1970`."""
    year, epoch = node.children if node.name == "Subtract" else _refuse()
    if year.name != "Year" or _number(epoch) != _EPOCH_YEAR:
        raise NotUnderstood
    return _field_of_days(year.children[0], field_of)


def _field_of_days(node: Node, field_of: _FieldOf) -> types.NestedField:
    if node.name != "DateFromUnixDate":
        return _of_type(node, field_of, types.DateType)
    exact = node.children[0]
    days = exact.children[0] if _static(exact) == "toIntExact" else _refuse()
    return _counted_in(days, tr.MICROS_PER_HOUR * tr.HOURS_PER_DAY, field_of)


def _counted_in(node: Node, micros: int, field_of: _FieldOf) -> types.NestedField:
    """The column of timestamps that a node counts in units of so many microseconds."""
    moment, unit = node.children if _static(node) == "floorDiv" else _refuse()
    if moment.name != "PreciseTimestampConversion" or _number(unit) != micros:
        raise NotUnderstood
    return _of_type(moment.children[0], field_of, *_MOMENTS)


def _of_type(node: Node, field_of: _FieldOf, *of: type[types.IcebergType]) -> types.NestedField:
    field = field_of(node)
    if not isinstance(field.field_type, of):
        raise NotUnderstood
    return field


def _static(node: Node) -> str | None:
    """The name of the static method of Java's that a node calls."""
    return str(node.facts.get("functionName")) if node.name == "objects.StaticInvoke" else None


def _number(node: Node) -> int:
    if node.name != "Literal":
        raise NotUnderstood
    return int(str(node.facts["value"]))


def _refuse() -> NoReturn:
    raise NotUnderstood
