"""Several changes of one table in one commit, under the names by which the handle offers each alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from icefloe import properties as props
from icefloe.commit import (
    ChangeSet,
    Committed,
    Expire,
    GiveNameMapping,
    Outcome,
    SendUpdates,
    SetLocation,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
    StatisticsChange,
    UpgradeFormatVersion,
    schema_update,
    sort_order_update,
    spec_update,
    target_of,
)
from icefloe.data import ForeignFile, RowsInput, describe_files, foreign_file
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.metadata import Snapshot, updates as up
from icefloe.partitioning import PartitionSpecUpdate, SortOrderUpdate
from icefloe.rows import Branch, RowOperations
from icefloe.schema import SchemaUpdate, create_name_mapping, format_name_mapping
from icefloe.table.manage_snapshots import ManageSnapshots
from icefloe.table.update_snapshot import UpdateSnapshot

if TYPE_CHECKING:
    from icefloe.table.handle import Table


class Transaction(ChangeSet):
    """Changes that are committed together, all or none; the table is not touched before.

    Leaving the `with` block commits; leaving it by an error discards everything.

    >>> with table.transaction() as tx, tx.update_schema() as update:
    ...     changed = update.rename_column("total", "amount")
    >>> table.schema().column_names
    ('id', 'region', 'amount')
    """

    def __init__(self, table: "Table") -> None:
        super().__init__(
            table._state, table._committer, caches=table._caches, timing=table._timing, reporter=table._reporter
        )
        self._table = table

    def rows(self, branch: str | None = None, snapshot_properties: Mapping[str, str] | None = None) -> RowOperations:
        """Changes of rows: append, overwrite, delete, upsert; each call is one snapshot of the commit."""
        return RowOperations(Branch.on(self, self._table.scan(), branch, snapshot_properties))

    def append(
        self, data: RowsInput, snapshot_properties: Mapping[str, str] | None = None, branch: str | None = None
    ) -> Snapshot | None:
        """Add rows."""
        return self.rows(branch, snapshot_properties).append(data)

    def overwrite(
        self,
        data: RowsInput,
        overwrite_filter: str | Expression | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        case_sensitive: bool = True,
    ) -> Snapshot | None:
        """Delete matching rows, or all rows without a filter, and add others."""
        chosen = AlwaysTrue() if overwrite_filter is None else overwrite_filter
        return self.rows(branch, snapshot_properties).overwrite(data, chosen, case_sensitive)

    def dynamic_partition_overwrite(
        self, data: RowsInput, snapshot_properties: Mapping[str, str] | None = None, branch: str | None = None
    ) -> Snapshot | None:
        """Add rows, replacing all others in their partitions."""
        return self.rows(branch, snapshot_properties).dynamic_partition_overwrite(data)

    def delete(
        self,
        delete_filter: str | Expression,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        case_sensitive: bool = True,
    ) -> Snapshot | None:
        """Delete matching rows."""
        return self.rows(branch, snapshot_properties).delete(delete_filter, case_sensitive)

    def upsert(
        self,
        data: RowsInput,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Replace rows that have a key of the data, and insert the other rows of the data; see `Table.upsert`."""
        switches = (when_matched_update_all, when_not_matched_insert_all, case_sensitive)
        return self.rows(branch, snapshot_properties).upsert(data, join_cols, *switches)

    def add_files(
        self,
        file_paths: Sequence[str | ForeignFile],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str | None = None,
        *,
        spec_id: int | None = None,
        workers: int | None = None,
    ) -> Snapshot | None:
        """Add existing data files as they are; see `Table.add_files`."""
        metadata, storage = self.table_metadata, self.storage
        foreign = [path if isinstance(path, ForeignFile) else foreign_file(storage, path) for path in file_paths]
        spec = None if spec_id is None else metadata.spec(spec_id)
        described = describe_files(foreign, metadata, storage, spec, workers)
        if described.need_mapping:
            known = props.NAME_MAPPING.of(metadata.properties)
            self.add(GiveNameMapping(known or format_name_mapping(create_name_mapping(metadata.schema()))))
        if not described.files:
            return None
        update = self.update_snapshot(branch, snapshot_properties)
        return update.merge_append(described.files, check_duplicates=check_duplicate_files)

    def update_snapshot(
        self,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        stage_only: bool = False,
    ) -> UpdateSnapshot:
        """Low-level changes of files."""
        target = target_of(self.table_metadata, branch, snapshot_properties, stage_only=stage_only)
        return UpdateSnapshot(self.table_metadata, target, self.add)

    @contextmanager
    def update_schema(
        self, allow_incompatible_changes: bool = False, case_sensitive: bool = True
    ) -> Iterator[SchemaUpdate]:
        """Change the schema."""
        planned = self.table_metadata
        update = schema_update(
            planned, allow_incompatible_changes=allow_incompatible_changes, case_sensitive=case_sensitive
        )
        yield update
        self.add(SetSchema(update.apply(), planned))

    @contextmanager
    def update_spec(self, case_sensitive: bool = True) -> Iterator[PartitionSpecUpdate]:
        """Change the partition spec."""
        planned = self.table_metadata
        update = spec_update(planned, case_sensitive=case_sensitive)
        yield update
        self.add(SetSpec(update.apply().spec, planned))

    @contextmanager
    def update_sort_order(self, case_sensitive: bool = True) -> Iterator[SortOrderUpdate]:
        """Replace the sort order."""
        planned = self.table_metadata
        update = sort_order_update(planned, case_sensitive=case_sensitive)
        yield update
        self.add(SetSortOrder(update.apply(), planned))

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot."""
        return ManageSnapshots(lambda: nullcontext(self))

    def set_properties(self, properties: Mapping[str, str] | None = None, **more: str) -> Self:
        """Set table properties."""
        self.add(SetProperties({**(properties or {}), **more}))
        return self

    def remove_properties(self, *keys: str) -> Self:
        """Remove table properties."""
        self.add(SetProperties(removals=keys))
        return self

    def update_location(self, location: str) -> Self:
        """Move the base location for new files."""
        self.add(SetLocation(location))
        return self

    def upgrade_format_version(self, version: int) -> Self:
        """Move the table to a newer format version; there is no way back."""
        self.add(UpgradeFormatVersion(version))
        return self

    def update_statistics(self, change: StatisticsChange) -> Self:
        """Set and remove statistics files."""
        self.add(change)
        return self

    def expire_snapshots(self, expire: Expire) -> Self:
        """Drop old snapshots from the metadata; no file is deleted."""
        self.add(expire)
        return self

    def apply_updates(self, *updates: up.TableUpdate) -> Self:
        """Any metadata updates, as they are."""
        self.add(SendUpdates(updates))
        return self

    def commit_transaction(self) -> "Table":
        """Commit all changes, or fail as a whole."""
        self.commit()
        return self._table

    def try_commit(self) -> Outcome:
        """The same, with the outcome as a value instead of an error; the table handle moves to the new state."""
        outcome = super().try_commit()
        if isinstance(outcome, Committed):
            self._table._state = outcome.state
        return outcome
