"""`icefloe sql`: Spark SQL statements from an argument, a file or a prompt."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from icefloe.cli.invocation import Invocation, invocation
from icefloe.cli.options import is_terminal
from icefloe.cli.query.query import statement_text
from icefloe.errors import InvalidInputError, NotInstalledError


def sql(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="SQL statements; - reads them from standard input.")
    ] = None,
    command: Annotated[str | None, typer.Option("-c", help="SQL statements, as an option.", metavar="SQL")] = None,
    file: Annotated[str | None, typer.Option("-f", "--file", help="File with statements.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--conf", help="Spark session setting; may be repeated.", metavar="KEY=VALUE")
    ] = None,
) -> None:
    """Run SQL on Spark (DDL, DML, MERGE, CALL); opens a prompt if no statement is given."""
    from icefloe.cli.arguments import pairs

    if text is not None and command is not None:
        raise typer.BadParameter("give statements either as an argument or with -c", param_hint="-c")
    given = text if command is None else command
    with invocation(ctx) as run:
        is_prompt = given is None and file is None
        statements = [] if is_prompt else list(split_statements(statement_text(given, file)))
        ice = session(run, pairs(settings))
        try:
            if is_prompt:
                _prompt(run, ice)
            for statement in statements:
                run_statement(run, ice, statement)
        finally:
            ice.stop()


def session(run: Invocation, settings: dict[str, str] | None = None) -> Any:
    """Return a Spark session with the catalog in use and all other configured catalogs."""
    try:
        from icefloe.spark.connect import connect
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        raise NotInstalledError("SQL on Spark needs pyspark: pip install 'icefloe[spark]'") from error
    catalogs = {run.catalog_name: run.catalog}
    if not run.options.properties:
        others = (name for name in run.configuration.names() if name != run.catalog_name)
        catalogs |= {name: run.open_catalog(name) for name in others}
    return connect(catalogs, config=settings or None)


def run_statement(run: Invocation, ice: Any, statement: str) -> None:
    """Run one statement and print its rows."""
    from icefloe.errors import IcefloeError

    try:
        frame = ice.sql(statement)
        rows = frame.toArrow() if frame.columns else None
    except IcefloeError:
        raise
    except Exception as error:
        if type(error).__module__.startswith("pyspark."):
            raise InvalidInputError(str(error).partition("\n\nJVM stacktrace")[0]) from error
        raise
    if rows is not None:
        run.out.table(rows)


def split_statements(text: str) -> Iterator[str]:
    """Split a text into statements, at semicolons outside quotes and comments."""
    start = position = 0
    while position < len(text):
        for opening, closing in (("'", "'"), ('"', '"'), ("`", "`"), ("--", "\n"), ("/*", "*/")):
            if text.startswith(opening, position):
                end = text.find(closing, position + len(opening))
                position = len(text) if end < 0 else end + len(closing)
                break
        else:
            if text[position] == ";":
                if text[start:position].strip():
                    yield text[start:position].strip()
                start = position + 1
            position += 1
    if text[start:].strip():
        yield text[start:].strip()


def _prompt(run: Invocation, ice: Any) -> None:
    """Read and run statements up to their semicolons; errors do not end the prompt."""
    from icefloe.errors import IcefloeError

    if is_terminal(sys.stdin):
        run.say("end statements with a semicolon; leave with exit; or Ctrl-D")
    waiting = ""
    while True:
        if is_terminal(sys.stdin):
            sys.stderr.write("icefloe> " if not waiting else "      -> ")
            sys.stderr.flush()
        line = sys.stdin.readline()
        waiting += line
        if waiting.strip().rstrip(";").lower() in ("exit", "quit") or (not line and not waiting.strip()):
            return
        if waiting.rstrip().endswith(";") or not line:
            for statement in split_statements(waiting):
                try:
                    run_statement(run, ice, statement)
                except IcefloeError as error:
                    sys.stderr.write(f"Error: {error}\n")
            waiting = ""
