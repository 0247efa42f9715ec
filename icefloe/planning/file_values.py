"""Files as values, made from columns in bulk: what a plan knows of each file, without metrics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, make_dataclass
from itertools import islice, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests import MAP_METRICS, DataFile, FileContent, ManifestColumns
from icefloe.planning.partitions import Numbers
from icefloe.schema import Value

_NO_METRICS: dict[int, object] = {}


def data_files(files: ManifestColumns, group_of: Numbers, tuples: Sequence[tuple[Value, ...]]) -> Iterator[DataFile]:
    """The files of all entries, without metrics; `group_of` says which of the partition tuples is that of each."""
    none = repeat(_NO_METRICS)
    return _made_files(
        _values(files, "file_path"),
        _mapped(files, "file_format", str.lower, ""),
        _values(files, "record_count"),
        _values(files, "file_size_in_bytes"),
        _mapped(files, "content", FileContent, FileContent.DATA),
        repeat(files.spec_id),
        map(tuples.__getitem__, group_of.tolist()),
        *(none for _ in MAP_METRICS),
        _values(files, "key_metadata"),
        _tuples(files, "split_offsets"),
        _tuples(files, "equality_ids"),
        _values(files, "sort_order_id"),
        _values(files, "first_row_id"),
        _values(files, "referenced_data_file"),
        _values(files, "content_offset"),
        _values(files, "content_size_in_bytes"),
        none,
        none,
    )


def _known(files: ManifestColumns, name: str) -> pa.Array | None:
    """A column that has some values."""
    column = files.columns.get(name)
    return None if column is None or column.null_count == len(column) else column


def _values(files: ManifestColumns, name: str) -> Iterable[object]:
    column = _known(files, name)
    if column is None:
        return repeat(None, len(files))
    # NumPy makes numbers in a quarter of the time.
    is_plain = pa.types.is_integer(column.type) and not column.null_count
    values: list[object] = column.to_numpy().tolist() if is_plain else column.to_pylist()
    return values


def _mapped(files: ManifestColumns, name: str, change: Callable[[Any], object], missing: object) -> Iterable[object]:
    """The values of a column, each of them changed; equal ones once."""
    column = _known(files, name)
    if column is None:
        return repeat(missing, len(files))
    encoded = column.dictionary_encode(null_encoding="encode")
    changed = [missing if value is None else change(value) for value in encoded.dictionary.to_pylist()]
    return map(changed.__getitem__, encoded.indices.to_pylist())


def _tuples(files: ManifestColumns, name: str) -> Iterable[tuple[int, ...] | None]:
    """The values of a column of lists."""
    column = _known(files, name)
    if column is None:
        return repeat(None, len(files))
    if column.null_count:
        return (None if numbers is None else tuple(numbers) for numbers in column.to_pylist())
    # Without a Python list for each, which the garbage collector would have to look after.
    lengths = pc.list_value_length(column).to_numpy()
    numbers = iter(column.flatten().to_pylist())
    if (lengths == 1).all():
        return zip(numbers, strict=False)
    return map(tuple, map(islice, repeat(numbers), lengths.tolist()))


def _made_files(*fields_in_order: Iterable[object]) -> Iterator[DataFile]:
    """Files from columns of their fields, several times as fast as by the class itself.

    Frozen values set each field by a call. The same fields in a class that is not frozen are plain stores, and its values
    may become those of the frozen one, since both have the same slots.
    """
    file: Any
    for file in map(_OPEN_FILE, *fields_in_order):
        file.__class__ = DataFile
        yield file


_OPEN_FILE: Any = make_dataclass("OpenDataFile", [field.name for field in fields(DataFile)], slots=True)
