"""What the statements of a SQL text share: the session, its names, and the ways to frames and back."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, functions

from icefloe.catalog import Catalog, show
from icefloe.errors import InvalidLocationError
from icefloe.schema import reserved
from icefloe.spark.gateway import Gateway, is_at_least
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.sql.names import Names, Place, Source
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
    within: tuple[tuple[str, ...], ...] = ()
    """The views whose text this is, the outermost first: none of them may be part of it."""

    session: Names | None = None
    """The names of the session, for the text of a view, which is resolved by names of its own."""

    def home(self) -> tuple[str, tuple[str, ...]] | None:
        """The catalog and namespace of ours that are current in the session."""
        return (self.session or self.names).home(self.default)

    def place(self, node: Any) -> Place | None:
        """The namespace that a node names, if it is ours."""
        return self.names.place(parts(node), default=self.default)

    def table_place(self, node: Any) -> Place | None:
        """The table or view that a node names, whether it exists or not, if it is ours."""
        return self.names.table(parts(node), default=self.default) if is_name(node) else None

    def existing(self, node: Any) -> Table | None:
        """The table that a node names; None if it is not ours and may be Spark's."""
        place = self.table_place(node)
        if place is None:
            return None
        if parts(node)[0] not in self.names.catalogs and not place.catalog.table_exists(place.parts):
            return None
        return place.catalog.load_table(place.parts)

    def is_temporary(self, name: str) -> bool:
        """Whether a name of one part is that of a temporary view."""
        if self.temporary is not None:
            return name.lower() in self.temporary
        catalog = self.gateway.spark._jsparkSession.sessionState().catalog()
        return bool(catalog.isTempView(self.gateway.seq((name,))))

    @property
    def is_case_sensitive(self) -> bool:
        """Whether the session tells columns apart by case."""
        return is_case_sensitive(self.gateway.spark)

    def metadata_columns(self) -> tuple[str, ...]:
        """The metadata columns that the statement may mean: those whose names are in its text."""
        return mentioned_metadata(self.mentions)

    def relation_plan(self, frame: DataFrame, qualifier: Sequence[str]) -> Any:
        """The logical plan of a frame under a table's name, so that columns can be qualified by it."""
        wanted = self.metadata_columns()
        hidden = [name for name in wanted if name in frame.columns] if wanted else []
        if not hidden:
            return self.named_plan(plan_of(frame), qualifier)
        shown = [quoted_name(name) for name in frame.columns if name not in hidden]
        marks = [functions.col(name).alias(name, metadata={_HIDDEN: "true"}) for name in hidden]
        inner = frame.select(*shown, *marks)._jdf.queryExecution().analyzed()
        if is_at_least(self.gateway.spark, _HIDES_UNDER_NAMES):
            return self.named_plan(self._hiding(inner, hidden), qualifier)
        return self._hiding(self.named_plan(inner, qualifier), hidden)

    def named_plan(self, plan: Any, name: Sequence[str]) -> Any:
        """A plan under a name of one or more parts."""
        return self.gateway.named_plan(plan, name)

    def _hiding(self, plan: Any, hidden: Sequence[str]) -> Any:
        """A plan whose metadata columns can be named, but are not part of `*`."""
        logical = self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical
        known = list(items(plan.output()))
        project = logical.Project(
            self.gateway.seq([attribute for attribute in known if attribute.name() not in hidden]), plan
        )
        kept = self.gateway.seq([attribute for attribute in known if attribute.name() in hidden])
        project.setTagValue(logical.Project.hiddenOutputTag(), kept)
        return project

    def result(self, rows: Sequence[tuple[Any, ...]] = (), schema: str = "") -> Any:
        """The logical plan of a statement's result rows; most statements have none."""
        if not schema:
            local = self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
            empty = self.gateway.seq(())
            return local(empty, empty, False, self.gateway.jvm.scala.Option.empty())
        return plan_of(self.gateway.spark.createDataFrame(list(rows), schema))

    def frame_of(self, plan: Any) -> DataFrame:
        """The frame of a logical plan."""
        session = self.gateway.spark
        dataset = self.gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
        return DataFrame(dataset, session)


def mentioned_metadata(text: str) -> tuple[str, ...]:
    """The metadata columns that a text may mean."""
    return tuple(name for name in METADATA_COLUMNS if re.search(rf"\b{name}\b", text))


def plan_of(frame: DataFrame) -> Any:
    """The logical plan of a frame."""
    return frame._jdf.queryExecution().logical()


def full_name(catalog: Catalog, identifier: Sequence[str]) -> str:
    """A table's name with its catalog, as SQL reads it."""
    return show((catalog.name, *identifier))


def whole_location(text: str) -> str:
    """A location given in a statement, which must not depend on the working directory."""
    if text and ":" not in text and not text.startswith("/"):
        raise InvalidLocationError(
            f"LOCATION {text!r} is relative, and to nothing that others would know;"
            " write a whole path such as '/data/t', or a URI such as 's3://bucket/t'"
        )
    parse_location(text)
    return text
