"""Statements about views: their query is kept as a text, with the catalog and namespace that it was written in."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.schema import Schema
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.sql.context import SqlContext, whole_location
from icefloe.spark.sql.names import Place
from icefloe.spark.sql.nodes import (
    copy,
    is_name,
    items,
    kind_of,
    mapping,
    option,
    parts,
    rebuilt,
    rebuilt_expressions,
)
from icefloe.spark.sql.queries import resolve
from icefloe.spark.sql.view_texts import marked_view
from icefloe.spark.types import COMMENT, schema_of_query

_RESERVED = {
    "format-version": "there is one version of the format of views",
    "location": "a view stays where it was created",
    "provider": "views of the catalog are Iceberg views",
    "spark.query-column-names": "Java Iceberg keeps there what its query calls the columns",
}
"""Keys that describe a view without being its properties, and why users cannot set them."""
_OF_VIEWS = ("CreateView", "AlterViewAs", "DropView", "SetViewProperties", "UnsetViewProperties")


def run_views(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement about views; None if it is none, or not about ours."""
    kind = kind_of(node)
    if kind in _OF_VIEWS and kind != "CreateView" and _is_temporary(node.child(), context):
        return None
    match kind:
        case "CreateView":
            return _create(node, context)
        case "AlterViewAs":
            return _alter(node, context)
        case "DropView":
            return _drop(node, context)
        case "SetViewProperties" | "UnsetViewProperties":
            return _properties(node, context)
        case _:
            return None


def _create(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    exists = place.catalog.view_exists(place.parts)
    if node.allowExisting() and (exists or place.catalog.table_exists(place.parts)):
        return context.result()
    text = option(node.originalText())
    if text is None:
        raise InvalidInputError(f"view {'.'.join(place.parts)} has no text to keep")
    frame = _query_frame(node.query(), place, context)
    names = [column.productElement(0) for column in items(node.userSpecifiedColumns())]
    if names:
        if len(names) != len(frame.columns):
            raise InvalidInputError(f"the view names {len(names)} columns, and its query has {len(frame.columns)}")
        frame = frame.toDF(*names)
    docs = [option(column.productElement(1)) for column in items(node.userSpecifiedColumns())]
    properties, settings = _said(mapping(context.gateway, node.properties()), exists, place)
    if (comment := option(node.comment())) is not None:
        properties["comment"] = comment
    schema = _kept_columns(_commented(frame.schema, docs), context)
    make = place.catalog.views.replace if exists and node.replace() else place.catalog.views.create
    make(place.parts, schema, {"spark": text}, properties=properties, **settings, **_home(context))
    return context.result()


def _said(given: dict[str, str], exists: bool, place: Place) -> tuple[dict[str, str], dict[str, str]]:
    """The properties and the location of a new view: Java's SHOW CREATE TABLE writes both as properties."""
    known = {"provider": "iceberg", "format-version": "1"}
    for key, value in known.items():
        if given.get(key, value).lower() != value:
            raise InvalidInputError(f"{key!r}={given[key]!r} is not for views of an Iceberg catalog; leave it out")
    location = given.get("location")
    if exists and location not in (None, place.catalog.load_view(place.parts).location()):
        raise InvalidInputError(f"view {show(place.parts)} stays where it was created, and cannot go to {location!r}")
    properties = {key: value for key, value in given.items() if key not in _RESERVED}
    return properties, {} if exists or location is None else {"location": whole_location(location)}


def _commented(struct: Any, docs: list[str | None]) -> Any:
    """The columns with the comments of the statement; a column without one keeps that of the query."""
    fields = [
        field
        if doc is None
        else StructField(field.name, field.dataType, field.nullable, {**field.metadata, COMMENT: doc})
        for field, doc in zip(struct.fields, docs or [None] * len(struct.fields), strict=True)
    ]
    return StructType(fields)


def _kept_columns(struct: Any, context: SqlContext) -> Schema:
    schema = schema_of_query(struct)
    check_no_twins(schema, context.is_case_sensitive)
    return schema


def _alter(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    frame = _query_frame(node.query(), place, context)
    schema = _kept_columns(frame.schema, context)
    place.catalog.views.replace(place.parts, schema, {"spark": node.originalText()}, **_home(context))
    return context.result()


def _query_frame(query: Any, place: Place, context: SqlContext) -> DataFrame:
    """The rows of a permanent view: all that it names must exist for other sessions, and it cannot be part of itself."""
    name = (place.catalog.name, *place.parts)
    frame = context.frame_of(resolve(query, replace(context, within=(name,))))
    if (temporary := _temporary_parts(query, frame, context)) is not None:
        raise InvalidInputError(
            f"view {show(name)} would exist for all sessions, and {temporary} only exists in this one;"
            " name what is kept in a catalog, or make a temporary view"
        )
    return frame


def _temporary_parts(query: Any, frame: DataFrame, context: SqlContext) -> str | None:
    """The first temporary view, function or variable that a query uses."""
    descriptions: list[str] = []
    catalog = context.gateway.spark._jsparkSession.sessionState().catalog()
    identifier = context.gateway.jvm.org.apache.spark.sql.catalyst.FunctionIdentifier

    def look_at_node(node: Any) -> Any:
        if kind_of(node) == "View" and node.isTempView():
            descriptions.append(f"temporary view {node.desc().identifier().unquotedString()}")
        return rebuilt_expressions(node, look_at_expression)

    def look_at_expression(expression: Any) -> Any:
        if kind_of(expression) == "VariableReference":
            descriptions.append(f"variable {expression.identifier().name()}")
        return expression

    def look_at_call(expression: Any) -> Any:
        name = items(expression.nameParts()) if kind_of(expression) == "UnresolvedFunction" else []
        if len(name) == 1 and catalog.isTemporaryFunction(identifier(name[0])):
            descriptions.append(f"temporary function {name[0]}")
        return expression

    rebuilt(frame._jdf.queryExecution().analyzed(), look_at_node)
    rebuilt(query, lambda node: rebuilt_expressions(node, look_at_call))
    return descriptions[0] if descriptions else None


def _home(context: SqlContext) -> dict[str, Any]:
    home = context.names.home(context.default)
    if home is None:
        return {}
    return {"default_catalog": home[0], **({"default_namespace": home[1]} if home[1] else {})}


def _drop(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    if node.ifExists() and not place.catalog.view_exists(place.parts):
        return context.result()
    place.catalog.drop_view(place.parts)
    return context.result()


def _properties(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    view = place.catalog.load_view(place.parts)
    if kind_of(node) == "SetViewProperties":
        updates = mapping(context.gateway, node.properties())
        _check_not_reserved(updates)
        place.catalog.views.update_properties(place.parts, updates=updates)
        return context.result()
    keys = items(node.propertyKeys())
    _check_not_reserved(keys)
    missing = [key for key in keys if key not in view.properties]
    if missing and not node.ifExists():
        raise InvalidInputError(
            f"view {show(place.parts)} has no property {missing[0]!r}; write UNSET TBLPROPERTIES IF EXISTS"
        )
    place.catalog.views.update_properties(place.parts, removals=[key for key in keys if key not in missing])
    return context.result()


def _check_not_reserved(keys: Iterable[str]) -> None:
    for key in keys:
        if key in _RESERVED:
            raise InvalidInputError(f"{key!r} is no property of a view that could be set or removed: {_RESERVED[key]}")


def run_temp_view(node: Any, context: SqlContext) -> Any | None:
    """The plan of a statement that creates or changes a temporary view, perhaps over tables of ours; None for any other statement.

    Spark runs it, and keeps the text; our tables are in its query for Spark to know the columns.
    """
    match kind_of(node):
        case "CreateViewCommand":
            text = context.gateway.jvm.scala.Option.apply(_marked(option(node.originalText()), node.plan(), context))
            return copy(context.gateway, node, plan=resolve(node.plan(), context), originalText=text)
        case "CacheTableAsSelect":
            text = _marked(node.originalText(), node.plan(), context)
            return copy(context.gateway, node, plan=resolve(node.plan(), context), originalText=text)
        case "AlterViewAs" if _is_temporary(node.child(), context):
            text = _marked(node.originalText(), node.query(), context)
            return copy(context.gateway, node, query=resolve(node.query(), context), originalText=text)
        case _:
            return None


def _marked(text: str, plan: Any, context: SqlContext) -> str:
    home = context.names.home(context.default)
    return text if home is None else marked_view(text, home, _temporary_names(plan, context))


def _temporary_names(plan: Any, context: SqlContext) -> set[str]:
    """The names in a query that are those of temporary views, in lower case."""
    names: set[str] = set()

    def look(node: Any) -> Any:
        if kind_of(node) == "UnresolvedRelation":
            name = parts(node)
            if len(name) == 1 and context.is_temporary(name[0]):
                names.add(name[0].lower())
        elif kind_of(node) == "UnresolvedWith":
            for relation in items(node.cteRelations()):
                names.update(_temporary_names(relation.productElement(1), context))
        return node

    rebuilt(plan, look)
    return names


def _is_temporary(node: Any, context: SqlContext) -> bool:
    return is_name(node) and len(parts(node)) == 1 and context.is_temporary(parts(node)[0])
