"""`icefloe create`, `drop`, `undrop`, `rename` and `register` for namespaces, tables and views."""

from typing import Annotated, Any

import pyarrow as pa
import typer

from icefloe.catalog import Catalog, DroppedTable, TableName as ParsedName, parse_identifier, show_table
from icefloe.cli.arguments import ChangedTable, Namespace, Properties, pairs
from icefloe.cli.asking import confirm
from icefloe.cli.change.files import read_rows
from icefloe.cli.invocation import Invocation, invocation
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.partitioning import PartitionSpec, SortOrder
from icefloe.schema import Schema
from icefloe.table import Table

create_app = typer.Typer(help="Create a namespace, table or view.", no_args_is_help=True)
drop_app = typer.Typer(help="Drop a namespace, table or view.", no_args_is_help=True)

New = Annotated[str, typer.Argument(metavar="NAME", help="[CATALOG.]NAMESPACE.NAME.")]
Partition = Annotated[
    list[str] | None, typer.Option("--partition", help="Partition field, such as 'days(ts)'; may be repeated.")
]
Sort = Annotated[list[str] | None, typer.Option("--sort", help="Sort field, such as 'ts desc'; may be repeated.")]


@create_app.command("namespace")
def create_namespace(ctx: typer.Context, name: Namespace, properties: Properties = None) -> None:
    """Create a namespace."""
    with invocation(ctx) as run:
        run.catalog.create_namespace(name, pairs(properties))
        run.out.record({"namespace": name}, lambda: [f"Created namespace: {name}"])


@create_app.command("table")
def create_table(
    ctx: typer.Context,
    name: New,
    schema: Annotated[str | None, typer.Option(help="Columns, such as 'id long not null, ts timestamptz'.")] = None,
    like: Annotated[
        str | None, typer.Option(help="Table to copy columns, partition spec and sort order from.", metavar="TABLE")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="File to take the columns from; no rows are imported.", metavar="FILE")
    ] = None,
    partition: Partition = None,
    sort: Sort = None,
    location: Annotated[str | None, typer.Option(help="Location of the table.")] = None,
    format_version: Annotated[int | None, typer.Option(help="Format version of the table.")] = None,
    properties: Properties = None,
) -> None:
    """Create a table."""
    given = [each for each in (schema, like, source) if each is not None]
    if len(given) != 1:
        raise typer.BadParameter("give exactly one of --schema, --like and --from")
    with invocation(ctx) as run:
        columns: Schema | pa.Schema | str
        spec: PartitionSpec | list[str] | None = partition or None
        order: SortOrder | list[str] | None = sort or None
        if like is not None:
            model = run.table(like).table
            columns, spec, order = model.schema(), spec or model.spec(), order or model.sort_order()
            format_version = format_version or model.format_version
        else:
            columns = str(schema) if source is None else read_rows([source]).schema
        settings = pairs(properties) | ({} if format_version is None else {"format-version": str(format_version)})
        catalog, parsed = target(run, name)
        table = catalog.create_table(parsed.identifier, columns, location, spec, order, settings)
        _created(run, name, table)


@create_app.command("view")
def create_view(
    ctx: typer.Context,
    name: New,
    sql: Annotated[str, typer.Option(help="Query of the view.")],
    schema: Annotated[str, typer.Option(help="Columns, such as 'id long, total double'.")],
    dialect: Annotated[str, typer.Option(help="SQL dialect of the query.")] = "spark",
    properties: Properties = None,
) -> None:
    """Create a view."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        catalog.create_view(parsed.identifier, schema, {dialect: sql}, properties=pairs(properties))
        run.out.record({"view": name}, lambda: [f"Created view: {name}"])


def target(run: Invocation, name: str) -> tuple[Catalog, ParsedName]:
    """Return the catalog and the parsed name of an object in it."""
    parsed = run.parse(name)
    if parsed.location is not None or parsed.version is not None:
        raise InvalidInputError(f"{name!r} is not a table name; write it as namespace.table")
    return run.open_catalog(parsed.catalog or run.catalog_name), parsed


def _created(run: Invocation, name: str, table: Table) -> None:
    record = {"table": name, "location": table.location(), "metadata_location": table.metadata_location}
    run.out.record(record, lambda: [f"Created table: {name}"])


@drop_app.command("namespace")
def drop_namespace(ctx: typer.Context, name: Namespace) -> None:
    """Drop an empty namespace."""
    with invocation(ctx) as run:
        run.catalog.drop_namespace(name)
        run.out.record({"namespace": name}, lambda: [f"Dropped namespace: {name}"])


@drop_app.command("view")
def drop_view(ctx: typer.Context, name: New) -> None:
    """Drop a view."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        catalog.drop_view(parsed.identifier)
        run.out.record({"view": name}, lambda: [f"Dropped view: {name}"])


@drop_app.command("table")
def drop_table(
    ctx: typer.Context,
    name: ChangedTable,
    purge: Annotated[bool, typer.Option("--purge", help="Also delete all files of the table permanently.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped.")] = False,
) -> None:
    """Drop a table; without --purge its files are kept and it can be registered again."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        table = catalog.load_table(parsed.identifier)
        back = f"icefloe register {show_table(parsed.identifier)} {table.metadata_location}"
        record: dict[str, Any] = {
            "table": name,
            "purged": purge,
            "dry_run": dry_run,
            "metadata_location": table.metadata_location,
        }
        if dry_run:
            run.out.record(record, lambda: [f"{name} would be dropped{', and its files deleted' if purge else ''}"])
            return
        if purge:
            confirm(run, f"Drop {name} and permanently delete all its files?")
            catalog.purge_table(parsed.identifier)
        else:
            catalog.drop_table(parsed.identifier)
            run.say(f"its files are kept; to undo: {back}")
        run.out.record(record, lambda: [f"Dropped table: {name}{' (purge requested)' if purge else ''}"])


def undrop(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the dropped table; lists all if omitted.")
    ] = None,
    number: Annotated[
        str | None, typer.Option("--id", help="Id of the dropped table, if several have this name.", metavar="ID")
    ] = None,
    new: Annotated[str | None, typer.Option("--as", help="New name for the restored table.", metavar="NEW")] = None,
) -> None:
    """Restore a dropped table, or list restorable tables, if the catalog keeps dropped tables."""
    with invocation(ctx) as run:
        catalog, parsed = (run.catalog, None) if name is None else target(run, name)
        dropped = catalog.dropped_tables()
        if parsed is None and number is None:
            run.out.rows([_dropped(table) for table in dropped], ("name", "id", "dropped_at", "until", "dropped_by"))
            return
        for table in dropped:
            if number in (None, table.id) and (parsed is None or table.identifier == parsed.identifier):
                break
        else:
            raise NoSuchTableError(
                f"no dropped table {name or number} to restore; `icefloe undrop` lists those that can be restored"
            )
        back = catalog.undrop_table(table, None if new is None else parse_identifier(new))
        record = {"table": show_table(back.name()), "id": table.id, "metadata_location": back.metadata_location}
        run.out.record(record, lambda: [f"Undropped table: {record['table']}"])


def _dropped(table: DroppedTable) -> dict[str, Any]:
    return {
        "name": show_table(table.identifier),
        "id": table.id,
        "dropped_at": table.dropped_at,
        "until": table.until,
        "dropped_by": table.dropped_by,
        "purge": table.purge,
        "metadata_location": table.metadata_location,
    }


def rename(
    ctx: typer.Context,
    name: ChangedTable,
    to: Annotated[str, typer.Argument(metavar="NEW", help="New name.")],
) -> None:
    """Rename a table or view."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        new = parse_identifier(to)
        if not catalog.table_exists(parsed.identifier) and catalog.view_exists(parsed.identifier):
            catalog.views.rename(parsed.identifier, new)
        else:
            catalog.rename_table(parsed.identifier, new)
        run.out.record({"from": name, "to": to}, lambda: [f"Renamed table from {name} to {to}"])


def register(
    ctx: typer.Context,
    name: New,
    metadata: Annotated[str, typer.Argument(metavar="METADATA", help="Location of the metadata file.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing table of this name.")] = False,
) -> None:
    """Register an existing metadata file as a table."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        if overwrite and catalog.table_exists(parsed.identifier):
            before = catalog.load_table(parsed.identifier).metadata_location
            confirm(run, f"Point {name} to {metadata} instead of {before}?")
        _created(run, name, catalog.register_table(parsed.identifier, metadata, overwrite))
