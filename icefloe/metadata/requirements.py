"""Requirements: conditions on the current metadata under which a commit may go ahead."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from icefloe.errors import CommitFailed, InvalidInputError
from icefloe.metadata.table import TableMetadata
from icefloe.metadata.view import ViewMetadata

State = TableMetadata | ViewMetadata | None
"""What a commit meets: a table, a view, or nothing under that name."""


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """There is nothing under the name yet."""

    def check(self, state: State) -> None:
        """Fail if there is."""
        if state is not None:
            noun = "view" if isinstance(state, ViewMetadata) else "table"
            _lost(f"no {noun}", "it exists")


@dataclass(frozen=True, slots=True)
class AssertTableUUID:
    """The table is the intended one, not another of the same name."""

    uuid: str

    def check(self, state: State) -> None:
        """Fail if it is another."""
        uuid = _table(state, self).table_uuid
        if uuid is None or uuid.lower() != self.uuid.lower():
            _lost(f"the table's UUID to be {self.uuid}", f"it is {uuid}")


@dataclass(frozen=True, slots=True)
class AssertViewUUID:
    """The view is the intended one, not another of the same name."""

    uuid: str

    def check(self, state: State) -> None:
        """Fail if it is another."""
        if isinstance(state, TableMetadata):
            raise InvalidInputError(f"{self} applies to a view, not to a table")
        if state is None or state.view_uuid.lower() != self.uuid.lower():
            _lost(
                f"the view's UUID to be {self.uuid}",
                "there is no view" if state is None else f"it is {state.view_uuid}",
            )


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag points to that snapshot; None: there is no such ref."""

    ref: str
    snapshot_id: int | None

    def check(self, state: State) -> None:
        """Fail if it points elsewhere."""
        ref = _table(state, self).refs.get(self.ref)
        snapshot_id = None if ref is None else ref.snapshot_id
        if snapshot_id != self.snapshot_id:
            name = f"{'ref' if ref is None else ref.ref_type.value} {self.ref!r}"
            expected = "not to exist" if self.snapshot_id is None else f"to be at snapshot {self.snapshot_id}"
            _lost(f"{name} {expected}", "it does not exist" if snapshot_id is None else f"it is at {snapshot_id}")


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column id was assigned in between."""

    last_assigned_field_id: int

    def check(self, state: State) -> None:
        """Fail if one was."""
        last_id = _table(state, self).last_column_id
        _same("the last assigned column id", self.last_assigned_field_id, last_id)


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is that one."""

    current_schema_id: int

    def check(self, state: State) -> None:
        """Fail if it is another."""
        _same("the current schema id", self.current_schema_id, _table(state, self).current_schema_id)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field id was assigned in between."""

    last_assigned_partition_id: int

    def check(self, state: State) -> None:
        """Fail if one was."""
        last_id = _table(state, self).last_partition_id
        _same("the last assigned partition field id", self.last_assigned_partition_id, last_id)


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec is that one."""

    default_spec_id: int

    def check(self, state: State) -> None:
        """Fail if it is another."""
        _same("the default partition spec id", self.default_spec_id, _table(state, self).default_spec_id)


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is that one."""

    default_sort_order_id: int

    def check(self, state: State) -> None:
        """Fail if it is another."""
        _same("the default sort order id", self.default_sort_order_id, _table(state, self).default_sort_order_id)


TableRequirement = (
    AssertCreate
    | AssertTableUUID
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
"""Every condition on a table."""

ViewRequirement = AssertCreate | AssertViewUUID
"""Every condition on a view."""

Requirement = TableRequirement | ViewRequirement
"""Every condition on either."""


def check_all(requirements: Sequence[Requirement], state: State) -> None:
    """Fail at the first requirement that does not hold."""
    for requirement in requirements:
        requirement.check(state)


def _table(state: State, requirement: Requirement) -> TableMetadata:
    if isinstance(state, ViewMetadata):
        raise InvalidInputError(f"{requirement} applies to a table, not to a view")
    if state is None:
        _lost(f"{requirement} to hold", "there is no table")
    return state


def _same(what: str, expected: int, actual: int) -> None:
    if expected != actual:
        _lost(f"{what} to be {expected}", f"it is {actual}")


def _lost(expected: str, actual: str) -> NoReturn:
    raise CommitFailed(f"requirement failed: expected {expected}, but {actual}")
