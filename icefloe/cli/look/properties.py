"""`icefloe properties`: get, set and remove properties of tables and namespaces, with PyIceberg's syntax and output."""

from collections.abc import Mapping
from typing import Annotated

import typer

from icefloe.cli.arguments import ChangedTable, Namespace, TableName
from icefloe.cli.invocation import Invocation, invocation
from icefloe.errors import NoSuchObjectError

app = typer.Typer(help="Get, set and remove properties of tables and namespaces.", no_args_is_help=True)
_get = typer.Typer(help="Show properties.", no_args_is_help=True)
_set = typer.Typer(help="Set a property.", no_args_is_help=True)
_remove = typer.Typer(help="Remove a property.", no_args_is_help=True)
app.add_typer(_get, name="get")
app.add_typer(_set, name="set")
app.add_typer(_remove, name="remove")

Key = Annotated[str, typer.Argument(metavar="KEY")]
OptionalKey = Annotated[str | None, typer.Argument(metavar="[KEY]")]
Value = Annotated[str, typer.Argument(metavar="VALUE")]


@_get.command("table")
def get_table(ctx: typer.Context, name: TableName, key: OptionalKey = None) -> None:
    """Show the properties of a table, or one of them."""
    with invocation(ctx) as run:
        _show(run, run.table(name).table.properties, key, f"table {name}")


@_get.command("namespace")
def get_namespace(ctx: typer.Context, name: Namespace, key: OptionalKey = None) -> None:
    """Show the properties of a namespace, or one of them."""
    with invocation(ctx) as run:
        _show(run, run.catalog.load_namespace_properties(name), key, f"namespace {name}")


def _show(run: Invocation, properties: Mapping[str, str], key: str | None, what: str) -> None:
    if key is None:
        run.out.record(dict(sorted(properties.items())))
        return
    if key not in properties:
        raise NoSuchObjectError(f"{what} has no property {key!r}")
    run.out.record({key: properties[key]}, lambda: [properties[key]])


@_set.command("table")
def set_table(ctx: typer.Context, name: ChangedTable, key: Key, value: Value) -> None:
    """Set a property of a table."""
    with invocation(ctx) as run:
        run.changed_table(name).set_properties({key: value})
        run.out.record({"table": name, "set": {key: value}}, lambda: [f"Set {key}={value} on {name}"])


@_set.command("namespace")
def set_namespace(ctx: typer.Context, name: Namespace, key: Key, value: Value) -> None:
    """Set a property of a namespace."""
    with invocation(ctx) as run:
        run.catalog.update_namespace_properties(name, updates={key: value})
        run.out.record({"namespace": name, "set": {key: value}}, lambda: [f"Updated {key} on {name}"])


@_remove.command("table")
def remove_table(ctx: typer.Context, name: ChangedTable, key: Key) -> None:
    """Remove a property of a table."""
    with invocation(ctx) as run:
        table = run.changed_table(name)
        if key not in table.properties:
            raise NoSuchObjectError(f"table {name} has no property {key!r}")
        table.remove_properties(key)
        run.out.record({"table": name, "removed": [key]}, lambda: [f"Property {key} removed from {name}"])


@_remove.command("namespace")
def remove_namespace(ctx: typer.Context, name: Namespace, key: Key) -> None:
    """Remove a property of a namespace."""
    with invocation(ctx) as run:
        if key not in run.catalog.load_namespace_properties(name):
            raise NoSuchObjectError(f"namespace {name} has no property {key!r}")
        run.catalog.update_namespace_properties(name, removals={key})
        run.out.record({"namespace": name, "removed": [key]}, lambda: [f"Property {key} removed from {name}"])
