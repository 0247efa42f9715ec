"""Queries: each relation that is ours becomes the plan of its lazy scan; everything else stays Spark's.

Before that, `IDENTIFIER(...)` is replaced by the name that its expression yields.
"""

import re
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, functions

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, NoSuchTableError
from icefloe.schema import Schema
from icefloe.spark.inner_names import PREFIX
from icefloe.spark.shaping import bare_type
from icefloe.spark.sql import nodes, options, streams
from icefloe.spark.sql.calls import value_of
from icefloe.spark.sql.context import SqlContext, constant
from icefloe.spark.sql.functions import rewriter
from icefloe.spark.sql.names import Parts, ResolvedName, Source
from icefloe.spark.sql.nodes import class_of, items, option, parts
from icefloe.spark.sql.temporary_views import names_temporary, refresh_view
from icefloe.spark.types import mapping_of, of_query, user_schema

_MENTIONS_IDENTIFIER = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)
_MENTIONS_WITH = re.compile(r"\bwith\b", re.IGNORECASE)
_IDENTIFIER = "PlanWithUnresolvedIdentifier"
_ASIDE = "__icefloe_with"
"""The first part of a name that stands for a query with expressions of its own."""
_REPLACED = ("UnresolvedRelation", "RelationTimeTravel", "RelationChanges", streams.UNDER_A_NAME)
"""The nodes of a query that may be about something of ours, besides functions."""


def resolve(plan: JavaObject, context: SqlContext, hidden: frozenset[str] = frozenset()) -> JavaObject:
    """The plan with our tables in it; `hidden` are names of common table expressions, which come before tables."""
    aside: list[JavaObject] = []
    with_functions = rewriter(context)

    def set_aside(node: JavaObject) -> JavaObject:
        if class_of(node) != "UnresolvedWith":
            return node
        aside.append(_with(node, context, hidden))
        name = context.gateway.seq((_ASIDE, f"{len(aside) - 1}"))
        none = context.gateway.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
        return context.catalyst.analysis.UnresolvedRelation(name, none, False)

    def put(node: JavaObject) -> JavaObject:
        described = nodes.described(node, context.java)
        match described.node_class:
            case "UnresolvedRelation" if described.name[0] == _ASIDE:
                return aside[int(described.name[1])]
            case "UnresolvedRelation":
                return _relation(node, described, context, hidden)
            case "RelationTimeTravel":
                return _time_travel(node, context)
            case "RelationChanges":
                return _changes(node, context)
            case streams.UNDER_A_NAME if class_of(node.child()) == "SubqueryAlias":
                # Spark names its own sources only.
                return node.child()
            case _:
                return node if with_functions is None else with_functions(node)

    # Names of expressions hold in their own query alone, so that is gone through apart from what is around it.
    has_expressions = not context.mentions or _MENTIONS_WITH.search(context.mentions) is not None
    plan = nodes.rebuilt_from_above(plan, set_aside) if has_expressions else plan
    if context.java is None or with_functions is not None:
        return nodes.rebuilt(plan, put)
    return nodes.rebuilt_of(_REPLACED, plan, put, context.java)


def _with(node: JavaObject, context: SqlContext, hidden: frozenset[str]) -> JavaObject:
    """A query with its common table expressions, which are not children of its node."""
    changed = []
    seen = hidden
    for relation in items(node.cteRelations()):
        name = frozenset((relation.productElement(0).lower(),))
        # An expression sees those before it and around it, and a table of its own name unless it may refer to itself.
        known = seen | name if nodes.argument(node, "allowRecursion", False) else seen
        changed.append(_cte(relation, resolve(relation.productElement(1), context, known), context))
        seen |= name
    child = resolve(node.child(), context, seen)
    return nodes.copy(context.gateway, node, child=child, cteRelations=context.gateway.seq(changed))


def _cte(relation: JavaObject, body: JavaObject, context: SqlContext) -> JavaObject:
    """A common table expression with another query."""
    name, _, *others = nodes.arguments(relation).values()
    scala = context.gateway.jvm.scala
    return (scala.Tuple3 if others else scala.Tuple2)(name, body, *others)


def _relation(
    node: JavaObject, described: nodes.Description, context: SqlContext, hidden: frozenset[str]
) -> JavaObject:
    name, given = described.name, described.options
    if len(name) == 1 and name[0].lower() in hidden:
        return node
    if names_temporary(name, context):
        refresh_view(name, context)
        return node
    source = context.source(name)
    if source is not None and described.is_stream:
        return context.relation_plan(streams.streamed(given, source, context), qualifier_of(source, name))
    if source is not None:
        between = options.appended_between(source, given, context.spark) if given else None
        frame = _read(options.chosen(source, given, context.spark), context) if between is None else between
        return context.relation_plan(frame, qualifier_of(source, name))
    changed = None if described.is_stream else options.table_of_changes(name, context.names, context.default)
    if changed is None:
        return _view(node, name, context)
    frame = options.changes_between(changed, given, context.spark)
    return context.relation_plan(frame, (changed.catalog.name, *changed.identifier, name[-1]))


def _read(source: Source, context: SqlContext) -> DataFrame:
    try:
        return context.read(source, context.metadata_columns())
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(f"table {show(source.identifier)}: {error}") from None


def qualifier_of(source: Source, name: Parts) -> Parts:
    """What the columns of a relation may be qualified by: its whole name."""
    return (source.catalog.name, *source.identifier, *(() if source.is_whole else name[-1:]))


def _view(node: JavaObject, name: Parts, context: SqlContext) -> JavaObject:
    """A view of ours becomes the plan of its query, which is read in the view's own catalog and namespace."""
    target = context.table(name) if len(name) > 1 or context.names.current else None
    if target is None:
        return node
    if not target.view_exists():
        if name[0] in context.names.catalogs:
            raise NoSuchTableError(f"no table or view {show(target.parts)} in catalog {target.catalog.name!r}")
        return node
    if target.full in context.within:
        shown = " -> ".join(show(view) for view in (*context.within[context.within.index(target.full) :], target.full))
        raise InvalidInputError(f"view {target} would be part of itself: {shown}")
    view = target.load_view()
    text = view.sql_for("spark")
    if text is None:
        raise InvalidInputError(f"view {'.'.join(name)} has no query in Spark's dialect")
    version = view.version()
    home = (version.default_catalog or target.catalog.name, tuple(version.default_namespace))
    inner = SqlContext(
        context.gateway,
        replace(context.names, current=home if home[0] in context.names.catalogs else None),
        context.read,
        mentions=text,
        temporary=frozenset(),
        within=(*context.within, target.full),
        java=context.java,
        session=context.session or context.names,
    )
    plan = resolve(context.state.sqlParser().parseQuery(text), inner)
    return context.relation_plan(_as_created(context.frame_of(plan), view.schema(), target, context), target.full)


def _as_created(frame: DataFrame, schema: Schema, view: ResolvedName, context: SqlContext) -> DataFrame:
    """The columns that a view was created with, matched by position and cast without loss, whatever its query returns now."""
    fields = of_query(user_schema(schema, mapping_of(context.spark))).fields
    now_fields = frame.schema.fields
    if len(now_fields) < len(fields):
        raise InvalidInputError(
            f"view {view} was created with {len(fields)} columns and its query now returns {len(now_fields)}; replace the view"
        )
    frame = frame.toDF(*(f"{PREFIX}{index}" for index in range(len(now_fields))))
    columns = []
    for index, (field, now) in enumerate(zip(fields, now_fields, strict=False)):
        column = functions.col(f"{PREFIX}{index}")
        if bare_type(now.dataType) != bare_type(field.dataType):
            if not context.catalyst.expressions.Cast.canUpCast(
                *map(context.gateway.type, (now.dataType, field.dataType))
            ):
                raise InvalidInputError(
                    f"view {view}: column {field.name!r} was {field.dataType.simpleString()} when the view was created,"
                    f" and its query now returns {now.dataType.simpleString()}, which may not fit; replace the view"
                )
            column = column.cast(field.dataType)
        columns.append(column.alias(field.name, metadata=field.metadata))
    return frame.select(*columns)


def _time_travel(node: JavaObject, context: SqlContext) -> JavaObject:
    relation = node.relation()
    # Leaves first: the relation inside may have become a scan of the present already, and its name is the alias.
    name = parts(relation) if class_of(relation) == "UnresolvedRelation" else nodes.alias_of(relation)
    source = None if name is None else context.source(name)
    if name is None or source is None:
        return node
    if not source.is_newest:
        raise InvalidInputError(
            f"{'.'.join(name)} says already what is read of table {show(source.identifier)}; leave out AS OF, or name the table"
        )
    version, moment = option(node.version()), option(node.timestamp())
    chosen = _at_time(source, moment, context) if version is None else _at_version(source, version)
    return context.relation_plan(_read(chosen, context), (source.catalog.name, *source.identifier))


def _changes(node: JavaObject, context: SqlContext) -> JavaObject:
    """Spark's CHANGES, which is for catalogs of the JVM."""
    relation = node.relation()
    source = context.source(parts(relation)) if class_of(relation) == "UnresolvedRelation" else None
    if source is None:
        return node
    raise options.no_clause_for_changes(ResolvedName(source.catalog, source.identifier))


def _at_version(source: Source, version: str) -> Source:
    if version in source.load_table().refs():
        return replace(source, ref=version)
    if not version.lstrip("-").isdigit():
        raise NoSuchSnapshotError(f"table {'.'.join(source.identifier)} has no branch, tag or snapshot id {version!r}")
    return replace(source, snapshot_id=int(version))


def _at_time(source: Source, moment: JavaObject, context: SqlContext) -> Source:
    micros = constant(functions.unix_micros(context.gateway.column(moment).cast("timestamp")), context.spark)
    if micros is None:
        raise InvalidInputError(f"TIMESTAMP AS OF {moment.sql()} is not a valid timestamp")
    return replace(source, as_of=micros // 1000)


def with_identifiers(plan: JavaObject, context: SqlContext) -> JavaObject:
    """The plan of a statement with plain names of tables and namespaces in it; those of columns are left to Spark."""
    return _with_names(plan, context) if _MENTIONS_IDENTIFIER.search(context.mentions) else plan


def _with_names(plan: JavaObject, context: SqlContext) -> JavaObject:
    def named(node: JavaObject) -> JavaObject:
        match class_of(node):
            case name if name == _IDENTIFIER:
                return _named_plan(node, context)
            case "InsertIntoStatement" | "OverwriteByExpression" if class_of(node.table()) == _IDENTIFIER:
                # The table that rows go into is no child of the node.
                return nodes.copy(context.gateway, node, table=_named_plan(node.table(), context))
            case "UnresolvedInsert" if class_of(node.table()) == _IDENTIFIER:
                return _insertion(node, context)
            case "UnresolvedWith":
                # Nor are these.
                relations = [
                    _cte(relation, _with_names(relation.productElement(1), context), context)
                    for relation in items(node.cteRelations())
                ]
                return nodes.copy(context.gateway, node, cteRelations=context.gateway.seq(relations))
            case _:
                return node

    return nodes.rebuilt_from_above(plan, named)


def _insertion(node: JavaObject, context: SqlContext) -> JavaObject:
    """From Spark 4.3 on, an INSERT into what a clause names is a node of its own until the name is known."""
    target = _named_plan(node.table(), context)
    name = target.multipartIdentifier()
    if context.table(tuple(items(name))) is None:
        return nodes.copy(context.gateway, node, table=target)
    return node.toInsertIntoStatement(context.catalyst.analysis.UnresolvedRelation(name, target.options(), False))


def _named_plan(node: JavaObject, context: SqlContext) -> JavaObject:
    expression = node.identifierExpr()
    name = value_of(expression, context)
    if not isinstance(name, str):
        raise InvalidInputError(f"IDENTIFIER({expression.sql()}) is {name!r}; it must be a text that names something")
    built = node.planBuilder().apply(context.state.sqlParser().parseMultipartIdentifier(name), node.children())
    # One may be inside another: the query of CREATE TABLE AS SELECT.
    return _with_names(built, context)
