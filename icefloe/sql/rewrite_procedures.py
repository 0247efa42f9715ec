"""The procedure `rewrite_data_files`, with the parameters and result columns of Java Iceberg."""

import pyarrow as pa

from icefloe.maintenance import (
    MaintenanceEngine,
    RewritePlan,
    RewriteRequest,
    Threads,
    engine_of,
    plan_rewrite,
    run_rewrite,
)
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
    strategy, sort_order = call.get("strategy"), call.get("sort_order")
    options = RewriteRequest.options_of(strategy, sort_order, call.get("options"), None)
    request = RewriteRequest(call.table(), strategy, sort_order, call.get("where"), options, call.get("branch"))
    plan = plan_rewrite(request)
    return [run_rewrite(plan, engine_for(plan, engine_of(call.engine)), again=request.again).counts]


def engine_for(plan: RewritePlan, engine: MaintenanceEngine) -> MaintenanceEngine:
    """The engine of the call, unless this process is faster: for little work, and by as many cores for any."""
    here = Threads()
    is_small = sum(group.size_in_bytes for group in plan.groups) < _SMALL
    return here if is_small or engine.cores <= here.cores else engine
