"""The procedures that delete files: expiry of snapshots, and removal of orphans."""

from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, longs, procedure


@procedure(
    longs(
        "deleted_data_files_count",
        "deleted_position_delete_files_count",
        "deleted_equality_delete_files_count",
        "deleted_manifest_files_count",
        "deleted_manifest_lists_count",
        "deleted_statistics_files_count",
    ),
    Parameter("older_than", Type.TIMESTAMP),
    Parameter("retain_last", Type.INTEGER),
    Parameter("max_concurrent_deletes", Type.INTEGER),
    Parameter("stream_results", Type.BOOLEAN),
    Parameter("snapshot_ids", Type.LONGS),
    Parameter("clean_expired_metadata", Type.BOOLEAN),
)
def _expire_snapshots(call: Call) -> Rows:
    # Results are streamed whatever `stream_results` says: nothing is collected on a driver.
    result = call.table().maintenance.expire_snapshots(
        call.get("older_than"),
        call.get("retain_last"),
        call.get("snapshot_ids") or (),
        by_retention=True,
        clean_expired_metadata=bool(call.get("clean_expired_metadata")),
        max_concurrent_deletes=call.get("max_concurrent_deletes"),
        engine=call.engine,
    )
    return [result.counts]
