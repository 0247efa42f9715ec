"""Rewrite of position deletes: fewer and larger files, vectors in place of files, Puffin files without dead vectors.

Rows stay as they are, so that data that comes, goes or is deleted meanwhile is no conflict: what is committed is decided on the
newest snapshot.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from icefloe import commit as cm, errors, manifests as mf, metadata as md, properties as props
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.position_deletes import read_position_deletes
from icefloe.maintenance.deletes.commits import discard_unused, in_commits
from icefloe.maintenance.deletes.position_plan import (
    DeleteGroup,
    NumberedDeletes,
    PartitionDeletes,
    PositionRewrite,
    plan_position_rewrite,
)
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.progress import Stage
from icefloe.storage import Storage, identity
from icefloe.versions import Feature, allows

Deleted = tuple[mf.DataFile, DeletionVector]


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """What was written for a group, and what that replaces."""

    swaps: tuple[cm.FileSwap, ...] = ()
    vectors: tuple[cm.NewVector, ...] = ()
    remove: tuple[mf.DataFile, ...] = ()

    @property
    def written(self) -> tuple[mf.DataFile, ...]:
        """The new delete files."""
        return (*(file for swap in self.swaps for file in swap.new), *(vector.file for vector in self.vectors))


@dataclass(frozen=True, slots=True)
class RewritePositions:
    """Writes groups of position deletes anew."""

    metadata: md.TableMetadata
    storage: Storage
    sizes: FileSizes

    def __call__(self, group: DeleteGroup) -> RewrittenDeletes:
        """One group, written."""
        writer = DeleteWriter(self.metadata, self.storage, str(uuid.uuid4()))
        if group.vectors:
            copies = writer.copies([vector.file for vector in group.vectors])
            pairs = zip(group.vectors, copies, strict=True)
            return RewrittenDeletes(tuple(cm.FileSwap((old.file,), (new,), old.sequence_number) for old, new in pairs))
        if allows(self.metadata.format_version, Feature.DELETION_VECTORS):
            deleted = [each for part in group.partitions for each in self._deleted(part)]
            new = tuple(map(cm.NewVector, writer.vectors(deleted)))
            return RewrittenDeletes(vectors=new, remove=tuple(each.file for each in group.files))
        return RewrittenDeletes(tuple(self._swap(part, writer) for part in group.partitions))

    def _swap(self, part: PartitionDeletes, writer: DeleteWriter) -> cm.FileSwap:
        new = tuple(writer.positions(rows) for rows in self._files(part, list(self._deleted(part))))
        highest = max(each.sequence_number for each in part.deletes)
        return cm.FileSwap(tuple(each.file for each in part.deletes), new, highest)

    def _deleted(self, part: PartitionDeletes) -> Iterator[Deleted]:
        """The rows of live data files that the files of a partition delete, by data file."""
        live = {name: file for file in part.data for name in self._names(file[0])}
        vectors: dict[str, DeletionVector] = {}
        for deletes in part.deletes:
            for name, vector in self._read(deletes).items():
                if name in live and deletes.sequence_number >= live[name][2]:
                    path, rows, _ = live[name]
                    if vector.highest is not None and vector.highest >= rows:
                        problem = f"it deletes row {vector.highest} of {path!r}, which has {rows} rows"
                        raise errors.CorruptFileError(deletes.file.file_path, problem)
                    vectors[path] = vectors[path] | vector if path in vectors else vector
        counts = {path: rows for path, rows, _ in part.data if path in vectors}
        for path in sorted(vectors):
            yield mf.DataFile(path, "", counts[path], 0, spec_id=part.spec_id, partition=part.partition), vectors[path]

    def _names(self, path: str) -> set[str]:
        """How a position delete file may name a data file."""
        return {identity(path), identity(md.relativize(self.metadata.relative_to, path))}

    def _read(self, deletes: NumberedDeletes) -> dict[str, DeletionVector]:
        with mf.open_file(deletes.file, self.storage) as source:
            return read_position_deletes(source, deletes.file.file_path, deletes.file.file_format)

    def _files(self, part: PartitionDeletes, deleted: list[Deleted]) -> Iterator[list[Deleted]]:
        """The rows of each new file: those of one data file, or of as many as make a file of the target size."""
        if props.DELETE_GRANULARITY.of(self.metadata.properties) == "file":
            yield from ([each] for each in deleted)
            return
        rows = sum(vector.cardinality for _, vector in deleted)
        before = sum(each.file.record_count for each in part.deletes)
        size = sum(each.size for each in part.deletes) * rows // max(before, 1)
        most = -(-rows // self.sizes.expected_files(size)) if rows else 0
        packed: list[Deleted] = []
        count = 0
        for each in deleted:
            if packed and count + each[1].cardinality > most:
                yield packed
                packed, count = [], 0
            packed.append(each)
            count += each[1].cardinality
        if packed:
            yield packed


@dataclass(frozen=True, slots=True)
class RewrittenPositionDeletes:
    """What a rewrite did, as Java counts: each vector is one delete file, and its size is that of its blob."""

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    skipped_delete_files_count: int = field(default=0, kw_only=True)
    """Delete files that others replaced or removed meanwhile, or that were to be rewritten together with such."""
    snapshot_ids: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class PositionDeletesPlan:
    """Position deletes that are worth a rewrite, in groups; nothing is written before `run`."""

    rewrite: PositionRewrite | None = field(repr=False)
    _request: DeletesRequest = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[DeleteGroup, ...]:
        """The groups in the order in which they are rewritten."""
        return () if self.rewrite is None else self.rewrite.groups

    def __str__(self) -> str:
        files, size = sum(len(group.files) for group in self.groups), sum(group.size for group in self.groups)
        return f"rewrite {files} position deletes of {size} bytes in {len(self.groups)} groups"

    def to_json(self) -> str:
        """The plan as JSON: the snapshot, and the delete files of each group, vectors with their offsets."""
        groups = [
            [{"path": each.file.file_path, "offset": each.file.content_offset} for each in group.files]
            for group in self.groups
        ]
        return json.dumps({"snapshot-id": self.rewrite.snapshot_id if self.rewrite else None, "groups": groups})

    def run(self) -> RewrittenPositionDeletes:
        """Rewrite these, and nothing else."""
        return RewrittenPositionDeletes() if self.rewrite is None else _run(self._request, self.rewrite)


def plan_position_deletes(request: DeletesRequest) -> PositionDeletesPlan:
    """What a rewrite would do now."""
    request.table.refresh()
    rewrite = plan_position_rewrite(request.table, request.where, request.options, request.branch)
    return PositionDeletesPlan(rewrite, request)


def rewrite_position_delete_files(request: DeletesRequest) -> RewrittenPositionDeletes:
    """Rewrite position deletes of a branch; planned anew if the table is upgraded meanwhile."""
    return request.again_if_upgraded(lambda: plan_position_deletes(request).run())


def _run(request: DeletesRequest, plan: PositionRewrite) -> RewrittenPositionDeletes:
    """Write and commit; batch by batch if the caller wants that."""
    table, target = request.table, request.target
    work = RewritePositions(table.metadata, table.storage, plan.sizes)
    stage = Stage("rewrite", len(plan.groups), request.progress)
    result = RewrittenPositionDeletes()
    for groups in in_commits(plan.groups, request.options):
        with table.transaction() as tx:
            done = []
            for rewritten in request.map(work, groups, stage):
                tx.row_files.extend(rewritten.written)
                done.append(rewritten)
            replacement = _replacement(done, plan.snapshot_id)
            tx.add(cm.SnapshotChange(cm.ReplaceDeletes(replacement.decide), target))
            made = tx.commit().snapshot_ids
        discard_unused(table.storage, [file for each in done for file in each.written], replacement)
        result = _added(result, replacement, groups, made)
    return result


def _replacement(done: Sequence[RewrittenDeletes], planned: int) -> cm.DeleteReplacement:
    return cm.DeleteReplacement(
        cm.Planned(planned),
        vectors=[vector for each in done for vector in each.vectors],
        swaps=[swap for each in done for swap in each.swaps],
        remove=[file for each in done for file in each.remove],
    )


def _added(
    result: RewrittenPositionDeletes,
    replacement: cm.DeleteReplacement,
    groups: Sequence[DeleteGroup],
    made: tuple[int, ...],
) -> RewrittenPositionDeletes:
    """The result with what one commit did."""
    replaced = replacement.done
    planned = sum(len(group.files) for group in groups)
    return RewrittenPositionDeletes(
        result.rewritten_delete_files_count + len(replaced.removed),
        result.added_delete_files_count + len(replaced.added),
        result.rewritten_bytes_count + sum(map(_size, replaced.removed)),
        result.added_bytes_count + sum(map(_size, replaced.added)),
        skipped_delete_files_count=result.skipped_delete_files_count + max(planned - len(replaced.removed), 0),
        snapshot_ids=(*result.snapshot_ids, *made),
    )


def _size(file: mf.DataFile) -> int:
    return file.content_size_in_bytes or file.file_size_in_bytes
