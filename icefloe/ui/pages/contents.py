"""Pages of the contents of a snapshot: files, partitions and metadata tables."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.responses import Response

from icefloe import errors, properties as props
from icefloe.inspect import TABLE_NAMES
from icefloe.inspect.tables import OF_ONE_SNAPSHOT
from icefloe.metadata.codec import metadata_to_json
from icefloe.partitioning import PartitionField
from icefloe.shown import size
from icefloe.ui.asking import Page, TablePage, pager
from icefloe.ui.charts import Bar, histogram_chart, rank_chart
from icefloe.ui.digests import (
    MOST,
    ORDERS,
    FilesDigest,
    digest_files,
    power_of,
    size_bars,
)
from icefloe.ui.partitions import (
    counted_fields,
    digest_partitions,
    partition_filter,
    shown_partition,
    sorted_partitions,
)
from icefloe.ui.properties import shown_properties
from icefloe.ui.reading import first_rows

PAGE_ROWS = 50
_METADATA_ROWS = 100
_JSON_BYTES = 200_000
_OF_ROWS = "position_deletes"
"""The only metadata table that opens delete files."""
_KINDS = {0: "data", 1: "position deletes", 2: "equality deletes"}
_PARTITION_ORDERS = {
    "size": "total_data_file_size_in_bytes",
    "files": "file_count",
    "rows": "record_count",
    "last change": "last_updated_at",
}


def files(page: Page) -> Response:
    """Show the files of a snapshot, with a histogram of their sizes."""
    subject = TablePage.of(page, "files")
    where, order = page.query("where"), page.query("order") or "listed"
    if order not in ORDERS:
        raise errors.InvalidInputError(f"order must be one of {', '.join(ORDERS)}, not {order!r:.40}")
    first = page.number("from", most=MOST)
    counted = counted_fields(subject.metadata)
    job = subject.ask(
        "files",
        "Reading manifests",
        lambda listener: digest_files(subject.table, subject.at, where or None, listener),
        where,
    )

    def make(digest: FilesDigest) -> dict[str, Any]:
        target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(subject.metadata.properties)
        ordered = digest.first.get(order)
        kept = 0 if ordered is None else ordered.num_rows
        return {
            "digest": digest,
            "chart": _histogram(digest, target),
            "bars": [(size(2.0**power), f"{count:,}", size(total)) for power, count, total in size_bars(digest)],
            "rows": []
            if ordered is None
            else [_file_row(row, counted) for row in ordered.slice(first, PAGE_ROWS).to_pylist()],
            "pager": pager(
                first,
                PAGE_ROWS,
                kept,
                lambda start: subject.link("files", where=where, order=order, **{"from": start}),
            ),
            "target": target,
        }

    return subject.render_job("files.html", job, make, where=where, order=order, orders=list(ORDERS), most=MOST)


def _histogram(digest: FilesDigest, target: int) -> object:
    powers = size_bars(digest)
    bars = [
        Bar(
            size(2.0**power).replace(".0", ""),
            count,
            f"{size(2.0**power)} to {size(2.0 ** (power + 1))}: {count:,} files, {size(total)}",
        )
        for power, count, total in powers
    ]
    is_near = bool(powers) and power_of(target) <= powers[-1][0] + 8
    if is_near:
        top = powers[-1][0]
        bars += [Bar(size(2.0**power).replace(".0", ""), 0) for power in range(top + 1, int(power_of(target)) + 2)]
    mark = (power_of(target) - powers[0][0], f"target {size(target)}") if is_near else None
    return histogram_chart("Sizes of data files", bars, mark)


def _file_row(row: dict[str, Any], counted: Mapping[str, PartitionField]) -> dict[str, Any]:
    folder, _, name = row["file_path"].rpartition("/")
    return {
        **row,
        "kind": _KINDS.get(row["content"], "other"),
        "partition": shown_partition(row.get("partition"), counted),
        "folder": folder,
        "name": name,
    }


def partitions(page: Page) -> Response:
    """Show the partitions of a snapshot, with their sizes and skew."""
    subject = TablePage.of(page, "partitions")
    order = page.query("order") or "size"
    if order not in _PARTITION_ORDERS:
        raise errors.InvalidInputError(f"order must be one of {', '.join(_PARTITION_ORDERS)}, not {order!r:.40}")
    first = page.number("from")
    counted = counted_fields(subject.metadata)
    is_partitioned = any(spec.fields for spec in subject.metadata.partition_specs)
    job = subject.ask(
        "partitions",
        "Computing partition totals",
        lambda listener: digest_partitions(subject.table, subject.at, listener),
    )

    def make(table: pa.Table) -> dict[str, Any]:
        sizes = table.column("total_data_file_size_in_bytes").to_numpy()
        median = float(np.median(sizes)) if len(sizes) else 0.0
        rows = [
            {
                **row,
                "text": shown_partition(row.get("partition"), counted) or "all files",
                "where": partition_filter(row.get("partition") or {}),
                "changed_ms": _milliseconds(row["last_updated_at"]),
            }
            for row in sorted_partitions(table, _PARTITION_ORDERS[order], first, PAGE_ROWS)
        ]
        return {
            "rows": rows,
            "total": table.num_rows,
            "pager": pager(
                first,
                PAGE_ROWS,
                table.num_rows,
                lambda start: subject.link("partitions", order=order, **{"from": start}),
            ),
            "chart": rank_chart("Sizes of partitions", sizes.tolist(), size, median) if len(sizes) > 1 else None,
            "largest": int(sizes.max()) if len(sizes) else 0,
            "median": median,
        }

    return subject.render_job(
        "partitions.html",
        job,
        make,
        order=order,
        orders=list(_PARTITION_ORDERS),
        is_partitioned=is_partitioned,
    )


def _milliseconds(moment: dt.datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def metadata(page: Page) -> Response:
    """Show a metadata table or the metadata file."""
    subject = TablePage.of(page, "metadata")
    name, where = page.query("table"), page.query("where")
    if not name:
        return subject.render("document.html", names=TABLE_NAMES, **_document(subject))
    if name not in TABLE_NAMES:
        raise errors.InvalidInputError(f"no metadata table {name!r:.60}; choose one of {', '.join(TABLE_NAMES)}")
    if name == _OF_ROWS:
        page.site.check_rows()
    at = subject.at if name in OF_ONE_SNAPSHOT else {}

    def read() -> pa.RecordBatchReader:
        fields = _without_maps(subject, name)
        scan = subject.table.inspect.scan(name, row_filter=where or None, selected_fields=fields, **at)
        return scan.to_arrow_batch_reader()

    job = subject.ask("metadata", f"Reading {name}", lambda _: first_rows(read(), _METADATA_ROWS), name, where)
    return subject.render_job(
        "metadata.html",
        job,
        lambda rows: {"rows": rows},
        names=TABLE_NAMES,
        chosen=name,
        where=where,
        is_of_all=name not in OF_ONE_SNAPSHOT,
    )


def _without_maps(subject: TablePage, name: str) -> Sequence[str]:
    """Return the columns without maps by column id, as `readable_metrics` shows the same by name."""
    schema = subject.table.inspect.scan(name).schema
    maps = {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
    return [field.name for field in schema.fields if field.name not in maps and field.name != "key_metadata"]


def _document(subject: TablePage) -> dict[str, Any]:
    """Return the metadata as JSON, with possibly secret properties masked."""
    import json

    shown = subject.metadata.evolve(properties=shown_properties(subject.metadata.properties))
    text = metadata_to_json(shown)
    if len(text) > _JSON_BYTES:
        return {"document": None, "length": len(text)}
    return {"document": json.dumps(json.loads(text), indent=2, ensure_ascii=False), "length": len(text)}
