"""The arguments and options that several commands share, each described once."""

from typing import Annotated

import typer

from icefloe.cli.completing import complete_column_table, complete_namespace, complete_ref, complete_table

TableName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="[CATALOG.]NAMESPACE.TABLE, with @BRANCH, @TAG, @SNAPSHOT-ID or @TIME behind it; or a location.",
        autocompletion=complete_table,
    ),
]
ChangedTable = Annotated[
    str, typer.Argument(metavar="NAME", help="[CATALOG.]NAMESPACE.TABLE.", autocompletion=complete_table)
]
TableOrNamespace = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="A table, or a namespace for all of its tables.", autocompletion=complete_table
    ),
]
Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", autocompletion=complete_namespace)]
RefName = Annotated[str, typer.Argument(metavar="REF", autocompletion=complete_ref)]
Where = Annotated[
    str | None,
    typer.Option("--where", help="Only rows that match, such as \"id > 5 and region = 'eu'\".", metavar="EXPR"),
]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Columns by name, with commas between them.", metavar="A,B")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Branch = Annotated[str | None, typer.Option("--branch", help="The branch, in place of main.", metavar="BRANCH")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", "-p", help="A property of what is created.", metavar="KEY=VALUE")
]
MetadataTableName = Annotated[
    str | None,
    typer.Argument(metavar="[TABLE]", help="A metadata table, such as entries.", autocompletion=complete_column_table),
]


def selected(columns: str | None) -> tuple[str, ...]:
    """The columns that an option names; all of them without it."""
    return ("*",) if columns is None else tuple(each.strip() for each in columns.split(","))


def pairs(texts: list[str] | None) -> dict[str, str]:
    """Options of the form KEY=VALUE."""
    read = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        read[key] = value
    return read
