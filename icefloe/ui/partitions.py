"""Partitions of a snapshot: totals, readable names, and filters that select their files."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalog import At
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionField
from icefloe.progress import Listener, Progress
from icefloe.table import Table

_COUNTS = ("year", "month", "hour")
"""Transforms with integer results that need formatting to be readable."""


def digest_partitions(table: Table, at: At, listener: Listener) -> pa.Table:
    """Return the partitions of a snapshot."""
    listener(Progress("manifests", 0, 0))
    return table.inspect.scan("partitions", **at).to_arrow()


def partition_filter(partition: Mapping[str, object]) -> str:
    """Return the filter on the metadata table `files` that selects one partition."""
    return " and ".join(_equals(f"partition.{_quoted(name)}", value) for name, value in partition.items())


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _equals(column: str, value: object) -> str:
    match value:
        case None:
            return f"{column} is null"
        case bool() | int():
            return f"{column} = {str(value).lower()}"
        case bytes():
            return f"{column} = X'{value.hex()}'"
        case _:
            return f"{column} = '{str(value).replace(chr(39), chr(39) * 2)}'"


def counted_fields(metadata: TableMetadata) -> Mapping[str, PartitionField]:
    """Return the fields whose values count units since 1970, by name."""
    return {
        field.name: field
        for spec in metadata.partition_specs
        for field in spec.fields
        if str(field.transform) in _COUNTS
    }


def shown_partition(partition: Mapping[str, object] | None, counted: Mapping[str, PartitionField]) -> str:
    """Format a partition in one line."""
    return " / ".join(f"{name}={_shown(value, counted.get(name))}" for name, value in (partition or {}).items())


def _shown(value: object, field: PartitionField | None) -> str:
    if value is None:
        return "null"
    if field is not None and isinstance(value, int):
        # Years, months and hours do not need the source type.
        return str(field.transform.to_human(value, None))  # type: ignore[arg-type]  # see above
    return str(value)


def sorted_partitions(partitions: pa.Table, column: str, offset: int, count: int) -> list[dict[str, Any]]:
    """Return a range of the partitions sorted by a column in descending order."""
    indices = pc.sort_indices(partitions.column(column), sort_keys=[("", "descending")])
    rows: list[dict[str, Any]] = partitions.take(indices.slice(offset, count)).to_pylist()
    return rows
