"""Write, audit, publish: where a commit goes when its rows are to be looked at before they count."""

from collections.abc import Mapping

from icefloe import properties as props
from icefloe.commit.producer import Target
from icefloe.commit.structure import text_check
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.metadata import MAIN_BRANCH, TableMetadata, summary as totals

WAP_BRANCH = "wap.branch"


def target_of(
    metadata: TableMetadata,
    branch: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    stage_only: bool = False,
) -> Target:
    """Where a commit goes with these snapshot properties.

    `wap.id` stages the snapshot under that id, `wap.branch` sends it to that branch; both need `write.wap.enabled` on the
    table. `wap.branch` is an instruction and is not written into the summary.
    """
    notes = dict(properties or {})
    text_check(notes, "snapshot property")
    to_branch = notes.pop(WAP_BRANCH, None)
    if to_branch is None and totals.WAP_ID not in notes:
        return Target(branch or MAIN_BRANCH, stage_only, notes)
    if not props.WAP_ENABLED.of(metadata.properties):
        raise InvalidPropertyError(
            f"{totals.WAP_ID!r} and {WAP_BRANCH!r} need the table property {props.WAP_ENABLED.key!r} to be true"
        )
    if to_branch is not None and totals.WAP_ID in notes:
        raise InvalidInputError(f"{totals.WAP_ID!r} and {WAP_BRANCH!r} exclude each other; give one")
    if to_branch is not None:
        if branch not in (None, to_branch):
            raise InvalidInputError(f"the commit is to go to branch {branch!r} and by {WAP_BRANCH!r} to {to_branch!r}")
        return Target(to_branch, stage_only, notes)
    check_not_published(metadata, notes[totals.WAP_ID])
    return Target(branch or MAIN_BRANCH, True, notes)


def check_not_published(metadata: TableMetadata, wap_id: str, branch: str = MAIN_BRANCH) -> None:
    """Fail if a snapshot of that id was published to the branch before: its rows would count twice."""
    ref = metadata.refs.get(branch)
    for each in () if ref is None else metadata.ancestors(ref.snapshot_id):
        summary = each.summary
        if summary is not None and wap_id in (summary.get(totals.WAP_ID), summary.get(totals.PUBLISHED_WAP_ID)):
            raise ValidationError(f"{totals.WAP_ID} {wap_id!r} was published already, with snapshot {each.snapshot_id}")
