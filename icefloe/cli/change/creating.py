"""`icefloe create`, `drop`, `rename` and `register`: names of namespaces, tables and views come and go."""

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
    list[str] | None, typer.Option("--partition", help="A partition field, such as 'days(ts)'; may be repeated.")
]
Sort = Annotated[list[str] | None, typer.Option("--sort", help="A key of the sort order, such as 'ts desc'.")]


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
    schema: Annotated[str | None, typer.Option(help="The columns, such as 'id long not null, ts timestamptz'.")] = None,
    like: Annotated[
        str | None, typer.Option(help="Columns, partitions and order of this table.", metavar="TABLE")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="The columns of this file; no rows.", metavar="FILE")
    ] = None,
    partition: Partition = None,
    sort: Sort = None,
    location: Annotated[str | None, typer.Option(help="Where the table's files go.")] = None,
    format_version: Annotated[int | None, typer.Option(help="The version of the table format.")] = None,
    properties: Properties = None,
) -> None:
    """Create a table."""
    given = [each for each in (schema, like, source) if each is not None]
    if len(given) != 1:
        raise typer.BadParameter("give one of --schema, --like and --from")
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
    sql: Annotated[str, typer.Option(help="The query.")],
    schema: Annotated[str, typer.Option(help="The columns, such as 'id long, total double'.")],
    dialect: Annotated[str, typer.Option(help="The dialect of the query.")] = "spark",
    properties: Properties = None,
) -> None:
    """Create a view."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        catalog.create_view(parsed.identifier, schema, {dialect: sql}, properties=pairs(properties))
        run.out.record({"view": name}, lambda: [f"Created view: {name}"])


def target(run: Invocation, name: str) -> tuple[Catalog, ParsedName]:
    """The catalog and the name of something in it."""
    parsed = run.parse(name)
    if parsed.location is not None or parsed.version is not None:
        raise InvalidInputError(f"{name!r} is no name of a table; write it as namespace.table")
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
    purge: Annotated[bool, typer.Option("--purge", help="Also delete all of its files, for good.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped.")] = False,
) -> None:
    """Drop a table; its files stay without --purge, and can be registered again."""
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
            confirm(run, f"Drop {name} and delete all of its files for good?")
            catalog.purge_table(parsed.identifier)
        else:
            catalog.drop_table(parsed.identifier)
            run.say(f"its files stay; the way back: {back}")
        run.out.record(record, lambda: [f"Dropped table: {name}{' (purge requested)' if purge else ''}"])


def undrop(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The name that the table had; without it, all are listed.")
    ] = None,
    number: Annotated[str | None, typer.Option("--id", help="Which of several of that name.", metavar="ID")] = None,
    new: Annotated[str | None, typer.Option("--as", help="Another name for it.", metavar="NEW")] = None,
) -> None:
    """Have a dropped table back, or list those that can be had back, where the catalog keeps them."""
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
            raise NoSuchTableError(f"no dropped table {name or number} is kept; `icefloe undrop` lists those that are")
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
    to: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
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
    metadata: Annotated[str, typer.Argument(metavar="METADATA", help="The location of the metadata file.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Also if the name is in use.")] = False,
) -> None:
    """Give a name to a table that exists as a metadata file."""
    with invocation(ctx) as run:
        catalog, parsed = target(run, name)
        if overwrite and catalog.table_exists(parsed.identifier):
            before = catalog.load_table(parsed.identifier).metadata_location
            confirm(run, f"Let {name} stand for {metadata}, in place of {before}?")
        _created(run, name, catalog.register_table(parsed.identifier, metadata, overwrite))
