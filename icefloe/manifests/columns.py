"""A manifest in memory: Arrow columns with one row for each entry, and values made only of the rows that are asked for."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidInputError
from icefloe.manifests.arrow_values import bound_values, from_internal, to_internal, value_array_type
from icefloe.manifests.entry_codec import COLUMN_TYPES
from icefloe.manifests.metrics import MetricColumns, map_type, take_columns
from icefloe.manifests.values import DataFile, EntryStatus, FileContent, ManifestEntry, Metric
from icefloe.schema import IcebergType, ListType, StructType, UnknownType, arrow_value_type


def column_type(name: str) -> Any:
    """The Arrow type of a column of a manifest."""
    kind = COLUMN_TYPES[name]
    return pa.list_(arrow_value_type(kind.element_type)) if isinstance(kind, ListType) else arrow_value_type(kind)


@dataclass(frozen=True, slots=True, eq=False)
class ManifestColumns:
    """The entries of one manifest (or of several of one spec), in columns.

    `columns` are those of `COLUMN_TYPES` that were asked for, `partition` is by partition field id, of the types that
    `partition_type` says. `header` is the manifest's own key-value metadata.
    """

    length: int
    columns: Mapping[str, Any]
    partition_type: StructType
    partition: Mapping[int, Any]
    metrics: MetricColumns
    spec_id: int = 0
    location: str = ""
    header: Mapping[str, str] | None = None

    def __len__(self) -> int:
        return self.length

    def column(self, name: str) -> Any:
        """A column by name; null in every row if the manifest lacks it."""
        found = self.columns.get(name)
        if found is not None:
            return found
        if name not in COLUMN_TYPES:
            raise InvalidInputError(f"manifests have no column {name!r}; columns are {', '.join(COLUMN_TYPES)}")
        return pa.nulls(self.length, column_type(name))

    @property
    def is_live(self) -> Any:
        """Which entries are part of the snapshot, as a boolean column."""
        return pc.not_equal(self.column("status"), int(EntryStatus.DELETED))

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        columns = (*self.columns.values(), *self.partition.values())
        return sum(int(column.nbytes) for column in columns) + self.metrics.nbytes

    @property
    def partition_table(self) -> Any:
        """The partition tuples as a table, with the names of the fields; null where the manifest lacks one."""
        fields = self.partition_type.fields
        arrays = [
            self.partition.get(field.field_id, pa.nulls(self.length, value_array_type(field.field_type)))
            for field in fields
        ]
        return pa.Table.from_arrays(arrays, [field.name for field in fields])

    # -- statistics of one field for all files, as `expressions.facts.Statistics` wants them

    @property
    def size(self) -> int:
        """How many entries there are."""
        return self.length

    @property
    def record_counts(self) -> Any:
        """Rows of each file."""
        return self.column("record_count")

    def value_counts(self, field_id: int) -> Any:
        """Values of a field, nulls and NaNs among them; null where not known."""
        return self.metrics.column(Metric.VALUE_COUNTS, field_id)

    def null_counts(self, field_id: int) -> Any:
        """Nulls of a field; null where not known."""
        return self.metrics.column(Metric.NULL_VALUE_COUNTS, field_id)

    def nan_counts(self, field_id: int) -> Any:
        """NaNs of a field; null where not known."""
        return self.metrics.column(Metric.NAN_VALUE_COUNTS, field_id)

    def lower_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        """Lower bounds of a field as values of its type; None if some are no such values, which makes all unknown."""
        return bound_values(self.metrics.column(Metric.LOWER_BOUNDS, field_id), kind)

    def upper_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        """Upper bounds of a field as values of its type; None if some are no such values, which makes all unknown."""
        return bound_values(self.metrics.column(Metric.UPPER_BOUNDS, field_id), kind)

    # -- rows

    def take(self, indices: Any) -> "ManifestColumns":
        """The entries at these positions."""
        places = indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64())
        return replace(
            self,
            length=len(places),
            columns=take_columns(self.columns, places),
            partition=take_columns(self.partition, places),
            metrics=self.metrics.take(places),
        )

    def filter(self, mask: Any) -> "ManifestColumns":
        """The entries for which the mask is true."""
        return self.take(pc.indices_nonzero(pa.array(mask) if isinstance(mask, np.ndarray) else mask))

    def slice(self, start: int, length: int | None = None) -> "ManifestColumns":
        """A run of entries."""
        count = min(self.length - start, self.length if length is None else length)
        return replace(
            self,
            length=count,
            columns={name: column.slice(start, count) for name, column in self.columns.items()},
            partition={field_id: column.slice(start, count) for field_id, column in self.partition.items()},
            metrics=self.metrics.slice(start, count),
        )

    def with_columns(self, **columns: Any) -> "ManifestColumns":
        """The same entries with some columns replaced."""
        return replace(self, columns={**self.columns, **columns})

    def file_at(self, index: int) -> DataFile:
        """The file of one entry."""
        return next(self.files([index]))

    def entry_at(self, index: int) -> ManifestEntry:
        """One entry."""
        return next(self.entries([index]))

    def files(self, indices: Iterable[int] | None = None) -> Iterator[DataFile]:
        """The files of some entries, of all if none are named."""
        return (entry.data_file for entry in self.entries(indices))

    def entries(self, indices: Iterable[int] | None = None) -> Iterator[ManifestEntry]:
        """Some entries, all if none are named. Columns that were not decoded are left at their defaults."""
        chosen = self if indices is None else self.take(list(indices))
        return _entries(chosen)


_OF_ENTRY = ("snapshot_id", "sequence_number", "file_sequence_number")
_LISTS = ("split_offsets", "equality_ids")
_PLAIN = tuple(name for name in COLUMN_TYPES if name not in (*_OF_ENTRY, *_LISTS, "status", "content", "file_format"))
_DEFAULTS = {"file_path": "", "file_size_in_bytes": 0}


def _entries(source: ManifestColumns) -> Iterator[ManifestEntry]:
    kinds = [(field.field_id, field.field_type) for field in source.partition_type.fields]
    tuples = [
        to_internal(source.partition[field_id], kind) if field_id in source.partition else repeat(None)
        for field_id, kind in kinds
    ]
    # Each name of a file's field with its values, row by row.
    values: dict[str, Iterable[Any]] = {
        name: source.columns[name].to_pylist() if name in source.columns else repeat(_DEFAULTS.get(name))
        for name in _PLAIN
    }
    for name in _LISTS:
        values[name] = (None if each is None else tuple(each) for each in _listed(source, name))
    values["file_format"] = [(each or "").lower() for each in _listed(source, "file_format")]
    values["content"] = [_CONTENTS[each or 0] for each in _listed(source, "content")]
    values["partition"] = zip(*tuples, strict=False) if tuples else repeat(())
    values["spec_id"] = repeat(source.spec_id)
    for metric in Metric:
        values[metric.value] = _dicts(source.metrics.as_map(metric))
    names = tuple(values)
    files = zip(*values.values(), strict=False)
    numbers = zip(*(_listed(source, name) for name in ("status", *_OF_ENTRY)), strict=True)
    for (status, *rest), row in zip(numbers, files, strict=False):
        yield ManifestEntry(_STATUSES[status], DataFile(**dict(zip(names, row, strict=True))), *rest)


_STATUSES = tuple(EntryStatus)
_CONTENTS = tuple(FileContent)


def _listed(source: ManifestColumns, name: str) -> list[Any]:
    found: list[Any] = source.column(name).to_pylist()
    return found


def _dicts(column: Any) -> Iterator[dict[int, Any]]:
    """The maps of a column; none where it is null."""
    if not len(column):
        return
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = column.keys.slice(first, last - first).to_pylist()
    items = column.items.slice(first, last - first).to_pylist()
    known = column.is_valid().to_pylist() if column.null_count else repeat(True)
    for is_known, start, end in zip(
        known, *((offsets[:-1] - first).tolist(), (offsets[1:] - first).tolist()), strict=False
    ):
        yield dict(zip(keys[start:end], items[start:end], strict=True)) if is_known else {}


def columns_of(entries: Iterable[ManifestEntry], partition_type: StructType, spec_id: int = 0) -> ManifestColumns:
    """Entries as columns, for writing; every file must be of the one spec."""
    rows = list(entries)
    found = columns_of_files([row.data_file for row in rows], partition_type, spec_id)
    return found.with_columns(**_columns(("status", *_OF_ENTRY), rows))


def columns_of_files(files: Sequence[DataFile], partition_type: StructType, spec_id: int = 0) -> ManifestColumns:
    """Files as columns, without what entries say of them; every file must be of the one spec."""
    width = len(partition_type.fields)
    widths = map(len, map(attrgetter("partition"), files))
    if {*map(attrgetter("spec_id"), files)} - {spec_id} or {*widths} - {width}:
        wrong = next(each for each in files if each.spec_id != spec_id or len(each.partition) != width)
        raise InvalidInputError(
            f"file {wrong.file_path!r} is of spec {wrong.spec_id} with {len(wrong.partition)} partition values; "
            f"this manifest is of spec {spec_id} with {width}"
        )
    columns = _columns((name for name in COLUMN_TYPES if name not in ("status", *_OF_ENTRY)), files)
    try:
        maps = {metric: _map_column(metric, files) for metric in Metric}
    except _NO_COLUMN as error:
        raise InvalidInputError(f"a file holds metrics that manifests cannot: {error}") from error
    partition = {
        field.field_id: from_internal([file.partition[place] for file in files], field.field_type)
        for place, field in enumerate(partition_type.fields)
        if not isinstance(field.field_type, UnknownType)
    }
    return ManifestColumns(len(files), columns, partition_type, partition, MetricColumns(len(files), maps), spec_id)


_NO_COLUMN = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What comes of values that are not of the type of a column."""


def _columns(names: Iterable[str], holders: Sequence[ManifestEntry | DataFile]) -> dict[str, Any]:
    try:
        return {name: _column(name, holders) for name in names}
    except _NO_COLUMN as error:
        raise InvalidInputError(f"an entry holds a value that manifests cannot: {error}") from error


def _column(name: str, holders: Sequence[ManifestEntry | DataFile]) -> Any:
    values = list(map(attrgetter(name), holders))
    kind = column_type(name)
    # Most columns of new files hold one value only, or none.
    return pa.repeat(pa.scalar(values[0], kind), len(values)) if _is_constant(values) else pa.array(values, kind)


def _is_constant(values: list[Any]) -> bool:
    return bool(values) and values.count(values[0]) == len(values)


_VALUES = methodcaller("values")


def _map_column(metric: Metric, files: Sequence[DataFile]) -> Any:
    maps: list[Mapping[int, Any]] = list(map(attrgetter(metric.value), files))
    kind = map_type(metric)
    offsets = _starts(list(map(len, maps)))
    if not offsets[-1]:
        return pa.nulls(len(maps), kind)
    keys, values = _shared_keys(maps, offsets) or _own_keys(maps)
    items = _bytes_array(values) if metric.is_bound else pa.array(np.frombuffer(array("q", values), np.int64))
    pairs = pa.StructArray.from_arrays([pa.array(keys), items], fields=[kind.key_field, kind.item_field])
    # An empty map says no more than none at all.
    is_empty = np.diff(offsets) == 0
    bitmap = pa.py_buffer(np.packbits(~is_empty, bitorder="little")) if is_empty.any() else None
    return pa.Array.from_buffers(kind, len(maps), [bitmap, pa.py_buffer(offsets)], children=[pairs])


def _own_keys(maps: Sequence[Mapping[int, Any]]) -> tuple[Any, list[Any]]:
    """The keys and the values of all maps, one after the other."""
    keys = np.frombuffer(array("i", chain.from_iterable(maps)), np.int32)
    return keys, list(chain.from_iterable(map(_VALUES, maps)))


def _shared_keys(maps: Sequence[Mapping[int, Any]], offsets: Any) -> tuple[Any, list[Any]] | None:
    """The same if all maps have the keys of the first, as files of a table mostly do; its order is taken for all."""
    first = list(maps[0])
    # Maps of other kinds may have an answer for a key that they do not hold.
    if not first or offsets[-1] != len(first) * len(maps) or set(map(type, maps)) != {dict}:
        return None
    if (np.diff(offsets) != len(first)).any():
        return None
    try:
        found = map(itemgetter(*first), maps)
        values = list(found) if len(first) == 1 else list(chain.from_iterable(found))
    except KeyError:
        return None
    return np.tile(np.frombuffer(array("i", first), np.int32), len(maps)), values


def _bytes_array(values: list[bytes]) -> Any:
    data = b"".join(values)
    buffers = [None, pa.py_buffer(_starts(list(map(len, values)))), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _starts(lengths: list[int]) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """Where each of these lengths starts when they follow each other, and where the last one ends."""
    total = sum(lengths)
    if total > np.iinfo(np.int32).max:
        raise OverflowError(f"metrics of {total} values or bytes are too many for one manifest")
    if _is_constant(lengths):
        return np.arange(len(lengths) + 1, dtype=np.int32) * np.int32(lengths[0])
    starts = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(np.frombuffer(array("i", lengths), np.int32), dtype=np.int32, out=starts[1:])
    return starts
