"""`icefloe query`: read-only queries without Java."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from icefloe.catalog import show_table
from icefloe.cli.invocation import Invocation, invocation
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.query import check_installed
from icefloe.table import DataScan

_ENGINES = ("duckdb", "spark")


def query(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="SQL query; - reads it from standard input.")
    ] = None,
    file: Annotated[str | None, typer.Option("-f", "--file", help="File with the query.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print what was read and skipped of each table.")
    ] = False,
    engine: Annotated[str, typer.Option(help=f"Query engine: {' or '.join(_ENGINES)}.")] = "duckdb",
) -> None:
    """Run a query without Java; name a table as in other commands, such as shop.orders@v1."""
    if engine not in _ENGINES:
        raise typer.BadParameter(f"{engine!r} is not one of {', '.join(_ENGINES)}", param_hint="--engine")
    with invocation(ctx) as run:
        sql = statement_text(text, file)
        if engine == "spark":
            from icefloe.cli.query.sql import run_statement, session

            ice = session(run)
            try:
                run_statement(run, ice, sql)
            finally:
                ice.stop()
        else:
            _answer(run, sql, explain)


def statement_text(text: str | None, file: str | None) -> str:
    """Return the statement from an argument, a file or standard input."""
    if (text is None) == (file is None):
        raise typer.BadParameter("give a statement, or a file with -f; - reads standard input")
    if file is not None:
        try:
            return Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{file} cannot be read: {error}") from error
    return sys.stdin.read() if text == "-" else str(text)


def _answer(run: Invocation, sql: str, explain: bool) -> None:
    check_installed()
    from icefloe.query.engine import Engine, reports
    from icefloe.query.statement import name_and_version, read_statement

    statement = read_statement(sql)
    engine = Engine()
    try:
        sources = engine.sources(statement, lambda parts: _scan(run, *name_and_version(parts)))
        run.out.table(engine.answer(statement, sources))
        if explain:
            for report in reports(sources):
                run.say(_explained(report))
    finally:
        engine.close()


def _scan(run: Invocation, identifier: tuple[str, ...], version: str | None) -> DataScan:
    text = show_table(identifier) if version is None else f"{show_table(identifier)}@{version}"
    try:
        table = run.table(text)
    except NoSuchTableError as error:
        raise NoSuchTableError(f"{error}; queries can read tables, but not views of the catalog") from error
    return table.table.scan(**table.at)


def _explained(report: dict[str, Any]) -> str:
    columns = ", ".join(report["columns"])
    text = f"{report['table']}: columns {columns}; filter {report['filter'] or 'none'}"
    if report["data_files"] is None:
        return f"{text}; not read"
    skipped = report["data_files"] - report["data_files_read"]
    return (
        f"{text}; {report['data_files_read']} of {report['data_files']} data files read, {skipped} skipped;"
        f" {report['manifests_read']} of {report['manifests']} manifests read"
    )
