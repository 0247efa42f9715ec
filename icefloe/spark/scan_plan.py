"""What a Spark scan of a snapshot consists of: the kinds of deletes to apply, and one plan for each filter.

One DataFrame may have several relations, by which deletes apply to the files, and each asks for its own files with the
filters of the query. They share one plan.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow.compute as pc

from icefloe.bounded_cache import BoundedCache
from icefloe.data import DeleteLoader, default_workers, new_delete_cache
from icefloe.errors import CorruptFileError, StateError
from icefloe.expressions import Expression, as_expression, conjunction
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.manifests import (
    DataFile,
    FileContent,
    ManifestCache,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    is_encrypted,
    wanted,
)
from icefloe.metadata import Snapshot, TableMetadata, summary as totals
from icefloe.planning import WANTED_OF_DELETES, FileScanTask, ManifestSource, ScanReport, TableScan, sequence_numbers

_PLANS_KEPT = 4
_MANIFESTS_LOOKED_AT = 64
"""How many data manifests are read to know the formats of the files before a query is planned."""

_BITS_PER_WORD = 64
_MOST_ROWS = 1 << 33
"""A bit for each of this many rows is a gigabyte."""
_MOST_ROWS_OF_READER = (1 << 31) - 1
"""Spark's vectorized reader, and the bitmap of ours, count rows of a file by ints."""
OF_DATA = wanted("file_path", "file_format", "file_size_in_bytes", "key_metadata", "split_offsets", "sort_order_id")
"""What a plan without a filter decodes, so that it finds these manifests in memory."""


class FileKind(Enum):
    """How rows of a file may be deleted: not at all, by position, or by key (and perhaps by position)."""

    CLEAN = "clean"
    POSITIONS = "positions"
    KEYS = "keys"


@dataclass(frozen=True, slots=True)
class KeyDeletes:
    """All equality delete files of a snapshot that compare the same columns, with their data sequence numbers."""

    field_ids: tuple[int, ...]
    files: tuple[tuple[DataFile, int], ...]


@dataclass(frozen=True, slots=True)
class SnapshotShape:
    """What is known of a snapshot before a query is planned."""

    formats: frozenset[str] = frozenset()
    """Of the data files that were looked at, and of equality delete files."""
    has_position_deletes: bool = False
    has_encrypted_files: bool = False
    key_deletes: tuple[KeyDeletes, ...] = ()

    @property
    def kinds(self) -> tuple[FileKind, ...]:
        """The kinds of files that may exist."""
        with_deletes = self.kinds_with_deletes if self.has_position_deletes else self.kinds_with_deletes[1:]
        return (FileKind.CLEAN, *with_deletes)

    @property
    def kinds_with_deletes(self) -> tuple[FileKind, ...]:
        """The kinds whose files all have rows to skip."""
        return (FileKind.POSITIONS, FileKind.KEYS) if self.key_deletes else (FileKind.POSITIONS,)


_SHAPES_KEPT = 10_000
"""Equality delete files among them, which shapes name."""


class _Shared:
    """What queries share besides manifests, since those by SQL load their table each time: none of it changes."""

    def __init__(self) -> None:
        self.shapes: BoundedCache[Hashable, SnapshotShape] = BoundedCache(_SHAPES_KEPT, _weight)
        self.deletes = new_delete_cache()


def _weight(shape: SnapshotShape) -> int:
    return 1 + sum(len(group.files) for group in shape.key_deletes)


_SHARED: MutableMapping[ManifestCache, _Shared] = WeakKeyDictionary()
"""By where the manifests are kept."""


def _shared(scan: TableScan) -> _Shared:
    """What a scan shares with others; nothing if it keeps no manifests."""
    shared = None if scan.cache is None else _SHARED.get(scan.cache)
    if shared is None:
        shared = _Shared()
        if scan.cache is not None:
            shared = _SHARED.setdefault(scan.cache, shared)
    return shared


def shape_of(scan: TableScan) -> SnapshotShape | None:
    """What a scan's snapshot consists of, from its manifest list, its delete manifests and some of its data manifests.

    If a service plans the scan, the summary must do; None if that leaves open whether rows are deleted by equality.
    """
    snapshot = scan.snapshot()
    if snapshot is None:
        return SnapshotShape()
    if scan.is_planned_elsewhere:
        said = {} if snapshot.summary is None else snapshot.summary.properties
        if said.get(totals.TOTAL_EQUALITY_DELETES) != "0":
            return None
        return SnapshotShape(has_position_deletes=said.get(totals.TOTAL_DELETE_FILES) != "0")
    place = scan.metadata.table_uuid, snapshot.snapshot_id, snapshot.manifest_list, scan.schema.schema_id
    return _shared(scan).shapes.load(place, lambda: _shape_of_manifests(scan, snapshot))


def _shape_of_manifests(scan: TableScan, snapshot: Snapshot) -> SnapshotShape:
    source = ManifestSource(scan.metadata, scan.storage, snapshot.snapshot_id, scan.schema, scan.cache)
    manifests = [
        manifest
        for manifest in source.manifests(snapshot)
        if (manifest.added_files_count, manifest.existing_files_count) != (0, 0)
    ]
    deletes = [manifest for manifest in manifests if manifest.content is ManifestContent.DELETES]
    data = [manifest for manifest in manifests if manifest.content is ManifestContent.DATA]
    read = (source.read(manifest, OF_DATA) for manifest in data)
    clean = shape_of_entries(columns.filter(columns.is_live) for columns in read)
    formats, encrypted = set(clean.formats), clean.has_encrypted_files
    groups: dict[tuple[int, ...], list[tuple[DataFile, int]]] = {}
    has_positions = False
    for file, number in _live_deletes(source, deletes):
        if file.content is FileContent.EQUALITY_DELETES:
            groups.setdefault(tuple(sorted(file.equality_ids or ())), []).append((file, number))
            formats.add(file.file_format)
        else:
            has_positions = True
        encrypted = encrypted or file.key_metadata is not None
    keyed = tuple(KeyDeletes(ids, tuple(files)) for ids, files in sorted(groups.items()))
    return SnapshotShape(frozenset(formats), has_positions, encrypted, keyed)


def shape_of_entries(entries: Iterable[ManifestColumns]) -> SnapshotShape:
    """The shape of data files that no delete concerns, by the entries of some manifests."""
    formats: set[str] = set()
    encrypted = False
    for columns in islice(entries, _MANIFESTS_LOOKED_AT):
        formats.update(str(name).lower() for name in pc.unique(columns.column("file_format")).to_pylist())
        encrypted = encrypted or columns.column("key_metadata").null_count < len(columns)
    return SnapshotShape(frozenset(formats), has_encrypted_files=encrypted)


def _live_deletes(source: ManifestSource, manifests: Sequence[ManifestFile]) -> Iterator[tuple[DataFile, int]]:
    for manifest in manifests:
        columns = source.read(manifest, WANTED_OF_DELETES)
        live = columns.filter(columns.is_live)
        yield from zip(live.files(), sequence_numbers(live).tolist(), strict=True)


class ScanPlans:
    """Plans one scan for the filters of queries; the relations of a DataFrame, and threads, share it.

    `kinds` are those that somebody asks for; others are an error. Without `CLEAN`, every file counts as one with deletes.
    `hidden` are rows to skip besides the deleted ones, by file.
    """

    def __init__(
        self, scan: TableScan, kinds: Sequence[FileKind], hidden: Mapping[str, DeletionVector] | None = None
    ) -> None:
        self.scan = scan
        self.kinds = kinds
        self._hidden = {} if hidden is None else hidden
        self._plans: BoundedCache[Expression, dict[FileKind, list[FileScanTask]]] = BoundedCache(_PLANS_KEPT)
        self._deletes = DeleteLoader(scan.metadata, scan.storage, _shared(scan).deletes)
        self.report: ScanReport | None = None
        """What the newest plan did."""

    def tasks(self, pushed: Expression, kind: FileKind) -> list[FileScanTask]:
        """The files of a kind that may hold rows that match the filter of the query, and of the scan itself."""
        return self._plans.load(pushed, lambda: self._plan(pushed))[kind]

    def first(self, kind: FileKind) -> Callable[[int], list[FileScanTask]] | None:
        """What gives files of a kind that are enough for so many rows, with those of the other kinds; None if that is not known."""
        if self._hidden or self.scan.planner is not None:
            return None
        return lambda limit: self._plan(as_expression(None), limit)[kind]

    def _plan(self, pushed: Expression, limit: int | None = None) -> dict[FileKind, list[FileScanTask]]:
        own = self.scan.row_filter
        base = as_expression(own) if not isinstance(own, str) or own.strip() else as_expression(None)
        scan = replace(self.scan, row_filter=conjunction(base, pushed), limit=limit)
        tasks: dict[FileKind, list[FileScanTask]] = {kind: [] for kind in FileKind}
        for task in scan.plan_files():
            tasks[_kind(task, scan.metadata, FileKind.CLEAN not in self.kinds)].append(task)
        self.report = scan.report
        for kind in FileKind:
            if tasks[kind] and kind not in self.kinds:
                raise StateError(
                    f"{tasks[kind][0].file.file_path} has deletes that the summary of its snapshot does not speak of; read the"
                    " table with the option read.engine = arrow"
                )
        return tasks

    def bitmap(self, task: FileScanTask) -> bytes:
        """A bit for each row of the task's file, set where it is deleted by position; in whole words, with one to spare.

        Spark's test of a bit reads memory unchecked, so every row of the file must have one.
        """
        rows = _row_count(task, _MOST_ROWS)
        vector = self._with_hidden(self._deletes.positions(task), task)
        is_deleted = np.zeros((rows // _BITS_PER_WORD + 1) * _BITS_PER_WORD, np.bool_)
        positions = vector.positions()
        is_deleted[positions[positions < rows]] = True
        return np.packbits(is_deleted, bitorder="little").tobytes()

    def roaring(self, tasks: Sequence[FileScanTask]) -> list[bytes]:
        """The rows of each task's file that are deleted by position, as a portable 32-bit bitmap; nothing if none is."""
        rows = [_row_count(task, _MOST_ROWS_OF_READER) for task in tasks]
        vectors = self._deletes.positions_of_all(tasks, default_workers())
        return [
            self._with_hidden(vector, task).portable(count)
            for vector, task, count in zip(vectors, tasks, rows, strict=True)
        ]

    def _with_hidden(self, vector: DeletionVector, task: FileScanTask) -> DeletionVector:
        hidden = self._hidden.get(task.file.file_path)
        return vector if hidden is None else vector.union(hidden)


def _row_count(task: FileScanTask, most: int) -> int:
    """How many rows the task's file has."""
    rows = task.file.record_count
    if not 0 <= rows <= most:
        raise CorruptFileError(task.file.file_path, f"its manifest claims {rows} rows, more than can be deleted from")
    return rows


def _kind(task: FileScanTask, metadata: TableMetadata, all_have_deletes: bool) -> FileKind:
    if task.file.file_format != "parquet":
        raise StateError(
            f"{task.file.file_path} is a file of format {task.file.file_format}, which Spark itself cannot read by field id;"
            " read the table with the option read.engine = arrow"
        )
    if (task.file.key_metadata is not None) != is_encrypted(metadata):
        raise StateError(
            f"{task.file.file_path} is {'' if task.file.key_metadata else 'not '}encrypted, unlike its table; read the table"
            " with the option read.engine = arrow"
        )
    if task.equality_deletes:
        return FileKind.KEYS
    return FileKind.POSITIONS if task.deletes or all_have_deletes else FileKind.CLEAN
