"""`SHOW` and `DESCRIBE` of a view: its columns, its properties, and a statement that would create it again."""

from typing import Any

from icefloe.errors import InvalidInputError, NoSuchColumnError
from icefloe.spark.literals import quoted
from icefloe.spark.sql.context import SqlContext, full_name
from icefloe.spark.sql.names import Place
from icefloe.spark.sql.nodes import items, kind_of, option
from icefloe.spark.types import TypeMapping, user_type
from icefloe.spark.user_side import quoted_name


def describe_view(node: Any, place: Place, context: SqlContext, mapping: TypeMapping) -> Any:
    """The result plan of a statement that describes a view."""
    view, name = place.catalog.load_view(place.parts), full_name(place.catalog, place.parts)
    columns = [
        (field.name, user_type(field.field_type, mapping).simpleString(), field.doc) for field in view.schema().fields
    ]
    match kind_of(node):
        case "DescribeRelation":
            rows = [*columns, *_details(view, name)] if node.isExtended() else columns
            return context.result(rows, "col_name string, data_type string, comment string")
        case "DescribeColumn":
            wanted = ".".join(items(node.column().nameParts()))
            match = next((column for column in columns if column[0].lower() == wanted.lower()), None)
            if match is None:
                raise NoSuchColumnError(f"view {name} has no column {wanted!r}")
            details = [("col_name", match[0]), ("data_type", match[1]), ("comment", match[2] or "NULL")]
            return context.result(details, "info_name string, info_value string")
        case "ShowCreateTable":
            return context.result([(_create_statement(view, name, columns),)], "createtab_stmt string")
        case "ShowTableProperties":
            key = option(node.propertyKey())
            held = dict(view.properties)
            shown = sorted(held.items()) if key is None else [(key, held.get(key, f"View {name} has no such property"))]
            return context.result(shown, "key string, value string")
        case "ShowColumns":
            return context.result([(column[0],) for column in columns], "col_name string")
        case _:
            raise InvalidInputError(f"{name} is a view, and views have no partitions")


def _details(view: Any, name: str) -> list[tuple[str, str, str]]:
    version = view.version()
    properties = ",".join(f"{key}={value}" for key, value in sorted(view.properties.items()))
    namespace = ".".join(version.default_namespace)
    return [
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Name", name, ""),
        ("Type", "VIEW", ""),
        ("View Text", view.sql_for("spark") or "", ""),
        ("View Catalog and Namespace", f"{version.default_catalog or ''}.{namespace}".strip("."), ""),
        ("Table Properties", f"[{properties}]", ""),
    ]


def _create_statement(view: Any, name: str, columns: list[tuple[str, str, str | None]]) -> str:
    shown = ",\n".join(
        f"  {quoted_name(column)}" + ("" if doc is None else f" COMMENT {quoted(doc)}") for column, _, doc in columns
    )
    lines = [f"CREATE VIEW {name} (\n{shown})"]
    properties = dict(view.properties)
    if (comment := properties.pop("comment", None)) is not None:
        lines.append(f"COMMENT {quoted(comment)}")
    if properties:
        held = ",\n".join(f"  {quoted(key)} = {quoted(value)}" for key, value in sorted(properties.items()))
        lines.append(f"TBLPROPERTIES (\n{held})")
    lines.append(f"AS\n{view.sql_for('spark')}")
    return "\n".join(lines) + "\n"
