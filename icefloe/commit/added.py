"""Which files a commit may add: checked before anything is written, put under a spec of the table, and added only once.

Inside of a commit a path is never added twice. Across commits it takes reading manifests, so that is checked where paths come
from outside, and left out by writers that name their files by a fresh UUID. Only manifests are read whose summaries allow for
a file in one of the partitions, only their paths, and each of them once for a handle of the table: from then on their paths
are known by their hashes. So a new handle reads the existing manifests, and its later commits those that others add.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, parallel
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet, as_mask, first_path, normal_paths
from icefloe.commit.path_index import hashes_of
from icefloe.metadata import updates as up
from icefloe.partitioning import PartitionField, PartitionSpec, check_writable, transform_array, transforms as tr
from icefloe.schema import reserved, types
from icefloe.storage import identities
from icefloe.versions import Feature, allows, require

FilesInput = Iterable[mf.DataFile] | mf.ManifestColumns | Sequence[mf.ManifestColumns]
"""Files as values, or in columns: those of one spec, or several of them."""


@dataclass(frozen=True, slots=True, eq=False)
class FileGroup:
    """Files of one kind of manifest, in columns, and the spec that they were written for."""

    content: mf.ManifestContent
    columns: mf.ManifestColumns
    spec: PartitionSpec

    @property
    def spec_id(self) -> int:
        """The id of the spec of the files."""
        return self.columns.spec_id


def group_files(
    files: FilesInput, metadata: md.TableMetadata, content: mf.ManifestContent, *, are_of_table: bool = False
) -> tuple[FileGroup, ...]:
    """The files by spec, as new entries of manifests; a file that cannot be in this table is an error.

    Data files whose partition nobody here can compute are refused, unless they were in the table before.
    """
    groups = []
    for columns in _columns_by_spec(files, metadata):
        entries = _as_new(columns)
        _check_fit(entries, metadata)
        if content is mf.ManifestContent.DELETES:
            check_delete_files(entries, metadata)
        else:
            is_delete = pc.not_equal(entries.column("content"), int(mf.FileContent.DATA))
            _refuse(entries, is_delete, "is a delete file; it was given as a data file")
            if not are_of_table:
                check_writable(metadata.spec(entries.spec_id))
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
    """Fail if a file is named twice; deletion vectors may share a file, but not a range of it."""
    whole = (g.columns if _is_all_data(g.columns) else without_vectors(g).columns for g in groups)
    repeated = first_repeated(normal_paths(whole))
    if repeated is not None:
        path, times = repeated
        raise errors.InvalidInputError(
            f"file {path!r} is added {times} times in one commit; a file can be added only once"
        )


def first_repeated(values: pa.Array) -> tuple[str, int] | None:
    """The first value that comes more than once, and how often."""
    # Much faster than counting distinct values.
    if len(pc.unique(values)) == len(values):
        return None
    counted = pc.value_counts(values)
    repeated = counted.filter(pc.greater(counted.field("counts"), 1))
    return repeated.field("values")[0].as_py(), repeated.field("counts")[0].as_py()


def check_delete_files(columns: mf.ManifestColumns, metadata: md.TableMetadata) -> None:
    """Fail unless tables of this version take such delete files, whose columns are columns of the table."""
    version = metadata.format_version
    if not len(columns):
        return
    path = columns.column("file_path")[0].as_py()
    require(version, Feature.DELETE_FILES, f"adding delete file {path!r}")
    content = columns.column("content")
    _refuse(columns, pc.equal(content, int(mf.FileContent.DATA)), "is a data file; it was given as a delete file")
    is_vector = vector_mask(columns)
    is_position = pc.equal(content, int(mf.FileContent.POSITION_DELETES))
    if not allows(version, Feature.DELETION_VECTORS):
        _refuse(columns, is_vector, f"is a deletion vector; v{version} tables take position delete files")
    if not allows(version, Feature.NEW_POSITION_DELETE_FILES):
        _refuse(
            columns,
            pc.and_not(is_position, is_vector),
            f"is a position delete file; v{version} tables take deletion vectors instead",
        )
    is_equality = pc.equal(content, int(mf.FileContent.EQUALITY_DELETES))
    _check_equality_ids(columns.filter(is_equality), metadata)


def vector_mask(columns: mf.ManifestColumns) -> pa.Array:
    """Which entries are deletion vectors, as a boolean column."""
    if _is_all_data(columns):
        return pa.array(np.zeros(len(columns), bool))
    is_position = pc.equal(columns.column("content"), int(mf.FileContent.POSITION_DELETES))
    is_puffin = pc.equal(pc.utf8_lower(columns.column("file_format")), "puffin")
    return pc.fill_null(pc.and_(is_position, is_puffin), False)


def vectors_of(group: FileGroup) -> mf.ManifestColumns:
    """The deletion vectors of a group."""
    return group.columns.filter(vector_mask(group.columns))


def without_vectors(group: FileGroup) -> FileGroup:
    """The rest of it."""
    return replace(group, columns=group.columns.filter(pc.invert(vector_mask(group.columns))))


def listed(files: object) -> list[object]:
    """Files of any form, as a list; a lone path is a mistake, since text is a sequence too."""
    if isinstance(files, mf.ManifestColumns):
        return [files]
    if isinstance(files, str) or not isinstance(files, Iterable):
        raise errors.InvalidInputError(f"{files!r} is not a collection of files; give a list of them")
    return list(files)


def _is_all_data(columns: mf.ManifestColumns) -> bool:
    """Whether there are data files only; much cheaper to tell than which ones are not."""
    content = columns.column("content")
    return not content.null_count and not content.to_numpy().any()


def _columns_by_spec(files: FilesInput, metadata: md.TableMetadata) -> Iterable[mf.ManifestColumns]:
    items = listed(files)
    if all(isinstance(item, mf.ManifestColumns) for item in items):
        return _checked_specs([item for item in items if isinstance(item, mf.ManifestColumns)], metadata)
    if not all(issubclass(each, mf.DataFile) for each in {*map(type, items)}):
        other = next(item for item in items if not isinstance(item, mf.DataFile))
        raise errors.InvalidInputError(f"{other!r} is not a DataFile; give files as DataFile values or ManifestColumns")
    by_spec = files_by_spec(cast(list[mf.DataFile], items))
    for spec_id, members in by_spec.items():
        _check_spec(spec_id, metadata, members[0].file_path)
    return [mf.columns_of_files(members, metadata.partition_type(each), each) for each, members in by_spec.items()]


def files_by_spec(files: list[mf.DataFile]) -> dict[int, list[mf.DataFile]]:
    """The files by the id of their spec."""
    if len(specs := set(map(attrgetter("spec_id"), files))) == 1:
        return {specs.pop(): files}
    by_spec: dict[int, list[mf.DataFile]] = {}
    for file in files:
        by_spec.setdefault(file.spec_id, []).append(file)
    return by_spec


def _checked_specs(parts: list[mf.ManifestColumns], metadata: md.TableMetadata) -> Iterable[mf.ManifestColumns]:
    for columns in parts:
        if not len(columns):
            continue
        path = columns.column("file_path")[0].as_py()
        _check_spec(columns.spec_id, metadata, path)
        expected = metadata.partition_type(columns.spec_id)
        if [f.field_id for f in columns.partition_type.fields] != [f.field_id for f in expected.fields]:
            raise errors.InvalidPartitionSpecError(
                f"files such as {path!r} have the partition fields {columns.partition_type};"
                f" spec {columns.spec_id} has {expected}"
            )
        yield columns


def _check_spec(spec_id: int, metadata: md.TableMetadata, path: str | None) -> None:
    if spec_id not in metadata.specs_by_id:
        known = ", ".join(map(str, metadata.specs_by_id))
        raise errors.InvalidPartitionSpecError(
            f"file {path!r} has partition spec {spec_id}, which the table does not have; it has {known}"
        )


def _as_new(columns: mf.ManifestColumns) -> mf.ManifestColumns:
    length = len(columns)
    nothing = pa.nulls(length, pa.int64())
    return columns.with_columns(
        status=pa.array(np.full(length, int(mf.EntryStatus.ADDED), np.int32)),
        content=pc.fill_null(columns.column("content"), int(mf.FileContent.DATA)),
        snapshot_id=nothing,
        sequence_number=nothing,
        file_sequence_number=nothing,
        # New files get their row ids from the commit; what another snapshot gave them does not count here.
        first_row_id=nothing,
    )


def _check_fit(columns: mf.ManifestColumns, metadata: md.TableMetadata) -> None:
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


def _check_metric_ids(columns: mf.ManifestColumns, metadata: md.TableMetadata) -> None:
    """Statistics are of columns that the table has, or had; others say that the file was written for another schema."""
    for metric in mf.Metric:
        keys = columns.metrics.maps[metric].keys if metric in columns.metrics.maps else ()
        ends = pc.min_max(keys).as_py().values() if len(keys) else ()
        spread = [field_id for name, field_id in columns.metrics.spread if name is metric]
        if all(field_id is None or 0 < field_id <= metadata.last_column_id for field_id in (*ends, *spread)):
            continue
        for field_id in sorted(columns.metrics.field_ids(metric)):
            if not 0 < field_id <= metadata.last_column_id and not reserved.is_reserved_id(field_id):
                problem = (
                    f"has {metric.value} of column {field_id}, which the table never had;"
                    f" the ids of its columns are 1 to {metadata.last_column_id}"
                )
                _refuse(columns, pc.is_valid(columns.metrics.column(metric, field_id)), problem)


def _check_values(columns: mf.ManifestColumns, field: PartitionField) -> None:
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


def _check_bounds(columns: mf.ManifestColumns, field: PartitionField, metadata: md.TableMetadata) -> None:
    """What the statistics of the source column say must allow for the partition value."""
    values = columns.partition.get(field.field_id)
    source = metadata.schema().fields_by_id.get(field.source_id)
    if values is None or source is None or len(field.source_ids) > 1 or not field.transform.preserves_order:
        return
    column_type = source.field_type
    unordered = types.FloatType | types.DoubleType | types.UUIDType | types.FixedType
    if isinstance(column_type, unordered) or not field.transform.can_transform(column_type):
        return
    is_data = pc.equal(columns.column("content"), int(mf.FileContent.DATA))
    for bounds, outside in (
        (columns.lower_bounds(field.source_id, column_type), pc.less),
        (columns.upper_bounds(field.source_id, column_type), pc.greater),
    ):
        if bounds is None or bounds.null_count == len(bounds):
            continue
        limits = transform_array(field.transform, bounds, column_type).cast(values.type)
        wrong = pc.or_(pc.fill_null(outside(values, limits), False), pc.and_(pc.is_null(values), pc.is_valid(limits)))
        problem = f"has rows that are not in its partition, by the bounds of column {source.name!r}"
        _refuse(columns, pc.and_(is_data, wrong), problem)


def _check_equality_ids(columns: mf.ManifestColumns, metadata: md.TableMetadata) -> None:
    schema = metadata.schema()
    ids = columns.column("equality_ids")
    _refuse(columns, pc.is_null(ids), "is an equality delete file without equality ids")
    for field_id in pc.unique(pc.list_flatten(ids)).to_pylist():
        field = schema.fields_by_id.get(field_id)
        if field is None:
            raise errors.InvalidSchemaError(
                f"equality delete files refer to column {field_id}, which is not in the schema"
            )
        plain = isinstance(field.field_type, types.PrimitiveType) and not isinstance(
            field.field_type, types.FloatType | types.DoubleType
        )
        if not plain or not all(isinstance(each.field_type, types.StructType) for each in schema.ancestors(field_id)):
            raise errors.InvalidSchemaError(
                f"equality delete files refer to column {field.name!r} of type {field.field_type}; it must be a primitive other than"
                " float and double, and not inside a list or map"
            )


def _refuse(columns: mf.ManifestColumns, is_wrong: pa.Array, problem: str) -> None:
    if len(columns) and pc.any(is_wrong, min_count=0).as_py():
        raise errors.InvalidInputError(f"file {first_path(columns, as_mask(is_wrong))!r} {problem}")


# -- under which spec they go
# Theirs may be gone since they were written, or have another id by now: an id can be given again after a spec was removed.
# So specs are recognized by their fields.


def with_specs(
    metadata: md.TableMetadata, groups: Iterable[FileGroup]
) -> tuple[md.TableMetadata, tuple[up.AddPartitionSpecUpdate, ...]]:
    """The metadata with the specs of these files, and the updates that add those it lacks.

    One that others removed comes back, though not as the default. A spec is removed only when no file needs it, which
    these files do: without it, nobody could read the table.
    """
    updates = []
    for group in groups:
        if len(group.columns) and _find(metadata, group.spec) is None:
            try:
                metadata, _ = md.add_spec(metadata, group.spec)
            except errors.InvalidPartitionSpecError as error:
                raise errors.ValidationError(
                    f"the files were written for partition spec {group.spec}, which another commit removed and which"
                    f" cannot be added again: {error}; write the files again"
                ) from error
            updates.append(up.AddPartitionSpecUpdate(group.spec))
    return metadata, tuple(updates)


def check_still_taken(metadata: md.TableMetadata, deletes: Iterable[FileGroup]) -> None:
    """Fail if the table does not take the delete files any more: it was upgraded, or has lost a column, since they were given."""
    for group in deletes:
        try:
            check_delete_files(group.columns, metadata)
        except errors.InvalidInputError as error:
            raise errors.ValidationError(
                f"the table was changed by another commit since this one was planned: {error}; plan it again"
            ) from error


def fitted(metadata: md.TableMetadata, groups: Sequence[FileGroup]) -> tuple[FileGroup, ...]:
    """The files under the ids that their specs have in this metadata, which must have them."""
    return tuple(_fitted(metadata, group) if len(group.columns) else group for group in groups)


def _fitted(metadata: md.TableMetadata, group: FileGroup) -> FileGroup:
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


def _find(metadata: md.TableMetadata, spec: PartitionSpec) -> PartitionSpec | None:
    """The spec of the table that is the same: under the same id if it can be, else under any."""
    same = metadata.specs_by_id.get(spec.spec_id)
    if same is not None and same.equivalent(spec):
        return same
    return next((each for each in metadata.partition_specs if each.equivalent(spec)), None)


# -- whether they are in the table already


_PATHS = mf.wanted("file_path", partition=False)
_READERS = 8


def check_not_live(parent: Parent, groups: Sequence[FileGroup], ignored: frozenset[str] = frozenset()) -> None:
    """Fail if one of the new data files is part of the snapshot that the commit builds on.

    `ignored` are paths that the same commit removes, in their normal form.
    """
    data = [group.columns for group in groups if group.content is mf.ManifestContent.DATA and len(group.columns)]
    if not data:
        return
    paths = normal_paths(data)
    partitions = PartitionSet.of(data)
    index = parent.bench.caches.paths
    hits = index.may_hold(hashes_of(paths))
    manifests = parent.manifests(mf.ManifestContent.DATA)
    index.make_room({manifest.manifest_path for manifest in manifests})
    doubtful = [
        manifest
        for manifest in manifests
        if (manifest.manifest_path not in index or manifest.manifest_path in hits) and partitions.may_be_in(manifest)
    ]

    def live_paths(manifest: mf.ManifestFile) -> pa.Array:
        entries = parent.read(manifest, _PATHS)
        return identities(entries.column("file_path").filter(entries.is_live))

    with closing(parallel.in_order(live_paths, doubtful, _READERS, "icefloe-paths")) as paths_of_each:
        for manifest, live in zip(doubtful, paths_of_each, strict=True):
            if manifest.manifest_path not in index:
                index.add(manifest.manifest_path, hashes_of(live))
            for path in live.filter(pc.is_in(live, value_set=paths)).to_pylist():
                if path not in ignored:
                    raise errors.ValidationError(f"file {path!r} is already in the table; it cannot be added twice")


def note_paths(parent: Parent, manifests: Sequence[mf.ManifestFile], groups: Sequence[FileGroup]) -> None:
    """Remember the paths of manifests that were written of these groups, so that the next commit need not read them."""
    index = parent.bench.caches.paths
    rest = normal_paths(group.columns for group in groups if len(group.columns))
    counts = [manifest.added_files_count for manifest in manifests]
    if sum(count or 0 for count in counts) != len(rest):
        return
    for manifest, count in zip(manifests, counts, strict=True):
        if manifest.manifest_path not in index:
            index.add(manifest.manifest_path, hashes_of(rest.slice(0, count)))
        rest = rest.slice(count)
