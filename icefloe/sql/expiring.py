"""The procedures that delete files: expiry of snapshots, and removal of orphans."""

from functools import partial

import pyarrow as pa

from icefloe.maintenance import engine_of
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


_FILE_LIST = ("file_path", "last_modified")


@procedure(
    pa.schema([pa.field("orphan_file_location", pa.string())]),
    Parameter("older_than", Type.TIMESTAMP),
    Parameter("location", Type.STRING),
    Parameter("dry_run", Type.BOOLEAN),
    Parameter("max_concurrent_deletes", Type.INTEGER),
    Parameter("file_list_view", Type.STRING),
    Parameter("equal_schemes", Type.MAP),
    Parameter("equal_authorities", Type.MAP),
    Parameter("prefix_mismatch_mode", Type.STRING),
    Parameter("prefix_listing", Type.BOOLEAN),
    Parameter("stream_results", Type.BOOLEAN),
)
def _remove_orphan_files(call: Call) -> Rows:
    # A listing is flat whatever `prefix_listing` says.
    view = call.get("file_list_view")
    remove = partial(
        call.table().maintenance.remove_orphan_files,
        call.get("older_than"),
        call.get("location"),
        equal_schemes=call.get("equal_schemes"),
        equal_authorities=call.get("equal_authorities"),
        prefix_mismatch_mode=call.get("prefix_mismatch_mode") or "error",
        file_list=None if view is None else engine_of(call.engine).rows_of_view(view, *_FILE_LIST),
        max_concurrent_deletes=call.get("max_concurrent_deletes"),
        stream_results=bool(call.get("stream_results")),
        engine=call.engine,
    )
    orphans = remove(dry_run=True) if call.get("dry_run") else remove(dry_run=False)
    return pa.table({"orphan_file_location": orphans.orphan_file_location})
