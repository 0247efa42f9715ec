"""A manifest in memory: Arrow columns with one row for each entry, and values made only of the rows that are asked for."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.manifests.arrow_values import bound_values, from_internal, to_internal, value_array_type
from icefloe.manifests.entry_codec import COLUMN_TYPES
from icefloe.manifests.metrics import (
    MetricColumns,
    joined_columns,
    joined_metrics,
    list_offsets,
    map_type,
    take_columns,
)
from icefloe.manifests.values import DataFile, EntryStatus, FileContent, ManifestEntry, Metric
from icefloe.schema import IcebergType, StructType, arrow_value_type, types


def column_type(name: str) -> pa.DataType:
    """The Arrow type of a column of a manifest."""
    iceberg = COLUMN_TYPES[name]
    if isinstance(iceberg, types.ListType):
        return pa.list_(arrow_value_type(iceberg.element_type))
    return arrow_value_type(iceberg)


@dataclass(frozen=True, slots=True, eq=False)
class ManifestColumns:
    """The entries of one manifest (or of several of one spec), in columns.

    `columns` are those of `COLUMN_TYPES` that were asked for, `partition` is by partition field id, of the types that
    `partition_type` says. `header` is the manifest's own key-value metadata.
    """

    length: int
    columns: Mapping[str, pa.Array]
    partition_type: StructType
    partition: Mapping[int, pa.Array]
    metrics: MetricColumns
    spec_id: int = 0
    location: str = ""
    header: Mapping[str, str] | None = None

    def __len__(self) -> int:
        return self.length

    def column(self, name: str) -> pa.Array:
        """A column by name; null in every row if the manifest lacks it."""
        column = self.columns.get(name)
        if column is not None:
            return column
        if name not in COLUMN_TYPES:
            raise InvalidInputError(f"manifests have no column {name!r}; columns are {', '.join(COLUMN_TYPES)}")
        return pa.nulls(self.length, column_type(name))

    @property
    def is_live(self) -> pa.Array:
        """Which entries are part of the snapshot, as a boolean column."""
        return pc.not_equal(self.column("status"), int(EntryStatus.DELETED))

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        columns = (*self.columns.values(), *self.partition.values())
        return sum(int(column.nbytes) for column in columns) + self.metrics.nbytes

    @property
    def partition_table(self) -> pa.Table:
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
    def record_counts(self) -> pa.Array:
        """Rows of each file."""
        return self.column("record_count")

    def value_counts(self, field_id: int) -> pa.Array:
        """Values of a field, nulls and NaNs among them; null where not known."""
        return self.metrics.column(Metric.VALUE_COUNTS, field_id)

    def null_counts(self, field_id: int) -> pa.Array:
        """Nulls of a field; null where not known."""
        return self.metrics.column(Metric.NULL_VALUE_COUNTS, field_id)

    def nan_counts(self, field_id: int) -> pa.Array:
        """NaNs of a field; null where not known."""
        return self.metrics.column(Metric.NAN_VALUE_COUNTS, field_id)

    def lower_bounds(self, field_id: int, field_type: IcebergType) -> pa.Array | None:
        """Lower bounds of a field as values of its type; None if some are no such values, which makes all unknown."""
        return bound_values(self.metrics.column(Metric.LOWER_BOUNDS, field_id), field_type)

    def upper_bounds(self, field_id: int, field_type: IcebergType) -> pa.Array | None:
        """Upper bounds of a field as values of its type; None if some are no such values, which makes all unknown."""
        return bound_values(self.metrics.column(Metric.UPPER_BOUNDS, field_id), field_type)

    # -- rows

    def take(self, indices: pa.Array | Sequence[int]) -> "ManifestColumns":
        """The entries at these positions."""
        rows = indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64())
        return replace(
            self,
            length=len(rows),
            columns=take_columns(self.columns, rows),
            partition=take_columns(self.partition, rows),
            metrics=self.metrics.take(rows),
        )

    def filter(self, mask: pa.Array | npt.NDArray[np.bool_]) -> "ManifestColumns":
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

    def with_columns(self, **columns: pa.Array) -> "ManifestColumns":
        """The same entries with some columns replaced."""
        return replace(self, columns={**self.columns, **columns})

    def resolved(self, table_location: str | None) -> "ManifestColumns":
        """The entries with every path a location (spec: Path Resolution); nothing changes without a table location."""
        return self if table_location is None else self._with_paths(_resolved, table_location)

    @property
    def has_relative_paths(self) -> bool:
        """Whether a path of an entry is no location by itself."""
        names = self.columns.keys() & {"file_path", "referenced_data_file"}
        absolute = (pc.match_substring_regex(self.columns[name], _ABSOLUTE) for name in names)
        return not all(pc.all(each, min_count=0).as_py() for each in absolute)

    def relativized(self, table_location: str) -> "ManifestColumns":
        """The entries with paths under the table location cut short (spec: Path Relativization)."""
        return self._with_paths(_relativized, table_location)

    def _with_paths(self, change: Callable[[pa.Array, str], pa.Array], table_location: str) -> "ManifestColumns":
        names = self.columns.keys() & {"file_path", "referenced_data_file"}
        return self.with_columns(**{name: change(self.columns[name], table_location) for name in names})

    def file_at(self, index: int) -> DataFile:
        """The file of one entry."""
        return next(self.files([index]))

    def files(self, indices: Iterable[int] | None = None) -> Iterator[DataFile]:
        """The files of some entries, of all if none are named."""
        return (entry.data_file for entry in self.entries(indices))

    def entries(self, indices: Iterable[int] | None = None) -> Iterator[ManifestEntry]:
        """Some entries, all if none are named. Columns that were not decoded are left at their defaults."""
        return _entries(self if indices is None else self.take(list(indices)))


def joined(parts: Sequence[ManifestColumns]) -> ManifestColumns | None:
    """The entries of several manifests as those of one; None if they are not of one spec and one partition type."""
    first = parts[0]
    struct = first.partition_type
    if any(part.spec_id != first.spec_id or part.partition_type != struct for part in parts):
        return None
    types_by_id = {field.field_id: value_array_type(field.field_type) for field in struct.fields}
    return ManifestColumns(
        sum(map(len, parts)),
        joined_columns([(part.columns, len(part)) for part in parts], column_type),
        struct,
        joined_columns([(part.partition, len(part)) for part in parts], types_by_id.__getitem__),
        joined_metrics([part.metrics for part in parts]),
        first.spec_id,
        f"{first.location} and {len(parts) - 1} others",
    )


_ABSOLUTE = r"^[A-Za-z][A-Za-z0-9+.\-]*:"


def _resolved(paths: pa.Array, table_location: str) -> pa.Array:
    # Most paths are under the table: looking at their start is much cheaper than looking for a scheme.
    is_plain = pc.starts_with(paths, f"{table_location}/")
    if pc.all(is_plain, min_count=0).as_py():
        return paths
    is_relative = pc.invert(pc.or_(is_plain, pc.match_substring_regex(paths, _ABSOLUTE)))
    joined = pc.binary_join_element_wise(pa.scalar(table_location), paths, "/")
    return pc.if_else(pc.fill_null(is_relative, False), joined, paths)


def _relativized(paths: pa.Array, table_location: str) -> pa.Array:
    prefix = f"{table_location}/"
    rest = pc.utf8_slice_codeunits(paths, len(prefix))
    # What is left must not read as a location of its own.
    is_under = pc.and_(pc.starts_with(paths, prefix), pc.match_substring_regex(paths, _ABSOLUTE))
    is_safe = pc.and_(pc.not_equal(rest, ""), pc.invert(pc.match_substring_regex(rest, _ABSOLUTE)))
    return pc.if_else(pc.fill_null(pc.and_(is_under, is_safe), False), rest, paths)


_OF_ENTRY = ("snapshot_id", "sequence_number", "file_sequence_number")
_LISTS = ("split_offsets", "equality_ids")
_PLAIN = tuple(name for name in COLUMN_TYPES if name not in (*_OF_ENTRY, *_LISTS, "status", "content", "file_format"))
_DEFAULTS = {"file_path": "", "file_size_in_bytes": 0}


def _entries(source: ManifestColumns) -> Iterator[ManifestEntry]:
    tuples = [
        to_internal(source.partition[field.field_id], field.field_type)
        if field.field_id in source.partition
        else repeat(None)
        for field in source.partition_type.fields
    ]
    # Each name of a file's field with its values, row by row.
    values: dict[str, Iterable[Any]] = {
        name: source.columns[name].to_pylist() if name in source.columns else repeat(_DEFAULTS.get(name))
        for name in _PLAIN
    }
    for name in _LISTS:
        values[name] = (None if numbers is None else tuple(numbers) for numbers in source.column(name).to_pylist())
    values["file_format"] = [(name or "").lower() for name in source.column("file_format").to_pylist()]
    values["content"] = [_CONTENTS[number or 0] for number in source.column("content").to_pylist()]
    values["partition"] = zip(*tuples, strict=False) if tuples else repeat(())
    values["spec_id"] = repeat(source.spec_id)
    for metric in Metric:
        values[metric.value] = _dicts(source.metrics.as_map(metric))
    names = tuple(values)
    files = zip(*values.values(), strict=False)
    numbers = zip(*(source.column(name).to_pylist() for name in ("status", *_OF_ENTRY)), strict=True)
    for (status, *rest), row in zip(numbers, files, strict=False):
        yield ManifestEntry(_STATUSES[status], DataFile(**dict(zip(names, row, strict=True))), *rest)


_STATUSES = tuple(EntryStatus)
_CONTENTS = tuple(FileContent)


def _dicts(column: pa.MapArray) -> Iterator[dict[int, int | bytes]]:
    """The maps of a column; none where it is null."""
    if not len(column):
        return
    offsets = list_offsets(column)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = column.keys.slice(first, last - first).to_pylist()
    items = column.items.slice(first, last - first).to_pylist()
    known = column.is_valid().to_pylist() if column.null_count else repeat(True)
    ends = (offsets - first).tolist()
    for is_known, (start, end) in zip(known, pairwise(ends), strict=False):
        yield dict(zip(keys[start:end], items[start:end], strict=True)) if is_known else {}


def columns_of(entries: Iterable[ManifestEntry], partition_type: StructType, spec_id: int = 0) -> ManifestColumns:
    """Entries as columns, for writing; every file must be of the one spec."""
    rows = list(entries)
    files = columns_of_files([row.data_file for row in rows], partition_type, spec_id)
    return files.with_columns(**_columns(("status", *_OF_ENTRY), rows))


def columns_of_files(files: Sequence[DataFile], partition_type: StructType, spec_id: int = 0) -> ManifestColumns:
    """Files as columns, without what entries say of them; every file must be of the one spec."""
    width = len(partition_type.fields)
    widths = map(len, map(attrgetter("partition"), files))
    if {*map(attrgetter("spec_id"), files)} - {spec_id} or {*widths} - {width}:
        wrong = next(file for file in files if file.spec_id != spec_id or len(file.partition) != width)
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
        field.field_id: from_internal([file.partition[index] for file in files], field.field_type)
        for index, field in enumerate(partition_type.fields)
        if not isinstance(field.field_type, types.UnknownType)
    }
    return ManifestColumns(len(files), columns, partition_type, partition, MetricColumns(len(files), maps), spec_id)


_NO_COLUMN = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What comes of values that are not of the type of a column."""


def _columns(names: Iterable[str], holders: Sequence[ManifestEntry | DataFile]) -> dict[str, pa.Array]:
    try:
        return {name: _column(name, holders) for name in names}
    except _NO_COLUMN as error:
        raise InvalidInputError(f"an entry holds a value that manifests cannot: {error}") from error


def _column(name: str, holders: Sequence[ManifestEntry | DataFile]) -> pa.Array:
    values = list(map(attrgetter(name), holders))
    arrow_type = column_type(name)
    # Most columns of new files hold one value only, or none.
    if _is_constant(values):
        return pa.repeat(pa.scalar(values[0], arrow_type), len(values))
    return pa.array(values, arrow_type)


def _is_constant(values: Sequence[object]) -> bool:
    return bool(values) and values.count(values[0]) == len(values)


KeysAndValues = tuple[npt.NDArray[np.int32], list[Any]]


def _map_column(metric: Metric, files: Sequence[DataFile]) -> pa.MapArray:
    maps: list[Mapping[int, Any]] = list(map(attrgetter(metric.value), files))
    arrow_type = map_type(metric)
    if not any(maps):
        return pa.nulls(len(maps), arrow_type)
    offsets = _starts(list(map(len, maps)))
    keys, values = _shared_keys(maps, offsets) or _own_keys(maps)
    items = _bytes_array(values) if metric.is_bound else pa.array(np.frombuffer(array("q", values), np.int64))
    pairs = pa.StructArray.from_arrays([pa.array(keys), items], fields=[arrow_type.key_field, arrow_type.item_field])
    # An empty map says no more than none at all.
    is_empty = np.diff(offsets) == 0
    bitmap = pa.py_buffer(np.packbits(~is_empty, bitorder="little")) if is_empty.any() else None
    return pa.Array.from_buffers(arrow_type, len(maps), [bitmap, pa.py_buffer(offsets)], children=[pairs])


def _own_keys(maps: Sequence[Mapping[int, Any]]) -> KeysAndValues:
    """The keys and the values of all maps, one after the other."""
    keys = np.frombuffer(array("i", chain.from_iterable(maps)), np.int32)
    return keys, list(chain.from_iterable(map(methodcaller("values"), maps)))


def _shared_keys(maps: Sequence[Mapping[int, Any]], offsets: npt.NDArray[np.int32]) -> KeysAndValues | None:
    """The same if all maps have the keys of the first, as files of a table mostly do; its order is taken for all."""
    first = list(maps[0])
    # Maps of other kinds may have an answer for a key that they do not hold.
    if not first or offsets[-1] != len(first) * len(maps) or set(map(type, maps)) != {dict}:
        return None
    if (np.diff(offsets) != len(first)).any():
        return None
    try:
        rows = map(itemgetter(*first), maps)
        values = list(rows) if len(first) == 1 else list(chain.from_iterable(rows))
    except KeyError:
        return None
    return np.tile(np.frombuffer(array("i", first), np.int32), len(maps)), values


def _bytes_array(values: list[bytes]) -> pa.Array:
    data = b"".join(values)
    buffers = [None, pa.py_buffer(_starts(list(map(len, values)))), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _starts(lengths: list[int]) -> npt.NDArray[np.int32]:
    """Where each of these lengths starts when they follow each other, and where the last one ends."""
    total = sum(lengths)
    if total > np.iinfo(np.int32).max:
        raise OverflowError(f"metrics of {total} values or bytes are too many for one manifest")
    if _is_constant(lengths):
        return np.arange(len(lengths) + 1, dtype=np.int32) * np.int32(lengths[0])
    starts = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(np.frombuffer(array("i", lengths), np.int32), dtype=np.int32, out=starts[1:])
    return starts


def decoded_columns(columns: Mapping[str, pa.Array], rows: int, location: str) -> dict[str, pa.Array]:
    """Columns as a file holds them, in the types that manifests have in memory; fail unless those of every manifest exist."""
    typed = {name: _retyped(name, column) for name, column in columns.items()}
    typed.setdefault("content", pa.array(np.zeros(rows, np.int32)))
    for name in ("status", "record_count"):
        if name not in typed or typed[name].null_count:
            raise CorruptFileError(location, f"it is not a manifest: an entry has no {name}")
    if "file_path" in typed and typed["file_path"].null_count:
        raise CorruptFileError(location, "an entry has no file_path")
    for name in ("status", "content"):
        smallest, largest = pc.min_max(typed[name]).values()
        if rows and not 0 <= smallest.as_py() <= largest.as_py() <= 2:
            raise CorruptFileError(location, f"an entry has an unknown {name}, below 0 or above 2")
    return typed


def _retyped(name: str, column: pa.Array) -> pa.Array:
    """Ints become longs where a wider one is due."""
    target = column_type(name)
    if name == "content" and column.null_count:
        column = pc.fill_null(column, 0)
    return column if column.type == target else column.cast(target)
