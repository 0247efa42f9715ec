"""Differences between two snapshots of a table: columns, files and rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, metadata as md
from icefloe.inspect import Inspect
from icefloe.schema import NestedField, Schema, schema_to_arrow
from icefloe.table.scan import ChangesScan

_CHANGE = "_change_type"
Changes = Callable[[int | None, int, str | None], ChangesScan]
"""Returns the changes of matching rows after one snapshot, or from the beginning, up to another."""
_FILES = ("content", "file_path", "record_count", "file_size_in_bytes", "content_offset")


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that was added, dropped or changed; None on the side that lacks it."""

    before: NestedField | None
    after: NestedField | None


@dataclass(frozen=True)
class TableDiff:
    """The difference between two snapshots; None stands for the state before the first commit."""

    before: md.Snapshot | None
    after: md.Snapshot | None
    columns: tuple[ColumnChange, ...]
    _inspect: Inspect = field(repr=False, compare=False)
    _changes: Changes = field(repr=False, compare=False)
    _metadata: md.TableMetadata = field(repr=False, compare=False)

    def added_files(self) -> pa.Table:
        """Return data and delete files that only the second snapshot has."""
        return _without(self._files(self.after), self._files(self.before))

    def removed_files(self) -> pa.Table:
        """Return data and delete files that only the first snapshot has."""
        return _without(self._files(self.before), self._files(self.after))

    def rows(self, row_filter: str | None = None, identifier_columns: Sequence[str] = ()) -> pa.RecordBatchReader:
        """Return the net inserted and deleted rows, with `_change_type`.

        Args:
            row_filter: return only matching rows.
            identifier_columns: key columns, by which a delete and an insert are shown as an update.

        One of the two snapshots must be an ancestor of the other.
        """
        if self.after is None or self._leads_to(self.after, self.before):
            return self._backwards(row_filter, identifier_columns)
        if self.before is not None and not self._leads_to(self.before, self.after):
            raise errors.StateError(
                f"snapshots {self.before.snapshot_id} and {self.after.snapshot_id} are on diverged branches: neither is an"
                " ancestor of the other; compare each with a common ancestor"
            )
        before = None if self.before is None else self.before.snapshot_id
        scan = self._changes(before, self.after.snapshot_id, row_filter).with_net_changes()
        shown = scan.with_updates(tuple(identifier_columns)) if identifier_columns else scan
        return shown.to_arrow_batch_reader()

    def _backwards(self, row_filter: str | None, identifier_columns: Sequence[str]) -> pa.RecordBatchReader:
        """Return the changes since the second snapshot, inverted."""
        if identifier_columns:
            raise errors.InvalidInputError(
                "updates can be shown only from an earlier to a later snapshot; swap the two"
            )
        if self.before is None or self.before == self.after:
            return pa.RecordBatchReader.from_batches(pa.schema([]), [])
        after = None if self.after is None else self.after.snapshot_id
        scan = self._changes(after, self.before.snapshot_id, row_filter).with_net_changes()
        reader = scan.to_arrow_batch_reader()
        return pa.RecordBatchReader.from_batches(reader.schema, (_undone(batch) for batch in reader))

    @cached_property
    def _shared_manifests(self) -> frozenset[str]:
        """Manifests of both snapshots: their files do not differ and are not read."""
        sides = [set[str](), set[str]()]
        for paths, snapshot in zip(sides, (self.before, self.after), strict=True):
            if snapshot is not None:
                listed = self._inspect.manifests(snapshot.snapshot_id, selected_fields=("path",))
                paths.update(listed.column("path").to_pylist())
        return frozenset(sides[0] & sides[1])

    def _files(self, snapshot: md.Snapshot | None) -> pa.Table:
        """Return the files of a snapshot that may be missing in the other."""
        if snapshot is None:
            return schema_to_arrow(
                self._inspect.scan("files", selected_fields=_FILES).projection(), ids=False
            ).empty_table()
        return self._inspect.files(
            snapshot.snapshot_id, selected_fields=_FILES, skipped_manifests=self._shared_manifests
        )

    def _leads_to(self, earlier: md.Snapshot, later: md.Snapshot | None) -> bool:
        heads = [] if later is None else [later.snapshot_id]
        nodes = md.SnapshotGraph.of(self._metadata, heads).nodes
        return any(node.snapshot.snapshot_id == earlier.snapshot_id for node in nodes)


def diff_of(
    metadata: md.TableMetadata,
    inspect: Inspect,
    before: md.Snapshot | None,
    after: md.Snapshot | None,
    changes: Changes,
) -> TableDiff:
    """Return the difference between two snapshots of a table."""
    old, new = _schema(metadata, before), _schema(metadata, after)
    return TableDiff(before, after, tuple(_columns(old, new)), inspect, changes, metadata)


def _schema(metadata: md.TableMetadata, snapshot: md.Snapshot | None) -> Schema:
    is_current = snapshot is None or snapshot.snapshot_id == metadata.current_snapshot_id
    return metadata.schema(None if is_current or snapshot is None else snapshot.schema_id)


def _columns(old: Schema, new: Schema) -> list[ColumnChange]:
    before = {each.field_id: each for each in old.fields}
    after = {each.field_id: each for each in new.fields}
    ids = sorted(before.keys() | after.keys())
    return [ColumnChange(before.get(each), after.get(each)) for each in ids if before.get(each) != after.get(each)]


def _without(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files that are not among others; a deletion vector is identified within its file."""
    return files.filter(pc.invert(pc.is_in(_keys(files), _keys(others)))).drop_columns("content_offset")


def _keys(files: pa.Table) -> pa.ChunkedArray:
    offsets = pc.fill_null(files.column("content_offset"), -1).cast(pa.string())
    return pc.binary_join_element_wise(files.column("file_path"), offsets, "\n")


def _undone(batch: pa.RecordBatch) -> pa.RecordBatch:
    kinds = pc.if_else(pc.equal(batch[_CHANGE], "INSERT"), "DELETE", "INSERT").cast(batch[_CHANGE].type)
    return batch.set_column(batch.schema.get_field_index(_CHANGE), batch.schema.field(_CHANGE), kinds)
