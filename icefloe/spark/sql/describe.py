"""`SHOW` and `DESCRIBE` of a table: its columns, partitioning, properties, and a statement that would create it again."""

from typing import Any

from icefloe.catalog import show, show_part
from icefloe.errors import InvalidInputError, NoSuchColumnError, NoSuchNamespaceError
from icefloe.schema import NestedField
from icefloe.spark.literals import quoted, sql_literal
from icefloe.spark.sql.context import SqlContext, full_name
from icefloe.spark.sql.describe_parts import describe_part
from icefloe.spark.sql.describe_views import describe_view
from icefloe.spark.sql.names import Place, exists
from icefloe.spark.sql.namespaces import matches
from icefloe.spark.sql.nodes import is_name, items, kind_of, option, parts
from icefloe.spark.types import TypeMapping, mapping_of, user_schema, user_type
from icefloe.table import Table

_RESERVED = ("comment", "owner", "provider", "location", "external")


def run_describe(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement that describes a table of ours; None for any other statement."""
    kind = kind_of(node)
    if kind == "ShowTablesExtended":
        return _show_extended(node, context)
    if kind not in (
        "DescribeRelation",
        "DescribeColumn",
        "ShowCreateTable",
        "ShowTableProperties",
        "ShowColumns",
        "ShowPartitions",
    ):
        return None
    named = parts(node.child()) if is_name(node.child()) else ()
    if len(named) == 1 and context.is_temporary(named[0]):
        return None
    mapping = mapping_of(context.gateway.spark)
    place = context.table_place(node.child())
    if place is not None and place.catalog.view_exists(place.parts):
        return describe_view(node, place, context, mapping)
    if place is not None and len(named) > 1 and not exists(place):
        source = context.names.source(named, default=context.default)
        if source is not None and not source.is_whole:
            return describe_part(node, source, named[-1].lower(), context, mapping)
    table = context.existing(node.child())
    if table is None or place is None:
        return None
    shown = full_name(place.catalog, place.parts)
    match kind:
        case "DescribeRelation":
            rows = _describe(table, shown, mapping, extended=node.isExtended())
            return context.result(rows, "col_name string, data_type string, comment string")
        case "DescribeColumn":
            name = ".".join(items(node.column().nameParts()))
            return context.result(_describe_column(table, name, mapping), "info_name string, info_value string")
        case "ShowCreateTable":
            return context.result([(_create_statement(table, shown, mapping),)], "createtab_stmt string")
        case "ShowTableProperties":
            return context.result(_properties(table, option(node.propertyKey())), "key string, value string")
        case "ShowColumns":
            return context.result([(field.name,) for field in table.schema().fields], "col_name string")
        case _:
            return _partitions(table, context)


def _show_extended(node: Any, context: SqlContext) -> Any | None:
    """`SHOW TABLE EXTENDED`: tables of a namespace, and the session's temporary views, with their details."""
    place = context.place(node.namespace())
    if place is None:
        return None
    catalog, pattern = place.catalog, node.pattern()
    if not catalog.namespace_exists(place.parts):
        raise NoSuchNamespaceError(f"no namespace {show(place.parts)} in catalog {catalog.name!r}")
    rows = [
        (show(place.parts), identifier[-1], False, _information(Place(catalog, tuple(identifier)), context))
        for identifier in catalog.list_tables(place.parts)
        if matches(pattern, identifier[-1])
    ]
    views = items(context.gateway.spark._jsparkSession.sessionState().catalog().listTempViews("", pattern))
    rows += [("", view.identifier().table(), True, f"{view.simpleString()}\n") for view in views]
    return context.result(rows, "namespace string, tableName string, isTemporary boolean, information string")


def _information(place: Place, context: SqlContext) -> str:
    table = place.catalog.load_table(place.parts)
    schema = user_schema(table.schema(), mapping_of(context.gateway.spark))
    properties = ",".join(f"{key}={value}" for key, value in _properties(table, None) if key not in _RESERVED)
    details = {
        "Catalog": place.catalog.name,
        "Namespace": show(place.parts[:-1]),
        "Table": place.parts[-1],
        "Type": "MANAGED",
        "Comment": table.properties.get("comment"),
        "Location": str(table.location()),
        "Provider": "iceberg",
        "Owner": table.properties.get("owner"),
        "Table Properties": f"[{properties}]",
        "Schema": context.gateway.type(schema).treeString(),
    }
    return "".join(f"{key}: {value}\n" for key, value in details.items() if value is not None)


def _shown(field: NestedField, mapping: TypeMapping) -> str:
    text: str = user_type(field.field_type, mapping).simpleString()
    return text


def _describe(table: Table, name: str, mapping: TypeMapping, *, extended: bool) -> list[tuple[str, str, str | None]]:
    rows: list[tuple[str, str, str | None]] = [
        (field.name, _shown(field, mapping), field.doc) for field in table.schema().fields
    ]
    partitioning = _partitioning(table)
    if partitioning:
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [(f"Part {index}", text, "") for index, text in enumerate(partitioning)]
    if not extended:
        return rows
    rows += [("", "", ""), ("# Metadata Columns", "", "")]
    rows += [("_spec_id", "int", ""), ("_partition", "struct<>", ""), ("_file", "string", "")]
    rows += [("_pos", "bigint", ""), ("_deleted", "boolean", "")]
    properties = ",".join(f"{key}={value}" for key, value in _properties(table, None))
    rows += [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", name, ""),
        ("Type", "MANAGED", ""),
        ("Location", str(table.location()), ""),
        ("Provider", "iceberg", ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
    comment = table.properties.get("comment")
    return rows if comment is None else [*rows, ("Comment", comment, "")]


def _describe_column(table: Table, name: str, mapping: TypeMapping) -> list[tuple[str, str]]:
    try:
        field = table.schema().find_field(name, case_sensitive=False)
    except NoSuchColumnError:
        raise NoSuchColumnError(f"table {'.'.join(table.name())} has no column {name!r}") from None
    return [("col_name", name), ("data_type", _shown(field, mapping)), ("comment", field.doc or "NULL")]


def _properties(table: Table, key: str | None) -> list[tuple[str, str]]:
    current = table.current_snapshot()
    known = {
        "current-snapshot-id": "none" if current is None else str(current.snapshot_id),
        "format": f"iceberg/{table.properties.get('write.format.default', 'parquet')}",
        "format-version": str(table.format_version),
        **table.properties,
    }
    if key is None:
        return sorted(known.items())
    return [(key, known.get(key, f"Table {'.'.join(table.name())} does not have property: {key}"))]


def _partitioning(table: Table) -> list[str]:
    terms = []
    for field in table.spec().fields:
        column = table.schema().find_column_name(field.source_id) or "?"
        text = str(field.transform)
        if text == "void":
            continue
        name, _, number = text.rstrip("]").partition("[")
        if name == "identity":
            terms.append(_name(column))
        elif number:
            terms.append(f"{name}({number}, {_name(column)})")
        else:
            terms.append(f"{name}s({_name(column)})")
    return terms


def _name(column: str) -> str:
    return ".".join(show_part(part).replace('"', "`") for part in column.split("."))


def _create_statement(table: Table, name: str, mapping: TypeMapping) -> str:
    columns = ",\n".join("  " + _column(field, mapping) for field in table.schema().fields)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING iceberg"]
    partitioning = _partitioning(table)
    if partitioning:
        lines.append(f"PARTITIONED BY ({', '.join(partitioning)})")
    if comment := table.properties.get("comment"):
        lines.append(f"COMMENT {quoted(comment)}")
    lines.append(f"LOCATION {quoted(str(table.location()))}")
    shown = [(key, value) for key, value in _properties(table, None) if key not in _RESERVED]
    properties = ",\n".join(
        f"  {quoted(key)} = {quoted(value)}" for key, value in shown if key != "current-snapshot-id"
    )
    lines.append(f"TBLPROPERTIES (\n{properties})")
    return "\n".join(lines) + "\n"


def _column(field: NestedField, mapping: TypeMapping) -> str:
    shown = user_type(field.field_type, mapping)
    text = f"{_name(field.name)} {shown.simpleString()}"
    if field.required:
        text += " NOT NULL"
    if field.write_default is not None:
        is_text = isinstance(field.write_default, str)
        default = field.write_default
        text += f" DEFAULT {quoted(default) if is_text else sql_literal(default, field.field_type, shown)}"
    return text if field.doc is None else f"{text} COMMENT {quoted(field.doc)}"


def _partitions(table: Table, context: SqlContext) -> Any:
    if table.spec().is_unpartitioned:
        raise InvalidInputError(f"table {'.'.join(table.name())} is not partitioned")
    rows = table.inspect.partitions().to_pylist()
    shown = ["/".join(f"{name}={value}" for name, value in row["partition"].items()) for row in rows]
    return context.result([(partition,) for partition in sorted(set(shown))], "partition string")
