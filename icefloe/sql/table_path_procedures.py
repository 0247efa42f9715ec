"""`rewrite_table_path` under the parameters and result columns of Java Iceberg."""

import pyarrow as pa

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, integers, procedure


@procedure(
    pa.schema(
        [
            pa.field("latest_version", pa.string()),
            pa.field("file_list_location", pa.string()),
            *integers("rewritten_manifest_file_paths_count", "rewritten_delete_file_paths_count"),
        ]
    ),
    Parameter("source_prefix", Type.STRING, required=True),
    Parameter("target_prefix", Type.STRING, required=True),
    Parameter("start_version", Type.STRING),
    Parameter("end_version", Type.STRING),
    Parameter("staging_location", Type.STRING),
    Parameter("create_file_list", Type.BOOLEAN),
)
def _rewrite_table_path(call: Call) -> Rows:
    done = call.table().maintenance.rewrite_table_path(
        call.get("source_prefix"),
        call.get("target_prefix"),
        call.get("start_version"),
        call.get("end_version"),
        call.get("staging_location"),
        call.get("create_file_list") is not False,
        engine=call.engine,
    )
    counts = (done.rewritten_manifest_file_paths_count, done.rewritten_delete_file_paths_count)
    return [(done.latest_version, done.file_list_location, *counts)]
