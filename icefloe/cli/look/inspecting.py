"""`icefloe files`, `manifests`, `partitions` and `metadata`: the metadata tables."""

from typing import Annotated, Any

import typer

from icefloe.cli.arguments import Columns, MetadataTableName, TableName, Where, selected
from icefloe.cli.invocation import NamedTable, invocation
from icefloe.errors import InvalidInputError
from icefloe.inspect import TABLE_NAMES, MetadataScan
from icefloe.metadata import unpack_metadata_file

_FILE_COLUMNS = "content,file_path,file_format,spec_id,partition,record_count,file_size_in_bytes"
_MANIFEST_COLUMNS = (
    "content,path,length,partition_spec_id,added_snapshot_id,added_data_files_count,existing_data_files_count,"
    "deleted_data_files_count,added_delete_files_count,existing_delete_files_count,deleted_delete_files_count"
)
_OF_ONE_SNAPSHOT = ("entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes")


def files(
    ctx: typer.Context,
    name: TableName,
    where: Where = None,
    columns: Columns = _FILE_COLUMNS,
    history: Annotated[bool, typer.Option("--history", help="Include the files of all snapshots.")] = False,
) -> None:
    """List the files of a table."""
    _show(ctx, name, "all_files" if history else "files", where, columns)


def manifests(
    ctx: typer.Context,
    name: TableName,
    where: Where = None,
    columns: Columns = _MANIFEST_COLUMNS,
    history: Annotated[bool, typer.Option("--history", help="Include the manifests of all snapshots.")] = False,
) -> None:
    """List the manifests of a table."""
    _show(ctx, name, "all_manifests" if history else "manifests", where, columns)


def partitions(ctx: typer.Context, name: TableName, where: Where = None, columns: Columns = None) -> None:
    """List the partitions of a table."""
    _show(ctx, name, "partitions", where, columns)


def metadata(
    ctx: typer.Context,
    name: TableName,
    table: MetadataTableName = None,
    where: Where = None,
    columns: Columns = None,
    log: Annotated[bool, typer.Option("--log", help="List the current and previous metadata files.")] = False,
) -> None:
    """Read a metadata table, or the metadata file itself."""
    if table is None and not log:
        with invocation(ctx) as run:
            run.out.lines([_document(run.table(name))])
    else:
        _show(ctx, name, "metadata_log_entries" if log else str(table), where, columns)


def _document(named: NamedTable) -> str:
    location = named.table.metadata_location
    if location is None:
        raise InvalidInputError(f"{named} has no metadata file")
    storage = named.table.storage
    return unpack_metadata_file(storage.read(location), storage.limits).decode()


def _show(ctx: typer.Context, name: str, table: str, where: str | None, columns: str | None) -> None:
    if table not in TABLE_NAMES:
        raise InvalidInputError(f"no metadata table {table!r}; choose one of {', '.join(TABLE_NAMES)}")
    with invocation(ctx) as run:
        run.out.table(metadata_scan(run.table(name), table, where, columns).to_arrow_batch_reader())


def metadata_scan(named: NamedTable, table: str, where: str | None, columns: str | None) -> MetadataScan:
    """Scan a metadata table at the selected snapshot."""
    at: dict[str, Any] = {**named.at}
    if at and table not in _OF_ONE_SNAPSHOT:
        raise InvalidInputError(f"{table} covers all snapshots; leave out @{named.name.version}")
    return named.table.inspect.scan(table, row_filter=where, selected_fields=selected(columns), **at)
