"""Procedures about the health of a table as a whole: how it is, what is due, and its manifests."""

from collections.abc import Iterator

import pyarrow as pa

from icefloe.maintenance import HEALTH_SCHEMA
from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, integers, procedure


@procedure(
    integers("rewritten_manifests_count", "added_manifests_count"),
    Parameter("use_caching", Type.BOOLEAN),
    Parameter("spec_id", Type.INTEGER),
    Parameter("sort_by", Type.STRINGS),
)
def _rewrite_manifests(call: Call) -> Rows:
    """Only manifests of one spec, by default the current one, as the Java library does. There is nothing to cache."""
    table, spec_id = call.table(), call.get("spec_id")
    chosen = table.metadata.default_spec_id if spec_id is None else spec_id
    return [table.maintenance.rewrite_manifests(chosen, call.get("sort_by")).counts]


@procedure(HEALTH_SCHEMA, Parameter("branch", Type.STRING))
def _health(call: Call) -> Rows:
    """One row for each partition; the Java library has no such procedure."""
    return call.table().maintenance.health(call.get("branch")).to_arrow()


@procedure(
    pa.schema(
        [
            pa.field("step", pa.string()),
            pa.field("outcome", pa.string()),
            pa.field("reason", pa.string()),
            pa.field("result", pa.string()),
            pa.field("seconds", pa.float64()),
            pa.field("bytes", pa.int64()),
            pa.field("left", pa.list_(pa.string())),
            pa.field("error", pa.string()),
        ]
    ),
    Parameter("options", Type.MAP),
)
def _maintain(call: Call) -> Iterator[tuple[object, ...]]:
    """One row for each step; options are the table's properties `maintenance.*` for this run. The Java library has none."""
    report = call.table().maintenance.maintain(call.get("options"), engine=call.engine)
    for each in report.steps:
        result = None if each.result is None else str(each.result)
        yield str(each.step), str(each.outcome), each.reason, result, each.seconds, each.bytes, each.left, each.error
