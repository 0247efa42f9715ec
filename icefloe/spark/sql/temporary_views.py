"""Temporary views: whenever a query names one, it shows the newest rows of the tables behind it.

Spark keeps a view of a query as a text, and its session catalog parses that for every query that names the view. The catalog and
namespace that were current when it was written travel in the text, and its plan is ours.

A view of a DataFrame has no text that could be read again. A frame of a table as it is, without a snapshot or a filter of its own,
carries its origin in its plan; its scan is replaced by a new one, and all that was done with it since stays as it is.
"""

import json
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from py4j.java_gateway import GatewayClient, JavaObject
from pyspark.sql import DataFrame

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import SqlContext, marked, unmarked
from icefloe.spark.sql.names import Home, Parts, Source
from icefloe.spark.sql.nodes import items, option, rebuilt
from icefloe.table import Table

_MARK = "icefloe view of"
_GLOBAL = "global_temp"
_TAG = "icefloe scan"
_PASSED = "_pyspark_"
"""How the names begin under which PySpark passes frames to a SQL text: those are what they are in Python."""
_MOST_KNOWN = 1000
_WITHOUT_SCANS: MutableMapping[GatewayClient, BoundedCache[tuple[Parts, int], bool]] = WeakKeyDictionary()
"""Views without a scan of ours, with the plans that they had, for each connection to a JVM."""


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view's query, the catalog and namespace of ours that were current, and the temporary views that it may name."""

    query: str
    home: Home | None = None
    temporary: frozenset[str] = frozenset()


def marked_view(text: str, home: Home, temporary: Iterable[str]) -> str:
    """A view's text with where it was written."""
    return marked(text, _MARK, json.dumps([*home, sorted(temporary)]).replace("*/", "*\\/"))


def read_view(text: str) -> ViewText:
    """What `marked_view` wrote."""
    query, mark = unmarked(text, _MARK)
    if mark is None:
        return ViewText(text)
    catalog, namespace, temporary = json.loads(mark)
    return ViewText(query, (catalog, tuple(namespace)), frozenset(temporary))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a frame come from: a table, perhaps on a branch, with some metadata columns, at a snapshot and in a schema."""

    catalog: str
    identifier: Parts
    ref: str | None
    metadata_columns: tuple[str, ...]
    snapshot_id: int | None
    schema_id: int | None

    @classmethod
    def of(cls, source: Source, table: Table, metadata_columns: tuple[str, ...]) -> "Origin":
        """The origin of a frame of the table as it is now."""
        metadata = table.metadata
        ref = metadata.refs.get(source.ref) if source.ref is not None else None
        snapshot_id = metadata.current_snapshot_id if ref is None else ref.snapshot_id
        schema_id = metadata.current_schema_id
        return cls(source.catalog.name, source.identifier, source.ref, metadata_columns, snapshot_id, schema_id)

    def text(self) -> str:
        """It as text."""
        return json.dumps([getattr(self, name) for name in self.__slots__])

    @classmethod
    def read(cls, text: str) -> "Origin":
        """What `text` wrote."""
        catalog, identifier, ref, columns, snapshot_id, schema_id = json.loads(text)
        return cls(catalog, tuple(identifier), ref, tuple(columns), snapshot_id, schema_id)


def with_origin(frame: DataFrame, origin: Origin, gateway: Gateway, java: JavaObject | None) -> DataFrame:
    """The frame, with its origin in its plan; by one call if there are classes of ours in Java."""
    if java is not None:
        java.note(frame._jdf, _tag(gateway), origin.text())
        return frame
    query = frame._jdf.queryExecution()
    for plan in (query.logical(), query.analyzed()):
        plan.setTagValue(_tag(gateway), origin.text())
    return frame


def names_temporary(name: Parts, context: SqlContext) -> bool:
    """Whether a name is that of a temporary view."""
    return context.is_temporary(name) or (len(name) == 2 and name[0].lower() == _GLOBAL)


def refresh_view(name: Parts, context: SqlContext) -> None:
    """Update a temporary view of a frame to the newest snapshots of its tables."""
    gateway = context.gateway
    catalog = context.state.catalog()
    view = None if name[-1].startswith(_PASSED) else option(catalog.getRawLocalOrGlobalTempView(gateway.seq(name)))
    plan = None if view is None else option(view.plan())
    if view is None or plan is None:
        return
    key = (name, int(gateway.jvm.java.lang.System.identityHashCode(plan)))
    plain = _WITHOUT_SCANS.setdefault(gateway.spark._jvm._gateway_client, BoundedCache(_MOST_KNOWN))
    if key in plain:
        return
    tag, texts, changed = _tag(gateway), [], []

    def replace(node: JavaObject) -> JavaObject:
        text = option(node.getTagValue(tag))
        if text is None:
            return node
        texts.append(text)
        scan = _scanned_again(node, Origin.read(text), name, context)
        if scan is None:
            return node
        changed.append(scan)
        return scan

    updated = rebuilt(plan, replace)
    if changed:
        fresh = context.catalyst.catalog.TemporaryViewRelation(
            view.tableMeta(), gateway.jvm.scala.Option.apply(updated)
        )
        database = gateway.jvm.scala.Option.apply(name[0] if len(name) > 1 else None)
        catalog.alterTempViewDefinition(context.catalyst.TableIdentifier(name[-1], database), fresh)
    elif not texts:
        plain.keep(key, True)


def _tag(gateway: Gateway) -> JavaObject:
    return gateway.cached(_TAG, lambda: gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_TAG))


def _scanned_again(node: JavaObject, origin: Origin, view: Parts, context: SqlContext) -> JavaObject | None:
    """The newest rows with the columns of a node; None if the node has the newest rows."""
    catalog = context.names.catalogs.get(origin.catalog)
    if catalog is None:
        return None
    source = Source(catalog, origin.identifier, ref=origin.ref)
    now = Origin.of(source, catalog.load_table(origin.identifier), origin.metadata_columns)
    if now == origin:
        return None
    gateway = context.gateway
    plan = context.read(source, origin.metadata_columns)._jdf.queryExecution().analyzed()
    plan.unsetTagValue(_tag(gateway))
    known = {attribute.name(): attribute for attribute in items(plan.output())}
    columns = [_column(attribute, known, origin, view, gateway) for attribute in items(node.output())]
    project = context.catalyst.plans.logical.Project(gateway.seq(columns), plan)
    project.setTagValue(_tag(gateway), now.text())
    return project


def _column(old: JavaObject, known: dict[str, JavaObject], origin: Origin, view: Parts, gateway: Gateway) -> JavaObject:
    name, old_type = old.name(), old.dataType().catalogString()
    new = known.get(name)
    if new is None or new.dataType().catalogString() != old_type:
        what = "no longer exists" if new is None else f"was {old_type} and is {new.dataType().catalogString()}"
        table = show((origin.catalog, *origin.identifier))
        raise InvalidInputError(
            f"view {'.'.join(view)} was created from table {table}, whose column {name!r} {what}; create the view again"
        )
    column_metadata = gateway.jvm.scala.Option.apply(old.metadata())
    alias = gateway.jvm.org.apache.spark.sql.catalyst.expressions.Alias
    return alias(new, name, old.exprId(), old.qualifier(), column_metadata, gateway.seq(()))
