"""The procedure `rewrite_data_files`, with the parameters and result columns of Java Iceberg."""

import pyarrow as pa

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, procedure

_SMALL = 128 << 20
"""Bytes of files that this process rewrites faster than a few tasks of Spark (docs/benchmarks.md, compaction)."""


@procedure(
    pa.schema(
        {
            "rewritten_data_files_count": pa.int32(),
            "added_data_files_count": pa.int32(),
            "rewritten_bytes_count": pa.int64(),
            "failed_data_files_count": pa.int32(),
            "removed_delete_files_count": pa.int32(),
        }
    ),
    Parameter("strategy", Type.STRING),
    Parameter("sort_order", Type.STRING),
    Parameter("options", Type.MAP),
    Parameter("where", Type.STRING),
    Parameter("branch", Type.STRING),
)
def _rewrite_data_files(call: Call) -> Rows:
    arguments = {name: call.get(name) for name in ("strategy", "sort_order", "options", "where", "branch")}
    plan = call.table().maintenance.rewrite_data_files(**arguments, dry_run=True)
    is_small = sum(group.size_in_bytes for group in plan.groups) < _SMALL
    return [plan.run(None if is_small else call.engine).counts]
