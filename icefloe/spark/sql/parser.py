"""The parser that a Spark session gets: Spark's own does the parsing, our statements run, our tables are resolved, and the rest is Spark's.

Spark asks its session's `ParserInterface` for the plan of every text. A Python object stands there, through py4j. A statement
about a table of ours is run at once, as Spark itself runs commands, and the plan that is given back is that of its result.
"""

import functools
import logging
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Catalog
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.caches import refresh_caches, run_caches
from icefloe.spark.sql.calls import run_call
from icefloe.spark.sql.changes import run_changes, target_of
from icefloe.spark.sql.columns import run_columns
from icefloe.spark.sql.context import ReadSource, SqlContext
from icefloe.spark.sql.delegating_parser import DelegatingParser
from icefloe.spark.sql.describe import run_describe
from icefloe.spark.sql.errors import without_inner_names
from icefloe.spark.sql.identifiers import with_identifiers
from icefloe.spark.sql.names import Names
from icefloe.spark.sql.namespaces import run_namespaces
from icefloe.spark.sql.nodes import copy, kind_of
from icefloe.spark.sql.queries import resolve
from icefloe.spark.sql.scripts import (
    command_result,
    deferred,
    install_scripts,
    is_script,
    statement_in,
    text_literal,
    thrown,
)
from icefloe.spark.sql.tables import run_tables
from icefloe.spark.sql.view_texts import install_view_parser, read_view
from icefloe.spark.sql.views import run_temp_view, run_views
from icefloe.sql.parser import name_statement, parse_extension

_ERRORS_KEPT = 100
_ERROR = "icefloe-error-"
_TOKEN = re.compile(rf"{_ERROR}[0-9a-f-]{{36}}")
_MARK = "icefloe default catalog: "
_MARKED = re.compile(rf"(.*)\n/\* {_MARK}(.*) \*/", re.DOTALL)
_SPARKS_OWN = ("spark_catalog", "global_temp")
_CHANGED = {
    "DeleteFromTable": "table",
    "InsertIntoStatement": "table",
    "MergeIntoTable": "targetTable",
    "UpdateTable": "table",
}
"""Statements that change rows, and their name for the target table."""
_STATEMENTS = (
    run_namespaces,
    run_tables,
    run_columns,
    run_describe,
    run_views,
    run_temp_view,
    run_changes,
    run_call,
    run_caches,
)
_CHANGING = (run_tables, run_columns, run_views, run_changes, run_call)
"""Statements after which cached rows may be outdated."""


def marked(text: str, catalog: str) -> str:
    """A text that says in which catalog names without one may be: Spark calls back in a thread that knows nothing else."""
    return f"{text}\n/* {_MARK}{catalog} */"


def unmarked(text: str) -> tuple[str, str | None]:
    """The text as it was, and the catalog that a mark on it names."""
    match = _MARKED.fullmatch(text)
    return (text, None) if match is None else (match[1], match[2])


class SqlDoor:
    """SQL texts of one Spark session; `installed` is how it becomes the session's parser."""

    def __init__(self, spark: SparkSession, names: Names, read: ReadSource) -> None:
        self._gateway = Gateway(spark).callbacks()
        self._names = names
        self._read = read
        self._errors: BoundedCache[str, Exception] = BoundedCache(_ERRORS_KEPT)

    @property
    def names(self) -> Names:
        """The known catalogs, and what is current."""
        return self._names

    def plan(self, marked: str, parse: Callable[[str], Any]) -> Any:
        """The plan of a text; an error is kept as it is for whoever catches what py4j makes of it."""
        text, default = unmarked(marked)
        try:
            return self._plan(text, default, parse)
        except Exception as error:
            if isinstance(error, IcefloeError):
                name_statement(error, text)
            raise self._kept(error) from error

    def view_plan(self, text: str, parse: Callable[[str], Any]) -> Any:
        """The plan of a temporary view's query, as of now."""
        view = read_view(text)
        home = view.home if view.home is not None and view.home[0] in self._names.catalogs else None
        names, temporary = replace(self._names, current=home), None if home is None else view.temporary
        context = SqlContext(
            self._gateway, names, self._read, mentions=view.query, temporary=temporary, session=self._names
        )
        try:
            return resolve(parse(view.query), context)
        except Exception as error:
            raise self._kept(error) from error

    def _kept(self, error: Exception) -> RuntimeError:
        return RuntimeError(f"{error} ({self._token(error)})")

    def _token(self, error: Exception) -> str:
        """The token that stands for an error in the message of another."""
        without_inner_names(error)
        token = f"{_ERROR}{uuid.uuid4()}"
        self._errors.keep(token, error)
        return token

    def _plan(self, text: str, default: str | None, parse: Callable[[str], Any]) -> Any:
        context = SqlContext(self._gateway, self._names, self._read, default, text)
        statement = parse_extension(text)
        if statement is not None:
            place = self._names.table(statement.table, default=context.default)
            if place is not None:
                statement.run(place.catalog.load_table(place.parts), context.is_case_sensitive)
                refresh_caches(context)
                return context.result()
        node = parse(text)
        if is_script(node):
            return deferred(node, context)
        node = with_identifiers(node, context)
        result = self._run(node, context)
        return self._query(node, context) if result is None else result

    def _run(self, node: Any, context: SqlContext) -> Any | None:
        """The result of a statement about a table of ours; None for a query or any other statement."""
        for statement_of in _STATEMENTS:
            result = statement_of(node, context)
            if result is not None:
                if statement_of in _CHANGING:
                    refresh_caches(context)
                return result
        return None

    def _query(self, node: Any, context: SqlContext) -> Any:
        if kind_of(node) == "ExplainCommand":
            return copy(self._gateway, node, logicalPlan=_explained(node.logicalPlan(), context))
        if kind_of(node) == "UnresolvedExecuteImmediate" and context.default is not None:
            return _immediate(node, context.default, self._gateway)
        return resolve(node, context)

    def script_plan(self, call: Any) -> Any:
        """The plan of the statement of a script that runs next."""
        try:
            node, default, text = statement_in(call, self._gateway)
            context = SqlContext(self._gateway, self._names, self._read, default, text)
            node = with_identifiers(node, context)
            result = self._run(node, context)
            if result is not None:
                return command_result(result, context)
            return context.frame_of(self._query(node, context))._jdf.queryExecution().commandExecuted()
        except Exception as error:
            raise thrown(error, self._token(error), self._gateway) from error

    def sql(self, run_sql: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run a text with Spark; an error raised in Python meanwhile is raised unchanged."""
        try:
            return run_sql(*arguments, **named)
        except Exception as error:
            for token in reversed(_TOKEN.findall(str(error))):
                if (kept := self._errors.pop(token)) is not None:
                    raise kept from None
            without_inner_names(error)
            raise

    def install(self) -> None:
        """Make it the parser of the session; another session of the same Spark keeps its own."""
        spark = self._gateway.spark
        state = spark._jsparkSession.sessionState()
        field = state.getClass().getDeclaredField("sqlParser")
        field.setAccessible(True)
        plain_sql = spark.sql
        field.set(state, PythonParser(self, state.sqlParser()))
        install_view_parser(self._gateway, self.view_plan)
        install_scripts(self._gateway, self.script_plan)
        spark.sql = functools.wraps(plain_sql)(functools.partial(self.sql, plain_sql))

    def add(self, catalogs: Mapping[str, Catalog], read: ReadSource) -> None:
        """Add these catalogs; one with a known name replaces the older one."""
        self._names.catalogs = {**self._names.catalogs, **catalogs}
        self._read = read


_DOORS: dict[tuple[str, int], SqlDoor] = {}
_LOCK = threading.Lock()


def door_of(spark: SparkSession, catalogs: Mapping[str, Catalog], read: ReadSource) -> SqlDoor:
    """The door of a Spark session, created with its first catalogs; there is one for each session."""
    key = (str(spark.sparkContext.applicationId), int(spark._jsparkSession.hashCode()))
    with _LOCK:
        door = _DOORS.get(key)
        if door is None:
            for old in [known for known in _DOORS if known[0] != key[0]]:
                del _DOORS[old]
            door = _DOORS[key] = SqlDoor(spark, Names(dict(catalogs), is_foreign=_foreign_catalogs(spark)), read)
            logging.getLogger("py4j.clientserver").addFilter(_Known())
            door.install()
        else:
            door.add(catalogs, read)
        return door


def _foreign_catalogs(spark: SparkSession) -> Callable[[str], bool]:
    """Whether a name is that of a catalog of Spark's: its own, that of global temporary views, or one that is configured."""

    def is_foreign(name: str) -> bool:
        return name.lower() in _SPARKS_OWN or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None

    return is_foreign


def _immediate(node: Any, default: str, gateway: Gateway) -> Any:
    """`EXECUTE IMMEDIATE` of a text in which names mean what they mean around it."""
    concat = gateway.jvm.org.apache.spark.sql.catalyst.expressions.Concat
    text = concat(gateway.seq((node.sqlStmtStr(), text_literal(marked("", default), gateway))))
    return copy(gateway, node, sqlStmtStr=text)


def _explained(plan: Any, context: SqlContext) -> Any:
    target = _CHANGED.get(kind_of(plan))
    if target is not None and target_of(getattr(plan, target)(), context) is not None:
        raise InvalidInputError("EXPLAIN tells about queries; changes of tables are run step by step, with no one plan")
    return resolve(plan, context)


class _Known(logging.Filter):
    """Keeps out of py4j's log what reaches the user as an exception anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        problem = record.exc_info[1] if record.exc_info else None
        return not (isinstance(problem, RuntimeError) and _ERROR in str(problem))


class PythonParser(DelegatingParser):
    """What Spark sees as its parser."""

    def __init__(self, door: SqlDoor, sparks: Any) -> None:
        super().__init__(sparks)
        self._door = door

    def parsePlan(self, text: str) -> Any:  # noqa: N802 - a name of the interface
        return self._returned(self._door.plan(text, self._sparks.parsePlan))

    def parsePlanWithParameters(self, text: str, parameters: Any) -> Any:  # noqa: N802 - a name of the interface
        plan = self._door.plan(text, lambda plain: self._sparks.parsePlanWithParameters(plain, parameters))
        return self._returned(plan)
