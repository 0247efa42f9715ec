"""`icefloe diff`: comparison of two snapshots of a table."""

from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from icefloe.cli import exits
from icefloe.cli.arguments import TableName, Where, selected
from icefloe.cli.invocation import Invocation, NamedTable, invocation
from icefloe.errors import InvalidInputError
from icefloe.shown import size
from icefloe.table import ColumnChange, TableDiff


def diff(
    ctx: typer.Context,
    name: TableName,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The same table at another snapshot, such as shop.orders@v1.")
    ],
    schema: Annotated[bool, typer.Option("--schema", help="Compare only schemas.")] = False,
    files: Annotated[bool, typer.Option("--files", help="List added and removed files.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="List added, removed and changed rows.")] = False,
    where: Where = None,
    key: Annotated[
        str | None, typer.Option(help="With --rows: comma-separated key columns, to show changed rows as updates.")
    ] = None,
) -> None:
    """Compare two snapshots of a table."""
    if sum((schema, files, rows)) > 1:
        raise typer.BadParameter("give only one of --schema, --files and --rows")
    if not rows and (where or key):
        raise typer.BadParameter("--where and --key require --rows")
    with invocation(ctx) as run:
        diff = _between(run.table(name), run.table(other))
        if rows:
            is_different = _show_rows(run, diff, where, key)
        elif files:
            is_different = _show_files(run, diff)
        else:
            is_different = _show(run, diff, schema)
        if is_different:
            raise typer.Exit(exits.FINDINGS)


def _between(one: NamedTable, two: NamedTable) -> TableDiff:
    if one.table.metadata.table_uuid != two.table.metadata.table_uuid:
        raise InvalidInputError(
            f"{one} and {two} are different tables; name the same table at two snapshots, such as {one}@v1"
        )
    before, after = one.snapshot(), two.snapshot()
    return two.table.diff(None if before is None else before.snapshot_id, None if after is None else after.snapshot_id)


def _show_rows(run: Invocation, diff: TableDiff, where: str | None, key: str | None) -> bool:
    reader = diff.rows(where, () if key is None else selected(key))
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in reader:
            count += batch.num_rows
            yield batch

    run.out.table(pa.RecordBatchReader.from_batches(reader.schema, counted()))
    return count > 0


def _show_files(run: Invocation, diff: TableDiff) -> bool:
    parts = []
    for change, part in (("added", diff.added_files()), ("removed", diff.removed_files())):
        parts.append(part.add_column(0, "change", pa.array([change] * part.num_rows, pa.string())))
    files = pa.concat_tables(parts)
    run.out.table(files)
    return bool(files.num_rows)


def _show(run: Invocation, diff: TableDiff, only_schema: bool) -> bool:
    record: dict[str, Any] = {
        "from_snapshot_id": None if diff.before is None else diff.before.snapshot_id,
        "to_snapshot_id": None if diff.after is None else diff.after.snapshot_id,
        "columns": [_column(change) for change in diff.columns],
    }
    if not only_schema:
        record |= {"added": _counts(diff.added_files()), "removed": _counts(diff.removed_files())}
    run.out.record(record, lambda: _lines(diff, record))
    return bool(diff.columns) or any(record.get(side, {}).get("files") for side in ("added", "removed"))


def _column(change: ColumnChange) -> dict[str, Any]:
    def side(field: Any) -> dict[str, Any] | None:
        return None if field is None else {"id": field.field_id, "name": field.name, "type": str(field.field_type)}

    return {"before": side(change.before), "after": side(change.after)}


def _counts(files: pa.Table) -> dict[str, int]:
    data = files.filter(pc.equal(files.column("content"), 0))
    return {
        "files": files.num_rows,
        "data_files": data.num_rows,
        "rows": int(pc.sum(data.column("record_count")).as_py() or 0),
        "bytes": int(pc.sum(files.column("file_size_in_bytes")).as_py() or 0),
    }


def _lines(diff: TableDiff, record: dict[str, Any]) -> Iterator[str]:
    for change in diff.columns:
        before, after = change.before, change.after
        if before is None and after is not None:
            yield f"column   + {after.name} {after.field_type}"
        elif after is None and before is not None:
            yield f"column   - {before.name} {before.field_type}"
        elif before is not None and after is not None:
            yield f"column   ~ {before.name} {before.field_type} -> {after.name} {after.field_type}"
    for side, sign in (("added", "+"), ("removed", "-")):
        if counts := record.get(side):
            yield f"files    {sign} {counts['files']:,} ({counts['rows']:,} rows in data files, {size(counts['bytes'])})"
