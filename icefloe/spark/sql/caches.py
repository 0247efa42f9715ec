"""Cached tables and views: what is cached under a name is the newest snapshot, and is uncached by that name.

Spark finds cached rows by the plan of a query, and a scan of another snapshot is another plan. So old rows are never shown
for new ones; but after a change the cache would neither be used nor be known by its name again.
"""

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from icefloe.errors import IcefloeError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import SqlContext, Statement
from icefloe.spark.sql.names import Parts, ResolvedName, quoted
from icefloe.spark.sql.nodes import copy, is_name, items, option, parts
from icefloe.spark.sql.queries import resolve


def _cache(node: JavaObject, context: SqlContext) -> JavaObject | None:
    target = _target(node.table(), context)
    if target is None:
        return None
    full = context.gateway.seq(target.full)
    return copy(context.gateway, node, table=resolve(node.table(), context), multipartIdentifier=full)


def _uncache(node: JavaObject, context: SqlContext) -> JavaObject | None:
    target = _target(node.table(), context)
    if target is None:
        if is_name(node.table()):
            uncache(parts(node.table()), context.gateway)
        return None
    if uncache(target.full, context.gateway) or (node.ifExists() and not target.exists()):
        return context.result()
    # It may be held under another name of the same rows.
    return copy(context.gateway, node, table=resolve(node.table(), context))


def _refresh_table(node: JavaObject, context: SqlContext) -> JavaObject | None:
    target = _target(node.child(), context)
    if target is None:
        return None
    if not target.exists():
        target.load_table()
    refresh_caches(context)
    return context.result()


STATEMENTS: dict[str, Statement] = {"CacheTable": _cache, "UncacheTable": _uncache, "RefreshTable": _refresh_table}


def refresh_caches(context: SqlContext) -> None:
    """Replace outdated cached rows of our tables, and of temporary views, by the newest ones, which are cached at their next use."""
    for name, entry in _cached(context.gateway):
        is_ours = name[0] in context.names.catalogs
        if is_ours or (len(name) < 3 and context.state.catalog().isTempView(context.gateway.seq(name))):
            _refresh(name, entry, context)


def cache(frame: DataFrame, name: Parts, level: JavaObject, gateway: Gateway) -> None:
    """Cache the rows of a table or view under its name; they are read at their first use."""
    _manager(gateway).cacheQuery(frame._jdf, gateway.jvm.scala.Option.apply(quoted(name)), level)


def uncache(name: Parts, gateway: Gateway) -> bool:
    """Uncache whatever is cached under a name, and return whether there was anything."""
    entries = [entry for held_name, entry in _cached(gateway) if held_name == name]
    for entry in entries:
        _manager(gateway).uncacheQuery(gateway.spark._jsparkSession, entry.plan(), False)
    return bool(entries)


def is_cached(frame: DataFrame, gateway: Gateway) -> bool:
    """Whether the rows of a table or view are cached, under any name."""
    return option(_manager(gateway).lookupCachedData(frame._jdf)) is not None


def _refresh(name: Parts, entry: JavaObject, context: SqlContext) -> None:
    try:
        frame = context.frame_of(context.state.sqlParser().parsePlan(f"TABLE {quoted(name)}"))
    except (IcefloeError, PySparkException, Py4JError):
        # The table was dropped or no longer fits the view; whoever reads the view gets the error.
        frame = None
    if frame is None or not is_cached(frame, context.gateway):
        level = entry.cachedRepresentation().cacheBuilder().storageLevel()
        _manager(context.gateway).uncacheQuery(context.spark._jsparkSession, entry.plan(), False)
        if frame is not None:
            cache(frame, name, level, context.gateway)


def _cached(gateway: Gateway) -> list[tuple[Parts, JavaObject]]:
    """The entries that Spark has cached under the names of tables and views."""
    manager = _manager(gateway)
    if manager.isEmpty():
        return []
    field = gateway.load_class("org.apache.spark.sql.execution.CacheManager").getDeclaredField("cachedData")
    field.setAccessible(True)
    parser = gateway.spark._jsparkSession.sessionState().sqlParser()
    entries = [
        (option(entry.cachedRepresentation().cacheBuilder().tableName()), entry) for entry in items(field.get(manager))
    ]
    return [(tuple(items(parser.parseMultipartIdentifier(name))), entry) for name, entry in entries if name is not None]


def _manager(gateway: Gateway) -> JavaObject:
    return gateway.spark._jsparkSession.sharedState().cacheManager()


def _target(node: JavaObject, context: SqlContext) -> ResolvedName | None:
    """The name of a table or view of ours, whether it exists or not; None if it is Spark's."""
    target = context.target(node)
    if target is None or context.is_temporary(parts(node)):
        return None
    return target if parts(node)[0] in context.names.catalogs or target.exists() else None
