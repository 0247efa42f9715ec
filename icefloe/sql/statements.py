"""The statements that Iceberg adds to SQL, as values, and what each does to its table, in one commit.

Columns may be named in another case unless a statement is run as case-sensitive.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from icefloe import errors, metadata as md, partitioning as pt, properties as props
from icefloe.table import Table

Parts = tuple[str, ...]
"""The parts of a table's name as written, catalog and namespace among them."""


class WhenRefExists(Enum):
    """What CREATE and REPLACE of a branch or tag do about one that exists, or does not."""

    FAIL = "create"
    KEEP = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"


@dataclass(frozen=True, slots=True)
class Statement(ABC):
    """One statement about one table."""

    table: Parts

    @abstractmethod
    def run(self, table: Table, case_sensitive: bool = True) -> None:
        """Run it on the table."""


@dataclass(frozen=True, slots=True)
class AddPartitionField(Statement):
    """`ADD PARTITION FIELD term [AS name]`."""

    term: str
    name: str | None = None

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        with table.update_spec(case_sensitive) as spec:
            spec.add_field(self.term, name=self.name)


@dataclass(frozen=True, slots=True)
class DropPartitionField(Statement):
    """`DROP PARTITION FIELD term`, where the term may also be the field's name."""

    term: str

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        with table.update_spec(case_sensitive) as spec:
            spec.remove_field(self.term)


@dataclass(frozen=True, slots=True)
class ReplacePartitionField(Statement):
    """`REPLACE PARTITION FIELD old WITH new [AS name]`."""

    old: str
    new: str
    name: str | None = None

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        with table.update_spec(case_sensitive) as spec:
            spec.remove_field(self.old)
            spec.add_field(self.new, name=self.name)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order; nulls are where the direction puts them unless it says so."""

    term: str
    direction: pt.SortDirection = pt.SortDirection.ASC
    null_order: pt.NullOrder | None = None


@dataclass(frozen=True, slots=True)
class SetWriteOrder(Statement):
    """`WRITE ...`: the sort keys, and the distribution mode that goes with them; None leaves the mode alone."""

    order: tuple[SortKey, ...]
    distribution: str | None

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        with table.transaction() as tx:
            with tx.update_sort_order(case_sensitive) as order:
                for key in self.order:
                    by = order.asc if key.direction is pt.SortDirection.ASC else order.desc
                    by(key.term, null_order=key.null_order)
            if self.distribution is not None:
                tx.set_properties({props.DISTRIBUTION_MODE.key: self.distribution})


@dataclass(frozen=True, slots=True)
class SetIdentifierFields(Statement):
    """`SET IDENTIFIER FIELDS a, b`."""

    columns: tuple[str, ...]

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        with table.update_schema(case_sensitive=case_sensitive) as schema:
            schema.set_identifier_fields(*self.columns)


@dataclass(frozen=True, slots=True)
class DropIdentifierFields(Statement):
    """`DROP IDENTIFIER FIELDS a, b`."""

    columns: tuple[str, ...]

    def run(self, table: Table, case_sensitive: bool = True) -> None:
        current = table.schema()
        names = current.identifier_field_names
        dropped = []
        for column in self.columns:
            field_id = current.find_id(column, case_sensitive)
            if field_id not in current.identifier_field_ids:
                raise errors.NoSuchColumnError(
                    f"{column!r} is not an identifier field; identifier fields are {', '.join(names) or 'none'}"
                )
            dropped.append(current.find_column_name(field_id))
        with table.update_schema() as schema:
            schema.set_identifier_fields(*(name for name in names if name not in dropped))


@dataclass(frozen=True, slots=True)
class CreateRef(Statement):
    """`CREATE | REPLACE BRANCH | TAG name ...` with its retention."""

    ref_type: md.SnapshotRefType
    name: str
    when_exists: WhenRefExists = WhenRefExists.FAIL
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None

    def run(self, table: Table, case_sensitive: bool = True) -> None:  # noqa: ARG002 - refs are always case-sensitive
        exists = self.name in table.metadata.refs
        if self.when_exists is WhenRefExists.KEEP and exists:
            return
        replaces = self.when_exists is WhenRefExists.REPLACE or (
            self.when_exists is WhenRefExists.CREATE_OR_REPLACE and exists
        )
        retention = (self.max_ref_age_ms, self.max_snapshot_age_ms, self.min_snapshots_to_keep)
        with table.manage_snapshots() as refs:
            match self.ref_type, replaces:
                case md.SnapshotRefType.BRANCH, False:
                    refs.create_branch(self.name, self.snapshot_id, *retention)
                case md.SnapshotRefType.TAG, False:
                    refs.create_tag(self.name, self.snapshot_id, self.max_ref_age_ms)
                case md.SnapshotRefType.BRANCH, True:
                    refs.replace_branch(self.name, self._target(table.metadata))
                case _:
                    refs.replace_tag(self.name, self._target(table.metadata))
            if replaces and any(value is not None for value in retention):
                refs.set_retention(self.name, *retention)

    def _target(self, metadata: md.TableMetadata) -> int:
        if self.snapshot_id is not None:
            return self.snapshot_id
        current = metadata.current_snapshot()
        if current is None:
            raise errors.NoSuchSnapshotError(f"{self.name!r} cannot be replaced: main has no snapshot to point to")
        return current.snapshot_id


@dataclass(frozen=True, slots=True)
class DropRef(Statement):
    """`DROP BRANCH | TAG [IF EXISTS] name`."""

    ref_type: md.SnapshotRefType
    name: str
    if_exists: bool = False

    def run(self, table: Table, case_sensitive: bool = True) -> None:  # noqa: ARG002 - refs are always case-sensitive
        if self.if_exists and self.name not in table.metadata.refs:
            return
        with table.manage_snapshots() as refs:
            if self.ref_type is md.SnapshotRefType.BRANCH:
                refs.remove_branch(self.name)
            else:
                refs.remove_tag(self.name)
