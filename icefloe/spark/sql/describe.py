"""`SHOW` and `DESCRIBE`: columns, partitioning, properties, and a statement that would create the thing again.

A table, a view, and what has a table's name and a word after it: a metadata table, or the table at a branch, tag, snapshot or time.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NoReturn

from py4j.java_gateway import JavaObject

from icefloe.catalog import show, show_part
from icefloe.errors import InvalidInputError, NoSuchColumnError
from icefloe.inspect import metadata_table_schema
from icefloe.schema import NestedField, Schema
from icefloe.spark.literals import quoted, sql_literal
from icefloe.spark.sql.context import SqlContext, Statement
from icefloe.spark.sql.names import ResolvedName, Source
from icefloe.spark.sql.namespaces import matches
from icefloe.spark.sql.nodes import class_of, is_name, items, option, parts
from icefloe.spark.types import TypeMapping, mapping_of, user_schema, user_type
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table

_RESERVED = ("comment", "owner", "provider", "location", "external")
_METADATA_COLUMNS = {
    "_spec_id": "int",
    "_partition": "struct<>",
    "_file": "string",
    "_pos": "bigint",
    "_deleted": "boolean",
}
_Sections = Mapping[str, Mapping[str, str]]
"""Names and values by title."""


@dataclass(frozen=True)
class _Described:
    """What the statements tell about a table, a part of one, or a view."""

    what: str
    name: str
    schema: Schema
    properties: Mapping[str, str]
    create_statement: Callable[[], str]
    partitions: Callable[[], set[str]]
    details: _Sections
    """What DESCRIBE EXTENDED tells."""
    sections: _Sections
    """What DESCRIBE tells besides the columns."""

    def rows(self, mapping: TypeMapping, extended: bool) -> list[tuple[str, str, str | None]]:
        """The rows of DESCRIBE."""
        rows = [(field.name, _shown_type(field, mapping), field.doc) for field in self.schema.fields]
        for title, entries in {**self.sections, **(self.details if extended else {})}.items():
            rows += [("", "", ""), (f"# {title}", "", ""), *((name, value, "") for name, value in entries.items())]
        return rows

    def column(self, name: str, mapping: TypeMapping) -> list[tuple[str, str]]:
        """The rows of DESCRIBE of a column."""
        try:
            field = self.schema.find_field(name, case_sensitive=False)
        except NoSuchColumnError:
            known = ", ".join(field.name for field in self.schema.fields)
            raise NoSuchColumnError(f"{self.name} has no column {name!r}; there are {known}") from None
        exact_name = self.schema.names_by_id[field.field_id]
        return [("col_name", exact_name), ("data_type", _shown_type(field, mapping)), ("comment", field.doc or "NULL")]


def _shown_type(field: NestedField, mapping: TypeMapping) -> str:
    return str(user_type(field.field_type, mapping).simpleString())


def _describe(node: JavaObject, context: SqlContext) -> JavaObject | None:
    mapping = mapping_of(context.spark)
    described = _described(node.child(), context, mapping)
    if described is None:
        return None
    match class_of(node):
        case "DescribeRelation":
            rows = described.rows(mapping, node.isExtended())
            return context.result(rows, "col_name string, data_type string, comment string")
        case "DescribeColumn":
            column = described.column(".".join(items(node.column().nameParts())), mapping)
            return context.result(column, "info_name string, info_value string")
        case "ShowCreateTable":
            return context.result([(described.create_statement(),)], "createtab_stmt string")
        case "ShowTableProperties":
            key, properties = option(node.propertyKey()), described.properties
            shown = sorted(properties.items())
            if key is not None:
                shown = [(key, properties.get(key, f"{described.what} {described.name} does not have property: {key}"))]
            return context.result(shown, "key string, value string")
        case "ShowColumns":
            return context.result([(field.name,) for field in described.schema.fields], "col_name string")
        case _:
            return context.result([(partition,) for partition in sorted(described.partitions())], "partition string")


def _described(node: JavaObject, context: SqlContext, mapping: TypeMapping) -> _Described | None:
    name = parts(node) if is_name(node) else ()
    target = None if context.is_temporary(name) else context.target(node)
    if target is None:
        return None
    if target.view_exists():
        return _view(target)
    if len(name) > 1 and not target.is_table():
        source = context.source(name)
        if source is not None and not source.is_whole:
            return _part(source, name[-1].lower())
    table = context.existing(node)
    return None if table is None else _table(str(target), table, mapping)


def _table(name: str, table: Table, mapping: TypeMapping) -> _Described:
    properties = {**_own_properties(table), "format-version": str(table.format_version), **table.properties}
    information, partitioning = _information(name, table, properties), _partitioning(table)
    if "comment" in table.properties:
        information["Comment"] = table.properties["comment"]

    def create_statement() -> str:
        columns = ",\n".join("  " + _column(field, mapping) for field in table.schema().fields)
        lines = [f"CREATE TABLE {name} (\n{columns})", "USING iceberg"]
        if partitioning:
            lines.append(f"PARTITIONED BY ({', '.join(partitioning)})")
        if comment := properties.get("comment"):
            lines.append(f"COMMENT {quoted(comment)}")
        lines.append(f"LOCATION {quoted(str(table.location()))}")
        lines.append(_properties_clause(properties, (*_RESERVED, "current-snapshot-id")))
        return "\n".join(lines) + "\n"

    def partitions() -> set[str]:
        if table.spec().is_unpartitioned:
            raise InvalidInputError(f"table {'.'.join(table.name())} is not partitioned")
        values = [row["partition"] for row in table.inspect.partitions().to_pylist()]
        return {"/".join(f"{key}={value}" for key, value in partition.items()) for partition in values}

    details = {"Metadata Columns": _METADATA_COLUMNS, "Detailed Table Information": information}
    sections = (
        {"Partitioning": {f"Part {index}": term for index, term in enumerate(partitioning)}} if partitioning else {}
    )
    return _Described("Table", name, table.schema(), properties, create_statement, partitions, details, sections)


def _part(source: Source, word: str) -> _Described:
    table, whole = source.load_table(), show((source.catalog.name, *source.identifier))
    name, properties = f"{whole}.{show_part(word)}", _own_properties(table)
    if source.metadata_table is not None:
        schema = metadata_table_schema(source.metadata_table, table.metadata)
    else:
        schema = table.scan(snapshot_id=source.snapshot_id, ref=source.ref, as_of=source.as_of).schema

    def refuse() -> NoReturn:
        raise InvalidInputError(f"{name} is a part of table {whole}; ask about the table")

    details = {"Detailed Table Information": _information(name, table, properties)}
    return _Described("Table", name, schema, properties, refuse, refuse, details, {})


def _view(target: ResolvedName) -> _Described:
    view, name = target.load_view(), str(target)
    version, namespace = view.version(), ".".join(view.version().default_namespace)
    information = {
        "Name": name,
        "Type": "VIEW",
        "View Text": view.sql_for("spark") or "",
        "View Catalog and Namespace": f"{version.default_catalog or ''}.{namespace}".strip("."),
        "Table Properties": _shown_properties(view.properties),
    }

    def create_statement() -> str:
        columns = ",\n".join(
            f"  {quoted_name(field.name)}" + ("" if field.doc is None else f" COMMENT {quoted(field.doc)}")
            for field in view.schema().fields
        )
        lines, comment = [f"CREATE VIEW {name} (\n{columns})"], view.properties.get("comment")
        if comment is not None:
            lines.append(f"COMMENT {quoted(comment)}")
        if set(view.properties) - {"comment"}:
            lines.append(_properties_clause(view.properties, ("comment",)))
        return "\n".join([*lines, f"AS\n{view.sql_for('spark')}"]) + "\n"

    def partitions() -> NoReturn:
        raise InvalidInputError(f"{name} is a view, and views have no partitions")

    details = {"Detailed View Information": information}
    return _Described("View", name, view.schema(), view.properties, create_statement, partitions, details, {})


def _own_properties(table: Table) -> dict[str, str]:
    current = table.current_snapshot()
    return {
        "current-snapshot-id": "none" if current is None else str(current.snapshot_id),
        "format": f"iceberg/{table.properties.get('write.format.default', 'parquet')}",
    }


def _information(name: str, table: Table, properties: Mapping[str, str]) -> dict[str, str]:
    return {
        "Name": name,
        "Type": "MANAGED",
        "Location": str(table.location()),
        "Provider": "iceberg",
        "Table Properties": _shown_properties(properties),
    }


def _shown_properties(properties: Mapping[str, str]) -> str:
    return f"[{','.join(f'{key}={value}' for key, value in sorted(properties.items()))}]"


def _properties_clause(properties: Mapping[str, str], hidden: Collection[str]) -> str:
    shown = [f"  {quoted(key)} = {quoted(value)}" for key, value in sorted(properties.items()) if key not in hidden]
    return "TBLPROPERTIES (\n{})".format(",\n".join(shown))


def _partitioning(table: Table) -> tuple[str, ...]:
    terms = []
    for field in table.spec().fields:
        column = _name(table.schema().find_column_name(field.source_id) or "?")
        name, _, number = str(field.transform).rstrip("]").partition("[")
        if name == "identity":
            terms.append(column)
        elif name != "void":
            terms.append(f"{name}({number}, {column})" if number else f"{name}s({column})")
    return tuple(terms)


def _name(column: str) -> str:
    return ".".join(show_part(part).replace('"', "`") for part in column.split("."))


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


def _show_extended(node: JavaObject, context: SqlContext) -> JavaObject | None:
    """`SHOW TABLE EXTENDED`: tables of a namespace, and the session's temporary views, with their details."""
    namespace = context.namespace(node.namespace())
    if namespace is None:
        return None
    namespace.check_namespace()
    catalog, pattern = namespace.catalog, node.pattern()
    rows = [
        (show(namespace.parts), identifier[-1], False, _all_information(ResolvedName(catalog, identifier), context))
        for identifier in catalog.list_tables(namespace.parts)
        if matches(pattern, identifier[-1])
    ]
    views = items(context.state.catalog().listTempViews("", pattern))
    rows += [("", view.identifier().table(), True, f"{view.simpleString()}\n") for view in views]
    return context.result(rows, "namespace string, tableName string, isTemporary boolean, information string")


def _all_information(name: ResolvedName, context: SqlContext) -> str:
    table, mapping = name.load_table(), mapping_of(context.spark)
    properties = _table(str(name), table, mapping).properties
    shown = _shown_properties({key: value for key, value in properties.items() if key not in _RESERVED})
    details = {
        "Catalog": name.catalog.name,
        "Namespace": show(name.parts[:-1]),
        "Table": name.parts[-1],
        "Type": "MANAGED",
        "Comment": table.properties.get("comment"),
        "Location": str(table.location()),
        "Provider": "iceberg",
        "Owner": table.properties.get("owner"),
        "Table Properties": shown,
        "Schema": context.gateway.type(user_schema(table.schema(), mapping)).treeString(),
    }
    return "".join(f"{key}: {value}\n" for key, value in details.items() if value is not None)


STATEMENTS: dict[str, Statement] = {
    **dict.fromkeys(("DescribeRelation", "DescribeColumn", "ShowCreateTable"), _describe),
    **dict.fromkeys(("ShowTableProperties", "ShowColumns", "ShowPartitions"), _describe),
    "ShowTablesExtended": _show_extended,
}
