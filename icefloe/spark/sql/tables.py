"""Statements that create, replace, drop and rename tables, or change a table as a whole."""

from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql.types import StructType

from icefloe import errors, partitioning as pt, properties as props
from icefloe.catalog import show
from icefloe.schema import Schema
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.sql.columns import struct_field
from icefloe.spark.sql.context import SqlContext, Statement, about_table, about_target, removed_keys, whole_location
from icefloe.spark.sql.names import Parts, ResolvedName
from icefloe.spark.sql.nodes import class_of, items, mapping, option, parts
from icefloe.spark.sql.queries import resolve
from icefloe.spark.types import schema_from_spark, schema_of_query
from icefloe.table import Table

_FORMATS = ("parquet", "orc", "avro")
_OWN = "iceberg"


def _create(node: JavaObject, context: SqlContext) -> JavaObject | None:
    target = context.target(node.name())
    if target is None:
        return None
    properties, location = _properties(node.tableSpec(), context), _location(option(node.tableSpec().location()))
    creates = class_of(node).startswith("Create")
    if creates and node.ignoreIfExists() and target.exists():
        return context.result()
    frame = context.frame_of(resolve(node.query(), context)) if class_of(node).endswith("AsSelect") else None
    schema = _schema(node) if frame is None else schema_of_query(frame.schema)
    catalog, definition = target.catalog, (schema, location, _partitioning(node, schema, context), None, properties)
    if creates and frame is None:
        catalog.create_table(target.parts, *definition)
        return context.result()
    if creates:
        begin = catalog.create_table_transaction
    else:
        begin = catalog.create_or_replace_table_transaction if node.orCreate() else catalog.replace_table_transaction
    with begin(target.parts, *definition) as tx:
        if creates:
            tx.append(frame)
        elif frame is not None:
            tx.rows().fill(frame)
    return context.result()


def _properties(spec: JavaObject, context: SqlContext) -> dict[str, str]:
    """The properties of a new table, with what else a statement says of it."""
    properties = {str(key): str(value) for key, value in mapping(context.gateway, spec.properties()).items()}
    provider = (option(spec.provider()) or _OWN).lower()
    if provider in _FORMATS:
        properties.setdefault(props.WRITE_FORMAT.key, provider)
    elif provider != _OWN:
        raise errors.InvalidInputError(
            f"USING {provider} makes no Iceberg table; write USING iceberg, or one of {', '.join(_FORMATS)}"
        )
    comment = option(spec.comment())
    if comment is not None:
        properties["comment"] = comment
    for entry in items(spec.optionExpression().options()):
        properties[f"option.{entry.productElement(0)}"] = str(entry.productElement(1).value())
    return properties


def _location(text: str | None) -> str | None:
    return None if text is None else whole_location(text)


def _partitioning(node: JavaObject, schema: Schema, context: SqlContext) -> list[str]:
    """The partition terms, with their columns in the case that they have in the schema."""
    check_no_twins(schema, context.is_case_sensitive)
    terms = [transform.toString() for transform in items(node.partitioning())]
    return terms if context.is_case_sensitive else [_exact_term(term, schema) for term in terms]


def _exact_term(text: str, schema: Schema) -> str:
    term = pt.parse_term(text)
    name = schema.names_by_id[schema.find_field(term.column, case_sensitive=False).field_id]
    return text if name == term.column else str(replace(term, column=name))


def _schema(node: JavaObject) -> Schema:
    columns = items(node.columns())
    for column in columns:
        if option(column.generationExpression()) is not None:
            raise errors.InvalidInputError(f"column {column.name()!r} is generated, which Iceberg tables do not have")
    fields = [struct_field(column.name(), column, option(column.defaultValue())) for column in columns]
    return schema_from_spark(StructType(fields))


def _create_like(node: JavaObject, context: SqlContext) -> JavaObject | None:
    target = context.target(node.name())
    if target is None:
        return None
    source = context.existing(node.source())
    return _create_copy(target, source, parts(node.source()), node, option(node.location()), context)


def _create_like_on_old_spark(node: JavaObject, context: SqlContext) -> JavaObject | None:
    """Before Spark 4.2, names have no catalog here: both are in the current one."""
    name, source_name = (
        (*filter(None, [option(identifier.database())]), identifier.table())
        for identifier in (node.targetTable(), node.sourceTable())
    )
    target = context.table(name)
    if target is None:
        return None
    source, uri = context.table(source_name), option(node.fileFormat().locationUri())
    table = source.load_table() if source is not None and source.table_exists() else None
    return _create_copy(target, table, source_name, node, None if uri is None else str(uri.toString()), context)


def _create_copy(
    target: ResolvedName, source: Table | None, name: Parts, node: JavaObject, location: str | None, context: SqlContext
) -> JavaObject:
    if source is None:
        raise errors.NoSuchTableError(f"no table {'.'.join(name)} in a catalog of icefloe to be like")
    if not (node.ifNotExists() and target.table_exists()):
        properties = {**source.properties, **mapping(context.gateway, node.properties())}
        properties.setdefault("format-version", str(source.format_version))
        target.catalog.create_table(
            target.parts, source.schema(), _location(location), source.spec(), source.sort_order(), properties
        )
    return context.result()


@about_target
def _drop(node: JavaObject, target: ResolvedName, _: SqlContext) -> None:
    if not target.table_exists():
        if target.view_exists():
            raise errors.InvalidInputError(f"{target} is a view; write DROP VIEW")
        if node.ifExists():
            return
    if node.purge():
        target.catalog.purge_table(target.parts)
    else:
        target.catalog.drop_table(target.parts)


@about_target
def _rename(node: JavaObject, target: ResolvedName, _: SqlContext) -> None:
    name = tuple(items(node.newName()))
    if len(name) > 1 and name[0] == target.catalog.name:
        name = name[1:]
    if len(name) == 1:
        name = (*target.parts[:-1], *name)
    rename = target.catalog.views.rename if node.isView() else target.catalog.rename_table
    rename(target.parts, name)


@about_table
def _set(node: JavaObject, table: Table, context: SqlContext) -> None:
    match class_of(node):
        case "SetTableProperties":
            properties = mapping(context.gateway, node.properties())
            version = properties.pop("format-version", None)
            with table.transaction() as tx:
                if version is not None:
                    tx.upgrade_format_version(int(version))
                if properties:
                    tx.set_properties(properties)
        case "UnsetTableProperties":
            table.remove_properties(*removed_keys(node, table.properties, f"table {show(table.name())}"))
        case "SetTableLocation":
            with table.transaction() as tx:
                tx.update_location(whole_location(node.location()))
        case _:
            table.set_properties({"comment": node.comment()})


STATEMENTS: dict[str, Statement] = {
    **dict.fromkeys(("CreateTable", "ReplaceTable", "CreateTableAsSelect", "ReplaceTableAsSelect"), _create),
    "CreateTableLike": _create_like,
    "CreateTableLikeCommand": _create_like_on_old_spark,
    "DropTable": _drop,
    "RenameTable": _rename,
    **dict.fromkeys(("SetTableProperties", "UnsetTableProperties", "SetTableLocation", "CommentOnTable"), _set),
}
