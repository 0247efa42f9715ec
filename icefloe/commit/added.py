"""Which files a commit may add: checked before anything is written, put under a spec of the table, and added only once.

Inside of a commit a path is never added twice. Across commits it takes reading manifests, so that is checked where paths come
from outside, and left out by writers that name their files by a fresh UUID. Only manifests are read whose summaries allow for
a file in one of the partitions, only their paths, and each of them once for a handle of the table: from then on their paths
are known by their hashes. So a new handle reads the existing manifests, and its later commits those that others add.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.path_index import hashes_of
from icefloe.errors import InvalidInputError, InvalidPartitionSpecError, InvalidSchemaError, ValidationError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    Metric,
    columns_of_files,
    wanted,
)
from icefloe.metadata import TableMetadata, add_spec, updates as up
from icefloe.parallel import in_order
from icefloe.partitioning import PartitionField, PartitionSpec, transform_array, transforms as tr
from icefloe.schema import reserved, types
from icefloe.storage.identities import identities
from icefloe.versions import Feature, allows, require

FilesInput = Iterable[DataFile] | ManifestColumns | Sequence[ManifestColumns]
"""Files as values, or in columns: those of one spec, or several of them."""


@dataclass(frozen=True, slots=True, eq=False)
class FileGroup:
    """Files of one kind of manifest, in columns, and the spec that they were written for."""

    content: ManifestContent
    columns: ManifestColumns
    spec: PartitionSpec

    @property
    def spec_id(self) -> int:
        """The id of the spec of the files."""
        return self.columns.spec_id


def group_files(files: FilesInput, metadata: TableMetadata, content: ManifestContent) -> tuple[FileGroup, ...]:
    """The files by spec, as new entries of manifests; a file that cannot be in this table is an error."""
    groups = []
    for columns in _columns_by_spec(files, metadata):
        entries = _as_new(columns)
        _check_fit(entries, metadata)
        if content is ManifestContent.DELETES:
            check_delete_files(entries, metadata)
        elif not _is_all_data(entries):
            _refuse(
                entries, pc.not_equal(entries.column("content"), 0), "is a delete file; it was given as a data file"
            )
        groups.append(FileGroup(content, entries, metadata.spec(entries.spec_id)))
    check_distinct(groups)
    return tuple(groups)


def with_sequence_number(group: FileGroup, sequence_number: int | None) -> FileGroup:
    """The group with an explicit data sequence number in each entry; None leaves it to the commit."""
    if sequence_number is None:
        return group
    numbers = pa.array(np.full(len(group.columns), sequence_number, np.int64))
    return replace(group, columns=group.columns.with_columns(sequence_number=numbers))


def check_distinct(groups: Sequence[FileGroup]) -> None:
    """Fail if a file is named twice; deletion vectors may share a file, but not a place in it."""
    paths = [_whole_files(each.columns) for each in groups]
    if sum(map(len, paths)) <= 1:
        return
    every = identities(pa.concat_arrays(paths))
    # Much faster than counting distinct values.
    if len(pc.unique(every)) == len(every):
        return
    counted = pc.value_counts(every)
    repeated = counted.filter(pc.greater(counted.field("counts"), 1))
    path, times = repeated.field("values")[0].as_py(), repeated.field("counts")[0].as_py()
    raise InvalidInputError(f"file {path!r} is added {times} times in one commit; each file can be added once")


def check_delete_files(columns: ManifestColumns, metadata: TableMetadata) -> None:
    """Fail unless tables of this version take such delete files, whose columns are columns of the table."""
    version = metadata.format_version
    if not len(columns):
        return
    path = columns.column("file_path")[0].as_py()
    require(version, Feature.DELETE_FILES, f"adding delete file {path!r}")
    kinds = columns.column("content")
    _refuse(columns, pc.equal(kinds, int(FileContent.DATA)), "is a data file; it was given as a delete file")
    is_vector = vector_mask(columns)
    is_position = pc.equal(kinds, int(FileContent.POSITION_DELETES))
    if not allows(version, Feature.DELETION_VECTORS):
        _refuse(columns, is_vector, f"is a deletion vector; v{version} tables take position delete files")
    if not allows(version, Feature.NEW_POSITION_DELETE_FILES):
        _refuse(
            columns,
            pc.and_not(is_position, is_vector),
            f"is a position delete file; v{version} tables take deletion vectors instead",
        )
    is_equality = pc.equal(kinds, int(FileContent.EQUALITY_DELETES))
    _check_equality_ids(columns.filter(is_equality), metadata)


def vector_mask(columns: ManifestColumns) -> Any:
    """Which entries are deletion vectors, as a boolean column."""
    if _is_all_data(columns):
        return pa.array(np.zeros(len(columns), bool))
    is_position = pc.equal(columns.column("content"), int(FileContent.POSITION_DELETES))
    is_puffin = pc.equal(pc.utf8_lower(columns.column("file_format")), "puffin")
    return pc.fill_null(pc.and_(is_position, is_puffin), False)


def listed(files: Any) -> list[Any]:
    """Files that were given in any way, as a list; a lone path is a mistake, since text is a sequence too."""
    if isinstance(files, ManifestColumns):
        return [files]
    if isinstance(files, str) or not isinstance(files, Iterable):
        raise InvalidInputError(f"{files!r} is not a collection of files; give a list of them")
    return list(files)


def _whole_files(columns: ManifestColumns) -> Any:
    paths = columns.column("file_path")
    return paths if _is_all_data(columns) else pc.filter(paths, pc.invert(vector_mask(columns)))


def _is_all_data(columns: ManifestColumns) -> bool:
    """Whether there are data files only; much cheaper to tell than which ones are not."""
    kinds = columns.column("content")
    return not kinds.null_count and not kinds.to_numpy().any()


def _columns_by_spec(files: FilesInput, metadata: TableMetadata) -> Iterable[ManifestColumns]:
    given = listed(files)
    if all(isinstance(each, ManifestColumns) for each in given):
        return _checked_specs([each for each in given if isinstance(each, ManifestColumns)], metadata)
    if not all(issubclass(kind, DataFile) for kind in {*map(type, given)}):
        file = next(each for each in given if not isinstance(each, DataFile))
        raise InvalidInputError(f"{file!r} is not a DataFile; files are given as DataFile values or ManifestColumns")
    by_spec: dict[int, list[DataFile]] = {}
    if len(specs := set(map(attrgetter("spec_id"), given))) == 1:
        by_spec[specs.pop()] = given
    else:
        for file in given:
            by_spec.setdefault(file.spec_id, []).append(file)
    return [_from_values(members, metadata, spec_id) for spec_id, members in by_spec.items()]


def _from_values(files: list[DataFile], metadata: TableMetadata, spec_id: int) -> ManifestColumns:
    _check_spec(spec_id, metadata, files[0].file_path)
    return columns_of_files(files, metadata.partition_type(spec_id), spec_id)


def _checked_specs(parts: list[ManifestColumns], metadata: TableMetadata) -> Iterable[ManifestColumns]:
    for columns in parts:
        if not len(columns):
            continue
        path = columns.column("file_path")[0].as_py()
        _check_spec(columns.spec_id, metadata, path)
        wanted = metadata.partition_type(columns.spec_id)
        if [each.field_id for each in columns.partition_type.fields] != [each.field_id for each in wanted.fields]:
            raise InvalidPartitionSpecError(
                f"files such as {path!r} have the partition fields {columns.partition_type};"
                f" spec {columns.spec_id} has {wanted}"
            )
        yield columns


def _check_spec(spec_id: int, metadata: TableMetadata, path: str | None) -> None:
    if spec_id not in metadata.specs_by_id:
        known = ", ".join(map(str, metadata.specs_by_id))
        raise InvalidPartitionSpecError(
            f"file {path!r} is of partition spec {spec_id}, which the table does not have; it has {known}"
        )


def _as_new(columns: ManifestColumns) -> ManifestColumns:
    length = len(columns)
    nothing = pa.nulls(length, pa.int64())
    return columns.with_columns(
        status=pa.array(np.full(length, int(EntryStatus.ADDED), np.int32)),
        content=pc.fill_null(columns.column("content"), int(FileContent.DATA)),
        snapshot_id=nothing,
        sequence_number=nothing,
        file_sequence_number=nothing,
        # New files get their row ids from the commit; what another snapshot gave them does not count here.
        first_row_id=nothing,
    )


def _check_fit(columns: ManifestColumns, metadata: TableMetadata) -> None:
    for name in ("file_path", "file_format", "record_count", "file_size_in_bytes"):
        if columns.column(name).null_count:
            _refuse(columns, pc.is_null(columns.column(name)), f"has no {name}")
    _refuse(columns, pc.equal(columns.column("file_path"), ""), "has an empty path")
    for name in ("record_count", "file_size_in_bytes"):
        if (columns.column(name).to_numpy() < 0).any():
            _refuse(columns, pc.less(columns.column(name), 0), f"has a negative {name}")
    _check_metric_ids(columns, metadata)
    for field in metadata.spec(columns.spec_id).fields:
        _check_values(columns, field)
        _check_bounds(columns, field, metadata)


def _check_metric_ids(columns: ManifestColumns, metadata: TableMetadata) -> None:
    """Statistics are of columns that the table has, or had; others say that the file was written for another schema."""
    for metric in Metric:
        keys = columns.metrics.maps[metric].keys if metric in columns.metrics.maps else ()
        ends = pc.min_max(keys).as_py().values() if len(keys) else ()
        spread = [field_id for kind, field_id in columns.metrics.spread if kind is metric]
        if all(each is None or 0 < each <= metadata.last_column_id for each in (*ends, *spread)):
            continue
        for field_id in sorted(columns.metrics.field_ids(metric)):
            if not 0 < field_id <= metadata.last_column_id and not reserved.is_reserved_id(field_id):
                problem = (
                    f"has {metric.value} of column {field_id}, which the table never had;"
                    f" the ids of its columns are 1 to {metadata.last_column_id}"
                )
                _refuse(columns, pc.is_valid(columns.metrics.column(metric, field_id)), problem)


def _check_values(columns: ManifestColumns, field: PartitionField) -> None:
    values = columns.partition.get(field.field_id)
    if values is None:
        return
    match field.transform:
        case tr.VoidTransform():
            _refuse(columns, pc.is_valid(values), f"has a value for the partition field {field.name!r}, which is void")
        case tr.BucketTransform(num_buckets):
            outside = pc.or_(pc.less(values, 0), pc.greater_equal(values, num_buckets))
            _refuse(columns, outside, f"is not in a bucket of {field.name!r}, which has {num_buckets}")
        case _:
            pass


def _check_bounds(columns: ManifestColumns, field: PartitionField, metadata: TableMetadata) -> None:
    """What the statistics of the source column say must allow for the partition value."""
    values = columns.partition.get(field.field_id)
    source = metadata.schema().fields_by_id.get(field.source_id)
    if values is None or source is None or len(field.source_ids) > 1 or not field.transform.preserves_order:
        return
    kind = source.field_type
    if isinstance(
        kind, types.FloatType | types.DoubleType | types.UUIDType | types.FixedType
    ) or not field.transform.can_transform(kind):
        return
    is_data = pc.equal(columns.column("content"), int(FileContent.DATA))
    for bounds, outside in (
        (columns.lower_bounds(field.source_id, kind), pc.less),
        (columns.upper_bounds(field.source_id, kind), pc.greater),
    ):
        if bounds is None or bounds.null_count == len(bounds):
            continue
        limits = transform_array(field.transform, bounds, kind).cast(values.type)
        wrong = pc.or_(pc.fill_null(outside(values, limits), False), pc.and_(pc.is_null(values), pc.is_valid(limits)))
        problem = f"has rows that are not in its partition, by the bounds of column {source.name!r}"
        _refuse(columns, pc.and_(is_data, wrong), problem)


def _check_equality_ids(columns: ManifestColumns, metadata: TableMetadata) -> None:
    schema = metadata.schema()
    ids = columns.column("equality_ids")
    _refuse(columns, pc.is_null(ids), "is an equality delete file without equality ids")
    for field_id in pc.unique(pc.list_flatten(ids)).to_pylist():
        field = schema.fields_by_id.get(field_id)
        if field is None:
            raise InvalidSchemaError(f"equality delete files name column {field_id}, which the schema does not have")
        around = [each.field_type for each in schema.ancestors(field_id)]
        plain = isinstance(field.field_type, types.PrimitiveType) and not isinstance(
            field.field_type, types.FloatType | types.DoubleType
        )
        if not plain or any(isinstance(each, types.ListType | types.MapType) for each in around):
            raise InvalidSchemaError(
                f"equality delete files name column {field.name!r} of type {field.field_type}; it must be a primitive,"
                " no float or double, and not inside a list or map"
            )
        assert all(isinstance(each, types.StructType) for each in around)


def _refuse(columns: ManifestColumns, is_wrong: Any, problem: str) -> None:
    if len(columns) and pc.any(is_wrong, min_count=0).as_py():
        place = pc.index(pc.fill_null(is_wrong, False), True).as_py()
        raise InvalidInputError(f"file {columns.column('file_path')[place].as_py()!r} {problem}")


@dataclass(frozen=True, slots=True)
class WithSpecs:
    """Metadata that has the specs of all new files, and the updates that add those that it lacked."""

    metadata: TableMetadata
    updates: tuple[up.AddPartitionSpecUpdate, ...] = ()


def with_specs(metadata: TableMetadata, groups: Iterable[FileGroup]) -> WithSpecs:
    """The metadata with the specs of these files; one that others removed comes back, though not as the default.

    A spec is removed only when no file needs it, which these files do: without it, nobody could read the table.
    """
    found, updates = metadata, []
    for group in groups:
        if len(group.columns) and _find(found, group.spec) is None:
            try:
                found, _ = add_spec(found, group.spec)
            except InvalidPartitionSpecError as error:
                raise ValidationError(
                    f"the files were written for partition spec {group.spec}, which another commit removed, and which the"
                    f" table cannot have again: {error}; write them anew"
                ) from error
            updates.append(up.AddPartitionSpecUpdate(group.spec))
    return WithSpecs(found, tuple(updates))


def check_still_taken(metadata: TableMetadata, deletes: Iterable[FileGroup]) -> None:
    """Fail if the table does not take the delete files any more: it was upgraded, or has lost a column, since they were given."""
    for group in deletes:
        try:
            check_delete_files(group.columns, metadata)
        except InvalidInputError as error:
            raise ValidationError(
                f"the table was changed by another commit since this one was planned: {error}; plan it anew"
            ) from error


def fitted(metadata: TableMetadata, groups: Sequence[FileGroup]) -> tuple[FileGroup, ...]:
    """The files under the ids that their specs have in this metadata, which must have them."""
    return tuple(_fitted(metadata, group) if len(group.columns) else group for group in groups)


def _fitted(metadata: TableMetadata, group: FileGroup) -> FileGroup:
    spec = _find(metadata, group.spec)
    assert spec is not None, f"{group.spec} was to be added"
    if spec.spec_id == group.spec_id and spec.fields == group.spec.fields:
        return group
    ids = {old.field_id: new.field_id for old, new in zip(group.spec.fields, spec.fields, strict=True)}
    columns = replace(
        group.columns,
        spec_id=spec.spec_id,
        partition_type=metadata.partition_type(spec.spec_id),
        partition={ids[field_id]: values for field_id, values in group.columns.partition.items()},
    )
    return replace(group, columns=columns, spec=spec)


def _find(metadata: TableMetadata, spec: PartitionSpec) -> PartitionSpec | None:
    """The spec of the table that is the same: under the same id if it can be, else under any."""
    same = metadata.specs_by_id.get(spec.spec_id)
    if same is not None and same.equivalent(spec):
        return same
    return next((each for each in metadata.partition_specs if each.equivalent(spec)), None)


_PATHS = wanted("file_path", partition=False)
_READERS = 8


def check_not_live(parent: Parent, groups: Sequence[FileGroup], ignored: frozenset[str] = frozenset()) -> None:
    """Fail if one of the new data files is part of the snapshot that the commit builds on.

    `ignored` are paths that the same commit removes, in their normal form.
    """
    data = [group.columns for group in groups if group.content is ManifestContent.DATA and len(group.columns)]
    if not data:
        return
    paths = identities(pa.concat_arrays([columns.column("file_path") for columns in data]))
    partitions = PartitionSet.of(data)
    index = parent.bench.caches.paths
    hits = index.may_hold(hashes_of(paths))
    manifests = parent.manifests(ManifestContent.DATA)
    index.make_room({each.manifest_path for each in manifests})
    doubtful = [
        each
        for each in manifests
        if (each.manifest_path not in index or each.manifest_path in hits)
        and each.has_live_files
        and partitions.may_be_in(each)
    ]
    with closing(_live_paths(parent, doubtful)) as found:
        for manifest, live in found:
            if manifest.manifest_path not in index:
                index.add(manifest.manifest_path, hashes_of(live))
            for path in live.filter(pc.is_in(live, value_set=paths)).to_pylist():
                if path not in ignored:
                    raise ValidationError(f"file {path!r} is in the table already; it cannot be added a second time")


def note_paths(parent: Parent, manifests: Sequence[ManifestFile], groups: Sequence[FileGroup]) -> None:
    """Remember the paths of manifests that were written of these groups, so that the next commit need not read them."""
    index = parent.bench.caches.paths
    paths = [group.columns.column("file_path") for group in groups if len(group.columns)]
    counts = [manifest.added_files_count for manifest in manifests]
    if sum(count or 0 for count in counts) != sum(map(len, paths)):
        return
    rest = identities(pa.concat_arrays(paths)) if paths else pa.array([], pa.string())
    for manifest, count in zip(manifests, counts, strict=True):
        if manifest.manifest_path not in index:
            index.add(manifest.manifest_path, hashes_of(rest.slice(0, count)))
        rest = rest.slice(count)


def _live_paths(parent: Parent, manifests: Sequence[ManifestFile]) -> Generator[tuple[ManifestFile, Any], None, None]:
    """Each manifest with the paths of its live files, in their normal form; several are read at a time."""

    def read(manifest: ManifestFile) -> Any:
        entries = parent.read(manifest, _PATHS)
        return identities(entries.column("file_path").filter(entries.is_live))

    with closing(in_order(read, manifests, _READERS, "icefloe-paths")) as paths:
        yield from zip(manifests, paths, strict=True)
