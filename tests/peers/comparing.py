"""Which rows are the same, whoever read them: peers have other Arrow types for the same values."""

from typing import Any
from uuid import UUID

import pyarrow as pa

from icefloe.spark.session import Session
from icefloe.table import Table
from tests.formats.rows import contents
from tests.peers.java_worker import collected


def comparable(table: Any, key: str = "id", schema: Any = None) -> list[Any]:
    """The rows by the order of a column; with the types of a schema, where its values have them; UUIDs as texts."""
    wanted = table.schema if schema is None else schema
    columns = [_aligned(column, field.type) for column, field in zip(table.columns, wanted, strict=True)]
    return sorted(contents(pa.table(columns, names=table.schema.names)), key=lambda row: str(row[key]).rjust(30))


def spark_rows(ice: Session, table: Table, engine: str) -> list[Any]:
    """What an engine of our Spark reads, in the form of what plain Python reads."""
    found = collected(ice.table(table.name(), options={"read.engine": engine}))
    return comparable(found, schema=table.scan().to_arrow().schema)


def _aligned(column: Any, wanted: Any) -> Any:
    if wanted == pa.uuid():
        return _texts(column)
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def _texts(column: Any) -> Any:
    """UUIDs as texts, which Spark has them as."""
    return pa.array([_text(each) for each in column.to_pylist()], pa.string())


def _text(value: Any) -> Any:
    match value:
        case bytes() if len(value) == 16:
            return str(UUID(bytes=value))
        case UUID():
            return str(value)
        case _:
            return value
