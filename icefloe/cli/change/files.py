"""`icefloe import` and `icefloe export`: rows from files to tables and from tables to files."""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet
import typer

from icefloe.cli.arguments import Branch, ChangedTable, Columns, DryRun, Properties, TableName, Where, pairs, selected
from icefloe.cli.asking import confirm
from icefloe.cli.invocation import Invocation, invocation, listener
from icefloe.errors import AlreadyExistsError, InvalidInputError, NoSuchObjectError
from icefloe.metadata import Snapshot, summary as totals
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.shown import counted
from icefloe.storage import absolute_location
from icefloe.table import Table

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "tsv", ".arrow": "ipc", ".feather": "ipc", ".orc": "orc"}
_FORMATS |= {".json": "json", ".jsonl": "json", ".ndjson": "json"}
_EXPORTS = ("parquet", "csv", "arrow")
_CONFLICTS = ("append", "upsert", "overwrite")


def read_rows(files: Sequence[str]) -> pa.RecordBatchReader:
    """Return the rows of files of one format as a stream, with columns matched by name."""
    missing = [file for file in files if not os.path.exists(file)]
    if missing:
        raise NoSuchObjectError(f"no such file: {missing[0]!r}")
    kinds = {_FORMATS.get(Path(file).suffix.lower()) for file in files}
    kind = kinds.pop()
    if kind is None or kinds:
        raise InvalidInputError(f"files must all have the same extension, one of {', '.join(_FORMATS)}")
    chosen: Any = pa_dataset.CsvFileFormat(pa_csv.ParseOptions(delimiter="\t")) if kind == "tsv" else kind
    try:
        parts = [pa_dataset.dataset(file, format=chosen) for file in files]
        schema = pa.unify_schemas([part.schema for part in parts], promote_options="permissive")
        return pa_dataset.dataset(list(files), format=chosen, schema=schema).scanner().to_reader()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise InvalidInputError(f"the files cannot be read as {kind}: {error}") from error


def import_files(
    ctx: typer.Context,
    name: ChangedTable,
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Parquet, ORC, CSV, JSON lines or Arrow.")],
    create: Annotated[bool, typer.Option("--create", help="Create the table and its namespace if missing.")] = False,
    add_files: Annotated[
        bool, typer.Option("--add-files", help="Add the files in place, without copying rows.")
    ] = False,
    on_conflict: Annotated[str, typer.Option(help=f"How to treat existing rows: {', '.join(_CONFLICTS)}.")] = "append",
    key: Annotated[str | None, typer.Option(help="Comma-separated key columns for upsert.")] = None,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", help="Partition field, with --create; may be repeated.")
    ] = None,
    properties: Properties = None,
    branch: Branch = None,
    dry_run: DryRun = False,
) -> None:
    """Import rows from files into a table."""
    if on_conflict not in _CONFLICTS:
        raise typer.BadParameter(f"{on_conflict!r} is not one of {', '.join(_CONFLICTS)}", param_hint="--on-conflict")
    if key is not None and on_conflict != "upsert":
        raise typer.BadParameter("--key requires --on-conflict upsert", param_hint="--key")
    if add_files and on_conflict != "append":
        raise typer.BadParameter("--add-files can only append", param_hint="--add-files")
    with invocation(ctx) as run:
        rows = read_rows(files)
        parsed = run.parse(name)
        catalog = run.open_catalog(parsed.catalog or run.catalog_name)
        is_there = catalog.table_exists(parsed.identifier)
        if dry_run:
            plan = {
                "dry_run": True,
                "table": name,
                "exists": is_there,
                "files": list(files),
                "columns": rows.schema.names,
            }
            run.out.record(plan)
            return
        locations = [absolute_location(file) for file in files] if add_files else None
        if not is_there and create:
            catalog.create_namespace_if_not_exists(parsed.identifier[:-1])
            # Create and append in one commit, so that no empty table is ever visible.
            with catalog.create_table_transaction(
                parsed.identifier, rows.schema, partition_spec=partition, properties=pairs(properties)
            ) as tx:
                if locations is None:
                    tx.append(rows, branch=branch, progress=listener(run))
                else:
                    tx.add_files(locations, branch=branch, progress=listener(run))
            _say(run, name, None, catalog.load_table(parsed.identifier).current_snapshot(), None)
            return
        table = run.changed_table(name)
        if on_conflict == "overwrite":
            confirm(run, f"Replace all rows of {name}?")
        before = table.metadata.current_snapshot_id
        snapshot = _write(table, rows, locations, on_conflict, key, branch, listener(run))
        is_undone = before is not None and on_conflict != "append"
        _say(run, name, before, snapshot, f"icefloe rollback {name} --to {before}" if is_undone else None)


def _write(
    table: Table,
    rows: pa.RecordBatchReader,
    locations: list[str] | None,
    on_conflict: str,
    key: str | None,
    branch: str | None,
    progress: Listener | None,
) -> Snapshot | None:
    if locations is not None:
        return table.add_files(locations, branch=branch, progress=progress)
    if on_conflict == "upsert":
        return table.upsert(rows, None if key is None else list(selected(key)), branch=branch, progress=progress)
    if on_conflict == "overwrite":
        return table.overwrite(rows, branch=branch, progress=progress)
    return table.append(rows, branch=branch, progress=progress)


def _say(run: Invocation, name: str, before: int | None, snapshot: Snapshot | None, back: str | None) -> None:
    said = {} if snapshot is None or snapshot.summary is None else snapshot.summary.properties
    added = int(said.get(totals.ADDED_RECORDS, 0))
    record = {
        "table": name,
        "snapshot_id": None if snapshot is None else snapshot.snapshot_id,
        "base_snapshot_id": before,
        "added_rows": added,
        "added_files": int(said.get(totals.ADDED_DATA_FILES, 0)),
    }
    text = f"{counted(added, 'row')} written to {name}, snapshot {record['snapshot_id']}"
    way_back = "" if back is None else f"; to undo: {back}"
    run.out.record(record, lambda: [text + way_back if snapshot is not None else "nothing changed"])


def export(
    ctx: typer.Context,
    name: TableName,
    path: Annotated[str, typer.Argument(metavar="PATH", help="File to write.")],
    where: Where = None,
    columns: Columns = None,
    form: Annotated[
        str | None, typer.Option("--format", help="parquet, csv or arrow; by default from the file extension.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Export rows of a table to a file."""
    chosen = form or {"ipc": "arrow"}.get(kind := _FORMATS.get(Path(path).suffix.lower(), ""), kind)
    if chosen not in _EXPORTS:
        raise typer.BadParameter(f"give one of {', '.join(_EXPORTS)}", param_hint="--format")
    with invocation(ctx) as run:
        if os.path.exists(path) and not overwrite:
            raise AlreadyExistsError(f"{path} already exists; pass --overwrite to replace it")
        named = run.table(name)
        reader = named.table.scan(where, selected(columns), **named.at).to_arrow_batch_reader()
        rows = _export(reader, Path(path), chosen, Stage("rows", None, listener_or_bar(listener(run))))
        run.out.record(
            {"table": name, "file": path, "rows": rows}, lambda: [f"{counted(rows, 'row')} written to {path}"]
        )


def _export(reader: pa.RecordBatchReader, path: Path, form: str, stage: Stage) -> int:
    """Write to a temporary file and rename it at the end, so that the file is always complete."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    rows = 0
    try:
        with _writer(form, beside, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
                stage.step(batch.num_rows)
        stage.finish()
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        reader.close()
    return rows


def _writer(form: str, path: Path, schema: pa.Schema) -> Any:
    match form:
        case "parquet":
            return pa_parquet.ParquetWriter(path, schema, compression="zstd")
        case "csv":
            return pa_csv.CSVWriter(path, schema)
        case _:
            return pa.ipc.new_file(path, schema)
