"""Changes of rows as calls: append, overwrite, delete, upsert; each is one snapshot of the commit that it is part of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe import commit as cm, errors, expressions as ex, manifests as mf, metadata as md, properties as props
from icefloe.data import RowsInput, WriteRequest, incoming_tables, known_rows, shape_table
from icefloe.progress import Stage
from icefloe.rows.branch import Branch
from icefloe.rows.change import DELETE, MERGE, RowChange, Statement, rewrite
from icefloe.rows.engines import ARROW, Engine, engine_for
from icefloe.rows.upsert import IncomingRows, key_columns_of, upsert


@dataclass(frozen=True, slots=True)
class RowOperations:
    """The changes of rows of one branch. `write_properties` stand in for the table's where data becomes files."""

    branch: Branch
    write_properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata(self) -> md.TableMetadata:
        """The table that the changes are planned on."""
        return self.branch.metadata

    def _request(self, written: Stage) -> WriteRequest:
        """Where new rows go, counted in a stage."""
        metadata, changes = self.metadata, self.branch.changes
        if self.write_properties:
            metadata = replace(metadata, properties={**metadata.properties, **self.write_properties})
        return WriteRequest(metadata, changes.storage, changes.row_files, wrote=written.step)

    def append(self, data: RowsInput) -> md.Snapshot | None:
        """Add rows."""
        written = Stage("rows", known_rows(data), self.branch.progress)
        files = engine_for(data).write(data, self._request(written))
        if not files:
            return None
        written.finish()
        # Files that were just written have names of their own: no other commit can have them.
        merge = props.MANIFEST_MERGE_ENABLED.of({**self.metadata.properties, **self.write_properties})
        append = cm.Append(self.metadata, files, merge=merge, check_duplicates=False)
        return self.branch.changes.add(cm.SnapshotChange(append, self.branch.target))

    def dynamic_partition_overwrite(self, data: RowsInput) -> md.Snapshot | None:
        """Add rows in place of all others of their partitions."""
        # Rows of an engine may come from the table itself; those in memory are what they are.
        engine = engine_for(data)
        planned = replace(DELETE.planned(self.branch), read_nothing=engine is ARROW)
        written = Stage("rows", known_rows(data), self.branch.progress)
        files = engine.write(data, self._request(written))
        if not files:
            return None
        written.finish()
        replaced = cm.ReplacePartitions(self.metadata, files, planned, check_duplicates=False)
        return self.branch.changes.add(cm.SnapshotChange(replaced, self.branch.target))

    def fill(self, data: RowsInput) -> md.Snapshot | None:
        """Make the data all the rows of a table that was just replaced: the snapshot says that others went, as Java's does."""
        files = engine_for(data).write(data, self._request(self.branch.written))
        self.branch.written.finish()
        filled = cm.Overwrite(self.metadata, None, add=files, row_filter=True, check_duplicates=False)
        return self.branch.changes.add(cm.SnapshotChange(filled, self.branch.target))

    def delete(self, row_filter: str | ex.Expression, case_sensitive: bool = True) -> md.Snapshot | None:
        """Delete the rows that match."""
        return self._replace(row_filter, (), case_sensitive)

    def overwrite(
        self, data: RowsInput, row_filter: str | ex.Expression, case_sensitive: bool = True
    ) -> md.Snapshot | None:
        """Delete the rows that match, and add others, in one step."""
        files = engine_for(data).write(data, self._request(self.branch.written))
        return self._replace(row_filter, files, case_sensitive)

    def upsert(
        self,
        data: RowsInput,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
    ) -> md.Snapshot | None:
        """Replace the rows that have the keys of the data by those of the data, and add the rest of it.

        The keys are the columns named, or the table's identifier fields. Rows that are replaced keep their row ids; rows that
        already equal the incoming ones are left alone, and where there is nothing else to do, nothing is committed.
        """
        updates, inserts = when_matched_update_all, when_not_matched_insert_all
        if not updates and not inserts:
            raise errors.InvalidInputError("an upsert must update, insert or both")
        schema = self.metadata.schema()
        key_ids = key_columns_of(schema, join_cols, case_sensitive)
        tables = [shape_table(table, schema) for table in incoming_tables(data)]
        if not any(table.num_rows for table in tables):
            return None
        incoming = IncomingRows(pa.concat_tables(tables).combine_chunks(), schema, key_ids)
        return self._retried(MERGE, lambda change: upsert(change, incoming, updates=updates, inserts=inserts))

    def change(self, statement: Statement, engine: Engine = ARROW) -> RowChange:
        """A change of rows of the branch by an engine."""
        return RowChange(self.branch, statement, engine)

    def _replace(
        self, row_filter: str | ex.Expression, files: Sequence[mf.DataFile], case_sensitive: bool
    ) -> md.Snapshot | None:
        def replace_now(change: RowChange) -> md.Snapshot | None:
            scan = change.branch.scan(ex.as_expression(row_filter), case_sensitive=case_sensitive)
            matches = change.find(scan, scan.bound_filter)
            return change.commit(matches, [*files, *rewrite(change, matches)], scan.bound_filter)

        return self._retried(DELETE, replace_now, files)

    def _retried(
        self, statement: Statement, run: Callable[[RowChange], md.Snapshot | None], files: Sequence[mf.DataFile] = ()
    ) -> md.Snapshot | None:
        """The result of a change, made once more on the newest state if files to read are gone; `files` are of both."""
        changes = self.branch.changes
        written = len(changes.row_files)
        try:
            return run(self.change(statement))
        except errors.LocationNotFoundError:
            newest = self.branch.renewed()
            specs = {file.spec_id for file in files}
            if newest is None or any(
                newest.metadata.specs_by_id.get(spec) != self.metadata.spec(spec) for spec in specs
            ):
                raise
        # Files of the first try are of no use to the second one, and no commit names them.
        changes.discard(changes.row_files[written:])
        return run(replace(self, branch=newest).change(statement))
