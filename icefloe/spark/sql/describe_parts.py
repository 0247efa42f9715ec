"""`SHOW` and `DESCRIBE` of what has a table's name and a word after it: a metadata table, or the table at a branch, tag, snapshot or time."""

from typing import Any

from icefloe.errors import InvalidInputError, NoSuchColumnError
from icefloe.inspect import metadata_table_schema
from icefloe.schema import Schema
from icefloe.spark.sql.context import SqlContext, full_name
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.nodes import items, kind_of, option
from icefloe.spark.types import TypeMapping, user_type
from icefloe.table import Table


def describe_part(node: Any, source: Source, word: str, context: SqlContext, mapping: TypeMapping) -> Any:
    """The result plan of a statement that describes a part of a table, named by the table and a suffix."""
    table = source.catalog.load_table(source.identifier)
    name = full_name(source.catalog, (*source.identifier, word))
    columns = [
        (field.name, user_type(field.field_type, mapping).simpleString(), field.doc)
        for field in _schema(source, table).fields
    ]
    match kind_of(node):
        case "DescribeRelation":
            rows = [*columns, *_details(table, name)] if node.isExtended() else columns
            return context.result(rows, "col_name string, data_type string, comment string")
        case "DescribeColumn":
            wanted = ".".join(items(node.column().nameParts()))
            match = next((column for column in columns if column[0].lower() == wanted.lower()), None)
            if match is None:
                raise NoSuchColumnError(
                    f"{name} has no column {wanted!r}; there are {', '.join(e[0] for e in columns)}"
                )
            details = [("col_name", match[0]), ("data_type", match[1]), ("comment", match[2] or "NULL")]
            return context.result(details, "info_name string, info_value string")
        case "ShowColumns":
            return context.result([(column[0],) for column in columns], "col_name string")
        case "ShowTableProperties":
            key, held = option(node.propertyKey()), _properties(table)
            shown = sorted(held.items()) if key is None else [(key, held.get(key, f"{name} has no property: {key}"))]
            return context.result(shown, "key string, value string")
        case _:
            whole = full_name(source.catalog, source.identifier)
            raise InvalidInputError(f"{name} is a part of table {whole}; ask about the table")


def _schema(source: Source, table: Table) -> Schema:
    if source.metadata_table is not None:
        return metadata_table_schema(source.metadata_table, table.metadata)
    return table.scan(snapshot_id=source.snapshot_id, ref=source.ref, as_of=source.as_of).schema


def _properties(table: Table) -> dict[str, str]:
    current = table.current_snapshot()
    return {
        "current-snapshot-id": "none" if current is None else str(current.snapshot_id),
        "format": f"iceberg/{table.properties.get('write.format.default', 'parquet')}",
    }


def _details(table: Table, name: str) -> list[tuple[str, str, str]]:
    properties = ",".join(f"{key}={value}" for key, value in sorted(_properties(table).items()))
    return [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", name, ""),
        ("Type", "MANAGED", ""),
        ("Location", str(table.location()), ""),
        ("Provider", "iceberg", ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
