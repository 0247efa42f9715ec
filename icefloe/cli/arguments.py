"""Arguments and options that several commands share."""

from typing import Annotated

import typer

from icefloe.cli.completing import complete_column_table, complete_namespace, complete_ref, complete_table

TableName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="[CATALOG.]NAMESPACE.TABLE, optionally followed by @BRANCH, @TAG, @SNAPSHOT-ID or @TIME; or a location.",
        autocompletion=complete_table,
    ),
]
ChangedTable = Annotated[
    str, typer.Argument(metavar="NAME", help="[CATALOG.]NAMESPACE.TABLE.", autocompletion=complete_table)
]
TableOrNamespace = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="A table, or a namespace to select all its tables.", autocompletion=complete_table
    ),
]
Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", autocompletion=complete_namespace)]
RefName = Annotated[str, typer.Argument(metavar="REF", autocompletion=complete_ref)]
Where = Annotated[
    str | None,
    typer.Option("--where", help="Filter expression, such as \"id > 5 and region = 'eu'\".", metavar="EXPR"),
]
Columns = Annotated[str | None, typer.Option("--columns", help="Comma-separated column names.", metavar="A,B")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]
Branch = Annotated[str | None, typer.Option("--branch", help="Branch to use instead of main.", metavar="BRANCH")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", "-p", help="Property to set; may be repeated.", metavar="KEY=VALUE")
]
MetadataTableName = Annotated[
    str | None,
    typer.Argument(metavar="[TABLE]", help="A metadata table, such as entries.", autocompletion=complete_column_table),
]


def selected(columns: str | None) -> tuple[str, ...]:
    """Parse the column names of an option; all columns if it is not given."""
    return ("*",) if columns is None else tuple(each.strip() for each in columns.split(","))


def pairs(texts: list[str] | None) -> dict[str, str]:
    """Parse options of the form KEY=VALUE."""
    read = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        read[key] = value
    return read
