"""The query page: a SELECT over tables of the catalogs, run by DuckDB without access to anything else.

It exists only where rows are shown, is read-only, and is limited in time and rows.
"""

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from icefloe import errors
from icefloe.catalog import Identifier, choose_version, show_table
from icefloe.query import check_installed
from icefloe.table import DataScan, Table
from icefloe.ui.asking import Page, TablePage, told
from icefloe.ui.jobs import Job
from icefloe.ui.reading import SECONDS, first_rows

if TYPE_CHECKING:
    from icefloe.query.statement import Statement

_MOST_ROWS = 500
_MOST_TEXT = 20_000
_MEMORY = "1GB"
_THREADS = 2


def query(page: Page) -> Response:
    """Show the query form and the result."""
    subject = TablePage.of(page, "query")
    page.site.check_rows()
    sql = page.query("sql")
    if len(sql) > _MOST_TEXT:
        raise errors.InvalidInputError(f"the query has {len(sql):,} characters; the limit is {_MOST_TEXT:,}")
    shown = sql or f"SELECT * FROM {show_table(subject.identifier)} LIMIT 20"
    context: dict[str, Any] = {"sql": shown, "seconds": SECONDS, "most": _MOST_ROWS}
    if not sql:
        return subject.render("query.html", rows=None, read=(), problem="", **context)
    try:
        job = _asked(subject, sql)
        if not job.done.is_set():
            return subject.render("waiting.html", job=job)
        if job.error is not None:
            raise job.error
        rows, read = job.result
    except errors.IcefloeError as error:
        # Keep the form, with the query that failed.
        status, _, message = told(error)
        return subject.render("query.html", status, rows=None, read=(), problem=message, **context)
    return subject.render("query.html", rows=rows, read=read, problem="", **context)


def _asked(subject: TablePage, sql: str) -> Job:
    """Return the job that runs a query on the current state of the tables."""
    check_installed()
    from icefloe.query.statement import name_and_version, read_statement

    statement = read_statement(sql)
    scans = {use.parts: _scan(subject, *name_and_version(use.parts)) for use in statement.uses}
    states = tuple((parts, scan.metadata.table_uuid, scan.metadata.last_updated_ms) for parts, scan in scans.items())
    return subject.ask("query", "Running the query", lambda _: _answered(statement, scans), sql, states)


def _scan(subject: TablePage, name: Identifier, version: str | None) -> DataScan:
    """Scan a table of a query, in the catalog of the page unless the name starts with another; locations are not allowed."""
    page, catalog = subject.page, subject.catalog
    if len(name) > 2 and name[0] in page.site.shown_catalogs(page.visitor):
        catalog, name = name[0], name[1:]
    table: Table = page.site.table(page.visitor, catalog, name)
    return table.scan(**choose_version(table.metadata, version))


class _Answer(tuple[Any, Any]):
    """Result rows, and what was read for them."""

    @property
    def nbytes(self) -> int:
        return int(self[0].nbytes)


def _answered(statement: "Statement", scans: dict[tuple[str, ...], DataScan]) -> _Answer:
    from icefloe.query.engine import Engine, Limits, reports

    engine = Engine(Limits(_MEMORY, _THREADS))
    clock = threading.Timer(SECONDS, engine.interrupt)
    clock.start()
    start = time.monotonic()
    try:
        sources = engine.sources(statement, scans.__getitem__)
        rows = first_rows(engine.answer(statement, sources), _MOST_ROWS)
        return _Answer((replace(rows, seconds=time.monotonic() - start), list(reports(sources))))
    except Exception as error:
        if isinstance(error, errors.IcefloeError) and clock.is_alive():
            raise
        if not clock.is_alive():
            raise errors.InvalidInputError(
                f"the query took longer than {SECONDS:.0f} s; run it with `icefloe query`, which has no time limit"
            ) from error
        if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "pyarrow"):
            raise errors.InvalidInputError(f"the query failed: {error}") from error
        raise
    finally:
        clock.cancel()
        engine.close()
