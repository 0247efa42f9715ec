"""The procedures that compute statistics of a table and of its partitions."""

import pyarrow as pa

from icefloe.metadata import summary as totals
from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, procedure
from icefloe.table import Table

_SMALL_BYTES = 512 << 20
"""Tables up to this size are read here: before Spark's tasks have begun, most of the work is done."""
_SNAPSHOT = Parameter("snapshot_id", Type.LONG)


@procedure(pa.schema([pa.field("statistics_file", pa.string())]), _SNAPSHOT, Parameter("columns", Type.STRINGS))
def _compute_table_stats(call: Call) -> Rows:
    """One row with the file, or none if the table has no snapshot."""
    table = call.table()
    done = table.maintenance.compute_table_stats(
        call.get("snapshot_id"), call.get("columns"), engine=None if _is_small(table) else call.engine
    )
    return [] if done.statistics_file is None else [(done.statistics_file,)]


@procedure(pa.schema([pa.field("partition_statistics_file", pa.string())]), _SNAPSHOT)
def _compute_partition_stats(call: Call) -> Rows:
    """One row with the file, or none if there is nothing to count."""
    done = call.table().maintenance.compute_partition_stats(call.get("snapshot_id"))
    return [] if done.partition_statistics_file is None else [(done.partition_statistics_file,)]


def _is_small(table: Table) -> bool:
    current = table.current_snapshot()
    summary = None if current is None else current.summary
    size = None if summary is None else summary.get(totals.TOTAL_FILES_SIZE)
    return size is not None and size.isdigit() and int(size) <= _SMALL_BYTES
