"""The procedures of maintenance, with the parameters and result columns that Java Iceberg has, and those that only we have."""

from collections.abc import Iterator
from dataclasses import astuple
from functools import partial

import pyarrow as pa

from icefloe.maintenance import HEALTH_SCHEMA, engine_of
from icefloe.metadata import summary as totals
from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, integers, longs, procedure
from icefloe.table import Table


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


# -- delete files


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


# -- snapshots and files that go


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


# -- statistics

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


# -- copies


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
