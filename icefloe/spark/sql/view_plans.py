"""Views of DataFrames: their plans carry notes of the tables that they scan, and a query that names a view gets the newest rows.

Such a view has no text that could be read again. A frame of a table as it is, without a snapshot or a filter of its own,
carries a note of where it came from; all that was done with it since stays as it is when its scan is made anew.
"""

import json
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.nodes import items, option, rebuilt
from icefloe.table import Table

_GLOBAL = "global_temp"
_TAG = "icefloe scan"
_PASSED = "_pyspark_"
"""How the names begin under which PySpark passes frames to a SQL text: those are what they are in Python."""
_MOST_KNOWN = 1000
_WITHOUT_SCANS: MutableMapping[Any, BoundedCache[tuple[tuple[str, ...], int], bool]] = WeakKeyDictionary()
"""Views without a scan of ours, with the plans that they had, for each connection to a JVM."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a frame is of: a table, perhaps on a branch, with some metadata columns, at a snapshot and in a schema."""

    catalog: str
    identifier: tuple[str, ...]
    ref: str | None
    metadata_columns: tuple[str, ...]
    snapshot_id: int | None
    schema_id: int | None

    @classmethod
    def of(cls, source: Source, table: Table, metadata_columns: tuple[str, ...]) -> "Note":
        """The note of a table as it is now."""
        metadata = table.metadata
        held = metadata.refs.get(source.ref) if source.ref is not None else None
        snapshot_id = metadata.current_snapshot_id if held is None else held.snapshot_id
        schema_id = metadata.current_schema_id
        return cls(source.catalog.name, source.identifier, source.ref, metadata_columns, snapshot_id, schema_id)

    def text(self) -> str:
        """The note as text."""
        return json.dumps([getattr(self, name) for name in self.__dataclass_fields__])

    @classmethod
    def read(cls, text: str) -> "Note":
        """What `text` wrote."""
        catalog, identifier, ref, columns, snapshot_id, schema_id = json.loads(text)
        return cls(catalog, tuple(identifier), ref, tuple(columns), snapshot_id, schema_id)


def noted(frame: DataFrame, note: Note, gateway: Gateway) -> DataFrame:
    """The frame, with a note in its plan."""
    tag, text, query = _tag(gateway), note.text(), frame._jdf.queryExecution()
    for plan in (query.logical(), query.analyzed()):
        plan.setTagValue(tag, text)
    return frame


def names_temporary(name: tuple[str, ...], context: SqlContext) -> bool:
    """Whether a name is that of a temporary view."""
    if len(name) == 1:
        return context.is_temporary(name[0])
    return len(name) == 2 and name[0].lower() == _GLOBAL


def refresh_view(name: tuple[str, ...], context: SqlContext) -> None:
    """Update a temporary view of a frame to the newest snapshots of its tables."""
    gateway = context.gateway
    catalog = gateway.spark._jsparkSession.sessionState().catalog()
    view = None if name[-1].startswith(_PASSED) else option(catalog.getRawLocalOrGlobalTempView(gateway.seq(name)))
    plan = None if view is None else option(view.plan())
    if view is None or plan is None:
        return
    key = (name, int(gateway.jvm.java.lang.System.identityHashCode(plan)))
    plain = _WITHOUT_SCANS.setdefault(gateway.spark._jvm._gateway_client, BoundedCache(_MOST_KNOWN))
    if key in plain:
        return
    tag, texts, changed = _tag(gateway), [], []

    def replace(node: Any) -> Any:
        text = option(node.getTagValue(tag))
        if text is None:
            return node
        texts.append(text)
        scan = _scanned_again(node, Note.read(text), name, context)
        changed.extend([scan] if scan is not None else [])
        return node if scan is None else scan

    updated = rebuilt(plan, replace)
    if changed:
        catalyst = gateway.jvm.org.apache.spark.sql.catalyst
        fresh = catalyst.catalog.TemporaryViewRelation(view.tableMeta(), gateway.jvm.scala.Option.apply(updated))
        database = gateway.jvm.scala.Option.apply(name[0] if len(name) > 1 else None)
        catalog.alterTempViewDefinition(catalyst.TableIdentifier(name[-1], database), fresh)
    elif not texts:
        plain.keep(key, True)


def _tag(gateway: Gateway) -> Any:
    return gateway.cached(_TAG, lambda: gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_TAG))


def _scanned_again(node: Any, note: Note, view: tuple[str, ...], context: SqlContext) -> Any | None:
    """The newest rows with the columns of a node; None if the node has the newest rows."""
    catalog = context.names.catalogs.get(note.catalog)
    if catalog is None:
        return None
    source = Source(catalog, note.identifier, ref=note.ref)
    now = Note.of(source, catalog.load_table(note.identifier), note.metadata_columns)
    if now == note:
        return None
    gateway = context.gateway
    plan = context.read(source, note.metadata_columns)._jdf.queryExecution().analyzed()
    plan.unsetTagValue(_tag(gateway))
    known = {attribute.name(): attribute for attribute in items(plan.output())}
    columns = [_column(attribute, known, note, view, gateway) for attribute in items(node.output())]
    project = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Project(gateway.seq(columns), plan)
    project.setTagValue(_tag(gateway), now.text())
    return project


def _column(old: Any, known: dict[str, Any], note: Note, view: tuple[str, ...], gateway: Gateway) -> Any:
    name, old_type = old.name(), old.dataType().catalogString()
    new = known.get(name)
    if new is None or new.dataType().catalogString() != old_type:
        what = "is gone" if new is None else f"was {old_type} and is {new.dataType().catalogString()}"
        table = show((note.catalog, *note.identifier))
        raise InvalidInputError(
            f"view {'.'.join(view)} was created from table {table}, whose column {name!r} {what}; create the view again"
        )
    noted_metadata = gateway.jvm.scala.Option.apply(old.metadata())
    alias = gateway.jvm.org.apache.spark.sql.catalyst.expressions.Alias
    return alias(new, name, old.exprId(), old.qualifier(), noted_metadata, gateway.seq(()))
