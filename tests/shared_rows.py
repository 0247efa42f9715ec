"""Rows and tables in the few forms that tests of many rooms share."""

from typing import Any

import pyarrow as pa

from icefloe import Table


def rows_of(*ids: int, **constants: str | None) -> pa.Table:
    """A row for each id; every other column is a string that is the same in all rows."""
    columns = {name: pa.array([value] * len(ids), pa.string()) for name, value in constants.items()}
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def ids_in(table: Table, **scan: Any) -> list[int]:
    """The ids that a scan of the table returns, sorted."""
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def row_modes(mode: str) -> dict[str, str]:
    """The properties by which all changes of rows go by one mode."""
    return {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}


def sql_modes(mode: str) -> str:
    """The same in TBLPROPERTIES."""
    return ", ".join(f"'{name}' = '{value}'" for name, value in row_modes(mode).items())


def sql_rows(session: Any, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    """The rows of a query, as it orders them."""
    return [tuple(row) for row in session.sql(text, args).collect()]


def sorted_rows(session: Any, text: str, args: Any = None) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted by their texts, so that nulls and types mix."""
    return sorted(sql_rows(session, text, args), key=repr)
