"""Which partitions files are in, for whole columns: partition types, sets of partitions, and which manifests may hold them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.manifests import ManifestColumns, ManifestFile, MetricColumns, value_array_type
from icefloe.schema import decode_array, is_promotion, types

Mask = npt.NDArray[np.bool_]

_MOST_CODES = 2**62


def partition_table(columns: ManifestColumns) -> Any:
    """The partition tuples as an Arrow table, for predicates on them."""
    arrays = [_partition_column(columns, field.field_id) for field in columns.partition_type.fields]
    names = [field.name for field in columns.partition_type.fields]
    if not arrays:
        # A table without columns does not know its number of rows.
        arrays, names = [pa.nulls(len(columns))], [""]
    return pa.table(arrays, names=names)


def partition_codes(parts: Sequence[ManifestColumns]) -> list[npt.NDArray[np.int64]]:
    """A number for the partition of each file, equal for equal partitions over all parts, which are of one spec."""
    lengths = [len(part) for part in parts]
    codes = np.zeros(sum(lengths), np.int64)
    count = 1
    for field in parts[0].partition_type.fields:
        numbers, size = _numbered(parts, field.field_id)
        if count > _MOST_CODES // size:
            _, codes = np.unique(codes, return_inverse=True)
            count = int(codes.max(initial=0)) + 1
        codes = codes * size + numbers
        count *= size
    return np.split(codes, np.cumsum(lengths)[:-1])


def _numbered(parts: Sequence[ManifestColumns], field_id: int) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each value of a field, 0 for null, and how many there are; values of unlike types are never equal."""
    kinds = _widened([_kind(part, field_id) for part in parts])
    found: list[npt.NDArray[np.int64]] = [np.zeros(len(part), np.int64) for part in parts]
    size = 1
    for kind in dict.fromkeys(each for each in kinds if not isinstance(each, types.UnknownType)):
        places = [place for place, each in enumerate(kinds) if each == kind]
        column = _concat([parts[place].partition[field_id].cast(value_array_type(kind)) for place in places])
        encoded = _canonical(column, kind).dictionary_encode()
        numbers = pc.fill_null(pc.add(encoded.indices.cast(pa.int64()), size), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum([len(parts[place]) for place in places])
        for place, members in zip(places, np.split(numbers, ends[:-1]), strict=True):
            found[place] = members
        size += len(encoded.dictionary)
    return np.concatenate(found), size


def _widened(kinds: list[types.IcebergType]) -> list[types.IcebergType]:
    """The types, each as the one among them that it can be promoted to."""
    different = list(dict.fromkeys(kinds))
    known = [each for each in different if not isinstance(each, types.UnknownType)]
    wider = {
        each: next((other for other in known if other != each and is_promotion(each, other)), each) for each in known
    }
    return [wider.get(each, each) for each in kinds]


def _kind(columns: ManifestColumns, field_id: int) -> types.IcebergType:
    if field_id not in columns.partition:
        return types.UnknownType()
    return next(each.field_type for each in columns.partition_type.fields if each.field_id == field_id)


def partition_order(columns: ManifestColumns) -> Any:
    """The positions of the files sorted by their partition values, nulls last."""
    fields = [each for each in columns.partition_type.fields if each.field_id in columns.partition]
    if not fields:
        return pa.array(np.arange(len(columns)))
    keys = {str(each.field_id): _ordered(columns.partition[each.field_id]) for each in fields}
    return pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys])


def count_partitions(groups: Iterable[ManifestColumns]) -> int:
    """How many different partitions the files are in; equal tuples of different specs are different partitions."""
    by_spec: dict[int, list[ManifestColumns]] = {}
    for columns in groups:
        if len(columns):
            by_spec.setdefault(columns.spec_id, []).append(columns)
    return sum(len(np.unique(np.concatenate(partition_codes(parts)))) for parts in by_spec.values())


@dataclass(frozen=True, slots=True, eq=False)
class PartitionSet:
    """Partitions of any specs: those of the files in `members`, for each spec one group of each type of partitions."""

    members: dict[int, tuple[ManifestColumns, ...]]

    @staticmethod
    def of(groups: Iterable[ManifestColumns]) -> "PartitionSet":
        """The partitions that these files are in."""
        found: dict[int, list[ManifestColumns]] = {}
        for columns in groups:
            if len(columns):
                found.setdefault(columns.spec_id, []).append(only_partitions(columns))
        return PartitionSet(
            {
                spec_id: tuple(_distinct(concat_partitions(alike)) for alike in by_partition_type(parts))
                for spec_id, parts in found.items()
            }
        )

    def __bool__(self) -> bool:
        return bool(self.members)

    def __len__(self) -> int:
        return sum(len(each) for groups in self.members.values() for each in groups)

    def mask(self, columns: ManifestColumns) -> Mask:
        """Which of the files are in one of the partitions."""
        own = self.members.get(columns.spec_id)
        if own is None:
            return np.zeros(len(columns), bool)
        *mine, theirs = partition_codes([*own, only_partitions(columns)])
        return np.isin(theirs, np.concatenate(mine))

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether the manifest's summaries allow for a file in one of the partitions."""
        return any(_may_be_in(each, manifest) for each in self.members.get(manifest.partition_spec_id, ()))


def by_partition_type(parts: Sequence[ManifestColumns]) -> list[list[ManifestColumns]]:
    """The parts, which are of one spec, those together whose partition values are of the same types."""
    found: list[list[ManifestColumns]] = []
    for part in parts:
        alike = next((group for group in found if _are_alike(group[0].partition_type, part.partition_type)), None)
        if alike is None:
            found.append([part])
        else:
            alike.append(part)
    return found


def _are_alike(one: types.StructType, other: types.StructType) -> bool:
    return all(
        mine.field_type == theirs.field_type
        or isinstance(mine.field_type, types.UnknownType)
        or isinstance(theirs.field_type, types.UnknownType)
        for mine, theirs in zip(one.fields, other.fields, strict=True)
    )


def _may_be_in(own: ManifestColumns, manifest: ManifestFile) -> bool:
    summaries = manifest.partitions
    fields = own.partition_type.fields
    if summaries is None or len(summaries) != len(fields):
        return True
    possible = np.ones(len(own), bool)
    for field, summary in zip(fields, summaries, strict=True):
        column = _partition_column(own, field.field_id)
        if pa.types.is_null(column.type) or isinstance(
            field.field_type, types.FloatType | types.DoubleType | types.UUIDType
        ):
            continue
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        within = _within(column, summary.lower_bound, summary.upper_bound, field.field_type)
        possible &= np.where(is_null, summary.contains_null, within)
    return bool(possible.any())


def only_partitions(columns: ManifestColumns) -> ManifestColumns:
    """The files with nothing but their partitions."""
    return replace(columns, columns={}, metrics=MetricColumns(len(columns)), location="", header=None)


def concat_partitions(parts: Sequence[ManifestColumns]) -> ManifestColumns:
    """The partitions of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    length = sum(len(part) for part in parts)
    columns = {
        field.field_id: _concat([_partition_column(part, field.field_id) for part in parts])
        for field in first.partition_type.fields
    }
    return replace(first, length=length, partition=columns, metrics=MetricColumns(length))


def _distinct(columns: ManifestColumns) -> ManifestColumns:
    _, places = np.unique(partition_codes([columns])[0], return_index=True)
    return columns if len(places) == len(columns) else columns.take(np.sort(places))


def _partition_column(columns: ManifestColumns, field_id: int) -> Any:
    found = columns.partition.get(field_id)
    return pa.nulls(len(columns)) if found is None else found


def _concat(arrays: list[Any]) -> Any:
    if len(arrays) == 1:
        return arrays[0]
    kind = next((each.type for each in arrays if not pa.types.is_null(each.type)), pa.null())
    try:
        return pa.concat_arrays([each if each.type == kind else each.cast(kind) for each in arrays])
    except pa.ArrowException as error:
        raise InvalidValueError(f"partition values of one field are of different types: {error}") from error


def _canonical(column: Any, kind: types.IcebergType) -> Any:
    """Values that are equal exactly if they are one partition: NaNs are one, -0.0 and 0.0 are two (spec: Scan Planning)."""
    if not isinstance(kind, types.FloatType | types.DoubleType) or isinstance(kind, types.UnknownType):
        return column
    values = column.to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan
    bits = pa.array(values.view(np.int32 if values.dtype == np.float32 else np.int64))
    return pc.if_else(column.is_valid(), bits, pa.scalar(None, bits.type))


def _within(column: Any, lower: bytes | None, upper: bytes | None, kind: types.IcebergType) -> Mask:
    found = np.ones(len(column), bool)
    if lower is None and upper is None:
        # Bounds are left out when all values are null or NaN.
        return ~found
    for bound, compare in ((lower, pc.greater_equal), (upper, pc.less_equal)):
        if bound is not None:
            try:
                limit = decode_array(pa.array([bound], pa.binary()), kind)
            except InvalidValueError:
                # The manifest may be older than the column, which replaced one of another type.
                continue
            answer = compare(_ordered(column), _ordered(limit)[0])
            found &= pc.fill_null(answer, True).to_numpy(zero_copy_only=False)
    return found


def _ordered(column: Any) -> Any:
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
