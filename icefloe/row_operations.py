"""Changes of rows from plain Python: which files are read, written and named for the commit of each.

A change is planned on the snapshot that it reads, and says to the commit which rows it has read, so that conflicts are found as
narrowly as can be. Copy-on-write or merge-on-read is by the table's properties; v1 has no delete files, so it always copies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, properties as props
from icefloe.commit import (
    Append,
    ChangeSet,
    Isolation,
    Overwrite,
    Planned,
    ReplacePartitions,
    RowDelta,
    SnapshotChange,
    SnapshotOperation,
    Target,
    target_of,
)
from icefloe.data import (
    IncomingRows,
    MatchedRows,
    ReadContext,
    RowChanges,
    WriteRequest,
    engine_for,
    find_key_matches,
    find_matching_rows,
    incoming_tables,
    plan_upsert,
    rewrite_without,
    shape_table,
    write_data_files,
    write_deletes,
)
from icefloe.errors import InvalidInputError, LocationNotFoundError
from icefloe.formats.array_metrics import internal_value
from icefloe.manifests import DataFile
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.planning import TableScan
from icefloe.schema import Schema
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

_COPY = "copy-on-write"
_LISTED_KEYS = 1000
"""Up to so many keys of one column are listed in the filter of an upsert; beyond, their range is enough."""


@dataclass(frozen=True, slots=True)
class RowOperations:
    """The changes of rows on one branch of a table, each of which is added to a set of changes.

    `metadata` is the table that they are planned on. `write_properties` stand in for the table's where the data that is given
    becomes files.
    """

    changes: ChangeSet
    metadata: TableMetadata
    target: Target
    write_properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on(
        cls, changes: ChangeSet, branch: str | None = None, snapshot_properties: Mapping[str, str] | None = None
    ) -> Self:
        """Changes of rows on what the changes so far leave."""
        metadata = changes.table_metadata
        return cls(changes, metadata, target_of(metadata, branch, snapshot_properties))

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self.changes.storage

    @property
    def written(self) -> list[DataFile]:
        """Every file of rows as it is written, so that it goes if the commit does not happen."""
        return self.changes.row_files

    def add(self, operation: SnapshotOperation) -> Snapshot | None:
        """Do an operation on files, on the branch of these changes."""
        return self.changes.add(SnapshotChange(operation, self.target))

    def append(self, data: Any) -> Snapshot | None:
        """Add rows."""
        return self._append(self._write(data))

    def dynamic_partition_overwrite(self, data: Any) -> Snapshot | None:
        """Add rows in place of all others of their partitions."""
        # Rows of an engine may come from the table itself; given ones are what they are.
        planned = replace(self._planned(props.DELETE_ISOLATION_LEVEL), read_nothing=engine_for(data) is None)
        files = self._write(data)
        return self.add(ReplacePartitions(self.metadata, files, planned, check_duplicates=False)) if files else None

    def delete(self, row_filter: str | ex.Expression, case_sensitive: bool = True) -> Snapshot | None:
        """Delete the rows that match."""
        return self._replace(ex.as_expression(row_filter), (), case_sensitive)

    def overwrite(self, data: Any, row_filter: str | ex.Expression, case_sensitive: bool = True) -> Snapshot | None:
        """Delete the rows that match, and add others, in one step."""
        return self._replace(ex.as_expression(row_filter), self._write(data), case_sensitive)

    def fill(self, data: Any) -> Snapshot | None:
        """Make the data all the rows of a table that was just replaced: the snapshot says that others went, as Java's does."""
        return self.add(Overwrite(self.metadata, None, add=self._write(data), row_filter=True, check_duplicates=False))

    def upsert(
        self,
        data: Any,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
    ) -> Snapshot | None:
        """Replace the rows that have the keys of the data by those of the data, and add the rest of it.

        The keys are the columns named, or the table's identifier fields. Rows that are replaced keep their row ids; rows that
        hold what comes already are left alone, and where there is nothing else to do, nothing is committed.
        """
        if not when_matched_update_all and not when_not_matched_insert_all:
            raise InvalidInputError("an upsert that neither updates nor inserts does nothing; allow one of them")
        schema = self.metadata.schema()
        key_ids = self._keys(join_cols, case_sensitive)
        rows = _concat(shape_table(each, schema) for each in incoming_tables(data))
        if rows is None or not rows.num_rows:
            return None
        incoming = IncomingRows(rows.combine_chunks(), schema, key_ids)
        return self._on_what_is_there(
            lambda change: change._upsert(incoming, when_matched_update_all, when_not_matched_insert_all)
        )

    def _upsert(self, incoming: IncomingRows, updates: bool, inserts: bool) -> Snapshot | None:
        planned = self._planned(props.MERGE_ISOLATION_LEVEL)
        touched = ex.bind(_key_filter(incoming.rows, incoming.key_schema), self.metadata.schema())
        lineage = allows(self.metadata.format_version, Feature.ROW_LINEAGE)
        tasks = self._scan(touched, True).plan_files()
        context = ReadContext(self.metadata, self.storage)
        found = find_key_matches(tasks, context, incoming, lineage=lineage, compare=updates)
        change = plan_upsert(
            incoming,
            list(found),
            context,
            updates=updates,
            inserts=inserts,
            lineage=lineage,
        )
        if not change.rows.num_rows:
            return None
        with ThreadPoolExecutor(1, thread_name_prefix="icefloe-upsert") as pool:
            # New files and files without the rows that go are written side by side.
            writing = pool.submit(
                write_data_files, change.rows, self.metadata, self.storage, lineage=lineage, written=self.written
            )
            is_copied = change.replaced and self._copies(props.MERGE_MODE)
            rewritten = self._rewritten(change.replaced, context) if is_copied else None
            files = writing.result()
        relies = change.leaves_rows
        return self._commit(
            planned, props.MERGE_MODE, change.replaced, files, touched, rewritten, relies_on_read=relies
        )

    # -- what is planned already

    def replace_files(
        self,
        planned: Planned,
        added: Sequence[DataFile],
        removed: Sequence[DataFile],
        read: ex.Expression,
        *,
        relies_on_read: bool = False,
    ) -> Snapshot | None:
        """Remove data files and add others that were just written; `read` is which rows that relies on."""
        operation = Overwrite(
            self.metadata,
            planned,
            add=added,
            remove=removed,
            conflict_filter=read,
            check_duplicates=False,
            relies_on_read=relies_on_read,
        )
        return self.add(operation)

    def delete_matches(
        self, planned: Planned, matches: Sequence[MatchedRows], added: Sequence[DataFile], read: ex.Expression
    ) -> Snapshot | None:
        """Delete rows where they are, and add files that were just written; `read` is which rows that relies on."""
        partly = [match for match in matches if not match.is_whole_file]
        has_vectors = allows(self.metadata.format_version, Feature.DELETION_VECTORS)
        operation = RowDelta(
            self.metadata,
            planned,
            add=added,
            # Positions, not files: the commit writes the vectors, merged with those that others add meanwhile.
            vectors={match.task.file.file_path: match.positions for match in partly} if has_vectors else None,
            deletes=() if has_vectors else self._write_deletes(partly),
            remove=[match.task.file for match in matches if match.is_whole_file],
            conflict_filter=read,
            check_duplicates=False,
        )
        return self.add(operation)

    def _write_deletes(self, matches: Sequence[MatchedRows]) -> tuple[DataFile, ...]:
        return write_deletes(matches, self.metadata, self.storage, written=self.written).added_deletes

    # -- deletes and overwrites

    def _replace(
        self, row_filter: ex.Expression, files: list[DataFile] | tuple[()], case_sensitive: bool
    ) -> Snapshot | None:
        return self._on_what_is_there(lambda change: change._replace_now(row_filter, files, case_sensitive), files)

    def _replace_now(
        self, row_filter: ex.Expression, files: list[DataFile] | tuple[()], case_sensitive: bool
    ) -> Snapshot | None:
        planned = self._planned(props.DELETE_ISOLATION_LEVEL)
        scan = self._scan(row_filter, case_sensitive)
        matches = list(find_matching_rows(scan.plan_files(), ReadContext(self.metadata, self.storage)))
        return self._commit(planned, props.DELETE_MODE, matches, files, scan.bound_filter)

    def _commit(
        self,
        planned: Planned,
        mode: props.Property[str],
        matches: Sequence[MatchedRows],
        files: Sequence[DataFile],
        read: ex.Expression,
        rewritten: RowChanges | None = None,
        *,
        relies_on_read: bool = False,
    ) -> Snapshot | None:
        if not matches and not files:
            return None
        if not matches:
            # Nothing to remove now, but others may have added rows that match meanwhile: the commit looks for them.
            return self.replace_files(planned, files, (), read, relies_on_read=relies_on_read)
        if self._copies(mode):
            changes = rewritten or self._rewritten(matches, ReadContext(self.metadata, self.storage))
            added = (*files, *changes.added_data)
            return self.replace_files(planned, added, changes.removed_data, read, relies_on_read=relies_on_read)
        return self.delete_matches(planned, matches, files, read)

    def _copies(self, mode: props.Property[str]) -> bool:
        has_deletes = allows(self.metadata.format_version, Feature.DELETE_FILES)
        return mode.of(self.metadata.properties) == _COPY or not has_deletes

    def _rewritten(self, matches: Sequence[MatchedRows], context: ReadContext) -> RowChanges:
        return rewrite_without(matches, context, written=self.written)

    # -- upserts

    def _keys(self, names: Sequence[str] | None, case_sensitive: bool) -> tuple[int, ...]:
        schema = self.metadata.schema()
        if names is None:
            if not schema.identifier_field_ids:
                raise InvalidInputError("the table has no identifier fields; name the columns to join by, as join_cols")
            return schema.identifier_field_ids
        found = tuple(schema.find_field(name, case_sensitive).field_id for name in names)
        nested = [name for name, field_id in zip(names, found, strict=True) if field_id in schema.parents]
        if not found or nested:
            raise InvalidInputError(
                f"rows are joined by top-level columns, at least one; given: {', '.join(names) or 'none'}"
            )
        return found

    # -- parts of all of them

    def _on_what_is_there(
        self, change: Callable[["RowOperations"], Snapshot | None], files: Sequence[DataFile] = ()
    ) -> Snapshot | None:
        """The change, planned on the newest state if what this one names is not there any more; `files` are of both."""
        written = len(self.written)
        try:
            return change(self)
        except LocationNotFoundError:
            newest = self._renewed()
            specs = {each.spec_id for each in files}
            if newest is None or any(
                newest.metadata.specs_by_id.get(each) != self.metadata.spec(each) for each in specs
            ):
                raise
        # Files of the first try are of no use to the second one, and no commit names them.
        self.changes.discard(self.written[written:])
        return change(newest)

    def _renewed(self) -> "RowOperations | None":
        """The same on the newest state, if that is another one: what is to be read may have expired since it was loaded."""
        if not self.changes.rebase():
            return None
        metadata = self.changes.table_metadata
        return replace(self, metadata=metadata, target=target_of(metadata, self.target.branch, self.target.properties))

    def _planned(self, isolation: props.Property[str]) -> Planned:
        return Planned.on(self.metadata, self.target.branch, Isolation.of(self.metadata, isolation))

    def _scan(self, row_filter: ex.Expression, case_sensitive: bool) -> TableScan:
        ref = self.target.branch if self.target.branch in self.metadata.refs else None
        return TableScan(self.metadata, self.storage, row_filter, ref=ref, case_sensitive=case_sensitive)

    def _write(self, data: Any) -> list[DataFile]:
        metadata = self.metadata
        if self.write_properties:
            metadata = replace(metadata, properties={**metadata.properties, **self.write_properties})
        engine = engine_for(data)
        if engine is not None:
            return engine.write(data, WriteRequest(metadata, self.storage, self.written))
        return write_data_files(data, metadata, self.storage, written=self.written)

    def _append(self, files: list[DataFile]) -> Snapshot | None:
        if not files:
            return None
        # Files that were just written have names of their own: no other commit can have them.
        merge = props.MANIFEST_MERGE_ENABLED.of(self.metadata.properties)
        return self.add(Append(self.metadata, files, merge=merge, check_duplicates=False))


def _concat(parts: Iterable[Any]) -> Any:
    tables = [pa.Table.from_batches([each]) if isinstance(each, pa.RecordBatch) else each for each in parts]
    return pa.concat_tables(tables) if tables else None


def _plain_keys(rows: Any, names: list[str]) -> Any:
    """The key columns as types that Arrow can group and join by."""
    columns = [rows.column(name) for name in names]
    stored = [
        each.cast(each.type.storage_type) if isinstance(each.type, pa.BaseExtensionType) else each for each in columns
    ]
    return pa.table(stored, names=names)


def _key_filter(rows: Any, schema: Schema) -> ex.Expression:
    """What all rows with one of the keys match: the keys of one column if they are few, else the range of each column."""
    found: ex.Expression = ex.AlwaysTrue()
    keys = _plain_keys(rows, [each.name for each in schema.fields])
    for each in schema.fields:
        values, kind = keys.column(each.name), each.field_type
        if len(schema) == 1 and rows.num_rows <= _LISTED_KEYS:
            return ex.Column(ex.IdReference(each.field_id)).is_in(
                ex.Literal(internal_value(value, kind), kind) for value in values
            )
        ends = pc.min_max(values)
        low, high = (ex.Literal(internal_value(ends[end], kind), kind) for end in ("min", "max"))
        found = found & ex.Column(ex.IdReference(each.field_id)).between(low, high)
    return found
