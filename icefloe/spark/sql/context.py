"""What the statements of a SQL text share: the session, its names, and the ways to frames and back."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession, functions

from icefloe.errors import InvalidInputError, InvalidLocationError
from icefloe.schema import reserved
from icefloe.spark.gateway import Gateway, is_at_least
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.sql.names import Home, Names, Parts, ResolvedName, Source
from icefloe.spark.sql.nodes import is_name, items, parts
from icefloe.spark.user_side import quoted_name
from icefloe.storage import parse_location
from icefloe.table import Table

METADATA_COLUMNS = (
    reserved.FILE.name,
    reserved.POS.name,
    reserved.DELETED.name,
    reserved.SPEC_ID.name,
    "_partition",
    reserved.ROW_ID.name,
    reserved.LAST_UPDATED_SEQUENCE_NUMBER.name,
)
_HIDDEN = "__metadata_col"
"""How Spark marks columns that `*` leaves out."""
_HIDES_UNDER_NAMES = (4, 2)
"""From this Spark on, the name of a query lets hidden columns through; before, they are lost in `FROM t AS x`."""

ReadSource = Callable[[Source, Sequence[str]], DataFrame]
"""Reads a source of a query as a lazy frame, with the given metadata columns."""


@dataclass(frozen=True)
class SqlContext:
    """One statement's surroundings; `default` is the catalog of ours that names without one may be in."""

    gateway: Gateway
    names: Names
    read: ReadSource
    default: str | None = None
    mentions: str = ""
    """The text of the statement, for what only the text can tell."""
    temporary: frozenset[str] | None = None
    """The names of temporary views that the text of a view sees, in lower case; None, outside of views, means all."""
    within: tuple[Parts, ...] = ()
    """The views whose text this is, the outermost first: none of them may be part of it."""
    java: JavaObject | None = None
    """Our classes that save calls (icefloe/spark/jvm/parsers.java); None where there are none."""
    session: Names | None = None
    """The names of the session, for the text of a view, which is resolved by names of its own."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session."""
        return self.gateway.spark

    @property
    def state(self) -> JavaObject:
        """Spark's `SessionState`."""
        return self.spark._jsparkSession.sessionState()

    @property
    def catalyst(self) -> JavaObject:
        """The Java package of plans and expressions."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst

    def home(self) -> Home | None:
        """The catalog and namespace of ours that are current in the session."""
        return (self.session or self.names).home(self.default)

    def namespace(self, node: JavaObject) -> ResolvedName | None:
        """The namespace that a node names, if it is ours."""
        return self.names.namespace(parts(node), default=self.default)

    def table(self, name: Parts) -> ResolvedName | None:
        """The table or view of a name, whether it exists or not, if it is ours."""
        return self.names.table(name, default=self.default)

    def target(self, node: JavaObject) -> ResolvedName | None:
        """The table or view that a node names, whether it exists or not, if it is ours."""
        return self.table(parts(node)) if is_name(node) else None

    def existing(self, node: JavaObject) -> Table | None:
        """The table that a node names; None if it is not ours and may be Spark's."""
        target = self.target(node)
        if target is None or (parts(node)[0] not in self.names.catalogs and not target.table_exists()):
            return None
        return target.load_table()

    def source(self, name: Parts) -> Source | None:
        """What a relation of a query reads; None if it is not ours, or there is no such table."""
        return self.names.source(name, default=self.default)

    def is_temporary(self, name: Parts) -> bool:
        """Whether a name is that of a temporary view, unless it is a global one."""
        if len(name) != 1:
            return False
        if self.temporary is not None:
            return name[0].lower() in self.temporary
        return bool(self.state.catalog().isTempView(self.gateway.seq(name)))

    @property
    def is_case_sensitive(self) -> bool:
        """Whether the session distinguishes columns by case."""
        return is_case_sensitive(self.spark)

    def metadata_columns(self) -> tuple[str, ...]:
        """The metadata columns that the statement may mean: those whose names are in its text."""
        return mentioned_metadata(self.mentions)

    def relation_plan(self, frame: DataFrame, qualifier: Sequence[str]) -> JavaObject:
        """The logical plan of a frame under a table's name, so that columns can be qualified by it."""
        hidden = [name for name in self.metadata_columns() if name in frame.columns]
        if not hidden:
            if self.java is not None:
                return self.java.named(frame._jdf, self.gateway.alias_identifier(qualifier))
            return self.gateway.named_plan(plan_of(frame), qualifier)
        shown = [quoted_name(name) for name in frame.columns if name not in hidden]
        marks = [functions.col(name).alias(name, metadata={_HIDDEN: "true"}) for name in hidden]
        inner = frame.select(*shown, *marks)._jdf.queryExecution().analyzed()
        if is_at_least(self.spark, _HIDES_UNDER_NAMES):
            return self.gateway.named_plan(self._hiding(inner, hidden), qualifier)
        return self._hiding(self.gateway.named_plan(inner, qualifier), hidden)

    def _hiding(self, plan: JavaObject, hidden: Sequence[str]) -> JavaObject:
        """A plan whose metadata columns can be named, but are not part of `*`."""
        project, attributes = self.catalyst.plans.logical.Project, items(plan.output())
        shown = project(self.gateway.seq(column for column in attributes if column.name() not in hidden), plan)
        others = self.gateway.seq(column for column in attributes if column.name() in hidden)
        shown.setTagValue(project.hiddenOutputTag(), others)
        return shown

    def result(self, rows: Sequence[tuple[object, ...]] = (), schema: str = "") -> JavaObject:
        """The logical plan of a statement's result rows; most statements have none."""
        if not schema:
            empty = self.gateway.seq(())
            return self.catalyst.plans.logical.LocalRelation(empty, empty, False, self.gateway.none())
        return plan_of(self.spark.createDataFrame(list(rows), schema))

    def frame_of(self, plan: JavaObject) -> DataFrame:
        """The frame of a logical plan."""
        return self.gateway.frame_of(plan)


def mentioned_metadata(text: str) -> tuple[str, ...]:
    """The metadata columns that a text may mean."""
    return tuple(name for name in METADATA_COLUMNS if re.search(rf"\b{name}\b", text))


def constant(column: Column, spark: SparkSession) -> Any:
    """The value of a column that depends on no other."""
    (row,) = spark.range(1).select(column).collect()
    return row[0]


def plan_of(frame: DataFrame) -> JavaObject:
    """The logical plan of a frame."""
    return frame._jdf.queryExecution().logical()


def whole_location(text: str) -> str:
    """A location given in a statement, which must not depend on the working directory."""
    if text and ":" not in text and not text.startswith("/"):
        raise InvalidLocationError(
            f"LOCATION {text!r} is relative, and to nothing that others would know;"
            " write a whole path such as '/data/t', or a URI such as 's3://bucket/t'"
        )
    parse_location(text)
    return text


def marked(text: str, mark: str, value: str) -> str:
    """A text with a value in a comment at its end: Spark calls back in a thread that knows nothing but the text."""
    return f"{text}\n/* {mark}: {value} */"


def unmarked(text: str, mark: str) -> tuple[str, str | None]:
    """The text as it was, and the value that was marked on it."""
    match = re.fullmatch(rf"(.*)\n/\* {mark}: (.*) \*/", text, re.DOTALL)
    return (text, None) if match is None else (match[1], match[2])


def removed_keys(node: JavaObject, properties: Mapping[str, str], what: str) -> list[str]:
    """The keys that UNSET TBLPROPERTIES names, without those that are not set, if it says IF EXISTS."""
    keys = items(node.propertyKeys())
    missing = [key for key in keys if key not in properties]
    if missing and not node.ifExists():
        raise InvalidInputError(f"{what} has no property {missing[0]!r}; write UNSET TBLPROPERTIES IF EXISTS")
    return [key for key in keys if key not in missing]


Statement = Callable[[JavaObject, SqlContext], JavaObject | None]
"""Runs a statement and returns the plan of its result; None if it is not about anything of ours, and Spark is to run it."""
_Object = TypeVar("_Object")
_Run = Callable[[JavaObject, _Object, SqlContext], JavaObject | None]


def about(find: Callable[[JavaObject, SqlContext], _Object | None]) -> Callable[[_Run[_Object]], Statement]:
    """Makes a statement of a function that gets what `find` finds; if it returns nothing, the statement has no rows."""

    def decorate(run: _Run[_Object]) -> Statement:
        @wraps(run)
        def statement(node: JavaObject, context: SqlContext) -> JavaObject | None:
            subject = find(node, context)
            if subject is None:
                return None
            result = run(node, subject, context)
            return context.result() if result is None else result

        return statement

    return decorate


about_namespace = about(lambda node, context: context.namespace(node.child()))
"""A statement about the namespace that its child names."""
about_target = about(lambda node, context: context.target(node.child()))
"""A statement about the table or view that its child names, whether it exists or not."""
about_table = about(lambda node, context: context.existing(node.child()))
"""A statement about the table that its child names, which must exist."""
