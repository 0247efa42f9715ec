"""Files as values, made from columns in bulk: what a plan knows of each file, without metrics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, make_dataclass
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow.compute as pc

from icefloe.manifests import DataFile, FileContent, ManifestColumns, Metric
from icefloe.planning.partitions import Numbers

_NO_METRICS: dict[int, Any] = {}


def data_files(files: ManifestColumns, group_of: Numbers, tuples: Sequence[tuple[Any, ...]]) -> Iterator[DataFile]:
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
        *(none for _ in Metric),
        _values(files, "key_metadata"),
        _tuples(files, "split_offsets"),
        _tuples(files, "equality_ids"),
        _values(files, "sort_order_id"),
        _values(files, "first_row_id"),
        _values(files, "referenced_data_file"),
        _values(files, "content_offset"),
        _values(files, "content_size_in_bytes"),
    )


def _values(files: ManifestColumns, name: str) -> Iterable[Any]:
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(None, len(files))
    found: list[Any] = column.to_pylist()
    return found


def _mapped(files: ManifestColumns, name: str, change: Callable[[Any], Any], missing: Any = None) -> Iterable[Any]:
    """The values of a column, each of them changed; the same ones once."""
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(missing, len(files))
    encoded = column.dictionary_encode(null_encoding="encode")
    changed = [missing if each is None else change(each) for each in encoded.dictionary.to_pylist()]
    return map(changed.__getitem__, encoded.indices.to_pylist())


def _tuples(files: ManifestColumns, name: str) -> Iterable[Any]:
    """The values of a column of lists."""
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(None, len(files))
    if column.null_count:
        return (None if each is None else tuple(each) for each in column.to_pylist())
    # Without a Python list for each, which the garbage collector would have to look after.
    ends = np.cumsum(pc.list_value_length(column).to_numpy()).tolist()
    numbers = column.flatten().to_pylist()
    return (tuple(numbers[start:end]) for start, end in pairwise([0, *ends]))


def _made_files(*fields_in_order: Iterable[Any]) -> Iterator[DataFile]:
    """Files from columns of their fields, several times as fast as by the class itself.

    Frozen values set each field by a call. The same fields in a class that is not frozen are plain stores, and its values
    may become those of the frozen one, since both have the same slots.
    """
    made: Any
    for made in map(_OPEN_FILE, *fields_in_order):
        made.__class__ = DataFile
        yield made


_OPEN_FILE: Any = make_dataclass("OpenDataFile", [each.name for each in fields(DataFile)], slots=True)
