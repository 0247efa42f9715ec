"""Table changes by name: on a table each is its own commit, on a transaction part of its commit."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Self

from icefloe import commit as cm, expressions as ex, metadata as md, partitioning as pt, properties as props
from icefloe.commit import structure
from icefloe.data import ForeignFile, RowsInput, describe_files, foreign_file
from icefloe.progress import Listener, listener_or_bar
from icefloe.schema import SchemaUpdate, create_name_mapping, format_name_mapping
from icefloe.table.manage_snapshots import ManageSnapshots
from icefloe.table.update_snapshot import UpdateSnapshot

if TYPE_CHECKING:
    from icefloe.table.transaction import Transaction


class TableChanges(ABC):
    """Changes that tables and transactions have in common."""

    @abstractmethod
    def _begin(self) -> "AbstractContextManager[Transaction]":
        """Return the transaction for the next change."""

    @property
    @abstractmethod
    def _planned_on(self) -> md.TableMetadata:
        """Return the metadata that the next change is based on."""

    def _add(self, change: cm.Change) -> md.Snapshot | None:
        with self._begin() as tx:
            planned = tx.add(change)
        return tx.as_committed(planned)

    def append(
        self,
        data: RowsInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        *,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Append rows and return the new snapshot.

        Args:
            data: Arrow data, a pandas, Polars or Spark DataFrame, or a stream of batches; columns are matched by name.
            snapshot_properties: properties to add to the snapshot summary.
            branch: the branch to change instead of `main`.
            progress: called with the number of rows written; by default a progress bar is shown on terminals and in
                notebooks after two seconds.

        >>> snapshot = table.append(pa.table({"id": [4], "region": ["us"], "total": [5.0]}))
        >>> table.scan().count()
        4
        """
        with self._begin() as tx:
            planned = tx.rows(branch, snapshot_properties, listener_or_bar(progress)).append(data)
        return tx.as_committed(planned)

    def overwrite(
        self,
        data: RowsInput,
        overwrite_filter: str | ex.Expression | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        case_sensitive: bool = True,
        *,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Replace matching rows, or all rows without a filter, with new rows in one commit.

        Args:
            data: the rows to add, in any form that `append` accepts.
            overwrite_filter: which rows to delete, as SQL text or an expression.
            snapshot_properties: properties to add to the snapshot summary.
            branch: the branch to change instead of `main`.
            case_sensitive: whether column names in the filter are case-sensitive.
            progress: called for each file searched and with the number of rows written; by default a progress bar is
                shown on terminals and in notebooks after two seconds.

        >>> snapshot = table.overwrite(pa.table({"id": [9], "region": ["eu"], "total": [1.0]}), "region = 'eu'")
        >>> sorted(table.scan().to_arrow().column("id").to_pylist())
        [2, 9]
        """
        chosen = ex.AlwaysTrue() if overwrite_filter is None else overwrite_filter
        with self._begin() as tx:
            planned = tx.rows(branch, snapshot_properties, listener_or_bar(progress)).overwrite(
                data, chosen, case_sensitive
            )
        return tx.as_committed(planned)

    def dynamic_partition_overwrite(
        self,
        data: RowsInput,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        *,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Replace all rows of the partitions that the new rows belong to; `progress` is as in `append`."""
        with self._begin() as tx:
            planned = tx.rows(branch, snapshot_properties, listener_or_bar(progress)).dynamic_partition_overwrite(data)
        return tx.as_committed(planned)

    def delete(
        self,
        delete_filter: str | ex.Expression,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str | None = None,
        case_sensitive: bool = True,
        *,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Delete matching rows, using `write.delete.mode`; return None if no row matches.

        Args:
            delete_filter: which rows, as SQL text or an expression.
            snapshot_properties: properties to add to the snapshot summary.
            branch: the branch to change instead of `main`.
            case_sensitive: whether column names in the filter are case-sensitive.
            progress: called for each file searched and with the number of rows written; by default a progress bar is
                shown on terminals and in notebooks after two seconds.

        >>> snapshot = table.delete("id = 1 or total > 25")
        >>> table.scan().to_arrow().column("id").to_pylist()
        [2]
        """
        with self._begin() as tx:
            planned = tx.rows(branch, snapshot_properties, listener_or_bar(progress)).delete(
                delete_filter, case_sensitive
            )
        return tx.as_committed(planned)

    def upsert(
        self,
        data: RowsInput,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Update rows with matching keys and insert all other rows, using `write.merge.mode`.

        Args:
            data: the rows, in any form that `append` accepts; keys must be unique.
            join_cols: the key columns; by default the identifier fields of the schema.
            when_matched_update_all: whether to update rows whose key exists.
            when_not_matched_insert_all: whether to insert rows whose key is new.
            case_sensitive: whether column names are case-sensitive.
            branch: the branch to change instead of `main`.
            snapshot_properties: properties to add to the snapshot summary.
            progress: called for each file searched and with the number of rows written; by default a progress bar is
                shown on terminals and in notebooks after two seconds.

        >>> changes = pa.table({"id": [3, 4], "region": ["eu", "us"], "total": [33.0, 40.0]})
        >>> snapshot = table.upsert(changes, join_cols=["id"])
        >>> sorted(table.scan().to_arrow().column("total").to_pylist())
        [10.0, 20.0, 33.0, 40.0]
        """
        switches = (when_matched_update_all, when_not_matched_insert_all, case_sensitive)
        with self._begin() as tx:
            planned = tx.rows(branch, snapshot_properties, listener_or_bar(progress)).upsert(data, join_cols, *switches)
        return tx.as_committed(planned)

    def add_files(
        self,
        file_paths: Sequence[str | ForeignFile],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str | None = None,
        *,
        spec_id: int | None = None,
        workers: int | None = None,
        progress: Listener | None = None,
    ) -> md.Snapshot | None:
        """Add existing data files in place: Parquet, or ORC and Avro by their file extensions.

        The files are checked against the schema first. The partition of a file is taken from its `name=value` folders, or
        from its column statistics, in the current partition spec or that of `spec_id`. If files have no field ids, the
        table gets a name mapping unless it has one. `progress` is called for each file checked.
        """

        with self._begin() as tx:
            metadata, storage = tx.table_metadata, tx.storage
            foreign = [path if isinstance(path, ForeignFile) else foreign_file(storage, path) for path in file_paths]
            spec = None if spec_id is None else metadata.spec(spec_id)
            described = describe_files(foreign, metadata, storage, spec, workers, progress)
            if described.need_mapping:
                known = props.NAME_MAPPING.of(metadata.properties)
                tx.add(structure.GiveNameMapping(known or format_name_mapping(create_name_mapping(metadata.schema()))))
            if not described.files:
                return None
            update = tx.update_snapshot(branch, snapshot_properties)
            planned = update.merge_append(described.files, check_duplicates=check_duplicate_files)
        return tx.as_committed(planned)

    def update_snapshot(
        self,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        stage_only: bool = False,
    ) -> UpdateSnapshot:
        """Change files at a low level; each operation creates a snapshot."""
        metadata = self._planned_on
        target = cm.target_of(metadata, branch, snapshot_properties, stage_only=stage_only)
        return UpdateSnapshot(metadata, target, self._add)

    @contextmanager
    def update_schema(
        self, allow_incompatible_changes: bool = False, case_sensitive: bool = True
    ) -> Iterator[SchemaUpdate]:
        """Change the schema: `with table.update_schema() as update: update.add_column(...)`."""
        with self._begin() as tx:
            planned = tx.table_metadata
            update = structure.schema_update(
                planned, allow_incompatible_changes=allow_incompatible_changes, case_sensitive=case_sensitive
            )
            yield update
            tx.add(structure.SetSchema(update.apply(), planned))

    @contextmanager
    def update_spec(self, case_sensitive: bool = True) -> Iterator[pt.PartitionSpecUpdate]:
        """Change the partition spec: `with table.update_spec() as update: update.add_field(...)`."""
        with self._begin() as tx:
            planned = tx.table_metadata
            update = structure.spec_update(planned, case_sensitive=case_sensitive)
            yield update
            tx.add(structure.SetSpec(update.apply().spec, planned))

    @contextmanager
    def update_sort_order(self, case_sensitive: bool = True) -> Iterator[pt.SortOrderUpdate]:
        """Replace the sort order: `with table.update_sort_order() as update: update.asc(...)`."""
        with self._begin() as tx:
            planned = tx.table_metadata
            update = structure.sort_order_update(planned, case_sensitive=case_sensitive)
            yield update
            tx.add(structure.SetSortOrder(update.apply(), planned))

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot."""
        return ManageSnapshots(self._begin)

    def set_properties(self, properties: Mapping[str, str] | None = None, **more: str) -> Self:
        """Set table properties."""
        with self._begin() as tx:
            tx.add(structure.SetProperties({**(properties or {}), **more}))
        return self

    def remove_properties(self, *keys: str) -> Self:
        """Remove table properties."""
        with self._begin() as tx:
            tx.add(structure.SetProperties(removals=keys))
        return self

    def upgrade_format_version(self, version: int) -> Self:
        """Upgrade the table to a newer format version; this cannot be undone."""
        with self._begin() as tx:
            tx.add(structure.UpgradeFormatVersion(version))
        return self
