"""The statements that Iceberg adds to SQL, as values: partition fields, write order, identifier fields, branches and tags."""

from dataclasses import dataclass
from enum import Enum

from icefloe.metadata import SnapshotRefType
from icefloe.partitioning import NullOrder, SortDirection

Parts = tuple[str, ...]
"""The parts of a table's name as written, catalog and namespace among them."""


class WhenRefExists(Enum):
    """What CREATE and REPLACE of a branch or tag do about one that exists, or does not."""

    FAIL = "create"
    KEEP = "create if not exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create or replace"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement about one table."""

    table: Parts


@dataclass(frozen=True, slots=True)
class AddPartitionField(Statement):
    """`ADD PARTITION FIELD term [AS name]`."""

    term: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPartitionField(Statement):
    """`DROP PARTITION FIELD term`, where the term may also be the field's name."""

    term: str


@dataclass(frozen=True, slots=True)
class ReplacePartitionField(Statement):
    """`REPLACE PARTITION FIELD old WITH new [AS name]`."""

    old: str
    new: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order; nulls are where the direction puts them unless it says so."""

    term: str
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder | None = None


@dataclass(frozen=True, slots=True)
class SetWriteOrder(Statement):
    """`WRITE ...`: the sort keys, and the distribution mode that goes with them; None leaves the mode alone."""

    order: tuple[SortKey, ...]
    distribution: str | None


@dataclass(frozen=True, slots=True)
class SetIdentifierFields(Statement):
    """`SET IDENTIFIER FIELDS a, b`."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropIdentifierFields(Statement):
    """`DROP IDENTIFIER FIELDS a, b`."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateRef(Statement):
    """`CREATE | REPLACE BRANCH | TAG name ...` with what is kept of it, and how long."""

    kind: SnapshotRefType
    name: str
    when_exists: WhenRefExists = WhenRefExists.FAIL
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropRef(Statement):
    """`DROP BRANCH | TAG [IF EXISTS] name`."""

    kind: SnapshotRefType
    name: str
    if_exists: bool = False
