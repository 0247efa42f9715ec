"""`icefloe schema`, `spec`, `sort-order`, `uuid` and `location`: the structure of a table."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from icefloe.cli.arguments import TableName
from icefloe.cli.invocation import NamedTable, invocation
from icefloe.partitioning import column_name
from icefloe.schema import NestedField, Schema, format_ddl, schema_to_arrow


def schema(
    ctx: typer.Context,
    name: TableName,
    history: Annotated[bool, typer.Option("--history", help="Show how the schema changed over time.")] = False,
    ddl: Annotated[bool, typer.Option("--ddl", help="Print in the syntax of `create table --schema`.")] = False,
    arrow: Annotated[bool, typer.Option("--arrow", help="Print as an Arrow schema.")] = False,
) -> None:
    """Show the columns of a table."""
    with invocation(ctx) as run:
        named = run.table(name)
        shown = schema_at(named)
        if ddl:
            run.out.lines([format_ddl(shown, ",\n")])
        elif arrow:
            run.out.lines([str(schema_to_arrow(shown, ids=False))])
        elif history:
            run.out.rows(list(_history(named)))
        else:
            run.out.rows(columns(shown), ("id", "name", "type", "required", "doc"))


def schema_at(named: NamedTable) -> Schema:
    """Return the schema of the selected snapshot."""
    return named.table.scan(**named.at).schema


def columns(shown: Schema) -> list[dict[str, Any]]:
    """Return the columns as rows."""
    return [
        {
            "id": field.field_id,
            "name": field.name,
            "type": str(field.field_type),
            "required": field.required,
            "doc": field.doc,
        }
        for field in shown.fields
    ]


def _history(named: NamedTable) -> Iterator[dict[str, Any]]:
    """Return the changes of each schema version, by column id."""
    before: dict[int, NestedField] = {}
    for schema_id, each in sorted(named.table.schemas().items()):
        after = {field.field_id: field for field in each.fields}
        for field_id in sorted(before.keys() | after.keys()):
            old, new = before.get(field_id), after.get(field_id)
            if old != new:
                yield {"schema_id": schema_id, **_changed(old, new)}
        before = after


def _changed(old: NestedField | None, new: NestedField | None) -> dict[str, Any]:
    field = new or old
    assert field is not None
    return {
        "change": "added" if old is None else "dropped" if new is None else "changed",
        "id": field.field_id,
        "name": field.name,
        "type": str(field.field_type),
        "required": field.required,
        "before": None if old is None or new is None else f"{old.name} {old.field_type}{_required(old.required)}",
    }


def _required(required: bool) -> str:
    return " required" if required else ""


def spec(ctx: typer.Context, name: TableName) -> None:
    """Show how a table is partitioned."""
    with invocation(ctx) as run:
        table = run.table(name).table
        rows = [
            {
                "spec_id": table.spec().spec_id,
                "id": field.field_id,
                "name": field.name,
                "transform": str(field.transform),
                "source": ", ".join(column_name(table.schema(), each) for each in field.source_ids),
            }
            for field in table.spec().fields
        ]
        run.out.rows(rows, ("spec_id", "id", "name", "transform", "source"))


def sort_order(ctx: typer.Context, name: TableName) -> None:
    """Show how a table is sorted."""
    with invocation(ctx) as run:
        table = run.table(name).table
        rows = [
            {
                "order_id": table.sort_order().order_id,
                "transform": str(field.transform),
                "source": ", ".join(column_name(table.schema(), each) for each in field.source_ids),
                "direction": field.direction.value,
                "nulls": field.null_order.value,
            }
            for field in table.sort_order().fields
        ]
        run.out.rows(rows, ("order_id", "transform", "source", "direction", "nulls"))


def uuid(ctx: typer.Context, name: TableName) -> None:
    """Print the UUID of a table."""
    with invocation(ctx) as run:
        table_uuid = run.table(name).table.metadata.table_uuid
        run.out.record({"uuid": table_uuid}, lambda: [str(table_uuid)])


def location(ctx: typer.Context, name: TableName) -> None:
    """Print the location of a table."""
    with invocation(ctx) as run:
        table_location = run.table(name).table.location()
        run.out.record({"location": table_location}, lambda: [str(table_location)])
