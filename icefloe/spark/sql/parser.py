"""The parser that a Spark session gets: Spark's own does the parsing, our statements run, our tables are resolved, and the rest is Spark's.

Spark asks its session's `ParserInterface` for the plan of every text, and a Python object answers, through py4j; what else Spark asks
there does not reach it, so that its own errors stay what they are. A statement about a table of ours is run at once, as
Spark itself runs commands, and the plan that is given back is that of its result.
"""

import functools
import logging
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Catalog
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.spark.gateway import Gateway, Returned
from icefloe.spark.inner_names import PREFIX
from icefloe.spark.jvm import door
from icefloe.spark.sql import caches, calls, changes, columns, describe, namespaces, scripts, tables, views
from icefloe.spark.sql.context import ReadSource, SqlContext, Statement, marked, unmarked
from icefloe.spark.sql.names import Names
from icefloe.spark.sql.nodes import class_of, copy, described
from icefloe.spark.sql.queries import resolve, with_identifiers
from icefloe.spark.sql.temporary_views import Origin, read_view, with_origin
from icefloe.sql.parser import name_statement, parse_extension

_ERRORS_KEPT = 100
_ERROR = "icefloe-error-"
_TOKEN = re.compile(rf"{_ERROR}[0-9a-f-]{{36}}")
_MARK = "icefloe default catalog"
_SPARKS_OWN = ("spark_catalog", "global_temp")
_CHANGING: dict[str, Statement] = {
    **tables.STATEMENTS,
    **columns.STATEMENTS,
    **views.STATEMENTS,
    **changes.STATEMENTS,
    **calls.STATEMENTS,
}
"""Statements after which cached rows may be outdated."""
_STATEMENTS: dict[str, Statement] = {
    **_CHANGING,
    **namespaces.STATEMENTS,
    **describe.STATEMENTS,
    **views.TEMPORARY,
    **caches.STATEMENTS,
}
_PROPOSALS = re.compile(r" Did you mean one of the following\? \[(.*?)\]\.")
_PLAN = re.compile(r";?\n'?[A-Z]\w+ .*", re.DOTALL)
"""The plan that Spark appends to its message."""

Parse = Callable[[str], JavaObject]
"""Spark's own parsing of a text."""


def with_default(text: str, catalog: str) -> str:
    """A text that says in which catalog names without one may be."""
    return marked(text, _MARK, catalog)


class SqlDoor:
    """SQL texts of one Spark session; `install` makes it the session's parser."""

    def __init__(self, spark: SparkSession, names: Names, read: ReadSource) -> None:
        self._gateway = Gateway(spark).callbacks()
        self.names = names
        """The known catalogs, and what is current."""
        self._read = read
        self._java = door.entry(spark, "parsers")
        self._errors: BoundedCache[str, Exception] = BoundedCache(_ERRORS_KEPT)

    def plan(self, marked_text: str, parse: Parse) -> JavaObject:
        """The plan of a text; an error is kept as it is for whoever catches what py4j makes of it."""
        text, default = unmarked(marked_text, _MARK)
        try:
            return self._plan(text, default, parse)
        except Exception as error:
            if isinstance(error, IcefloeError):
                name_statement(error, text)
            raise self._kept(error) from error

    def view_plan(self, text: str, parse: Parse) -> JavaObject:
        """The plan of a temporary view's query, as of now."""
        view = read_view(text)
        home = view.home if view.home is not None and view.home[0] in self.names.catalogs else None
        names, temporary = replace(self.names, current=home), None if home is None else view.temporary
        context = SqlContext(
            self._gateway,
            names,
            self._read,
            mentions=view.query,
            temporary=temporary,
            java=self._java,
            session=self.names,
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

    def _plan(self, text: str, default: str | None, parse: Parse) -> JavaObject:
        context = self._context(text, default)
        statement = parse_extension(text)
        if statement is not None:
            target = context.table(statement.table)
            if target is not None:
                statement.run(target.load_table(), context.is_case_sensitive)
                caches.refresh_caches(context)
                return context.result()
        node = parse(text)
        # Its class is known by this one call to all who ask for it.
        described(node, self._java)
        if scripts.is_script(node):
            return scripts.deferred(node, context)
        node = with_identifiers(node, context)
        result = self._run(node, context)
        return self._query(node, context) if result is None else result

    def _context(self, text: str, default: str | None) -> SqlContext:
        return SqlContext(self._gateway, self.names, self._read, default, text, java=self._java)

    def _run(self, node: JavaObject, context: SqlContext) -> JavaObject | None:
        """The result of a statement about a table of ours; None for a query or any other statement."""
        statement = _STATEMENTS.get(class_of(node))
        result = None if statement is None else statement(node, context)
        if result is not None and class_of(node) in _CHANGING:
            caches.refresh_caches(context)
        return result

    def _query(self, node: JavaObject, context: SqlContext) -> JavaObject:
        if class_of(node) == "ExplainCommand":
            return copy(self._gateway, node, logicalPlan=_explained(node.logicalPlan(), context))
        if class_of(node) == "UnresolvedExecuteImmediate" and context.default is not None:
            return _immediate(node, context.default, self._gateway)
        return resolve(node, context)

    def script_plan(self, call: JavaObject) -> JavaObject:
        """The plan of the statement of a script that runs next."""
        try:
            node, default, text = scripts.statement_in(call, self._gateway)
            context = self._context(text, default)
            node = with_identifiers(node, context)
            result = self._run(node, context)
            if result is not None:
                return scripts.command_result(result, context)
            return context.frame_of(self._query(node, context))._jdf.queryExecution().commandExecuted()
        except Exception as error:
            raise scripts.thrown(error, self._token(error), self._gateway) from error

    def sql(self, run_sql: Callable[..., DataFrame], *arguments: Any, **named: Any) -> DataFrame:
        """Run a text with Spark; an error raised in Python meanwhile is raised unchanged."""
        try:
            return run_sql(*arguments, **named)
        except Exception as error:
            for token in reversed(_TOKEN.findall(str(error))):
                if (original := self._errors.pop(token)) is not None:
                    raise original from None
            without_inner_names(error)
            raise

    def install(self) -> None:
        """Make it the parser of the session and of its catalog; another session of the same Spark keeps its own."""
        spark = self._gateway.spark
        state = spark._jsparkSession.sessionState()
        sparks, plain_sql = state.sqlParser(), spark.sql
        parser = DelegatingParser(
            sparks,
            parsePlan=lambda text: self.plan(text, sparks.parsePlan),
            parsePlanWithParameters=lambda text, parameters: self.plan(
                text, lambda plain: sparks.parsePlanWithParameters(plain, parameters)
            ),
        )
        # Spark's session catalog asks its parser for the plans of temporary views, and for no other queries.
        of_views = state.catalog().parser()
        view_parser = DelegatingParser(of_views, parseQuery=lambda text: self.view_plan(text, of_views.parseQuery))
        _set_field(state.getClass(), "sqlParser", state, parser.for_spark(self._java))
        catalog_class = self._gateway.load_class("org.apache.spark.sql.catalyst.catalog.SessionCatalog")
        _set_field(catalog_class, "parser", state.catalog(), view_parser.for_spark(self._java))
        scripts.install_scripts(self._gateway, self.script_plan)
        spark.sql = functools.wraps(plain_sql)(functools.partial(self.sql, plain_sql))

    def with_origin(self, frame: DataFrame, origin: Origin) -> DataFrame:
        """The frame with its origin, so that views of it stay current."""
        return with_origin(frame, origin, self._gateway, self._java)

    def add(self, catalogs: Mapping[str, Catalog], read: ReadSource) -> None:
        """Add these catalogs; one with a known name replaces the older one."""
        self.names.catalogs = {**self.names.catalogs, **catalogs}
        self._read = read


_DOORS: dict[tuple[str, int], SqlDoor] = {}
_LOCK = threading.Lock()


def door_of(spark: SparkSession, catalogs: Mapping[str, Catalog], read: ReadSource) -> SqlDoor:
    """The door of a Spark session, created with its first catalogs; there is one for each session."""
    key = (str(spark.sparkContext.applicationId), int(spark._jsparkSession.hashCode()))
    with _LOCK:
        sql_door = _DOORS.get(key)
        if sql_door is None:
            for old in [known for known in _DOORS if known[0] != key[0]]:
                del _DOORS[old]
            names = Names(dict(catalogs), is_foreign=functools.partial(_is_foreign, spark))
            sql_door = _DOORS[key] = SqlDoor(spark, names, read)
            logging.getLogger("py4j.clientserver").addFilter(_Known())
            sql_door.install()
        else:
            sql_door.add(catalogs, read)
        return sql_door


def _is_foreign(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of a catalog of Spark's: its own, that of global temporary views, or one that is configured."""
    return name.lower() in _SPARKS_OWN or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def _immediate(node: JavaObject, default: str, gateway: Gateway) -> JavaObject:
    """`EXECUTE IMMEDIATE` of a text in which names mean what they mean around it."""
    concat = gateway.jvm.org.apache.spark.sql.catalyst.expressions.Concat
    text = concat(gateway.seq((node.sqlStmtStr(), scripts.text_literal(with_default("", default), gateway))))
    return copy(gateway, node, sqlStmtStr=text)


def _explained(plan: JavaObject, context: SqlContext) -> JavaObject:
    if changes.target_of(plan, context) is not None:
        raise InvalidInputError("EXPLAIN tells about queries; changes of tables are run step by step, with no one plan")
    return resolve(plan, context)


class _Known(logging.Filter):
    """Keeps out of py4j's log what reaches the user as an exception anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        problem = record.exc_info[1] if record.exc_info else None
        return not (isinstance(problem, RuntimeError) and _ERROR in str(problem))


class DelegatingParser:
    """Spark's parser as a Python object that Spark can call, with answers of ours to some of the calls."""

    def __init__(self, sparks: JavaObject, **answers: Callable[..., JavaObject]) -> None:
        self._sparks = sparks
        self._answers = answers
        self._returned = Returned()

    def __getattr__(self, name: str) -> Callable[..., JavaObject]:
        if name.startswith("_"):
            raise AttributeError(name)
        method = self._answers.get(name) or getattr(self._sparks, name)
        return lambda *arguments: self._returned(method(*arguments))

    def for_spark(self, entry: JavaObject | None) -> object:
        """What Spark is given: a parser in Java that asks this one what is for us alone, or this one where there is no such Java."""
        return self if entry is None else entry.parser(self._sparks, self, " ".join(self._answers))

    class Java:
        implements = ("org.apache.spark.sql.catalyst.parser.ParserInterface",)


def _set_field(java_class: JavaObject, name: str, target: JavaObject, value: object) -> None:
    field = java_class.getDeclaredField(name)
    field.setAccessible(True)
    field.set(target, value)


def without_inner_names(error: Exception) -> None:
    """Change the text of an error of Spark's analysis: no name of ours is proposed, and no plan that has them is shown."""
    # PySpark keeps the text there; an error of Python's own has none.
    text = getattr(error, "_desc", None)
    if not isinstance(error, AnalysisException) or not isinstance(text, str) or PREFIX not in text:
        return
    message = _PLAN.split(text, maxsplit=1)[0]
    error._desc = _PROPOSALS.sub(_proposed, message)


def _proposed(match: re.Match[str]) -> str:
    names = [name for name in match[1].split(", ") if PREFIX not in name]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""
