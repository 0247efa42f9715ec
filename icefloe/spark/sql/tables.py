"""Statements that create, replace, drop and rename tables, or change a table as a whole."""

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, types as spark_types

from icefloe import properties as props
from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.partitioning import parse_term
from icefloe.schema import Schema
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.sql.context import SqlContext, full_name, whole_location
from icefloe.spark.sql.names import Place
from icefloe.spark.sql.nodes import default_text, items, kind_of, mapping, option, parts, spark_type
from icefloe.spark.sql.queries import resolve
from icefloe.spark.types import COMMENT, CURRENT_DEFAULT, EXISTS_DEFAULT, schema_from_spark, schema_of_query
from icefloe.table import Table

_FORMATS = ("parquet", "orc", "avro")
_OWN = "iceberg"


@dataclass(frozen=True)
class Definition:
    """The definition of a new table in a statement."""

    location: str | None
    partitioning: tuple[str, ...]
    properties: dict[str, str]


def run_tables(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement about whole tables; None if it is none, or not about ours."""
    match kind_of(node):
        case "CreateTable" | "ReplaceTable" | "CreateTableAsSelect" | "ReplaceTableAsSelect":
            return _create(node, context)
        case "CreateTableLike":
            return _create_like(node, context)
        case "CreateTableLikeCommand":
            return _create_like_on_old_spark(node, context)
        case "DropTable":
            return _drop(node, context)
        case "RenameTable":
            return _rename(node, context)
        case "SetTableProperties" | "UnsetTableProperties" | "SetTableLocation" | "CommentOnTable":
            return _set(node, context)
        case _:
            return None


def _create(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.name())
    if place is None:
        return None
    kind = kind_of(node)
    definition = _definition(node, context)
    if kind.startswith("Create"):
        if node.ignoreIfExists() and (
            place.catalog.table_exists(place.parts) or place.catalog.view_exists(place.parts)
        ):
            return context.result()
        action = "create"
    else:
        action = "create_or_replace" if node.orCreate() else "replace"
    if kind.endswith("AsSelect"):
        frame = context.frame_of(resolve(node.query(), context))
        schema = schema_of_query(frame.schema)
        _create_with_rows(place, frame, schema, action, _with_exact_names(definition, schema, context))
    else:
        schema = _schema(node)
        _create_empty(place, schema, action, _with_exact_names(definition, schema, context))
    return context.result()


def _with_exact_names(definition: Definition, schema: Schema, context: SqlContext) -> Definition:
    """The definition, with its partition columns in the case that they have in the schema."""
    sensitive = context.is_case_sensitive
    check_no_twins(schema, sensitive)
    if sensitive:
        return definition
    return replace(definition, partitioning=tuple(_exact_term(term, schema) for term in definition.partitioning))


def _exact_term(text: str, schema: Schema) -> str:
    term = parse_term(text)
    name = schema.names_by_id[schema.find_field(term.column, case_sensitive=False).field_id]
    return text if name == term.column else str(replace(term, column=name))


def _create_empty(place: Place, schema: Schema, action: str, definition: Definition) -> None:
    catalog, given = place.catalog, (definition.location, list(definition.partitioning), None, definition.properties)
    match action:
        case "create":
            catalog.create_table(place.parts, schema, *given)
        case "replace":
            catalog.replace_table(place.parts, schema, *given)
        case _:
            catalog.create_or_replace_table(place.parts, schema, *given)


def _create_with_rows(place: Place, frame: DataFrame, schema: Schema, action: str, definition: Definition) -> None:
    catalog = place.catalog
    given = (definition.location, list(definition.partitioning), None, definition.properties)
    match action:
        case "create":
            with catalog.create_table_transaction(place.parts, schema, *given) as tx:
                tx.append(frame)
        case "replace":
            with catalog.replace_table_transaction(place.parts, schema, *given) as tx:
                tx.rows().fill(frame)
        case _:
            with catalog.create_or_replace_table_transaction(place.parts, schema, *given) as tx:
                tx.rows().fill(frame)


def _definition(node: Any, context: SqlContext) -> Definition:
    spec = node.tableSpec()
    properties = {str(key): str(value) for key, value in mapping(context.gateway, spec.properties()).items()}
    provider = (option(spec.provider()) or _OWN).lower()
    if provider in _FORMATS:
        properties.setdefault(props.WRITE_FORMAT.key, provider)
    elif provider != _OWN:
        raise InvalidInputError(
            f"USING {provider} makes no Iceberg table; write USING iceberg, or one of {', '.join(_FORMATS)}"
        )
    comment = option(spec.comment())
    if comment is not None:
        properties["comment"] = comment
    for entry in items(spec.optionExpression().options()):
        properties[f"option.{entry.productElement(0)}"] = str(entry.productElement(1).value())
    partitioning = tuple(transform.toString() for transform in items(node.partitioning()))
    return Definition(_location(option(spec.location())), partitioning, properties)


def _location(text: str | None) -> str | None:
    return None if text is None else whole_location(text)


def _schema(node: Any) -> Schema:
    fields = []
    for column in items(node.columns()):
        metadata = {}
        comment, default = option(column.comment()), option(column.defaultValue())
        if comment is not None:
            metadata[COMMENT] = comment
        if default is not None:
            metadata |= {CURRENT_DEFAULT: default_text(default), EXISTS_DEFAULT: default_text(default)}
        if option(column.generationExpression()) is not None:
            raise InvalidInputError(f"column {column.name()!r} is generated, which Iceberg tables do not have")
        fields.append(
            spark_types.StructField(column.name(), spark_type(column.dataType()), column.nullable(), metadata)
        )
    return schema_from_spark(spark_types.StructType(fields))


def _create_like(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.name())
    if place is None:
        return None
    source = context.existing(node.source())
    if source is None:
        raise _nothing_to_be_like(parts(node.source()))
    return _create_copy(place, source, node, option(node.location()), context)


def _create_like_on_old_spark(node: Any, context: SqlContext) -> Any | None:
    """Before Spark 4.2, names have no catalog here: both are in the current one."""
    target, origin = (
        (*filter(None, [option(identifier.database())]), identifier.table())
        for identifier in (node.targetTable(), node.sourceTable())
    )
    place = context.names.table(target, default=context.default)
    if place is None:
        return None
    source = context.names.table(origin, default=context.default)
    if source is None or not source.catalog.table_exists(source.parts):
        raise _nothing_to_be_like(origin)
    location = option(node.fileFormat().locationUri())
    there = None if location is None else str(location.toString())
    return _create_copy(place, source.catalog.load_table(source.parts), node, there, context)


def _nothing_to_be_like(name: tuple[str, ...]) -> NoSuchTableError:
    return NoSuchTableError(f"no table {'.'.join(name)} in a catalog of icefloe to be like")


def _create_copy(place: Place, source: Table, node: Any, location: str | None, context: SqlContext) -> Any:
    if node.ifNotExists() and place.catalog.table_exists(place.parts):
        return context.result()
    properties = {**source.properties, **mapping(context.gateway, node.properties())}
    properties.setdefault("format-version", str(source.format_version))
    place.catalog.create_table(
        place.parts, source.schema(), _location(location), source.spec(), source.sort_order(), properties
    )
    return context.result()


def _drop(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    catalog: Catalog = place.catalog
    if not catalog.table_exists(place.parts):
        if catalog.view_exists(place.parts):
            raise InvalidInputError(f"{full_name(catalog, place.parts)} is a view; write DROP VIEW")
        if node.ifExists():
            return context.result()
    if node.purge():
        catalog.purge_table(place.parts)
    else:
        catalog.drop_table(place.parts)
    return context.result()


def _rename(node: Any, context: SqlContext) -> Any | None:
    place = context.table_place(node.child())
    if place is None:
        return None
    target = tuple(items(node.newName()))
    if len(target) > 1 and target[0] == place.catalog.name:
        target = target[1:]
    if len(target) == 1:
        target = (*place.parts[:-1], *target)
    if node.isView():
        place.catalog.views.rename(place.parts, target)
    else:
        place.catalog.rename_table(place.parts, target)
    return context.result()


def _set(node: Any, context: SqlContext) -> Any | None:
    table = context.existing(node.child())
    if table is None:
        return None
    match kind_of(node):
        case "SetTableProperties":
            properties = mapping(context.gateway, node.properties())
            version = properties.pop("format-version", None)
            with table.transaction() as tx:
                if version is not None:
                    tx.upgrade_format_version(int(version))
                if properties:
                    tx.set_properties(properties)
        case "UnsetTableProperties":
            keys = items(node.propertyKeys())
            missing = [key for key in keys if key not in table.properties]
            if missing and not node.ifExists():
                raise InvalidInputError(f"table has no property {missing[0]!r}; write UNSET TBLPROPERTIES IF EXISTS")
            table.remove_properties(*(key for key in keys if key not in missing))
        case "SetTableLocation":
            with table.transaction() as tx:
                tx.update_location(whole_location(node.location()))
        case _:
            table.set_properties({"comment": node.comment()})
    return context.result()
