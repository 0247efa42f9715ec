"""The procedures that compute statistics of a table and of its partitions."""

import pyarrow as pa

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, procedure

_SNAPSHOT = Parameter("snapshot_id", Type.LONG)


@procedure(pa.schema([pa.field("statistics_file", pa.string())]), _SNAPSHOT, Parameter("columns", Type.STRINGS))
def _compute_table_stats(call: Call) -> Rows:
    """One row with the file, or none if the table has no snapshot."""
    done = call.table().maintenance.compute_table_stats(
        call.get("snapshot_id"), call.get("columns"), engine=call.engine
    )
    return [] if done.statistics_file is None else [(done.statistics_file,)]


@procedure(pa.schema([pa.field("partition_statistics_file", pa.string())]), _SNAPSHOT)
def _compute_partition_stats(call: Call) -> Rows:
    """One row with the file, or none if there is nothing to count."""
    done = call.table().maintenance.compute_partition_stats(call.get("snapshot_id"))
    return [] if done.partition_statistics_file is None else [(done.partition_statistics_file,)]
