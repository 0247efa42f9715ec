"""Cached tables and views: what is cached under a name is the newest snapshot, and is uncached by that name.

Spark finds cached rows by the plan of a query, and a scan of another snapshot is another plan. So old rows are never shown
for new ones; but after a change the cache would neither be used nor be known by its name again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from icefloe.errors import IcefloeError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.names import Place
from icefloe.spark.sql.nodes import copy, is_name, items, kind_of, option, parts
from icefloe.spark.sql.queries import resolve
from icefloe.spark.user_side import quoted_name

_FIELD = "cachedData"


@dataclass(frozen=True)
class Held:
    """What Spark has cached under the name of a table or view."""

    name: tuple[str, ...]
    entry: Any

    @property
    def plan(self) -> Any:
        """The plan that Spark looks it up by."""
        return self.entry.plan()

    @property
    def storage_level(self) -> Any:
        """The storage level of the cached rows."""
        return self.entry.cachedRepresentation().cacheBuilder().storageLevel()


def run_caches(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement that caches or uncaches our tables and views; None for any other statement."""
    match kind_of(node):
        case "CacheTable":
            place = _place(node.table(), context)
            if place is None:
                return None
            full = context.gateway.seq((place.catalog.name, *place.parts))
            return copy(context.gateway, node, table=resolve(node.table(), context), multipartIdentifier=full)
        case "UncacheTable":
            return _uncache(node, context)
        case "RefreshTable":
            place = _place(node.child(), context)
            if place is None:
                return None
            if not _exists(place):
                place.catalog.load_table(place.parts)
            refresh_caches(context)
            return context.result()
        case _:
            return None


def refresh_caches(context: SqlContext) -> None:
    """Replace outdated cached rows of our tables, and of views, by the newest ones, which are cached at their next use."""
    gateway = context.gateway
    if _manager(gateway).isEmpty():
        return
    for held in list(_held(gateway)):
        if held.name[0] in context.names.catalogs or _is_view(held.name, gateway):
            _refresh(held, context)


def cache(frame: DataFrame, name: tuple[str, ...], level: Any, gateway: Gateway) -> None:
    """Cache the rows of a table or view under its name; they are read at their first use."""
    _manager(gateway).cacheQuery(frame._jdf, gateway.jvm.scala.Option.apply(_quoted(name)), level)


def uncache(name: tuple[str, ...], gateway: Gateway) -> bool:
    """Uncache whatever is cached under a name, and return whether there was anything."""
    matches = [held for held in _held(gateway) if held.name == name]
    for held in matches:
        _manager(gateway).uncacheQuery(gateway.spark._jsparkSession, held.plan, False)
    return bool(matches)


def is_cached(frame: DataFrame, gateway: Gateway) -> bool:
    """Whether the rows of a table or view are cached, under any name."""
    return option(_manager(gateway).lookupCachedData(frame._jdf)) is not None


def _uncache(node: Any, context: SqlContext) -> Any | None:
    place = _place(node.table(), context)
    if place is None:
        if is_name(node.table()):
            uncache(parts(node.table()), context.gateway)
        return None
    name = (place.catalog.name, *place.parts)
    if uncache(name, context.gateway) or (node.ifExists() and not _exists(place)):
        return context.result()
    # It may be held under another name of the same rows.
    return copy(context.gateway, node, table=resolve(node.table(), context))


def _refresh(held: Held, context: SqlContext) -> None:
    gateway = context.gateway
    manager, session = _manager(gateway), gateway.spark._jsparkSession
    try:
        query = session.sessionState().sqlParser().parsePlan(f"TABLE {_quoted(held.name)}")
        frame = context.frame_of(query)
    except (IcefloeError, PySparkException, Py4JError):
        # The table is gone or no longer fits the view; whoever reads the view gets the error.
        manager.uncacheQuery(session, held.plan, False)
        return
    if not is_cached(frame, gateway):
        level = held.storage_level
        manager.uncacheQuery(session, held.plan, False)
        cache(frame, held.name, level, gateway)


def _quoted(name: tuple[str, ...]) -> str:
    return ".".join(map(quoted_name, name))


def _held(gateway: Gateway) -> Iterator[Held]:
    manager = _manager(gateway)
    if manager.isEmpty():
        return
    field = gateway.load_class("org.apache.spark.sql.execution.CacheManager").getDeclaredField(_FIELD)
    field.setAccessible(True)
    parser = gateway.spark._jsparkSession.sessionState().sqlParser()
    for entry in items(field.get(manager)):
        name = option(entry.cachedRepresentation().cacheBuilder().tableName())
        if name is not None:
            yield Held(tuple(items(parser.parseMultipartIdentifier(name))), entry)


def _manager(gateway: Gateway) -> Any:
    return gateway.spark._jsparkSession.sharedState().cacheManager()


def _is_view(name: tuple[str, ...], gateway: Gateway) -> bool:
    """Whether it is a temporary view."""
    catalog = gateway.spark._jsparkSession.sessionState().catalog()
    return len(name) < 3 and bool(catalog.isTempView(gateway.seq(name)))


def _place(node: Any, context: SqlContext) -> Place | None:
    """The place of a table or view of ours, whether it exists or not; None if it is Spark's."""
    place = context.table_place(node)
    name = parts(node) if place is not None else ()
    if place is None or (len(name) == 1 and context.is_temporary(name[0])):
        return None
    return place if name[0] in context.names.catalogs or _exists(place) else None


def _exists(place: Place) -> bool:
    return bool(place.catalog.table_exists(place.parts) or place.catalog.view_exists(place.parts))
