"""The procedures about delete files; of these Java Iceberg has `rewrite_position_delete_files` alone."""

from dataclasses import astuple

import pyarrow as pa

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, integers, longs, procedure


@procedure(
    integers(
        "removed_delete_files_count",
        "removed_position_delete_files_count",
        "removed_equality_delete_files_count",
        "removed_deletion_vectors_count",
    ),
    Parameter("branch", Type.STRING),
)
def _remove_dangling_deletes(call: Call) -> Rows:
    return [astuple(call.table().maintenance.remove_dangling_deletes(call.get("branch")))[:4]]


@procedure(
    integers("converted_equality_delete_files_count", "added_position_delete_files_count", "removed_data_files_count")
    .append(pa.field("rewritten_rows_count", pa.int64()))
    .append(pa.field("kept_equality_delete_files_count", pa.int32())),
    Parameter("where", Type.STRING),
    Parameter("options", Type.MAP),
)
def _convert_equality_deletes(call: Call) -> Rows:
    done = call.table().maintenance.convert_equality_deletes(call.get("where"), call.get("options"), engine=call.engine)
    return [astuple(done)[:5]]


@procedure(
    pa.schema(
        [
            *integers("rewritten_delete_files_count", "added_delete_files_count"),
            *longs("rewritten_bytes_count", "added_bytes_count"),
        ]
    ),
    Parameter("options", Type.MAP),
    Parameter("where", Type.STRING),
)
def _rewrite_position_delete_files(call: Call) -> Rows:
    done = call.table().maintenance.rewrite_position_delete_files(
        call.get("options"), call.get("where"), engine=call.engine
    )
    return [astuple(done)[:4]]
