"""Requirements: when each holds, what it says when it does not, and which ones a commit needs."""

from dataclasses import replace

import pytest

from icefloe.commit.reliance import requirements_for
from icefloe.errors import CommitFailed, InvalidInputError
from icefloe.metadata import MAIN_BRANCH, TableMetadata, apply_all, branch, requirements as req, updates as up
from icefloe.metadata.refs import tag
from icefloe.partitioning import UNPARTITIONED
from icefloe.versions import ALL_VERSIONS
from tests.metadata.tables import BY_DAY, SCHEMA, UUID, new_table, next_snapshot
from tests.metadata.views import VIEW

versions = pytest.mark.parametrize("version", ALL_VERSIONS)


def with_refs(version: int) -> TableMetadata:
    base = new_table(version, BY_DAY)
    updates: list[up.TableUpdate] = [
        up.AddSnapshotUpdate(next_snapshot(base, 1)),
        up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)),
        up.SetSnapshotRefUpdate("b", branch(1)),
        up.SetSnapshotRefUpdate("t", tag(1)),
    ]
    return apply_all(base, updates, 0)


HOLDS: list[tuple[req.TableRequirement, req.TableRequirement]] = [
    (req.AssertTableUUID(UUID), req.AssertTableUUID("other")),
    (req.AssertTableUUID(UUID.upper()), req.AssertTableUUID("")),
    (req.AssertRefSnapshotId(MAIN_BRANCH, 1), req.AssertRefSnapshotId(MAIN_BRANCH, 2)),
    (req.AssertRefSnapshotId("t", 1), req.AssertRefSnapshotId("t", None)),
    (req.AssertRefSnapshotId("absent", None), req.AssertRefSnapshotId("absent", 1)),
    (req.AssertLastAssignedFieldId(3), req.AssertLastAssignedFieldId(2)),
    (req.AssertCurrentSchemaId(0), req.AssertCurrentSchemaId(1)),
    (req.AssertLastAssignedPartitionId(1000), req.AssertLastAssignedPartitionId(999)),
    (req.AssertDefaultSpecId(0), req.AssertDefaultSpecId(1)),
    (req.AssertDefaultSortOrderId(0), req.AssertDefaultSortOrderId(1)),
]


@versions
@pytest.mark.parametrize(("holds", "fails"), HOLDS, ids=str)
def test_requirements_on_a_table(version: int, holds: req.TableRequirement, fails: req.TableRequirement) -> None:
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
        req.AssertRefSnapshotId(MAIN_BRANCH, 7).check(with_refs(2))
    with pytest.raises(CommitFailed, match="expected tag 't' not to exist, but it is at 1"):
        req.AssertRefSnapshotId("t", None).check(with_refs(2))


def test_creation() -> None:
    req.AssertCreate().check(None)
    for state, kind in ((new_table(2), "table"), (VIEW, "view")):
        with pytest.raises(CommitFailed, match=f"expected no {kind}, but it exists"):
            req.AssertCreate().check(state)


def test_views() -> None:
    req.AssertViewUUID(VIEW.view_uuid.upper()).check(VIEW)
    for state, found in ((replace(VIEW, view_uuid="x"), "it is x"), (None, "there is no view")):
        with pytest.raises(CommitFailed, match=found):
            req.AssertViewUUID(VIEW.view_uuid).check(state)
    with pytest.raises(InvalidInputError, match="not to a table"):
        req.AssertViewUUID(UUID).check(new_table(2))


@versions
def test_what_updates_rely_on(version: int) -> None:
    base = with_refs(version)
    identity = req.AssertTableUUID(UUID)
    for update, wanted in (
        (up.SetPropertiesUpdate({"a": "b"}), []),
        (up.AddSnapshotUpdate(next_snapshot(base, 2)), []),
        (up.RemoveSnapshotsUpdate((1,)), [req.AssertRefSnapshotId(name, 1) for name in base.refs]),
        (up.RemoveSnapshotRefUpdate("b"), [req.AssertRefSnapshotId("b", 1)]),
        (up.RemoveSnapshotRefUpdate("none"), [req.AssertRefSnapshotId("none", None)]),
        (up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)), [req.AssertRefSnapshotId(MAIN_BRANCH, 1)]),
        (up.SetSnapshotRefUpdate("new", branch(1)), [req.AssertRefSnapshotId("new", None)]),
        (up.AddSchemaUpdate(SCHEMA), [req.AssertLastAssignedFieldId(3)]),
        (up.SetCurrentSchemaUpdate(), [req.AssertCurrentSchemaId(0)]),
        (up.AddPartitionSpecUpdate(UNPARTITIONED), [req.AssertLastAssignedPartitionId(1000)]),
        (up.SetDefaultSpecUpdate(), [req.AssertDefaultSpecId(0)]),
        (up.SetDefaultSortOrderUpdate(), [req.AssertDefaultSortOrderId(0)]),
        (up.RemoveSchemasUpdate((1,)), [req.AssertCurrentSchemaId(0), req.AssertRefSnapshotId("b", 1)]),
        (up.RemovePartitionSpecsUpdate((1,)), [req.AssertDefaultSpecId(0), req.AssertRefSnapshotId("b", 1)]),
    ):
        found = requirements_for(base, [update, update])
        assert found == (identity, *wanted)
        req.check_all(found, base)


def test_creating_a_table_relies_on_there_being_none() -> None:
    assert requirements_for(None, [up.AddSchemaUpdate(SCHEMA)]) == (req.AssertCreate(),)


def test_a_v1_table_may_have_no_uuid_to_rely_on() -> None:
    assert requirements_for(new_table(1).evolve(table_uuid=None), []) == ()


def test_the_first_that_fails_is_told() -> None:
    with pytest.raises(CommitFailed, match="expected the current schema id to be 5, but it is 0"):
        req.check_all(
            [req.AssertTableUUID(UUID), req.AssertCurrentSchemaId(5), req.AssertDefaultSpecId(5)], new_table(2)
        )
