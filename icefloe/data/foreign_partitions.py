"""Which partition all rows of a file are of, as far as the statistics of its columns tell."""

from collections.abc import Sequence
from typing import Any

from icefloe.errors import InvalidInputError
from icefloe.formats.metrics import Metrics
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.schema import BinaryType, DoubleType, FloatType, Schema, StringType, decode


class _Doubt(Exception):
    """Why the statistics do not tell."""


class _Several(_Doubt):
    """They tell that there is more than one."""


def infer_partition(spec: PartitionSpec, schema: Schema, metrics: Metrics, location: str) -> tuple[Any, ...]:
    """The one partition of all rows; an error if there are several, or the statistics do not tell."""
    values = []
    for field in spec.fields:
        try:
            values.append(_value(field, schema, metrics))
        except _Doubt as doubt:
            raise InvalidInputError(f"{location}: no value of partition field {field.name!r}: {doubt}") from None
    return tuple(values)


def check_told(values: Sequence[Any], spec: PartitionSpec, schema: Schema, metrics: Metrics, location: str) -> None:
    """Fail if the statistics contradict the partition that folders name."""
    for field, told in zip(spec.fields, values, strict=True):
        try:
            found = _value(field, schema, metrics)
        except _Several as several:
            raise InvalidInputError(
                f"{location}: its folders say that {field.name!r} is {told!r}, but {several}"
            ) from None
        except _Doubt:
            continue
        if found != told and metrics.record_count:
            raise InvalidInputError(
                f"{location}: its folders say that {field.name!r} is {told!r}, and its rows {found!r}"
            )


def _value(field: PartitionField, schema: Schema, metrics: Metrics) -> Any:
    if isinstance(field.transform, tr.VoidTransform) or not metrics.record_count:
        return None
    source = field.source_id
    column, kind = schema.names_by_id.get(source, str(source)), schema.fields_by_id[source].field_type
    nulls = metrics.null_value_counts.get(source)
    if nulls == metrics.record_count:
        return None
    lower, upper = metrics.lower_bounds.get(source), metrics.upper_bounds.get(source)
    if nulls is None or lower is None or upper is None:
        raise _Doubt(f"the file has no statistics of {column!r}")
    if isinstance(kind, FloatType | DoubleType):
        # Bounds leave NaN out, and a footer does not count it.
        raise _Doubt(f"the statistics of {column!r} do not tell whether there is a NaN")
    if nulls:
        raise _Several(f"{column!r} is null in some rows only")
    low, high = decode(lower, kind), decode(upper, kind)
    if low == high or (
        field.transform.preserves_order and field.transform.apply(low, kind) == field.transform.apply(high, kind)
    ):
        return field.transform.apply(low, kind)
    # Bounds of texts may have been cut by the writer, so two of them need not be two values.
    problem = _Doubt if isinstance(kind, StringType | BinaryType) else _Several
    raise problem(f"rows have {column!r} from {low!r} to {high!r}, which are several partitions")
