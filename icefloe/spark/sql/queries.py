"""Queries: each relation that is ours becomes the plan of its lazy scan; everything else stays Spark's."""

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import DataType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, NoSuchTableError
from icefloe.schema import Schema
from icefloe.spark.inner_names import PREFIX
from icefloe.spark.shaping import bare_type
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.current import asks_what_is_current, with_current
from icefloe.spark.sql.functions import names_functions, with_functions
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.nodes import argument, copy, items, kind_of, option, parts, rebuilt, rebuilt_from_above, tuple_of
from icefloe.spark.sql.view_plans import names_temporary, refresh_view
from icefloe.spark.types import mapping_of, of_query, user_schema

_ASIDE = "__icefloe_with"
"""The first part of a name that stands for a query with expressions of its own."""


def resolve(plan: Any, context: SqlContext, hidden: frozenset[str] = frozenset()) -> Any:
    """The plan with our tables in it; `hidden` are names of common table expressions, which come before tables."""
    aside: list[Any] = []
    has_functions, asks = names_functions(context.mentions), asks_what_is_current(context)

    def set_aside(node: Any) -> Any:
        if kind_of(node) != "UnresolvedWith":
            return node
        aside.append(_with(node, context, hidden))
        return _named(f"{len(aside) - 1}", context)

    def put(node: Any) -> Any:
        match kind_of(node):
            case "UnresolvedRelation" if parts(node)[0] == _ASIDE:
                return aside[int(parts(node)[1])]
            case "UnresolvedRelation":
                return _relation(node, context, hidden)
            case "RelationTimeTravel":
                return _time_travel(node, context)
            case _:
                asked = with_current(node, context) if asks else node
                return with_functions(asked, context) if has_functions else asked

    # Names of expressions hold in their own query alone, so that is gone through apart from what is around it.
    return rebuilt(rebuilt_from_above(plan, set_aside), put)


def _named(index: str, context: SqlContext) -> Any:
    jvm = context.gateway.jvm
    options = jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
    name = context.gateway.seq((_ASIDE, index))
    return jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedRelation(name, options, False)


def _with(node: Any, context: SqlContext, hidden: frozenset[str]) -> Any:
    """A query with its common table expressions, which are not children of its node."""
    changed = []
    seen = hidden
    for relation in items(node.cteRelations()):
        name = frozenset((relation.productElement(0).lower(),))
        # An expression sees those before it and around it, and a table of its own name unless it may refer to itself.
        body = resolve(
            relation.productElement(1), context, seen | name if argument(node, "allowRecursion", False) else seen
        )
        values = (relation.productElement(index) for index in range(2, relation.productArity()))
        changed.append(tuple_of(context.gateway, (relation.productElement(0), body, *values)))
        seen |= name
    child = resolve(node.child(), context, seen)
    return copy(context.gateway, node, child=child, cteRelations=context.gateway.seq(changed))


def _relation(node: Any, context: SqlContext, hidden: frozenset[str]) -> Any:
    name = parts(node)
    if len(name) == 1 and name[0].lower() in hidden:
        return node
    if names_temporary(name, context):
        refresh_view(name, context)
        return node
    source = context.names.source(name, default=context.default)
    if source is None:
        return _view(node, name, context)
    return context.relation_plan(_read(source, context), qualifier_of(source, name))


def _read(source: Source, context: SqlContext) -> DataFrame:
    try:
        return context.read(source, context.metadata_columns())
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(f"table {show(source.identifier)}: {error}") from None


def qualifier_of(source: Source, name: tuple[str, ...]) -> tuple[str, ...]:
    """What the columns of a relation may be qualified by: its whole name."""
    if source.is_whole:
        return (source.catalog.name, *source.identifier)
    return (source.catalog.name, *source.identifier, name[-1])


def _view(node: Any, name: tuple[str, ...], context: SqlContext) -> Any:
    """A view of ours becomes the plan of its query, which is read in the view's own catalog and namespace."""
    place = context.names.table(name, default=context.default) if len(name) > 1 or context.names.current else None
    if place is None:
        return node
    if not place.catalog.view_exists(place.parts):
        if name[0] in context.names.catalogs:
            raise NoSuchTableError(f"no table or view {show(place.parts)} in catalog {place.catalog.name!r}")
        return node
    full = (place.catalog.name, *place.parts)
    if full in context.within:
        shown = " -> ".join(show(view) for view in (*context.within[context.within.index(full) :], full))
        raise InvalidInputError(f"view {show(full)} would be part of itself: {shown}")
    view = place.catalog.load_view(place.parts)
    text = view.sql_for("spark")
    if text is None:
        raise InvalidInputError(f"view {'.'.join(name)} has no query in Spark's dialect")
    version = view.version()
    home = (version.default_catalog or place.catalog.name, tuple(version.default_namespace))
    inner = SqlContext(
        context.gateway,
        replace(context.names, current=home if home[0] in context.names.catalogs else None),
        context.read,
        mentions=text,
        temporary=frozenset(),
        within=(*context.within, full),
        session=context.session or context.names,
    )
    plan = resolve(context.gateway.spark._jsparkSession.sessionState().sqlParser().parseQuery(text), inner)
    return context.relation_plan(_as_kept(context.frame_of(plan), view.schema(), full, context), full)


def _as_kept(frame: DataFrame, schema: Schema, view: tuple[str, ...], context: SqlContext) -> DataFrame:
    """The columns that a view was created with, matched by position and cast without loss, whatever its query returns now."""
    wanted = of_query(user_schema(schema, mapping_of(context.gateway.spark))).fields
    given = frame.schema.fields
    if len(given) < len(wanted):
        raise InvalidInputError(
            f"view {show(view)} was created with {len(wanted)} columns and its query now returns {len(given)}; replace the view"
        )
    frame = frame.toDF(*(f"{PREFIX}{index}" for index in range(len(given))))
    columns = []
    for index, (field, now) in enumerate(zip(wanted, given, strict=False)):
        column = functions.col(f"{PREFIX}{index}")
        if bare_type(now.dataType) != bare_type(field.dataType):
            if not _fits(now.dataType, field.dataType, context):
                raise InvalidInputError(
                    f"view {show(view)}: column {field.name!r} was {field.dataType.simpleString()} when the view was created,"
                    f" and its query now returns {now.dataType.simpleString()}, which may not fit; replace the view"
                )
            column = column.cast(field.dataType)
        columns.append(column.alias(field.name, metadata=field.metadata))
    return frame.select(*columns)


def _fits(given: DataType, wanted: DataType, context: SqlContext) -> bool:
    """Whether Spark casts one type into the other where no value may be lost."""
    gateway = context.gateway
    return bool(
        gateway.jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast(gateway.type(given), gateway.type(wanted))
    )


def _time_travel(node: Any, context: SqlContext) -> Any:
    relation = node.relation()
    if kind_of(relation) == "SubqueryAlias":
        # Leaves first: the relation inside became a scan of the present already, and its name is the alias.
        alias = relation.identifier()
        name = (*items(alias.qualifier()), alias.name())
    elif kind_of(relation) == "UnresolvedRelation":
        name = parts(relation)
    else:
        return node
    source = context.names.source(name, default=context.default)
    if source is None:
        return node
    if not (source.ref is None and source.snapshot_id is None and source.as_of is None):
        raise InvalidInputError(
            f"{'.'.join(name)} says already what is read of table {show(source.identifier)}; leave out AS OF, or name the table"
        )
    version, moment = option(node.version()), option(node.timestamp())
    chosen = _at_time(source, moment, context) if version is None else _at_version(source, version)
    return context.relation_plan(_read(chosen, context), (source.catalog.name, *source.identifier))


def _at_version(source: Source, version: str) -> Source:
    table = source.catalog.load_table(source.identifier)
    if version in table.refs():
        return Source(source.catalog, source.identifier, source.metadata_table, ref=version)
    if not version.lstrip("-").isdigit():
        raise NoSuchSnapshotError(
            f"table {'.'.join(source.identifier)} has no branch or tag {version!r}, and it is no snapshot id either"
        )
    return Source(source.catalog, source.identifier, source.metadata_table, snapshot_id=int(version))


def _at_time(source: Source, moment: Any, context: SqlContext) -> Source:
    column = context.gateway.column(moment).cast("timestamp")
    spark = context.gateway.spark
    (row,) = spark.range(1).select(functions.unix_micros(column).alias("micros")).collect()
    if row["micros"] is None:
        raise InvalidInputError(f"TIMESTAMP AS OF {moment.sql()} is no timestamp")
    return Source(source.catalog, source.identifier, source.metadata_table, as_of=row["micros"] // 1000)
