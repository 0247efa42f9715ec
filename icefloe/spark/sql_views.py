"""Statements about views: their query is kept as a text, with the catalog and namespace that it was written in."""

from typing import Any

from pyspark.sql.types import StructField, StructType

from icefloe.errors import InvalidInputError
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.sql_context import SqlContext
from icefloe.spark.sql_nodes import items, kind_of, mapping, option
from icefloe.spark.sql_queries import mentions_ours, resolve
from icefloe.spark.types import COMMENT, schema_from_spark


def run_views(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement about views; None if it is none, or not about ours."""
    match kind_of(node):
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
    if exists and node.allowExisting():
        return context.result()
    text = option(node.originalText())
    if text is None:
        raise InvalidInputError(f"view {'.'.join(place.parts)} has no text to keep")
    frame = context.frame_of(resolve(node.query(), context))
    names = [each.productElement(0) for each in items(node.userSpecifiedColumns())]
    if names:
        if len(names) != len(frame.columns):
            raise InvalidInputError(f"the view names {len(names)} columns, and its query has {len(frame.columns)}")
        frame = frame.toDF(*names)
    docs = [option(each.productElement(1)) for each in items(node.userSpecifiedColumns())]
    properties = mapping(context.gateway, node.properties())
    if (comment := option(node.comment())) is not None:
        properties["comment"] = comment
    schema = schema_from_spark(_commented(frame.schema, docs))
    check_no_twins(schema, context.is_case_sensitive)
    make = place.catalog.replace_view if exists and node.replace() else place.catalog.create_view
    make(
        place.parts,
        schema,
        {"spark": text},
        properties=properties,
        **_home(context),
    )
    return context.result()


def _commented(struct: Any, docs: list[str | None]) -> Any:
    """The columns with what the statement says of them; a column without a word keeps what its query brings."""
    fields = [
        field
        if doc is None
        else StructField(field.name, field.dataType, field.nullable, {**field.metadata, COMMENT: doc})
        for field, doc in zip(struct.fields, docs or [None] * len(struct.fields), strict=True)
    ]
    return StructType(fields)


def _alter(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    frame = context.frame_of(resolve(node.query(), context))
    place.catalog.replace_view(
        place.parts, schema_from_spark(frame.schema), {"spark": node.originalText()}, **_home(context)
    )
    return context.result()


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
    if kind_of(node) == "SetViewProperties":
        place.catalog.update_view_properties(place.parts, updates=mapping(context.gateway, node.properties()))
    else:
        place.catalog.update_view_properties(place.parts, removals=items(node.propertyKeys()))
    return context.result()


def run_temp_view(node: Any, context: SqlContext) -> Any | None:
    """A temporary view over tables of ours keeps the plan: Spark would parse its text again, without us."""
    if kind_of(node) != "CreateViewCommand" or not mentions_ours(node.plan(), context):
        return None
    if kind_of(node.viewType()).startswith("Persisted"):
        raise InvalidInputError("a view of Spark's own catalog cannot be over tables of ours; create it in our catalog")
    frame = context.frame_of(resolve(node.plan(), context))
    names = [each.productElement(0) for each in items(node.userSpecifiedColumns())]
    frame = frame.toDF(*names) if names else frame
    name, is_global = node.name().table(), kind_of(node.viewType()).startswith("Global")
    match is_global, node.replace():
        case True, True:
            frame.createOrReplaceGlobalTempView(name)
        case True, False:
            frame.createGlobalTempView(name)
        case False, True:
            frame.createOrReplaceTempView(name)
        case _:
            frame.createTempView(name)
    return context.result()
