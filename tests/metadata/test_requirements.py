"""Requirements: when each holds, what it says when it does not, and which ones a commit needs."""

from dataclasses import replace

import pytest

from icefloe.errors import CommitFailed, InvalidInputError
from icefloe.metadata import (
    MAIN_BRANCH,
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    AssertViewUUID,
    RemovePartitionSpecsUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableMetadata,
    TableRequirement,
    TableUpdate,
    apply_all,
    branch,
    check_all,
    requirements_for,
    requirements_for_replace,
    tag,
    view_requirements_for,
)
from icefloe.partitioning.spec import UNPARTITIONED
from icefloe.versions import ALL_VERSIONS
from tests.metadata.tables import BY_DAY, SCHEMA, UUID, new_table, next_snapshot
from tests.metadata.views import VIEW

versions = pytest.mark.parametrize("version", ALL_VERSIONS)


def with_refs(version: int) -> TableMetadata:
    base = new_table(version, BY_DAY)
    updates: list[TableUpdate] = [
        AddSnapshotUpdate(next_snapshot(base, 1)),
        SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)),
        SetSnapshotRefUpdate("b", branch(1)),
        SetSnapshotRefUpdate("t", tag(1)),
    ]
    return apply_all(base, updates, 0)


HOLDS: list[tuple[TableRequirement, TableRequirement]] = [
    (AssertTableUUID(UUID), AssertTableUUID("other")),
    (AssertTableUUID(UUID.upper()), AssertTableUUID("")),
    (AssertRefSnapshotId(MAIN_BRANCH, 1), AssertRefSnapshotId(MAIN_BRANCH, 2)),
    (AssertRefSnapshotId("t", 1), AssertRefSnapshotId("t", None)),
    (AssertRefSnapshotId("absent", None), AssertRefSnapshotId("absent", 1)),
    (AssertLastAssignedFieldId(3), AssertLastAssignedFieldId(2)),
    (AssertCurrentSchemaId(0), AssertCurrentSchemaId(1)),
    (AssertLastAssignedPartitionId(1000), AssertLastAssignedPartitionId(999)),
    (AssertDefaultSpecId(0), AssertDefaultSpecId(1)),
    (AssertDefaultSortOrderId(0), AssertDefaultSortOrderId(1)),
]


@versions
@pytest.mark.parametrize(("holds", "fails"), HOLDS, ids=str)
def test_requirements_on_a_table(version: int, holds: TableRequirement, fails: TableRequirement) -> None:
    metadata = with_refs(version)
    holds.check(metadata)
    with pytest.raises(CommitFailed, match=r"expected .* (not )?to .*, but "):
        fails.check(metadata)
    for requirement in (holds, fails):
        with pytest.raises(CommitFailed, match="there is no table"):
            requirement.check(None)
        with pytest.raises(InvalidInputError, match="not to a view"):
            requirement.check(VIEW)


def test_a_failure_says_what_was_expected_and_what_is_there() -> None:
    with pytest.raises(CommitFailed, match="expected branch 'main' to be at snapshot 7, but it is at 1"):
        AssertRefSnapshotId(MAIN_BRANCH, 7).check(with_refs(2))
    with pytest.raises(CommitFailed, match="expected tag 't' not to exist, but it is at 1"):
        AssertRefSnapshotId("t", None).check(with_refs(2))


def test_creation() -> None:
    AssertCreate().check(None)
    for state, kind in ((new_table(2), "table"), (VIEW, "view")):
        with pytest.raises(CommitFailed, match=f"expected no {kind}, but it exists"):
            AssertCreate().check(state)


def test_views() -> None:
    AssertViewUUID(VIEW.view_uuid.upper()).check(VIEW)
    for state, found in ((replace(VIEW, view_uuid="x"), "it is x"), (None, "there is no view")):
        with pytest.raises(CommitFailed, match=found):
            AssertViewUUID(VIEW.view_uuid).check(state)
    with pytest.raises(InvalidInputError, match="not to a table"):
        AssertViewUUID(UUID).check(new_table(2))
    assert view_requirements_for(None) == (AssertCreate(),)
    assert view_requirements_for(VIEW) == (AssertViewUUID(VIEW.view_uuid),)


@versions
def test_what_updates_rely_on(version: int) -> None:
    base = with_refs(version)
    identity = AssertTableUUID(UUID)
    for update, wanted in (
        (SetPropertiesUpdate({"a": "b"}), []),
        (AddSnapshotUpdate(next_snapshot(base, 2)), []),
        (RemoveSnapshotsUpdate((1,)), [AssertRefSnapshotId(name, 1) for name in base.refs]),
        (RemoveSnapshotRefUpdate("b"), [AssertRefSnapshotId("b", 1)]),
        (RemoveSnapshotRefUpdate("none"), [AssertRefSnapshotId("none", None)]),
        (SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)), [AssertRefSnapshotId(MAIN_BRANCH, 1)]),
        (SetSnapshotRefUpdate("new", branch(1)), [AssertRefSnapshotId("new", None)]),
        (AddSchemaUpdate(SCHEMA), [AssertLastAssignedFieldId(3)]),
        (SetCurrentSchemaUpdate(), [AssertCurrentSchemaId(0)]),
        (AddPartitionSpecUpdate(UNPARTITIONED), [AssertLastAssignedPartitionId(1000)]),
        (SetDefaultSpecUpdate(), [AssertDefaultSpecId(0)]),
        (SetDefaultSortOrderUpdate(), [AssertDefaultSortOrderId(0)]),
        (RemoveSchemasUpdate((1,)), [AssertCurrentSchemaId(0), AssertRefSnapshotId("b", 1)]),
        (RemovePartitionSpecsUpdate((1,)), [AssertDefaultSpecId(0), AssertRefSnapshotId("b", 1)]),
    ):
        found = requirements_for(base, [update, update])
        assert found == (identity, *wanted)
        check_all(found, base)


@versions
def test_replacing_a_table_relies_on_ids_only(version: int) -> None:
    updates: list[TableUpdate] = [
        AddSchemaUpdate(SCHEMA),
        SetCurrentSchemaUpdate(),
        AddPartitionSpecUpdate(UNPARTITIONED),
        SetDefaultSpecUpdate(),
        SetDefaultSortOrderUpdate(),
        SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)),
    ]
    assert requirements_for_replace(with_refs(version), updates) == (
        AssertTableUUID(UUID),
        AssertLastAssignedFieldId(3),
        AssertLastAssignedPartitionId(1000),
    )


def test_creating_a_table_relies_on_there_being_none() -> None:
    assert requirements_for(None, [AddSchemaUpdate(SCHEMA)]) == (AssertCreate(),)


def test_a_v1_table_may_have_no_uuid_to_rely_on() -> None:
    assert requirements_for(new_table(1).evolve(table_uuid=None), []) == ()


def test_the_first_that_fails_is_told() -> None:
    with pytest.raises(CommitFailed, match="expected the current schema id to be 5, but it is 0"):
        check_all([AssertTableUUID(UUID), AssertCurrentSchemaId(5), AssertDefaultSpecId(5)], new_table(2))
