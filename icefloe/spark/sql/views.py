"""Statements about views: their query is kept as a text, with the catalog and namespace that it was written in."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.schema import Schema
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.sql import nodes
from icefloe.spark.sql.context import SqlContext, Statement, about, about_target, removed_keys, whole_location
from icefloe.spark.sql.names import ResolvedName
from icefloe.spark.sql.nodes import class_of, items, option, parts
from icefloe.spark.sql.queries import resolve
from icefloe.spark.sql.temporary_views import marked_view
from icefloe.spark.types import COMMENT, schema_of_query

_RESERVED = {
    "format-version": "there is one version of the format of views",
    "location": "a view stays where it was created",
    "provider": "views of the catalog are Iceberg views",
    "spark.query-column-names": "Java Iceberg keeps there what its query calls the columns",
}
"""Keys that describe a view without being its properties, and why users cannot set them."""


def _is_temporary(node: JavaObject, context: SqlContext) -> bool:
    return nodes.is_name(node) and context.is_temporary(parts(node))


_about_view = about(
    lambda node, context: None if _is_temporary(node.child(), context) else context.target(node.child())
)
"""A statement about the view that its child names, unless it is a temporary one."""


@about_target
def _create(node: JavaObject, target: ResolvedName, context: SqlContext) -> None:
    exists = target.view_exists()
    if node.allowExisting() and (exists or target.table_exists()):
        return
    text = option(node.originalText())
    if text is None:
        raise InvalidInputError(f"view {'.'.join(target.parts)} has no text to keep")
    struct, columns = _query_frame(node.query(), target, context).schema, items(node.userSpecifiedColumns())
    if columns and len(columns) != len(struct.fields):
        raise InvalidInputError(f"the view names {len(columns)} columns, and its query has {len(struct.fields)}")
    properties, location = _settings(nodes.mapping(context.gateway, node.properties()), exists, target)
    if (comment := option(node.comment())) is not None:
        properties["comment"] = comment
    schema = _schema(_renamed(struct, columns) if columns else struct, context)
    create = target.catalog.views.replace if exists and node.replace() else target.catalog.views.create
    create(target.parts, schema, {"spark": text}, properties=properties, **location, **_home(context))


def _settings(properties: dict[str, str], exists: bool, target: ResolvedName) -> tuple[dict[str, str], dict[str, str]]:
    """The properties and the location of a new view: Java's SHOW CREATE TABLE writes both as properties."""
    for key, value in {"provider": "iceberg", "format-version": "1"}.items():
        if properties.get(key, value).lower() != value:
            raise InvalidInputError(f"{key!r}={properties[key]!r} is not for views of an Iceberg catalog; leave it out")
    location = properties.get("location")
    if exists and location not in (None, target.load_view().location()):
        raise InvalidInputError(f"view {show(target.parts)} stays where it was created, and cannot go to {location!r}")
    others = {key: value for key, value in properties.items() if key not in _RESERVED}
    return others, {} if exists or location is None else {"location": whole_location(location)}


def _renamed(struct: StructType, columns: Sequence[JavaObject]) -> StructType:
    """The columns with the names and comments of the statement; one without a comment keeps that of the query."""
    names = [(column.productElement(0), option(column.productElement(1))) for column in columns]
    return StructType(
        [
            StructField(name, field.dataType, field.nullable, field.metadata | ({} if doc is None else {COMMENT: doc}))
            for field, (name, doc) in zip(struct.fields, names, strict=True)
        ]
    )


def _schema(struct: StructType, context: SqlContext) -> Schema:
    schema = schema_of_query(struct)
    check_no_twins(schema, context.is_case_sensitive)
    return schema


def _alter(node: JavaObject, context: SqlContext) -> JavaObject | None:
    if _is_temporary(node.child(), context):
        text = _marked(node.originalText(), node.query(), context)
        return nodes.copy(context.gateway, node, query=resolve(node.query(), context), originalText=text)
    return _replace_query(node, context)


@_about_view
def _replace_query(node: JavaObject, target: ResolvedName, context: SqlContext) -> None:
    schema = _schema(_query_frame(node.query(), target, context).schema, context)
    target.catalog.views.replace(target.parts, schema, {"spark": node.originalText()}, **_home(context))


def _query_frame(query: JavaObject, target: ResolvedName, context: SqlContext) -> DataFrame:
    """The rows of a permanent view: all that it names must exist for other sessions, and it cannot be part of itself."""
    frame = context.frame_of(resolve(query, replace(context, within=(target.full,))))
    if (temporary := _temporary_parts(query, frame, context)) is not None:
        raise InvalidInputError(
            f"view {target} would exist for all sessions, and {temporary} only exists in this one;"
            " name what is kept in a catalog, or make a temporary view"
        )
    return frame


def _temporary_parts(query: JavaObject, frame: DataFrame, context: SqlContext) -> str | None:
    """The first temporary view, function or variable that a query uses."""
    descriptions: list[str] = []
    catalog, identifier = context.state.catalog(), context.catalyst.FunctionIdentifier

    def look_at_node(node: JavaObject) -> JavaObject:
        if class_of(node) == "View" and node.isTempView():
            descriptions.append(f"temporary view {node.desc().identifier().unquotedString()}")
        return nodes.rebuilt_expressions(node, look_at_expression)

    def look_at_expression(expression: JavaObject) -> JavaObject:
        if class_of(expression) == "VariableReference":
            descriptions.append(f"variable {expression.identifier().name()}")
        name = items(expression.nameParts()) if class_of(expression) == "UnresolvedFunction" else []
        if len(name) == 1 and catalog.isTemporaryFunction(identifier(name[0])):
            descriptions.append(f"temporary function {name[0]}")
        return expression

    # Views and variables are known once the query is analysed, and functions by their names only before.
    for plan in (frame._jdf.queryExecution().analyzed(), query):
        nodes.rebuilt(plan, look_at_node)
    return descriptions[0] if descriptions else None


def _home(context: SqlContext) -> dict[str, Any]:
    home = context.names.home(context.default)
    if home is None:
        return {}
    return {"default_catalog": home[0], **({"default_namespace": home[1]} if home[1] else {})}


@_about_view
def _drop(node: JavaObject, target: ResolvedName, _: SqlContext) -> None:
    if target.view_exists() or not node.ifExists():
        target.catalog.drop_view(target.parts)


@_about_view
def _set_properties(node: JavaObject, target: ResolvedName, context: SqlContext) -> None:
    properties, views = target.load_view().properties, target.catalog.views
    if class_of(node) == "SetViewProperties":
        updates = nodes.mapping(context.gateway, node.properties())
        _check_not_reserved(updates)
        views.update_properties(target.parts, updates=updates)
    else:
        _check_not_reserved(items(node.propertyKeys()))
        views.update_properties(target.parts, removals=removed_keys(node, properties, f"view {show(target.parts)}"))


def _check_not_reserved(keys: Iterable[str]) -> None:
    for key in keys:
        if key in _RESERVED:
            raise InvalidInputError(f"{key!r} is not a view property that can be set or removed: {_RESERVED[key]}")


def _create_temporary(node: JavaObject, context: SqlContext) -> JavaObject:
    """The plan of a statement that creates a temporary view, perhaps over tables of ours.

    Spark runs it, and keeps the text; our tables are in its query for Spark to know the columns.
    """
    text: Any
    if class_of(node) == "CreateViewCommand":
        text = context.gateway.jvm.scala.Option.apply(_marked(option(node.originalText()), node.plan(), context))
    else:
        text = _marked(node.originalText(), node.plan(), context)
    return nodes.copy(context.gateway, node, plan=resolve(node.plan(), context), originalText=text)


def _marked(text: str, plan: JavaObject, context: SqlContext) -> str:
    home = context.names.home(context.default)
    return text if home is None else marked_view(text, home, _temporary_names(plan, context))


def _temporary_names(plan: JavaObject, context: SqlContext) -> set[str]:
    """The names in a query that are those of temporary views, in lower case."""
    names: set[str] = set()

    def look(node: JavaObject) -> JavaObject:
        if class_of(node) == "UnresolvedRelation" and _is_temporary(node, context):
            names.add(parts(node)[0].lower())
        elif class_of(node) == "UnresolvedWith":
            for relation in items(node.cteRelations()):
                names.update(_temporary_names(relation.productElement(1), context))
        return node

    nodes.rebuilt(plan, look)
    return names


STATEMENTS: dict[str, Statement] = {
    "CreateView": _create,
    "AlterViewAs": _alter,
    "DropView": _drop,
    "SetViewProperties": _set_properties,
    "UnsetViewProperties": _set_properties,
}
TEMPORARY: dict[str, Statement] = dict.fromkeys(("CreateViewCommand", "CacheTableAsSelect"), _create_temporary)
"""Statements that create temporary views."""
