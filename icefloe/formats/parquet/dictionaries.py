"""Which columns of a Parquet file get a dictionary: those whose values come again, by a look at some of the first rows.

A dictionary of values that hardly repeat takes time and room to make, and readers have to go through it. Only PLAIN is used
besides: readers of other engines do not know the other encodings everywhere. A table's own properties come first.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import properties as props

_PLACES = 16
_ROWS_IN_A_ROW = 512
"""Rows that are next to each other are looked at, at several places: so repeats show in sorted columns too."""
_APART = (5**0.5 - 1) / 2
"""Places are this part of the rows apart, in a ring: no period of the values falls together with theirs."""
_REPEATING = 2
"""How often a value of the sample comes on average for a dictionary to be worth it."""


def dictionary_columns(rows: pa.Table, properties: Mapping[str, str]) -> list[str]:
    """The paths of the columns, as Parquet names them, to write with a dictionary; `rows` are a table of the first ones."""
    asked = _asked(properties)
    sample = _sample(rows)
    return [
        path
        for field in rows.schema
        for path, name in _paths(field.type, field.name, field.name)
        if asked.get(name, pa.types.is_nested(_plain(field.type)) or _repeats(sample.column(field.name)))
    ]


def _asked(properties: Mapping[str, str]) -> dict[str, bool]:
    """What the table's properties say, by column name; the column may have been dropped since (which Java ignores too)."""
    prefix = props.PARQUET_DICTIONARY_COLUMN_PREFIX
    return {
        key.removeprefix(prefix): props.property_as_bool(properties, key, True)
        for key in properties
        if key.startswith(prefix)
    }


def _sample(rows: pa.Table) -> pa.Table:
    if rows.num_rows <= _PLACES * _ROWS_IN_A_ROW:
        return rows
    room = rows.num_rows - _ROWS_IN_A_ROW
    starts = sorted(int(i * _APART % 1 * room) for i in range(_PLACES))
    return pa.concat_tables(rows.slice(start, _ROWS_IN_A_ROW) for start in starts)


def _repeats(column: pa.ChunkedArray) -> bool:
    plain = _plain(column.type)
    if pa.types.is_null(plain) or pa.types.is_boolean(plain):
        return False
    values = column.cast(plain) if plain is not column.type else column
    return bool(pc.count_distinct(values).as_py() * _REPEATING <= len(values) - values.null_count)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _paths(kind: pa.DataType, path: str, name: str) -> Iterator[tuple[str, str]]:
    """The columns below a field: as Parquet names them, and as the table does."""
    kind = _plain(kind)
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _paths(child.type, f"{path}.{child.name}", f"{name}.{child.name}")
    elif pa.types.is_map(kind):
        yield from _paths(kind.key_type, f"{path}.key_value.key", f"{name}.key")
        yield from _paths(kind.item_type, f"{path}.key_value.value", f"{name}.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _paths(kind.value_type, f"{path}.list.element", f"{name}.element")
    else:
        yield path, name
