"""`icefloe head`, `count` and `stats`: rows and column statistics of a table."""

from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from icefloe.cli.arguments import Columns, TableName, Where, selected
from icefloe.cli.invocation import NamedTable, invocation
from icefloe.cli.look.inspecting import metadata_scan

_LEAST = ("lower_bound",)


def head(
    ctx: typer.Context,
    name: TableName,
    limit: Annotated[int, typer.Option("-n", "--limit", min=0, help="Maximum number of rows.")] = 10,
    where: Where = None,
    columns: Columns = None,
) -> None:
    """Show the first rows of a table."""
    with invocation(ctx) as run:
        named = run.table(name)
        scan = named.table.scan(where, selected(columns), limit=limit, **named.at)
        run.out.table(scan.to_arrow_batch_reader())


def count(ctx: typer.Context, name: TableName, where: Where = None) -> None:
    """Count the rows of a table."""
    with invocation(ctx) as run:
        named = run.table(name)
        rows = named.table.scan(where, **named.at).count()
        run.out.record({"count": rows}, lambda: [str(rows)])


def stats(ctx: typer.Context, name: TableName, where: Where = None) -> None:
    """Show column statistics: bounds, null counts, sizes."""
    with invocation(ctx) as run:
        named = run.table(name)
        run.out.rows(_column_rows(named, where))


def _column_rows(named: NamedTable, where: str | None) -> list[dict[str, Any]]:
    """Aggregate the metrics of all data files; these include deleted rows."""
    scan = metadata_scan(named, "data_files", where, "readable_metrics,record_count,file_size_in_bytes")
    files = scan.to_arrow()
    metrics = files.column("readable_metrics")
    distinct = _distinct_counts(named)
    rows = []
    for field in metrics.type:
        of_field = pa.chunked_array([pc.struct_field(part, [field.name]) for part in metrics.chunks], field.type)
        rows.append(_column_row(named, field.name, of_field, distinct))
    return rows


def _column_row(named: NamedTable, name: str, metrics: pa.ChunkedArray, distinct: dict[str, int]) -> dict[str, Any]:
    def total(part: str) -> int | None:
        values = _part(metrics, part)
        return None if values.null_count else int(pc.sum(values).as_py() or 0)

    lower, upper = _part(metrics, "lower_bound"), _part(metrics, "upper_bound")
    nulls, values = total("null_value_count"), total("value_count")
    return {
        "column": name,
        "type": str(named.table.schema().find_type(name)),
        "values": values,
        "nulls": nulls,
        "nans": total("nan_value_count"),
        "distinct": distinct.get(name),
        "min": _extreme(lower, pc.min),
        "max": _extreme(upper, pc.max),
        "bytes": total("column_size"),
    }


def _part(metrics: pa.ChunkedArray, part: str) -> pa.ChunkedArray:
    index = metrics.type.get_field_index(part)
    chunks = [pc.struct_field(chunk, [index]) for chunk in metrics.chunks]
    return pa.chunked_array(chunks, metrics.type.field(index).type)


def _extreme(bounds: pa.ChunkedArray, of: Any) -> Any:
    try:
        return of(bounds).as_py()
    except pa.ArrowNotImplementedError:
        # Arrow has no ordering for this type.
        return None


def _distinct_counts(named: NamedTable) -> dict[str, int]:
    """Return the distinct counts in the statistics files of the snapshot."""
    snapshot = named.snapshot()
    if snapshot is None:
        return {}
    names = named.table.schema().names_by_id
    return {
        names[blob.fields[0]]: int(blob.properties["ndv"])
        for file in named.table.statistics()
        if file.snapshot_id == snapshot.snapshot_id
        for blob in file.blob_metadata
        if len(blob.fields) == 1 and "ndv" in blob.properties and blob.fields[0] in names
    }
