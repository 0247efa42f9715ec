"""Which paths and partitions files have, for whole columns: sets of partitions, and which manifests may hold them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf
from icefloe.schema import decode_array, is_promotion, types
from icefloe.storage import identities

Mask = npt.NDArray[np.bool_]

_MOST_CODES = 2**62


def as_mask(condition: pa.Array) -> Mask:
    """A boolean column as a mask; null is false."""
    mask: Mask = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return mask


def normal_paths(parts: Iterable[mf.ManifestColumns], name: str = "file_path") -> pa.Array:
    """The paths of all files, in their normal form; those in another column if that is named."""
    columns = [part.column(name) for part in parts]
    return identities(pa.concat_arrays(columns)) if columns else pa.array([], pa.string())


def first_path(columns: mf.ManifestColumns, mask: Mask) -> str:
    """The path of the first file that the mask marks."""
    path: str = columns.column("file_path")[int(np.flatnonzero(mask)[0])].as_py()
    return path


def partition_codes(parts: Sequence[mf.ManifestColumns]) -> list[npt.NDArray[np.int64]]:
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


def _numbered(parts: Sequence[mf.ManifestColumns], field_id: int) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each value of a field, 0 for null, and how many there are; values of unlike types are never equal."""
    value_types = _widened([_value_type(part, field_id) for part in parts])
    numbered = [np.zeros(len(part), np.int64) for part in parts]
    size = 1
    for value_type in dict.fromkeys(each for each in value_types if not isinstance(each, types.UnknownType)):
        indices = [index for index, each in enumerate(value_types) if each == value_type]
        column = _concat([parts[index].partition[field_id].cast(mf.value_array_type(value_type)) for index in indices])
        encoded = _canonical(column, value_type).dictionary_encode()
        numbers = pc.fill_null(pc.add(encoded.indices.cast(pa.int64()), size), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum([len(parts[index]) for index in indices])
        for index, members in zip(indices, np.split(numbers, ends[:-1]), strict=True):
            numbered[index] = members
        size += len(encoded.dictionary)
    return np.concatenate(numbered), size


def _widened(value_types: list[types.IcebergType]) -> list[types.IcebergType]:
    """The types, each as the one among them that it can be promoted to."""
    known = [each for each in dict.fromkeys(value_types) if not isinstance(each, types.UnknownType)]
    wider = {
        each: next((other for other in known if other != each and is_promotion(each, other)), each) for each in known
    }
    return [wider.get(each, each) for each in value_types]


def _value_type(columns: mf.ManifestColumns, field_id: int) -> types.IcebergType:
    if field_id not in columns.partition:
        return types.UnknownType()
    return next(field.field_type for field in columns.partition_type.fields if field.field_id == field_id)


def partition_order(columns: mf.ManifestColumns, positions: Sequence[int]) -> pa.Array:
    """The positions of the files sorted by their partition values, fields in this order, nulls last."""
    fields = columns.partition_type.fields
    ids = (fields[position].field_id for position in positions)
    held = columns.partition
    field_ids = [each for each in ids if each in held and not pa.types.is_null(held[each].type)]
    if not field_ids:
        return pa.array(np.arange(len(columns)))
    keys = {str(field_id): _ordered(columns.partition[field_id]) for field_id in field_ids}
    return pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys])


def count_partitions(groups: Iterable[mf.ManifestColumns]) -> int:
    """How many different partitions the files are in; equal tuples of different specs are different partitions."""
    return sum(len(np.unique(np.concatenate(partition_codes(parts)))) for parts in _by_spec(groups).values())


def _by_spec(groups: Iterable[mf.ManifestColumns]) -> dict[int, list[mf.ManifestColumns]]:
    by_spec: dict[int, list[mf.ManifestColumns]] = {}
    for columns in groups:
        if len(columns):
            by_spec.setdefault(columns.spec_id, []).append(columns)
    return by_spec


@dataclass(frozen=True, slots=True, eq=False)
class PartitionSet:
    """Partitions of any specs: those of the files in `members`, for each spec one group of each type of partitions."""

    members: dict[int, tuple[mf.ManifestColumns, ...]]

    @staticmethod
    def of(groups: Iterable[mf.ManifestColumns]) -> "PartitionSet":
        """The partitions that these files are in."""
        return PartitionSet(
            {
                spec_id: tuple(_distinct(concat_partitions(alike)) for alike in by_partition_type(parts))
                for spec_id, parts in _by_spec(groups).items()
            }
        )

    def __len__(self) -> int:
        return sum(len(columns) for groups in self.members.values() for columns in groups)

    def mask(self, columns: mf.ManifestColumns) -> Mask:
        """Which of the files are in one of the partitions."""
        own = self.members.get(columns.spec_id)
        if own is None:
            return np.zeros(len(columns), bool)
        *mine, theirs = partition_codes([*own, columns])
        return np.isin(theirs, np.concatenate(mine))

    def may_be_in(self, manifest: mf.ManifestFile) -> bool:
        """Whether the manifest's summaries allow for a file in one of the partitions."""
        return any(_may_be_in(columns, manifest) for columns in self.members.get(manifest.partition_spec_id, ()))


def by_partition_type(parts: Sequence[mf.ManifestColumns]) -> list[list[mf.ManifestColumns]]:
    """The parts, which are of one spec, those together whose partition values are of the same types."""
    groups: list[list[mf.ManifestColumns]] = []
    for part in parts:
        alike = next((group for group in groups if _are_alike(group[0].partition_type, part.partition_type)), None)
        if alike is None:
            groups.append([part])
        else:
            alike.append(part)
    return groups


def _are_alike(one: types.StructType, other: types.StructType) -> bool:
    return all(
        mine.field_type == theirs.field_type
        or isinstance(mine.field_type, types.UnknownType)
        or isinstance(theirs.field_type, types.UnknownType)
        for mine, theirs in zip(one.fields, other.fields, strict=True)
    )


def _may_be_in(own: mf.ManifestColumns, manifest: mf.ManifestFile) -> bool:
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
        is_null = as_mask(column.is_null())
        within = _within(column, summary.lower_bound, summary.upper_bound, field.field_type)
        possible &= np.where(is_null, summary.contains_null, within)
    return bool(possible.any())


def concat_partitions(parts: Sequence[mf.ManifestColumns]) -> mf.ManifestColumns:
    """The partitions of all parts, one after the other, and nothing else of the files."""
    first = parts[0]
    length = sum(len(part) for part in parts)
    columns = {
        field.field_id: _concat([_partition_column(part, field.field_id) for part in parts])
        for field in first.partition_type.fields
    }
    return mf.ManifestColumns(length, {}, first.partition_type, columns, mf.MetricColumns(length), first.spec_id)


def _distinct(columns: mf.ManifestColumns) -> mf.ManifestColumns:
    _, indices = np.unique(partition_codes([columns])[0], return_index=True)
    return columns if len(indices) == len(columns) else columns.take(np.sort(indices))


def _partition_column(columns: mf.ManifestColumns, field_id: int) -> pa.Array:
    column = columns.partition.get(field_id)
    return pa.nulls(len(columns)) if column is None else column


def _concat(arrays: list[pa.Array]) -> pa.Array:
    arrow_type = next((array.type for array in arrays if not pa.types.is_null(array.type)), pa.null())
    try:
        return pa.concat_arrays([array.cast(arrow_type) for array in arrays])
    except pa.ArrowException as error:
        raise errors.InvalidValueError(f"partition values of a field have different types: {error}") from error


def _canonical(column: pa.Array, value_type: types.IcebergType) -> pa.Array:
    """Values that are equal exactly if they are one partition: NaNs are one, -0.0 and 0.0 are two (spec: Scan Planning)."""
    if not isinstance(value_type, types.FloatType | types.DoubleType):
        return column
    values = column.to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan
    bits = pa.array(values.view(np.int32 if values.dtype == np.float32 else np.int64))
    return pc.if_else(column.is_valid(), bits, pa.scalar(None, bits.type))


def _within(column: pa.Array, lower: bytes | None, upper: bytes | None, value_type: types.IcebergType) -> Mask:
    within = np.ones(len(column), bool)
    if lower is None and upper is None:
        # Bounds are left out when all values are null or NaN.
        return ~within
    for bound, compare in ((lower, pc.greater_equal), (upper, pc.less_equal)):
        if bound is not None:
            try:
                limit = decode_array(pa.array([bound], pa.binary()), value_type)
            except errors.InvalidValueError:
                # The manifest may be older than the column, which replaced one of another type.
                continue
            answer = compare(_ordered(column), _ordered(limit)[0])
            within &= pc.fill_null(answer, True).to_numpy(zero_copy_only=False)
    return within


def _ordered(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
